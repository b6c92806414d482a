"""Errors of the numbers by which arms are ordered, and the arms that may be the best."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import combinations
from math import nan

import numpy as np
import pandas as pd
from scipy.special import betaincinv
from scipy.stats import rankdata

from orchestrator.analysis.sign_flips import ALL_FLIPS_UP_TO, FLIPS
from orchestrator.analysis.signed_rank import DECIMALS
from orchestrator.study.values import canonical_json

DRAWS = 10_000
"""Number of bootstrap samples."""

MIN_UNITS = 3
"""Smallest number of units that are resampled."""

_LARGEST_SAMPLE = 20_000_000
"""Largest number of values that are drawn or compared, above which there are fewer samples."""

_ROUND_OFF = 1e-6
"""Difference of two statistics in float32 below which they are equal."""


def seed_of(declaration: object) -> int:
    """Return the seed of the bootstrap, a hash of what a study declares.

    Parameters
    ----------
    declaration : object
        Values that JSON can hold.
    """
    return int.from_bytes(sha256(canonical_json(declaration).encode()).digest()[:8], "big")


def bootstrap_aggregates(
    folds: Mapping[str, np.ndarray], units: Mapping[str, Sequence[str]], alpha: float, seed: int
) -> pd.DataFrame:
    """Return intervals of the mean, the mean rank and the share of wins of every arm.

    A sample draws as many units as there are, with replacement, and the outer folds of each drawn dataset
    with replacement. Arms share the draws. The ends of an interval are the α/2 and 1 − α/2 quantiles of the
    samples. The spread between units already includes that between folds, which makes the intervals rather
    too wide for many units. For fewer than ten units, quantiles of a bootstrap are known to be too narrow.

    Parameters
    ----------
    folds : mapping of str to ndarray of shape (n_folds, n_arms)
        Scores of the datasets that all arms completed, by name.
    units : mapping of str to sequence of str
        Names of the datasets of each unit.
    alpha : float
        One minus the confidence of an interval.
    seed : int
        Seed of the draws.

    Returns
    -------
    DataFrame
        One row for each arm. Columns: wins (share of units on which the arm is the highest; arms that tie
        share the unit), and `<number>_low` and `<number>_high` for mean, rank and wins. Ends are NaN for
        fewer than `MIN_UNITS` units.

    References
    ----------
    A. C. Davison and D. V. Hinkley (1997), *Bootstrap Methods and their Application*, Cambridge, section 3.8.
    """
    n_arms = next(iter(folds.values())).shape[1]
    means = np.array(
        [np.mean([folds[name].mean(axis=0) for name in names], axis=0) for names in units.values()]
    )
    ends = {
        f"{name}_{end}": np.full(n_arms, nan) for name in ("mean", "rank", "wins") for end in ("low", "high")
    }
    wins = _shares_of_wins(means[np.newaxis])[0]
    if len(units) >= MIN_UNITS:
        generator = np.random.default_rng(seed)
        number = int(np.clip(_LARGEST_SAMPLE // (len(units) * n_arms), 500, DRAWS))
        values = _resampled(folds, list(units.values()), number, generator)
        samples = {
            "mean": values.mean(axis=1),
            "rank": rankdata(-values, axis=2).mean(axis=1),
            "wins": _shares_of_wins(values),
        }
        for name, sample in samples.items():
            low, high = np.quantile(sample, [alpha / 2, 1 - alpha / 2], axis=0)
            ends |= {f"{name}_low": low, f"{name}_high": high}
    return pd.DataFrame({"wins": wins, **ends})


def _resampled(
    folds: Mapping[str, np.ndarray],
    units: Sequence[Sequence[str]],
    number: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Return the means of resampled units, shape (number, n_units, n_arms).

    Parameters
    ----------
    folds : mapping of str to ndarray of shape (n_folds, n_arms)
        Scores of each dataset.
    units : sequence of sequence of str
        Names of the datasets of each unit.
    number : int
        Number of samples.
    generator : Generator
        Source of the draws.
    """
    n_arms = next(iter(folds.values())).shape[1]
    drawn = generator.integers(0, len(units), (number, len(units)))
    values = np.empty((number, len(units), n_arms))
    for index, names in enumerate(units):
        chosen = drawn == index
        size, total = int(chosen.sum()), 0.0
        for name in names:
            n_folds = len(folds[name])
            counts = generator.multinomial(n_folds, np.full(n_folds, 1 / n_folds), size)
            total = total + counts @ folds[name] / n_folds
        values[chosen] = total / len(names)
    return np.round(values, DECIMALS)


def _shares_of_wins(values: np.ndarray) -> np.ndarray:
    """Return the share of units on which each arm is the highest; arms that tie share the unit.

    Parameters
    ----------
    values : ndarray of shape (number, n_units, n_arms)
        Means of units.
    """
    best = np.round(values, DECIMALS)
    best = best == best.max(axis=2, keepdims=True)
    return np.asarray((best / best.sum(axis=2, keepdims=True)).mean(axis=1))


def probability_of_improvement(wins: int, n: int, alpha: float) -> tuple[float, float, float]:
    """Return the share of units on which an arm is higher, with its exact binomial interval.

    The interval of Clopper and Pearson (1934) contains the probability that the arm is higher on a new
    dataset with a confidence of at least 1 − α, if the units are drawn independently from the same source as
    the new one. A tie is no improvement.

    Parameters
    ----------
    wins : int
        Number of units on which the arm is higher.
    n : int
        Number of units.
    alpha : float
        One minus the confidence.

    Returns
    -------
    share, low, high : float
        NaN without units.

    References
    ----------
    C. J. Clopper and E. S. Pearson (1934), The use of confidence or fiducial limits illustrated in the case
    of the binomial, *Biometrika* 26.
    """
    if n == 0:
        return nan, nan, nan
    low = 0.0 if wins == 0 else float(betaincinv(wins, n - wins + 1, alpha / 2))
    high = 1.0 if wins == n else float(betaincinv(wins + 1, n - wins, 1 - alpha / 2))
    return wins / n, low, high


def best_set_p(differences: np.ndarray, n_arms: int) -> np.ndarray:
    """Return for every arm the p of the hypothesis that no arm is better than it.

    The arms with p > α are a confidence set: it contains all arms of the highest expected mean with a
    probability of at least 1 − α. The arm whose statistic against the best of the others is the largest is
    removed, if the largest statistic of all pairs that remain is significant; then the test is repeated
    with the arms that remain. The null distribution flips the signs of whole units, which assumes that their
    differences are symmetric if the arms are equal. p does not decrease from step to step.

    Parameters
    ----------
    differences : ndarray of shape (n_units, n_pairs)
        Differences of the units that all arms completed, for the pairs (i, j) of arms with i < j in the order
        of `itertools.combinations`.
    n_arms : int
        Number of arms.

    Returns
    -------
    ndarray of shape (n_arms,)
        1 for the arm that is never removed.

    References
    ----------
    P. R. Hansen, A. Lunde and J. M. Nason (2011), The model confidence set, *Econometrica* 79; J. C. Hsu
    (1996), *Multiple Comparisons*, Chapman and Hall, chapter 4.
    """
    n = len(differences)
    pairs = np.array(list(combinations(range(n_arms), 2)), dtype=int).reshape(-1, 2)
    differences = np.round(differences, DECIMALS)
    norms = np.sqrt((differences**2).sum(axis=0))
    scaled = (differences / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    statistic = scaled.sum(axis=0)
    largest = np.abs(_patterns(n, len(pairs)) @ scaled) if len(pairs) else np.zeros((1, 0), np.float32)
    p, remaining, reached = np.ones(n_arms), set(range(n_arms)), 0.0
    while len(remaining) > 1:
        kept = np.flatnonzero(np.isin(pairs, list(remaining)).all(axis=1))
        worst = kept[np.argmax(np.abs(statistic[kept]))]
        observed = abs(statistic[worst]) - _ROUND_OFF
        reached = max(reached, float((largest[:, kept].max(axis=1) >= observed).mean()))
        removed = int(pairs[worst, 1 if statistic[worst] > 0 else 0])
        p[removed] = reached
        remaining.remove(removed)
    return p


def _patterns(n: int, n_pairs: int) -> np.ndarray:
    """Return sign patterns in float32: one of each pair of opposite ones, or random ones if these are many.

    Parameters
    ----------
    n : int
        Number of units.
    n_pairs : int
        Number of pairs that are compared under each pattern.
    """
    most = max(999, _LARGEST_SAMPLE // n_pairs)
    if n <= ALL_FLIPS_UP_TO and 2 ** (n - 1) <= most:
        bits = np.arange(2 ** max(0, n - 1))
        return (1 - 2 * ((bits[:, np.newaxis] >> np.arange(n)) & 1)).astype(np.float32)
    generator = np.random.default_rng(0)
    signs = generator.integers(0, 2, (min(FLIPS, most), n)) * 2 - 1
    return np.vstack([np.ones((1, n)), signs]).astype(np.float32)
