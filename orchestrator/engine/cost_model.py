"""What a training will cost, estimated from the study's own finished trials."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.study.trials import REFIT, Pair, Path


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a dataset, for predicting costs.

    Attributes
    ----------
    n, d, classes : int
        Numbers of samples, features and classes.
    outer_share, inner_share : float
        Which part of the samples a refit and an inner training have, on average.
    """

    n: int
    d: int
    classes: int
    outer_share: float = 0.8
    inner_share: float = 0.64


UNIT = 1 << 40
"""Sums are kept in whole numbers of 1/UNIT, which stay exact whatever is added and taken away."""


def units(value: float) -> int:
    """Return a value in whole numbers of 1/UNIT."""
    return round(value * UNIT)


def base_seconds(n: float, classes: int) -> float:
    """Return roughly what a training on n samples takes, by sizes alone.

    The published studies are best told by this: from 100 to a million samples, of two to ten classes. The
    number of features says nothing beside.
    """
    return 5e-4 + 3e-7 * n**1.3 * classes


class CostModel:
    """Predict the seconds of a training from the study's own finished trials.

    `base_seconds` follow from sizes; one factor per dataset × arm, a running mean of observed ÷ predicted,
    corrects for everything else. Costs order and size the work; they never touch its results.

    Parameters
    ----------
    shapes : mapping of str to Shape
        Sizes of the datasets by name.
    expected : mapping of str to float, optional
        Factors of arms, by name, before anything of them is observed; else 1.
    """

    def __init__(self, shapes: Mapping[str, Shape], expected: Mapping[str, float] | None = None):
        self._shapes = shapes
        self._expected = expected or {}
        self._factors: dict[Pair, float] = {}
        self._weights: dict[Pair, float] = {}
        self._sums: dict[str, int] = {}  # of the factors of each solver, in units
        self._counts: dict[str, int] = {}
        self._bases: dict[tuple[str, bool], float] = {}
        self._listeners: list[Callable[[Pair], None]] = []

    def listen(self, listener: Callable[[Pair], None]) -> None:
        """Call a function after each observation, with the dataset and the arm that it was of."""
        self._listeners.append(listener)

    def seconds(self, path: Path) -> float:
        """Return the expected seconds of a path."""
        return self.base_seconds(path) * self.factor(path.dataset, path.solver)

    def base_seconds(self, path: Path) -> float:
        """Return the seconds of a path by sizes alone, before any observation."""
        return len(path) * self.base(path.dataset, path.inner == REFIT)

    def training_seconds(self, dataset: str, solver: str, refit: bool) -> float:
        """Return the expected seconds of one training and its evaluation."""
        return self.base(dataset, refit) * self.factor(dataset, solver)

    def base(self, dataset: str, refit: bool) -> float:
        """Return the seconds of one training by sizes alone."""
        known = self._bases.get((dataset, refit))
        if known is None:
            shape = self._shapes[dataset]
            share = shape.outer_share if refit else shape.inner_share
            known = base_seconds(share * shape.n, shape.classes)
            self._bases[dataset, refit] = known
        return known

    def factor(self, dataset: str, solver: str) -> float:
        """Return observed ÷ predicted seconds of a dataset × arm, or of the solver elsewhere if unknown."""
        known = self._factors.get((dataset, solver))
        return self.typical(solver) if known is None else known

    def has_factor(self, dataset: str, solver: str) -> bool:
        """Whether a training of a dataset × arm has finished."""
        return (dataset, solver) in self._factors

    def typical(self, solver: str) -> float:
        """Return the mean factor of the solver on other datasets, or what is expected of it."""
        count = self._counts.get(solver, 0)
        return self._sums[solver] / (UNIT * count) if count else self._expected.get(solver, 1.0)

    def update(self, dataset: str, solver: str, base: float, observed: float) -> None:
        """Learn the observed seconds of a batch that costs `base` seconds by sizes alone."""
        if base <= 0 or observed <= 0:
            return
        pair = (dataset, solver)
        before = self._factors.get(pair)
        # Recent batches count for more, so that the model follows the search into more expensive regions.
        kept = min(self._weights.get(pair, 0.0), 20.0)
        factor = (kept * (before or 0.0) + observed / base) / (kept + 1.0)
        self._factors[pair] = factor
        self._weights[pair] = kept + 1.0
        self._counts[solver] = self._counts.get(solver, 0) + (before is None)
        self._sums[solver] = self._sums.get(solver, 0) + units(factor) - units(before or 0.0)
        for listener in self._listeners:
            listener(pair)
