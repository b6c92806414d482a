"""Run a batch in a child process: what cannot be stopped or survived here is ended with the child.

A training that overruns the time limit of its protocol may be inside compiled code, from which no exception
gets it out. Its process is killed, its row says `timeout`, and another child goes on with the next training.
A child that ends by itself, or exceeds the memory limit, is reported, as the loss of a worker is. Processes
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
from orchestrator.study.batch import BatchResult, WorkOrder
from orchestrator.study.records import Columns, number_of_rows
from orchestrator.study.storable import describe_error
from orchestrator.study.text import format_memory
from orchestrator.training.run_batch import batch_result, overtime_row, paths_after, run_batch
from orchestrator.training.train import Monitor, Row

_one_at_a_time = threading.Lock()

_LOOK_SECONDS = 0.5
"""How often the parent looks whether the child lives, and how much memory it takes."""

_USABLE_SHARE = 0.95
"""The share of the memory limit at which the child is killed, as Dask's nannies do with workers."""


class _MemoryExceeded(Exception):
    """The child, with the processes that it has started, took more memory than it may."""


class _Overtime(Exception):
    """Something took longer than it may: a training, whose row so far is known, or what precedes it."""

    def __init__(self, row: Row | None, seconds: float):
        self.row, self.seconds = row, seconds


def run_in_child(
    order: WorkOrder, worker: str = "client", core: int | None = None, memory: float = math.inf
) -> tuple[BatchResult | ProcessEnded, tuple[str, ...]]:
    """Run a batch in this process's child, which is kept for the next; threads take turns.

    Returned are its result, and the warnings of the child.

    Parameters
    ----------
    order : WorkOrder
    worker : str
        The worker's name, for the records.
    core : int or None
        The core that this process is pinned to.
    memory : float
        Bytes that the child and the processes that it starts may take together.

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
            left = replace(order, batch=replace(order.batch, paths=paths))
            child, kills = _child_at(core), kernel_kills()
            try:
                error = child.run(left, worker, warm_up, parts, warnings, memory)
            except _Overtime as overtime:
                end_child()
                if overtime.row is None:
                    warm_up = False  # few rows take too long; the limit decides on what all of them take
                else:
                    n_done = sum(map(number_of_rows, parts))
                    parts.append(overtime_row(order, n_done, overtime.row, overtime.seconds))
            except _MemoryExceeded:
                end_child()
                reason = f"exceeded the memory limit of {format_memory(memory)}"
                return ProcessEnded(reason, time.monotonic() - child.begun, by_memory=True), tuple(warnings)
            except (EOFError, OSError):
                status = child.process.wait()
                end_child()
                seconds = time.monotonic() - child.begun
                if status == -signal.SIGKILL and kernel_kills() > kills:
                    reason = "was killed by the kernel, which had no memory left for it"
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
    """End the child, if there is one."""
    global _child
    if _child is not None:
        _child.end()
        _child = None


# -- this side -----------------------------------------------------------------------------------


class _Child:
    """A process that runs batches."""

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
        self._looked = time.monotonic()
        self.begun = time.monotonic()

    def run(
        self,
        order: WorkOrder,
        worker: str,
        warm_up: bool,
        parts: list[Columns],
        warnings: dict[str, None],
        memory: float = math.inf,
    ) -> Exception | None:
        """Run a batch; add the rows of its trainings as they end, and the child's warnings; return its error.

        Raises
        ------
        _MemoryExceeded
            If it took more than `memory` bytes.
        _Overtime
            If something took longer than it may.
        EOFError, OSError
            If the process has ended.
        """
        if not self._ready:
            self._pipe.send(_preparation(order))
            self._ready = bool(self._pipe.recv())
        self.begun = time.monotonic()
        self._pipe.send((order, worker, warm_up))
        row, allowed, since = None, math.inf, self.begun
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
        """Wait for a message; the pipe may stay open after the child, in a process that the child started.

        Raises
        ------
        _MemoryExceeded
            If the child takes more than `memory` bytes.
        EOFError
            If the process has ended.
        """
        if time.monotonic() - self._looked >= _LOOK_SECONDS:  # messages may come in quick succession
            self._require_memory(memory)
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while not self._pipe.poll(max(0.0, min(_LOOK_SECONDS, deadline - time.monotonic()))):
            if self.process.poll() is not None and not self._pipe.poll(0):
                raise EOFError
            self._require_memory(memory)
            if time.monotonic() >= deadline:
                return False
        return True

    def _require_memory(self, limit: float) -> None:
        self._looked = time.monotonic()
        usable = _USABLE_SHARE * limit
        if not math.isinf(limit) and memory_of(self.process.pid, usable) > usable:
            raise _MemoryExceeded

    def end(self) -> None:
        """Kill the process, and those that it has started."""
        end_group(self.process.pid)
        self.process.wait()
        self._pipe.close()
        os.close(self._guard)


def _warning_filters() -> str:
    """Return filters of warnings with one more, which keeps what pools leave in a killed child untold.

    Python's and joblib's trackers of resources release it, and end; what they warn of is handled.
    """
    given = os.environ.get("PYTHONWARNINGS", "")
    return f"{given},ignore:resource_tracker:UserWarning".lstrip(",")


_child: _Child | None = None


def _child_at(core: int | None) -> _Child:
    """Return the child, started anew if it inherited another core."""
    global _child
    if _child is not None and _child.core != core:
        end_child()
    if _child is None:
        _child = _Child(core)
    return _child


def _preparation(order: WorkOrder) -> dict[str, Any]:
    """Return what makes the child find the modules that this process finds."""
    facts = spawn.get_preparation_data("svmbench batch")
    if not any(target.startswith("__main__.") for target in order.arm.targets):
        facts = {name: value for name, value in facts.items() if not name.startswith("init_main")}
    # Pools of a training start their processes as they do in any program, and not as this worker was started.
    return {name: value for name, value in facts.items() if name not in ("authkey", "start_method")}


# -- the child's side ----------------------------------------------------------------------------


class _Messages(Monitor):
    """Sends the parent how a batch goes on."""

    def __init__(self, pipe: Connection):
        self._pipe = pipe

    def started(self, seconds: float, row: Row | None = None) -> None:
        self._pipe.send(("started", seconds, row))

    def finished(self, columns: Columns) -> None:
        self._pipe.send(("finished", columns))


def serve(descriptor: int, parent: int) -> None:
    """Run batches for the parent until it closes its end, or ends however it does."""
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
    os._exit(1)  # without waiting for threads that trainings have left


def portable(error: Exception) -> Exception:
    """Return an error that can be sent, in place of one that cannot."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(describe_error(error))
    return error
