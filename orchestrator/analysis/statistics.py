"""Standard errors, families of tests and ranks: what surrounds the signed-rank test."""

from dataclasses import dataclass
from math import factorial, prod, sqrt

import numpy as np
import pandas as pd
from scipy.stats import f as f_distribution
from scipy.stats import norm, rankdata

from orchestrator.analysis.signed_rank import DECIMALS


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
    """The omnibus test of k ≥ 3 arms over N datasets, in the F form of Iman and Davenport (1980).

    Attributes
    ----------
    n, k : int
        Numbers of datasets and of arms.
    chi2 : float
        Friedman's statistic, corrected for ties.
    statistic : float
        (N − 1)χ² / (N(k − 1) − χ²); infinite if all datasets order the arms alike.
    df : tuple of int
        Degrees of freedom of the approximating F distribution.
    p : float
        Approximate, but never below the smallest p that permutations within datasets can give.
    """

    n: int
    k: int
    chi2: float
    statistic: float
    df: tuple[int, int]
    p: float


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
        return Friedman(n, k, 0.0, 0.0, df, 1.0)
    chi2 = 12 * n / (k * (k + 1)) * float(((rank.mean(axis=0) - (k + 1) / 2) ** 2).sum()) / correction
    rest = n * (k - 1) - chi2
    statistic = (n - 1) * chi2 / rest if rest > 1e-9 else float("inf")
    orders = [factorial(k) // prod(factorial(int(size)) for size in t) for t in tie_sizes]
    floor = max(orders) / prod(orders)
    return Friedman(n, k, chi2, statistic, df, max(floor, float(f_distribution.sf(statistic, *df))))


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
