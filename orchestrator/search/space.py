"""The hyper-parameter space: named axes, and the points of their product."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from orchestrator.study.study import PATH_PARAM, Candidate
from orchestrator.study.text import shown
from orchestrator.study.values import ParamValue, canonical_json, is_number

MOST_POINTS = 100_000

Point = tuple[Any, ...]
"""Positions on the axes of a space, in the order of its parameters; on a range, the number itself."""


@dataclass(frozen=True)
class Range:
    """The numbers between two, both included.

    Attributes
    ----------
    low, high : float
    log : bool
        Whether equal ratios, not equal differences, are equally likely.
    integer : bool
        Whether only whole numbers belong to it.
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False

    def at(self, share: float) -> float:
        """Return the number below which a share of the range lies, from 0 to 1.

        It has six significant digits, so that it is the same on every machine; more where these would leave
        few numbers of a narrow range.
        """
        half = 0.5 if self.integer else 0.0
        low, high = self.low - half, self.high + half
        found = low * (high / low) ** share if self.log else low + share * (high - low)
        return min(
            max(round(found) if self.integer else float(f"{found:.{self._digits}g}"), self.low), self.high
        )

    @property
    def _digits(self) -> int:
        narrow = max(abs(self.low), abs(self.high)) / (self.high - self.low)
        return 6 if narrow < 1000 else min(6 + math.ceil(math.log10(narrow)), 15)

    def __contains__(self, value: object) -> bool:
        return (
            is_number(value)
            and self.low <= value <= self.high  # type: ignore[operator]
            and not (self.integer and value != int(value))  # type: ignore[call-overload]
        )


class Space:
    """A space of hyper-parameters, each with a list of values or a range; of none, it has one point.

    Parameters
    ----------
    axes : mapping of str to sequence or mapping
        The values of each parameter; parameters in order of precedence for ties. Numbers are sorted;
        an axis that holds anything else keeps its order. 1, 1.0 and true are different values. A mapping
        holds the attributes of a `Range`.

    Raises
    ------
    ValueError
        If an axis is empty, neither a list nor a range, or holds a value twice, a nan, or what has no
        canonical text; or if
        there are more points than `MOST_POINTS`.
    """

    def __init__(self, axes: Mapping[str, Sequence[ParamValue] | Mapping[str, Any]]):
        self.axes = {
            name: _range(name, values) if isinstance(values, Mapping) else _axis(name, values)
            for name, values in axes.items()
        }
        self._places: dict[str, dict[str, int]] = {}
        if (number := math.prod(self.shape)) > MOST_POINTS:
            raise ValueError(
                f"the search space has {number:.3g} points; expected at most {MOST_POINTS:,}: "
                "use fewer values"
            )
        self._candidates: dict[Point, Candidate] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values on each axis; 1 for a range."""
        return tuple(1 if isinstance(values, Range) else len(values) for values in self.axes.values())

    def require_lists(self, kind: str) -> None:
        """Raise ValueError unless every parameter has a list of values."""
        if ranges := [name for name, values in self.axes.items() if isinstance(values, Range)]:
            raise ValueError(
                f"{kind} search needs a list of values for every parameter, but {', '.join(ranges)} has a "
                "range; list values, or use search=random"
            )

    def points(self) -> list[Point]:
        """Return all points, the last parameter varying fastest."""
        return list(itertools.product(*(range(size) for size in self.shape)))

    def candidate(self, point: Point) -> Candidate:
        """Return the parameter values at a point."""
        known = self._candidates.get(point)
        if known is None:
            values = (
                place if isinstance(axis, Range) else axis[place]
                for axis, place in zip(self.axes.values(), point, strict=True)
            )
            known = self._candidates[point] = Candidate.of(dict(zip(self.axes, values, strict=True)))
        return known

    def point(self, params: Mapping[str, ParamValue]) -> Point:
        """Return the point of parameter values.

        Raises
        ------
        ValueError
            If they are not in the space.
        """
        if not isinstance(params, Mapping) or params.keys() != self.axes.keys():
            names = ", ".join(self.axes) or "no parameter"
            raise ValueError(f"expected a value for each of {names}, found {shown(params, 50)}")
        return tuple(self._place(name, axis, params[name]) for name, axis in self.axes.items())

    def _place(self, name: str, axis: "tuple[ParamValue, ...] | Range", value: ParamValue) -> Any:
        if isinstance(axis, Range):
            if value in axis:
                return int(value) if axis.integer else float(value)
            kind = "a whole number" if axis.integer else "a number"
            raise ValueError(
                f"expected {kind} from {axis.low:g} to {axis.high:g} as {name}, found {shown(value)}"
            )
        places = self._places.setdefault(name, {})
        if not places:
            places |= {_identity(name, each): place for place, each in enumerate(axis)}
        place = places.get(_identity(name, value))
        if place is None and is_number(value):  # 1.0 in place of 1, where that is all that is listed
            equal = [place for place, each in enumerate(axis) if is_number(each) and each == value]
            place = equal[0] if equal else None
        if place is None:
            raise ValueError(f"expected one of the values listed for {name}, found {shown(value)}")
        return place

    def categorical_axes(self) -> list[str]:
        """Names of the axes whose values are not all numbers, so that they have no natural order."""
        lists = ((name, values) for name, values in self.axes.items() if not isinstance(values, Range))
        return [name for name, values in lists if not _all_numbers(values)]


def at_resolution(
    space: Mapping[str, tuple[ParamValue, ...] | Mapping[str, Any]], resolution: int
) -> dict[str, tuple[ParamValue, ...] | Mapping[str, Any]]:
    """Return a space with so many values on each range and each list of several numbers.

    They run from the smallest to the largest, in equal ratios if the range is logarithmic or the list above
    0, else in equal steps. Other lists stay as they are.

    Raises
    ------
    ValueError
        If a range is none.
    """
    found = dict(space)
    for name, values in space.items():
        if isinstance(values, Mapping):
            axis = _range(name, values)
        elif len(values) > 1 and _all_numbers(values):
            low, high = float(min(values)), float(max(values))
            axis = Range(low, high, log=low > 0)
        else:
            continue
        found[name] = tuple(dict.fromkeys(axis.at(step / (resolution - 1)) for step in range(resolution)))
    return found


def _range(name: str, values: Mapping[str, Any]) -> Range:
    low, high = values.get("low", math.nan), values.get("high", math.nan)
    log, integer = values.get("log", False), values.get("integer", False)
    known = values.keys() <= {field.name for field in fields(Range)}
    if known and _is_finite(low) and _is_finite(high) and isinstance(log, bool) and isinstance(integer, bool):
        whole = low == int(low) and high == int(high)
        if low < high and (low > 0 or not log) and (whole or not integer):
            return Range(int(low), int(high), log, True) if integer else Range(float(low), float(high), log)
    raise ValueError(
        f"expected a range such as {{low: 1, high: 100, log: true}} or {{low: 1, high: 9, integer: true}} as "
        f"the search space's {name!r}, low below high and, if log, above 0; found {shown(dict(values))}"
    )


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


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
