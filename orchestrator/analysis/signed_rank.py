"""The exact Wilcoxon signed-rank test over datasets, and the Hodges–Lehmann estimate."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

DECIMALS = 12
"""Number of decimals to which differences are rounded. Round-off must not break ties or hide zeros."""


class FoldsAreNotIndependent(ValueError):
    """A test was asked to treat the folds of one dataset as independent observations."""


@dataclass(frozen=True)
class SignedRank:
    """A two-sided exact Wilcoxon signed-rank test, conditional on the observed ties.

    Attributes
    ----------
    n, n_zero : int
        Number of datasets, and of those without a difference.
    wins, losses : int
        Number of datasets with a positive and with a negative difference.
    w_plus, w_minus : float
        Sums of the mid-ranks of the positive and of the negative differences.
    p, smallest_p : float
        The two-sided p, and the smallest one that the number of non-zero differences allows.
    rank_biserial : float
        Matched-pairs rank-biserial correlation, (W⁺ − W⁻)/(W⁺ + W⁻), in [−1, 1].
    """

    n: int
    n_zero: int
    wins: int
    losses: int
    w_plus: float
    w_minus: float
    p: float
    smallest_p: float
    rank_biserial: float


@dataclass(frozen=True)
class Shift:
    """The Hodges–Lehmann estimate of a paired difference, with a distribution-free interval.

    Attributes
    ----------
    estimate : float
        Median of the Walsh averages; NaN without observations.
    low, high : float or None
        The interval's ends; None when there are too few datasets for the requested confidence.
    confidence : float or None
        The confidence attained, at least the one requested; None when there is no interval.
    """

    estimate: float
    low: float | None
    high: float | None
    confidence: float | None


def signed_rank(differences: pd.Series) -> SignedRank:
    """Test whether paired differences, one for each dataset, are symmetric about zero.

    Zeros are dropped; if all are zero, p is 1. The null distribution is that of the observed mid-ranks
    under all sign patterns (Wilcoxon 1945; Lehmann, *Nonparametrics*, §3.2), so ties need no correction.

    Parameters
    ----------
    differences : Series of float
        Indexed by dataset name; each dataset once. An infinite one ranks above all finite ones.

    Raises
    ------
    FoldsAreNotIndependent
        If a dataset appears more than once.
    ValueError
        If a difference is missing.
    """
    values = rounded(differences)
    nonzero = values[values != 0]
    plus, minus, p = _rank_sums(nonzero)
    return SignedRank(
        n=len(values),
        n_zero=len(values) - len(nonzero),
        wins=int((nonzero > 0).sum()),
        losses=int((nonzero < 0).sum()),
        w_plus=plus / 2,
        w_minus=minus / 2,
        p=p,
        smallest_p=smallest_p(len(nonzero)),
        rank_biserial=(plus - minus) / (plus + minus) if len(nonzero) else 0.0,
    )


def pratt_p(differences: pd.Series) -> float:
    """Return the exact two-sided p where zeros are ranked first and then dropped (Pratt 1959).

    The null distribution is that of the remaining ranks under all sign patterns. Without zeros the test
    equals `signed_rank`.

    Parameters
    ----------
    differences : Series
        Differences of two arms, by dataset.

    References
    ----------
    J. W. Pratt (1959), Remarks on zeros and ties in the Wilcoxon signed rank procedures, *Journal of the
    American Statistical Association* 54.

    Raises
    ------
    FoldsAreNotIndependent, ValueError
        As in `signed_rank`.
    """
    return _rank_sums(rounded(differences))[2]


def leave_one_out_p(differences: pd.Series) -> list[float]:
    """Return the p of `signed_rank` with each dataset left out in turn.

    Parameters
    ----------
    differences : Series
        Differences of two arms, by dataset.
    """
    values = rounded(differences)
    others = (np.delete(values, index) for index in range(len(values)))
    return [_rank_sums(rest[rest != 0])[2] for rest in others]


def _rank_sums(values: np.ndarray) -> tuple[int, int, float]:
    """Return twice W⁺ and twice W⁻, which are integers even with mid-ranks, and the two-sided p.

    Zeros among the values take ranks, which have no sign and count in neither sum.

    Parameters
    ----------
    values : ndarray
        Differences, which may include zeros.
    """
    _, index, ties = np.unique(np.abs(values), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(ties) - ties + 1)[index]
    plus, minus = int(doubled[values > 0].sum()), int(doubled[values < 0].sum())
    signed = tuple(sorted(doubled[values != 0].tolist()))
    return plus, minus, min(1.0, 2 * float(_cumulative(signed)[min(plus, minus)]))


def smallest_p(n: int) -> float:
    """Return the smallest two-sided p that n non-zero differences can give: 2^(1−n), or 1 if n is 0.

    Parameters
    ----------
    n : int
        Number of differences that are not zero.
    """
    return min(1.0, 2.0 ** (1 - n))


def datasets_needed(family: int, alpha: float = 0.05) -> int:
    """Return the number of datasets with which the best of `family` Holm-adjusted tests can reach `alpha`.

    Parameters
    ----------
    family : int
        Number of tests of the family.
    alpha : float, default=0.05
        Level of the tests.
    """
    n = 1
    while family * smallest_p(n) > alpha:
        n += 1
    return n


def hodges_lehmann(differences: pd.Series, confidence: float = 0.95) -> Shift:
    """Estimate the typical difference between two arms, with its distribution-free interval.

    The interval runs between two order statistics of the Walsh averages (Lehmann, *Nonparametrics*,
    §4.4–4.5). Its confidence takes few values, so the attained one is returned; ties make it conservative.

    Parameters
    ----------
    differences : Series
        Differences of two arms, by dataset.
    confidence : float, default=0.95
        Requested confidence of the interval.

    Raises
    ------
    FoldsAreNotIndependent, ValueError
        As in `signed_rank`.
    """
    values = rounded(differences)
    n = len(values)
    if n == 0:
        return Shift(float("nan"), None, None, None)
    first, second = np.triu_indices(n)
    walsh = np.sort((values[first] + values[second]) / 2)
    estimate = float(np.median(walsh))
    # Without the c smallest and the c largest Walsh averages, the interval misses the true difference with
    # probability 2·P(W ≤ c).
    cut = critical_value(n, 1 - confidence)
    if cut is None:
        return Shift(estimate, None, None, None)
    return Shift(estimate, float(walsh[cut]), float(walsh[-1 - cut]), float(1 - _two_sided(n)[cut]))


def critical_value(n: int, level: float) -> int | None:
    """Return the largest c with 2·P(W ≤ c) ≤ level for n differences without ties; None if there is none.

    Parameters
    ----------
    n : int
        Number of differences.
    level : float
        Two-sided level of the test.
    """
    allowed = np.flatnonzero(_two_sided(n) <= level + 1e-12)
    return int(allowed[-1]) if len(allowed) else None


def _two_sided(n: int) -> np.ndarray:
    """Return 2·P(W ≤ c) for c = 0, 1, … and the ranks 1 … n.

    Parameters
    ----------
    n : int
        Number of differences.
    """
    return 2 * _cumulative(tuple(range(1, n + 1)))


def rounded(differences: pd.Series) -> np.ndarray:
    """Return the differences as they are compared, one for each dataset; see `DECIMALS`.

    Parameters
    ----------
    differences : Series
        Differences of two arms, by dataset.

    Raises
    ------
    FoldsAreNotIndependent, ValueError
        As in `signed_rank`.
    """
    index = differences.index
    if index.has_duplicates:
        raise FoldsAreNotIndependent(
            f"expected one difference per dataset, found several for {index[index.duplicated()][0]!r}; folds "
            "of one dataset share their training rows, so a signed-rank test over them is not valid: average "
            "over the folds first"
        )
    values = differences.to_numpy(dtype=float, na_value=np.nan)
    if np.isnan(values).any():
        name = index[np.isnan(values)][0]
        raise ValueError(f"expected a difference for every dataset, found none for {name!r}; leave it out")
    return np.round(values, DECIMALS)


@lru_cache(maxsize=256)
def _cumulative(ranks: tuple[int, ...]) -> np.ndarray:
    """Return P(sum of the ranks with positive sign ≤ s) for s = 0 … sum, each sign being a fair coin.

    Parameters
    ----------
    ranks : tuple[int, ...]
        Twice the ranks, which are integers.
    """
    probability = np.zeros(sum(ranks) + 1)
    probability[0] = 1.0
    for rank in ranks:
        shifted = np.zeros_like(probability)
        shifted[rank:] = probability[: len(probability) - rank]
        # Multiples of 2^−n are exact in float64 up to 52 datasets. For more datasets the error is 1e-15.
        probability = (probability + shifted) / 2
    return np.cumsum(probability)
