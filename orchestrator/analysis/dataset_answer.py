"""The answer for one dataset: its arms in order, their comparisons, the baseline, and further repeats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, nan
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.design import Design
from orchestrator.analysis.one_dataset import (
    MeanDifference,
    compare_on_dataset,
    compare_with_baseline,
    declared_pairs,
    mean_difference,
    relative_width,
    scores_by_split,
    training_seconds,
)
from orchestrator.analysis.pairwise import HIGHER, LOWER, NO_EVIDENCE
from orchestrator.analysis.sampled_times import is_sample
from orchestrator.store.results import StudyResults
from orchestrator.study.class_shares import rare_share
from orchestrator.study.report_choices import repeats_when_scored
from orchestrator.study.schemes import n_repeats

ENOUGH_REPEATS = 5
"""Number of repeats above which intervals hardly become narrower: those of five folds by 12 % at most."""

_LARGER = 1.1
"""Share of the rows of the largest class, relative to that of equal classes, from which it is named."""

_OPPOSITE = {HIGHER: LOWER, LOWER: HIGHER}


@dataclass(frozen=True)
class MoreRepeats:
    """Effect of more repeats of the outer splits.

    Attributes
    ----------
    total : int
        Number of repeats, `protocol.repeats`.
    width, least_width : float
        Width of the intervals with that many repeats, and with infinitely many, relative to their width now.
    seconds : float
        Expected wall time of all these repeats, in seconds; NaN if it is not known. Splits belong to the keys
        of trials, so the repeats that are stored now are trained again.
    """

    total: int
    width: float
    least_width: float
    seconds: float


@dataclass(frozen=True)
class DatasetAnswer:
    """The comparison of the arms of a study on one dataset.

    Attributes
    ----------
    dataset : str
        Name of the dataset.
    arms : DataFrame
        One row for each arm: complete arms before others, each by descending mean. Columns: solver, n_folds
        (outer splits with a score), complete, mean, corrected_se, the interval of the mean as mean_low and
        mean_high (within the bounds of the metric), and the difference from the baseline as
        baseline_difference, baseline_low, baseline_high (NaN without one).
    comparisons : DataFrame
        The declared family of comparisons; see `compare_on_dataset`. No interval ends outside the differences
        that the metric can have.
    control : str or None
        The declared control; None if all pairs are compared.
    baseline : float
        Mean score of the baseline; NaN if it is not known.
    n_splits : int
        Planned number of outer splits, of all repeats.
    repeats, first_repeats : int
        Number of repeats, and that number when scores of the dataset were stored first.
    more : MoreRepeats or None
        Effect of more repeats; None if the splits cannot be repeated, as those of another study, or enough
        repeats exist.
    least_width : float
        Width of the intervals with infinitely many repeats, relative to their width now; NaN if the splits
        cannot be repeated.
    rare_class : tuple of (str, float) or None
        The rarest class and its share of the rows, if accuracy is measured and hides this class.
    has_largest_class : bool
        Whether one class is clearly larger than equal classes would be. Default True.
    planned_repeats : int
        Final number of repeats that was declared before any score was stored. Default 1.
    """

    dataset: str
    arms: pd.DataFrame
    comparisons: pd.DataFrame
    control: str | None
    baseline: float
    n_splits: int
    repeats: int
    first_repeats: int
    more: MoreRepeats | None
    least_width: float
    rare_class: tuple[str, float] | None
    has_largest_class: bool = True
    planned_repeats: int = 1

    @cached_property
    def complete(self) -> list[str]:
        """List the complete arms, the one with the highest mean first."""
        return [*self.arms.loc[self.arms["complete"].astype(bool), "solver"]]

    @cached_property
    def reference(self) -> str | None:
        """Arm with which the others are compared: the control, or the one with the highest mean."""
        if self.control is not None:
            return self.control if self.control in self.complete else None
        return next(iter(self.complete), None)

    def against_reference(self) -> dict[str, dict[str, Any]]:
        """Return the comparison of each complete arm with the reference.

        Returns
        -------
        dict of str to dict of str to object
            By arm: difference (arm − reference), low, high, holm_low, holm_high, p, p_holm, and the verdict
            on the arm; see `compare_on_dataset`.
        """
        return {arm: dict(numbers) for arm, numbers in self._against_reference.items()}

    @cached_property
    def _against_reference(self) -> dict[str, dict[str, Any]]:
        """Comparison of each complete arm with the reference, which `against_reference` copies."""
        found: dict[str, dict[str, Any]] = {}
        if self.reference is None:
            return found
        for row in self.comparisons.to_dict("records"):
            pair, numbers = (row["first"], row["second"]), {str(key): value for key, value in row.items()}
            if self.reference not in pair or not {*pair} <= {*self.complete}:
                continue
            if pair[0] == self.reference:
                ends = {"low": "high", "high": "low", "holm_low": "holm_high", "holm_high": "holm_low"}
                turned = {"difference": -row["difference"], **{end: -row[ends[end]] for end in ends}}
                numbers |= turned | {"verdict": _OPPOSITE.get(row["verdict"], row["verdict"])}
            found[pair[1] if pair[0] == self.reference else pair[0]] = numbers
        return found


def recorded_baseline(
    runs: Sequence[Mapping[str, Any]], description: Mapping[str, Any], metric: str
) -> list[float] | None:
    """Return the scores of the baseline on the outer splits of a dataset, as the newest run recorded them.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    description : mapping of str to object
        Recorded description of the dataset, with its fingerprint and the hash of its splits.
    metric : str
        Name of the metric.

    Returns
    -------
    list of float or None
        None if no run recorded a baseline for this content, these splits and this metric.
    """
    for run in reversed(runs):
        for found in (run.get("baseline") or {}).values():
            same = all(found.get(key) == description.get(key) for key in ("fingerprint", "split_hash"))
            if same and found.get("metric") == metric and description.get("fingerprint"):
                return [float(score) for score in found["scores"]]
    return None


def answer_of_dataset(results: StudyResults, design: Design, dataset: str) -> DatasetAnswer:
    """Return the answer for one dataset of a study, complete or not.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    dataset : str
        Name of the dataset.
    """
    description, n_splits = design.datasets[dataset], design.n_outer(dataset)
    arms = [arm for arm in design.arms if (dataset, arm) in design.pairs]
    rows = results.outer[results.outer["dataset"] == dataset]
    scores, share = scores_by_split(rows, arms)
    scores = scores.reindex(range(n_splits))
    control = design.choices.control if design.choices.control in arms else None
    comparisons = compare_on_dataset(scores, share, declared_pairs(arms, control), design.alpha)
    comparisons = _bounded(comparisons, design)
    baseline = recorded_baseline(results.provenance, description, design.metric)
    gains = _bounded(compare_with_baseline(scores, baseline or [], share, design.alpha), design)
    repeats = n_repeats(design.protocol)
    # A sample has the splits of its source study.
    is_repeatable = isinstance(design.protocol.get("outer"), int) and n_splits > 1 and not is_sample(design)
    undecided = comparisons.loc[comparisons["verdict"] == NO_EVIDENCE, "level"]
    level = design.alpha if undecided.isna().all() else float(undecided.min())
    least = relative_width(n_splits, inf, share, level) if is_repeatable else nan
    return DatasetAnswer(
        dataset=dataset,
        arms=_arms(scores, share, gains, design),
        comparisons=comparisons,
        control=control,
        baseline=float(np.mean(baseline)) if baseline else nan,
        n_splits=n_splits,
        repeats=repeats,
        first_repeats=repeats_when_scored(results.provenance, description.get("fingerprint")) or repeats,
        more=_more_repeats(results, design, dataset, share, least, level) if is_repeatable else None,
        least_width=least,
        rare_class=_rare_class(description) if design.metric == "accuracy" else None,
        has_largest_class=_has_largest_class(description),
        planned_repeats=(design.choices.first or design.choices).plan.repeats or 1,
    )


def _bounded(frame: pd.DataFrame, design: Design) -> pd.DataFrame:
    """Return differences whose intervals hold no difference that is larger than the range of the metric.

    Parameters
    ----------
    frame : DataFrame
        Differences of scores, with the columns low and high, and maybe holm_low and holm_high.
    design : Design
        The design of the study, with the bounds of its metric.
    """
    low, high = design.score_bounds
    if low is None or high is None:
        return frame
    ends = [name for name in ("low", "high", "holm_low", "holm_high") if name in frame]
    return frame.assign(**{name: frame[name].astype(float).clip(low - high, high - low) for name in ends})


def _arms(scores: pd.DataFrame, share: float, gains: pd.DataFrame, design: Design) -> pd.DataFrame:
    """Return a row for each arm; see `DatasetAnswer.arms`.

    Parameters
    ----------
    scores : DataFrame (splits, arms)
        Scores of every arm, NaN where a split has none.
    share : float
        Ratio n_test / n_train of a split.
    gains : DataFrame
        Differences from the baseline, as `compare_with_baseline` returns them.
    design : Design
        The design of the study: its level, and the bounds of its metric.
    """
    table = []
    for arm, column in scores.items():
        known = column.dropna().to_numpy()
        # The mean of scores has the same error as the mean of their differences from zero.
        found = mean_difference(known, share, design.alpha) if len(known) else MeanDifference(0, *[nan] * 5)
        row = {"n_folds": len(known), "complete": len(known) == len(column) > 0, "mean": found.difference}
        ends = {"corrected_se": found.corrected_se, "mean_low": found.low, "mean_high": found.high}
        table.append({"solver": arm} | row | ends)
    names = ["solver", "n_folds", "complete", "mean", "corrected_se", "mean_low", "mean_high"]
    frame = pd.DataFrame(table, columns=names)
    for name in ("mean_low", "mean_high"):  # Student's t has no bounds, and most metrics have
        frame[name] = frame[name].clip(*design.score_bounds)
    by_arm = gains.set_index("solver")
    for name in ("difference", "low", "high"):
        frame[f"baseline_{name}"] = frame["solver"].map(by_arm[name]).astype(float)
    return frame.sort_values(["complete", "mean"], ascending=False, kind="stable", ignore_index=True)


def _more_repeats(
    results: StudyResults, design: Design, dataset: str, share: float, least: float, level: float
) -> MoreRepeats | None:
    """Return the effect of `ENOUGH_REPEATS` repeats; None if the study has as many.

    Parameters
    ----------
    results : StudyResults
        Stored rows and declaration of the study.
    design : Design
        The design of the study.
    dataset : str
        Name of the dataset.
    share : float
        Ratio n_test / n_train of a split.
    least : float
        Width of the intervals with infinitely many repeats, relative to their width now.
    level : float
        Level at which the pairs that cannot be told apart are tested.
    """
    repeats, n_splits = n_repeats(design.protocol), design.n_outer(dataset)
    if repeats >= ENOUGH_REPEATS:
        return None
    splits = n_splits * ENOUGH_REPEATS // repeats
    width = relative_width(n_splits, splits, share, level)
    trained = training_seconds(results.trials[results.trials["dataset"] == dataset])
    seconds = trained * ENOUGH_REPEATS / repeats / _workers(results.provenance)
    return MoreRepeats(ENOUGH_REPEATS, width, least, seconds)


def _workers(runs: Sequence[Mapping[str, Any]]) -> float:
    """Return the number of workers of the newest run with workers, times the share of time in trainings.

    Parameters
    ----------
    runs : sequence of mapping
        Provenance of every run, oldest first.
    """
    newest = list(reversed(runs))
    numbers = ((run.get("cluster") or {}).get("workers") for run in newest)
    shares = (run.get("worker_share") for run in newest)
    return float(next(filter(None, numbers), 1) * next(filter(None, shares), 1.0))


def _rare_class(description: Mapping[str, Any]) -> tuple[str, float] | None:
    """Return the rarest class and its share of the rows, if it is far below that of equal classes.

    Parameters
    ----------
    description : mapping of str to object
        Recorded description of the dataset.
    """
    counts = description.get("class_counts") or {}
    if len(counts) < 2:
        return None
    label, count = min(counts.items(), key=lambda item: item[1])
    share = count / sum(counts.values())
    return (label, share) if share < rare_share(len(counts)) else None


def _has_largest_class(description: Mapping[str, Any]) -> bool:
    """Return whether the largest class is at least a tenth larger than equal classes would be.

    Otherwise the class that is most frequent among training rows may not be the largest of all rows.

    Parameters
    ----------
    description : mapping of str to object
        Recorded description of the dataset.
    """
    counts = description.get("class_counts") or {}
    return not counts or max(counts.values()) * len(counts) >= _LARGER * sum(counts.values())
