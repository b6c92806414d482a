"""Book-keeping of workers: state, current batches and failures by host, independent of Dask."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from orchestrator.study.trials import WorkOrder

CHECK_SECONDS = 1.0
"""Time between two checks of the connected workers, in seconds."""

MAX_FAILURES = 5
"""Largest number of failures of one order on one host."""

BACKOFF_SECONDS = (1.0, 60.0)
"""Time for which a host receives no orders of a dataset after a failure, in seconds: first and largest. Each
failure doubles it."""


@dataclass(frozen=True)
class Requirements:
    """Requirements of a run on its workers.

    Attributes
    ----------
    packages : tuple of str
        Import names of the packages of the study's solvers, whose sources must equal the client's.
    timing : bool
        Whether the study compares times, so that each worker needs one core for itself.
    compiling : frozenset of str, optional
        Names of the arms whose first training may compile code. By default those of all arms.
    """

    packages: tuple[str, ...] = ()
    timing: bool = False
    compiling: frozenset[str] | None = None


@dataclass(eq=False)
class WorkerHandle:
    """A worker that can receive orders.

    Attributes
    ----------
    address, name : str
        Address and name of the worker.
    capacity : int
        Number of the worker's threads. Each thread runs one order.
    description : dict of str to object
        Description of its process by `installation.describe`.
    core : int or None
        Core that no other worker uses, if the study compares times.
    orders : set of int
        Numbers of the batches that it is running.
    """

    address: str
    name: str
    capacity: int
    description: dict[str, Any]
    core: int | None = None
    orders: set[int] = field(default_factory=set)

    @property
    def host(self) -> str:
        """Name of its host."""
        return self.description["host"]["host"]

    @property
    def cache(self) -> str:
        """Token of its host's cache folder."""
        return self.description["cache"]


class WorkerPool(dict[str, WorkerHandle]):
    """Workers that can receive orders, by address."""

    @property
    def capacity(self) -> int:
        """The number of orders that all workers can run at once."""
        return sum(worker.capacity for worker in self.values())

    def free_core(self, description: dict[str, Any]) -> int | None:
        """Return the first core of a machine that no worker uses yet.

        Parameters
        ----------
        description : dict of str to object
            Description of a new worker, with a token of its machine and its cores.

        Returns
        -------
        int or None
            The core, or None if all are used.
        """
        taken = {
            worker.core for worker in self.values() if worker.description["machine"] == description["machine"]
        }
        return next((core for core in description["cores"] if core not in taken), None)

    def choose(
        self,
        can_run: Callable[[WorkerHandle], bool],
        failures: Callable[[WorkerHandle], int] = lambda worker: 0,
    ) -> WorkerHandle | None:
        """Return a worker with a free thread that can run an order.

        Parameters
        ----------
        can_run : callable
            Function that returns whether a worker can run the order.
        failures : callable, default lambda worker: 0
            Function that returns the number of failures of the order on a worker. By default, 0.

        Returns
        -------
        WorkerHandle or None
            The worker with the fewest failures and then the fewest orders, or None.
        """
        free = [
            worker for worker in self.values() if len(worker.orders) < worker.capacity and can_run(worker)
        ]
        return min(free, key=lambda worker: (failures(worker), len(worker.orders)), default=None)


class HostFailures:
    """Failures of orders outside of any training, by order and host, from which the next host is chosen.

    A full disk, a missing module or too little memory concerns one host. Other hosts may not have the
    problem, and the host may recover. So an order is tried on other hosts, and its dataset is not tried on
    the host again before some time has passed. An order that has reached the failure limit on a host is not
    sent there again.
    """

    def __init__(self) -> None:
        self._tries: defaultdict[int, Counter[str]] = defaultdict(
            Counter
        )  # by order, and then by host or worker
        # Keys are the token of a host's cache and the fingerprint of a dataset.
        self._in_a_row: Counter[tuple[str, str]] = Counter()
        self._backs_off_until: dict[tuple[str, str], float] = {}

    def failed(self, order: WorkOrder, worker: WorkerHandle) -> None:
        """Count a failure of an order. A host backs off once for orders that ran at the same time.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        worker : WorkerHandle
            The worker on which it failed.
        """
        self._tries[order.batch.number].update((worker.cache, worker.address))
        now, key = time.monotonic(), (worker.cache, order.source.fingerprint)
        if now >= self._backs_off_until.get(key, 0.0):
            initial, maximum = BACKOFF_SECONDS
            self._backs_off_until[key] = now + min(maximum, initial * 2 ** self._in_a_row[key])
            self._in_a_row[key] += 1

    def succeeded(self, order: WorkOrder, worker: WorkerHandle) -> None:
        """Reset the failures of an order, and the back-off of its dataset on a worker's host.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        worker : WorkerHandle
            The worker that ran it.
        """
        self._tries.pop(order.batch.number, None)
        self._in_a_row.pop((worker.cache, order.source.fingerprint), None)

    def may_try(self, order: WorkOrder, worker: WorkerHandle) -> bool:
        """Return whether an order may be tried on a worker now.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        worker : WorkerHandle
            Connected worker, with its host and current batches.

        Returns
        -------
        bool
            False during a back-off or after the failure limit.
        """
        if not self._backs_off_until:
            return True
        until = self._backs_off_until.get((worker.cache, order.source.fingerprint), 0.0)
        return time.monotonic() >= until and not self.exhausted(order, worker)

    def on_worker(self, order: WorkOrder, worker: WorkerHandle) -> int:
        """Return the number of failures of an order on a worker.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        worker : WorkerHandle
            Connected worker, with its host and current batches.

        Returns
        -------
        int
            Number of failures since the last success.
        """
        tries = self._tries.get(order.batch.number)
        return tries[worker.address] if tries else 0

    def exhausted(self, order: WorkOrder, worker: WorkerHandle) -> bool:
        """Return whether an order has reached the failure limit on a worker's host.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        worker : WorkerHandle
            Connected worker, with its host and current batches.

        Returns
        -------
        bool
            True if it must not be tried there again.
        """
        tries = self._tries.get(order.batch.number)
        return tries is not None and tries[worker.cache] >= MAX_FAILURES

    def exhausted_everywhere(self, order: WorkOrder, pool: WorkerPool) -> bool:
        """Return whether an order has reached the failure limit on every connected host.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        pool : WorkerPool
            The connected workers.

        Returns
        -------
        bool
            False if no worker is connected.
        """
        return len(pool) > 0 and all(self.exhausted(order, worker) for worker in pool.values())
