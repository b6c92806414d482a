"""Call what may end its process, or never return, in a forked child process.

A fork takes milliseconds where a new interpreter takes seconds for its imports, and the memory that a call
took is free again when the child ends. Where processes cannot be forked safely the function is called here.
"""

import ctypes
import faulthandler
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from typing import Any, NoReturn, TypeVar

_KILL_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux."""

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class ProcessEnded:
    """In place of a result: the child process ended or was killed before there was one.

    Attributes
    ----------
    reason : str
        Goes on with a sentence, such as "ended its process by SIGSEGV".
    seconds : float
        How long it had worked, where that is measured.
    by_memory : bool
        Whether it took too much memory.
    is_late : bool
        Whether it was killed because it had not ended in time.
    """

    reason: str
    seconds: float = 0.0
    by_memory: bool = field(default=False, compare=False)
    is_late: bool = field(default=False, compare=False)


def call_in_child(
    function: Callable[[_T], _R], items: Sequence[_T], seconds: float = math.inf, quiet: bool = False
) -> Iterator[_R | ProcessEnded]:
    """Yield what a function returns for each item, called in a child process.

    Parameters
    ----------
    function : callable
        Must not raise; what it returns is pickled.
    items : sequence
    seconds : float
        How long each call may take.
    quiet : bool
        Whether nothing that the calls write to standard output and error is shown.
    """
    if sys.platform != "linux":  # system libraries of macOS do not survive a fork
        yield from map(function, items)
        return
    done, parent = 0, os.getpid()
    while done < len(items):
        process, (reader, writer) = 0, Pipe(duplex=False)
        flush_streams()  # or both processes would write what is in their buffers
        release_signals = _hold_signals()
        try:
            with warnings.catch_warnings(action="ignore"):  # Python warns of threads, none of which we need
                process = os.fork()
            with suppress(OSError):  # the other of both processes has done it, or the child has ended
                os.setpgid(process, process)
            if process == 0:
                _send_results(function, items[done:], writer, parent, quiet)
            writer.close()
            release_signals()
            while done < len(items):
                result = _receive_result(reader, process, seconds)
                yield result
                done += 1
                if isinstance(result, ProcessEnded):
                    break
        finally:
            reader.close()
            if process:
                _end(process)
            release_signals()


def _end(process: int) -> None:
    """Kill a child, and the processes of its group, which it has started and which may outlive it."""
    with suppress(ProcessLookupError, PermissionError):  # all have ended by themselves
        os.killpg(process, signal.SIGKILL)
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def _hold_signals() -> Callable[[], None]:
    """Have the signals that end a program wait until the function that is returned is called.

    Their handlers raise exceptions, which are lost where a fork calls what libraries have registered for it.
    """
    handlers: dict[int, Any] = {}
    received: list[int] = []
    if threading.current_thread() is threading.main_thread():  # no other calls the handlers
        for number in (signal.SIGINT, signal.SIGTERM):
            if (handler := signal.getsignal(number)) is not None:
                handlers[number] = handler
                signal.signal(number, lambda number, _: received.append(number))

    def release() -> None:
        while handlers:
            signal.signal(*handlers.popitem())
        while received:
            signal.raise_signal(received.pop())

    return release


def exit_reason(status: int) -> str:
    """Say how a process ended, given its exit status or, below 0, the signal that ended it."""
    if status >= 0:
        return f"ended its process with exit status {status}"
    try:
        return f"ended its process by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended its process by signal {-status}"


def flush_streams() -> None:
    """Write out what the buffers of standard output and error hold."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def end_with(parent: int) -> None:
    """Have this process end when its parent does: by the system, or by a thread that watches the parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_KILL_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if sys.platform != "linux":
        threading.Thread(target=watch, daemon=True).start()


def _send_results(
    function: Callable[[_T], Any], items: Sequence[_T], writer: Connection, parent: int, quiet: bool
) -> NoReturn:
    leave, process = os._exit, os.getpid()
    try:
        end_with(parent)
        faulthandler.disable()  # the parent says how the process ended
        # The parent gets a terminal's Ctrl-C, too, and ends this process.
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if quiet:
            sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            os.dup2(sys.stdout.fileno(), 1)  # for what does not write by them
            os.dup2(sys.stdout.fileno(), 2)
        for item in items:
            result = function(item)
            if os.getpid() != process:
                break  # a copy of the child, made by os.fork, whose answers would be taken for the child's
            writer.send(result)
    finally:
        leave(0)


def _receive_result(reader: Connection, process: int, seconds: float) -> Any:
    deadline = time.monotonic() + seconds
    # Processes that the child has started hold its end of the pipe open after its own end.
    while not reader.poll(max(0.0, min(1.0, deadline - time.monotonic()))):
        if time.monotonic() >= deadline:
            return ProcessEnded(f"did not end within {seconds:g} s", is_late=True)
        if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) and not reader.poll(0):
            break
    else:
        with suppress(EOFError, OSError):
            return reader.recv()
    _, status = os.waitpid(process, 0)
    return ProcessEnded(exit_reason(os.waitstatus_to_exitcode(status)))
