"""Run batches one after the other in this process: for debugging, tests and fair timings.

Trainings under a time limit run in a child process, since only a process can be stopped at any point. So do
those of a dataset × arm with which an earlier run's process ended: what ends the child is not run again. A
thread that a training leaves may end the process during another's, so after two such ends all do.
"""

import contextlib
import json
import logging
import os
from collections import deque
from collections.abc import Collection
from pathlib import Path
from typing import Any

import psutil

from orchestrator.execution.executor import Outcome
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import starts_processes
from orchestrator.isolation.descendants import descendants, end_all, started_since
from orchestrator.isolation.interrupts import recorded_interrupts
from orchestrator.isolation.process_state import ProcessUnusableError
from orchestrator.study.batch import WorkOrder
from orchestrator.study.errors import ExecutionError
from orchestrator.study.records import Columns, number_of_rows
from orchestrator.study.storable import describe_error
from orchestrator.study.trials import Pair
from orchestrator.training.batch_process import end_child, run_in_child
from orchestrator.training.environment import host_summary
from orchestrator.training.run_batch import run_batch
from orchestrator.training.split_data import DataNotHere, restore
from orchestrator.training.train import Monitor
from orchestrator.training.watchdog import overtime_raised

log = logging.getLogger(__name__)

_DIGITS = 12
"""Of the number of trainings that are done, at the beginning of a journal."""

_MOST_ENDS = 2
"""How many runs in a row may end with their processes before all trainings run in child processes."""


class Journal(Monitor):
    """A file that names the training under way, for the run after one that ended with it.

    One small write a training, which nothing waits for: it has to survive the process, not the machine.

    Parameters
    ----------
    path : Path
        In the study's folder, whose lock the caller holds.

    Attributes
    ----------
    ended_with : dict of Pair to str
        The key of the training that an earlier run ended with; empty if that is known to end processes.
    ends : int
        How many runs in a row have ended with their processes.
    """

    def __init__(self, path: Path):
        self._path = path
        left, self.ends = self._left()
        self.ended_with = dict(left)
        self._ends_then = self.ends + 1
        self._known = [pair for pair, key in self.ended_with.items() if not key]
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        self._file = os.open(path, flags, 0o600)
        self._done = 0

    def begin(self, order: WorkOrder) -> None:
        """Record the trainings of a batch that begins in this process."""
        batch = order.batch
        keys = [key for path in batch.paths for key in path.keys]
        self._write({"pair": [batch.dataset, batch.solver], "keys": keys})

    def finished(self, columns: Columns) -> None:
        """Record that the batch's next training is under way."""
        self._done += number_of_rows(columns)
        os.pwrite(self._file, b"%0*d" % (_DIGITS, self._done), 0)

    def idle(self) -> None:
        """Record that no training is under way in this process."""
        self._write({})

    def close(self, known: Collection[Pair]) -> None:
        """Leave a file only that tells the next run whose trainings end their processes."""
        if known:
            self._known, self._ends_then = list(known), 0
            self._write({})
        else:
            self._path.unlink(missing_ok=True)
        os.close(self._file)

    def _write(self, facts: dict[str, Any]) -> None:
        text = json.dumps(facts | {"known": self._known, "ends": self._ends_then}).encode()
        os.ftruncate(self._file, 0)
        self._done = 0
        os.pwrite(self._file, b"%0*d" % (_DIGITS, 0) + text, 0)

    def _left(self) -> tuple[list[tuple[Pair, str]], int]:
        """Read what an earlier run left; nothing of a file that is not a journal."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            content = self._path.read_bytes() if self._path.is_file() else b""
            if not content:
                return [], 0
            done, facts = int(content[:_DIGITS]), json.loads(content[_DIGITS:])
            left = [((str(dataset), str(solver)), "") for dataset, solver in facts["known"]]
            if done < len(facts.get("keys", [])):
                dataset, solver = facts["pair"]
                left.append(((str(dataset), str(solver)), str(facts["keys"][done])))
            return left, int(facts.get("ends", 0))
        return [], 0


class SerialExecutor:
    """The simplest executor: `wait` runs the next order.

    Parameters
    ----------
    journal : Path, optional
        Where to keep which training is under way, for a run after one whose process ended.
    """

    slots = 1

    def __init__(self, journal: Path | None = None) -> None:
        self._waiting: deque[WorkOrder] = deque()
        self._journal = None if journal is None else Journal(journal)
        self._reported: set[tuple[Pair, str]] = set()
        self._isolated: dict[Pair, str] = dict(self._journal.ended_with) if self._journal else {}
        self._isolates_all = self._journal is not None and self._journal.ends >= _MOST_ENDS
        self._in_child: Pair | None = None
        self._left_behind: list[psutil.Process] = []

    def submit(self, order: WorkOrder) -> None:
        """Keep an order for the next `wait`."""
        self._waiting.append(order)

    def wait(self, seconds: float) -> list[Outcome]:
        """Run the next order to its end, however long it takes."""
        if not self._waiting:
            return []
        order = self._waiting.popleft()
        pair = (order.batch.dataset, order.batch.solver)
        try:
            with recorded_interrupts():
                try:
                    return [self._run(order, pair)]
                except DataNotHere:  # its folder was removed
                    restore(order.source, order.protocol)
                    return [self._run(order, pair)]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # of a module that cannot be imported, for example
            self._journal = None  # its file goes on naming the training, which the next run isolates
            if isinstance(error, ProcessUnusableError):
                raise ExecutionError(f"{error}; in the next run it has a process of its own") from error
            raise ExecutionError(
                f"a batch of {order.batch.dataset} could not run: {describe_error(error)}"
            ) from error

    def _run(self, order: WorkOrder, pair: Pair) -> Outcome:
        if self._is_isolated(pair) or order.protocol.max_seconds is not None:
            return self._run_isolated(order, pair)
        return self._run_here(order)

    def _run_here(self, order: WorkOrder) -> Outcome:
        if self._journal is not None:
            self._journal.begin(order)
        watched = starts_processes(order.arm)
        before = descendants(os.getpid()) if watched else []
        try:
            with overtime_raised(self._journal) as monitor:
                result = run_batch(order, monitor=monitor)
        finally:
            if watched:
                self._left_behind += started_since([*before, *self._left_behind])
        if self._journal is not None:
            self._journal.idle()
        return Outcome(order, result)

    def _is_isolated(self, pair: Pair) -> bool:
        return self._isolates_all or pair in self._isolated

    def _run_isolated(self, order: WorkOrder, pair: Pair) -> Outcome:
        if self._is_isolated(pair):
            which = "one of its trainings has" if pair in self._isolated else "earlier runs have"
            self._report_once(pair, f"{which} ended a process; they run in a child process")
            if pair != self._in_child:
                end_child()  # which others may have left a thread in
            self._in_child = pair
        end, warnings = run_in_child(order)
        for text in warnings:
            self._report_once(pair, text)
        if isinstance(end, ProcessEnded):
            self._isolated[pair] = ""
            return Outcome(order, None, f"it {end.reason}", end.seconds, end.by_memory)
        if any(self._isolated.get(pair) in path.keys for path in order.batch.paths):
            del self._isolated[pair]  # the training that ended a process has come back
        return Outcome(order, end)

    def _report_once(self, pair: Pair, text: str) -> None:
        """Warn the user of something of a dataset × arm, once."""
        if (pair, text) not in self._reported:
            self._reported.add((pair, text))
            log.warning("%s × %s: %s", *pair, text)

    def facts(self) -> dict[str, Any]:
        """Describe this process and its host."""
        return {"kind": "serial", "workers": 1, "hosts": [host_summary()]}

    def close(self) -> None:
        """Forget what waits, and end the child process and those that trainings have left."""
        self._waiting.clear()
        end_child()
        end_all(self._left_behind)
        self._left_behind.clear()
        if self._journal is not None:
            self._journal.close([pair for pair, key in self._isolated.items() if not key])
            self._journal = None


class NoExecutor(SerialExecutor):
    """What a run has in place of workers when every trial is stored: it gets no orders."""

    def facts(self) -> dict[str, Any]:
        """Describe this process and its host."""
        return {"kind": "none", "workers": 0, "hosts": [host_summary()]}
