"""Searches over hyper-parameters: they propose candidates and are told their scores."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.search.grid import grid_plan
from orchestrator.search.own import candidate_plan, own_plan, recorded_plan
from orchestrator.search.pattern import pattern_plan
from orchestrator.search.random import random_search
from orchestrator.search.search import Plan, Search
from orchestrator.search.selection import Selection
from orchestrator.search.space import Point, Range, Space, at_resolution
from orchestrator.study.names import did_you_mean
from orchestrator.study.study import SELECTED, SearchSpec
from orchestrator.study.values import ParamValue

OPTIONS: dict[str, tuple[str, ...]] = {
    "grid": (),
    "race": ("highest", "level", "mode", "share"),
    "pattern": (),
    "random": ("budget", "seed"),
    SELECTED: ("study", "arm"),
}
"""The searches that are built in, and the options of each."""

_PLANS: dict[str, Plan] = {"grid": grid_plan, "pattern": pattern_plan}

_MOST_SPACES = 64
"""Kept at once, each with the candidates that were asked for."""

__all__ = [
    "OPTIONS",
    "Range",
    "Search",
    "Selection",
    "Space",
    "at_resolution",
    "check_search",
    "make_search",
    "make_space",
    "most_candidates",
]

Axes = Mapping[str, Sequence[ParamValue] | Mapping[str, Any]]
Record = Mapping[str, Any]
"""Of a search that was run: its `rounds` of parameters, and whether it has `ended`."""


def make_search(search: SearchSpec | str, space: Axes, seed: int = 0, record: Record | None = None) -> Search:
    """Return a fresh search over a space.

    Parameters
    ----------
    search : SearchSpec or str
        The name alone of one that is built in and has no options.
    space : mapping of str to sequence or mapping
        See `Space`.
    seed : int
        What a search draws from.
    record : mapping, optional
        Follow what a user's search has proposed before, without its code.

    Raises
    ------
    ValueError
        If there is no such search, the space is unusable, or the search cannot search such a space.
    StudyStopped
        If a user's search fails.
    """
    search = SearchSpec(search) if isinstance(search, str) else search
    if not search.is_own and search.target not in OPTIONS:
        raise ValueError(
            f"unknown search {search.target!r}; expected one of {', '.join(OPTIONS)}"
            + did_you_mean(search.target, OPTIONS)
        )
    return Search(make_space(space), _plan(search, space, seed, record))


def _plan(search: SearchSpec, space: Axes, seed: int, record: Record | None) -> Plan:
    if not search.is_own and search.target != "random":
        return _PLANS[search.target]
    if search.is_own and record is not None:
        return recorded_plan(record["rounds"], record["ended"])
    most = most_candidates(search, space)
    if search.is_own:
        return own_plan(search, seed, most)

    def plan(space: Space, scores: Mapping[Point, float]) -> Iterator[list[Point] | None]:
        yield from candidate_plan(random_search(space.axes, seed, most), space, scores, most)

    return plan


def check_search(search: SearchSpec, space: Axes) -> None:
    """Raise ValueError if a search that is built in cannot search a space."""
    if search.target == "race":
        make_space(space).require_lists("race")
    else:
        make_search(search, space)


def most_candidates(search: SearchSpec, space: Axes) -> int:
    """Return how many candidates a search evaluates on inner splits at most.

    Raises
    ------
    ValueError
        If the space has a range, and the search no budget.
    """
    lists = [len(values) for values in space.values() if not isinstance(values, Mapping)]
    budget = search.options.get("budget")
    if search.target == SELECTED:
        return 0
    if len(lists) == len(space):
        return math.prod(lists) if budget is None else min(budget, math.prod(lists))
    if budget is None and search.target not in _PLANS:
        raise ValueError(
            "a search of a space with a range needs search.budget, the most candidates that it may propose"
        )
    return 1 if budget is None else int(budget)


_spaces: dict[str, Space] = {}


def make_space(axes: Axes) -> Space:
    """Return the space of some axes, one object for all the searches that have the same."""
    key = repr(list(axes.items()))
    known = _spaces.get(key)
    if known is None:
        if len(_spaces) >= _MOST_SPACES:
            _spaces.clear()
        known = _spaces[key] = Space(axes)
    return known
