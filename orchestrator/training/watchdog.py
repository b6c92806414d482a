"""Follow trainings in this process, and act when one has taken longer than it may."""

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

_LOOK_SECONDS = 1.0
"""How often to look whether a training has taken too long."""

_AGAIN_SECONDS = 10.0
"""How long to wait for a training to end before the action is repeated."""


class Watchdog(Monitor):
    """A monitor with a thread that acts when something takes longer than it may.

    The thread starts with the first thing that is limited, and ends with the block.

    Parameters
    ----------
    act : callable
        Called in the thread, with the limit in seconds; again every few seconds until the training ends.
    then : Monitor, optional
        Gets all reports, too.

    Attributes
    ----------
    limit : float
        How long what is under way may take, in seconds.
    """

    def __init__(self, act: Callable[[float], None], then: Monitor | None = None):
        self._act = act
        self._then = then or Monitor()
        self.limit = self._deadline = math.inf
        self._left = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()

    def started(self, seconds: float, row: Row | None = None) -> None:
        """Take how long what starts now may take."""
        self.limit, self._deadline = seconds, time.monotonic() + seconds
        if self._thread is None and not math.isinf(seconds):
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        self._then.started(seconds, row)

    def finished(self, columns: Columns) -> None:
        """Take the rows of the trainings that have ended."""
        self.limit = self._deadline = math.inf
        self._then.finished(columns)

    @property
    def is_late(self) -> bool:
        """Whether what is under way has taken longer than it may."""
        return time.monotonic() >= self._deadline

    def _watch(self) -> None:
        while not self._left.wait(_LOOK_SECONDS):
            if self.is_late:
                self._act(self.limit)
                self._left.wait(_AGAIN_SECONDS)


def end_worker(limit: float) -> None:
    """End this process, and what it has started: another worker takes its place."""
    end_all(descendants(os.getpid()))
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def overtime_raised(then: Monitor | None = None) -> Iterator[Watchdog]:
    """Have the main thread raise OvertimeError in a training that takes too long, also where it waits.

    Compiled code is not interrupted, and neither is another thread than the main one.

    Parameters
    ----------
    then : Monitor, optional
        Gets all reports, too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Watchdog(lambda limit: None, then)
        return
    main = threading.get_ident()

    def interrupt(limit: float) -> None:
        signal.pthread_kill(main, signal.SIGUSR1)

    def handle(number: int, frame: FrameType | None) -> None:
        if watchdog.is_late:  # or the training has ended in the meantime
            raise OvertimeError(default_overtime_message(watchdog.limit))

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with Watchdog(interrupt, then) as watchdog:
            yield watchdog
    finally:
        signal.signal(signal.SIGUSR1, before)
