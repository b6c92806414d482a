"""Pattern search on a grid of numeric axes, with deterministic restarts.

Strack (2013), section 5.7.2 and Algorithm 6. Where the text is silent (first scale, starting points,
end of the restarts) this does what the author's tool, GSVM, does.
"""

import itertools
import math
from collections.abc import Iterator, Mapping

from orchestrator.search.selection import comparable
from orchestrator.search.space import Point, Space


def pattern_plan(space: Space, scores: Mapping[Point, float]) -> Iterator[list[Point]]:
    """Climb with a shrinking cross from the centre, then again from wherever the least is known.

    Raises
    ------
    ValueError
        If an axis holds something other than numbers: the pattern needs neighbours on every axis.
    """
    space.require_lists("pattern")
    if categorical := space.categorical_axes():
        raise ValueError(
            f"pattern search needs numbers on every axis, but {', '.join(categorical)} has others; "
            "use search=grid, or fix the parameter in the solver's configuration"
        )
    start: Point | None = _centre(space.shape)
    while start is not None:
        yield from _climb(start, space.shape, scores)
        start = _least_known(space.shape, scores)


def _climb(centre: Point, shape: Point, scores: Mapping[Point, float]) -> Iterator[list[Point]]:
    """Move the cross to its best point until that is its centre, then halve it, down to scale 1."""
    scale = _first_scale(shape)
    while scale:
        neighbours = _cross(centre, scale, shape)
        yield neighbours
        # `max` keeps the first of equals, and the centre comes first: a plateau is no reason to move.
        best = max(neighbours, key=lambda point: comparable(scores[point]))
        if best == centre:
            scale //= 2
        centre = best


def _cross(centre: Point, scale: int, shape: Point) -> list[Point]:
    """Return the centre, then its neighbours below on each axis, then those above, inside the grid."""
    points = [centre]
    for step in (-scale, scale):
        for axis, size in enumerate(shape):
            position = centre[axis] + step
            if 0 <= position < size:
                points.append((*centre[:axis], position, *centre[axis + 1 :]))
    return points


def _least_known(shape: Point, scores: Mapping[Point, float]) -> Point | None:
    """Return the point farthest from all tested ones (5.42), or None if every candidate is near one.

    Candidates lie on a lattice through the centre, first as wide as the first scale, then halved while
    wider than the distance that counts as far. The first of equally far points is taken.
    """
    far = math.ceil(math.sqrt(_resolution(shape)) / 2)
    farthest, distance = None, far - 1
    step = _first_scale(shape)
    while True:
        for point in _lattice(step, shape):
            uncertainty = min(_manhattan(point, tested) for tested in scores)
            if uncertainty > distance:
                farthest, distance = point, uncertainty
        step //= 2
        if step <= far:
            return farthest


def _lattice(step: int, shape: Point) -> Iterator[Point]:
    axes = (range(middle % step, size, step) for middle, size in zip(_centre(shape), shape, strict=True))
    return itertools.product(*axes)


def _centre(shape: Point) -> Point:
    return tuple((size - 1) // 2 for size in shape)


def _resolution(shape: Point) -> int:
    """Return the length of the shortest axis that offers a choice."""
    return min((size for size in shape if size > 1), default=1)


def _first_scale(shape: Point) -> int:
    """Return the largest power of two not above half the reach of the grid, at least 1; 2 for 8 values."""
    reach = (_resolution(shape) - 1) // 2
    return 1 << max(reach.bit_length() - 1, 0)


def _manhattan(a: Point, b: Point) -> int:
    return sum(abs(i - j) for i, j in zip(a, b, strict=True))
