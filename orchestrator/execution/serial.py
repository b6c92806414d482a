"""Run batches one after the other in this process: for debugging, tests and fair timings."""

from collections import deque
from typing import Any

from orchestrator.execution import ExecutionError, Outcome
from orchestrator.machine import host_facts
from orchestrator.training import describe_error
from orchestrator.worker import WorkOrder, run_batch


class SerialExecutor:
    """The simplest executor: `wait` runs the next order."""

    slots = 1

    def __init__(self) -> None:
        self._waiting: deque[WorkOrder] = deque()

    def submit(self, order: WorkOrder) -> None:
        """Keep an order for the next `wait`."""
        self._waiting.append(order)

    def wait(self, seconds: float) -> list[Outcome]:
        """Run the next order to its end, however long it takes."""
        if not self._waiting:
            return []
        order = self._waiting.popleft()
        try:
            return [Outcome(order, run_batch(order))]
        except Exception as error:
            raise ExecutionError(
                f"a batch of {order.batch.dataset} could not run: {describe_error(error)}"
            ) from error

    def facts(self) -> dict[str, Any]:
        """Describe this process and its host."""
        return {"kind": "serial", "workers": 1, "hosts": [host_facts()]}

    def close(self) -> None:
        """Forget what waits."""
        self._waiting.clear()


class NoExecutor(SerialExecutor):
    """What a run has in place of workers when its store lacks nothing: it gets no order."""

    def facts(self) -> dict[str, Any]:
        """Describe this process and its host."""
        return {"kind": "none", "workers": 0, "hosts": [host_facts()]}
