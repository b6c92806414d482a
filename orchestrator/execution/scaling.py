"""Keep a cluster as large as its work, where it does not do so itself."""

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""How often to compare the number of workers with the work there is."""

PATIENCE = 24
"""How many times in a row workers have to be superfluous before they go: two minutes."""


class Scaling:
    """A thread that follows the demand for workers, upwards at once and downwards with patience.

    Parameters
    ----------
    scale : callable
        Told how many workers there are to be.
    demand : callable
        Returns how many would have something to do.
    least, most : int
        The numbers of workers that it stays between; it starts from `least`.
    """

    def __init__(self, scale: Callable[[int], object], demand: Callable[[], int], least: int, most: int):
        self._scale = scale
        self._demand = demand
        self._least, self._most = least, most
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Leave the cluster as it is."""
        self._stopped.set()
        self._thread.join()

    def _follow(self) -> None:
        size, calm = self._least, 0
        while not self._stopped.wait(LOOK_SECONDS):
            wanted = min(max(self._demand(), self._least), self._most)
            calm = calm + 1 if wanted < size else 0
            if wanted <= size and calm < PATIENCE:
                continue
            try:
                self._scale(wanted)
            except Exception as error:  # asked again at the next look
                log.warning("the cluster cannot be scaled to %d workers: %s", wanted, error)
            else:
                size, calm = wanted, 0
