"""Predict the cost of trainings from the study's finished trials."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.study.trials import REFIT, Pair, Path


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
    """Return the approximate time of a training, from sizes only.

    The formula fits the published studies best, which have 100 to a million samples of two to ten classes.
    The number of features does not improve the fit.

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
    """Predict the seconds of a training from the study's finished trials.

    `base_seconds` follow from sizes. One factor per dataset × arm, a running mean of observed ÷ predicted,
    corrects for everything else. Costs decide the order and the size of batches and never change results.

    Parameters
    ----------
    shapes : mapping of str to Shape
        Sizes of the datasets, by name.
    expected : mapping of str to float, optional
        Factors of arms before any observation, by name. Other arms start with 1.
    """

    def __init__(self, shapes: Mapping[str, Shape], expected: Mapping[str, float] | None = None):
        self._shapes = shapes
        self._expected = expected or {}
        self._factors: dict[Pair, float] = {}
        self._weights: dict[Pair, float] = {}
        self._sums: dict[str, int] = {}  # sum of the factors of each solver, in units of 1/UNIT
        self._counts: dict[str, int] = {}
        self._bases: dict[tuple[str, bool], float] = {}
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
        """Return the seconds of a path from sizes only.

        Parameters
        ----------
        path : Path
            Trials of one split that differ only in C.

        Returns
        -------
        float
            Seconds before any correction by observations.
        """
        return len(path) * self.base(path.dataset, path.inner == REFIT)

    def training_seconds(self, dataset: str, solver: str, refit: bool) -> float:
        """Return the expected seconds of one training and its evaluation.

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
        return self.base(dataset, refit) * self.factor(dataset, solver)

    def base(self, dataset: str, refit: bool) -> float:
        """Return the seconds of one training from sizes only.

        Parameters
        ----------
        dataset : str
            Name of the dataset.
        refit : bool
            Whether it is a refit, which trains on more samples.

        Returns
        -------
        float
            Seconds before any correction by observations.
        """
        known = self._bases.get((dataset, refit))
        if known is None:
            shape = self._shapes[dataset]
            share = shape.outer_share if refit else shape.inner_share
            known = base_seconds(share * shape.n, shape.classes)
            self._bases[dataset, refit] = known
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
            Without observations, the typical factor of the arm.
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
            True if one of its trainings has finished, on any dataset, or if its factor was expected.
        """
        return solver in self._counts or solver in self._expected

    def typical(self, solver: str) -> float:
        """Return the mean factor of an arm over datasets.

        Parameters
        ----------
        solver : str
            Name of the arm.

        Returns
        -------
        float
            Without observations, the expected factor.
        """
        count = self._counts.get(solver, 0)
        return self._sums[solver] / (UNIT * count) if count else self._expected.get(solver, 1.0)

    def update(self, dataset: str, solver: str, base: float, observed: float) -> None:
        """Update the factor of a dataset × arm by the observed time of a batch.

        Parameters
        ----------
        dataset : str
            Name of the dataset.
        solver : str
            Name of the arm.
        base : float
            Seconds of the batch from sizes only.
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
