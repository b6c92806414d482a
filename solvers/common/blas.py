"""BLAS on one thread: many small products in a loop lose more to waking threads than they gain."""

from functools import lru_cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


class _Limit:
    """The limit of a process, which all contexts share that overlap in time.

    The number of threads belongs to the process: the first context that is entered notes it and sets it to
    one, and the last that is left restores it, in whichever order they are left.
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

    Since 3.8 it ignores every thread but the first that set a limit, as long as that one lives. Here the last
    to leave restores what the first set, whoever they are.
    """
    for library in _libraries().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


_limit = _Limit()


def one_blas_thread() -> _Limit:
    """Context in which the BLAS of this process uses one thread; entering it takes some 15 µs.

    Contexts may be nested, and threads may overlap in them.
    """
    return _limit
