"""The hyper-parameter space: named axes, and the points of their product."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from orchestrator.study.study import PATH_PARAM, Candidate
from orchestrator.study.text import shown
from orchestrator.study.values import ParamValue, canonical_json, is_number

MAX_POINTS = 100_000
"""Largest number of points of a space."""

Point = tuple[Any, ...]
"""Indices on the axes of a space, in the order of its parameters; on a range, the number itself."""


@dataclass(frozen=True)
class Range:
    """Interval of numbers, both ends included.

    Attributes
    ----------
    low, high : float
        Ends.
    log : bool
        Whether draws are uniform in the logarithm; false by default.
    integer : bool
        Whether only whole numbers belong to it; false by default.
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False

    def at(self, share: float) -> float:
        """Return the number at a share of the range.

        It is rounded to six significant digits, so that it is the same on every computer. A narrow range uses
        more digits, so that it keeps enough different numbers.

        Parameters
        ----------
        share : float
            Share of the range below the number, from 0 to 1.
        """
        half = 0.5 if self.integer else 0.0
        low, high = self.low - half, self.high + half
        found = low * (high / low) ** share if self.log else low + share * (high - low)
        return min(
            max(round(found) if self.integer else float(f"{found:.{self._digits}g}"), self.low), self.high
        )

    @property
    def _digits(self) -> int:
        """Number of significant digits of a draw."""
        narrow = max(abs(self.low), abs(self.high)) / (self.high - self.low)
        return 6 if narrow < 1000 else min(6 + math.ceil(math.log10(narrow)), 15)

    def __contains__(self, value: object) -> bool:
        """Return whether a number belongs to the range.

        Parameters
        ----------
        value : object
            Value to check.
        """
        return (
            is_number(value)
            and self.low <= value <= self.high  # type: ignore[operator]
            and not (self.integer and value != int(value))  # type: ignore[call-overload]
        )


class Space:
    """Space of hyper-parameters, each with a list of values or a range; without parameters it has one point.

    Parameters
    ----------
    axes : mapping of str to sequence or mapping
        Values of each parameter, in the order of precedence for ties. Numbers are sorted; an axis with any
        other value keeps its order. 1, 1.0 and true are different values. A mapping contains the attributes
        of a `Range`.

    Raises
    ------
    ValueError
        If an axis is empty, is neither a list nor a range, repeats a value, or contains nan or a value
        without canonical text; or if the space has more than `MAX_POINTS` points.
    """

    def __init__(self, axes: Mapping[str, Sequence[ParamValue] | Mapping[str, Any]]):
        self.axes = {
            name: _range(name, values) if isinstance(values, Mapping) else _axis(name, values)
            for name, values in axes.items()
        }
        self._indices: dict[str, dict[str, int]] = {}
        if (number := math.prod(self.shape)) > MAX_POINTS:
            raise ValueError(
                f"the search space has {number:.3g} points; expected at most {MAX_POINTS:,}: use fewer values"
            )
        self._candidates: dict[Point, Candidate] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values on each axis; 1 for a range."""
        return tuple(1 if isinstance(values, Range) else len(values) for values in self.axes.values())

    def require_lists(self, kind: str) -> None:
        """Raise a ValueError unless every parameter has a list of values.

        Parameters
        ----------
        kind : str
            Name of the search, for the message.
        """
        if ranges := [name for name, values in self.axes.items() if isinstance(values, Range)]:
            raise ValueError(
                f"search={kind} needs a list of values for every parameter, but {', '.join(ranges)} has a "
                "range; list values, or use search=random"
            )

    def points(self) -> list[Point]:
        """Return all points; the last parameter varies fastest."""
        return list(itertools.product(*(range(size) for size in self.shape)))

    def candidate(self, point: Point) -> Candidate:
        """Return the parameter values at a point.

        Parameters
        ----------
        point : point
            Indices on the axes.
        """
        known = self._candidates.get(point)
        if known is None:
            values = (
                index if isinstance(axis, Range) else axis[index]
                for axis, index in zip(self.axes.values(), point, strict=True)
            )
            known = self._candidates[point] = Candidate.of(dict(zip(self.axes, values, strict=True)))
        return known

    def point(self, params: Mapping[str, ParamValue]) -> Point:
        """Return the point of parameter values.

        Parameters
        ----------
        params : mapping
            Value of each parameter.

        Raises
        ------
        ValueError
            If the values are not in the space.
        """
        if not isinstance(params, Mapping) or params.keys() != self.axes.keys():
            names = ", ".join(self.axes) or "no parameter"
            raise ValueError(f"expected a value for each of {names}, found {shown(params, 50)}")
        return tuple(self._index(name, axis, params[name]) for name, axis in self.axes.items())

    def _index(self, name: str, axis: "tuple[ParamValue, ...] | Range", value: ParamValue) -> Any:
        """Return the index of a value on an axis; on a range, the value itself.

        Parameters
        ----------
        name : str
            Name of the parameter.
        axis : tuple or Range
            Values of the parameter in order, or a range.
        value : object
            Value to look up.
        """
        if isinstance(axis, Range):
            if value in axis:
                return int(value) if axis.integer else float(value)
            kind = "a whole number" if axis.integer else "a number"
            raise ValueError(
                f"expected {kind} from {axis.low:g} to {axis.high:g} as {name}, found {shown(value)}"
            )
        indices = self._indices.setdefault(name, {})
        if not indices:
            indices |= {_identity(name, each): index for index, each in enumerate(axis)}
        index = indices.get(_identity(name, value))
        if index is None and is_number(value):  # 1.0 matches a listed 1
            equal = [index for index, each in enumerate(axis) if is_number(each) and each == value]
            index = equal[0] if equal else None
        if index is None:
            raise ValueError(f"expected one of the values listed for {name}, found {shown(value)}")
        return index

    def categorical_axes(self) -> list[str]:
        """Return the names of the axes with a value that is not a number, which have no natural order."""
        lists = ((name, values) for name, values in self.axes.items() if not isinstance(values, Range))
        return [name for name, values in lists if not _all_numbers(values)]


def at_resolution(
    space: Mapping[str, tuple[ParamValue, ...] | Mapping[str, Any]], resolution: int
) -> dict[str, tuple[ParamValue, ...] | Mapping[str, Any]]:
    """Return a space with a given number of values on each range and each list of several finite numbers.

    The values run from the smallest to the largest. Their ratios are equal for a logarithmic range and for a
    list of positive numbers; otherwise their differences are equal. Other lists are unchanged.

    Parameters
    ----------
    space : mapping
        Values or range of each parameter.
    resolution : int
        Number of values, at least 2.

    Raises
    ------
    ValueError
        If a range is not valid.
    """
    found = dict(space)
    for name, values in space.items():
        if isinstance(values, Mapping):
            axis = _range(name, values)
        elif len(values) > 1 and all(map(_is_finite, values)) and min(values) < max(values):
            low, high = float(min(values)), float(max(values))
            axis = Range(low, high, log=low > 0)
        else:
            continue
        found[name] = tuple(dict.fromkeys(axis.at(step / (resolution - 1)) for step in range(resolution)))
    return found


def _range(name: str, values: Mapping[str, Any]) -> Range:
    """Return the range of a parameter, or raise a ValueError.

    Parameters
    ----------
    name : str
        Name of the parameter.
    values : mapping
        Attributes of the range.
    """
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
    """Return whether a value is a finite number.

    Parameters
    ----------
    value : object
        Value to check.
    """
    return is_number(value) and math.isfinite(value)


def _axis(name: str, values: Sequence[ParamValue]) -> tuple[ParamValue, ...]:
    """Return the checked values of a parameter; numbers are sorted.

    Parameters
    ----------
    name : str
        Name of the parameter.
    values : sequence
        Values of the parameter, as configured.
    """
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ValueError(
            f"the search space's {name!r} must be a list of values, such as [{_example(values)}], "
            f"found {shown(values)}"
        )
    if not values:
        raise ValueError(f"the search space's {name!r} is empty; expected at least one value")
    if any(isinstance(value, float) and math.isnan(value) for value in values):
        raise ValueError(f"the search space's {name!r} holds a nan; expected values that a solver accepts")
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
    """Return an example of list elements for a message.

    Parameters
    ----------
    value : object
        Value that is not a list.
    """
    return shown(value) if isinstance(value, (str, int, float)) else "1, 10"


def _identity(name: str, value: ParamValue) -> str:
    """Return the canonical text of a value, which identifies it on its axis.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        Number, text, boolean or None, or lists and mappings of these.
    """
    # On a path, 1 and 1.0 are the same value.
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
    """Return whether all values are numbers; integers may have any size.

    Parameters
    ----------
    values : sequence
        Values to check.
    """
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
