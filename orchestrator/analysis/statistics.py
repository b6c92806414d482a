"""Standard errors, families of tests and ranks: what surrounds the signed-rank test."""

from dataclasses import dataclass
from itertools import permutations
from math import factorial, sqrt

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata

from orchestrator.analysis.signed_rank import DECIMALS

PERMUTATIONS = 99_999
"""Random permutations of a Friedman test that has too many to be counted one by one; fewer of a large one."""

_LARGEST_SAMPLE = 50_000_000
"""Ranks that are permuted for it, all in all: about four seconds."""

_LARGEST_STEP = 2_000_000
"""Rank-sum vectors that one dataset may add to an exact Friedman test: about a second."""


def standard_error(scores: np.ndarray) -> float:
    """Return σ/√n with the population σ, as in Strack (2013), eq. 7.4: descriptive, NaN below two scores."""
    if len(scores) < 2:
        return float("nan")
    return float(np.std(scores)) / sqrt(len(scores))


def corrected_standard_error(scores: np.ndarray, test_share: float) -> float:
    """Return the standard error that allows for folds sharing training rows: s·√(1/n + n_test/n_train).

    Nadeau & Bengio, *Inference for the generalization error*, 2003. One 5-fold cross-validation gives
    1.5 times the naive s/√n.

    Parameters
    ----------
    scores : ndarray (n_folds,)
    test_share : float
        n_test / n_train of a fold, 0.25 for five folds.
    """
    if len(scores) < 2:
        return float("nan")
    return float(np.std(scores, ddof=1)) * sqrt(1 / len(scores) + test_share)


def holm(p_values: np.ndarray) -> np.ndarray:
    """Return Holm's step-down adjusted p-values of one family, clipped at 1 and monotone (Holm 1979)."""
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * p_values[order]))
    return adjusted


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
        (N − 1)χ² / (N(k − 1) − χ²), as Iman and Davenport (1980) have it; infinite if all datasets order
        the arms alike. A description: p does not come from it.
    df : tuple of int
        Degrees of freedom of the F distribution that the statistic is often compared with.
    p : float
        Probability of a χ² as large or larger when the ranks are permuted within every dataset.
    n_permutations : int or None
        How many random permutations estimated p; None if p is exact.
    """

    n: int
    k: int
    chi2: float
    statistic: float
    df: tuple[int, int]
    p: float
    n_permutations: int | None


def ranks(scores: pd.DataFrame) -> pd.DataFrame:
    """Rank the arms (columns) on every dataset (row), 1 for the highest score, mid-ranks for ties."""
    values = np.round(scores.to_numpy(dtype=float), DECIMALS)
    return pd.DataFrame(rankdata(-values, axis=1), index=scores.index, columns=scores.columns)


def friedman(scores: pd.DataFrame) -> Friedman:
    """Test whether any arm differs from the others.

    Parameters
    ----------
    scores : DataFrame (N datasets, k arms)
        Complete: one mean score per dataset and arm.

    Raises
    ------
    ValueError
        If there are fewer than three arms or two datasets.
    """
    n, k = scores.shape
    if k < 3 or n < 2:
        raise ValueError(f"a Friedman test needs at least 3 arms and 2 datasets, found {k} and {n}")
    rank = ranks(scores).to_numpy()
    tie_sizes = [np.unique(row, return_counts=True)[1] for row in rank]
    df = (k - 1, (k - 1) * (n - 1))
    correction = 1 - sum(float((t**3 - t).sum()) for t in tie_sizes) / (n * k * (k**2 - 1))
    if correction < 1e-12:
        return Friedman(n, k, 0.0, 0.0, df, 1.0, None)
    chi2 = 12 * n / (k * (k + 1)) * float(((rank.mean(axis=0) - (k + 1) / 2) ** 2).sum()) / correction
    rest = n * (k - 1) - chi2
    statistic = (n - 1) * chi2 / rest if rest > 1e-9 else float("inf")
    # Twice a mid-rank is a whole number, so that sums compare exactly.
    doubled = np.rint(2 * rank).astype(np.int64)
    p, n_permutations = _exact_p(doubled), None
    if p is None:
        n_permutations = min(PERMUTATIONS, max(999, _LARGEST_SAMPLE // (n * k)))
        p = _sampled_p(doubled, n_permutations)
    return Friedman(n, k, chi2, statistic, df, p, n_permutations)


def _exact_p(ranks: np.ndarray) -> float | None:
    """Return the permutation p by dynamic programming over vectors of rank sums; None if they are too many.

    Every dataset's ranks are equally likely in any order, so vectors that differ only in the order of the
    arms are equally likely too: one sorted vector stands for all of them.
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
        _, first, place = np.unique(reached @ powers, return_index=True, return_inverse=True)
        states, probability = reached[first], np.bincount(place, weights)
    extreme = (states**2).sum(axis=1) >= (ranks.sum(axis=0) ** 2).sum()
    return min(1.0, float(probability[extreme].sum()))


def _sampled_p(ranks: np.ndarray, number: int) -> float:
    """Return (c + 1)/(B + 1), c of B random permutations within datasets being as extreme as the data.

    The ranks are sorted first, so that the same random numbers serve any order of datasets and arms.
    """
    generator = np.random.default_rng(0)
    k = ranks.shape[1]
    rows = np.sort(ranks, axis=1)
    sums = np.zeros((number, k), dtype=np.int64)
    for row in rows[np.lexsort(rows.T)]:
        sums += generator.permuted(np.broadcast_to(row, sums.shape), axis=1)
    extreme = (sums**2).sum(axis=1) >= (ranks.sum(axis=0) ** 2).sum()
    return float((np.count_nonzero(extreme) + 1) / (number + 1))


def unseen_violators(draws: int, confidence: float) -> float:
    """Bound the share of points that violate optimality when `draws` random points showed none.

    The upper end of the Agresti–Coull interval for zero successes: Strack (2013), eq. 5.1 and Table 5.1.

    Parameters
    ----------
    draws : int
        Number of random draws without a violator, positive.
    confidence : float
        Two-sided confidence level in (0, 1).
    """
    if draws < 1 or not 0 < confidence < 1:
        raise ValueError(f"expected draws >= 1 and 0 < confidence < 1, found {draws} and {confidence}")
    z = float(norm.ppf((1 + confidence) / 2))
    n = draws + z * z
    centre = z * z / (2 * n)
    return centre + z * sqrt(centre * (1 - centre) / n)
