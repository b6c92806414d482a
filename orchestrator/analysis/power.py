"""The power of the tests of a planned comparison."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import ceil, inf, pi

import numpy as np
from scipy.special import ndtri

from orchestrator.analysis.paired_means import PairedMeans
from orchestrator.analysis.sign_flips import flips
from orchestrator.analysis.signed_rank import critical_value, datasets_needed, smallest_p
from orchestrator.study.report_choices import HOLM, MAX_T

POWER = 0.8
"""Power for which a study is planned."""

_MIN_UNITS = 3
"""Smallest number of units for a standard deviation between them."""

_DRAWS = 20_000
"""Number of draws with which the power of the signed-rank test is estimated."""
_DRAWS_OF_MAX_T, _PATTERNS = 1_000, 499
"""Numbers of draws and of random sign patterns with which the power of max-t is estimated."""
_MAX_FAMILY, _LARGEST_EFFECT = 40, 16.0
"""Largest number of tests of a family that is simulated, and the largest effect that is tried, in σ."""
_BLOCK = 200_000
"""Number of Walsh averages that are computed at a time, so that they fit the CPU cache."""


def detectable_effect(n: int, family: int, alpha: float = 0.05, adjustment: str = HOLM) -> float:
    """Return the smallest mean difference that is found with probability `POWER`; infinite if there is none.

    The differences of the datasets are assumed to be normal, N(δ, σ²). With Holm's method, `signed_rank`
    tests them at the level of its first step, alpha / family, which is conservative. With max-t, the other
    comparisons of the family are independent and have no difference, which is the least favourable case. A
    difference counts as found if the test is significant in its direction. The estimate uses draws with a
    fixed seed, the same for every level.

    Parameters
    ----------
    n : int
        Number of datasets.
    family : int
        Number of tests.
    alpha : float
        Level of the tests.
    adjustment : {"holm", "maxt"}
        Procedure that adjusts p-values.

    Returns
    -------
    float
        Effect in standard deviations of the differences, δ/σ.
    """
    return _detectable_max_t(n, family, alpha) if adjustment == MAX_T else _detectable(n, alpha / family)


@lru_cache(maxsize=256)
def _detectable(n: int, level: float) -> float:
    cut = critical_value(n, level)
    return inf if cut is None else float(np.quantile(found_from(n, cut), POWER))


@lru_cache(maxsize=256)
def _detectable_max_t(n: int, family: int, alpha: float) -> float:
    """Return `detectable_effect` of max-t, to a hundredth of a standard deviation.

    Parameters
    ----------
    n : int
        Number of datasets.
    family : int
        Number of tests.
    alpha : float
        Level of the tests.
    """
    if smallest_p(n) > alpha:
        return inf
    generator = np.random.default_rng(0)
    signs = _signs(n, generator)
    values = generator.standard_normal((_DRAWS_OF_MAX_T, n)).astype(np.float32)
    others = np.zeros((len(signs), _DRAWS_OF_MAX_T), dtype=np.float32)
    for _ in range(min(family, _MAX_FAMILY) - 1):
        other = generator.standard_normal((_DRAWS_OF_MAX_T, n)).astype(np.float32)
        np.maximum(others, np.abs(signs @ _normed(other).T), out=others)
    ends = [0.0, _LARGEST_EFFECT]
    while ends[1] - ends[0] > 0.01:
        middle = sum(ends) / 2
        shifted = _normed(values + np.float32(middle))
        sums = shifted.sum(axis=1)
        reached = (np.maximum(others, np.abs(signs @ shifted.T)) >= np.abs(sums) - 1e-6).mean(axis=0)
        found = float(((reached <= alpha) & (sums > 0)).mean())
        ends = [ends[0], middle] if found >= POWER else [middle, ends[1]]
    return ends[1] if ends[1] < _LARGEST_EFFECT else inf


def _signs(n: int, generator: np.random.Generator) -> np.ndarray:
    """Return sign patterns: all pairs of opposite ones, or `_PATTERNS` random ones and the data's own.

    Parameters
    ----------
    n : int
        Number of datasets.
    generator : Generator
        Source of the draws.
    """
    if 2 ** (n - 1) <= _PATTERNS + 1:
        return np.concatenate([*flips(n, 2**n)]).astype(np.float32)
    drawn = generator.integers(0, 2, (_PATTERNS, n)) * 2 - 1
    return np.vstack([np.ones((1, n)), drawn]).astype(np.float32)


def _normed(values: np.ndarray) -> np.ndarray:
    return np.asarray(values / np.sqrt((values**2).sum(axis=1, keepdims=True)))


def found_from(n: int, cut: int) -> np.ndarray:
    """Return the smallest significant shift for each draw of n standard normal differences.

    W⁻ is the number of negative Walsh averages (Tukey), and a shift moves all of them alike. With k = `cut`,
    W⁻ is therefore at most k if the shift exceeds the distance of the average of rank k + 1 from zero.

    Parameters
    ----------
    n : int
        Number of differences.
    cut : int
        Largest W⁻ that is significant.
    """
    generator = np.random.default_rng(0)
    first, second = np.triu_indices(n)
    size = max(1, _BLOCK // len(first))
    shifts = []
    for start in range(0, _DRAWS, size):
        values = generator.standard_normal((min(size, _DRAWS - start), n)).astype(np.float32)
        walsh = (values[:, first] + values[:, second]) / 2
        shifts.append(-np.partition(walsh, cut, axis=1)[:, cut])
    return np.concatenate(shifts)


@dataclass(frozen=True)
class Spread:
    """Standard deviation of the differences of two arms between the datasets of an earlier study.

    Attributes
    ----------
    study : str
        Name of the study.
    n_pairs : int
        Number of pairs of arms.
    typical, low, high : float
        Median, smallest and largest standard deviation of the pairs, in the unit of the metric. The noise of
        the study's own scores is part of it.
    """

    study: str
    n_pairs: int
    typical: float
    low: float
    high: float


def spread_between(means: PairedMeans, arms: Collection[str], study: str) -> Spread | None:
    """Return the spread of the differences of the pairs of arms of an earlier study.

    Parameters
    ----------
    means : PairedMeans
        Mean scores of the earlier study.
    arms : collection of str
        Planned arms. The pairs of those that the earlier study has are used, or all pairs if it has none.
    study : str
        Name of the earlier study.

    Returns
    -------
    Spread or None
        None if no pair has completed three units.
    """
    known = list(means.means.columns)
    common = [arm for arm in known if arm in set(arms)]
    pairs = combinations(common if len(common) > 1 else known, 2)
    differences = (means.difference(*pair).dropna() for pair in pairs)
    sds = [float(each.std(ddof=1)) for each in differences if len(each) >= _MIN_UNITS]
    if not sds:
        return None
    return Spread(study, len(sds), float(np.median(sds)), min(sds), max(sds))


def datasets_for(effect: float, family: int, alpha: float = 0.05, adjustment: str = HOLM) -> int:
    """Return the number of datasets that find a mean difference of `effect` σ with probability `POWER`.

    Parameters
    ----------
    effect : float
        Mean difference in standard deviations.
    family : int
        Number of tests of the family.
    alpha : float, default=0.05
        Level of the tests.
    adjustment : {"holm", "maxt"}
        Procedure that adjusts p-values.
    """
    least = datasets_needed(1 if adjustment == MAX_T else family, alpha)
    # The search starts at the normal approximation: the relative efficiency of the test is 3/π.
    quantiles = ndtri(1 - alpha / (2 * family)) + ndtri(POWER)
    n = max(least, ceil(pi / 3 * (quantiles / effect) ** 2))
    while detectable_effect(n, family, alpha, adjustment) > effect:
        n += 1
    while n > least and detectable_effect(n - 1, family, alpha, adjustment) <= effect:
        n -= 1
    return n
