"""The declared family of pairwise tests, the omnibus test and the mean ranks."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations

import numpy as np
import pandas as pd

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

ALPHA = 0.05
ALL_PAIRS_UP_TO = 4
"""Largest number of arms for which all pairs are tested. With more, each is tested against the first only,
because Holm's adjustment grows with the number of tests."""

HIGHER = "higher"
LOWER = "lower"
NO_EVIDENCE = "no evidence of a difference"
NO_DATA = "no dataset in common yet"


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


def family(arms: list[str]) -> list[tuple[str, str]]:
    """Return the tested pairs: all pairs for few arms, else every arm against the first.

    Parameters
    ----------
    arms : list of str
        Names of the arms, the control first.
    """
    if len(arms) <= ALL_PAIRS_UP_TO:
        return list(combinations(arms, 2))
    return [(arm, arms[0]) for arm in arms[1:]]


def family_size(n_arms: int, times: bool) -> int:
    """Return the number of pairwise tests in a study, including those of times if they are in the family.

    Parameters
    ----------
    n_arms : int
        Number of arms of the study.
    times : bool
        Whether times are tested against the first arm, too.
    """
    pairs = len(family([str(number) for number in range(n_arms)]))
    return pairs + (n_arms - 1 if times else 0)


def pairwise(
    means: PairedMeans | pd.DataFrame,
    also_tested: Sequence[float] = (),
    alpha: float = ALPHA,
    unit: str = "dataset",
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

    Returns
    -------
    DataFrame
        Columns: first, second, the fields of `SignedRank` and `Shift` for the difference first − second,
        median_difference, p_holm, family (its size), datasets_needed, loo_p_low and loo_p_high (range of p
        when one dataset is left out), p_pratt (p when datasets without a difference are ranked, too),
        excluded (datasets that one of the two did not complete), verdict. A pair without a dataset counts in
        the family and has no p.
    """
    table = []
    means = paired(means)
    for first, second in family(list(means.means.columns)):
        differences = (every := means.difference(first, second)).dropna()
        left_out = leave_one_out_p(differences) if len(differences) > 1 else []
        table.append(
            {
                "first": first,
                "second": second,
                **asdict(signed_rank(differences)),
                "median_difference": float(differences.median()),
                **asdict(hodges_lehmann(differences, 1 - alpha)),
                "loo_p_low": min(left_out, default=float("nan")),
                "loo_p_high": max(left_out, default=float("nan")),
                "p_pratt": pratt_p(differences),
                "excluded": ", ".join(name for name in every.index[every.isna()]),
            }
        )
    frame = pd.DataFrame(table)
    if table:
        size = len(frame) + len(also_tested)
        frame["p_holm"] = holm(np.array([*frame["p"], *also_tested]))[: len(frame)]
        frame["family"] = size
        frame["datasets_needed"] = datasets_needed(size, alpha)
        frame["verdict"] = [
            verdict(
                row["p_holm"], row["w_plus"] - row["w_minus"], row["n"], row["n_zero"], size, alpha, unit=unit
            )
            for row in frame.to_dict("records")
        ]
        untested = frame["n"] == 0
        frame.loc[untested, ["p", "smallest_p", "p_holm", "p_pratt", "rank_biserial"]] = float("nan")
    return frame


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
    different = set(map(frozenset, zip(found["first"], found["second"], strict=True)))
    alike = {
        (first, last)
        for first, last in combinations(range(len(order)), 2)
        if different.isdisjoint(map(frozenset, combinations(order[first : last + 1], 2)))
    }
    return sorted((i, j) for i, j in alike if not {(i - 1, j), (i, j + 1)} & alike)
