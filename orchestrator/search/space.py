"""The hyper-parameter space: named axes, and the points of their product."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.study.study import PATH_PARAM, Candidate
from orchestrator.study.text import shown
from orchestrator.study.values import ParamValue, canonical_json, is_number

MOST_POINTS = 100_000

Point = tuple[int, ...]
"""Positions on the axes of a space, in the order of its parameters."""


class Space:
    """A finite grid of hyper-parameters; of none, it has one point.

    Parameters
    ----------
    axes : mapping of str to sequence
        The values of each parameter; parameters in order of precedence for ties. Numbers are sorted;
        an axis that holds anything else keeps its order. 1, 1.0 and true are different values.

    Raises
    ------
    ValueError
        If an axis is empty, not a list, or holds a value twice, a nan, or what has no canonical text; or if
        there are more points than `MOST_POINTS`.
    """

    def __init__(self, axes: Mapping[str, Sequence[ParamValue]]):
        self.axes = {name: _axis(name, values) for name, values in axes.items()}
        if (number := math.prod(self.shape)) > MOST_POINTS:
            raise ValueError(
                f"the search space has {number:.3g} points; expected at most {MOST_POINTS:,}: "
                "use fewer values"
            )
        self._candidates: dict[Point, Candidate] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values on each axis."""
        return tuple(len(values) for values in self.axes.values())

    def points(self) -> list[Point]:
        """Return all points, the last parameter varying fastest."""
        return list(itertools.product(*(range(size) for size in self.shape)))

    def candidate(self, point: Point) -> Candidate:
        """Return the parameter values at a point."""
        known = self._candidates.get(point)
        if known is None:
            values = (axis[position] for axis, position in zip(self.axes.values(), point, strict=True))
            known = self._candidates[point] = Candidate.of(dict(zip(self.axes, values, strict=True)))
        return known

    def categorical_axes(self) -> list[str]:
        """Names of the axes whose values are not all numbers, so that they have no natural order."""
        return [name for name, values in self.axes.items() if not _all_numbers(values)]


def _axis(name: str, values: Sequence[ParamValue]) -> tuple[ParamValue, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ValueError(
            f"the search space's {name!r} must be a list of values, such as [{_example(values)}], "
            f"found {shown(values)}"
        )
    if not values:
        raise ValueError(f"the search space's {name!r} is empty; expected at least one value")
    if any(isinstance(value, float) and math.isnan(value) for value in values):
        raise ValueError(f"the search space's {name!r} holds a nan; expected values a solver can be given")
    seen = set()
    for value in values:
        text = _identity(name, value)
        if text in seen:
            raise ValueError(f"the search space's {name!r} holds {shown(value)} twice; list each value once")
        seen.add(text)
    if not _all_numbers(values):
        return tuple(values)
    return tuple(sorted(values, key=lambda value: (value, canonical_json(value))))


def _example(value: Any) -> str:
    return shown(value) if isinstance(value, (str, int, float)) else "1, 10"


def _identity(name: str, value: ParamValue) -> str:
    # Along a path 1 and 1.0 are one place.
    if name == PATH_PARAM and is_number(value):
        value = float(value)
    try:
        return canonical_json(value)
    except TypeError:
        raise ValueError(
            f"the search space's {name!r} holds {shown(value)}; "
            "expected null, booleans, numbers, text, or lists and mappings of these"
        ) from None


def _all_numbers(values: Sequence[ParamValue]) -> bool:
    """Whether values have the order of numbers; integers may be of any size."""
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
