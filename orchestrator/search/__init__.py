"""Searches over hyper-parameters, with the ask/tell interface: they propose candidates and receive scores."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.search.custom import candidate_plan, custom_plan, recorded_plan
from orchestrator.search.pattern import pattern_plan
from orchestrator.search.random import random_search
from orchestrator.search.search import Plan, Search, Selection, grid_plan
from orchestrator.search.space import Point, Range, Space, at_resolution
from orchestrator.study.study import BY_DATASET, EVERY, SAMPLE, SELECTED, SearchSpec
from orchestrator.study.targets import did_you_mean
from orchestrator.study.values import ParamValue

OPTIONS: dict[str, tuple[str, ...]] = {
    "grid": (BY_DATASET,),
    "race": ("highest", "level", "mode", "share"),
    "pattern": (),
    "random": ("budget", "seed"),
    EVERY: (),
    SELECTED: ("study", "arm", "rule"),
    SAMPLE: ("study", "folds", "repeats", "seed"),
}
"""Options of each built-in search."""

_PLANS: dict[str, Plan] = {"grid": grid_plan, "pattern": pattern_plan}

_MAX_SPACES = 64
"""Largest number of spaces in the cache, each with its candidates."""

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
    "max_candidates",
    "needs_no_scores",
]

Axes = Mapping[str, Sequence[ParamValue] | Mapping[str, Any]]
Record = Mapping[str, Any]
"""Record of a custom search: its `rounds` of parameters, and whether it has `ended`."""


def make_search(search: SearchSpec | str, space: Axes, seed: int = 0, record: Record | None = None) -> Search:
    """Return a new search over a space.

    Parameters
    ----------
    search : SearchSpec or str
        Search; a name is sufficient for a built-in search without options.
    space : mapping of str to sequence or mapping
        Values or range of each parameter; see `Space`.
    seed : int
        Seed of the search's random draws; 0 by default.
    record : mapping, optional
        Record of a custom search, which is replayed without the search's code.

    Raises
    ------
    ValueError
        If the search does not exist, the space is not valid, or the search does not support it.
    StudyStopped
        If a custom search fails.
    """
    search = SearchSpec(search) if isinstance(search, str) else search
    if not search.is_custom and search.target not in OPTIONS:
        raise ValueError(
            f"unknown search {search.target!r}; expected one of {', '.join(OPTIONS)}"
            + did_you_mean(search.target, OPTIONS)
        )
    return Search(make_space(space), _plan(search, space, seed, record))


def _plan(search: SearchSpec, space: Axes, seed: int, record: Record | None) -> Plan:
    """Return the plan of a search.

    Parameters
    ----------
    search : SearchSpec
        Search other than the races.
    space : mapping
        Values or range of each parameter.
    seed : int
        Seed of the search's random draws.
    record : mapping or None
        Record of a custom search to replay.
    """
    if not search.is_custom and search.target != "random":
        return _PLANS[search.target]
    if search.is_custom and record is not None:
        return recorded_plan(record["rounds"], record["ended"])
    budget = max_candidates(search, space)
    if search.is_custom:
        return custom_plan(search, seed, budget)

    def plan(space: Space, scores: Mapping[Point, float]) -> Iterator[list[Point] | None]:
        yield from candidate_plan(random_search(space.axes, seed, budget), space, scores, budget)

    return plan


def check_search(search: SearchSpec, space: Axes) -> None:
    """Raise a ValueError if a built-in search does not support a space.

    Parameters
    ----------
    search : SearchSpec
        Built-in search.
    space : mapping
        Values or range of each parameter.
    """
    if search.target in ("race", EVERY):
        make_space(space).require_lists(search.target)
    else:
        make_search(search, space)


def max_candidates(search: SearchSpec, space: Axes) -> int:
    """Return the largest number of candidates that a search evaluates on each split.

    Parameters
    ----------
    search : SearchSpec
        Declared search: its name and options.
    space : mapping
        Values or range of each parameter.

    Raises
    ------
    ValueError
        If the space has a range and the search has no budget.
    """
    lists = [len(values) for values in space.values() if not isinstance(values, Mapping)]
    budget = search.options.get("budget")
    if search.target in (SELECTED, SAMPLE):
        return 0
    if len(lists) == len(space):
        return math.prod(lists) if budget is None else min(budget, math.prod(lists))
    if budget is None and search.target not in _PLANS:
        raise ValueError(
            "a search of a space with a range needs search.budget, the largest number of candidates; set it"
        )
    return 1 if budget is None else int(budget)


def needs_no_scores(search: SearchSpec, space: Axes) -> bool:
    """Return whether a search has one candidate, which it selects whatever its scores are.

    Parameters
    ----------
    search : SearchSpec
        Declared search. A custom one may use the scores of its candidates in any way.
    space : mapping
        Values or range of each parameter.
    """
    if search.is_custom or any(isinstance(values, Mapping) for values in space.values()):
        return False
    return all(len(values) == 1 for values in space.values())


_spaces: dict[str, Space] = {}


def make_space(axes: Axes) -> Space:
    """Return the space of some axes; equal axes share one cached object.

    Parameters
    ----------
    axes : mapping
        Values or range of each parameter.
    """
    key = repr(list(axes.items()))
    known = _spaces.get(key)
    if known is None:
        if len(_spaces) >= _MAX_SPACES:
            _spaces.clear()
        known = _spaces[key] = Space(axes)
    return known
