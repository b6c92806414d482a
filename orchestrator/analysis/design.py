"""What a study set out to do, by the declaration in force."""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import pandas as pd

from orchestrator.store.results import StudyResults
from orchestrator.study.declaration import current_declaration
from orchestrator.study.trials import Pair


@dataclass(frozen=True)
class Design:
    """The plan against which a store's rows are read.

    Attributes
    ----------
    datasets, arms : dict of str to dict
        The facts that provenance holds about each, in declared order; empty dicts when nothing was recorded.
    protocol : dict
    search : str
    metric : str
        Name of the scorer that selects candidates and is tested.
    n_outer : int
        Planned number of outer folds.
    pairs : tuple of (dataset, arm)
        Those that belong to the study, in declared order.
    """

    datasets: dict[str, dict[str, Any]]
    arms: dict[str, dict[str, Any]]
    protocol: dict[str, Any]
    search: str
    metric: str
    n_outer: int
    pairs: tuple[Pair, ...]

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
    """Return the plan of a study's declaration; of a study without one, what its rows tell."""
    declaration = current_declaration(results.provenance)
    if declaration is None:
        return _design_of_rows(results.trials)
    pairs = [(dataset, arm) for dataset in declaration.datasets for arm in declaration.arms]
    return Design(
        datasets=declaration.datasets,
        arms=declaration.arms,
        protocol=declaration.protocol,
        search=declaration.search.words,
        metric=declaration.protocol.get("metric", "accuracy"),
        n_outer=int(declaration.protocol.get("outer", 0)),
        pairs=tuple(pair for pair in pairs if pair in declaration.pairs),
    )


def _design_of_rows(trials: pd.DataFrame) -> Design:
    datasets, arms = trials["dataset"].unique(), trials["solver"].unique()
    return Design(
        datasets={name: {} for name in datasets},
        arms={name: {} for name in arms},
        protocol={},
        search="",
        metric="accuracy",
        n_outer=int(trials["outer"].max()) + 1 if len(trials) else 0,
        pairs=tuple((dataset, arm) for dataset in datasets for arm in arms),
    )


def in_declared_order(results: StudyResults, design: Design) -> StudyResults:
    """Return the results with the refits by dataset, arm and outer fold."""
    outer = results.outer
    order = {
        "_dataset": outer["dataset"].map({name: i for i, name in enumerate(design.datasets)}),
        "_arm": outer["solver"].map({name: i for i, name in enumerate(design.arms)}),
    }
    outer = outer.assign(**order).sort_values([*order, "outer"], kind="stable").drop(columns=[*order])
    return replace(results, outer=outer)
