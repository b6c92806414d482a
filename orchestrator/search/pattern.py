"""Pattern search on a grid of numeric axes, with deterministic restarts.

The algorithm is in Strack (2013), section 5.7.2 and Algorithm 6. For details that the text omits (first
scale, starting points, end of the restarts), this implementation follows the program GSVM of the same author.
"""

import itertools
import math
from collections.abc import Iterator, Mapping

import numpy as np

from orchestrator.search.search import comparable
from orchestrator.search.space import Point, Space


def pattern_plan(space: Space, scores: Mapping[Point, float]) -> Iterator[list[Point]]:
    """Climb with a shrinking cross from the centre, then again from the least explored point.

    Parameters
    ----------
    space : Space
        Space with a list of numbers for every parameter.
    scores : mapping of point to float
        Scores reported so far.

    Yields
    ------
    list of point
        Points of a cross.

    Raises
    ------
    ValueError
        If an axis has a value that is not a number, because the pattern needs neighbours on every axis.
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
        start = _least_explored(space.shape, scores)


def _climb(centre: Point, shape: Point, scores: Mapping[Point, float]) -> Iterator[list[Point]]:
    """Move the cross to its best point until that is the centre, then halve the scale, down to 1.

    Parameters
    ----------
    centre : point
        Point of the grid at which the search starts.
    shape : tuple of int
        Number of values on each axis.
    scores : mapping of point to float
        Scores reported so far.

    Yields
    ------
    list of point
        Points of a cross.
    """
    scale = _first_scale(shape)
    while scale:
        neighbours = _cross(centre, scale, shape)
        yield neighbours
        # `max` returns the first of equal points. The centre is first, so the cross stays on a plateau.
        best = max(neighbours, key=lambda point: comparable(scores[point]))
        if best == centre:
            scale //= 2
        centre = best


def _cross(centre: Point, scale: int, shape: Point) -> list[Point]:
    """Return the centre, its lower neighbours on each axis, and its upper ones, within the grid.

    Parameters
    ----------
    centre : point
        Centre of the cross.
    scale : int
        Distance of the neighbours, in grid steps.
    shape : tuple of int
        Number of values on each axis.
    """
    points = [centre]
    for step in (-scale, scale):
        for axis, size in enumerate(shape):
            position = centre[axis] + step
            if 0 <= position < size:
                points.append((*centre[:axis], position, *centre[axis + 1 :]))
    return points


def _least_explored(shape: Point, scores: Mapping[Point, float]) -> Point | None:
    """Return the point farthest from all tested ones (5.42); None if every candidate is near one.

    Candidates are on a lattice through the centre. Its step is the first scale, and is halved while it
    exceeds the distance that counts as far. The first of equally far points is chosen.

    Parameters
    ----------
    shape : tuple of int
        Number of values on each axis.
    scores : mapping of point to float
        Scores reported so far.
    """
    far = math.ceil(math.sqrt(_resolution(shape)) / 2)
    farthest, distance = None, far - 1
    step, tested = _first_scale(shape), np.array([*scores])
    while True:
        points = _lattice(step, shape)
        uncertainty = _manhattan(np.array(points), tested).min(axis=1)
        if uncertainty.max() > distance:
            farthest, distance = points[uncertainty.argmax()], uncertainty.max()
        step //= 2
        if step <= far:
            return farthest


def _lattice(step: int, shape: Point) -> list[Point]:
    """Return the points of a lattice through the centre, in the order of the grid.

    Parameters
    ----------
    step : int
        Distance of neighbours, in grid steps.
    shape : tuple of int
        Number of values on each axis.
    """
    axes = (range(middle % step, size, step) for middle, size in zip(_centre(shape), shape, strict=True))
    return [*itertools.product(*axes)]


def _centre(shape: Point) -> Point:
    """Return the central point of a grid, rounded down.

    Parameters
    ----------
    shape : tuple of int
        Number of values on each axis.
    """
    return tuple((size - 1) // 2 for size in shape)


def _resolution(shape: Point) -> int:
    """Return the smallest number of values on an axis with more than one value; 1 if there is none.

    Parameters
    ----------
    shape : tuple of int
        Number of values on each axis.
    """
    return min((size for size in shape if size > 1), default=1)


def _first_scale(shape: Point) -> int:
    """Return the largest power of two not above half the reach of the grid, at least 1; 2 for 8 values.

    Parameters
    ----------
    shape : tuple of int
        Number of values on each axis.
    """
    half = (_resolution(shape) - 1) // 2
    return 1 << max(half.bit_length() - 1, 0)


def _manhattan(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the Manhattan distances between two sets of points, in grid steps.

    Parameters
    ----------
    points : int ndarray of shape (m, n_axes)
        Indices on the axes of the grid.
    others : int ndarray of shape (n, n_axes)
        Indices on the axes of the grid.

    Returns
    -------
    int ndarray of shape (m, n)
        Distances.
    """
    # SciPy has this distance, but `svmbench status` replays searches and should import nothing large.
    distances = np.zeros((len(points), len(others)), dtype=np.int64)
    for some, other in zip(points.T, others.T, strict=True):  # one axis at a time, which saves memory
        distances += np.abs(np.subtract.outer(some, other))
    return distances
