"""Totals of a nested cross-validation and their ratios, estimated from a stratified sample of its trainings.

The strata are the candidates. The estimate of a total is unbiased: each stratum contributes the mean of its
drawn trainings times its size (Cochran, 1977, chapter 5). Refits are all measured, so they have no error.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import exp, inf, isnan, nan, sqrt

import numpy as np
from scipy.special import stdtrit

LEVEL = 0.9
"""Probability with which an interval covers the total of all trainings, unless another one is asked for."""

MAX_DEGREE, MIN_DEGREES = 3, 3
"""Largest degree of the surface that describes how costs depend on the candidate, and the smallest number of
degrees of freedom that it leaves."""


@dataclass(frozen=True)
class Sample:
    """Measured trainings of an arm on a dataset.

    Attributes
    ----------
    names : tuple of str
        Candidate and drawn splits of each stratum. Strata of two arms with one name were measured together.
    sizes : ndarray of shape (n_strata,)
        Number of trainings in each stratum.
    costs : ndarray of shape (n_strata, n_folds)
        Cost of each drawn training; NaN behind the last one of a stratum with fewer.
    points : ndarray of shape (n_strata, n_axes)
        Position of each candidate on the axes of the grid, from -1 to 1.
    refits : float
        Cost of all refits.
    stopped : bool
        Whether a training was stopped, so that its cost is a lower bound. Default False.
    """

    names: tuple[str, ...]
    sizes: np.ndarray
    costs: np.ndarray
    points: np.ndarray
    refits: float
    stopped: bool = False


@dataclass(frozen=True)
class Estimate:
    """An estimated total, or ratio of totals.

    Attributes
    ----------
    value : float
        Estimate. It is a bound if `stopped`.
    se : float
        Standard error, in the unit of the value.
    low, high : float
        Ends of the interval; NaN, as `se`, if one training is all that was drawn.
    stopped : bool
        Whether a training was stopped. The interval then has no end in the direction of the bound.
    """

    value: float
    se: float
    low: float
    high: float
    stopped: bool = False


@dataclass(frozen=True)
class _Errors:
    """Sampling errors of the strata of one arm.

    Attributes
    ----------
    total : float
        Estimated total of all strata.
    scales : ndarray of shape (n_strata,)
        Standard error of a stratum's total if the relative standard deviation of its trainings were 1.
    deviations : ndarray of shape (n_strata, n_folds)
        Relative deviations of the drawn trainings. The sum of their squares over a stratum estimates the
        relative variance of its trainings.
    residuals : ndarray of shape (n_strata,)
        The same for strata with one drawn training, as deviations from a surface. The sum of their squares
        over all these strata estimates the relative variance that they share.
    degrees : ndarray of shape (n_strata,)
        Degrees of freedom of the relative variance of each stratum.
    shared_degrees : float
        Degrees of freedom of the shared relative variance.
    """

    total: float
    scales: np.ndarray
    deviations: np.ndarray
    residuals: np.ndarray
    degrees: np.ndarray
    shared_degrees: float


def estimate_total(sample: Sample) -> Estimate:
    """Estimate the cost of all trainings of a nested cross-validation.

    Parameters
    ----------
    sample : Sample
        Measured trainings of an arm on a dataset.
    """
    errors = _errors(sample)
    total = errors.total + sample.refits
    se = sqrt(_covariance(sample, sample, errors, errors))
    # The interval of the strata is symmetric on the log scale, because costs are positive and skewed.
    factor = _factor(se / errors.total, _degrees(errors), LEVEL) if errors.total else 1.0
    low, high = errors.total / factor + sample.refits, errors.total * factor + sample.refits
    return Estimate(total, se, low, inf if sample.stopped else high, sample.stopped)


def estimate_ratio(first: Sample, second: Sample, level: float = LEVEL) -> Estimate:
    """Estimate the ratio of the costs of two arms on one dataset.

    Errors on cells that both arms were measured on are correlated, which the interval uses.

    Parameters
    ----------
    first, second : Sample
        Measured trainings of both arms. A stopped training of the first makes the ratio a lower bound, and
        one of the second makes it an upper bound.
    level : float, default `LEVEL`
        Probability with which the interval covers the ratio.
    """
    errors = a, b = _errors(first), _errors(second)
    totals = a.total + first.refits, b.total + second.refits
    if min(totals) <= 0:
        return Estimate(nan, nan, nan, nan)
    parts = (
        _covariance(first, first, a, a) / totals[0] ** 2,
        _covariance(second, second, b, b) / totals[1] ** 2,
    )
    common = _covariance(first, second, a, b) / (totals[0] * totals[1])
    # An estimated correlation may be too high by chance, so a tenth of the separate variances is kept.
    # Unlike `max`, `np.maximum` keeps the NaN of an unknown error.
    variance = float(np.maximum(sum(parts) - 2 * common, sum(parts) / 10))
    below = sum(part**2 / _degrees(each) for part, each in zip(parts, errors, strict=True))
    degrees = sum(parts) ** 2 / below if below > 0 else inf
    value, se = totals[0] / totals[1], sqrt(variance)
    factor = _factor(se, degrees, level)
    low = 0.0 if second.stopped else value / factor
    high = inf if first.stopped else value * factor
    return Estimate(value, value * se, low, high, first.stopped or second.stopped)


def _factor(relative: float, degrees: float, level: float) -> float:
    """Return the factor by which the ends of an interval differ from the estimate.

    Parameters
    ----------
    relative : float
        Standard error divided by the estimate; NaN if it is unknown, as the factor is then.
    degrees : float
        Degrees of freedom of the standard error; infinite without an error.
    level : float
        Probability with which the interval covers what is estimated.
    """
    if isnan(relative):
        return nan
    if relative == 0:
        return 1.0
    return exp(min(700.0, float(stdtrit(degrees, (1 + level) / 2)) * relative))


def _errors(sample: Sample) -> _Errors:
    """Return the estimated total of the strata, and its errors.

    Parameters
    ----------
    sample : Sample
        Measured trainings of an arm on a dataset.
    """
    drawn = (~np.isnan(sample.costs)).sum(axis=1)
    means = np.nansum(sample.costs, axis=1) / drawn
    # Finite-population correction: a stratum of which all trainings are measured has no error.
    scales = sample.sizes * means * np.sqrt((1 - drawn / sample.sizes) / drawn)
    degrees = drawn - 1.0
    residuals, shared_degrees = np.zeros(len(drawn)), inf
    with np.errstate(invalid="ignore", divide="ignore"):
        deviations = np.nan_to_num((sample.costs / means[:, None] - 1) / np.sqrt(degrees)[:, None])
    single = (drawn == 1) & (scales > 0)
    if single.any():
        residuals[single], shared_degrees = _from_surface(
            np.log(means[single]), sample.points[single], scales[single] ** 2
        )
    return _Errors(
        float((sample.sizes * means).sum()), scales, deviations, residuals, degrees, shared_degrees
    )


def _from_surface(logs: np.ndarray, points: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, float]:
    """Return deviations of logarithms from a polynomial surface over the grid, and their degrees of freedom.

    With one training in each stratum, the variance within strata is not observed. Neighbours in the grid are
    collapsed: a smooth surface describes the differences between candidates, and the deviations from it
    contain the variance within strata and the lack of fit. So the error is overestimated rather than
    underestimated. The surface has the largest degree that leaves `MIN_DEGREES` degrees of freedom; a few
    strata deviate from their mean, and a single one has nothing to deviate from.

    Parameters
    ----------
    logs : ndarray of shape (n_strata,)
        Logarithms of costs.
    points : ndarray of shape (n_strata, n_axes)
        Position of each candidate on the axes of the grid, from -1 to 1.
    squares : ndarray of shape (n_strata,)
        Weight of each stratum in the variance of the total.

    Returns
    -------
    residuals : ndarray of shape (n_strata,)
        Deviations, whose sum of squares estimates the variance of the logarithms; NaN for a single stratum.
    degrees : float
        Degrees of freedom of that estimate.
    """
    if len(logs) == 1:
        return np.array([nan]), 1.0
    bases = (_basis(points.tobytes(), points.shape, degree) for degree in range(MAX_DEGREE, -1, -1))
    basis = next(each for each in bases if each.shape[1] == 1 or len(logs) - each.shape[1] >= MIN_DEGREES)
    degrees = len(logs) - basis.shape[1]
    deviations = logs - basis @ (basis.T @ logs)
    shared = (deviations**2).sum() / degrees
    if shared == 0:
        return deviations, float(degrees)
    # Expensive candidates may deviate more than others. The larger of the two estimates is used.
    free = np.maximum(1 - (basis**2).sum(axis=1), 0.05)
    weighted = (squares * deviations**2 / free).sum() / squares.sum()
    return deviations * sqrt(max(1.0, weighted / shared) / degrees), float(degrees)


@lru_cache(maxsize=64)
def _basis(points: bytes, shape: tuple[int, int], degree: int) -> np.ndarray:
    """Return an orthonormal basis of the polynomials on a grid, of shape (n_strata, rank).

    Parameters
    ----------
    points : bytes
        Positions of the candidates, as bytes of an array.
    shape : tuple of int
        Shape of the array.
    degree : int
        Largest sum of the exponents of the axes.
    """
    grid = np.frombuffer(points).reshape(shape)
    exponents = (each for each in product(range(degree + 1), repeat=shape[1]) if sum(each) <= degree)
    terms = np.stack([np.prod(grid ** np.array(each), axis=1) for each in exponents], axis=1)
    left, singular, _ = np.linalg.svd(terms, full_matrices=False)
    return np.asarray(left[:, singular > singular[0] * 1e-9])


def _covariance(first: Sample, second: Sample, a: _Errors, b: _Errors) -> float:
    """Return the covariance of the estimated totals of two arms; the variance if both are the same.

    Parameters
    ----------
    first, second : Sample
        Measured trainings of both arms.
    a, b : _Errors
        Errors of both arms.
    """
    if first is second:
        here = there = np.arange(len(a.scales))
    else:
        _, here, there = np.intersect1d(first.names, second.names, assume_unique=True, return_indices=True)
    n = min(a.deviations.shape[1], b.deviations.shape[1])
    products = (a.deviations[here, :n] * b.deviations[there, :n]).sum(axis=1)
    shared = float(a.residuals[here] @ b.residuals[there])
    is_single = (a.degrees[here] == 0) & (b.degrees[there] == 0)
    relative = np.where(is_single, shared, products)
    return float((a.scales[here] * b.scales[there] * relative).sum())


def _degrees(errors: _Errors) -> float:
    """Return the degrees of freedom of the variance of a total, by Satterthwaite's formula.

    Parameters
    ----------
    errors : _Errors
        Errors of an arm.
    """
    squares = errors.scales**2
    shared = squares[errors.degrees == 0].sum() * (errors.residuals**2).sum()
    variances = squares * (errors.deviations**2).sum(axis=1)
    below = shared**2 / errors.shared_degrees + (variances**2 / np.maximum(errors.degrees, 1)).sum()
    return float((shared + variances.sum()) ** 2 / below) if below > 0 else inf
