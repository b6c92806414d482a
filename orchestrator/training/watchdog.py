"""Follow trainings in this process, and act when one exceeds its time limit."""

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

from orchestrator.isolation.descendants import descendants, end_all
from orchestrator.study.records import Columns
from orchestrator.training.train import Monitor, OvertimeError, Row, default_overtime_message

_CHECK_SECONDS = 1.0
"""Interval at which the thread checks the time limit, in seconds."""

_REPEAT_SECONDS = 10.0
"""Time after which the action is repeated if the training has not ended, in seconds."""


class Watchdog(Monitor):
    """A monitor with a thread that acts when a training or another step exceeds its time limit.

    The thread starts with the first step that has a limit, and ends with the `with` block.

    Parameters
    ----------
    act : callable
        Called in the thread, with the limit in seconds. It is called again every few seconds until the step
        ends.
    then : Monitor, optional
        Receives all reports, too. None by default.

    Attributes
    ----------
    limit : float
        Time limit of the current step, in seconds; infinity without a limit.
    """

    def __init__(self, act: Callable[[float], None], then: Monitor | None = None):
        self._act = act
        self._then = then or Monitor()
        self.limit = self._deadline = math.inf
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()

    def started(self, seconds: float, row: Row | None = None) -> None:
        """Start the clock of a step.

        Parameters
        ----------
        seconds : float
            Time limit of the step, in seconds.
        row : dict or None
            Columns of the training that are known so far. None by default, for a step that is not a training.
        """
        self.limit, self._deadline = seconds, time.monotonic() + seconds
        if self._thread is None and not math.isinf(seconds):
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        self._then.started(seconds, row)

    def finished(self, columns: Columns) -> None:
        """Stop the clock.

        Parameters
        ----------
        columns : dict
            Columns of the trainings that have ended.
        """
        self.limit = self._deadline = math.inf
        self._then.finished(columns)

    @property
    def is_late(self) -> bool:
        """Whether the current step has exceeded its time limit."""
        return time.monotonic() >= self._deadline

    def _watch(self) -> None:
        """Check the time limit until the block ends."""
        while not self._ended.wait(_CHECK_SECONDS):
            if self.is_late:
                self._act(self.limit)
                self._ended.wait(_REPEAT_SECONDS)


def end_worker(limit: float) -> None:
    """Kill this process and the processes that it started, so that another worker replaces it.

    Parameters
    ----------
    limit : float
        Time limit that was exceeded, in seconds. Unused.
    """
    end_all(descendants(os.getpid()))
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def overtime_raised(then: Monitor | None = None) -> Iterator[Watchdog]:
    """Return a context in which the main thread raises OvertimeError in a training that exceeds its limit.

    The exception also ends a wait. It does not interrupt compiled code or threads other than the main one.

    Parameters
    ----------
    then : Monitor, optional
        Receives all reports, too. None by default.

    Yields
    ------
    Watchdog
        Monitor of the trainings.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Watchdog(lambda limit: None, then)
        return
    main = threading.get_ident()

    def interrupt(limit: float) -> None:
        signal.pthread_kill(main, signal.SIGUSR1)

    def handle(number: int, frame: FrameType | None) -> None:
        if watchdog.is_late:  # the training may have ended in the meantime
            raise OvertimeError(default_overtime_message(watchdog.limit))

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with Watchdog(interrupt, then) as watchdog:
            yield watchdog
    finally:
        signal.signal(signal.SIGUSR1, before)
