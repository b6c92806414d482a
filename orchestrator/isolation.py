"""Run a batch in a child process: what cannot be stopped or survived here is ended with the child.

A training that overruns the time limit of its protocol may be inside compiled code, from which no exception
gets it out. Its process is killed, its row says `timeout`, and another child goes on with the next training.
A child that ends by itself is reported, as the loss of a worker is.
"""

import contextlib
import ctypes
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from multiprocessing import spawn
from multiprocessing.connection import Connection, Pipe
from typing import Any

from orchestrator.forked import why_ended
from orchestrator.training import Monitor, Row, describe_error
from orchestrator.worker import (
    BatchResult,
    WorkOrder,
    batch_result,
    overtime_row,
    paths_after,
    run_batch,
)

_taking_turns = threading.Lock()

_KILL_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux."""


@dataclass(frozen=True, slots=True)
class Died:
    """The child ended in the middle of a batch: how, and after how many seconds."""

    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class _Overtime:
    """Something took longer than it may: a training, whose row so far is known, or what precedes it."""

    row: Row | None
    seconds: float


def run_isolated(
    order: WorkOrder, worker: str = "client", core: int | None = None
) -> tuple[BatchResult | Died, tuple[str, ...]]:
    """Run a batch in this process's child, which is kept for the next; threads take turns.

    Returned are its result, and what the child warned of.

    Parameters
    ----------
    order : WorkOrder
    worker : str
        The worker's name, for the records.
    core : int or None
        The core that this process is pinned to.

    Raises
    ------
    DatasetError, DataNotHere
        See `run_batch`.
    """
    rows: list[Row] = []
    warned: dict[str, None] = {}
    started = time.perf_counter()
    with _taking_turns:
        warm_up = True
        while paths := paths_after(order.batch.paths, len(rows)):
            left = replace(order, batch=replace(order.batch, paths=paths))
            child = _child_at(core)
            try:
                end = child.run(left, worker, warm_up, rows, warned)
            except BaseException:
                close()
                raise
            if isinstance(end, Died):
                close()
                return end, tuple(warned)
            if isinstance(end, _Overtime):
                close()
                if end.row is None:
                    warm_up = False  # few rows take too long; what all of them take is for the limit to say
                else:
                    rows.append(overtime_row(order, len(rows), end.row, end.seconds))
    return batch_result(order, worker, rows, time.perf_counter() - started), tuple(warned)


def close() -> None:
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
        self._link, other_end = Pipe()
        code = f"from orchestrator.isolation import serve; serve({other_end.fileno()}, {os.getpid()})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], pass_fds=[other_end.fileno()], stdin=subprocess.DEVNULL
        )
        other_end.close()
        self._ready = False

    def run(
        self, order: WorkOrder, worker: str, warm_up: bool, rows: list[Row], warned: dict[str, None]
    ) -> _Overtime | Died | None:
        """Run a batch, and add the rows of its trainings as they end; return what kept it from its end."""
        begun = time.monotonic()
        try:
            if not self._ready:
                self._link.send(_preparation(order))
                self._ready = bool(self._link.recv())
            begun = time.monotonic()
            self._link.send((order, worker, warm_up))
            return self._follow(rows, warned)
        except (EOFError, OSError):
            return Died(why_ended(self._process.wait()), time.monotonic() - begun)

    def _follow(self, rows: list[Row], warned: dict[str, None]) -> _Overtime | None:
        row, allowed, since = None, math.inf, time.monotonic()
        while True:
            wait = None if math.isinf(allowed) else max(0.0, since + allowed - time.monotonic())
            if not self._link.poll(wait):
                return _Overtime(row, time.monotonic() - since)
            kind, *content = self._link.recv()
            if kind == "begins":
                (allowed, row), since = content, time.monotonic()
            elif kind == "finished":
                rows.append(content[0])
                row, allowed = None, math.inf
            elif kind == "raised":
                raise content[0]
            else:
                warned |= dict.fromkeys(content[0])
                return None

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        self._link.close()


_child: _Child | None = None


def _child_at(core: int | None) -> _Child:
    """Return the child, started anew if it inherited another core."""
    global _child
    if _child is not None and _child.core != core:
        close()
    if _child is None:
        _child = _Child(core)
    return _child


def _preparation(order: WorkOrder) -> dict[str, Any]:
    """Return what makes the child find the modules that this process finds."""
    facts = spawn.get_preparation_data("svmbench batch")
    if not order.arm.target.startswith("__main__."):
        facts = {name: value for name, value in facts.items() if not name.startswith("init_main")}
    return {name: value for name, value in facts.items() if name != "authkey"}


# -- the child's side ----------------------------------------------------------------------------


class _Messages(Monitor):
    """Tells the parent how a batch goes on."""

    def __init__(self, link: Connection):
        self._link = link

    def begins(self, seconds: float, row: Row | None = None) -> None:
        self._link.send(("begins", seconds, row))

    def finished(self, row: Row) -> None:
        self._link.send(("finished", row))


def serve(descriptor: int, parent: int) -> None:
    """Run batches for the parent until it closes its end, or ends however it does."""
    from orchestrator.execution.warned import heard, listen

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is meant for the parent
    _end_with(parent)
    link = Connection(descriptor)
    with contextlib.suppress(EOFError, OSError):
        spawn.prepare(link.recv())
        listen()
        link.send(True)
        while True:
            order, worker, warm_up = link.recv()
            try:
                run_batch(order, worker, _Messages(link), warm_up)
                link.send(("done", heard()))
            except Exception as error:
                link.send(("raised", _portable(error)))


def _portable(error: Exception) -> Exception:
    """Return an error that can be sent, in place of one that cannot."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(describe_error(error))
    return error


def _end_with(parent: int) -> None:
    """Have the system kill this process when its parent ends, or look after that oneself."""
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
