"""Call what may end its process, or never end, in a copy of this process: milliseconds, and no import again.

For trying things before a run begins; where processes cannot be forked safely it is called right here.
"""

import faulthandler
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import Any, NoReturn, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Ended:
    """What became of a call that did not return: it ended its process, or did not end in time."""

    reason: str


def apart(function: Callable[[_T], _R], items: Sequence[_T], seconds: float) -> Iterator[_R | Ended]:
    """Yield what a function returns for each item, called in a copy of this process.

    Parameters
    ----------
    function : callable
        Must not raise; what it returns is pickled.
    items : sequence
    seconds : float
        How long each call may take.
    """
    if sys.platform != "linux":  # system libraries of macOS do not survive a fork
        yield from map(function, items)
        return
    done = 0
    while done < len(items):
        reader, writer = Pipe(duplex=False)
        with warnings.catch_warnings(action="ignore"):  # Python warns of threads, none of which we need
            process = os.fork()
        if process == 0:
            _answer(function, items[done:], writer)
        writer.close()
        try:
            while done < len(items):
                answer = _next_answer(reader, process, seconds)
                yield answer
                done += 1
                if isinstance(answer, Ended):
                    break
        finally:
            reader.close()
            _end(process)


def why_ended(status: int) -> str:
    """Say how a process ended, given its exit status or, below 0, the signal that ended it."""
    if status >= 0:
        return f"ended its process with exit status {status}"
    try:
        return f"ended its process by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended its process by signal {-status}"


def _answer(function: Callable[[_T], Any], items: Sequence[_T], writer: Connection) -> NoReturn:
    leave = os._exit
    try:
        faulthandler.disable()  # its parent tells in a sentence
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets Ctrl-C too, and ends this process
        for item in items:
            writer.send(function(item))
    finally:
        leave(0)


def _next_answer(reader: Connection, process: int, seconds: float) -> Any:
    if not reader.poll(seconds):
        return Ended(f"did not end within {seconds:g} s")
    try:
        return reader.recv()
    except EOFError:
        _, status = os.waitpid(process, 0)
        return Ended(why_ended(os.waitstatus_to_exitcode(status)))


def _end(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    except (ProcessLookupError, ChildProcessError):
        pass  # it has ended by itself
