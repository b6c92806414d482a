"""Which hosts could not run orders, outside of any training, and which of them to try next.

A full disk, a missing module or too little memory is the host's; another may have none of it, and the same
one may recover. So an order is tried elsewhere, a host rests before it is tried again with that dataset, and
an order that failed too often on a host is not given there again.
"""

import time
from collections import Counter, defaultdict

from orchestrator.execution.roster import Roster, Seat
from orchestrator.worker import WorkOrder

TRIES = 5
"""How often one order may fail on one host."""

REST_SECONDS = (1.0, 60.0)
"""How long a host rests from a dataset after a failure: at first, and at most; each failure doubles it."""

_Place = tuple[str, str]
"""A host, by its cache, and a dataset, by its fingerprint."""


class Trouble:
    """The failures of a run's orders on its hosts."""

    def __init__(self) -> None:
        self._tries: defaultdict[int, Counter[str]] = defaultdict(Counter)  # by order, then host or worker
        self._in_a_row: Counter[_Place] = Counter()
        self._rests_until: dict[_Place, float] = {}

    def failed(self, order: WorkOrder, seat: Seat) -> None:
        """Count a failure; those of orders that ran side by side make a host rest once."""
        self._tries[order.batch.number].update((seat.cache, seat.address))
        now, place = time.monotonic(), _place(order, seat)
        if now >= self._rests_until.get(place, 0.0):
            first, most = REST_SECONDS
            self._rests_until[place] = now + min(most, first * 2 ** self._in_a_row[place])
            self._in_a_row[place] += 1

    def worked(self, order: WorkOrder, seat: Seat) -> None:
        """Forget what a success has made good."""
        self._tries.pop(order.batch.number, None)
        self._in_a_row.pop(_place(order, seat), None)

    def allows(self, order: WorkOrder, seat: Seat) -> bool:
        """Whether an order may be tried on a worker now."""
        if not self._rests_until:
            return True
        return not self.exhausted(order, seat) and (
            time.monotonic() >= self._rests_until.get(_place(order, seat), 0.0)
        )

    def on_worker(self, order: WorkOrder, seat: Seat) -> int:
        """Return how often an order has failed on this very worker."""
        tries = self._tries.get(order.batch.number)
        return tries[seat.address] if tries else 0

    def everywhere(self, order: WorkOrder, roster: Roster) -> bool:
        """Whether an order has failed too often on every host there is."""
        return len(roster) > 0 and all(self.exhausted(order, seat) for seat in roster)

    def exhausted(self, order: WorkOrder, seat: Seat) -> bool:
        """Whether an order has failed too often on a worker's host to be tried there again."""
        tries = self._tries.get(order.batch.number)
        return tries is not None and tries[seat.cache] >= TRIES


def _place(order: WorkOrder, seat: Seat) -> _Place:
    return seat.cache, order.source.fingerprint
