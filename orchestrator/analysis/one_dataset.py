"""Differences of arms on each single dataset, their tests, and what further repeats would change.

The unit is the outer split, and the splits of a dataset share training rows. The standard error of a mean
difference over J splits is therefore s·√(1/J + n_test/n_train) (Nadeau and Bengio 2003), where J counts the
splits of all repeats. Its result concerns new data of this size, is conservative for differences, and says
nothing of other datasets.

References
----------
C. Nadeau and Y. Bengio (2003), Inference for the generalization error, *Machine Learning* 52.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, nan, sqrt

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtr, stdtrit

from orchestrator.analysis.pairwise import ALPHA, HIGHER, LOWER, NO_EVIDENCE
from orchestrator.analysis.signed_rank import DECIMALS
from orchestrator.analysis.statistics import holm, holm_levels
from orchestrator.analysis.summaries import corrected_standard_error, numbers, test_share

_ROUNDING = 2 * 10.0**-DECIMALS
"""Largest range of differences that only rounding has made."""

NOT_COMPLETE = "an arm is not complete"
"""Verdict on a pair of which an arm lacks a score on some outer split."""


@dataclass(frozen=True)
class MeanDifference:
    """Mean of paired differences over the outer splits of one dataset.

    Attributes
    ----------
    n_splits : int
        Number J of outer splits, of all repeats.
    difference : float
        Mean difference.
    corrected_se : float
        s·√(1/J + n_test/n_train); NaN for a single split.
    low, high : float
        Ends of the interval, mean ± t·standard error with J − 1 degrees of freedom; NaN for a single split.
    p : float
        Two-sided p-value of the corrected resampled t-test; NaN for a single split, and for differences that
        are equal in all splits and not 0, whose spread is unknown.
    """

    n_splits: int
    difference: float
    corrected_se: float
    low: float
    high: float
    p: float


def mean_difference(values: np.ndarray, share: float, alpha: float = ALPHA) -> MeanDifference:
    """Return the mean of paired differences with the interval and the p-value of the corrected t-test.

    Parameters
    ----------
    values : ndarray (n_splits,)
        Differences of two scores on the same outer splits.
    share : float
        Ratio n_test / n_train of a split, 0.25 for five folds.
    alpha : float
        Significance level; the confidence level of the interval is 1 − α.

    Returns
    -------
    MeanDifference
        If all differences are equal, the interval has no width. Then p is 1 without a difference, and else
        missing: splits that happen to agree do not show that new data would.
    """
    values = np.round(values, DECIMALS)
    n = len(values)
    mean, error = float(values.mean()), corrected_standard_error(values, share)
    if n < 2:
        return MeanDifference(n, mean, nan, nan, nan, nan)
    if np.ptp(values) <= _ROUNDING:
        return MeanDifference(n, mean, 0.0, mean, mean, nan if mean else 1.0)
    t = float(stdtrit(n - 1, 1 - alpha / 2))
    statistic = abs(mean) / error
    p = float(2 * stdtr(n - 1, -statistic))
    return MeanDifference(n, mean, error, mean - t * error, mean + t * error, p)


def paired_differences(outer: pd.DataFrame, means: pd.DataFrame, alpha: float = ALPHA) -> pd.DataFrame:
    """Return the mean paired difference from the first arm on every dataset that both completed.

    Parameters
    ----------
    outer : DataFrame
        Refits.
    means : DataFrame (datasets, arms)
        Mean scores, NaN unless all outer folds have a score.
    alpha : float
        Significance level; the confidence level of the intervals is 1 − α.

    Returns
    -------
    DataFrame
        Columns: dataset, solver, reference, n_folds, difference, corrected_se, low, high; NaN where a single
        fold has no standard error. The intervals are not adjusted for their number.
    """
    table = []
    for dataset, rows in outer[outer["dataset"].isin(means.index)].groupby("dataset", sort=False):
        reference, *others = means.columns
        complete = means.loc[dataset].notna()
        arms = [arm for arm in others if complete[arm]]
        if not arms or not complete[reference]:
            continue
        scores, share = scores_by_split(rows, [reference, *arms])
        for arm in arms:
            found = mean_difference((scores[arm] - scores[reference]).to_numpy(), share, alpha)
            table.append(
                {
                    "dataset": dataset,
                    "solver": arm,
                    "reference": reference,
                    "n_folds": found.n_splits,
                    "difference": found.difference,
                    "corrected_se": found.corrected_se,
                    "low": found.low,
                    "high": found.high,
                }
            )
    return pd.DataFrame(table)


def scores_by_split(rows: pd.DataFrame, arms: Sequence[str]) -> tuple[pd.DataFrame, float]:
    """Return the scores of arms on the outer splits of one dataset, and the ratio of test to training rows.

    Parameters
    ----------
    rows : DataFrame
        Refits of the dataset.
    arms : sequence of str
        Names of the arms.

    Returns
    -------
    scores : DataFrame (splits, arms)
        NaN where an arm has no score.
    share : float
        Mean number of test rows divided by the mean number of training rows.
    """
    share = test_share({name: numbers(rows[name]) for name in ("n_train", "n_test")})
    wide = rows.assign(score=numbers(rows["score"])).pivot(index="outer", columns="solver", values="score")
    return wide.reindex(columns=list(arms)), share


def declared_pairs(arms: Sequence[str], control: str | None) -> list[tuple[str, str]]:
    """Return the comparisons on one dataset: every arm with a declared control, or all pairs without one.

    Parameters
    ----------
    arms : sequence of str
        Names of the arms.
    control : str or None
        Name of the declared control.

    Returns
    -------
    list of (str, str)
        Each arm before the one that it is compared with.
    """
    if control is not None and control in arms:
        return [(arm, control) for arm in arms if arm != control]
    return list(combinations(arms, 2))


def compare_on_dataset(
    scores: pd.DataFrame, share: float, pairs: Sequence[tuple[str, str]], alpha: float = ALPHA
) -> pd.DataFrame:
    """Compare pairs of arms on one dataset by the corrected resampled t-test, with Holm's adjustment.

    Parameters
    ----------
    scores : DataFrame (splits, arms)
        Scores of every arm on every outer split; an arm with a NaN is not complete.
    share : float
        Ratio n_test / n_train of a split.
    pairs : sequence of (str, str)
        The family of comparisons. A pair of which an arm is not complete stays in it, with a p-value of 1.
    alpha : float
        Significance level.

    Returns
    -------
    DataFrame
        One row for each pair. Columns: first, second, n_splits, difference (first − second), corrected_se,
        low, high, p, p_holm, level, holm_low, holm_high, verdict (of the first arm). low and high are not
        adjusted. holm_low and holm_high belong to the level at which Holm's method tests the pair, so that
        they include 0 exactly if the verdict is `NO_EVIDENCE`. For a single split, all but the difference are
        missing, and the verdict is `NO_EVIDENCE`. It is `NO_EVIDENCE`, too, for differences that are equal in
        all splits: their intervals have no width.
    """
    complete = scores.notna().all()
    table = []
    for first, second in pairs:
        both = bool(complete[first] and complete[second]) and len(scores) > 0
        values = (scores[first] - scores[second]).to_numpy() if both else np.array([nan])
        found = mean_difference(values, share, alpha)
        table.append({"first": first, "second": second, **vars(found), "is_complete": both})
    names = ["first", "second", *MeanDifference.__dataclass_fields__, "is_complete"]
    frame = pd.DataFrame(table, columns=names)
    p_values, is_tested = frame["p"].fillna(1.0).to_numpy(dtype=float), frame["p"].notna()
    frame["p_holm"] = pd.Series(holm(p_values)).where(is_tested)
    frame["level"] = pd.Series(holm_levels(p_values, alpha)).where(is_tested)
    half = stdtrit(len(scores) - 1, 1 - frame["level"] / 2) * frame["corrected_se"]
    half = half.where(frame["corrected_se"] != 0, 0.0)  # differences that are equal in all splits
    frame["holm_low"], frame["holm_high"] = frame["difference"] - half, frame["difference"] + half
    signs = np.where(frame["difference"] > 0, HIGHER, LOWER)
    verdicts = pd.Series(np.where(frame["p_holm"] <= alpha, signs, NO_EVIDENCE))
    frame["verdict"] = verdicts.where(frame["is_complete"].astype(bool), NOT_COMPLETE)
    return frame.drop(columns="is_complete")


def compare_with_baseline(
    scores: pd.DataFrame, baseline: Sequence[float], share: float, alpha: float = ALPHA
) -> pd.DataFrame:
    """Return the difference of each complete arm from the baseline, which belongs to no family of tests.

    Parameters
    ----------
    scores : DataFrame (splits, arms)
        Scores of every arm on every outer split.
    baseline : sequence of float
        Scores of the baseline on the same splits, in the order of their numbers.
    share : float
        Ratio n_test / n_train of a split.
    alpha : float
        Significance level; the confidence level of the intervals is 1 − α.

    Returns
    -------
    DataFrame
        One row for each complete arm. Columns: solver, n_splits, difference, corrected_se, low, high.
    """
    table = [
        {"solver": arm, **vars(mean_difference(column.to_numpy() - np.asarray(baseline), share, alpha))}
        for arm, column in scores.items()
        if column.notna().all() and len(column) == len(baseline)
    ]
    names = ["solver", *MeanDifference.__dataclass_fields__]
    return pd.DataFrame(table, columns=names).drop(columns="p")


def relative_width(n_splits: int, later: float, share: float, alpha: float = ALPHA) -> float:
    """Return the width of an interval after more splits, relative to its width now.

    The standard deviation of the differences is taken to stay the same. Repeats only shrink the part 1/J of
    1/J + n_test/n_train, so even infinitely many leave an interval.

    Parameters
    ----------
    n_splits : int
        Number of outer splits now, at least 2.
    later : float
        Number of outer splits then; may be infinite.
    share : float
        Ratio n_test / n_train of a split.
    alpha : float
        Significance level.

    Returns
    -------
    float
        Below 1 if `later` is larger than `n_splits`; NaN for a single split, which has no interval.
    """
    if n_splits < 2:
        return nan

    def width(n: float) -> float:
        t = float(stdtrit(n - 1, 1 - alpha / 2)) if n < inf else float(ndtri(1 - alpha / 2))
        return t * sqrt(1 / n + share)

    return width(later) / width(n_splits)


def training_seconds(trials: pd.DataFrame) -> float:
    """Return the seconds that trials took on a worker, from preparation to prediction.

    A trial without a time counts with the mean of the others, which is the typical cost of a trial.

    Parameters
    ----------
    trials : DataFrame
        Trials of one dataset.

    Returns
    -------
    float
        Sum of their seconds; NaN if no trial has a time.
    """
    laps = [
        name
        for name in ("fit_seconds", "predict_seconds", "gram_seconds", "prepare_seconds")
        if name in trials
    ]
    times: Mapping[str, np.ndarray] = {name: numbers(trials[name]) for name in laps}
    if "fit_seconds" not in times:
        return nan
    seconds = sum(np.nan_to_num(each) for each in times.values())
    known = np.isfinite(times["fit_seconds"])
    return float(np.mean(np.asarray(seconds)[known]) * len(trials)) if known.any() else nan
