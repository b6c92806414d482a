"""Where batches run: in this process, or on Dask workers. Two back ends, one interface."""

from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.study.batch import BatchResult, WorkOrder


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an order: its result, or the reason why its worker was lost with it, and after how long.

    `by_memory` says whether it was lost because the training took too much memory.
    """

    order: WorkOrder
    result: BatchResult | None
    lost: str = ""
    seconds: float = 0.0
    by_memory: bool = False


class Executor(Protocol):
    """What the runner needs of a back end."""

    @property
    def slots(self) -> int:
        """How many batches can run at once; workers may come and go."""

    def submit(self, order: WorkOrder) -> None:
        """Start an order, now or as soon as a slot is free."""

    def wait(self, seconds: float) -> list[Outcome]:
        """Return the orders that have ended since the last call, after at most about `seconds`."""

    def facts(self) -> dict[str, Any]:
        """Describe the workers and their hosts, for the provenance."""

    def close(self) -> None:
        """Give up what still runs and free the workers."""
