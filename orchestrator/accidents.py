"""Whether a training kills its workers, or has lost them by accident.

Nodes are preempted, hosts cut off, processes killed by hand: where that happens often, a healthy training
can lose several workers in a row. So it is blamed only once such bad luck would be next to impossible, or
once it has cost as many workers, or as much of their time, as the user grants it.
"""

from dataclasses import dataclass

UNLIKELY = 1e-5
"""A training is blamed for its workers' deaths when accidents would explain them with a smaller chance."""

LEAST = 2
"""It is never blamed after fewer deaths, however often workers die."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a training may cost before it is given up, whatever chance says.

    Attributes
    ----------
    deaths : int
        Workers that died while it was all they had to do.
    seconds : float
        How long those had worked on it, together.
    """

    deaths: int = 20
    seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class Losses:
    """The workers that a piece of work has lost.

    Attributes
    ----------
    shared : float
        Its share of a worker that died while it held other pieces, too.
    alone : int
        Workers that died while it was all they had to do.
    seconds : float
        How long those had worked on it, together.
    """

    shared: float = 0.0
    alone: int = 0
    seconds: float = 0.0

    def another(self, seconds: float) -> "Losses":
        """Return these losses and one more worker, alone with the piece for `seconds`."""
        return Losses(self.shared, self.alone + 1, self.seconds + seconds)


class Accidents:
    """How often workers die whatever they do, learnt from all work that has finished in the end.

    Deaths are taken to come at a constant rate; before anything is known, at one in a worker's minute.
    """

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or Bounds()
        self._deaths = 1.0
        self._seconds = 60.0

    def observe(self, seconds: float, losses: Losses) -> None:
        """Tell that a piece of work has finished in so many seconds, after such losses: accidents all."""
        self._seconds += seconds + losses.seconds
        self._deaths += losses.shared + losses.alone

    def explain(self, losses: Losses) -> bool:
        """Return whether a piece of work can have lost so many workers in so short a time by accident."""
        if losses.alone < LEAST:
            return True
        if losses.alone >= self._bounds.deaths or losses.seconds >= self._bounds.seconds:
            return False
        from scipy.special import gammainc  # reading a study's state needs none of scipy

        # The chance of at least `alone` events of a Poisson process.
        chance = gammainc(losses.alone, self._deaths / self._seconds * losses.seconds)
        return bool(chance >= UNLIKELY)
