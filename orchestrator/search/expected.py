"""Expected trainings of a search, by candidate, before any score is known.

A pattern search visits a part of the grid, and a race trains most candidates on a part of the inner splits.
Which part depends on the scores. These searches are therefore run on a few artificial score surfaces, and the
mean number of trainings of each candidate is taken. Each surface is like the accuracy of a support vector
machine over C and gamma: a ridge along which one of them grows while the other one decreases, with its peak
at a random position, a plateau, and the noise of a test set of `ROWS` rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from orchestrator.search import make_search, max_candidates, needs_no_scores
from orchestrator.search.fold_search import planned_trials, split_search
from orchestrator.search.selected import selected_params
from orchestrator.study.sample import declared_refits, declared_strata
from orchestrator.study.study import EVERY, SAMPLE, SELECTED, Candidate, SearchSpec
from orchestrator.study.trials import Identity

EXACT = ("grid", EVERY, SAMPLE, SELECTED)
"""Searches whose number of trainings is known before any score."""

SURFACES = 8
"""Number of artificial score surfaces."""

ROWS = 200
"""Number of rows of the artificial test sets."""

_PEAK = 0.95
"""Score at the peak of a surface."""

_PLATEAU = 0.15
"""Distance from the peak up to which the score is that of the peak, in lengths of an axis."""

_ALONG = 0.3
"""Distance that a step along the ridge counts, relative to a step across."""

_SLOPE = 0.6
"""Decrease of the score over the length of an axis, beyond the plateau."""

_LOWEST = 0.6
"""Lowest score of a surface, such as the share of the largest class."""

_MAX_KNOWN = 256
"""Largest number of searches in the cache."""


class ExpectedTrainings(NamedTuple):
    """Expected number of trainings of a dataset × arm, by candidate.

    Attributes
    ----------
    candidates : tuple of Candidate
        Candidates of which a training is expected.
    inner, refits : float array, shape (n_candidates,)
        Expected numbers of inner trainings and of refits, over all outer splits.
    """

    candidates: tuple[Candidate, ...]
    inner: np.ndarray
    refits: np.ndarray

    @property
    def total(self) -> float:
        """Expected number of all trainings."""
        return float(self.inner.sum() + self.refits.sum())


def expected_number(identity: Identity, search: SearchSpec) -> float:
    """Return the expected number of trainings of a dataset × arm.

    Parameters
    ----------
    identity : Identity
        Dataset × arm.
    search : SearchSpec
        Declared search: its name and options.

    Returns
    -------
    float
        Number of inner trainings and refits, over all outer splits.
    """
    if search.target in EXACT:
        return planned_trials(identity, search)
    return expected_trainings(identity, search).total


def expected_trainings(identity: Identity, search: SearchSpec) -> ExpectedTrainings:
    """Return the expected trainings of a dataset × arm.

    The numbers are exact for a grid, for a sample, for candidates that another study has selected, and if
    every candidate is trained on the outer splits. A refit is shared by the candidates in proportion to their
    inner trainings. A custom search is not run. Its budget counts in full, at a candidate without parameters.

    Parameters
    ----------
    identity : Identity
        Dataset × arm.
    search : SearchSpec
        Declared search: its name and options.

    Returns
    -------
    ExpectedTrainings
        Expected numbers by candidate.
    """
    if search.target == SAMPLE:
        return _of_sample(identity, search)
    n_outer = len(identity.n_inner)
    if search.target == SELECTED:
        selected = Candidate.of(selected_params(search, identity.dataset, identity.arm) or {})
        return ExpectedTrainings((selected,), np.zeros(1), np.full(1, float(n_outer)))
    if search.target == EVERY:
        every = tuple(make_search("grid", identity.arm.space).ask())
        return ExpectedTrainings(every, np.zeros(len(every)), np.full(len(every), float(n_outer)))
    outer_of = {n_splits: outer for outer, n_splits in enumerate(identity.n_inner)}
    visits = {n_splits: _visits(identity, search, outer, n_splits) for n_splits, outer in outer_of.items()}
    if len(visits) == 1:
        ((candidates, each),) = visits.values()
        inner = each * n_outer
    else:
        sums: dict[Candidate, float] = {}
        for n_splits in identity.n_inner:
            for candidate, number in zip(*visits[n_splits], strict=True):
                sums[candidate] = sums.get(candidate, 0.0) + float(number)
        candidates, inner = tuple(sums), np.array(list(sums.values()))
    refits = n_outer * inner / inner.sum()
    if not search.is_custom and needs_no_scores(search, identity.arm.space):
        inner = np.zeros(len(inner))
    return ExpectedTrainings(candidates, inner, refits)


def _of_sample(identity: Identity, search: SearchSpec) -> ExpectedTrainings:
    """Return the declared trainings of a sample.

    Parameters
    ----------
    identity : Identity
        Dataset × arm.
    search : SearchSpec
        Search that measures a sample.

    Returns
    -------
    ExpectedTrainings
        Exact numbers by candidate.
    """
    pair = identity.dataset, identity.arm.name
    inner: dict[Candidate, float] = {}
    refits: dict[Candidate, float] = {}
    for stratum in declared_strata(search, *pair):
        inner[stratum.candidate] = inner.get(stratum.candidate, 0.0) + len(stratum.cells)
    for best in declared_refits(search, *pair):
        if best is not None:
            refits[best] = refits.get(best, 0.0) + 1.0
    candidates = tuple(dict.fromkeys([*inner, *refits]))
    numbers = ([counts.get(each, 0.0) for each in candidates] for counts in (inner, refits))
    return ExpectedTrainings(candidates, *(np.array(each, dtype=float) for each in numbers))


_known: dict[tuple[Any, ...], tuple[tuple[Candidate, ...], np.ndarray]] = {}


def _visits(
    identity: Identity, search: SearchSpec, outer: int, n_splits: int
) -> tuple[tuple[Candidate, ...], np.ndarray]:
    """Return the expected number of inner trainings of each candidate on one outer split, cached.

    Parameters
    ----------
    identity : Identity
        Dataset × arm.
    search : SearchSpec
        Search that proposes candidates.
    outer : int
        Outer split whose search is run.
    n_splits : int
        Number of its inner splits.

    Returns
    -------
    candidates : tuple of Candidate
        Candidates that are trained on some surface.
    numbers : float array, shape (n_candidates,)
        Mean number of inner trainings of each candidate, at most `n_splits`.
    """
    arm = identity.arm
    key = (search.text, repr(arm.space), n_splits, arm.warm_starts, identity.protocol.metric)
    if key not in _known:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[key] = _simulated(identity, search, outer, n_splits)
    return _known[key]


def _simulated(
    identity: Identity, search: SearchSpec, outer: int, n_splits: int
) -> tuple[tuple[Candidate, ...], np.ndarray]:
    """Run a search on the artificial surfaces.

    Parameters
    ----------
    identity : Identity
        Dataset × arm.
    search : SearchSpec
        Search that proposes candidates.
    outer : int
        Outer split whose search is run.
    n_splits : int
        Number of its inner splits.

    Returns
    -------
    candidates : tuple of Candidate
        Candidates that are trained on some surface.
    numbers : float array, shape (n_candidates,)
        Mean number of inner trainings of each candidate.
    """
    space = identity.arm.space
    if search.is_custom:
        return (Candidate(()),), np.full(1, float(n_splits * max_candidates(search, space)))
    if needs_no_scores(search, space):
        only = Candidate.of({name: values[0] for name, values in space.items()})  # type: ignore[index]
        return (only,), np.ones(1)
    if search.target == "grid":
        everything = tuple(make_search(search, space).ask())
        return everything, np.full(len(everything), float(n_splits))
    random = np.random.default_rng(0)
    n_surfaces = 1 if search.target == "random" else SURFACES
    counts: dict[Candidate, int] = {}
    for _ in range(n_surfaces):
        peak = random.random(len(space))
        run = split_search(search, identity, outer, None)
        while not run.done and (asked := run.ask()):
            for splits, candidates in asked:
                scores = _scores(candidates, len(splits), space, peak, random)
                for candidate, row in zip(candidates, scores, strict=True):
                    counts[candidate] = counts.get(candidate, 0) + len(splits)
                    for split, score in zip(splits, row, strict=True):
                        run.tell(candidate, split, score)
    return tuple(counts), np.array(list(counts.values())) / n_surfaces


def _scores(
    candidates: Iterable[Candidate],
    n_splits: int,
    space: Mapping[str, Sequence[Any] | Mapping[str, Any]],
    peak: np.ndarray,
    random: np.random.Generator,
) -> list[list[float]]:
    """Return artificial scores: shares of right rows of a test set.

    Parameters
    ----------
    candidates : iterable of Candidate
        Points of the space.
    n_splits : int
        Number of scores of each candidate.
    space : mapping of str to sequence or mapping
        Values or range of each parameter. The score does not depend on parameters with a range.
    peak : float array, shape (n_axes,)
        Position of the peak on each axis, from 0 to 1.
    random : Generator
        Source of the noise.

    Returns
    -------
    list of list of float
        Scores by candidate, and then by split.
    """
    positions = [
        {repr(value): index / max(1, len(values) - 1) for index, value in enumerate(values)}
        for values in space.values()
        if not isinstance(values, Mapping)
    ]
    names = [name for name, values in space.items() if not isinstance(values, Mapping)]
    points = np.array(
        [
            [
                known.get(repr(candidate.value(name)), 0.5)
                for name, known in zip(names, positions, strict=True)
            ]
            for candidate in candidates
        ]
    )
    steps = points - peak[: points.shape[1]]
    across = np.abs(steps.sum(axis=1)) / np.sqrt(max(1, points.shape[1]))
    along = np.sqrt(np.maximum((steps**2).sum(axis=1) - across**2, 0.0))
    distance = np.hypot(across, _ALONG * along)
    share = np.maximum(_PEAK - _SLOPE * np.maximum(distance - _PLATEAU, 0.0), _LOWEST)
    scores: list[list[float]] = (random.binomial(ROWS, share, (n_splits, len(share))).T / ROWS).tolist()
    return scores
