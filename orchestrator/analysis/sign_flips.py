"""Tests of several mean differences at once, by flipping the signs of whole units, and their intervals."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from orchestrator.analysis.signed_rank import DECIMALS

ALL_FLIPS_UP_TO = 16
"""Largest number of units for which all sign patterns are counted; above it `FLIPS` are drawn."""

FLIPS = 99_999
"""Number of random sign patterns."""

_LARGEST_BLOCK = 2_000_000
"""Largest number of statistics that are computed at a time."""

_ROUND_OFF = 1e-9
"""Difference of two statistics below which they are equal."""

_LEVEL = 0.05
"""Default level of the tests."""


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


def max_t_means(differences: np.ndarray, alpha: float = _LEVEL) -> FlipTests:
    """Test which mean differences are not zero, by the step-down max-t of Westfall and Young (1993).

    Under the null hypothesis a unit's row of differences and the row with all signs changed are equally
    likely. The statistic of a comparison is |Σd|/√Σd², which orders sign patterns as |t| does and is at most
    √n. Statistics of different n are compared by the tail probabilities of their Student's t; see
    `_equivalent_statistics`. p counts the patterns in which the largest statistic reaches the observed one.
    Comparisons that are correlated, or that have no extreme value, therefore cost little power. The smallest
    p is 2^(1−n) for any number of comparisons. A comparison of so few units that this exceeds α costs the
    others nothing. All 2^(n−1) pairs of opposite patterns are counted for up to 16 units. For more
    units, B = 99,999 random patterns are drawn with a fixed seed, and p is (c + 1)/(B + 1).

    Parameters
    ----------
    differences : ndarray of shape (n, m)
        Differences of units (rows) in comparisons (columns). NaN marks a unit that a comparison lacks. A
        comparison with infinite differences, which are bounds, is tested by its signed ranks.
    alpha : float, default=0.05
        Level of the tests. p-values depend on it only if comparisons have different numbers of units.

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
    single, down, alone, total = step_down(scaled, observed, sizes, alpha)
    return FlipTests(_student(observed, scaled.sum(axis=0), sizes), alone / total, single / total, down)


def step_down(
    scaled: np.ndarray, observed: np.ndarray, sizes: np.ndarray | None = None, alpha: float = _LEVEL
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Count the sign patterns that reach the observed statistics.

    Parameters
    ----------
    scaled : ndarray of shape (n, m)
        Values whose absolute sums are the statistics.
    observed : ndarray of shape (m,)
        The statistics of the data.
    sizes : ndarray of shape (m,), optional
        Numbers of units, if a statistic is |Σd|/√Σd² and its meaning depends on them. By default, all
        statistics are on one scale.
    alpha : float, default=0.05
        Level of the tests.

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
    sizes = np.zeros(m, dtype=int) if sizes is None else sizes
    groups, least, order = _equivalent_statistics(observed, sizes, alpha)
    values, least, own = scaled[np.lexsort(scaled.T)][:, order], least[:, order] - _ROUND_OFF, observed[order]
    members = groups[:, np.newaxis] == sizes[order]
    counts, total = np.zeros((3, m)), 0
    for signs in flips(n, max(1, _LARGEST_BLOCK // max(1, m))):
        each = np.abs(signs @ values)
        counts[2] += (each >= own - _ROUND_OFF).sum(axis=0)
        down, single = np.zeros(each.shape, dtype=bool), np.zeros(each.shape, dtype=bool)
        for of_group, limits in zip(members, least, strict=True):
            # The largest over this comparison and those with a smaller statistic.
            largest = np.maximum.accumulate(np.where(of_group, each, -1.0), axis=1)
            down |= largest >= limits
            single |= largest[:, -1:] >= limits
        counts[1] += down.sum(axis=0)
        counts[0] += single.sum(axis=0)
        total += len(signs)
    found = np.empty_like(counts)
    counts[1] = np.maximum.accumulate(counts[1, ::-1] / total)[::-1]
    found[:, order] = counts
    return found[0], found[1], found[2], total


def _equivalent_statistics(
    observed: np.ndarray, sizes: np.ndarray, alpha: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each number of units the statistics that are as extreme as the observed ones.

    |Σd|/√Σd² is at most √n, so with it a comparison of few units hardly ever has the largest statistic. With
    Student's t, whose tails are heavier for few units, it often has. Two statistics are therefore equally
    extreme if their t have the same tail probability for normal differences. The tests remain exact, because
    sign patterns are compared by any statistic.

    Parameters
    ----------
    observed : ndarray of shape (m,)
        The statistics of the data.
    sizes : ndarray of shape (m,)
        Number of units of each comparison.
    alpha : float
        Level of the tests. A comparison that cannot reach it is the least extreme.

    Returns
    -------
    groups : ndarray of shape (k,)
        The different numbers of units.
    statistics : ndarray of shape (k, m)
        By number of units and comparison, the statistic that is as extreme as the observed one; infinite if
        none is.
    order : ndarray of shape (m,)
        Positions of the comparisons, the least extreme first.
    """
    groups = np.unique(sizes)
    if len(groups) < 2:
        return groups, observed[np.newaxis], np.argsort(observed, kind="stable")
    t = np.abs(_student(observed, observed, sizes))
    tails = np.where(t > 0, stdtr(np.maximum(sizes - 1, 1), -t), 0.5)
    is_idle = 2.0 ** (1 - sizes) > alpha
    statistics = np.array([_statistic_of(tails, group) for group in groups])
    statistics = np.where(groups[:, np.newaxis] == sizes, observed, statistics)
    statistics[np.ix_(2.0 ** (1 - groups) > alpha, ~is_idle)] = np.inf
    return groups, statistics, np.lexsort((observed, -tails, ~is_idle))


def _statistic_of(tails: np.ndarray, n: int) -> np.ndarray:
    """Return |Σd|/√Σd² of n units whose Student's t has the given tail probabilities.

    Parameters
    ----------
    tails : ndarray
        Probabilities that t exceeds its value, at most one half.
    n : int
        Number of units.
    """
    if n < 2:
        return np.full(tails.shape, float(n))
    t = -stdtrit(n - 1, np.maximum(tails, _SMALLEST_TAIL))
    return np.where(tails > 0, t * np.sqrt(n / (n - 1 + t**2)), np.sqrt(n))


_SMALLEST_TAIL = 1e-100
"""Smallest probability whose quantile is computed. Statistics of smaller ones are equal in float64."""


def joint_p(differences: np.ndarray, alpha: float = _LEVEL) -> float:
    """Return the p of the hypothesis that no mean difference departs from zero: the smallest adjusted one.

    Parameters
    ----------
    differences : ndarray of shape (n, m)
        Differences of units (rows) in comparisons (columns); NaN marks a missing unit.
    alpha : float, default=0.05
        Level of the test; see `max_t_means`.
    """
    return float(max_t_means(differences, alpha).p_adjusted.min(initial=1.0))


def simultaneous_intervals(differences: np.ndarray, alpha: float) -> np.ndarray:
    """Return intervals of the mean differences that hold together with confidence 1 − α.

    An interval has every shift at which the statistic of max-t does not exceed its critical value. That is
    the (1 − α) quantile of the largest statistic under the sign patterns of the differences from their means.
    With d̄, s and c for mean, standard deviation and critical value, its ends are
    d̄ ± c·s·√((n − 1)/(n(n − c²))). For different n, critical values have the same tail probability.

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
    limit = critical_statistic(centred, alpha, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(n > limit**2, limit * np.sqrt(squares / (n * (n - limit**2))), np.inf)
    reach = np.where(squares == 0, 0.0, reach)
    ends[:, usable] = means - reach, means + reach
    return ends


def critical_statistic(centred: np.ndarray, alpha: float, sizes: np.ndarray) -> np.ndarray:
    """Return the smallest statistics that the largest one exceeds with a probability of at most α.

    Parameters
    ----------
    centred : ndarray of shape (n, m)
        Differences from the means of their comparisons; NaN marks a missing unit.
    alpha : float
        The probability.
    sizes : ndarray of shape (m,)
        Number of units of each comparison.

    Returns
    -------
    ndarray of shape (m,)
        Equally extreme statistics for the number of units of each comparison.
    """
    scaled = _normed(centred)
    scaled = scaled[np.lexsort(scaled.T)]
    groups = np.unique(sizes)
    blocks = [
        _largest_by_group(np.abs(signs @ scaled), sizes, groups)
        for signs in flips(len(scaled), max(1, _LARGEST_BLOCK // scaled.shape[1]))
    ]
    largest = np.concatenate(blocks)
    if len(groups) == 1:
        return np.full(len(sizes), _upper(largest[:, 0], alpha))
    # Tail probabilities compare statistics of different n. Negated, that of the most extreme is the largest.
    t = np.abs(_student(largest, largest, np.broadcast_to(groups, largest.shape)))
    tail = -_upper((-stdtr(groups - 1, -t)).max(axis=1), alpha)
    return np.array([_statistic_of(np.array([tail]), int(n))[0] for n in sizes])


def _largest_by_group(each: np.ndarray, sizes: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the largest statistic of each pattern (row), by the number of units of comparisons (columns).

    Parameters
    ----------
    each : ndarray of shape (n_patterns, m)
        Statistics by pattern and comparison.
    sizes : ndarray of shape (m,)
        Number of units of each comparison.
    groups : ndarray of shape (k,)
        The different numbers of units.
    """
    return np.column_stack([each[:, sizes == group].max(axis=1) for group in groups])


def _upper(values: np.ndarray, alpha: float) -> float:
    """Return the smallest of the values that at most a share α of them exceeds.

    Parameters
    ----------
    values : ndarray of shape (n_patterns,)
        A value for each sign pattern.
    alpha : float
        The share.
    """
    ordered = np.sort(values)[::-1]
    return float(ordered[floor(alpha * len(ordered) + _ROUND_OFF)])


def flips(n: int, size: int) -> Iterator[np.ndarray]:
    """Yield sign patterns in blocks: one of each pair of opposite patterns, or random ones for many units.

    The random patterns are `FLIPS`, after the one of the data, in which no sign is changed.

    Parameters
    ----------
    n : int
        Number of units.
    size : int
        Largest number of patterns in a block.

    Yields
    ------
    ndarray of shape (at most size, n)
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
