"""Run batches one after the other in this process: for debugging, tests and fair timings.

Trainings under a time limit run in a child process, for only a process can be stopped whatever it does. So do
those of a dataset × arm with which an earlier run's process ended: what ends the child is not run again.
"""

import logging
from collections import deque
from pathlib import Path
from typing import Any

from orchestrator import isolation
from orchestrator.execution import ExecutionError, Outcome
from orchestrator.interrupts import noticed
from orchestrator.isolation import Died, run_isolated
from orchestrator.journal import Journal, Pair
from orchestrator.machine import host_facts
from orchestrator.training import describe_error
from orchestrator.worker import WorkOrder, run_batch

log = logging.getLogger(__name__)


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
        self._told: set[tuple[Pair, str]] = set()
        self._apart: dict[Pair, str] = dict(self._journal.suspects) if self._journal else {}

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
            with noticed():
                if pair in self._apart or order.protocol.max_seconds is not None:
                    return [self._run_apart(order, pair)]
                return [self._run_here(order)]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # of a module that cannot be imported, for example
            raise ExecutionError(
                f"a batch of {order.batch.dataset} could not run: {describe_error(error)}"
            ) from error

    def _run_here(self, order: WorkOrder) -> Outcome:
        if self._journal is None:
            return Outcome(order, run_batch(order))
        self._journal.begin(order)
        try:
            return Outcome(order, run_batch(order, monitor=self._journal))
        finally:
            self._journal.idle()

    def _run_apart(self, order: WorkOrder, pair: Pair) -> Outcome:
        if pair in self._apart:
            self._tell(pair, "one of its trainings has ended a process; they run in one of their own")
        end, warned = run_isolated(order)
        for text in warned:
            self._tell(pair, text)
        if isinstance(end, Died):
            self._apart[pair] = ""
            return Outcome(order, None, f"it {end.reason}", end.seconds)
        if any(self._apart.get(pair) in path.keys for path in order.batch.paths):
            del self._apart[pair]  # the suspect has come back
        return Outcome(order, end)

    def _tell(self, pair: Pair, text: str) -> None:
        """Tell the user something of a dataset × arm, once."""
        if (pair, text) not in self._told:
            self._told.add((pair, text))
            log.warning("%s × %s: %s", *pair, text)

    def facts(self) -> dict[str, Any]:
        """Describe this process and its host."""
        return {"kind": "serial", "workers": 1, "hosts": [host_facts()]}

    def close(self) -> None:
        """Forget what waits, and end the child process."""
        self._waiting.clear()
        isolation.close()
        if self._journal is not None:
            self._journal.close([pair for pair, key in self._apart.items() if not key])
            self._journal = None


class NoExecutor(SerialExecutor):
    """What a run has in place of workers when its store lacks nothing: it gets no order."""

    def facts(self) -> dict[str, Any]:
        """Describe this process and its host."""
        return {"kind": "none", "workers": 0, "hosts": [host_facts()]}
