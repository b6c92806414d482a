"""The frames and tests of a study, each computed by a function of the study when it is called.

Every function takes `StudyResults`. `analyse` prepares a study with the choices of a report. Other studies
are prepared with the choices of their newest run. The study caches the results of the functions, so several
sections of a report share one frame: copy a frame before you change it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from orchestrator.analysis import host_effects, reference_measures, score_profiles
from orchestrator.analysis.adjustment import MaxTFamily, max_t_family
from orchestrator.analysis.aggregates import bootstrap_aggregates, seed_of
from orchestrator.analysis.bayesian import compare, pair_densities
from orchestrator.analysis.comparison_matrix import compare_all_pairs
from orchestrator.analysis.dataset_answer import DatasetAnswer, answer_of_dataset
from orchestrator.analysis.design import PERCENT_METRICS, Design, of_design, read_design
from orchestrator.analysis.failed_refits import failed_pairs, with_constant
from orchestrator.analysis.grid_borders import border_winners
from orchestrator.analysis.inner_scores import average_inner_scores, mapped_arms
from orchestrator.analysis.mean_effects import mean_effects
from orchestrator.analysis.merged_studies import MergedStudies, compare_arms
from orchestrator.analysis.one_dataset import paired_differences
from orchestrator.analysis.paired_means import PairedMeans, half_predictions
from orchestrator.analysis.pairwise import (
    dataset_means,
    mean_ranks,
    of_different_solvers,
    omnibus,
    pair_differences,
    pairwise,
)
from orchestrator.analysis.prediction_costs import average_costs
from orchestrator.analysis.prediction_costs import class_rates as rates_of_classes
from orchestrator.analysis.prediction_costs import speed_ups as speed_ups_of_arms
from orchestrator.analysis.profiles import performance_profile
from orchestrator.analysis.published import published_for, read_published
from orchestrator.analysis.random_splits import datasets_drawn_again
from orchestrator.analysis.random_splits import later_splits as means_of_later_splits
from orchestrator.analysis.random_splits import split_tests as t_of_splits
from orchestrator.analysis.ratios import compare_costs, decide, log_ratios, tested_p
from orchestrator.analysis.sampled_times import (
    is_sample,
    sampled_ratios,
    sampled_totals,
    with_estimated_searches,
)
from orchestrator.analysis.scaling import scaling, sizes_and_times
from orchestrator.analysis.sequential import all_decided, sequential
from orchestrator.analysis.sign_flips import joint_p
from orchestrator.analysis.standings import gather_standings
from orchestrator.analysis.statistics import Friedman
from orchestrator.analysis.summaries import (
    average_effort,
    average_scores,
    average_seconds,
    count_choices,
    count_trials,
    group_failures,
    n_tested,
    numbers,
    summarise_selections,
    timing_rows,
)
from orchestrator.analysis.sweep_tests import curves, selected
from orchestrator.analysis.sweeps import compare_settings
from orchestrator.store.results import StudyResults
from orchestrator.study.families import unit_names
from orchestrator.study.few_datasets import has_few_datasets
from orchestrator.study.growth import LateChange, late_changes
from orchestrator.study.planned import Remaining, remaining_of_plan
from orchestrator.study.report_choices import CONSTANT, LEAVE_OUT, MAX_T, ReportChoices
from orchestrator.study.schemes import n_repeats

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, repr=False, kw_only=True)
class Findings(StudyResults):
    """A study prepared for a report: its results in declared order, and their design.

    Attributes
    ----------
    design : Design
        The declaration in force, with the choices of the report.
    published : DataFrame
        Published scores, as `read_published` returns them. Nothing is computed from them.
    studies : mapping of str to StudyResults
        The merged studies by name; empty for a single study.
    computed : dict
        Cached results of functions, by function and further arguments; see `computed`.
    """

    design: Design
    published: pd.DataFrame
    studies: Mapping[str, StudyResults] = field(default_factory=dict)
    computed: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False, compare=False)

    @property
    def results(self) -> StudyResults:
        """The study itself."""
        return self


def analyse(
    results: StudyResults, choices: ReportChoices | None = None, published: pd.DataFrame | None = None
) -> Findings:
    """Prepare a study, complete or not, for a report with certain choices.

    Parameters
    ----------
    results : StudyResults
        The stored study, or several merged ones.
    choices : ReportChoices, optional
        The choices of the report; those of the study's newest run by default.
    published : DataFrame, optional
        Published scores to show beside the study's; none by default.

    Returns
    -------
    Findings
        The study without the arms and datasets that are left out, its refits in declared order.

    Raises
    ------
    ConfigError
        If the choices name an arm or a dataset that the study does not have, or the published scores fit
        none of its datasets.
    """
    design = read_design(results, choices)
    ordered = of_design(results, design)
    return Findings(
        **{each.name: getattr(ordered, each.name) for each in fields(StudyResults)},
        design=design,
        published=published_for(read_published(()) if published is None else published, design),
        studies=results.studies if isinstance(results, MergedStudies) else {},
    )


def computed(function: Callable[Concatenate[Findings, P], T]) -> Callable[Concatenate[StudyResults, P], T]:
    """Make a function of a study compute at its first call, and return the same object at later ones.

    Parameters
    ----------
    function : callable
        Takes the study as `analyse` returns it, and possibly further arguments, which must be hashable.

    Returns
    -------
    callable
        Takes any `StudyResults`, and the further arguments. A study that `analyse` has not returned is
        analysed at every call.
    """

    @wraps(function)
    def compute(study: StudyResults, *args: P.args, **kwargs: P.kwargs) -> T:
        found = study if isinstance(study, Findings) else analyse(study)
        call = function, args, *kwargs.items()
        if call not in found.computed:
            found.computed[call] = function(found, *args, **kwargs)
        value: T = found.computed[call]
        return value

    return compute


@computed
def coverage(study: Findings) -> pd.DataFrame:
    """Count the trials of every dataset × arm by status; see `count_trials`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return count_trials(study, study.design)


@computed
def growth(study: Findings) -> dict[str, list[LateChange]]:
    """Return the changes that were made after scores had been stored, by study; see `late_changes`.

    The name of the only study is empty. A study without such changes is missing.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    if not study.studies:
        found = {"": late_changes(study.provenance, list(study.design.datasets), list(study.design.arms))}
    else:
        found = {
            name: late_changes(each.provenance, list(design.datasets), list(design.arms))
            for name, each in study.studies.items()
            for design in [read_design(each)]
        }
    return {name: changes for name, changes in found.items() if changes}


@computed
def remaining_plan(study: Findings) -> dict[str, Remaining]:
    """Return the part of the declared plan that has no score yet, by study; see `remaining_of_plan`.

    Names that the report omits, or that a study which ended early did not need, are not missing. The name of
    the only study is empty. A study without such a part is missing.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    if not study.studies:
        found = {"": _remaining(study, study.design)}
    else:
        left_out = study.design.choices.leave_out
        found = {name: _remaining(each, read_design(each), left_out) for name, each in study.studies.items()}
    return {name: remaining for name, remaining in found.items() if remaining}


def _remaining(study: StudyResults, design: Design, left_out: Sequence[str] = ()) -> Remaining:
    """Return the part of the declared plan of a single study that has no score yet.

    Parameters
    ----------
    study : StudyResults
        The study, complete or not.
    design : Design
        Its design.
    left_out : sequence of str, default=()
        Arms and datasets that a report of several studies omits. Those of the design are always omitted.
    """
    scored = study.trials[study.trials["score"].notna()]
    omitted = {*design.choices.leave_out, *design.not_started, *left_out}
    return remaining_of_plan(
        study.provenance,
        {*scored["dataset"], *omitted},
        {*scored["solver"], *omitted},
        n_repeats(design.protocol),
    )


@computed
def scores(study: Findings) -> pd.DataFrame:
    """Average the selecting metric over outer folds; see `average_scores`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return average_scores(study, study.design)


@computed
def other_scores(study: Findings) -> dict[str, pd.DataFrame]:
    """Average each metric that is recorded beside the selecting one; return the frames by metric.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    metrics = study.design.protocol.get("also", ())
    return {metric: average_scores(study, study.design, metric) for metric in metrics}


@computed
def incomplete(study: Findings) -> pd.DataFrame:
    """Return the rows of `scores` that lack a score on some outer fold; none if no candidate is selected.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    frame = scores(study)
    if not study.design.selects:
        return frame.iloc[:0]
    return frame[~frame["complete"]] if len(frame) else frame


@computed
def is_empty(study: Findings) -> bool:
    """Return whether no refit has a score yet.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    frame = scores(study)
    return frame.empty or not frame["n_folds"].any()


@computed
def is_complete(study: Findings) -> bool:
    """Return whether all trainings have ended and every outer fold has a score, if candidates are selected.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    done = all(state.complete for state in study.states.values())
    if not study.design.selects:
        return done and bool(study.states)
    return done and not is_empty(study) and incomplete(study).empty


@computed
def effort(study: Findings) -> pd.DataFrame:
    """Average the iterations, sizes and gaps that refits report; see `average_effort`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return average_effort(study, study.design)


@computed
def marked(study: Findings) -> pd.DataFrame:
    """Return the rows of `effort` with a claimed gap above `GAP_LEVEL`, or a refit that did not converge.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    frame = effort(study)
    return frame[frame["marked"]] if len(frame) else frame


@computed
def timing(study: Findings) -> pd.DataFrame:
    """Average the seconds of refits of the profile `timing`; see `average_seconds`.

    The time of whole searches of a sample is estimated; see `with_estimated_searches`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    frame = average_seconds(study, study.design)
    merged = [name for name, each in study.studies.items() if is_sample(read_design(each))]
    return with_estimated_searches(frame, estimated_totals(study), merged)


@computed
def estimated_totals(study: Findings) -> pd.DataFrame:
    """Estimate the time of all trainings that a sample represents; see `sampled_totals`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return sampled_totals(study, study.design)


@computed
def estimated_ratios(study: Findings) -> pd.DataFrame:
    """Estimate the ratios of these times to those of the first arm; see `sampled_ratios`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return sampled_ratios(study, study.design)


@computed
def selections(study: Findings) -> pd.DataFrame:
    """Summarise which candidates the inner search chose; see `summarise_selections`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return summarise_selections(study, study.design)


@computed
def optimism(study: Findings) -> pd.DataFrame:
    """Return how much the inner scores of the selected candidates exceed their outer scores.

    An inner score is the highest of many, so it is optimistic. A dataset × arm takes part if it is complete.
    Columns: dataset, solver, inner_score, outer_score, difference (outer − inner).

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    chosen, outer = selections(study), scores(study)
    if chosen.empty or outer.empty:
        return pd.DataFrame()
    outer = outer.loc[outer["complete"], ["dataset", "solver", "mean"]].rename(
        columns={"mean": "outer_score"}
    )
    frame = chosen[["dataset", "solver", "inner_score"]].merge(outer, on=["dataset", "solver"])
    frame = frame[frame["inner_score"].notna()].reset_index(drop=True)
    return frame.assign(difference=frame["outer_score"] - frame["inner_score"])


@computed
def borders(study: Findings) -> pd.DataFrame:
    """Count the selected candidates on a border that no equal one inside matches; see `border_winners`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return border_winners(study, study.design)


@computed
def choices(study: Findings) -> pd.DataFrame:
    """Count the selections of each candidate; see `count_choices`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return count_choices(study, study.design)


@computed
def failures(study: Findings) -> pd.DataFrame:
    """Group the trials that failed by kind; see `group_failures`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return group_failures(study, study.design)


@computed
def means(study: Findings) -> pd.DataFrame:
    """Return the mean score of every dataset (row) and arm (column); see `dataset_means`.

    Arms are in declared order, the control first.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    found = dataset_means(scores(study))
    # The first dataset may lack the control, whose scores then come later than those of other arms.
    return found[[arm for arm in study.design.arms if arm in found]]


@computed
def compared_means(study: Findings) -> PairedMeans:
    """Return the means for the tests, by families of datasets and with ties of accuracies.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return _paired(study, study.design.choices.failed)


def _paired(study: Findings, failed: str) -> PairedMeans:
    """Return the means for the tests under a treatment of failed refits.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    failed : {"leave_out", "constant"}
        Value of `report.failed`.
    """
    by_dataset = means(study)
    if failed == CONSTANT:
        by_dataset = with_constant(by_dataset, failed_refits(study))
    ties_below = half_predictions(study.design.metric, n_tested(study.outer))
    return PairedMeans(by_dataset, tuple(study.design.families), ties_below)


@computed
def failed_refits(study: Findings) -> pd.DataFrame:
    """Return the dataset × arm that have ended without a score on some outer split; see `failed_pairs`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    found = failed_pairs(study, study.design)
    return found if study.design.selects else found.iloc[:0]


@computed
def failure_sensitivity(study: Findings) -> pd.DataFrame:
    """Test the declared pairs with the other treatment of failed refits; see `tests`.

    Empty if no refit failed, or if the score of the majority class is not known for any of them.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    if not failed_refits(study)["mean"].notna().any():
        return pd.DataFrame()
    other = LEAVE_OUT if study.design.choices.failed == CONSTANT else CONSTANT
    return _tested(study, _paired(study, other))


@computed
def differences(study: Findings) -> pd.DataFrame:
    """Return the differences from the first arm on each dataset; see `paired_differences`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return paired_differences(study.outer, means(study), study.design.alpha)


@computed
def split_tests(study: Findings) -> pd.DataFrame:
    """Return the paired t over random splits of each dataset; see `random_splits.split_tests`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    names = datasets_drawn_again(study.outer, study.design)
    return t_of_splits(study.outer, means(study), names, study.design.choices.control)


@computed
def later_splits(study: Findings) -> pd.DataFrame:
    """Return the scores with and without the splits that selected; see `random_splits.later_splits`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return means_of_later_splits(study.outer, study.design)


@computed
def dataset_answers(study: Findings) -> dict[str, DatasetAnswer]:
    """Return the answer for each dataset of a study of few datasets; see `answer_of_dataset`.

    The dictionary is empty for a study of many datasets.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    names = [*study.design.datasets]
    if not has_few_datasets(len(names)):
        return {}
    return {name: answer_of_dataset(study, study.design, name) for name in names}


@computed
def _costs(study: Findings) -> pd.DataFrame:
    """Compare times with those of the first arm; empty unless the profile `timing` declares these tests.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    rows, arms = timing_rows(study.outer), list(study.design.arms)
    declared = study.design.protocol.get("profile") == "timing"
    if len(arms) < 2 or not (declared or rows["solver"].eq(arms[0]).any()):
        return pd.DataFrame()
    return compare_costs(rows, study.design, ("fit_seconds", "predict_seconds"), arms[1:], arms[0])


@computed
def _time_p(study: Findings) -> list[float]:
    """Return the p-values of the tests of training times. They and the tests of scores are one family.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    compared = _costs(study)
    return tested_p(compared, "fit_seconds") if len(compared) else []


@computed
def _max_t(study: Findings) -> MaxTFamily | None:
    """Return the tests of scores and of times by max-t; None if the report adjusts by Holm's method.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return _max_t_of(study, compared_means(study))


def _max_t_of(study: Findings, means: PairedMeans) -> MaxTFamily | None:
    """Return the tests by max-t on certain means; None if the report adjusts by Holm's method.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    means : PairedMeans
        Mean scores as tests compare them.
    """
    design = study.design
    if design.adjustment != MAX_T or len(means.means.columns) < 2:
        return None
    times = None
    if len(_costs(study)):
        arms, rows = list(design.arms), timing_rows(study.outer)
        times = log_ratios(rows, design, "fit_seconds", arms[1:], arms[0])
    return max_t_family(pair_differences(means), times, design.alpha)


@computed
def tests(study: Findings) -> pd.DataFrame:
    """Test the declared pairs of arms over datasets; see `pairwise`.

    These tests and those of times in `time_ratios` are one family of tests. Both count a family of datasets
    once, and so do `practical`, `arm_ranks` and `friedman_test`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return _tested(study, compared_means(study))


def _tested(study: Findings, compared: PairedMeans) -> pd.DataFrame:
    """Test the declared pairs on certain means.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    compared : PairedMeans
        Mean scores as tests compare them.
    """
    design = study.design
    return pairwise(compared, _time_p(study), design.alpha, design.unit, _max_t_of(study, compared))


@computed
def time_ratios(study: Findings) -> pd.DataFrame:
    """Compare times with those of the first arm and decide which differ; see `compare_costs` and `decide`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    compared = _costs(study)
    if compared.empty:
        return compared
    tested = tests(study)
    accuracy_p = [*tested["p"].fillna(1.0)] if len(tested) else []
    design = study.design
    return decide(compared, "fit_seconds", accuracy_p, design.alpha, design.unit, _max_t(study))


@computed
def prediction_costs(study: Findings) -> pd.DataFrame:
    """Average what a prediction costs on each dataset × arm that was timed; see `average_costs`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return average_costs(study.outer, study.design)


@computed
def speed_ups(study: Findings) -> pd.DataFrame:
    """Compare the prediction times of the first arm with those of the others; see `speed_ups_of_arms`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return speed_ups_of_arms(study.outer, study.design)


@computed
def class_rates(study: Findings) -> pd.DataFrame:
    """Count how often each class is found, from stored predictions; empty without them.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    frame = pd.DataFrame(columns=["dataset", "solver"]) if study.studies else study.predictions()
    return rates_of_classes(frame, study.design.pairs)


@computed
def practical(study: Findings) -> pd.DataFrame:
    """Compare the declared pairs by the Bayesian signed-rank test; see `compare`.

    Empty without a region of practical equivalence.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    design = study.design
    if design.rope is None:
        return pd.DataFrame()
    # A share of rows cannot differ by less than one row, however often each row is tested.
    rows = None
    if design.metric in PERCENT_METRICS:
        rows = n_tested(study.outer) / n_repeats(design.protocol)
        # Random splits test some rows several times, and a dataset has no more than its own.
        sizes = np.array([float(design.datasets.get(name, {}).get("n") or np.inf) for name in rows.index])
        rows = rows.clip(upper=sizes)
        rows = rows.groupby(unit_names(rows.index, design.families)).sum()
    return compare(compared_means(study), design.rope, rows, design.adjustment)


@computed
def random_effects(study: Findings) -> pd.DataFrame:
    """Estimate the mean difference of every tested pair by models of the folds' errors; see `mean_effects`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return mean_effects(
        compared_means(study), tests(study), practical(study), study.outer, study.design.alpha
    )


@computed
def densities(study: Findings) -> pd.DataFrame:
    """Return the posteriors behind `practical`; see `pair_densities`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return pair_densities(compared_means(study), practical(study))


@computed
def arm_ranks(study: Findings) -> pd.DataFrame:
    """Return the mean rank of every arm; see `mean_ranks`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return mean_ranks(compared_means(study))


@computed
def aggregates(study: Findings) -> pd.DataFrame:
    """Return intervals of the mean, the mean rank and the share of wins; see `bootstrap_aggregates`.

    The rows are the arms, with a column solver. Empty for a single arm, without a unit that all completed, or
    without any refit.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    compared, design = compared_means(study), study.design
    complete = compared.means.dropna().index
    arms = list(compared.means.columns)
    rows = study.outer[study.outer["solver"].isin(arms)]
    if len(arms) < 2 or complete.empty or rows.empty:
        return pd.DataFrame()
    wide = rows.assign(score=numbers(rows["score"])).pivot_table(
        index=["dataset", "outer"], columns="solver", values="score", dropna=False
    )
    # An arm or a dataset whose searches all failed has no refit. Its means may still be known.
    wide = wide.reindex(columns=arms)
    refits = {str(name): each.droplevel("dataset") for name, each in wide.groupby(level="dataset")}
    no_refits = wide.iloc[:0].droplevel("dataset")
    names = pd.Series(unit_names(compared.by_dataset.index, design.families), compared.by_dataset.index)
    units = {str(unit): [*names.index[names == unit]] for unit in complete}
    by_dataset = compared.by_dataset[arms]
    folds = {
        name: _with_failed_folds(refits.get(name, no_refits), by_dataset.loc[name], design.n_outer(name))
        for each in units.values()
        for name in each
    }
    seed = seed_of([sorted(design.datasets), sorted(design.arms), design.metric])
    # Resampled folds have no limit of ties, but the share of wins of the folds themselves follows it.
    is_highest = compared.shortfalls()[arms].eq(0.0)
    wins = is_highest.div(is_highest.sum(axis=1), axis=0).mean()
    found = bootstrap_aggregates(folds, units, design.alpha, seed)
    return found.assign(wins=wins.to_numpy(dtype=float), solver=arms)


def _with_failed_folds(scores: pd.DataFrame, means: pd.Series, n_outer: int) -> np.ndarray:
    """Return the scores of all outer splits; those of failed refits are equal, and give the mean of the arm.

    Parameters
    ----------
    scores : DataFrame (outer splits, arms)
        Scores of refits; NaN or no row for a failed one.
    means : Series (arms)
        Mean over all outer splits, in which failed refits count as the study declares.
    n_outer : int
        Number of outer splits of the dataset.

    Returns
    -------
    ndarray of shape (n_outer, n_arms)
        Scores without gaps.
    """
    known = scores[means.index].reindex(range(n_outer))
    n_failed = known.isna().sum()
    rest = (means * n_outer - known.sum()) / n_failed.where(n_failed > 0)
    return known.fillna(rest).to_numpy(dtype=float)


@computed
def friedman_test(study: Findings) -> Friedman | None:
    """Test whether any arms differ; None below three arms or two units, or for settings of one solver.

    The permutations of the test assume that equal arms are exchangeable. Settings of one solver are not:
    neighbours are more alike than distant ones.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return omnibus(compared_means(study)) if of_different_solvers(study.design.arms) else None


@computed
def joint_test(study: Findings) -> float:
    """Return the p of the joint sign-flip test of whether any pair of arms differs; NaN for fewer than three.

    The pairs are those that max-t tests: all of them, or each arm against the first.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    means = compared_means(study)
    if len(means.means.columns) < 3:
        return float("nan")
    return joint_p(pair_differences(means).to_numpy(dtype=float), study.design.alpha)


@computed
def standings(study: Findings) -> pd.DataFrame:
    """Gather a row for each arm; see `gather_standings`. Empty for fewer than three arms.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    if len(means(study).columns) < 3:
        return pd.DataFrame()
    tables = (arm_ranks(study), tests(study), practical(study), time_ratios(study), aggregates(study))
    return gather_standings(compared_means(study), *tables, study.design.alpha)


@computed
def comparison_matrix(study: Findings) -> pd.DataFrame:
    """Compare every two arms; see `compare_all_pairs`. Empty for fewer than three arms.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    if len(means(study).columns) < 3:
        return pd.DataFrame()
    return compare_all_pairs(compared_means(study), study.design.alpha)


@computed
def score_profile(study: Findings) -> pd.DataFrame:
    """Return the share of units on which each arm is near the best; see `score_profiles.score_profile`.

    Empty for fewer than two arms.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    several = len(means(study).columns) > 1
    return score_profiles.score_profile(compared_means(study)) if several else pd.DataFrame()


@computed
def against_control(study: Findings) -> pd.DataFrame:
    """Return the scores of every arm beside those of the control; see `scores_against_control`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    several = len(means(study).columns) > 1
    return score_profiles.scores_against_control(compared_means(study)) if several else pd.DataFrame()


@computed
def sequence(study: Findings) -> pd.DataFrame:
    """Test the declared pairs after each dataset; see `sequential`. Empty unless the report asks for it.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    if not study.design.choices.sequential:
        return pd.DataFrame()
    return sequential(compared_means(study), len(_time_p(study)), study.design.alpha)


@computed
def is_decided(study: Findings) -> bool:
    """Return whether the anytime-valid tests have decided every declared pair, so the study may stop.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return all_decided(sequence(study))


@computed
def profile(study: Findings) -> pd.DataFrame:
    """Return the performance profile of training times, in which a stopped training counts as unfinished.

    Empty for fewer than two timed arms.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    timed = timing(study)
    if timed.empty or timed["solver"].nunique() < 2:
        return pd.DataFrame()
    seconds = timed["fit_seconds"].where(timed["n_stopped"] == 0, np.inf).where(timed["complete"])
    wide = timed.assign(seconds=seconds).pivot(index="dataset", columns="solver", values="seconds")
    return performance_profile(wide.reindex(columns=timed["solver"].unique()))


@computed
def sizes(study: Findings) -> pd.DataFrame:
    """Average size and training time of the refits of each dataset × arm; see `sizes_and_times`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return sizes_and_times(study, study.design)


@computed
def power_laws(study: Findings) -> pd.DataFrame:
    """Fit power laws between the columns of `sizes`; see `scaling`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return scaling(sizes(study), study.design.alpha)


@computed
def _settings(study: Findings) -> tuple[pd.DataFrame, pd.DataFrame]:
    return compare_settings(study, study.design, compared_means(study))


@computed
def sweep_differences(study: Findings) -> pd.DataFrame:
    """Compare each setting of a sweep with the first, on each dataset; see `compare_settings`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return _settings(study)[0]


@computed
def sweep_summary(study: Findings) -> pd.DataFrame:
    """Compare each setting of a sweep with the first, over datasets; see `compare_settings`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return _settings(study)[1]


@computed
def sweep_curves(study: Findings) -> pd.DataFrame:
    """Test all settings of each sweep at once; see `curves`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return curves(study.design, compared_means(study))


@computed
def sweep_selected(study: Findings) -> pd.DataFrame:
    """Compare the setting selected by inner scores with the first one; see `selected`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return selected(study, study.design, compared_means(study))


@computed
def inner_scores(study: Findings) -> pd.DataFrame:
    """Average the inner scores over two hyper-parameters; see `average_inner_scores`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return average_inner_scores(study, study.design, mapped_arms(study.design, means(study)))


@computed
def grid_points(study: Findings) -> pd.DataFrame:
    """Return the trainings of a study that selects no candidates; see `reference_measures.grid_points`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return reference_measures.grid_points(study, study.design)


@computed
def against_references(study: Findings) -> pd.DataFrame:
    """Measure every arm against each reference arm; see `reference_measures.reference_measures`.

    Empty for a study that selects candidates.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return reference_measures.reference_measures(grid_points(study), study.design)


@computed
def ratios_over_machines(study: Findings) -> pd.DataFrame:
    """Compare times over the kinds of machines of merged studies; see `host_effects.ratios_over_machines`.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return host_effects.ratios_over_machines(study.studies, study.design) if study.studies else pd.DataFrame()


@computed
def representative_sets(study: Findings) -> pd.DataFrame:
    """Average the sizes and times of representative sets; see `reference_measures.representative_sets`.

    Empty for a study that selects candidates, or in which no arm has such a set.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return reference_measures.representative_sets(grid_points(study))


@computed
def same_arms(study: Findings) -> pd.DataFrame:
    """Compare the arms that several merged studies have; see `compare_arms`. Empty for a single study.

    Parameters
    ----------
    study : Findings
        The study, complete or not.
    """
    return compare_arms(study.studies, study.design) if study.studies else pd.DataFrame()
