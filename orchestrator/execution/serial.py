"""Run batches one after another in this process, for debugging, tests and fair timings.

Trainings with a time limit run in a child process, because only a process can be stopped at any point. So do
the trainings of a dataset × arm if an earlier run's process ended during one of them. The training that ends
the child process is not run again. A thread that a training has left may end the process during another one.
So after two such runs, all trainings run in child processes.
"""

import contextlib
import json
import logging
import os
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from orchestrator.execution.executor import Outcome
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import starts_processes
from orchestrator.isolation.descendants import descendants, end_all, started_since
from orchestrator.isolation.exits import recorded_interrupts
from orchestrator.isolation.process_state import ProcessUnusableError
from orchestrator.study.errors import ExecutionError
from orchestrator.study.records import Columns, number_of_rows
from orchestrator.study.text import describe_error
from orchestrator.study.trials import Pair, WorkOrder
from orchestrator.training.batch_process import end_child, run_in_child
from orchestrator.training.environment import host_summary
from orchestrator.training.open_data import DataNotHere, restore
from orchestrator.training.run_batch import run_batch
from orchestrator.training.train import Monitor
from orchestrator.training.watchdog import overtime_raised

log = logging.getLogger(__name__)

_DIGITS = 12
"""Width of the counter at the start of a journal, in characters."""

_MAX_ENDS = 2
"""Number of consecutive runs whose processes ended after which all trainings run in child processes."""


class Journal(Monitor):
    """A file that names the running training, for the run after one whose process ended.

    Each training needs one small write, without waiting for the disk. The file must survive a crash of the
    process, but not of the host.

    Parameters
    ----------
    path : Path
        Path in the study's folder, whose lock the caller holds.

    Attributes
    ----------
    ended_with : dict of Pair to str
        Key of the training during which an earlier run's process ended. Empty if trainings of the pair are
        known to end processes.
    ends : int
        Number of consecutive runs whose processes ended.
    """

    def __init__(self, path: Path):
        self._path = path
        ended, self.ends = self._read()
        self.ended_with = dict(ended)
        self._ends_then = self.ends + 1
        self._known = [pair for pair, key in self.ended_with.items() if not key]
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        self._file = os.open(path, flags, 0o600)
        self._done = 0

    def start(self, order: WorkOrder) -> None:
        """Record the trainings of a batch that starts in this process.

        Parameters
        ----------
        order : WorkOrder
            The order with the batch.
        """
        batch = order.batch
        keys = [key for path in batch.paths for key in path.keys]
        self._write({"pair": [batch.dataset, batch.solver], "keys": keys})

    def finished(self, columns: Columns) -> None:
        """Record that trainings have finished and the batch's next one is running.

        Parameters
        ----------
        columns : Columns
            Rows of the finished trainings.
        """
        self._done += number_of_rows(columns)
        os.pwrite(self._file, b"%0*d" % (_DIGITS, self._done), 0)

    def idle(self) -> None:
        """Record that no training is running in this process."""
        self._write({})

    def close(self, isolated: Mapping[Pair, str]) -> None:
        """Close the journal; keep its file only if the next run has to isolate trainings.

        Parameters
        ----------
        isolated : mapping of Pair to str
            Pairs whose trainings the next run isolates, as in `ended_with`. At most one has a key.
        """
        if isolated:
            self._known, self._ends_then = [pair for pair, key in isolated.items() if not key], 0
            suspected = [(pair, key) for pair, key in isolated.items() if key]
            self._write(next(({"pair": [*pair], "keys": [key]} for pair, key in suspected), {}))
        else:
            self._path.unlink(missing_ok=True)
        os.close(self._file)

    def _write(self, state: dict[str, Any]) -> None:
        """Replace the content of the file.

        Parameters
        ----------
        state : dict of str to object
            Values that are stored besides the known pairs and the number of ends.
        """
        text = json.dumps(state | {"known": self._known, "ends": self._ends_then}).encode()
        os.ftruncate(self._file, 0)
        self._done = 0
        os.pwrite(self._file, b"%0*d" % (_DIGITS, 0) + text, 0)

    def _read(self) -> tuple[list[tuple[Pair, str]], int]:
        """Read the file of an earlier run.

        Returns
        -------
        (list of (Pair, str), int)
            Pair and key of the training during which the process ended, for each pair, and the number of
            ends. Nothing if the file is not a journal.
        """
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            content = self._path.read_bytes() if self._path.is_file() else b""
            if not content:
                return [], 0
            done, state = int(content[:_DIGITS]), json.loads(content[_DIGITS:])
            ended = [((str(dataset), str(solver)), "") for dataset, solver in state["known"]]
            if done < len(state.get("keys", [])):
                dataset, solver = state["pair"]
                ended.append(((str(dataset), str(solver)), str(state["keys"][done])))
            return ended, int(state.get("ends", 0))
        return [], 0


class SerialExecutor:
    """Executor whose `wait` runs the next order in this process.

    Parameters
    ----------
    journal : Path, optional
        Path of the journal that names the running training. By default, there is none.
    """

    slots = 1

    def __init__(self, journal: Path | None = None) -> None:
        self._waiting: deque[WorkOrder] = deque()
        self._journal = None if journal is None else Journal(journal)
        self._reported: set[tuple[Pair, str]] = set()
        self._isolated: dict[Pair, str] = dict(self._journal.ended_with) if self._journal else {}
        self._isolates_all = self._journal is not None and self._journal.ends >= _MAX_ENDS
        self._in_child: Pair | None = None
        self._is_interrupted = False
        self._left_behind: list[psutil.Process] = []

    def submit(self, order: WorkOrder) -> None:
        """Keep an order for the next `wait`.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        """
        self._waiting.append(order)

    def wait(self, seconds: float) -> list[Outcome]:
        """Run the next order to its end.

        Parameters
        ----------
        seconds : float
            Not used: the order may take any time.

        Returns
        -------
        list of Outcome
            The outcome of the order, or none if no order waits.

        Raises
        ------
        ExecutionError
            If the batch cannot run, for example because a module cannot be imported.
        """
        if not self._waiting:
            return []
        order = self._waiting.popleft()
        self._is_interrupted = True
        pair = (order.batch.dataset, order.batch.solver)
        try:
            with recorded_interrupts():
                try:
                    outcome = self._run(order, pair)
                except DataNotHere:  # the prepared dataset was removed
                    restore(order.source, order.protocol)
                    outcome = self._run(order, pair)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # for example, a module cannot be imported
            self._journal = None  # its file continues to name the training, which the next run isolates
            if isinstance(error, ProcessUnusableError):
                raise ExecutionError(f"{error}. The next run trains it in a child process") from error
            raise ExecutionError(
                f"a batch of {order.batch.dataset} could not run: {describe_error(error)}"
            ) from error
        self._is_interrupted = False
        return [outcome]

    def _run(self, order: WorkOrder, pair: Pair) -> Outcome:
        """Run an order in this process or in a child process.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        pair : Pair
            Its dataset and arm.

        Returns
        -------
        Outcome
            Rows of the batch, or the reason why the child process ended.
        """
        if self._is_isolated(pair) or order.protocol.max_seconds is not None:
            return self._run_isolated(order, pair)
        return self._run_here(order)

    def _run_here(self, order: WorkOrder) -> Outcome:
        """Run an order in this process.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.

        Returns
        -------
        Outcome
            Rows of the batch.
        """
        if self._journal is not None:
            self._journal.start(order)
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
        """Return whether trainings of a pair run in a child process because others ended a process.

        Parameters
        ----------
        pair : Pair
            Names of the dataset and the arm.

        Returns
        -------
        bool
            True for all pairs after `_MAX_ENDS` runs.
        """
        return self._isolates_all or pair in self._isolated

    def _run_isolated(self, order: WorkOrder, pair: Pair) -> Outcome:
        """Run an order in a child process.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        pair : Pair
            Its dataset and arm.

        Returns
        -------
        Outcome
            Rows of the batch, or the reason why the child process ended.
        """
        if self._is_isolated(pair):
            which = "one of its trainings has" if pair in self._isolated else "earlier runs have"
            self._report_once(pair, f"{which} ended a process; they run in a child process")
            if pair != self._in_child:
                end_child()  # trainings of other pairs may have left a thread in it
            self._in_child = pair
        end, warnings = run_in_child(order)
        for text in warnings:
            self._report_once(pair, text)
        if isinstance(end, ProcessEnded):
            self._isolated[pair] = ""
            return Outcome(order, None, f"it {end.reason}", end.seconds, end.by_memory)
        if any(self._isolated.get(pair) in path.keys for path in order.batch.paths):
            del self._isolated[pair]  # the training that ended a process has finished this time
        return Outcome(order, end)

    def _report_once(self, pair: Pair, text: str) -> None:
        """Warn the user about a dataset × arm, unless the same text was reported before.

        Parameters
        ----------
        pair : Pair
            Names of the dataset and the arm.
        text : str
            Message of the warning, which is compared with earlier ones.
        """
        if (pair, text) not in self._reported:
            self._reported.add((pair, text))
            log.warning("%s × %s: %s", *pair, text)

    def describe(self) -> dict[str, Any]:
        """Return a description of this process and its host, for the provenance.

        Returns
        -------
        dict of str to object
            Values that can be stored as JSON.
        """
        return {"kind": "serial", "workers": 1, "hosts": [host_summary()]}

    def close(self) -> None:
        """Discard waiting orders; end the child process and the processes that trainings have left."""
        self._waiting.clear()
        end_child()
        end_all(self._left_behind)
        self._left_behind.clear()
        if self._journal is not None:
            # A suspected training that a whole run has not met, for example after an edit, is forgotten.
            keeps_all = self._is_interrupted
            self._journal.close({pair: key for pair, key in self._isolated.items() if keeps_all or not key})
            self._journal = None


class NoExecutor(SerialExecutor):
    """Executor of a run whose trials are all stored. It receives orders only if stored trials vanish."""

    def __init__(self) -> None:
        super().__init__()
        self._hosts: list[dict[str, Any]] = []

    def submit(self, order: WorkOrder) -> None:
        """Keep an order for the next `wait`, and record this host.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        """
        self._hosts = [host_summary()]
        super().submit(order)

    def describe(self) -> dict[str, Any]:
        """Return a description for the provenance. It has no host while nothing has been trained here.

        Returns
        -------
        dict of str to object
            Values that can be stored as JSON.
        """
        return {"kind": "none", "workers": 0, "hosts": self._hosts}
