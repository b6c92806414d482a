"""The precision-weighted mean of differences over datasets, with its random-effects interval."""

from dataclasses import dataclass
from math import inf, isnan, nan, sqrt

import numpy as np
from scipy.special import digamma, polygamma, stdtr, stdtrit

MIN_DATASETS = 3
"""Smallest number of datasets for an interval."""

_ROUNDING = 1e-18
"""Share of the largest variance up to which a variance is the rounding of equal differences."""

_STEPS = 200
"""Largest number of bisection steps, which reach the precision of float64."""


@dataclass(frozen=True)
class RandomEffects:
    """A weighted mean over datasets, whose true differences vary.

    Attributes
    ----------
    n : int
        Number of datasets or families.
    estimate : float
        Precision-weighted mean of the differences.
    error : float
        Its standard error.
    tau : float
        Standard deviation of the true differences between datasets.
    low, high : float
        Ends of the interval; NaN for fewer than `MIN_DATASETS` datasets.
    p : float
        Two-sided p of a mean of zero; NaN without an interval.
    """

    n: int
    estimate: float
    error: float
    tau: float
    low: float
    high: float
    p: float

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the interval at another confidence.

        Parameters
        ----------
        alpha : float
            One minus the confidence.

        Returns
        -------
        low, high : float
            NaN for fewer than `MIN_DATASETS` datasets.
        """
        reach = self.error * _quantile(self.n - 1, alpha) if self.n >= MIN_DATASETS else nan
        return self.estimate - reach, self.estimate + reach


def random_effects(
    differences: np.ndarray, variances: np.ndarray, degrees: np.ndarray, alpha: float
) -> RandomEffects:
    """Estimate the mean difference over datasets by a random-effects model.

    The true difference of a dataset is μ plus a deviation of variance τ², and the observed one adds the error
    of its folds. Variances of the errors are moderated over datasets, because those of five folds are
    uncertain by a factor of three. τ² is the estimate of Paule and Mandel. The interval is that of Hartung
    and Knapp with Student's t of n − 1 degrees of freedom; its variance is at least that of fixed weights.

    Parameters
    ----------
    differences : ndarray of shape (n,)
        Mean differences of the datasets.
    variances : ndarray of shape (n,)
        Squared standard errors, corrected for the training rows that folds share (Nadeau and Bengio).
    degrees : ndarray of shape (n,)
        Degrees of freedom of the variances.
    alpha : float
        One minus the confidence of the interval.

    Returns
    -------
    RandomEffects
        The mean with its interval.

    References
    ----------
    R. C. Paule and J. Mandel (1982), Consensus values and weighting factors, *Journal of Research of the
    National Bureau of Standards* 87; J. Hartung and G. Knapp (2001), A refined method for the meta-analysis
    of controlled clinical trials with binary outcome, *Statistics in Medicine* 20.
    """
    y, n = np.asarray(differences, dtype=float), len(differences)
    if n == 0:
        return RandomEffects(0, nan, nan, nan, nan, nan, nan)
    errors, _ = moderated_variances(np.asarray(variances, dtype=float), np.asarray(degrees, dtype=float))
    tau2 = paule_mandel(y, errors)
    total = errors + tau2
    if (total == 0).all():  # neither folds nor datasets vary
        total = np.ones(n)
        error = 0.0
    else:
        total = np.maximum(total, total[total > 0].min() * 1e-9)
        error = nan
    weights = 1 / total
    estimate = float((weights * y).sum() / weights.sum())
    if isnan(error):
        excess = float((weights * (y - estimate) ** 2).sum() / (n - 1)) if n > 1 else nan
        error = sqrt(max(1.0, excess) / float(weights.sum())) if n > 1 else nan
    found = RandomEffects(n, estimate, error, sqrt(tau2), nan, nan, nan)
    if n < MIN_DATASETS:
        return found
    low, high = found.interval(alpha)
    t = abs(estimate) / error if error > 0 else (inf if estimate else 0.0)
    p = 2 * float(stdtr(n - 1, -t))
    return RandomEffects(n, estimate, error, sqrt(tau2), low, high, p)


def paule_mandel(differences: np.ndarray, variances: np.ndarray) -> float:
    """Return τ² at which the weighted squared deviations equal their expectation n − 1; 0 if there is none.

    Parameters
    ----------
    differences : ndarray of shape (n,)
        Mean differences of the datasets.
    variances : ndarray of shape (n,)
        Variances of their errors.
    """
    n = len(differences)
    if n < 2 or np.ptp(differences) == 0:
        return 0.0

    def excess(tau2: float) -> float:
        weights = 1 / np.maximum(variances + tau2, np.finfo(float).tiny)
        mean = (weights * differences).sum() / weights.sum()
        return float((weights * (differences - mean) ** 2).sum()) - (n - 1)

    low, high = 0.0, float(np.ptp(differences) ** 2)
    if variances.min() > 0 and excess(0.0) <= 0:
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def moderated_variances(variances: np.ndarray, degrees: np.ndarray) -> tuple[np.ndarray, float]:
    """Shrink variances towards their common value, by the empirical Bayes method of Smyth (2004).

    The true variances are taken as draws from a scaled inverse χ² distribution, of which the mean and the
    variance of the logarithms give the two parameters. The more alike the variances, the more they shrink.

    Parameters
    ----------
    variances : ndarray of shape (n,)
        Variances with `degrees` degrees of freedom. Those without spread but for rounding say nothing of the
        distribution, but shrink towards it: scores that are counts are often equal in all folds.
    degrees : ndarray of shape (n,)
        Degrees of freedom.

    Returns
    -------
    moderated : ndarray of shape (n,)
        Weighted means of each variance and the common one.
    prior : float
        Degrees of freedom that the common variance adds; infinite if the variances are alike, 0 if fewer than
        two are known.

    References
    ----------
    G. K. Smyth (2004), Linear models and empirical Bayes methods for assessing differential expression in
    microarray experiments, *Statistical Applications in Genetics and Molecular Biology* 3.
    """
    known = (variances > _ROUNDING * variances.max(initial=0.0)) & (degrees > 0)
    if not known.any():
        return np.where(degrees > 0, 0.0, variances), 0.0
    mean_of_known = np.average(variances[known], weights=degrees[known])
    if known.sum() < 2:
        return np.full(len(variances), mean_of_known), 0.0
    half = degrees[known] / 2
    logarithms = np.log(variances[known]) - digamma(half) + np.log(half)
    mean = logarithms.mean()
    spread = float(((logarithms - mean) ** 2).sum() / (known.sum() - 1) - polygamma(1, half).mean())
    if spread <= 0:  # no more spread than the degrees of freedom explain
        return np.full(len(variances), mean_of_known), inf
    prior = 2 * _inverse_trigamma(spread)
    common = np.exp(mean + digamma(prior / 2) - np.log(prior / 2))
    return (prior * common + degrees * np.where(known, variances, 0.0)) / (prior + degrees), prior


def _inverse_trigamma(value: float) -> float:
    """Return x with trigamma(x) = value, by Newton's method on its reciprocal (Smyth 2004, appendix).

    Parameters
    ----------
    value : float
        A positive number.
    """
    x = 0.5 + 1 / value
    for _ in range(_STEPS):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x


def _quantile(degrees: int, alpha: float) -> float:
    return float(stdtrit(degrees, 1 - alpha / 2))
