"""Clock of `max_seconds`, which excludes compilation by numba, and a notice of long compilations."""

import logging
import threading
import time

from numba.core import event

NOTICE_AFTER = 2.0
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
    """Listener that logs once in a process that a compilation of this package takes long."""

    def __init__(self):
        self._timers, self._is_due = [], True

    def on_start(self, compilation):
        timer, is_outermost = None, not self._timers
        if self._is_due and is_outermost and compilation.data["dispatcher"].__module__.startswith("solvers."):
            timer = threading.Timer(NOTICE_AFTER, self._log)
            timer.daemon = True
            timer.start()
        self._timers.append(timer)

    def on_end(self, _):
        timer = self._timers.pop()
        if timer is not None:
            timer.cancel()
            timer.join()  # the caller may fork, which is safe only without other threads

    def _log(self):
        """Log the notice, unless this process has logged it before."""
        if self._is_due:
            self._is_due = False
            log.warning(
                "numba is compiling the solvers for a new kind of data, which can take a minute or two. "
                "Later runs reuse the compiled code. max_seconds does not include this time.",
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
