"""Tests of several mean differences at once, by flipping the signs of whole units, and their intervals."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor

import numpy as np
import pandas as pd

from orchestrator.analysis.signed_rank import DECIMALS

ALL_FLIPS_UP_TO = 16
"""Largest number of units for which all sign patterns are counted; above it `FLIPS` are drawn."""

FLIPS = 99_999
"""Number of random sign patterns."""

_LARGEST_BLOCK = 2_000_000
"""Largest number of statistics that are computed at a time."""

_ROUND_OFF = 1e-9
"""Difference of two statistics below which they are equal."""


@dataclass(frozen=True)
class FlipTests:
    """The tests of several comparisons over the same units.

    Attributes
    ----------
    t : ndarray of shape (m,)
        Student's t of the mean difference; infinite if all differences are equal, NaN without units.
    p : ndarray of shape (m,)
        Unadjusted two-sided p-values.
    single_step, p_adjusted : ndarray of shape (m,)
        Adjusted p-values, of one step and of the step-down method.
    """

    t: np.ndarray
    p: np.ndarray
    single_step: np.ndarray
    p_adjusted: np.ndarray


def max_t_means(differences: np.ndarray) -> FlipTests:
    """Test which mean differences are not zero, by the step-down max-t of Westfall and Young (1993).

    Under the null hypothesis a unit's row of differences and the row with all signs changed are equally
    likely. The statistic of a comparison is |Σd|/√Σd², which orders sign patterns as |t| does and is at most
    √n. p counts the patterns in which the largest statistic reaches the observed one. Comparisons that are
    correlated, or that have no extreme value, therefore cost little power. The smallest p is 2^(1−n) for any
    number of comparisons. All 2^(n−1) pairs of opposite patterns are counted for up to 16 units. For more
    units, B = 99,999 random patterns are drawn with a fixed seed, and p is (c + 1)/(B + 1).

    Parameters
    ----------
    differences : ndarray of shape (n, m)
        Differences of units (rows) in comparisons (columns). NaN marks a unit that a comparison lacks. A
        comparison with infinite differences, which are bounds, is tested by its signed ranks.

    Returns
    -------
    FlipTests
        A comparison without units has p-values of 1.

    References
    ----------
    P. H. Westfall and S. S. Young (1993), *Resampling-Based Multiple Testing*, Wiley; B. Phipson and G. K.
    Smyth (2010), Permutation p-values should never be zero, *Statistical Applications in Genetics and
    Molecular Biology* 9.
    """
    values = _scored(np.round(np.asarray(differences, dtype=float), DECIMALS))
    sizes = (~np.isnan(values)).sum(axis=0)
    scaled = _normed(values)
    observed = np.abs(scaled.sum(axis=0))
    single, down, alone, total = step_down(scaled, observed)
    return FlipTests(_student(observed, scaled.sum(axis=0), sizes), alone / total, single / total, down)


def step_down(scaled: np.ndarray, observed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Count the sign patterns that reach the observed statistics.

    Parameters
    ----------
    scaled : ndarray of shape (n, m)
        Values whose absolute sums are the statistics.
    observed : ndarray of shape (m,)
        The statistics of the data.

    Returns
    -------
    single : ndarray of shape (m,)
        Number of patterns in which the largest of all statistics reaches the observed one.
    p_adjusted : ndarray of shape (m,)
        The step-down p-values.
    alone : ndarray of shape (m,)
        Number of patterns in which the same comparison reaches its observed statistic.
    total : int
        Number of patterns.
    """
    n, m = scaled.shape
    order = np.argsort(observed, kind="stable")
    values, least = scaled[np.lexsort(scaled.T)][:, order], observed[order] - _ROUND_OFF
    counts, total = np.zeros((3, m)), 0
    for signs in flips(n, max(1, _LARGEST_BLOCK // max(1, m))):
        each = np.abs(signs @ values)
        counts[2] += (each >= least).sum(axis=0)
        # The largest over this comparison and those with a smaller statistic.
        largest = np.maximum.accumulate(each, axis=1)
        counts[1] += (largest >= least).sum(axis=0)
        counts[0] += (largest[:, -1:] >= least).sum(axis=0)
        total += len(signs)
    found = np.empty_like(counts)
    counts[1] = np.maximum.accumulate(counts[1, ::-1] / total)[::-1]
    found[:, order] = counts
    return found[0], found[1], found[2], total


def joint_p(differences: np.ndarray) -> float:
    """Return the p of the hypothesis that no mean difference departs from zero: the smallest adjusted one.

    Parameters
    ----------
    differences : ndarray of shape (n, m)
        Differences of units (rows) in comparisons (columns); NaN marks a missing unit.
    """
    return float(max_t_means(differences).p_adjusted.min(initial=1.0))


def simultaneous_intervals(differences: np.ndarray, alpha: float) -> np.ndarray:
    """Return intervals of the mean differences that hold together with confidence 1 − α.

    An interval has every shift at which the statistic of max-t does not exceed its critical value. That is
    the (1 − α) quantile of the largest statistic under the sign patterns of the differences from their means.
    With d̄, s and c for mean, standard deviation and critical value, its ends are
    d̄ ± c·s·√((n − 1)/(n(n − c²))).

    Parameters
    ----------
    differences : ndarray of shape (n, m)
        Differences of units (rows) in comparisons (columns); NaN marks a missing unit.
    alpha : float
        One minus the simultaneous confidence.

    Returns
    -------
    ndarray of shape (2, m)
        Lower and upper ends; NaN for a comparison of too few units, or with infinite differences.
    """
    values = np.round(np.asarray(differences, dtype=float), DECIMALS)
    sizes = (~np.isnan(values)).sum(axis=0)
    usable = (2.0 ** (1 - sizes) <= alpha) & ~np.isinf(values).any(axis=0)
    ends = np.full((2, values.shape[1]), np.nan)
    if not usable.any():
        return ends
    kept, n = values[:, usable], sizes[usable]
    means = np.nanmean(kept, axis=0)
    is_constant = np.nanmax(kept, axis=0) == np.nanmin(kept, axis=0)
    centred = np.where(is_constant & ~np.isnan(kept), 0.0, kept - means)  # without the rounding of the mean
    squares = np.nansum(centred**2, axis=0)
    limit = critical_statistic(centred, alpha)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(n > limit**2, limit * np.sqrt(squares / (n * (n - limit**2))), np.inf)
    reach = np.where(squares == 0, 0.0, reach)
    ends[:, usable] = means - reach, means + reach
    return ends


def critical_statistic(centred: np.ndarray, alpha: float) -> float:
    """Return the smallest statistic that the largest one exceeds with a probability of at most α.

    Parameters
    ----------
    centred : ndarray of shape (n, m)
        Differences from the means of their comparisons; NaN marks a missing unit.
    alpha : float
        The probability.
    """
    scaled = _normed(centred)
    scaled = scaled[np.lexsort(scaled.T)]
    largest = [
        np.abs(signs @ scaled).max(axis=1)
        for signs in flips(len(scaled), max(1, _LARGEST_BLOCK // scaled.shape[1]))
    ]
    ordered = np.sort(np.concatenate(largest))[::-1]
    return float(ordered[floor(alpha * len(ordered) + _ROUND_OFF)])


def flips(n: int, size: int) -> Iterator[np.ndarray]:
    """Yield sign patterns (size, n) in blocks, one of each pair of opposite patterns.

    Parameters
    ----------
    n : int
        Number of units.
    size : int
        Largest number of patterns in a block.

    Yields
    ------
    ndarray (size, n)
        Signs, +1 or −1.
    """
    if n <= ALL_FLIPS_UP_TO:
        bits = np.arange(2 ** max(0, n - 1))
        for start in range(0, len(bits), size):
            yield 1.0 - 2.0 * ((bits[start : start + size, np.newaxis] >> np.arange(n)) & 1)
        return
    generator = np.random.default_rng(0)
    yield np.ones((1, n))  # the data themselves
    for start in range(0, FLIPS, size):
        yield generator.integers(0, 2, (min(size, FLIPS - start), n)) * 2.0 - 1.0


def _scored(values: np.ndarray) -> np.ndarray:
    """Replace each comparison with infinite differences by its signed mid-ranks.

    Parameters
    ----------
    values : ndarray of shape (n, m)
        Differences.
    """
    bounds = np.isinf(values).any(axis=0)
    if not bounds.any():
        return values
    ranks = pd.DataFrame(np.abs(values[:, bounds])).rank().to_numpy() * np.sign(values[:, bounds])
    scored = values.copy()
    scored[:, bounds] = ranks
    return scored


def _normed(values: np.ndarray) -> np.ndarray:
    """Divide each comparison by the root of its sum of squares, and set missing units to zero.

    Parameters
    ----------
    values : ndarray of shape (n, m)
        Differences; NaN marks a missing unit.
    """
    filled = np.nan_to_num(values, nan=0.0)
    norms = np.sqrt((filled**2).sum(axis=0))
    return np.asarray(filled / np.where(norms > 0, norms, 1.0))


def _student(statistic: np.ndarray, sums: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return Student's t of the statistics |Σd|/√Σd², with the sign of the sum.

    Parameters
    ----------
    statistic : ndarray of shape (m,)
        The statistics.
    sums : ndarray of shape (m,)
        Values with the signs of the mean differences.
    sizes : ndarray of shape (m,)
        Numbers of units.
    """
    rest = sizes - statistic**2
    with np.errstate(divide="ignore", invalid="ignore"):
        size = statistic * np.sqrt(np.where(rest > _ROUND_OFF, (sizes - 1) / rest, np.inf))
    return np.where(sizes > 0, np.where(statistic > 0, np.sign(sums) * size, 0.0), np.nan)
