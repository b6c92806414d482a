"""Search of one dataset × arm × outer fold, from its first candidate to its refit."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from orchestrator.search import (
    Range,
    Record,
    make_search,
    make_space,
    max_candidates,
    needs_no_scores,
)
from orchestrator.search.every import EveryCandidate
from orchestrator.search.race import Race
from orchestrator.search.rounds import Rounds
from orchestrator.search.sampled import DrawnCells
from orchestrator.search.search import Search, Selection
from orchestrator.search.selected import SelectedBefore, selected_params
from orchestrator.search.statistical_race import STATISTICAL, StatisticalRace
from orchestrator.study.records import Status
from orchestrator.study.sample import sampled_trainings
from orchestrator.study.score_bounds import highest_score
from orchestrator.study.study import EVERY, SAMPLE, SELECTED, Candidate, SearchSpec
from orchestrator.study.trials import REFIT, Identity, Path
from orchestrator.study.values import canonical_json, digest

Records = Callable[[str], Record]
"""Function from the name of a record (see `record_name`) to the record of a custom search."""


class EverySplit:
    """Evaluation of each candidate of a search on every inner split; the search receives the mean score.

    Parameters
    ----------
    search : Search
        Search that proposes the candidates.
    n_splits : int
        Number of inner splits.
    """

    def __init__(self, search: Search, n_splits: int):
        self.search = search
        self._n_splits = n_splits
        self._scores: dict[Candidate, list[float | None]] = {}

    @property
    def done(self) -> bool:
        """Whether the search needs no further score."""
        return self.search.done

    @property
    def selection(self) -> Selection:
        """The winner; raises a RuntimeError while scores are missing."""
        return self.search.selection

    def ask(self) -> list[tuple[Sequence[int], list[Candidate]]]:
        """Return pairs of inner splits and the new candidates to train on them."""
        candidates = self.search.ask()
        self._scores |= {candidate: [None] * self._n_splits for candidate in candidates}
        return [(range(self._n_splits), candidates)] if candidates else []

    def tell(self, candidate: Candidate, split: int, score: float) -> None:
        """Report the score of a candidate on a split.

        Parameters
        ----------
        candidate : Candidate
            Candidate of `ask`.
        split : int
            Inner split, from 0.
        score : float
            Score; nan for a failure.
        """
        scores = self._scores[candidate]
        scores[split] = score
        if None not in scores:
            # A candidate that failed on any split cannot be compared, so its mean is nan.
            self.search.tell(candidate, _mean(scores))  # type: ignore[arg-type]

    def scores(self, candidate: Candidate) -> list[float]:
        """Return the scores of a candidate on all inner splits.

        Parameters
        ----------
        candidate : Candidate
            Candidate that was trained on every inner split.
        """
        return self._scores[candidate]  # type: ignore[return-value]


class OneCandidate:
    """Finished search of a space with one candidate, which is selected without inner trainings.

    Earlier versions trained the candidate on the inner splits. Their scores are received, so that selections
    of their studies stay the same.

    Parameters
    ----------
    search : Search
        Search that proposes the candidate.
    n_splits : int
        Number of inner splits.

    Attributes
    ----------
    candidate : Candidate
        The candidate.
    """

    done = True

    def __init__(self, search: Search, n_splits: int):
        (self.candidate,) = search.ask()
        self._scores: list[float | None] = [None] * n_splits

    @property
    def selection(self) -> Selection:
        """The candidate; None if it was trained on every inner split and failed on one of them."""
        if None in self._scores:
            return Selection(self.candidate, math.nan, 1, 1, 0)
        score = _mean(self._scores)  # type: ignore[arg-type]
        if math.isnan(score):
            return Selection(None, score, 0, 1, 1)
        return Selection(self.candidate, score, 1, 1, 0)

    def ask(self) -> list[tuple[Sequence[int], list[Candidate]]]:
        """Return an empty list, because the search needs no training."""
        return []

    def tell(self, candidate: Candidate, split: int, score: float) -> None:
        """Report the score of a stored trial.

        Parameters
        ----------
        candidate : Candidate
            Not used, because there is only one.
        split : int
            Inner split, from 0.
        score : float
            Score; nan for a failure.
        """
        self._scores[split] = score

    def scores(self, candidate: Candidate) -> list[float]:
        """Return the scores on all inner splits; empty unless each of them has one.

        Parameters
        ----------
        candidate : Candidate
            Not used, because there is only one.
        """
        return [] if None in self._scores else self._scores  # type: ignore[return-value]


def _mean(scores: Sequence[float]) -> float:
    """Return the mean, as `np.mean` does in a fifth of the time for a few numbers.

    Parameters
    ----------
    scores : sequence of float
        Scores; the mean is nan if one of them is.
    """
    return float(np.add.reduce(scores) / len(scores))


@lru_cache(maxsize=1024)
def selection_key(identity: Identity, search: SearchSpec) -> str:
    """Return the key of the selections of a dataset × arm and of their refits.

    Parameters
    ----------
    identity : Identity
        Dataset × arm.
    search : SearchSpec
        Declared search: its name and options.
    """
    text = search.text if search.options or search.is_custom else search.target
    space = make_space(identity.arm.space)
    axes = [[name, asdict(axis) if isinstance(axis, Range) else axis] for name, axis in space.axes.items()]
    sources = canonical_json(identity.arm.space_identities) if identity.arm.space_identities else ""
    return digest([identity.digest, text, axes, *([sources] if sources else [])])


def record_name(selection_key: str, outer: int) -> str:
    """Return the name of the record of a custom search on an outer fold.

    Parameters
    ----------
    selection_key : str
        Key of the dataset × arm, search and space.
    outer : int
        Outer fold, from 0.
    """
    return f"{selection_key}-{outer}"


def planned_trials(identity: Identity, search: SearchSpec) -> int:
    """Return the largest number of trials that a dataset × arm needs.

    Parameters
    ----------
    identity : Identity
        Dataset × arm.
    search : SearchSpec
        Declared search: its name and options.
    """
    if search.target not in (EVERY, SAMPLE) and needs_no_scores(search, identity.arm.space):
        return len(identity.n_inner)
    return countable_trials(identity, search)


def countable_trials(identity: Identity, search: SearchSpec) -> int:
    """Return the largest number of stored trials that count for a dataset × arm.

    Parameters
    ----------
    identity : Identity
        Dataset × arm.
    search : SearchSpec
        Declared search: its name and options.
    """
    if search.target == SAMPLE:
        return sampled_trainings(search, identity.dataset, identity.arm.name)
    points = max_candidates(search, identity.arm.space)
    if search.target == EVERY:
        return len(identity.n_inner) * points
    return sum(n_inner * points + 1 for n_inner in identity.n_inner)


def split_search(
    search: SearchSpec, identity: Identity, outer: int, record: Record | None
) -> DrawnCells | EveryCandidate | EverySplit | OneCandidate | Rounds | SelectedBefore:
    """Return the search that proposes candidates and inner splits on an outer fold.

    Parameters
    ----------
    search : SearchSpec
        Declared search: its name and options.
    identity : Identity
        Dataset × arm.
    outer : int
        Outer fold, from 0.
    record : mapping or None
        Record of a custom search to replay.
    """
    space, n_splits = identity.arm.space, identity.n_inner[outer]
    if search.target == SELECTED:
        return SelectedBefore(selected_params(search, identity.dataset, identity.arm) or {})
    if search.target == SAMPLE:
        return DrawnCells(search, identity.dataset, identity.arm.name, outer)
    if search.target == EVERY:
        is_limited = identity.protocol.max_seconds is not None and not identity.arm.warm_starts
        return EveryCandidate(make_space(space), is_limited)
    if needs_no_scores(search, space):
        return OneCandidate(make_search("grid", space), n_splits)
    if search.target != "race":
        draws = search.is_custom or search.target == "random"
        seed = identity.search_seed(outer, search.options.get("seed", 0)) if draws else 0
        return EverySplit(make_search(search, space, seed, record), n_splits)
    together, metric = identity.arm.warm_starts, identity.protocol.metric
    if search.options.get("mode") == STATISTICAL:
        level, share = search.options["level"], search.options["share"]
        return StatisticalRace(make_space(space), n_splits, together, metric == "accuracy", level, share)
    highest = search.options.get("highest", highest_score(metric))
    return Race(make_space(space), n_splits, math.inf if highest is None else highest, together)


class FoldSearch:
    """Search on one outer fold. Candidates become paths on the inner folds. Scores decide the selection.

    Parameters
    ----------
    identity : Identity
        Dataset × arm.
    search : SearchSpec
        Declared search: its name and options.
    outer : int
        Outer fold, from 0.
    records : callable, optional
        Function that returns records; a custom search is then replayed without its code.

    Attributes
    ----------
    selection_key : str
        Hash of the identity, the search, its options and its space. It identifies the selection and its
        refit.
    selects : bool
        Whether the search selects a candidate, which is refitted. Otherwise all its trainings are on the
        outer split.
    """

    def __init__(self, identity: Identity, search: SearchSpec, outer: int, records: Records | None = None):
        self.identity = identity
        self.outer = outer
        self.selection_key = selection_key(identity, search)
        record = records(self.record_name) if records is not None and search.is_custom else None
        self._search = split_search(search, identity, outer, record)
        self.selects = not isinstance(self._search, EveryCandidate)
        self._refit_proposed = False
        self._unneeded_listed = False
        self._refit: tuple[str, float] | None = None

    @property
    def pair(self) -> tuple[str, str]:
        """Dataset and arm, by name."""
        return self.identity.dataset, self.identity.arm.name

    @property
    def record_name(self) -> str:
        """Name of the record of a custom search."""
        return record_name(self.selection_key, self.outer)

    def record(self) -> dict[str, Any]:
        """Return the rounds that a custom search has proposed, as JSON values."""
        assert isinstance(self._search, EverySplit)
        rounds = [[dict(candidate.params) for candidate in step] for step in self._search.search.rounds]
        return {"rounds": rounds, "ended": self._search.done}

    @property
    def done(self) -> bool:
        """Whether no training remains: the refit is finished, or there is no candidate to refit."""
        if not self._search.done:
            return False
        return self._refit is not None or self._search.selection.best is None

    def unneeded(self) -> list[Path]:
        """Return the paths that count where they are stored, though the search does not ask for them.

        Returns
        -------
        list of Path
            Paths on the inner splits of a single candidate; empty from the second call on.
        """
        if self._unneeded_listed or not isinstance(self._search, OneCandidate):
            return []
        self._unneeded_listed = True
        splits = range(self.identity.n_inner[self.outer])
        return self.identity.paths_of_splits(self.outer, splits, [self._search.candidate])

    def ask(self) -> list[Path]:
        """Return the new paths that can be trained now."""
        paths = []
        for splits, candidates in self._search.ask():
            paths += self.identity.paths_of_splits(self.outer, splits, candidates)
        is_known = self._search.done or isinstance(self._search, DrawnCells)
        if is_known and self.selects and not self._refit_proposed:
            self._refit_proposed = True
            best = self._search.selection.best
            paths += self.identity.paths(self.outer, REFIT, [best] if best is not None else [])
        return paths

    def tell(self, candidate: Candidate, inner: int, status: str, score: float) -> None:
        """Report a finished trial.

        Parameters
        ----------
        candidate : Candidate
            Candidate of the trial.
        inner : int
            Inner fold, from 0; -1 for a training on the outer split.
        status : str
            Status of the trial.
        score : float
            Score; nan for a failure.
        """
        if inner == REFIT and self.selects:
            self._refit = (status, score)
            return
        if status == Status.TIMEOUT and isinstance(self._search, EveryCandidate):
            self._search.timed_out(candidate)
        self._search.tell(candidate, inner, score)

    def skips(self, path: Path) -> bool:
        """Return whether the trainings of a path are not run, because smaller values of C took too long.

        Parameters
        ----------
        path : Path
            Path of `ask`, with all or some of its trials.

        Returns
        -------
        bool
            True only under `search=every` with a time limit. Their rows say `timeout`.
        """
        search = self._search
        return isinstance(search, EveryCandidate) and all(map(search.skips, path.candidates))

    def selection_row(self) -> dict[str, Any] | None:
        """Return the row of `selections.parquet`; None if the search is not finished or selects nothing."""
        if not (self.selects and self._search.done):
            return None
        selection = self._search.selection
        row: dict[str, Any] = {
            "identity": self.identity.digest,
            "selection_key": self.selection_key,
            "dataset": self.identity.dataset,
            "solver": self.identity.arm.name,
            "outer": self.outer,
            "inner_score": None if math.isnan(selection.score) else selection.score,
            "inner_se": None,
            "n_tied": selection.n_tied,
            "n_candidates": selection.n_candidates,
            "n_failed": selection.n_failed,
        }
        if selection.best is not None:
            folds = np.array(self._search.scores(selection.best))
            if len(folds):
                row["inner_se"] = float(folds.std() / math.sqrt(len(folds)))
            row |= self.identity.arm.param_columns(selection.best)
        return row
