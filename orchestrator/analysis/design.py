"""What a study set out to do, gathered from the provenance of all its runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import pandas as pd

from orchestrator.results import StudyResults
from orchestrator.study import REFIT

_COMPARABLE = ("outer", "inner", "seed", "scaling", "metric")
"""Scores are compared only between runs that agree in these parts of the protocol."""

_CELL = ["dataset", "solver"]


@dataclass(frozen=True)
class Design:
    """The plan against which a store's rows are read.

    Attributes
    ----------
    datasets, arms : dict of str to dict
        The facts that provenance holds about each, in declared order; empty dicts when nothing was recorded.
    protocol : dict
        The latest run's protocol.
    search : str
    metric : str
        Name of the scorer that selects candidates and is tested.
    n_outer : int
        Planned number of outer folds.
    other_protocol : tuple of (str, str)
        Dataset × arm whose latest run followed another protocol; their rows are left out.
    """

    datasets: dict[str, dict[str, Any]]
    arms: dict[str, dict[str, Any]]
    protocol: dict[str, Any]
    search: str
    metric: str
    n_outer: int
    other_protocol: tuple[tuple[str, str], ...] = ()

    def grid_size(self, arm: str) -> int | None:
        """Return the number of candidates a grid search evaluates for an arm; None for another search."""
        space = self.arms[arm].get("space")
        if self.search != "grid" or space is None:
            return None
        return prod(len(values) for values in space.values())

    def planned(self, arm: str) -> int | None:
        """Return the number of trainings per dataset, outer · (inner · |grid| + 1), where it is known."""
        size, inner = self.grid_size(arm), self.protocol.get("inner")
        return None if size is None or inner is None else self.n_outer * (inner * size + 1)


def read_design(results: StudyResults) -> Design:
    """Gather datasets, arms and protocol; what provenance does not tell comes from the rows themselves.

    The latest run decides facts, protocol and order; datasets and arms of earlier runs follow.
    """
    studies = [run["study"] for run in reversed(results.provenance) if run.get("study")]
    latest = studies[0] if studies else {}
    protocol = dict(latest.get("protocol", {}))
    rows = pd.concat([results.outer[_CELL], results.trials[_CELL]])
    search = latest.get("search", "")
    outer_seen = [frame["outer"].max() + 1 for frame in (results.outer, results.trials) if len(frame)]
    return Design(
        datasets=_merged((study.get("datasets", []) for study in studies), rows["dataset"].unique()),
        arms=_merged((study.get("arms", []) for study in studies), rows["solver"].unique()),
        protocol=protocol,
        search=search,
        metric=protocol.get("metric", "accuracy"),
        n_outer=int(protocol.get("outer", max(outer_seen, default=0))),
        other_protocol=_other_protocol(results.provenance, protocol),
    )


def consistent(results: StudyResults, design: Design) -> StudyResults:
    """Return the results restricted to the design's protocol, with one refit per outer fold.

    A refit that the running study has not yet copied into `outer` is taken from the trials.
    """
    trials, selections, outer = (
        _without(frame, design.other_protocol)
        for frame in (results.trials, results.selections, results.outer)
    )
    if len(trials):
        # Trials are read as they stand; the other two may be of a run before the latest change of a solver.
        current = trials["identity"].unique()
        selections, outer = (frame[frame["identity"].isin(current)] for frame in (selections, outer))
    fold = [*_CELL, "outer"]
    refits = trials[trials["inner"] == REFIT]
    if "finished_at" in refits:
        refits = refits.sort_values("finished_at", ascending=False, kind="stable")
    filled = [frame for frame in (outer, refits) if len(frame)]
    outer = pd.concat(filled).drop_duplicates(fold) if filled else outer
    order = _position(outer, design)
    return replace(
        results,
        trials=trials,
        selections=selections,
        outer=outer.assign(**order).sort_values([*order, "outer"], kind="stable").drop(columns=[*order]),
    )


def _merged(declared: Iterable[list[dict[str, Any]]], seen: Iterable[str]) -> dict[str, dict[str, Any]]:
    facts: dict[str, dict[str, Any]] = {}
    for entries in declared:
        for entry in entries:
            facts.setdefault(entry["name"], entry)
    for name in seen:
        facts.setdefault(name, {})
    return facts


def _other_protocol(
    provenance: list[dict[str, Any]], protocol: Mapping[str, Any]
) -> tuple[tuple[str, str], ...]:
    latest: dict[tuple[str, str], bool] = {}
    for run in provenance:
        study = run.get("study") or {}
        theirs = study.get("protocol", {})
        same = all(theirs.get(name) == protocol.get(name) for name in _COMPARABLE)
        for dataset in study.get("datasets", []):
            for arm in study.get("arms", []):
                latest[dataset["name"], arm["name"]] = same
    return tuple(cell for cell, same in latest.items() if not same)


def _without(frame: pd.DataFrame, cells: tuple[tuple[str, str], ...]) -> pd.DataFrame:
    if not cells or frame.empty:
        return frame
    return frame[~pd.MultiIndex.from_frame(frame[_CELL]).isin(cells)]


def _position(frame: pd.DataFrame, design: Design) -> dict[str, pd.Series]:
    datasets = {name: i for i, name in enumerate(design.datasets)}
    arms = {name: i for i, name in enumerate(design.arms)}
    return {"_dataset": frame["dataset"].map(datasets), "_arm": frame["solver"].map(arms)}
