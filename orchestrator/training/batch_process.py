"""Run a batch in a child process, so that a stuck or crashed training ends only the child.

A training that exceeds the time limit of its protocol may be inside compiled code, which no exception
interrupts. The parent kills the child, records the row as `timeout`, and starts another child for the next
training. A child that ends by itself, or exceeds the memory limit, is reported as a worker death. Processes
that trainings have started end with the child.
"""

import contextlib
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from multiprocessing import spawn
from multiprocessing.connection import Connection, Pipe
from typing import Any

from orchestrator.isolation.child_process import ProcessEnded, end_with, exit_reason
from orchestrator.isolation.descendants import (
    MARK,
    end_group,
    kernel_kills,
    memory_of,
    prefer_to_be_killed,
)
from orchestrator.isolation.process_state import ProcessUnusableError
from orchestrator.study.records import Columns, number_of_rows
from orchestrator.study.text import describe_error, format_memory
from orchestrator.study.trials import BatchResult, WorkOrder
from orchestrator.training.run_batch import batch_result, run_batch
from orchestrator.training.train import Monitor, Row
from orchestrator.training.unfinished_rows import overtime_row, paths_after

_one_at_a_time = threading.Lock()

_CHECK_SECONDS = 0.5
"""Interval at which the parent checks that the child lives and how much memory it uses, in seconds."""

_USABLE_SHARE = 0.95
"""Share of the memory limit at which the child is killed, as Dask's nannies do with workers."""


class _MemoryExceeded(Exception):
    """The child and the processes that it started exceeded the memory limit."""


class _Overtime(Exception):
    """A training, or the preparation before it, exceeded its time limit.

    Parameters
    ----------
    row : dict or None
        Columns of the training that are known so far; None if no training had started.
    seconds : float
        Elapsed time, in seconds.
    """

    def __init__(self, row: Row | None, seconds: float):
        self.row, self.seconds = row, seconds


def run_in_child(
    order: WorkOrder, worker: str = "client", core: int | None = None, memory: float = math.inf
) -> tuple[BatchResult | ProcessEnded, tuple[str, ...]]:
    """Run a batch in the child of this process and return its result and warnings.

    The child is kept for the next batch. Threads take turns.

    Parameters
    ----------
    order : WorkOrder
        The batch, with its dataset, arm and protocol.
    worker : str
        Name of the worker, stored in each row. "client" by default.
    core : int or None
        Logical processor to which this process is pinned; None by default, for no pinning.
    memory : float
        Bytes that the child and the processes that it starts may use together. Unlimited by default.

    Returns
    -------
    result : BatchResult or ProcessEnded
        The rows of the batch, or the reason for which the child ended.
    warnings : tuple of str
        Warnings of the child, each text once.

    Raises
    ------
    DatasetError, DataNotHere
        See `run_batch`.
    """
    parts: list[Columns] = []
    warnings: dict[str, None] = {}
    started = time.perf_counter()
    with _one_at_a_time:
        warm_up = True
        while paths := paths_after(order.batch.paths, sum(map(number_of_rows, parts))):
            remaining = replace(order, batch=replace(order.batch, paths=paths))
            child, kills = _child_at(core), kernel_kills()
            try:
                error = child.run(remaining, worker, warm_up, parts, warnings, memory)
            except _Overtime as overtime:
                end_child()
                if overtime.row is None:
                    # The warm-up exceeded the limit. The trainings on all rows are timed without it.
                    warm_up = False
                else:
                    n_done = sum(map(number_of_rows, parts))
                    parts.append(overtime_row(order, n_done, overtime.row, overtime.seconds))
            except _MemoryExceeded:
                end_child()
                reason = f"exceeded the memory limit of {format_memory(memory)}"
                return ProcessEnded(reason, time.monotonic() - child.started, by_memory=True), tuple(warnings)
            except (EOFError, OSError):
                status = child.process.wait()
                end_child()
                seconds = time.monotonic() - child.started
                if status == -signal.SIGKILL and kernel_kills() > kills:
                    reason = "was killed by the kernel because memory ran out"
                    return ProcessEnded(reason, seconds, by_memory=True), tuple(warnings)
                return ProcessEnded(exit_reason(status), seconds), tuple(warnings)
            except BaseException:
                end_child()
                raise
            else:
                if error is not None:
                    end_child()
                    raise error
    return batch_result(order, worker, parts, time.perf_counter() - started), tuple(warnings)


def end_child() -> None:
    """Kill the child, if there is one."""
    global _child
    if _child is not None:
        _child.end()
        _child = None


# -- this side -----------------------------------------------------------------------------------


class _Child:
    """A process that runs batches.

    Parameters
    ----------
    core : int or None
        Logical processor to which the process is pinned, as it inherits this from its parent.
    """

    def __init__(self, core: int | None):
        self.core = core
        self._pipe, other_end = Pipe()
        read_end, self._guard = os.pipe()
        code = "from orchestrator.isolation.descendants import guard_group; "
        code += f"guard_group({read_end}); "
        code += "from orchestrator.training.batch_process import serve; "
        code += f"serve({other_end.fileno()}, {os.getpid()})"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=[other_end.fileno(), read_end],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONWARNINGS": _warning_filters(), MARK: f"{os.getpid()}-{time.time_ns()}"},
        )
        other_end.close()
        os.close(read_end)
        self._ready = False
        self._checked_at = time.monotonic()
        self.started = time.monotonic()

    def run(
        self,
        order: WorkOrder,
        worker: str,
        warm_up: bool,
        parts: list[Columns],
        warnings: dict[str, None],
        memory: float = math.inf,
    ) -> Exception | None:
        """Run a batch, append its rows to `parts`, and return its error.

        Parameters
        ----------
        order : WorkOrder
            The remaining trainings of the batch.
        worker : str
            Name of the worker, which the records hold.
        warm_up : bool
            Whether to train on a few rows first, which compiles the code.
        parts : list of dict
            Receives the columns of each training when it ends.
        warnings : dict
            Receives the warnings of the child as keys, in order.
        memory : float
            Bytes that the child and the processes that it starts may use. Unlimited by default.

        Returns
        -------
        Exception or None
            The error that the batch raised; None if it ended.

        Raises
        ------
        _MemoryExceeded
            If it used more than `memory` bytes.
        _Overtime
            If a training or its preparation exceeded its time limit.
        EOFError, OSError
            If the process has ended.
        """
        if not self._ready:
            self._pipe.send(_preparation(order))
            self._ready = bool(self._pipe.recv())
        self.started = time.monotonic()
        self._pipe.send((order, worker, warm_up))
        row, allowed, since = None, math.inf, self.started
        while True:
            wait = None if math.isinf(allowed) else max(0.0, since + allowed - time.monotonic())
            if not self._arrives_within(wait, memory):
                raise _Overtime(row, time.monotonic() - since)
            kind, *content = self._pipe.recv()
            if kind == "started":
                (allowed, row), since = content, time.monotonic()
            elif kind == "finished":
                parts.append(content[0])
                row, allowed = None, math.inf
            elif kind == "raised":
                error: Exception = content[0]
                return error
            else:
                warnings |= dict.fromkeys(content[0])
                return None

    def _arrives_within(self, seconds: float | None, memory: float) -> bool:
        """Wait for a message and return whether one arrived in time.

        The pipe may stay open after the child has ended, in a process that the child started. So the method
        checks the process as well.

        Parameters
        ----------
        seconds : float or None
            Longest time to wait, in seconds; None for no limit.
        memory : float
            Bytes that the child and the processes that it starts may use.

        Returns
        -------
        bool
            Whether a message can be received.

        Raises
        ------
        _MemoryExceeded
            If the child uses more than `memory` bytes.
        EOFError
            If the process has ended.
        """
        if time.monotonic() - self._checked_at >= _CHECK_SECONDS:  # several messages may arrive at once
            self._require_memory(memory)
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while not self._pipe.poll(max(0.0, min(_CHECK_SECONDS, deadline - time.monotonic()))):
            if self.process.poll() is not None and not self._pipe.poll(0):
                raise EOFError
            self._require_memory(memory)
            if time.monotonic() >= deadline:
                return False
        return True

    def _require_memory(self, limit: float) -> None:
        """Raise if the child exceeds the usable share of a memory limit.

        Parameters
        ----------
        limit : float
            Memory limit, in bytes; infinity without a limit.

        Raises
        ------
        _MemoryExceeded
            If the child and the processes that it started use more.
        """
        self._checked_at = time.monotonic()
        usable = _USABLE_SHARE * limit
        if not math.isinf(limit) and memory_of(self.process.pid, usable) > usable:
            raise _MemoryExceeded

    def end(self) -> None:
        """Kill the process and the processes that it started."""
        end_group(self.process.pid)
        self.process.wait()
        self._pipe.close()
        os.close(self._guard)


def _warning_filters() -> str:
    """Return the value of PYTHONWARNINGS with a filter for resource trackers.

    A killed child leaves the resources of process pools to the trackers of Python and joblib. These release
    them, so their warnings need no attention.
    """
    given = os.environ.get("PYTHONWARNINGS", "")
    return f"{given},ignore:resource_tracker:UserWarning".lstrip(",")


_child: _Child | None = None


def _child_at(core: int | None) -> _Child:
    """Return the child of this process, and restart it if it was pinned to another core.

    Parameters
    ----------
    core : int or None
        Logical processor to which this process is pinned.

    Returns
    -------
    _Child
        A running process.
    """
    global _child
    if _child is not None and _child.core != core:
        end_child()
    if _child is None:
        _child = _Child(core)
    return _child


def _preparation(order: WorkOrder) -> dict[str, Any]:
    """Return the settings by which the child finds the same modules as this process.

    Parameters
    ----------
    order : WorkOrder
        The batch, whose arm may name classes of the main script.

    Returns
    -------
    dict
        Preparation data of `multiprocessing.spawn`.
    """
    settings = spawn.get_preparation_data("svmbench batch")
    if not any(target.startswith("__main__.") for target in order.arm.targets):
        settings = {name: value for name, value in settings.items() if not name.startswith("init_main")}
    # The pools of a training use Python's default start method, not the one of this worker.
    return {name: value for name, value in settings.items() if name not in ("authkey", "start_method")}


# -- the child's side ----------------------------------------------------------------------------


class _Messages(Monitor):
    """Monitor that sends the progress of a batch to the parent.

    Parameters
    ----------
    pipe : Connection
        The child's end of the pipe.
    """

    def __init__(self, pipe: Connection):
        self._pipe = pipe

    def started(self, seconds: float, row: Row | None = None) -> None:
        """Report the start of a call.

        Parameters
        ----------
        seconds : float
            Time limit of the call, in seconds.
        row : dict or None
            Columns of the training that are known so far. None by default, for a call that is not a training.
        """
        self._pipe.send(("started", seconds, row))

    def finished(self, columns: Columns) -> None:
        """Report trainings that have ended.

        Parameters
        ----------
        columns : dict
            Columns of the ended trainings, by name.
        """
        self._pipe.send(("finished", columns))


def serve(descriptor: int, parent: int) -> None:
    """Run batches for the parent until it closes its end of the pipe or ends.

    Parameters
    ----------
    descriptor : int
        File descriptor of the child's end of the pipe.
    parent : int
        Process id of the parent.
    """
    from orchestrator.training.worker_state import capture_warnings, take_warnings

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is meant for the parent
    prefer_to_be_killed()
    end_with(parent)
    pipe = Connection(descriptor)
    with contextlib.suppress(EOFError, OSError):
        spawn.prepare(pipe.recv())
        capture_warnings()
        pipe.send(True)
        while True:
            order, worker, warm_up = pipe.recv()
            try:
                run_batch(order, worker, _Messages(pipe), warm_up)
                pipe.send(("done", take_warnings()))
            except ProcessUnusableError:
                break
            except Exception as error:
                pipe.send(("raised", portable(error)))
    os._exit(1)  # threads of trainings may still run; do not wait for them


def portable(error: Exception) -> Exception:
    """Return an error that can be pickled: the error itself, or a description of it.

    Parameters
    ----------
    error : Exception
        Error that a training raised.

    Returns
    -------
    Exception
        The error, or a RuntimeError with its description.
    """
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(describe_error(error))
    return error
