"""The design of a study, by the declaration in force."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import pandas as pd

from orchestrator.store.results import PairState, StudyResults
from orchestrator.study.declaration import Declaration, current_declaration, n_inner_splits, not_started
from orchestrator.study.errors import ConfigError
from orchestrator.study.families import APART, Family, families, n_units
from orchestrator.study.recorded_choices import report_choices
from orchestrator.study.report_choices import ReportChoices
from orchestrator.study.sample import sampled_trainings
from orchestrator.study.score_bounds import highest_score, lowest_score
from orchestrator.study.study import EVERY, SAMPLE, SearchSpec, fixed_on, space_on
from orchestrator.study.trials import Pair

PERCENT_METRICS = frozenset({"accuracy", "balanced_accuracy"})
"""Metrics that are shares of rows and are printed in per cent."""

_ONE_POINT = 0.01


@dataclass(frozen=True)
class Design:
    """The plan of a study, by which its stored rows are interpreted.

    Attributes
    ----------
    datasets, arms : dict of str to dict
        Recorded description of each dataset and of each arm, by name, in declared order. The control is the
        first arm. A description is an empty dict if nothing was recorded.
    protocol : dict
        The recorded protocol; empty if none was recorded.
    search : SearchSpec
        The search and its options.
    metric : str
        Name of the scorer that selects candidates and is tested.
    n_inner : dict of str to tuple of int
        By dataset, the planned number of inner splits of each outer split.
    pairs : tuple of (dataset, arm)
        The dataset × arm that belong to the study, in declared order.
    choices : ReportChoices
        Choices of the report, such as the control and the significance level.
    not_started : tuple of str
        Declared datasets that were not started, because every pair was decided before.
    """

    datasets: dict[str, dict[str, Any]]
    arms: dict[str, dict[str, Any]]
    protocol: dict[str, Any]
    search: SearchSpec
    metric: str
    n_inner: dict[str, tuple[int, ...]]
    pairs: tuple[Pair, ...]
    choices: ReportChoices = field(default_factory=ReportChoices)
    not_started: tuple[str, ...] = ()

    @property
    def selects(self) -> bool:
        """Whether the search selects candidates, whose refits give the scores of arms."""
        return self.search.target != EVERY

    @cached_property
    def families(self) -> list[Family]:
        """The families whose datasets count once in a test; empty if each dataset counts."""
        return [] if self.choices.families == APART else families(self.datasets)

    @property
    def unit(self) -> str:
        """Unit of the tests: "family" or "dataset"."""
        return "family" if self.families else "dataset"

    @property
    def n_units(self) -> int:
        """Number of units."""
        return n_units(self.datasets, self.families)

    @property
    def alpha(self) -> float:
        """The level of the tests."""
        return self.choices.alpha

    @property
    def adjustment(self) -> str:
        """Procedure that adjusts p-values for the number of tests, "maxt" or "holm"."""
        return self.choices.adjustment

    @property
    def rope(self) -> float | None:
        """Half the width of the region of practical equivalence; None without one."""
        return self.rope_of(self.choices)

    def rope_of(self, choices: ReportChoices) -> float | None:
        """Return half the width of the region under other choices.

        Parameters
        ----------
        choices : ReportChoices
            Choices of a report, whose region may differ from that of the study.
        """
        return choices.rope or (_ONE_POINT if self.metric in PERCENT_METRICS else None)

    @property
    def score_bounds(self) -> tuple[float | None, float | None]:
        """Lowest and highest value of the metric; None where it has none, or it is unknown."""
        if self.metric in [each["name"] for each in self.protocol.get("own_metrics", ())]:
            return None, None
        return lowest_score(self.metric), highest_score(self.metric)

    @property
    def max_seconds(self) -> float | None:
        """Time limit of a training, in seconds; None without one, or for merged studies with several."""
        limit = self.protocol.get("max_seconds")
        return None if isinstance(limit, str) else limit  # a text lists the limits of merged studies

    def grid_size(self, arm: str) -> int | None:
        """Return the number of candidates a grid search evaluates for an arm; None for another search.

        Parameters
        ----------
        arm : str
            Name of an arm.
        """
        return self._n_points(arm) if self.search == SearchSpec("grid") else None

    def n_candidates(self, dataset: str, arm: str) -> int | None:
        """Return the number of candidates a grid search evaluates on a dataset; None for another search.

        Parameters
        ----------
        dataset : str
            Name of a dataset.
        arm : str
            Name of an arm.
        """
        is_known = self.search.target == "grid" and self.arms[arm].get("space") is not None
        return prod(len(values) for values in self.space(dataset, arm).values()) if is_known else None

    def _n_points(self, arm: str) -> int | None:
        space = self.arms[arm].get("space")
        return None if space is None else prod(len(values) for values in space.values())

    def space(self, dataset: str, arm: str) -> dict[str, Any]:
        """Return the space of an arm on a dataset, on which the search may fix hyper-parameters.

        Parameters
        ----------
        dataset : str
            Name of a dataset.
        arm : str
            Name of an arm.
        """
        return space_on(self.arms[arm].get("space", {}), fixed_on(self.search.options, dataset))

    def n_outer(self, dataset: str) -> int:
        """Return the planned number of outer splits of a dataset.

        Parameters
        ----------
        dataset : str
            Name of a dataset.
        """
        return len(self.n_inner[dataset])

    def planned(self, dataset: str, arm: str) -> int | None:
        """Return the planned number of trainings, Σ (inner splits · |grid| + 1); None if it is not known.

        A space of one candidate needs no inner trainings. A sample has those that were drawn. A study without
        selection has one training of each candidate on each outer split.

        Parameters
        ----------
        dataset : str
            Name of a dataset.
        arm : str
            Name of an arm.
        """
        if self.search.target == SAMPLE:
            return sampled_trainings(self.search, dataset, arm)
        if not self.selects:
            points = self._n_points(arm)
            return None if points is None else points * self.n_outer(dataset)
        size, n_inner = self.n_candidates(dataset, arm), self.n_inner[dataset]
        if size is None or 0 in n_inner:
            return None
        return sum(number * size + 1 if size > 1 else 1 for number in n_inner)

    def left_out(self, states: Mapping[Pair, PairState]) -> tuple[int, int]:
        """Return how many inner trainings finished races omitted, and how many the full grid would have had.

        Arms with one candidate are left out, because they need no inner trainings.

        Parameters
        ----------
        states : mapping of (dataset, arm) to PairState
            Progress of each dataset × arm.
        """
        left = grid = 0
        for dataset, arm in self.pairs:
            state, size, n_inner = states.get((dataset, arm)), self._n_points(arm), self.n_inner[dataset]
            if state is not None and state.complete and size is not None and size > 1:
                grid += sum(n_inner) * size
                left += sum(n_inner) * size - (len(state.keys) - len(state.refits))
        return left, grid


def read_design(results: StudyResults, choices: ReportChoices | None = None) -> Design:
    """Return the design of a study from its declaration, or from its rows if it has none.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    choices : ReportChoices, optional
        The choices of the report; those of the newest run by default.

    Raises
    ------
    ConfigError
        If the choices name an arm or a dataset that the study does not have.
    """
    choices = choices or report_choices(results.provenance, {})
    declaration = results.declaration or current_declaration(results.provenance)
    found = _design_of_rows(results.trials) if declaration is None else _design_of(declaration)
    problems = choices.unknown_names(list(found.arms), list(found.datasets))
    problems += choices.unused_reference(found.search.target)
    if problems:
        raise ConfigError(problems)
    order = sorted(found.arms, key=lambda arm: choices.control not in (None, arm))
    arms = {arm: found.arms[arm] for arm in order if arm not in choices.leave_out}
    never = not_started(results.provenance, set(results.trials["dataset"]))
    without = {*choices.leave_out, *never}
    datasets = {name: description for name, description in found.datasets.items() if name not in without}
    pairs = [(dataset, arm) for dataset in datasets for arm in arms]
    kept = tuple(pair for pair in pairs if pair in found.pairs)
    return replace(found, datasets=datasets, arms=arms, pairs=kept, choices=choices, not_started=never)


def _design_of(declaration: Declaration) -> Design:
    pairs = [(dataset, arm) for dataset in declaration.datasets for arm in declaration.arms]
    return Design(
        datasets=declaration.datasets,
        arms=declaration.arms,
        protocol=declaration.protocol,
        search=declaration.search,
        metric=declaration.protocol.get("metric", "accuracy"),
        n_inner={
            name: n_inner_splits(description, declaration.protocol)
            for name, description in declaration.datasets.items()
        },
        pairs=tuple(pair for pair in pairs if pair in declaration.pairs),
    )


def _design_of_rows(trials: pd.DataFrame) -> Design:
    datasets, arms = trials["dataset"].unique(), trials["solver"].unique()
    return Design(
        datasets={name: {} for name in datasets},
        arms={name: {} for name in arms},
        protocol={},
        search=SearchSpec(""),
        metric="accuracy",
        n_inner={
            str(name): tuple(rows.groupby("outer")["inner"].max() + 1)
            for name, rows in trials.groupby("dataset")
        },
        pairs=tuple((dataset, arm) for dataset in datasets for arm in arms),
    )


def of_design(results: StudyResults, design: Design) -> StudyResults:
    """Return the results without left-out arms and datasets, with refits sorted by dataset, arm and fold.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design, which determines what is left out and the order of datasets and arms.
    """
    if names := (*design.choices.leave_out, *design.not_started):
        frames = {
            name: frame[~frame["dataset"].isin(names) & ~frame["solver"].isin(names)]
            for name in ("trials", "selections", "outer", "excluded")
            for frame in [getattr(results, name)]
        }
        states = {pair: state for pair, state in results.states.items() if not {*pair} & {*names}}
        results = replace(results, **frames, states=states)
    outer = results.outer
    order = {
        "_dataset": outer["dataset"].map({name: i for i, name in enumerate(design.datasets)}),
        "_arm": outer["solver"].map({name: i for i, name in enumerate(design.arms)}),
    }
    outer = outer.assign(**order).sort_values([*order, "outer"], kind="stable").drop(columns=[*order])
    return replace(results, outer=outer)
