"""Families of tests, ranks, and the Friedman test."""

from dataclasses import dataclass
from itertools import permutations
from math import factorial

import numpy as np
import pandas as pd

from orchestrator.analysis.paired_means import PairedMeans, paired

PERMUTATIONS = 99_999
"""Largest number of random permutations of a Friedman test that cannot be computed exactly."""

_LARGEST_SAMPLE = 50_000_000
"""Largest number of ranks that are permuted for a Friedman test, which takes about four seconds."""

_LARGEST_STEP = 2_000_000
"""Largest number of rank-sum vectors per dataset in an exact Friedman test, which takes about a second."""


def holm(p_values: np.ndarray) -> np.ndarray:
    """Return Holm's step-down adjusted p-values of one family, clipped at 1 and monotone (Holm 1979).

    Parameters
    ----------
    p_values : ndarray
        Unadjusted p-values of one family of tests.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * p_values[order]))
    return adjusted


def holm_levels(p_values: np.ndarray, alpha: float) -> np.ndarray:
    """Return the level at which Holm's method tests each hypothesis of a family.

    The i-th smallest of m p-values is tested at α/(m − i + 1). After the first that is larger, all others
    stay at its level. A two-sided interval of this level therefore excludes 0 exactly if Holm's method
    rejects the hypothesis of no difference (Serlin 1993). Such intervals have no simultaneous confidence
    level.

    Parameters
    ----------
    p_values : ndarray
        Unadjusted p-values of one family of tests.
    alpha : float
        Level of the family.

    References
    ----------
    R. C. Serlin (1993), Confidence intervals and the scientific method: a case for Holm on the range,
    *Journal of Experimental Education* 61.
    """
    order = np.argsort(p_values, kind="stable")
    levels = alpha / np.arange(len(p_values), 0, -1)
    if (kept := p_values[order] > levels).any():
        first = int(np.argmax(kept))
        levels[first:] = levels[first]
    found = np.empty_like(levels)
    found[order] = levels
    return found


@dataclass(frozen=True)
class Friedman:
    """The omnibus test of k ≥ 3 arms over N datasets, by permutations.

    Attributes
    ----------
    n, k : int
        Numbers of datasets and of arms.
    chi2 : float
        Friedman's statistic, corrected for ties.
    statistic : float
        (N − 1)χ² / (N(k − 1) − χ²) of Iman and Davenport (1980); infinite if all datasets rank the arms in
        the same order. It is descriptive: p is not computed from it.
    df : tuple of int
        Degrees of freedom of the F distribution that the statistic is often compared with.
    p : float
        Probability of a χ² as large or larger when the ranks are permuted within every dataset.
    n_permutations : int or None
        Number of random permutations that estimate p; None if p is exact.
    """

    n: int
    k: int
    chi2: float
    statistic: float
    df: tuple[int, int]
    p: float
    n_permutations: int | None


def ranks(scores: PairedMeans | pd.DataFrame) -> pd.DataFrame:
    """Rank the arms (columns) on every complete unit (row), 1 for the highest score, mid-ranks for ties.

    Parameters
    ----------
    scores : PairedMeans or DataFrame
        Mean scores for the tests.
    """
    return paired(scores).ranks()


def friedman(scores: PairedMeans | pd.DataFrame) -> Friedman:
    """Test whether any arm differs from the others.

    Parameters
    ----------
    scores : PairedMeans or DataFrame (N units, k arms)
        One mean score per unit and arm; units that an arm has not completed are left out.

    Raises
    ------
    ValueError
        If there are fewer than three arms or two datasets.
    """
    rank = ranks(scores).to_numpy()
    n, k = rank.shape
    if k < 3 or n < 2:
        raise ValueError(f"a Friedman test needs at least 3 arms and 2 datasets, found {k} and {n}")
    df = (k - 1, (k - 1) * (n - 1))
    # Twelve times the squared deviations of all ranks without ties, which is an integer.
    untied = n * k * (k**2 - 1)
    correction = 1 - (untied - 12 * float(((rank - (k + 1) / 2) ** 2).sum())) / untied
    if correction < 1e-12:
        return Friedman(n, k, 0.0, 0.0, df, 1.0, None)
    chi2 = 12 * n / (k * (k + 1)) * float(((rank.mean(axis=0) - (k + 1) / 2) ** 2).sum()) / correction
    rest = n * (k - 1) - chi2
    statistic = (n - 1) * chi2 / rest if rest > 1e-9 else float("inf")
    # Twice a mid-rank is an integer, so sums compare exactly.
    doubled = np.rint(2 * rank).astype(np.int64)
    p, n_permutations = _exact_p(doubled), None
    if p is None:
        n_permutations = min(PERMUTATIONS, max(999, _LARGEST_SAMPLE // (n * k)))
        p = _sampled_p(doubled, n_permutations)
    return Friedman(n, k, chi2, statistic, df, p, n_permutations)


def _exact_p(ranks: np.ndarray) -> float | None:
    """Return the permutation p by dynamic programming over vectors of rank sums; None if they are too many.

    Every dataset's ranks are equally likely in any order. Vectors that differ only in the order of the arms
    are therefore equally likely, too, and one sorted vector represents all of them.

    Parameters
    ----------
    ranks : ndarray
        Ranks of units (rows) and arms (columns).
    """
    n, k = ranks.shape
    base = 2 * k * n + 1
    if factorial(k) > _LARGEST_STEP or base**k > np.iinfo(np.int64).max:
        return None
    powers = base ** np.arange(k, dtype=np.int64)
    states = np.sort(ranks[0])[np.newaxis]
    probability: np.ndarray = np.ones(1)
    for row in ranks[1:]:
        orders, multiplicity = np.unique(np.array(list(permutations(row))), axis=0, return_counts=True)
        if len(states) * len(orders) > _LARGEST_STEP:
            return None
        reached = np.sort((states[:, np.newaxis] + orders).reshape(-1, k), axis=1)
        weights = np.outer(probability, multiplicity / factorial(k)).ravel()
        _, first, index = np.unique(reached @ powers, return_index=True, return_inverse=True)
        states, probability = reached[first], np.bincount(index, weights)
    extreme = (states**2).sum(axis=1) >= (ranks.sum(axis=0) ** 2).sum()
    return min(1.0, float(probability[extreme].sum()))


def _sampled_p(ranks: np.ndarray, number: int) -> float:
    """Estimate p by B random permutations of the ranks within datasets.

    If c of them are at least as extreme as the data, p is (c + 1)/(B + 1). The ranks are sorted first, so
    that the same random numbers serve any order of datasets and arms.

    Parameters
    ----------
    ranks : ndarray
        Ranks of units (rows) and arms (columns).
    number : int
        Number of random permutations.
    """
    generator = np.random.default_rng(0)
    k = ranks.shape[1]
    rows = np.sort(ranks, axis=1)
    sums = np.zeros((number, k), dtype=np.int64)
    for row in rows[np.lexsort(rows.T)]:
        sums += generator.permuted(np.broadcast_to(row, sums.shape), axis=1)
    extreme = (sums**2).sum(axis=1) >= (ranks.sum(axis=0) ** 2).sum()
    return float((np.count_nonzero(extreme) + 1) / (number + 1))
