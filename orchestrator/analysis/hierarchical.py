"""The hierarchical correlated Bayesian test over datasets, by quadrature."""

from functools import lru_cache
from math import sqrt

import numpy as np
from scipy.special import gammainc, gammaln, stdtr, stdtrit

from orchestrator.analysis.bayesian import Posterior

MIN_SPLITS = 3
"""Smallest number of outer splits of a dataset."""

_MEANS, _SPREADS, _NODES = 121, 30, 24
"""Numbers of values of δ0 and σ0, and of nodes for the true difference of a dataset."""

_DEGREES = (1.5, 3.0, 6.0, 12.0, 25.0, 50.0, 100.0)
"""Values of ν, the degrees of freedom of the distribution of true differences."""

_SMALLEST_SPREAD = 1e-6
"""Smallest standard deviation over the splits of a dataset, so that equal splits have a density."""


def hierarchical(
    means: np.ndarray, deviations: np.ndarray, splits: np.ndarray, correlations: np.ndarray, rope: float
) -> Posterior:
    """Compare two arms by the hierarchical correlated test (Corani et al. 2017; Benavoli et al. 2017, §4.3).

    The differences of the splits of dataset i are normal around δᵢ with variance σᵢ² and one correlation, the
    share of rows that a split tests. The δᵢ come from Student's t around δ0 with scale σ0 and ν degrees of
    freedom. δ0, σ0 and the σᵢ have flat priors, and ν has the mixture of Gamma priors of the paper. σᵢ is
    integrated in closed form and the others on a grid, so that no sampler and no seed takes part. Datasets
    shrink towards each other. For each point of the grid, one of three probabilities of a new dataset is the
    largest: that its δ is above the region [−r, r], in it, or below it. A result is the posterior weight of
    the points where it is.

    Parameters
    ----------
    means, deviations : ndarray of shape (n,)
        Mean difference of each dataset over its outer splits, and standard deviation with divisor J − 1.
    splits : ndarray of shape (n,)
        Numbers J of outer splits, at least `MIN_SPLITS`.
    correlations : ndarray of shape (n,)
        Share of rows that a split tests, n_test/(n_train + n_test).
    rope : float
        Half the width r of the region of practical equivalence.

    Returns
    -------
    Posterior
        The three probabilities.

    References
    ----------
    G. Corani, A. Benavoli, J. Demšar, F. Mangili and M. Zaffalon (2017), Statistical comparison of
    classifiers through Bayesian hierarchical modelling, *Machine Learning* 106; A. Benavoli, G. Corani, J.
    Demšar and M. Zaffalon (2017), Time for a change, *Journal of Machine Learning Research* 18.
    """
    degrees = splits - 2.0
    within = np.maximum(deviations, _SMALLEST_SPREAD) ** 2 * (splits - 1) / degrees
    scales = np.sqrt(within * (1 + (splits - 1) * correlations) / (splits * (1 - correlations)))
    typical = sqrt(float(np.var(means)) + float(np.mean(scales**2)))
    centre = float(np.median(means))
    values = centre + np.linspace(-6, 6, _MEANS) * typical
    spreads = np.geomspace(1e-3, 20, _SPREADS) * typical
    weights, areas = [], []
    # The prior of σ0 is flat. So a value has the weight of the part of the axis that it represents.
    for spread, width in zip(spreads, np.gradient(spreads), strict=True):
        for degree, prior in zip(_DEGREES, _prior_of_degrees(), strict=True):
            likelihood = log_likelihood(values, float(spread), degree, means, scales, degrees)
            weights.append(likelihood + np.log(width) + np.log(prior))
            below = stdtr(degree, (-rope - values) / spread)
            above = stdtr(degree, (values - rope) / spread)
            areas.append(np.argmax([below, 1 - below - above, above], axis=0))
    logarithms = np.concatenate(weights)
    posterior = np.exp(logarithms - logarithms.max())
    shares = np.bincount(np.concatenate(areas), posterior, minlength=3) / posterior.sum()
    return Posterior(better=float(shares[2]), equal=float(shares[1]), worse=float(shares[0]))


def log_likelihood(
    values: np.ndarray,
    spread: float,
    degree: float,
    means: np.ndarray,
    scales: np.ndarray,
    degrees: np.ndarray,
) -> np.ndarray:
    """Return the logarithm of the likelihood of all datasets for values of δ0, up to a constant.

    Integrated over σᵢ, the likelihood of δᵢ is Student's t around the mean of the dataset. The likelihood of
    δ0 is its product with the distribution of δᵢ, integrated. The integral uses nodes of equal probability of
    both densities f and g. The integrand at each is f·g/(f + g), so that each set covers its own centre.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Values of δ0.
    spread : float
        Scale σ0.
    degree : float
        Degrees of freedom ν.
    means, scales, degrees : ndarray of shape (n,)
        Centre, scale and degrees of freedom of the likelihood of each δᵢ.
    """
    total = np.zeros(len(values))
    for mean, scale, own in zip(means, scales, degrees, strict=True):
        ends = np.broadcast_to(mean + scale * _nodes(float(own)), (len(values), _NODES))
        nodes = np.hstack([ends, values[:, np.newaxis] + spread * _nodes(degree)])
        first = _student((nodes - mean) / scale, float(own)) / scale
        second = _student((nodes - values[:, np.newaxis]) / spread, degree) / spread
        total += np.log((first * second / (first + second)).sum(axis=1) / _NODES)
    return total


def _student(values: np.ndarray, degrees: float) -> np.ndarray:
    constant = gammaln((degrees + 1) / 2) - gammaln(degrees / 2) - np.log(degrees * np.pi) / 2
    return np.asarray(np.exp(constant) * (1 + values**2 / degrees) ** (-(degrees + 1) / 2))


@lru_cache(maxsize=64)
def _nodes(degrees: float) -> np.ndarray:
    """Return nodes of equal probability of Student's t.

    Parameters
    ----------
    degrees : float
        Degrees of freedom.
    """
    return np.asarray(stdtrit(degrees, (np.arange(_NODES) + 0.5) / _NODES))


@lru_cache(maxsize=1)
def _prior_of_degrees() -> tuple[float, ...]:
    """Return the prior weights of `_DEGREES`: Gamma with shape U(0.5, 5) and rate U(0.05, 0.15), above 1."""
    edges = np.array([1.0, *np.sqrt(np.multiply(_DEGREES[1:], _DEGREES[:-1])), np.inf])
    shapes, rates = np.meshgrid(np.linspace(0.5, 5, 19), np.linspace(0.05, 0.15, 11))
    shares = np.array([gammainc(shapes, rates * edge).mean() if edge < np.inf else 1.0 for edge in edges])
    weights = np.diff(shares)
    return tuple((weights / weights.sum()).tolist())
