"""Searches over hyper-parameters: they propose candidates and are told their scores."""

from collections.abc import Mapping, Sequence

from orchestrator.search.grid import grid_plan
from orchestrator.search.pattern import pattern_plan
from orchestrator.search.search import Plan, Search
from orchestrator.search.selection import Selection
from orchestrator.search.space import Space
from orchestrator.study.names import did_you_mean
from orchestrator.study.values import ParamValue

PLANS: dict[str, Plan] = {"grid": grid_plan, "pattern": pattern_plan}

_MOST_SPACES = 64
"""Kept at once, each with the candidates that were asked for."""

__all__ = ["PLANS", "Search", "Selection", "Space", "make_search"]


def make_search(kind: str, space: Mapping[str, Sequence[ParamValue]]) -> Search:
    """Return a fresh search of a kind (`"grid"` or `"pattern"`) over a space.

    Raises
    ------
    ValueError
        If the kind is unknown, the space unusable, or the kind cannot search such a space.
    """
    if kind not in PLANS:
        raise ValueError(
            f"unknown search {kind!r}; expected one of {', '.join(PLANS)}" + did_you_mean(kind, PLANS)
        )
    return Search(_space(space), PLANS[kind])


_spaces: dict[str, Space] = {}


def _space(axes: Mapping[str, Sequence[ParamValue]]) -> Space:
    """Return the space of some axes, one object for all the searches that have the same."""
    key = repr(list(axes.items()))
    known = _spaces.get(key)
    if known is None:
        if len(_spaces) >= _MOST_SPACES:
            _spaces.clear()
        known = _spaces[key] = Space(axes)
    return known
