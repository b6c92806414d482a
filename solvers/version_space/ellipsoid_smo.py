"""Pair steps for the dual problem of the ellipsoidal support vector machine (Momma 2011, section 3).

A step moves α_i by s and α_j by −y_i y_j s. It maximises r log(1 + a₁ s + a₂ s²) − a₃ s − a₄ s²/2, whose
derivative is a cubic over a positive number. Two rank-one updates keep Ω up to date, at 4 n² flops a step.
"""

import numpy as np

from solvers.common.clock import clock
from solvers.common.compile import inner, njit
from solvers.common.resources import NO_LIMIT
from solvers.common.status import CONVERGED, LIMIT, STALLED, TIMEOUT
from solvers.version_space.ellipsoid_dual import SpanFactor, certify
from solvers.version_space.ellipsoid_newton import Outcome, balanced, first_point

STEPS_PER_SAMPLE = 50
"""Steps for each sample after which Newton's method takes over."""
CHECKED_STEPS = 200
"""Number of steps between two checks of the deadline."""
LEAST_CURVATURE = 1e-12
"""Least curvature of a pair, which duplicates of one class have."""
SNAP = 1e-12
"""Distance from a bound, as a share of it, at which a weight is set to the bound."""
N_BISECTIONS = 200
"""Largest number of steps of the search for the root of the cubic."""


@inner
def slope_at(s, r, a1, a2, a3, a4):
    """Return the derivative of the objective along a pair.

    Parameters
    ----------
    s : float
        Step.
    r : float
        Share of log|B| in the objective.
    a1, a2 : float
        Coefficients of the determinant 1 + a₁ s + a₂ s².
    a3, a4 : float
        Slope and curvature of the norm.

    Returns
    -------
    float
        Derivative, which decreases in s.
    """
    return r * (a1 + 2.0 * a2 * s) / (1.0 + a1 * s + a2 * s * s) - a3 - a4 * s


@njit(allocates=False)
def best_step(r, a1, a2, a3, a4, low, high):
    """Maximise the objective along a pair within bounds, by Newton's method within a bracket.

    Parameters
    ----------
    r : float
        Share of log|B| in the objective.
    a1, a2 : float
        Coefficients of the determinant 1 + a₁ s + a₂ s², which is positive within the bounds.
    a3, a4 : float
        Slope and curvature of the norm.
    low, high : float
        Bounds of the step, low ≤ 0 ≤ high; they may be infinite.

    Returns
    -------
    float
        Step.
    """
    start = slope_at(0.0, r, a1, a2, a3, a4)
    if start == 0.0:
        return 0.0
    sign = 1.0 if start > 0.0 else -1.0
    bound = high if sign > 0.0 else low
    near, far = 0.0, bound
    if np.isinf(bound):
        far = sign
        while sign * slope_at(far, r, a1, a2, a3, a4) > 0.0 and abs(far) < 1e15:
            near, far = far, 4.0 * far
    elif sign * slope_at(far, r, a1, a2, a3, a4) >= 0.0:
        return far
    s = 0.5 * (near + far)
    for _ in range(N_BISECTIONS):
        slope = slope_at(s, r, a1, a2, a3, a4)
        if sign * slope > 0.0:
            near = s
        else:
            far = s
        determinant = 1.0 + a1 * s + a2 * s * s
        ratio = (a1 + 2.0 * a2 * s) / determinant
        curvature = r * (2.0 * a2 / determinant - ratio * ratio) - a4
        moved = s - slope / curvature if curvature < 0.0 else 0.5 * (near + far)
        if not (min(near, far) < moved < max(near, far)):
            moved = 0.5 * (near + far)
        if abs(moved - s) <= 1e-15 * abs(s):
            return moved
        s = moved
    return s


@njit(allocates=False)
def choose_pair(alpha, C, y, H, omega, Omega, K, r, norm):
    """Choose the pair of the largest gain to second order, with the largest violator first.

    Parameters
    ----------
    alpha, C, y : array (n,)
        Weights, their bounds, labels.
    H : array (n,)
        F_i − y_i ω_i.
    omega : array (n,)
        Values ω_i.
    Omega, K : array (n, n)
        Values z_iᵀ B z_j, and kernel values.
    r : float
        Share of log|B| in the objective.
    norm : float
        ‖v‖, positive.

    Returns
    -------
    i, j : int
        Pair; β_i = y_i α_i grows and β_j shrinks.
    violation : float
        Largest H_j − H_i.
    """
    i, lowest, highest = np.int64(-1), np.inf, -np.inf
    for k in range(y.size):
        can_grow = alpha[k] < C[k] if y[k] > 0.0 else alpha[k] > 0.0
        can_shrink = alpha[k] > 0.0 if y[k] > 0.0 else alpha[k] < C[k]
        if can_grow and H[k] < lowest:
            lowest, i = H[k], np.int64(k)
        if can_shrink and H[k] > highest:
            highest = H[k]
    j, best = np.int64(-1), -1.0
    if i < 0:
        return i, j, 0.0
    for k in range(y.size):
        can_shrink = alpha[k] > 0.0 if y[k] > 0.0 else alpha[k] < C[k]
        difference = H[k] - lowest
        if not can_shrink or difference <= 0.0:
            continue
        t = y[i] * y[k]
        between = Omega[i, k]
        curvature = (K[i, i] + K[k, k] - 2.0 * K[i, k]) / norm
        curvature += (omega[i] ** 2 + omega[k] ** 2 - 2.0 * t * between * between) / r
        gain = difference * difference / max(curvature, LEAST_CURVATURE)
        if gain > best:
            best, j = gain, np.int64(k)
    return i, j, highest - lowest


@njit(allocates=False)
def take_steps(alpha, C, y, K, Omega, products, r, tol, n_steps, H, omega, old):
    """Take pair steps until the largest violation is at most the tolerance.

    Parameters
    ----------
    alpha : array (n,)
        Weights, changed in place.
    C, y : array (n,)
        Bounds and labels.
    K : array (n, n)
        Kernel values.
    Omega : array (n, n)
        Values z_iᵀ B z_j, changed in place.
    products : array (n,)
        Values v·z_i, changed in place.
    r : float
        Share of log|B| in the objective.
    tol : float
        Largest violation.
    n_steps : int
        Largest number of steps.
    H, omega : array (n,)
        Workspace.
    old : array (2, n)
        Workspace.

    Returns
    -------
    taken : int
        Number of steps.
    violation : float
        Largest violation before the last choice.
    """
    n = y.size
    square = 0.0
    for k in range(n):
        square += y[k] * alpha[k] * products[k]
    violation = np.inf
    for step in range(n_steps):
        norm = np.sqrt(max(square, 1e-300))
        for k in range(n):
            omega[k] = Omega[k, k]
            H[k] = products[k] / norm - y[k] * omega[k]
        i, j, violation = choose_pair(alpha, C, y, H, omega, Omega, K, r, norm)
        if j < 0 or violation <= tol:
            return step, violation
        t = y[i] * y[j]
        between = Omega[i, j]
        a1 = (omega[i] - t * omega[j]) / r
        a2 = t * (between * between - omega[i] * omega[j]) / (r * r)
        a3 = y[i] * (products[i] - products[j]) / norm
        distance = K[i, i] + K[j, j] - 2.0 * K[i, j]
        low, high = -alpha[i], C[i] - alpha[i]
        if t > 0.0:
            low, high = max(low, alpha[j] - C[j]), min(high, alpha[j])
        else:
            low, high = max(low, -alpha[j]), min(high, C[j] - alpha[j])
        s = best_step(r, a1, a2, a3, max(distance, 0.0) / norm, low, high)
        if s == 0.0:
            return step, violation
        alpha[i] = _snapped(alpha[i] + s, C[i])
        alpha[j] = _snapped(alpha[j] - t * s, C[j])
        square += 2.0 * s * y[i] * (products[i] - products[j]) + s * s * distance
        for k in range(n):
            products[k] += s * y[i] * (K[i, k] - K[j, k])
        _update_omega(Omega, i, j, s, t, r, old)
    return n_steps, violation


@inner
def _snapped(weight, bound):
    """Return a weight, set to a bound that it almost reaches.

    Parameters
    ----------
    weight : float
        Weight.
    bound : float
        Upper bound, which may be infinite.

    Returns
    -------
    float
        Weight.
    """
    scale = bound if not np.isinf(bound) else 1.0
    if weight <= SNAP * scale:
        return 0.0
    return bound if weight >= (1.0 - SNAP) * bound else weight


@njit(allocates=False)
def _update_omega(Omega, i, j, s, t, r, old):
    """Update Ω after a step, by two rank-one terms in one pass.

    Parameters
    ----------
    Omega : array (n, n)
        Values z_iᵀ B z_j, changed in place.
    i, j : int
        Pair of the step.
    s : float
        Change of α_i.
    t : float
        Product y_i y_j; α_j changes by −t s.
    r : float
        Share of log|B| in the objective.
    old : array (2, n)
        Workspace.
    """
    n = Omega.shape[0]
    of_first = s / (r + s * Omega[i, i])
    u, v = old[0], old[1]
    shift = of_first * Omega[i, j]
    for k in range(n):
        u[k] = Omega[i, k]
        v[k] = Omega[j, k] - shift * u[k]
    of_second = s * t / (r - s * t * v[j])
    for k in range(n):
        a, b, row = of_first * u[k], of_second * v[k], Omega[k]
        for m in range(n):
            row[m] += b * v[m] - a * u[m]


def minimise_by_pairs(block, C, r, limits, start=None):
    """Train by pair steps.

    Parameters
    ----------
    block : Block
        Samples of the first round.
    C : ndarray of shape (n,)
        Penalties; infinite for a hard margin.
    r : float
        Share of log|B| in the objective.
    limits : Limits
        When the training ends. `max_iter` limits the steps.
    start : ndarray of shape (n,), optional
        Interior point of a training for another C or r.

    Returns
    -------
    Outcome
        Result. Its status is `STALLED` if Newton's method should take over.
    """
    n, span = block.size, SpanFactor(block, r)
    alpha = first_point(block, C, start)
    kept, taken, violation_tol = alpha.copy(), 0, limits.tol
    most = min(STEPS_PER_SAMPLE * n, limits.max_iter)
    H, omega, old = np.empty(n), np.empty(n), np.empty((2, n))
    while True:
        span.log_determinant(alpha)
        W = span.half(block.Z)
        Omega = np.ascontiguousarray(W @ W.T)
        Omega[np.diag_indices(n)] += r / (1.0 - r) * block.residual
        products = np.ascontiguousarray(block.products(block.y * alpha)[0])
        violation = np.inf
        while taken < most:
            if clock() > limits.deadline:
                return Outcome(alpha, certify(block, span, alpha, C), TIMEOUT, taken, kept)
            n_steps = min(CHECKED_STEPS, most - taken)
            new, violation = take_steps(
                *(alpha, C, block.y, block.K, Omega, products, r, violation_tol, n_steps, H, omega, old)
            )
            taken += new
            if new < n_steps:
                break
        alpha = balanced(alpha, block.y)
        certificate = certify(block, span, alpha, C)
        if certificate.gap <= limits.tol and violation <= limits.tol:
            return Outcome(alpha, certificate, CONVERGED, taken, kept)
        if taken >= limits.max_iter < NO_LIMIT:
            return Outcome(alpha, certificate, LIMIT, taken, kept)
        if taken >= most or violation_tol < 1e-6 * limits.tol:
            return Outcome(alpha, certificate, STALLED, taken, kept)
        violation_tol *= 0.1
