"""The declared family of pairwise tests, the omnibus test and the mean ranks."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.adjustment import MaxTFamily
from orchestrator.analysis.aggregates import probability_of_improvement
from orchestrator.analysis.paired_means import PairedMeans, paired
from orchestrator.analysis.signed_rank import (
    datasets_needed,
    hodges_lehmann,
    leave_one_out_p,
    pratt_p,
    signed_rank,
    smallest_p,
)
from orchestrator.analysis.statistics import Friedman, friedman, holm, ranks
from orchestrator.study.report_choices import HOLM, MAX_T

ALPHA = 0.05
ALL_PAIRS_UP_TO = {HOLM: 4, MAX_T: 8}
"""Largest number of arms for which all pairs are tested, by the adjustment. With more, each arm is tested
against the first only. Holm's adjustment grows with the number of tests; eight arms have 28 pairs."""

HIGHER = "higher"
LOWER = "lower"
NO_EVIDENCE = "no evidence of a difference"
NO_DATA = "no dataset in common"


_IMPROVED = ("improved", "improved_low", "improved_high")


def dataset_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean score of every dataset (row) and arm (column); NaN unless all outer folds have one.

    Parameters
    ----------
    scores : DataFrame
        Scores of each dataset × arm, as `average_scores` returns them.
    """
    if scores.empty:
        return pd.DataFrame()
    means = scores["mean"].where(scores["complete"])
    wide = scores.assign(mean=means).pivot(index="dataset", columns="solver", values="mean")
    return wide.reindex(index=scores["dataset"].unique(), columns=scores["solver"].unique())


def all_pairs(n_arms: int, adjustment: str = HOLM) -> bool:
    """Return whether the family has all pairs of arms, and not only those with the first.

    Parameters
    ----------
    n_arms : int
        Number of arms of the study.
    adjustment : {"holm", "maxt"}
        Procedure that adjusts p-values.
    """
    return n_arms <= ALL_PAIRS_UP_TO[adjustment]


def family(arms: list[str], adjustment: str = HOLM) -> list[tuple[str, str]]:
    """Return the tested pairs: all pairs for few arms, else every arm against the first.

    Parameters
    ----------
    arms : list of str
        Names of the arms, the control first.
    adjustment : {"holm", "maxt"}
        Procedure that adjusts p-values.
    """
    if all_pairs(len(arms), adjustment):
        return list(combinations(arms, 2))
    return [(arm, arms[0]) for arm in arms[1:]]


def family_size(n_arms: int, times: bool, adjustment: str = HOLM) -> int:
    """Return the number of pairwise tests in a study, including those of times if they are in the family.

    Parameters
    ----------
    n_arms : int
        Number of arms of the study.
    times : bool
        Whether times are tested against the first arm, too.
    adjustment : {"holm", "maxt"}
        Procedure that adjusts p-values.
    """
    pairs = len(family([str(number) for number in range(n_arms)], adjustment))
    return pairs + (n_arms - 1 if times else 0)


def pairwise(
    means: PairedMeans | pd.DataFrame,
    also_tested: Sequence[float] = (),
    alpha: float = ALPHA,
    unit: str = "dataset",
    joint: MaxTFamily | None = None,
) -> pd.DataFrame:
    """Test every pair of the family over the datasets that both arms completed.

    Parameters
    ----------
    means : PairedMeans or DataFrame (units, arms)
        Mean scores, NaN where an arm has not completed a unit.
    also_tested : sequence of float
        The p-values of other tests that belong to the family.
    alpha : float
        Level of the tests.
    unit : str
        Name of a row of the means, "dataset" or "family".
    joint : MaxTFamily, optional
        The tests of mean differences by max-t, which then decide. By default, Holm's method adjusts the
        signed-rank tests.

    Returns
    -------
    DataFrame
        Columns: first, second, the fields of `SignedRank` and `Shift` for the difference first − second,
        median_difference, improved, improved_low and improved_high (see `probability_of_improvement`),
        p_adjusted, family (its size), datasets_needed, loo_p_low and loo_p_high (range of
        p when one dataset is left out), p_pratt (p when datasets without a difference are ranked, too),
        excluded (datasets that one of the two did not complete), verdict. With `joint` also mean_difference,
        mean_low and mean_high (its simultaneous interval) and p_flips (the unadjusted p of the mean). A pair
        without a dataset counts in the family and has no p.
    """
    table = []
    means = paired(means)
    for first, second in family(list(means.means.columns), HOLM if joint is None else MAX_T):
        differences = (every := means.difference(first, second)).dropna()
        improved = probability_of_improvement(int((differences > 0).sum()), len(differences), alpha)
        left_out = leave_one_out_p(differences) if len(differences) > 1 else []
        table.append(
            {
                "first": first,
                "second": second,
                **asdict(signed_rank(differences)),
                "median_difference": float(differences.median()),
                "mean_difference": float(differences.mean()),
                **asdict(hodges_lehmann(differences, 1 - alpha)),
                **dict(zip(_IMPROVED, improved, strict=True)),
                "loo_p_low": min(left_out, default=float("nan")),
                "loo_p_high": max(left_out, default=float("nan")),
                "p_pratt": pratt_p(differences),
                "excluded": ", ".join(name for name in every.index[every.isna()]),
            }
        )
    frame = pd.DataFrame(table)
    if not table:
        return frame
    frame = _adjusted(frame, also_tested, joint)
    # The smallest p of max-t is that of one test, however many there are.
    multiplied = len(frame) + len(also_tested) if joint is None else 1
    direction = frame["w_plus"] - frame["w_minus"] if joint is None else frame["mean_difference"]
    frame["datasets_needed"] = datasets_needed(multiplied, alpha)
    frame["verdict"] = [
        verdict(row["p_adjusted"], sign, row["n"], row["n_zero"], multiplied, alpha, unit=unit)
        for row, sign in zip(frame.to_dict("records"), direction, strict=True)
    ]
    untested = frame["n"] == 0
    lost = ["p", "smallest_p", "p_adjusted", "p_pratt", "rank_biserial"]
    frame.loc[untested, [*lost, *(["p_flips"] if joint else [])]] = float("nan")
    return frame


def _adjusted(frame: pd.DataFrame, also_tested: Sequence[float], joint: MaxTFamily | None) -> pd.DataFrame:
    """Add p_adjusted and family, and with max-t the tests of the means.

    Parameters
    ----------
    frame : DataFrame
        A row for each pair.
    also_tested : sequence of float
        The p-values of other tests that belong to the family.
    joint : MaxTFamily or None
        The tests by max-t; None for Holm's method.
    """
    size = len(frame) + len(also_tested)
    if joint is None:
        adjusted = holm(np.array([*frame["p"], *also_tested]))[: len(frame)]
        return frame.drop(columns="mean_difference").assign(p_adjusted=adjusted, family=size)
    return frame.assign(
        mean_low=joint.low,
        mean_high=joint.high,
        p_flips=joint.p_flips,
        p_adjusted=joint.p_adjusted,
        family=size,
    )


def pair_differences(means: PairedMeans) -> pd.DataFrame:
    """Return the differences of the pairs that max-t tests, by unit (rows) and number of the pair (columns).

    Parameters
    ----------
    means : PairedMeans
        Mean scores as tests compare them.
    """
    pairs = family(list(means.means.columns), MAX_T)
    each = {number: means.difference(*pair) for number, pair in enumerate(pairs)}
    return pd.DataFrame(each, index=means.means.index)


def verdict(
    p: float,
    direction: float,
    n: int,
    n_zero: int,
    size: int,
    alpha: float = ALPHA,
    verdicts: tuple[str, str] = (HIGHER, LOWER),
    unit: str = "dataset",
) -> str:
    """Return the verdict of a test in words.

    Parameters
    ----------
    p : float
        Adjusted p-value.
    direction : float
        Positive if a small p means the first of `verdicts`, negative for the second.
    n, n_zero : int
        Number of datasets, and of those without a difference.
    size : int
        Size of the family of tests.
    alpha : float
        Level of the tests.
    verdicts : (str, str)
        The verdicts for a positive and for a negative direction.
    unit : str
        Unit that is counted, "dataset" or "family".
    """
    if n == 0:
        return NO_DATA
    if p <= alpha:
        return verdicts[0] if direction > 0 else verdicts[1]
    units = {"dataset": "datasets", "family": "families"}[unit]
    times = f", times {size} comparisons" if size > 1 else ""
    if size * smallest_p(n) > alpha:
        return (
            f"cannot be decided: with {n} {unit if n == 1 else units} the smallest attainable p "
            f"is {_power(n)}{times}"
        )
    if n_zero == n:
        return f"{NO_EVIDENCE}: none of {n} {units} differs"
    k = n - n_zero
    if size * smallest_p(k) > alpha:
        return (
            f"{NO_EVIDENCE}: only {k} of {n} {units} {'differs' if k == 1 else 'differ'}; the smallest "
            f"attainable p is {_power(k)}{times}"
        )
    return NO_EVIDENCE


def _power(n: int) -> str:
    return f"2^(1−{n}) = {smallest_p(n):g}"


def omnibus(means: PairedMeans) -> Friedman | None:
    """Return the Friedman test over complete units; None below three arms or two units.

    Parameters
    ----------
    means : PairedMeans
        Mean scores as tests compare them.
    """
    complete = means.means.dropna()
    return friedman(means) if complete.shape[1] > 2 and len(complete) > 1 else None


def of_different_solvers(arms: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether no two arms are settings of one solver: of one name, or of one class.

    Parameters
    ----------
    arms : mapping of str to mapping
        Recorded descriptions of the arms, by name. A pipeline is no class of its own.
    """
    names = [description.get("solver", arm) for arm, description in arms.items()]
    classes = [str(each["target"]) for each in arms.values() if each.get("target")]
    own = [name for name in classes if not name.endswith("Pipeline")]
    return len({*names}) == len(names) and len({*own}) == len(own)


def mean_ranks(means: PairedMeans) -> pd.DataFrame:
    """Return every arm's mean rank over complete units, best first. Columns: solver, mean_rank, n.

    Parameters
    ----------
    means : PairedMeans
        Mean scores as tests compare them.
    """
    complete = means.means.dropna()
    if complete.empty or complete.shape[1] < 2:
        return pd.DataFrame()
    mean = ranks(means).mean().sort_values(kind="stable")
    return pd.DataFrame({"solver": mean.index, "mean_rank": mean.to_numpy(), "n": len(complete)})


def cliques(order: list[str], tests: pd.DataFrame) -> list[tuple[int, int]]:
    """Return the maximal runs of rank-ordered arms between which no test of the family found a difference.

    Parameters
    ----------
    order : list of str
        Arms by mean rank.
    tests : DataFrame
        The table of `pairwise`; all pairs must be in it.

    Returns
    -------
    list of (int, int)
        First and last position of each run, at least two arms long.
    """
    found = tests[tests["verdict"].isin([HIGHER, LOWER])]
    return runs_alike(order, set(map(frozenset, zip(found["first"], found["second"], strict=True))))


def runs_alike(order: Sequence[str], different: Set[frozenset[str]]) -> list[tuple[int, int]]:
    """Return the maximal runs of arms of which no two differ.

    Parameters
    ----------
    order : sequence of str
        Arms by mean rank.
    different : set of frozenset of str
        Pairs of arms that differ.

    Returns
    -------
    list of (int, int)
        First and last position of each run, at least two arms long, in ascending order.
    """
    alike = {
        (first, last)
        for first, last in combinations(range(len(order)), 2)
        if different.isdisjoint(map(frozenset, combinations(order[first : last + 1], 2)))
    }
    return sorted((i, j) for i, j in alike if not {(i - 1, j), (i, j + 1)} & alike)
