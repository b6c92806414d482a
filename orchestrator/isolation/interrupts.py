"""Whether the user has asked to end: SIGINT has arrived, and no estimator has raised a KeyboardInterrupt."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_interrupted = False


@contextmanager
def recorded_interrupts() -> Iterator[None]:
    """Record a SIGINT meanwhile, which raises KeyboardInterrupt as it does elsewhere.

    In other threads, and where the program handles SIGINT in its own way, only `interrupt` is recorded.
    """
    global _interrupted
    _interrupted = False
    in_main_thread = threading.current_thread() is threading.main_thread()
    handled_here = in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handled_here:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
        if _interrupted:  # what ran meanwhile has caught the exception
            raise KeyboardInterrupt
    finally:
        if handled_here:
            _interrupted = False
            signal.signal(signal.SIGINT, signal.default_int_handler)


def was_interrupted() -> bool:
    """Whether a SIGINT has arrived, or `interrupt` was called, since `recorded_interrupts` was entered."""
    return _interrupted


def interrupt(number: int = signal.SIGINT, frame: FrameType | None = None) -> NoReturn:
    """Raise KeyboardInterrupt, and record that a signal has asked to end; a signal handler."""
    global _interrupted
    _interrupted = True
    raise KeyboardInterrupt
