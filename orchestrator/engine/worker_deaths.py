"""Whether a training ends its workers, or their deaths have other causes.

Nodes are preempted, hosts cut off, processes killed by hand: where that happens often, a sound training
can lose several workers in a row. So it is given up only once this would be next to impossible by chance,
or once it has cost as many workers, or as much of their time, as the user allows.
"""

from orchestrator.study.batch import Losses
from orchestrator.study.settings import LEAST_DEATHS, DeathLimits

UNLIKELY = 1e-5
"""A training is given up when so many deaths of its workers have a smaller probability by chance."""


class WorkerDeaths:
    """The rate at which workers die whatever they do, estimated from all work that has finished in the end.

    Deaths are taken for a Poisson process; its rate before any observation is one in a worker's minute.
    """

    def __init__(self, limits: DeathLimits | None = None) -> None:
        self._limits = limits or DeathLimits()
        self._deaths = 1.0
        self._seconds = 60.0

    def update(self, seconds: float, losses: Losses) -> None:
        """Learn from a piece of work that has finished in the end: its losses had other causes."""
        self._seconds += seconds + losses.seconds
        self._deaths += losses.shared + losses.alone

    def may_be_chance(self, losses: Losses) -> bool:
        """Return whether a piece of work may have lost so many workers in so short a time by chance."""
        if losses.alone < LEAST_DEATHS:
            return True
        if losses.alone >= self._limits.deaths or losses.seconds >= self._limits.seconds:
            return False
        from scipy.special import gammainc  # reading a study's state needs none of scipy

        # The probability of at least `alone` events of the process.
        chance = gammainc(losses.alone, self._deaths / self._seconds * losses.seconds)
        return bool(chance >= UNLIKELY)
