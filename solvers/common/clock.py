"""Clock of `max_seconds`, which excludes compilation by numba, and a notice of long compilations."""

import logging
import threading
import time

from numba.core import event

NOTICE_AFTER = 0.5
"""Time from the start of a compilation to the notice that it is running, in seconds."""

log = logging.getLogger("solvers")


class _CompilationTime(event.Listener, threading.local):
    """Total time that the current thread has spent in numba's compiler.

    It is measured from the request for the compiler's lock to its release. It includes waiting for other
    threads, compiling, and reading or writing the cache on disk. Nested locks count once.
    """

    def __init__(self):
        self.total, self._depth, self._started = 0.0, 0, 0.0

    def on_start(self, _):
        if self._depth == 0:
            self._started = time.monotonic()
        self._depth += 1

    def on_end(self, _):
        self._depth -= 1
        if self._depth == 0:
            self.total += time.monotonic() - self._started


class _Notice(event.Listener):
    """Listener that logs, once for each function in a process, that its compilation takes long."""

    def __init__(self):
        self._timers, self._logged = [], set()

    def on_start(self, compilation):
        timer, is_outermost, function = None, not self._timers, compilation.data["dispatcher"]
        name = f"{function.__module__}.{function.__qualname__}"
        if is_outermost and name.startswith("solvers.") and name not in self._logged:
            timer = threading.Timer(NOTICE_AFTER, self._log, (name, function.stats.cache_path))
            timer.daemon = True
            timer.start()
        self._timers.append(timer)

    def on_end(self, _):
        timer = self._timers.pop()
        if timer is not None:
            timer.cancel()
            timer.join()  # the caller may fork, which is safe only without other threads

    def _log(self, name, folder):
        """Log the notice.

        Parameters
        ----------
        name : str
            Dotted name of the function.
        folder : str or None
            Folder of its cached code, if it has one.
        """
        self._logged.add(name)
        log.warning(
            "numba is compiling %s for a new kind of data, which takes some seconds. %s"
            "max_seconds does not include this time.",
            name,
            f"Later runs reuse the compiled code, which is kept in {folder}. " if folder else "",
            extra={"is_transient": True},  # worthless once the compilation has ended
        )


_compilation_time, _notice = _CompilationTime(), _Notice()
event.register("numba:compiler_lock", _compilation_time)
event.register("numba:compile", _notice)


def clock():
    """Return the seconds of `time.monotonic` without those that this thread has spent on compiling.

    A deadline on this clock is valid only in the thread that set it.

    Returns
    -------
    float
        Seconds since an arbitrary start.
    """
    return time.monotonic() - _compilation_time.total
