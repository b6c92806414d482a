"""Whether the user has asked to end: SIGINT has arrived, and no estimator has raised a KeyboardInterrupt."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_asked = False


@contextmanager
def noticed() -> Iterator[None]:
    """Notice a SIGINT meanwhile, which raises KeyboardInterrupt as it does elsewhere.

    In other threads, and where the program handles SIGINT in its own way, only `ask_to_end` is noticed.
    """
    global _asked
    _asked = False
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        if _asked:
            raise KeyboardInterrupt
        return
    signal.signal(signal.SIGINT, _note)
    try:
        yield
        if _asked:  # what ran meanwhile has caught the exception
            raise KeyboardInterrupt
    finally:
        _asked = False
        signal.signal(signal.SIGINT, signal.default_int_handler)


def asked_to_end() -> bool:
    """Whether a SIGINT has arrived, or `ask_to_end` was called, since `noticed` was entered."""
    return _asked


def ask_to_end() -> NoReturn:
    """Raise KeyboardInterrupt as a SIGINT does that is noticed: another signal has asked to end."""
    global _asked
    _asked = True
    raise KeyboardInterrupt


def _note(number: int, frame: FrameType | None) -> None:
    global _asked
    _asked = True
    signal.default_int_handler(number, frame)
