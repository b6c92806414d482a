"""What a run would do and what is left of one: counts and costs, without training anything."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pandas as pd

from orchestrator.fold_search import FoldSearch
from orchestrator.records import StoredTrial
from orchestrator.runner import Prepared
from orchestrator.scheduling import CostModel

SCORED = ("ok", "timeout")
"""The statuses of trials that have a score."""


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One dataset × arm: trainings in all (at most, unless the search is a grid), those stored, and cost."""

    dataset: str
    solver: str
    planned: int
    stored: int
    failed: int
    seconds_left: float

    @property
    def left(self) -> int:
        """Trainings still to run."""
        return max(0, self.planned - self.stored)


def plan(
    prepared: Prepared, stored: Mapping[str, StoredTrial], seconds: Mapping[Any, float]
) -> list[PlanLine]:
    """Tell what a run would train.

    Parameters
    ----------
    prepared : Prepared
    stored : mapping of key to StoredTrial
    seconds : mapping of (dataset, arm) to float
        Mean seconds of its stored trainings, where there are any; the cost model guesses the others.

    Returns
    -------
    list of PlanLine
    """
    costs = CostModel(prepared.shapes)
    protocol = prepared.study.protocol
    lines = []
    for pair in prepared.identities:
        found = [
            trial
            for outer in prepared.outer_folds()
            for trial in _stored_trials(prepared.open_search(pair, outer), stored)
        ]
        planned = prepared.planned_trials(pair)
        cost = seconds.get(pair, costs.training_seconds(*pair, False, protocol.outer, protocol.inner))
        failed = sum(math.isnan(trial.score) for trial in found)
        lines.append(PlanLine(*pair, planned, len(found), failed, cost * (planned - len(found))))
    return lines


def _stored_trials(search: FoldSearch, stored: Mapping[str, StoredTrial]) -> Iterable[StoredTrial]:
    """Follow a search as far as the store can answer it."""
    while paths := search.ask():
        for path in paths:
            for candidate, key in zip(path.candidates, path.keys, strict=True):
                if (trial := stored.get(key)) is not None:
                    yield trial
                    search.tell(candidate, path.inner, trial.status, trial.score)


def remaining(trials: pd.DataFrame, outer: pd.DataFrame, provenance: list[dict[str, Any]]) -> list[PlanLine]:
    """Tell from the store alone how far each dataset × arm is.

    A search other than a grid may need fewer trainings than planned; a dataset × arm with all its
    refits is complete.
    """
    planned: dict[tuple[str, str], int] = {}
    folds: dict[tuple[str, str], int] = {}
    for run in provenance:
        for dataset, arms in run.get("planned", {}).items():
            for arm, number in arms.items():
                planned[dataset, arm] = number
                folds[dataset, arm] = run["study"]["protocol"]["outer"]
    means = mean_seconds(trials)
    stored = trials.groupby(["dataset", "solver"]).size().to_dict()
    scored = trials[trials["status"].isin(SCORED)].groupby(["dataset", "solver"]).size().to_dict()
    refits = outer.groupby(["dataset", "solver"]).size().to_dict()
    overall = sum(means.values()) / len(means) if means else 0.0
    lines = []
    for pair, number in planned.items():
        done = stored.get(pair, 0)
        number = done if refits.get(pair, 0) >= folds[pair] else max(number, done)
        seconds = means.get(pair, overall) * (number - done)
        lines.append(PlanLine(*pair, number, done, done - scored.get(pair, 0), seconds))
    return lines


def mean_seconds(trials: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return the mean seconds of a training and its evaluation, by dataset × arm."""
    if trials.empty:
        return {}
    seconds = trials["fit_seconds"].fillna(0.0) + trials["predict_seconds"].fillna(0.0)
    means = seconds.groupby([trials["dataset"], trials["solver"]]).mean()
    return cast(dict[tuple[str, str], float], means.to_dict())
