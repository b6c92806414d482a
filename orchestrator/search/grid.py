"""Grid search: every point of the space, in one step."""

from collections.abc import Iterator, Mapping

from orchestrator.search.space import Point, Space


def grid_plan(space: Space, scores: Mapping[Point, float]) -> Iterator[list[Point]]:
    """Evaluate every point of the space at once, whatever the scores.

    Raises
    ------
    ValueError
        If a parameter has a range.
    """
    space.require_lists("grid")
    yield space.points()
