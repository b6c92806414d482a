"""The workers that a run uses, what each is doing, and what has failed on their hosts: without Dask."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from orchestrator.study.batch import WorkOrder

CHECK_SECONDS = 1.0
"""How often to check which workers are there."""

MAX_FAILURES = 5
"""How often one order may fail on one host."""

BACKOFF_SECONDS = (1.0, 60.0)
"""How long a host gets no orders of a dataset after a failure: at first, and at most; each doubles it."""


@dataclass(frozen=True)
class Requirements:
    """What a run requires of its workers.

    Attributes
    ----------
    packages : tuple of str
        Import names of the packages of the study's solvers, whose sources have to be the client's.
    timing : bool
        Whether seconds are to be compared: each worker then has a core of its own.
    """

    packages: tuple[str, ...] = ()
    timing: bool = False


@dataclass(eq=False)
class WorkerHandle:
    """A worker that may be given orders.

    Attributes
    ----------
    address, name : str
    capacity : int
        Its threads: so many orders at once.
    facts : dict
        See `installation.describe`.
    core : int or None
        The core it has to itself, if timings are to be compared.
    orders : set of int
        Numbers of the batches it works on.
    """

    address: str
    name: str
    capacity: int
    facts: dict[str, Any]
    core: int | None = None
    orders: set[int] = field(default_factory=set)

    @property
    def host(self) -> str:
        """Name of its host."""
        return self.facts["host"]["host"]

    @property
    def cache(self) -> str:
        """Token of its host's cache folder."""
        return self.facts["cache"]


class WorkerPool(dict[str, WorkerHandle]):
    """The workers that may be given orders, by address."""

    @property
    def capacity(self) -> int:
        """How many orders all of them can work on at once."""
        return sum(worker.capacity for worker in self.values())

    def free_core(self, facts: dict[str, Any]) -> int | None:
        """Return the first core of a worker's machine that no worker has to itself yet, or None."""
        taken = {worker.core for worker in self.values() if worker.facts["machine"] == facts["machine"]}
        return next((core for core in facts["cores"] if core not in taken), None)

    def choose(
        self,
        can_run: Callable[[WorkerHandle], bool],
        failures: Callable[[WorkerHandle], int] = lambda worker: 0,
    ) -> WorkerHandle | None:
        """Return a worker with a free thread that can run an order, or None.

        That with the fewest failures, and of these that with the fewest orders.
        """
        free = [
            worker for worker in self.values() if len(worker.orders) < worker.capacity and can_run(worker)
        ]
        return min(free, key=lambda worker: (failures(worker), len(worker.orders)), default=None)


class HostFailures:
    """The failures of a run's orders on its hosts, outside of any training, by which the next one is chosen.

    A full disk, a missing module or too little memory is the host's; another may have none of it, and the
    same one may recover. So an order is tried elsewhere, its dataset is not tried on the host again before
    some time has passed, and an order that failed too often on a host is not given there again.
    """

    def __init__(self) -> None:
        self._tries: defaultdict[int, Counter[str]] = defaultdict(Counter)  # by order, then host or worker
        # By the cache of a host and the fingerprint of a dataset.
        self._in_a_row: Counter[tuple[str, str]] = Counter()
        self._backs_off_until: dict[tuple[str, str], float] = {}

    def failed(self, order: WorkOrder, worker: WorkerHandle) -> None:
        """Count a failure; those of orders that ran at the same time make a host back off once."""
        self._tries[order.batch.number].update((worker.cache, worker.address))
        now, place = time.monotonic(), (worker.cache, order.source.fingerprint)
        if now >= self._backs_off_until.get(place, 0.0):
            first, most = BACKOFF_SECONDS
            self._backs_off_until[place] = now + min(most, first * 2 ** self._in_a_row[place])
            self._in_a_row[place] += 1

    def succeeded(self, order: WorkOrder, worker: WorkerHandle) -> None:
        """Forget earlier failures of an order, and those in a row of its dataset on a worker's host."""
        self._tries.pop(order.batch.number, None)
        self._in_a_row.pop((worker.cache, order.source.fingerprint), None)

    def may_try(self, order: WorkOrder, worker: WorkerHandle) -> bool:
        """Whether an order may be tried on a worker now."""
        if not self._backs_off_until:
            return True
        until = self._backs_off_until.get((worker.cache, order.source.fingerprint), 0.0)
        return time.monotonic() >= until and not self.exhausted(order, worker)

    def on_worker(self, order: WorkOrder, worker: WorkerHandle) -> int:
        """Return how often an order has failed on this very worker."""
        tries = self._tries.get(order.batch.number)
        return tries[worker.address] if tries else 0

    def exhausted(self, order: WorkOrder, worker: WorkerHandle) -> bool:
        """Whether an order has failed too often on a worker's host to be tried there again."""
        tries = self._tries.get(order.batch.number)
        return tries is not None and tries[worker.cache] >= MAX_FAILURES

    def exhausted_everywhere(self, order: WorkOrder, pool: WorkerPool) -> bool:
        """Whether an order has failed too often on every host there is."""
        return len(pool) > 0 and all(self.exhausted(order, worker) for worker in pool.values())
