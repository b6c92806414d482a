"""Keep apart the ends that a user asks for and those that code of estimators causes.

Ctrl-C (SIGINT) is recorded, because an estimator may raise KeyboardInterrupt or catch it. `os._exit` raises
an exception in a process that must continue.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_interrupted = False
"""Whether a SIGINT has arrived."""


@contextmanager
def recorded_interrupts() -> Iterator[None]:
    """Record a SIGINT that arrives during the block, and raise KeyboardInterrupt whatever its code does.

    Interrupted code may catch the exception, or replace it by another, as OmegaConf does. In other threads,
    and if the program has a custom handler of SIGINT, only calls of `interrupt` are recorded.
    """
    global _interrupted
    handler = signal.getsignal(signal.SIGINT)
    in_main_thread = threading.current_thread() is threading.main_thread()
    handled_here = in_main_thread and handler is signal.default_int_handler
    is_outermost = handler is not interrupt  # otherwise another block around this one records
    if is_outermost:
        _interrupted = False
    if handled_here:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
        raise_if_interrupted()
    except (Exception, SystemExit):
        raise_if_interrupted()
        raise
    finally:
        if is_outermost:
            _interrupted = False
        if handled_here:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def raise_if_interrupted() -> None:
    """Raise KeyboardInterrupt if the user has interrupted the program since `recorded_interrupts` started.

    The first one may be lost: Python ignores exceptions in destructors and in generators that end, and some
    libraries and estimators catch all of them or raise others.

    Raises
    ------
    KeyboardInterrupt
        If a SIGINT has arrived or `interrupt` was called.
    """
    if _interrupted:
        raise KeyboardInterrupt


def interrupt(number: int = signal.SIGINT, frame: FrameType | None = None) -> NoReturn:
    """Raise KeyboardInterrupt and record that the user has interrupted the program; a signal handler.

    Parameters
    ----------
    number : int, default signal.SIGINT
        Number of the signal, which is not used.
    frame : FrameType, optional
        Current frame, which is not used.

    Raises
    ------
    KeyboardInterrupt
        Always.
    """
    global _interrupted
    _interrupted = True
    raise KeyboardInterrupt


end_process = os._exit
"""Original `os._exit`, which ends the process even while `os._exit` is replaced."""


@contextmanager
def exits_raised() -> Iterator[None]:
    """Let `os._exit` raise SystemExit during the block, in this thread of this process only."""
    before, os._exit = os._exit, _raising_exit()  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = before


def _raising_exit() -> Callable[[int], NoReturn]:
    """Return a replacement of `os._exit` that raises in this thread of this process.

    Returns
    -------
    callable
        Function that takes the exit status.
    """
    process, thread = os.getpid(), threading.get_ident()

    def raise_exit(status: int) -> NoReturn:
        # Forked children, such as those of multiprocessing, and other threads may end their process.
        if (os.getpid(), threading.get_ident()) != (process, thread):
            end_process(status)
        raise SystemExit(f"os._exit({status!r})")

    return raise_exit
