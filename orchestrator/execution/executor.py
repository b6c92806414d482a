"""Interface of the two back ends that run batches: this process, or Dask workers."""

from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.study.trials import BatchResult, WorkOrder


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an order.

    Attributes
    ----------
    order : WorkOrder
        Batch to run, with its dataset, arm and protocol.
    result : BatchResult or None
        The result, or None if the worker was lost.
    lost : str
        Why the worker was lost; empty if there is a result.
    seconds : float
        Time for which the lost worker had run the order, in seconds.
    by_memory : bool
        Whether the worker was lost because the training took too much memory.
    """

    order: WorkOrder
    result: BatchResult | None
    lost: str = ""
    seconds: float = 0.0
    by_memory: bool = False


class Executor(Protocol):
    """Interface of a back end for the runner."""

    @property
    def slots(self) -> int:
        """The number of batches that can run at once. It changes when workers join or leave."""

    def submit(self, order: WorkOrder) -> None:
        """Start an order, now or as soon as a slot is free.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        """

    def wait(self, seconds: float) -> list[Outcome]:
        """Return the outcomes of orders that have ended since the last call.

        Parameters
        ----------
        seconds : float
            Approximate longest wait for the first outcome, in seconds.

        Returns
        -------
        list of Outcome
            The outcomes, in the order of their ends.
        """

    def describe(self) -> dict[str, Any]:
        """Return a description of the workers and their hosts, for the provenance.

        Returns
        -------
        dict of str to object
            Values that can be stored as JSON.
        """

    def close(self) -> None:
        """Cancel running orders and release the workers."""
