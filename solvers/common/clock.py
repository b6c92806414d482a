"""The clock of `max_seconds`, which stands still while numba compiles, and a notice of long compilations."""

import logging
import threading
import time

from numba.core import event

NOTICE_AFTER = 2.0
"""Time that a compilation may take before a notice says that it is under way, in seconds."""

log = logging.getLogger("solvers")


class _CompilationTime(event.Listener, threading.local):
    """Adds up the time that the current thread spends with numba's compiler.

    It counts the whole time in which the thread asks for the compiler's lock and keeps it: the wait for
    other threads, compiling, and reading or writing the cache on disk. Locks within a lock count once.
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
    """Logs once in a process that numba compiles this package, when that takes long."""

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
            timer.join()  # no thread of ours is left when the caller forks

    def _log(self):
        if self._is_due:
            self._is_due = False
            log.warning(
                "numba compiles the solvers for a new kind of data, which can take a minute or two. The "
                "compiled code is kept for later runs. max_seconds does not count this time.",
                extra={"is_transient": True},  # worthless once the compilation has ended
            )


_compilation_time, _notice = _CompilationTime(), _Notice()
event.register("numba:compiler_lock", _compilation_time)
event.register("numba:compile", _notice)


def clock():
    """Return the seconds of `time.monotonic` without those that this thread has spent on compiling.

    A deadline on this clock holds in the thread that has set it.
    """
    return time.monotonic() - _compilation_time.total
