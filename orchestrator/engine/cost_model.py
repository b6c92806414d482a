"""Predict the cost of trainings from the study's finished trials."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.engine.typical_costs import Sizes, TypicalCost, c_and_gamma
from orchestrator.study.study import Candidate
from orchestrator.study.trials import REFIT, Pair, Path

_MAX_PATHS = 100_000
"""Largest number of lists of candidates whose costs are kept."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of a dataset, from which costs are predicted.

    Attributes
    ----------
    n, d, classes : int
        Numbers of samples, features and classes.
    outer_share, inner_share : float
        Mean share of the samples on which a refit and an inner training are trained.
    """

    n: int
    d: int
    classes: int
    outer_share: float = 0.8
    inner_share: float = 0.64

    def sizes(self, refit: bool) -> Sizes:
        """Return the mean sizes of the training sets of refits, or of inner trainings.

        Parameters
        ----------
        refit : bool
            Whether it is a refit, which trains on more samples.

        Returns
        -------
        Sizes
            Numbers of samples, features and classes.
        """
        share = self.outer_share if refit else self.inner_share
        return Sizes(share * self.n, self.d, self.classes)


UNIT = 1 << 40
"""Number of units in 1. Sums are integers of such units, so that additions and subtractions are exact."""


def units(value: float) -> int:
    """Return a value in units of 1/UNIT.

    Parameters
    ----------
    value : float
        Any number, usually seconds or a factor.

    Returns
    -------
    int
        The nearest integer.
    """
    return round(value * UNIT)


def base_seconds(n: float, classes: int) -> float:
    """Return the approximate time of a training of an unknown solver, from sizes only.

    Parameters
    ----------
    n : float
        Number of training samples.
    classes : int
        Number of classes.

    Returns
    -------
    float
        Seconds.
    """
    return 5e-4 + 3e-7 * n**1.3 * classes


class CostModel:
    """Predict the seconds of a training from typical costs and from the study's finished trials.

    The base of a training is its typical cost, which depends on sizes, C and gamma. For an unknown solver it
    is `base_seconds`. One factor per dataset × arm, a running mean of observed seconds ÷ base, corrects for
    everything else. Costs decide the order and the size of batches and never change results.

    Parameters
    ----------
    shapes : mapping of str to Shape
        Sizes of the datasets, by name.
    typical : mapping of str to TypicalCost, optional
        Typical costs of arms, by name. Other arms are unknown.
    """

    def __init__(self, shapes: Mapping[str, Shape], typical: Mapping[str, TypicalCost] | None = None):
        self._shapes = shapes
        self._typical = typical or {}
        self._factors: dict[Pair, float] = {}
        self._weights: dict[Pair, float] = {}
        self._sums: dict[str, int] = {}  # sum of the factors of each solver, in units of 1/UNIT
        self._counts: dict[str, int] = {}
        self._means: dict[tuple[str, str, bool], float] = {}
        self._of_paths: dict[tuple[str, str, bool, tuple[Candidate, ...]], tuple[int, ...]] = {}
        self._listeners: list[Callable[[Pair], None]] = []

    def listen(self, listener: Callable[[Pair], None]) -> None:
        """Call a function after each observation, with the dataset and the arm.

        Parameters
        ----------
        listener : callable
            Called with the dataset and the arm.
        """
        self._listeners.append(listener)

    def seconds(self, path: Path) -> float:
        """Return the expected seconds of a path.

        Parameters
        ----------
        path : Path
            Trials of one split that differ only in C.

        Returns
        -------
        float
            Seconds.
        """
        return self.base_seconds(path) * self.factor(path.dataset, path.solver)

    def base_seconds(self, path: Path) -> float:
        """Return the seconds of a path before any correction by observations.

        Parameters
        ----------
        path : Path
            Trials of one split that differ only in C.

        Returns
        -------
        float
            Seconds.
        """
        return sum(self.base_units(path)) / UNIT

    def base_units(self, path: Path) -> tuple[int, ...]:
        """Return the cost of each training of a path before any correction by observations.

        Parameters
        ----------
        path : Path
            Trials of one split that differ only in C.

        Returns
        -------
        tuple of int
            Costs in units of 1/UNIT seconds, in the order of the path.
        """
        key = (path.dataset, path.solver, path.inner == REFIT, path.candidates)
        known = self._of_paths.get(key)
        if known is None:
            if len(self._of_paths) >= _MAX_PATHS:
                self._of_paths.clear()
            known = self._of_paths[key] = self._units(*key)
        return known

    def _units(
        self, dataset: str, solver: str, refit: bool, candidates: tuple[Candidate, ...]
    ) -> tuple[int, ...]:
        """Compute the cost of trainings before any correction by observations.

        Parameters
        ----------
        dataset : str
            Name of the dataset.
        solver : str
            Name of the arm.
        refit : bool
            Whether they are refits, which train on more samples.
        candidates : tuple of Candidate
            Hyper-parameters of the trainings.

        Returns
        -------
        tuple of int
            Costs in units of 1/UNIT seconds.
        """
        typical = self._typical.get(solver)
        if typical is None:
            return (units(self.base(dataset, solver, refit)),) * len(candidates)
        C, gamma = c_and_gamma(candidates, typical.fixed)
        seconds = typical.seconds(dataset, self._shapes[dataset].sizes(refit), C, gamma)
        return tuple(map(units, seconds.tolist()))

    def training_seconds(self, dataset: str, solver: str, refit: bool) -> float:
        """Return the expected seconds of one training and its evaluation, as a mean over the arm's space.

        Parameters
        ----------
        dataset : str
            Name of the dataset.
        solver : str
            Name of the arm.
        refit : bool
            Whether it is a refit, which trains on more samples.

        Returns
        -------
        float
            Seconds.
        """
        return self.base(dataset, solver, refit) * self.factor(dataset, solver)

    def base(self, dataset: str, solver: str, refit: bool) -> float:
        """Return the mean seconds of a training over the arm's space, before any correction by observations.

        Parameters
        ----------
        dataset : str
            Name of the dataset.
        solver : str
            Name of the arm.
        refit : bool
            Whether it is a refit, which trains on more samples.

        Returns
        -------
        float
            Seconds.
        """
        known = self._means.get((dataset, solver, refit))
        if known is None:
            sizes = self._shapes[dataset].sizes(refit)
            typical = self._typical.get(solver)
            if typical is None:
                known = base_seconds(sizes.n, sizes.classes)
            else:
                known = typical.mean_seconds(dataset, sizes)
            self._means[dataset, solver, refit] = known
        return known

    def factor(self, dataset: str, solver: str) -> float:
        """Return observed ÷ predicted seconds of a dataset × arm.

        Parameters
        ----------
        dataset : str
            Name of the dataset.
        solver : str
            Name of the arm.

        Returns
        -------
        float
            Without observations, the mean factor of the arm over datasets.
        """
        known = self._factors.get((dataset, solver))
        return self.typical(solver) if known is None else known

    def has_factor(self, dataset: str, solver: str) -> bool:
        """Return whether a training of a dataset × arm has finished.

        Parameters
        ----------
        dataset : str
            Name of the dataset.
        solver : str
            Name of the arm.

        Returns
        -------
        bool
            True if its factor is observed.
        """
        return (dataset, solver) in self._factors

    def is_known(self, solver: str) -> bool:
        """Return whether the cost of an arm is more than a guess from sizes.

        Parameters
        ----------
        solver : str
            Name of the arm.

        Returns
        -------
        bool
            True if one of its trainings has finished, on any dataset, or if its typical cost is known.
        """
        return solver in self._counts or solver in self._typical

    def typical(self, solver: str) -> float:
        """Return the mean factor of an arm over datasets.

        Parameters
        ----------
        solver : str
            Name of the arm.

        Returns
        -------
        float
            Without observations, 1.
        """
        count = self._counts.get(solver, 0)
        return self._sums[solver] / (UNIT * count) if count else 1.0

    def update(self, dataset: str, solver: str, base: float, observed: float) -> None:
        """Update the factor of a dataset × arm by the observed time of a batch.

        Parameters
        ----------
        dataset : str
            Name of the dataset.
        solver : str
            Name of the arm.
        base : float
            Seconds of the batch before any correction by observations.
        observed : float
            Observed seconds without compilation. Batches without positive time are ignored.
        """
        if base <= 0 or observed <= 0:
            return
        pair = (dataset, solver)
        before = self._factors.get(pair)
        # Recent batches have more weight, so that the model follows the search into more expensive regions.
        weight = min(self._weights.get(pair, 0.0), 20.0)
        factor = (weight * (before or 0.0) + observed / base) / (weight + 1.0)
        self._factors[pair] = factor
        self._weights[pair] = weight + 1.0
        self._counts[solver] = self._counts.get(solver, 0) + (before is None)
        self._sums[solver] = self._sums.get(solver, 0) + units(factor) - units(before or 0.0)
        for listener in self._listeners:
            listener(pair)
