"""BLAS on one thread. In loops of many small products, waking threads costs more than it gains."""

from functools import lru_cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    """Return the controller of the BLAS libraries that this process has loaded.

    Returns
    -------
    ThreadpoolController
        Controller of the libraries, which are looked up once in a process.
    """
    return ThreadpoolController().select(user_api="blas")


class _Limit:
    """Limit of one BLAS thread for this process, shared by all contexts that overlap in time.

    The number of threads belongs to the process. The first context that is entered records the number and
    sets it to one. The last context that is left restores it. The order in which contexts are left does not
    matter.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._contexts = 0
        self._limiter: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._contexts == 0:
                _let_this_thread_set_limits()
                self._limiter = _libraries().limit(limits=1)
            self._contexts += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._contexts -= 1
            if self._contexts == 0:
                _let_this_thread_set_limits()
                self._limiter.restore_original_limits()
                self._limiter = None


def _let_this_thread_set_limits() -> None:
    """Make threadpoolctl accept limits that this thread sets.

    Since version 3.8, threadpoolctl ignores every thread but the first that set a limit, while that thread
    lives. Here the thread that leaves last restores the limit, and it need not be the thread that set it.
    """
    for library in _libraries().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


_limit = _Limit()


def one_blas_thread() -> _Limit:
    """Return the context in which the BLAS of this process uses one thread.

    Contexts may be nested, and threads may overlap in them. Entering the context takes about 15 µs.

    Returns
    -------
    _Limit
        Context manager, the same object for all callers.
    """
    return _limit
