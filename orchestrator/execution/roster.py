"""The workers that a run uses and what each is doing: plain bookkeeping, without Dask."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Terms:
    """On what terms a run takes workers.

    Attributes
    ----------
    packages : tuple of str
        Import names of the packages of the study's solvers, whose sources have to be the client's.
    timing : bool
        Whether seconds are to be compared: each worker then has a core of its own.
    most : int
        Workers that the cluster may grow to; 0 if it does not grow.
    no_workers_seconds : float
        How long to wait for workers while there is none.
    """

    packages: tuple[str, ...] = ()
    timing: bool = False
    most: int = 0
    no_workers_seconds: float = 600.0


@dataclass(eq=False)
class Seat:
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
    def cache(self) -> str:
        """Token of its host's cache folder."""
        return self.facts["cache"]


class Roster:
    """The workers that may be given orders, by address."""

    def __init__(self) -> None:
        self._seats: dict[str, Seat] = {}

    def __len__(self) -> int:
        return len(self._seats)

    def __iter__(self) -> Iterator[Seat]:
        return iter(list(self._seats.values()))

    def __contains__(self, address: str) -> bool:
        return address in self._seats

    @property
    def capacity(self) -> int:
        """How many orders all of them can work on at once."""
        return sum(seat.capacity for seat in self._seats.values())

    def admit(self, seat: Seat) -> None:
        """Let a worker have orders."""
        self._seats[seat.address] = seat

    def dismiss(self, address: str) -> Seat | None:
        """Give a worker no more orders; return what it was doing."""
        return self._seats.pop(address, None)

    def free_core(self, facts: dict[str, Any]) -> int | None:
        """Return the first core of a worker's machine that no worker has to itself yet, or None."""
        taken = {seat.core for seat in self if seat.facts["machine"] == facts["machine"]}
        return next((core for core in facts["cores"] if core not in taken), None)

    def choose(
        self, suits: Callable[[Seat], bool], failures: Callable[[Seat], int] = lambda seat: 0
    ) -> Seat | None:
        """Return a worker that suits and has a free thread, with the fewest failures and orders; or None."""
        free = [seat for seat in self if len(seat.orders) < seat.capacity and suits(seat)]
        return min(free, key=lambda seat: (failures(seat), len(seat.orders)), default=None)
