"""Start a local worker again where Dask has given that up.

Its nanny starts a worker that has died, but only one that had come so far as to answer it: one that dies in
its first moments, by what it is told to train, stays dead.
"""

import contextlib
import threading
from typing import Any

from distributed import Status

LOOK_SECONDS = 1.0
PATIENCE = 5
"""How often in a row a worker's process has to be found missing, for its nanny may be starting one."""


class Replacing:
    """A thread that looks after the nannies of a local cluster until it is stopped."""

    def __init__(self, cluster: Any):
        self._cluster = cluster
        self._missing: dict[str, int] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, before the cluster does."""
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            for nanny in list(self._cluster.workers.values()):
                dead = nanny.status is Status.running and not nanny.is_alive()
                times = self._missing[nanny.id] = self._missing.get(nanny.id, 0) + 1 if dead else 0
                if times >= PATIENCE:
                    self._missing[nanny.id] = 0
                    self._cluster.loop.add_callback(_start, nanny)


async def _start(nanny: Any) -> None:
    nanny.process = None
    with contextlib.suppress(Exception):  # the next look finds it missing again
        await nanny.instantiate()
