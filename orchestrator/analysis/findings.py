"""Everything a report states about a study, computed once."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from orchestrator.analysis import bayesian, one_dataset, pairwise, ratios, summaries, sweep_tests, sweeps
from orchestrator.analysis.comparison_matrix import comparison_matrix
from orchestrator.analysis.design import PERCENT_METRICS, Design, of_design, read_design
from orchestrator.analysis.inner_scores import inner_scores, mapped_arms
from orchestrator.analysis.merged_studies import MergedStudies, compare_arms
from orchestrator.analysis.paired_means import PairedMeans, half_predictions
from orchestrator.analysis.profiles import performance_profile
from orchestrator.analysis.published import published_for, read_published
from orchestrator.analysis.scaling import scaling, sizes_and_times
from orchestrator.analysis.sequential import all_decided, sequential
from orchestrator.analysis.standings import standings
from orchestrator.analysis.statistics import Friedman
from orchestrator.store.results import StudyResults
from orchestrator.study.families import unit_names
from orchestrator.study.report_choices import ReportChoices
from orchestrator.study.schemes import n_repeats


@dataclass(frozen=True)
class Findings:
    """The frames and tests of a study; see the functions that make them for their columns.

    Attributes
    ----------
    results : StudyResults
        With the refits in declared order.
    design : Design
    published : DataFrame
        Scores of others, which nothing is computed from; see `read_published`.
    coverage, scores, effort, timing, time_ratios, profile, selections, choices, failures : DataFrame
    other_scores : dict of str to DataFrame
        The metrics recorded beside the one that selects.
    means : DataFrame (datasets, arms)
    paired : PairedMeans
        The means as they are compared.
    differences : DataFrame
        From the first arm, on each dataset alone.
    tests : DataFrame
        The declared pairwise tests of scores; with the verdicts on time in `time_ratios` one family of tests.
        They, `practical`, `ranks`, `friedman` and `time_ratios` count a family of datasets once.
    practical : DataFrame
        The Bayesian comparison of the same pairs; empty without a region of practical equivalence.
    ranks : DataFrame
    friedman : Friedman or None
    standings : DataFrame
        A row for each arm; empty for fewer than three.
    comparison_matrix : DataFrame
        The comparison of every two arms; empty for fewer than three.
    sequence : DataFrame
        The anytime-valid tests of the declared pairs; empty unless the study asks for them.
    sweep_differences, sweep_summary, sweep_curves, sweep_selected : DataFrame
    same_arms : DataFrame
        Of merged studies, the arms that several of them have; see `compare_arms`.
    inner_scores : DataFrame
        Inner scores over two hyper-parameters; see the function of that name.
    sizes, scaling : DataFrame
        Sizes and training times, and power laws between them; see `scaling`.
    densities : DataFrame
        The posteriors behind `practical`.
    """

    results: StudyResults
    design: Design
    published: pd.DataFrame
    coverage: pd.DataFrame
    scores: pd.DataFrame
    other_scores: dict[str, pd.DataFrame]
    means: pd.DataFrame
    paired: PairedMeans
    differences: pd.DataFrame
    tests: pd.DataFrame
    practical: pd.DataFrame
    ranks: pd.DataFrame
    friedman: Friedman | None
    standings: pd.DataFrame
    comparison_matrix: pd.DataFrame
    sequence: pd.DataFrame
    effort: pd.DataFrame
    timing: pd.DataFrame
    time_ratios: pd.DataFrame
    profile: pd.DataFrame
    selections: pd.DataFrame
    choices: pd.DataFrame
    failures: pd.DataFrame
    sweep_differences: pd.DataFrame
    sweep_summary: pd.DataFrame
    sweep_curves: pd.DataFrame
    sweep_selected: pd.DataFrame
    same_arms: pd.DataFrame
    inner_scores: pd.DataFrame
    sizes: pd.DataFrame
    scaling: pd.DataFrame
    densities: pd.DataFrame

    @property
    def is_empty(self) -> bool:
        """Whether no refit has a score yet, so that there is nothing to compare."""
        return self.scores.empty or not self.scores["n_folds"].any()

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to run and every outer fold has a score."""
        done = all(state.complete for state in self.results.states.values())
        return done and not self.is_empty and self.incomplete.empty

    @property
    def marked(self) -> pd.DataFrame:
        """The rows of `effort` with a refit that claims a gap above `GAP_LEVEL` or did not converge."""
        return self.effort[self.effort["marked"]] if len(self.effort) else self.effort

    def arms_with(self, column: str) -> list[str]:
        """Return the arms of which a column is true in some trial."""
        trials = self.results.trials
        found = set(trials.loc[trials[column].eq(True), "solver"])
        return [arm for arm in self.design.arms if arm in found]

    @property
    def incomplete(self) -> pd.DataFrame:
        """The dataset × arm that lack a score on some outer fold."""
        return self.scores[~self.scores["complete"]] if len(self.scores) else self.scores


def analyse(
    results: StudyResults, choices: ReportChoices | None = None, published: pd.DataFrame | None = None
) -> Findings:
    """Compute every table and test of a study, complete or not.

    Parameters
    ----------
    results : StudyResults
    choices : ReportChoices, optional
        Those of the study's newest run by default.
    published : DataFrame, optional
        Scores of others, to be shown beside the study's.

    Raises
    ------
    ConfigError
        When the choices name what the study does not have, or the published scores fit none of it.
    """
    design = read_design(results, choices)
    results = of_design(results, design)
    scores = summaries.scores(results, design)
    means = pairwise.dataset_means(scores)
    time_ratios = _time_ratios(results, design)
    time_p = ratios.tested_p(time_ratios, "fit_seconds") if len(time_ratios) else ()
    tested = _paired(results, design, means)
    tests = pairwise.pairwise(tested, time_p, design.alpha, design.unit)
    if len(time_ratios):
        accuracy_p = tests["p"].fillna(1.0) if len(tests) else ()
        time_ratios = ratios.decide(time_ratios, "fit_seconds", [*accuracy_p], design.alpha, design.unit)
    sweep_differences, sweep_summary = sweeps.compare_settings(results, design, tested)
    timed = summaries.timing(results, design)
    practical, ranks = _practical(results, design, tested), pairwise.mean_ranks(tested)
    sizes = sizes_and_times(results, design)
    many = len(means.columns) > 2
    return Findings(
        results=results,
        design=design,
        published=published_for(read_published(()) if published is None else published, design),
        coverage=summaries.coverage(results, design),
        scores=scores,
        other_scores={
            metric: summaries.scores(results, design, metric) for metric in design.protocol.get("also", ())
        },
        means=means,
        paired=tested,
        differences=one_dataset.differences(results.outer, means, design.alpha),
        tests=tests,
        practical=practical,
        ranks=ranks,
        friedman=pairwise.omnibus(tested),
        standings=(
            standings(tested, ranks, tests, practical, time_ratios, design.rope) if many else pd.DataFrame()
        ),
        comparison_matrix=comparison_matrix(tested, design.alpha) if many else pd.DataFrame(),
        sequence=(
            sequential(tested, len(time_p), design.alpha) if design.choices.sequential else pd.DataFrame()
        ),
        effort=summaries.effort(results, design),
        timing=timed,
        time_ratios=time_ratios,
        profile=_profile(timed),
        selections=summaries.selections(results, design),
        choices=summaries.choice_counts(results, design),
        failures=summaries.failures(results, design),
        sweep_differences=sweep_differences,
        sweep_summary=sweep_summary,
        sweep_curves=sweep_tests.curves(design, tested),
        sweep_selected=sweep_tests.selected(results, design, tested),
        inner_scores=inner_scores(results, design, mapped_arms(design, means)),
        sizes=sizes,
        scaling=scaling(sizes, design.alpha),
        densities=bayesian.densities(tested, practical),
        same_arms=compare_arms(results, design) if isinstance(results, MergedStudies) else pd.DataFrame(),
    )


def _profile(timing: pd.DataFrame) -> pd.DataFrame:
    """Return the performance profile of training times; one that was stopped is not finished."""
    if timing.empty or timing["solver"].nunique() < 2:
        return pd.DataFrame()
    seconds = timing["fit_seconds"].where(timing["n_stopped"] == 0, np.inf).where(timing["complete"])
    wide = timing.assign(seconds=seconds).pivot(index="dataset", columns="solver", values="seconds")
    return performance_profile(wide.reindex(columns=timing["solver"].unique()))


def is_decided(results: StudyResults) -> bool:
    """Whether the anytime-valid tests have decided every declared pair, so that the study may end."""
    design = read_design(results)
    if not design.choices.sequential:
        return False
    results = of_design(results, design)
    means = _paired(results, design, pairwise.dataset_means(summaries.scores(results, design)))
    time_ratios = _time_ratios(results, design)
    n_times = len(ratios.tested_p(time_ratios, "fit_seconds")) if len(time_ratios) else 0
    return all_decided(sequential(means, n_times, design.alpha))


def _paired(results: StudyResults, design: Design, means: pd.DataFrame) -> PairedMeans:
    """Return means of datasets as they are compared: by families, and with ties of accuracies."""
    ties_below = half_predictions(design.metric, summaries.n_tested(results.outer))
    return PairedMeans(means, tuple(design.families), ties_below)


def _practical(results: StudyResults, design: Design, means: PairedMeans) -> pd.DataFrame:
    """Compare arms by the Bayesian signed-rank test, where a difference is known to be practically none."""
    if design.rope is None:
        return pd.DataFrame()
    # A share of rows cannot differ by less than one row, however often each row is tested.
    rows = None
    if design.metric in PERCENT_METRICS:
        rows = summaries.n_tested(results.outer) / n_repeats(design.protocol)
        rows = rows.groupby(unit_names(rows.index, design.families)).sum()
    return bayesian.compare(means, design.rope, rows)


def _time_ratios(results: StudyResults, design: Design) -> pd.DataFrame:
    """Compare times with the first arm's; under the profile `timing` these tests are declared."""
    rows = summaries.timing_rows(results.outer)
    arms = list(design.arms)
    declared = design.protocol.get("profile") == "timing"
    if len(arms) < 2 or not (declared or rows["solver"].eq(arms[0]).any()):
        return pd.DataFrame()
    return ratios.compare_costs(rows, design, ("fit_seconds", "predict_seconds"), arms[1:], arms[0])
