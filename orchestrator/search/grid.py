"""Grid search: every point of the space, in one step."""

from collections.abc import Iterator, Mapping

from orchestrator.search.space import Point, Space


def grid_plan(space: Space, scores: Mapping[Point, float]) -> Iterator[list[Point]]:
    """Yield every point of the space in one step.

    Parameters
    ----------
    space : Space
        Space with a list of values for every parameter.
    scores : mapping of point to float
        Scores, which this search does not use.

    Yields
    ------
    list of point
        All points.

    Raises
    ------
    ValueError
        If a parameter has a range.
    """
    space.require_lists("grid")
    yield space.points()
