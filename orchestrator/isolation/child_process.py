"""Call a function that may end its process, or never return, in a forked child process.

A fork takes milliseconds, while a new interpreter needs seconds for its imports. The memory of the calls is
released when the child ends. If processes cannot be forked safely, the function is called in this process.
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
"""Code of the `prctl` option PR_SET_PDEATHSIG of Linux."""

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class ProcessEnded:
    """Replaces a result if the child process ended, or was killed, before there was one.

    Attributes
    ----------
    reason : str
        Description that continues a sentence, such as "ended its process by SIGSEGV".
    seconds : float
        Time that the child had worked, in seconds; 0 if it was not measured.
    by_memory : bool
        Whether the child took too much memory.
    is_late : bool
        Whether the child was killed because it had not ended in time.
    """

    reason: str
    seconds: float = 0.0
    by_memory: bool = field(default=False, compare=False)
    is_late: bool = field(default=False, compare=False)


def call_in_child(
    function: Callable[[_T], _R], items: Sequence[_T], seconds: float = math.inf, quiet: bool = False
) -> Iterator[_R | ProcessEnded]:
    """Yield the results of a function, called for each item in a child process.

    After an item that ends the child, a new child continues with the next one.

    Parameters
    ----------
    function : callable
        The function, which must not raise. Its results are pickled.
    items : sequence of _T
        One argument for each call.
    seconds : float, default math.inf
        Time limit of each call, in seconds.
    quiet : bool, default False
        Discard text that the calls write to standard output and error.

    Yields
    ------
    _R or ProcessEnded
        The result of each item, or a `ProcessEnded`.
    """
    if sys.platform != "linux":  # system libraries of macOS do not survive a fork
        yield from map(function, items)
        return
    done, parent = 0, os.getpid()
    while done < len(items):
        process, (reader, writer) = 0, Pipe(duplex=False)
        flush_streams()  # otherwise both processes would write the same buffers
        release_signals = _delay_signals()
        try:
            with warnings.catch_warnings(action="ignore"):  # Python warns of threads, which are not used
                process = os.fork()
            with suppress(OSError):  # the other process was first, or the child has ended
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
    """Kill a child and the processes of its group, which the child has started and which may outlive it.

    Parameters
    ----------
    process : int
        Process id of the child.
    """
    with suppress(ProcessLookupError, PermissionError):  # all have ended by themselves
        os.killpg(process, signal.SIGKILL)
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


def _delay_signals() -> Callable[[], None]:
    """Delay SIGINT and SIGTERM until the returned function is called.

    Their handlers raise exceptions. During a fork, which calls functions that libraries have registered, such
    an exception would be lost.

    Returns
    -------
    callable
        Function that restores the handlers and raises the delayed signals.
    """
    handlers: dict[int, Any] = {}
    received: list[int] = []
    if threading.current_thread() is threading.main_thread():  # only this thread calls the handlers
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
    """Return a description of how a process ended.

    Parameters
    ----------
    status : int
        Exit status, or the negative number of the signal that ended the process.

    Returns
    -------
    str
        Text that continues a sentence, such as "ended its process with exit status 1".
    """
    if status >= 0:
        return f"ended its process with exit status {status}"
    try:
        return f"ended its process by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended its process by signal {-status}"


def flush_streams() -> None:
    """Write the buffers of standard output and error."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def end_with(parent: int) -> None:
    """Let this process end when its parent ends, by the operating system or a thread that watches the parent.

    Parameters
    ----------
    parent : int
        Process id of the parent.
    """
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
    """Call a function for each item, send the results to the parent, and end this process.

    Parameters
    ----------
    function : callable
        Called in this process with each item.
    items : sequence of _T
        One argument for each call.
    writer : Connection
        Connection to the parent.
    parent : int
        Process id of the parent.
    quiet : bool
        Discard standard output and error.
    """
    leave, process = os._exit, os.getpid()
    try:
        end_with(parent)
        faulthandler.disable()  # the parent reports how the process ended
        # A terminal sends Ctrl-C to the parent as well, which ends this process.
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if quiet:
            sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            os.dup2(sys.stdout.fileno(), 1)  # compiled code writes to the descriptors
            os.dup2(sys.stdout.fileno(), 2)
        for item in items:
            result = function(item)
            if os.getpid() != process:
                break  # this is a copy of the child by os.fork, whose results must not reach the parent
            writer.send(result)
    finally:
        leave(0)


def _receive_result(reader: Connection, process: int, seconds: float) -> Any:
    """Return the next result of a child, or the reason for its absence.

    Parameters
    ----------
    reader : Connection
        Connection to the child.
    process : int
        Process id of the child.
    seconds : float
        Time limit, in seconds.

    Returns
    -------
    object
        The result, or a `ProcessEnded`.
    """
    deadline = time.monotonic() + seconds
    # Processes that the child has started keep the pipe open after the child has ended.
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
