"""Let code of a user that calls `os._exit` raise an exception, in a process that must continue."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

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
