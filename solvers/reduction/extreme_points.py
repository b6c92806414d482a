"""The approximate extreme points of a block of samples (DeriveAE, Nandan et al. 2014, 4.3).

φ_i is the image of sample i in the space of the kernel, and ``p(i, A) = min ‖φ_i − Σ_{t∈A} μ_t φ_t‖²`` over
the simplex. The points of a block are chosen so that p of every sample is at most ε:

1. The samples on the smallest ball around all samples of the block are points.
2. The other samples, those farthest from the centre first, become candidates if their p is above ε.
3. A candidate leaves if the points and the other candidates represent it.
4. Every sample is written as a convex combination of the points.
5. While the p of a sample is above ε, the worst sample becomes a point.

In the paper a candidate stays in step 3 for the checks of the later ones, and step 5 is missing. Then two
candidates may represent each other, both leave, and (9) of the paper does not hold.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from scipy import sparse

from solvers.common.compile import apart, inner, njit
from solvers.common.reductions import larger_of, smaller_of
from solvers.common.status import CONVERGED, LIMIT, NOT_POSITIVE

BALL_TOLERANCE = 1e-6
"""Largest distance of the squared radius from its optimum, as a share of the largest k(x, x)."""
ACCURACY = 1e-3
"""Largest distance of p from its optimum, as a share of ε."""
STEPS_OF_BALL = 2_000
"""Largest number of steps of the ball, for each sample of the block."""
STEPS_OF_PROJECTION = 100_000
"""Largest number of steps of a projection. A sample whose check reaches it counts as not represented."""
ROUNDING = 1e-14
"""Rounding error of p, as a share of the largest k(x, x)."""
NEGATIVE = 1e-5
"""Squared distance below 0 that shows that a kernel is not positive, as a share of the largest k(x, x)."""
CHECK, PROJECT = range(2)
"""What `_project` does: decide whether p ≤ ε, or compute p up to `ACCURACY`."""


class ExtremePoints(NamedTuple):
    """Approximate extreme points of a block of m samples."""

    points: np.ndarray  # (M,) int64: indices of the points, ascending
    combinations: sparse.csr_matrix  # (m, M): each sample as a convex combination of the points
    errors: np.ndarray  # (m,): p of each sample; 0 exactly for points
    is_ball_only: bool  # whether ε is at least the squared distance of any two samples


class NotPositiveError(ValueError):
    """A squared distance in the space of the kernel is negative."""


class BallError(ValueError):
    """The ball of a block has not reached its tolerance."""


def extreme_points(K, epsilon, repair):
    """Choose the approximate extreme points of a block.

    Parameters
    ----------
    K : float64 ndarray of shape (m, m), C-contiguous
        Kernel values of the samples of the block.
    epsilon : float
        Largest p of a sample, positive.
    repair : bool
        Whether candidates leave at once in step 3, and step 5 is done. If not, the steps are those of the
        paper.

    Returns
    -------
    ExtremePoints
        Points, and the combination of every sample.

    Raises
    ------
    NotPositiveError
        The kernel is not positive semidefinite.
    BallError
        The ball does not converge.
    """
    m = K.shape[0]
    alpha, distances = np.zeros(m), np.diagonal(K) - 2.0 * K[0]
    scratch = np.empty((3, m))
    hull = _Hull(
        members=np.empty(m, np.int64),
        values=np.empty((m, m)),
        diagonal=np.diagonal(K).copy(),
        to_sample=scratch[0],
        slopes=scratch[1],
        mu=scratch[2],
        support=np.empty(m, np.int64),
    )
    scale = hull.diagonal.max()
    status = enclosing_ball(
        K, hull.diagonal, BALL_TOLERANCE * scale, STEPS_OF_BALL * m, alpha, distances, hull.support
    )
    if status == NOT_POSITIVE:
        raise NotPositiveError
    if status == LIMIT:
        raise BallError
    is_ball_only = _is_within(K, hull.diagonal, 0.5 * alpha @ (hull.diagonal + distances), epsilon)
    others = np.flatnonzero(alpha == 0.0)
    order = others[np.argsort(-distances[others], kind="stable")]
    combinations, errors = np.zeros((m, m)), np.zeros(m)
    n = _choose(K, np.flatnonzero(alpha), order, epsilon, scale, repair, hull, combinations, errors)
    if errors.min() < -NEGATIVE * abs(scale):
        raise NotPositiveError
    is_point = np.zeros(m, dtype=bool)
    is_point[hull.members[:n]] = True
    errors = np.where(is_point, 0.0, np.maximum(errors, np.finfo(np.float64).tiny))
    by_number = np.argsort(hull.members[:n])
    return ExtremePoints(
        hull.members[by_number], sparse.csr_matrix(combinations[:, by_number]), errors, is_ball_only
    )


def _is_within(K, diagonal, square_radius, epsilon):
    """Return whether no two samples of a block have a larger squared distance than ε.

    Parameters
    ----------
    K : float64 ndarray of shape (m, m)
        Kernel values of the samples of the block.
    diagonal : float64 ndarray of shape (m,)
        Diagonal of K.
    square_radius : float
        Squared radius of the smallest ball. The largest squared distance is at least twice as large by
        Jung's theorem, which saves the search in nearly all blocks.
    epsilon : float
        Largest p of a sample.

    Returns
    -------
    bool
        Whether all squared distances are at most ε.
    """
    if epsilon < 1.9 * square_radius:
        return False
    return bool((diagonal[:, None] + diagonal - 2.0 * K).max() <= epsilon)


@njit(allocates=False)
def enclosing_ball(K, diagonal, tol, max_steps, alpha, d, support):
    """Solve max Σ α_i k_ii − αᵀKα over the simplex, the smallest ball around all samples, by pair steps.

    A step moves weight to the sample that is farthest from the centre, from the sample with weight whose step
    gains most.

    Parameters
    ----------
    K : float64 array (m, m)
        Kernel values.
    diagonal : float64 array (m,)
        Diagonal of K.
    tol : float
        Largest difference between the squared distance of the farthest sample and the weighted mean of those
        with weight.
    max_steps : int
        Number of steps after which the search stops.
    alpha : float64 array (m,)
        Receives the weights of the centre Σ α_i φ_i; 0 at the start.
    d : float64 array (m,)
        Receives the squared distances from the centre, less ‖centre‖²; those from the first sample at the
        start.
    support : int64 array (m,)
        Scratch memory: samples with weight.

    Returns
    -------
    int
        CONVERGED, LIMIT or NOT_POSITIVE.
    """
    m = K.shape[0]
    alpha[0], support[0], n_support = 1.0, 0, 1
    for _ in range(max_steps):
        farthest = -np.inf
        for i in range(m):
            farthest = larger_of(farthest, d[i])
        v, mean = 0, 0.0
        while d[v] != farthest:
            v += 1
        u, best, step = -1, 0.0, 0.0
        K_v = K[v]
        for s in range(n_support):
            i = support[s]
            mean += alpha[i] * d[i]
            away = farthest - d[i]
            square = diagonal[v] + diagonal[i] - 2.0 * K_v[i]
            if square < -NEGATIVE * abs(diagonal[v]):
                return NOT_POSITIVE
            length = alpha[i] if 2.0 * square * alpha[i] <= away else 0.5 * away / square
            gain = length * (away - length * square)
            if gain > best:
                u, best, step = s, gain, length
        if farthest - mean <= tol or u < 0:
            return CONVERGED
        i = support[u]
        K_u = K[i]
        for j in range(m):
            d[j] += 2.0 * step * (K_u[j] - K_v[j])
        if alpha[v] == 0.0:
            support[n_support] = v
            n_support += 1
        alpha[v] += step
        alpha[i] = alpha[i] - step if step < alpha[i] else 0.0
        if alpha[i] == 0.0:
            n_support -= 1
            support[u] = support[n_support]
    return LIMIT


class _Hull(NamedTuple):
    """Points of a hull, with their kernel values beside one another, and scratch memory of projections."""

    members: np.ndarray  # (m,) int64: the points, of which the first n count
    values: np.ndarray  # (m, m): kernel values of the points
    diagonal: np.ndarray  # (m,): k(t, t) of the points
    to_sample: np.ndarray  # (m,): kernel values of the points and the projected sample
    slopes: np.ndarray  # (m,): (φ_t − φ_i)·(Σ μ φ − φ_i), up to a constant
    mu: np.ndarray  # (m,): weights of a check
    support: np.ndarray  # (m,) int64: points with weight


@inner
def _append(hull, n, K, i):
    """Add a sample to the points.

    Parameters
    ----------
    hull : _Hull
        Points, changed in place.
    n : int
        Number of points so far.
    K : float64 array (m, m)
        Kernel values of the block.
    i : int
        The sample.
    """
    values, members, row = hull.values, hull.members, K[i]
    for t in range(n):
        values[n, t] = row[members[t]]
        values[t, n] = values[n, t]
    values[n, n] = row[i]
    hull.diagonal[n] = row[i]
    members[n] = i


@inner
def _remove(hull, last, t):
    """Remove a point; the last one takes its index.

    Parameters
    ----------
    hull : _Hull
        Points, changed in place.
    last : int
        Index of the last point.
    t : int
        Index of the point to remove.
    """
    values = hull.values
    hull.members[t], hull.diagonal[t] = hull.members[last], hull.diagonal[last]
    for s in range(last):
        values[t, s] = values[last, s]
    for s in range(last):
        values[s, t] = values[s, last]
    values[t, t] = values[last, last]


@apart(types.float64)
def _project(hull, n, K, i, epsilon, rounding, task, excluded, mu):
    """Project a sample on the hull of the points, by pair steps from the nearest point.

    A step moves weight to the point with the smallest slope, from the point with weight whose step gains
    most.

    Parameters
    ----------
    hull : _Hull
        Points and scratch memory.
    n : int
        Number of points.
    K : float64 array (m, m)
        Kernel values of the block.
    i : int
        The sample.
    epsilon : float
        Largest p.
    rounding : float
        Rounding error of p.
    task : {CHECK, PROJECT}
        Whether to stop as soon as p ≤ ε or p > ε is certain.
    excluded : int
        Index of a point without weight; −1 for none.
    mu : float64 array (m,)
        Receives the weights; the first n are overwritten.

    Returns
    -------
    float
        Squared distance of the sample from its combination; infinite if `task` is CHECK and p > ε.
    """
    values, diagonal, k, h = hull.values, hull.diagonal, hull.to_sample, hull.slopes
    support, members, row = hull.support, hull.members, K[i]
    nearest, v = np.inf, 0
    for t in range(n):
        k[t] = row[members[t]]
        mu[t] = 0.0
        square = diagonal[t] - 2.0 * k[t]
        if square < nearest and t != excluded:
            nearest, v = square, t
    mu[v] = 1.0
    support[0] = v
    n_support, own = 1, row[i]
    first = values[v]
    for t in range(n):
        h[t] = first[t] - k[t]
    if excluded >= 0:
        h[excluded] = np.inf
    enough = larger_of(ACCURACY * epsilon, rounding)
    square = nearest + own
    for _ in range(STEPS_OF_PROJECTION):
        if task == CHECK and square <= epsilon:
            return square
        lowest = np.inf
        for t in range(n):
            lowest = smaller_of(lowest, h[t])
        v = 0
        while h[v] != lowest:
            v += 1
        rest = own
        for s in range(n_support):
            rest -= mu[support[s]] * k[support[s]]
        slope = lowest + rest
        if task == CHECK and slope > 0.0 and slope * slope > epsilon * square:
            return np.inf
        if square - slope <= enough:
            break
        u, best, step = -1, 0.0, 0.0
        K_v = values[v]
        for s in range(n_support):
            t = support[s]
            away = h[t] - lowest
            length_square = diagonal[v] + diagonal[t] - 2.0 * K_v[t]
            length = mu[t] if length_square * mu[t] <= away else away / length_square
            gain = length * (away - 0.5 * length * length_square)
            if gain > best:
                u, best, step = s, gain, length
        if u < 0:
            break
        t = support[u]
        K_u = values[t]
        for s in range(n):
            h[s] += step * (K_v[s] - K_u[s])
        if mu[v] == 0.0:
            support[n_support] = v
            n_support += 1
        mu[v] += step
        mu[t] = mu[t] - step if step < mu[t] else 0.0
        if mu[t] == 0.0:
            n_support -= 1
            support[u] = support[n_support]
        square = own
        for s in range(n_support):
            square += mu[support[s]] * (h[support[s]] - k[support[s]])
    return np.inf if task == CHECK and square > epsilon else square


@njit(allocates=False)
def _choose(K, ball, order, epsilon, scale, repair, hull, combinations, errors):
    """Choose the points of a block, and compute the combination of every sample.

    Parameters
    ----------
    K : float64 array (m, m)
        Kernel values of the block.
    ball : int64 array
        Samples on the smallest ball.
    order : int64 array
        The other samples, those farthest from the centre first.
    epsilon : float
        Largest p.
    scale : float
        Largest k(x, x).
    repair : bool
        Whether p ≤ ε is enforced.
    hull : _Hull
        Scratch memory; its `members` receive the points.
    combinations : float64 array (m, m)
        Receives the weights of each sample's combination, by the index of a point; 0 at the start.
    errors : float64 array (m,)
        Receives the p of each sample; 0 at the start.

    Returns
    -------
    int
        Number of points.
    """
    m, members, mu, rounding = K.shape[0], hull.members, hull.mu, ROUNDING * scale
    n = 0
    for j in range(ball.size):
        _append(hull, n, K, ball[j])
        n += 1
    for j in range(order.size):
        if _project(hull, n, K, order[j], epsilon, rounding, CHECK, -1, mu) > epsilon:
            _append(hull, n, K, order[j])
            n += 1
    n = _without_redundant(hull, n, K, ball.size, epsilon, rounding, repair, errors)
    for i in range(m):
        errors[i] = np.inf
    for j in range(n):
        errors[members[j]], combinations[members[j], j] = 0.0, 1.0
    while True:
        worst, largest = -1, epsilon
        for i in range(m):
            if errors[i] > epsilon:
                errors[i] = _project(hull, n, K, i, epsilon, rounding, PROJECT, -1, combinations[i])
                if errors[i] > largest:
                    worst, largest = i, errors[i]
        if worst < 0 or not repair:
            return n
        _append(hull, n, K, worst)
        for j in range(n):
            combinations[worst, j] = 0.0
        errors[worst], combinations[worst, n] = 0.0, 1.0
        n += 1


@inner
def _without_redundant(hull, n, K, n_ball, epsilon, rounding, repair, leaves):
    """Remove candidates that the points and the other candidates represent.

    Parameters
    ----------
    hull : _Hull
        Points of the ball and candidates, changed in place.
    n : int
        Number of both.
    K : float64 array (m, m)
        Kernel values of the block.
    n_ball : int
        Number of points of the ball, which come first.
    epsilon : float
        Largest p.
    rounding : float
        Rounding error of p.
    repair : bool
        Whether a candidate leaves at once; if not, it stays for the checks of the others.
    leaves : float64 array (m,)
        Scratch memory: 1 for each candidate that leaves, by its index.

    Returns
    -------
    int
        Number of points that remain.
    """
    j, n_all = n_ball, n
    while j < n:
        is_redundant = _project(hull, n, K, hull.members[j], epsilon, rounding, CHECK, j, hull.mu) <= epsilon
        if repair and is_redundant:  # the last candidate takes its index, and is checked next
            n -= 1
            _remove(hull, n, j)
        else:
            leaves[j] = is_redundant
            j += 1
    if repair:
        return n
    n = n_ball
    for j in range(n_ball, n_all):
        if leaves[j] == 0.0:
            _append(hull, n, K, hull.members[j])
            n += 1
    return n
