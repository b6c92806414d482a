"""Code of a user's that ends its process with `os._exit`, in a process that has to go on."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

end_process = os._exit
"""Ends the process, whatever stands in for `os._exit`."""


@contextmanager
def exits_raised() -> Iterator[None]:
    """Let `os._exit` raise SystemExit meanwhile, in this thread of this process alone."""
    before, os._exit = os._exit, _raising_exit()  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = before


def _raising_exit() -> Callable[[int], NoReturn]:
    process, thread = os.getpid(), threading.get_ident()

    def raise_exit(status: int) -> NoReturn:
        # Not for forked children, such as those of multiprocessing, and not for other threads.
        if (os.getpid(), threading.get_ident()) != (process, thread):
            end_process(status)
        raise SystemExit(f"os._exit({status!r})")

    return raise_exit
