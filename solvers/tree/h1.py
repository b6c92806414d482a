"""Planes without errors on one class: H1, the machine with nearly hard margins on one class, thresholds.

H are the samples of the hard class, S those of the soft class with the mean s and the total weight m. H1
minimises ½ ‖w‖² − Σ_S y_j (w·x_j + b) subject to y_i (w·x_i + b) ≥ 1 on H. Its solution is w = ± m (p − s),
where p is the point of conv(H) nearest to s. Its optimum is m − ½ ‖w‖². The dual of the C-SVM with the
penalties C on S and m C on H has the same hull: Σ α_i = Σ α_j ≤ m C, so that no bound on H is active.

If s is in conv(H), both have the solution w = 0. Then the weights of H are bounded by μ = ½, ¼, … 1/m_H
times those of the samples, and the penalty of H by μ m C, until s is outside of the reduced hull. Both
solutions are 0 for the same μ.
"""

from typing import NamedTuple

import numpy as np

from solvers.common.resources import NO_LIMIT
from solvers.common.status import LIMIT, TIMEOUT
from solvers.kernels.subproblem_kernel import OutOfTime
from solvers.tree.nearest_point import TOLERANCE, Hull, nearest_point
from solvers.tree.soft_margin import soft_margin


class Direction(NamedTuple):
    """Direction from the mean of the soft class to the hull of the hard class."""

    z: np.ndarray  # (d,): p − s, or zeros if s is the mean of H as well
    mu: float  # bound of the weights of H; 1 without a bound
    gap: float  # certified relative error of ‖z‖²
    n_iter: int  # major cycles of Wolfe's method over all bounds that were tried
    status: int  # how the last of them ended
    samples: np.ndarray  # samples of H with weight in p
    weights: np.ndarray  # their weights, with the sum 1


class Threshold(NamedTuple):
    """Threshold of a direction that points from the soft class to the hard class."""

    value: float  # r; samples with w·x < r are cut
    gap: float  # distance between the hard class and the cut sample next to it
    cut: float  # weight of the soft samples that are cut; 0 if there are none


NO_THRESHOLD = Threshold(-np.inf, 0.0, 0.0)
"""Threshold of a direction that cuts nothing."""


def mean_of(X, weights):
    """Return the weighted mean of samples.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples.
    weights : ndarray of shape (n,)
        Weights, positive.

    Returns
    -------
    ndarray of shape (d,)
        Mean.
    """
    return np.asarray(X.T @ (weights / weights.sum())).ravel()


def h1_direction(hull, max_iter=NO_LIMIT, deadline=np.inf, tol=TOLERANCE):
    """Return the direction of H1, with the first bound of the ladder for which it is not zero.

    Reduced hulls shrink with the bound, so that the bound is found by bisection.

    Parameters
    ----------
    hull : Hull
        Hard samples, with the mean of the soft ones as the target.
    max_iter : int, default=NO_LIMIT
        Largest number of cycles of Wolfe's method.
    deadline : float, default=inf
        Time on `solvers.common.clock.clock` at which the method stops.
    tol : float, default=TOLERANCE
        Tolerance of `nearest_point`.

    Returns
    -------
    Direction
        Direction, whose `z` is 0 only if both means are equal.
    """
    nearest = nearest_point(hull, 1.0, max_iter, deadline, tol)
    if nearest.z.any() or nearest.status in (LIMIT, TIMEOUT):
        return Direction(nearest.z, 1.0, *_of_nearest(nearest, nearest.n_iter))
    n_iter, last = nearest.n_iter, 1.0 / hull.total
    n_steps = max(0, int(np.ceil(np.log2(hull.total))) - 1)  # bounds ½, ¼, … above 1/m_H
    low, high = 0, n_steps + 1  # exponents of a zero solution, and of one that is not
    while high - low > 1:
        middle = (low + high) // 2
        found = nearest_point(hull, 0.5**middle, max_iter, deadline, tol, only_zero=True)
        n_iter += found.n_iter
        if found.status in (LIMIT, TIMEOUT):
            return Direction(nearest.z, 1.0, *_of_nearest(found, n_iter))
        low, high = (low, middle) if found.z.any() else (middle, high)
    if high <= n_steps:
        nearest = nearest_point(hull, 0.5**high, max_iter, deadline, tol)
        return Direction(nearest.z, 0.5**high, *_of_nearest(nearest, n_iter + nearest.n_iter))
    z = hull.mean()
    if z @ z <= 1e-24 * hull.square_scale:
        z = np.zeros_like(z)
    samples = np.arange(hull.weights.size)
    return Direction(z, last, 0.0, n_iter, 0, samples, hull.weights / hull.total)


def _of_nearest(nearest, n_iter):
    """Return the last fields of a `Direction`.

    Parameters
    ----------
    nearest : Nearest
        Nearest point.
    n_iter : int
        Major cycles over all bounds.

    Returns
    -------
    tuple
        Gap, cycles, status, samples and weights.
    """
    return nearest.gap, n_iter, nearest.status, nearest.samples, nearest.weights


def csvm_direction(X, is_soft, weights, C, mu, deadline=np.inf):
    """Return the weights of the C-SVM with the penalties C on the soft class and μ m C on the hard one.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples.
    is_soft : bool ndarray of shape (n,)
        Whether a sample is in the soft class.
    weights : ndarray of shape (n,)
        Weights of the samples, positive.
    C : float
        Penalty of a soft sample of weight 1.
    mu : float
        Bound of H1, from `h1_direction`.
    deadline : float, default=inf
        Time on `solvers.common.clock.clock` at which the method stops.

    Returns
    -------
    ndarray of shape (d,)
        Weights of the features, positive for the hard class.
    """
    total = weights[is_soft].sum()
    # Without a bound every sample of H may carry all weight, whatever its own.
    of_hard = mu * total * (1.0 if mu >= 1.0 else weights)
    penalties = C * np.where(is_soft, weights, of_hard)
    return soft_margin(X, np.where(is_soft, -1.0, 1.0), penalties, deadline)


def unit(w):
    """Return a vector of length 1.

    Parameters
    ----------
    w : ndarray of shape (d,)
        Vector.

    Returns
    -------
    ndarray of shape (d,) or None
        Unit vector; None if the length is 0 or not finite.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        largest = np.abs(w).max(initial=0.0)
        if not 0.0 < largest < np.inf:
            return None
        w = w / largest
        return w / np.linalg.norm(w)


def threshold_of(scores, is_soft, weights, rounding):
    """Return the threshold that cuts all soft samples below the hard class.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Products of the samples with a unit normal that points to the hard class.
    is_soft : bool ndarray of shape (n,)
        Whether a sample is in the soft class.
    weights : ndarray of shape (n,)
        Weights of the samples, positive.
    rounding : float
        Bound on the rounding error of a score.

    Returns
    -------
    Threshold
        Threshold halfway between the hard class and the cut sample next to it. Each is more than `rounding`
        away from it.
    """
    lowest = scores[~is_soft].min()
    below = is_soft & (scores < lowest - 4.0 * rounding)
    if not below.any():
        return NO_THRESHOLD
    highest = scores[below].max()
    value = 0.5 * (lowest + highest)
    return Threshold(float(value), float(lowest - highest), float(weights[below].sum()))


def hull_of(X, is_soft, weights):
    """Return the hull of the hard samples around the mean of the soft ones.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples.
    is_soft : bool ndarray of shape (n,)
        Whether a sample is in the soft class.
    weights : ndarray of shape (n,)
        Weights of the samples, positive.

    Returns
    -------
    Hull
        Hull and target.
    """
    return Hull(X[~is_soft], weights[~is_soft], mean_of(X[is_soft], weights[is_soft]))


def require_time(direction):
    """Raise if Wolfe's method ran out of time.

    Parameters
    ----------
    direction : Direction
        Result of `h1_direction`.

    Raises
    ------
    OutOfTime
        The deadline passed.
    """
    if direction.status == TIMEOUT:
        raise OutOfTime
