"""The smallest ellipsoid around samples, and the support vector machine in its metric (ekm).

The ellipsoid is min −log|P| + η tr P + Σ E_i τ_i subject to ``(x_i − μ)ᵀP(x_i − μ) ≤ 1 + τ_i``. Its dual is
max log|ηI + S| − Σ λ_i over ``0 ≤ λ_i ≤ E_i``, with the weighted scatter S of the samples about their
weighted mean μ = Σ p_i x_i, p = λ/Σλ, and P = (ηI + S)⁻¹. With the kernel K_c centred at μ, the products in
the metric P are ``K_E = K_c (ηI + diag(λ) K_c)⁻¹``. All logarithms and traces are those of the span of the
samples.

A step moves one λ_i to its exact optimum. It needs ``κ_i = (K_E)_ii + 1/Λ`` with Λ = Σ λ: the lifted samples
(x_i, 1) have the scatter M of |M| = Λ |ηI + S|, and the products Ω = K_E + 11ᵀ/Λ in its metric.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from solvers.common.blas import one_blas_thread
from solvers.common.certificate import UNIT_ROUNDOFF
from solvers.common.clock import clock
from solvers.common.compile import inner, njit
from solvers.common.status import CONVERGED, LIMIT, STALLED, TIMEOUT

MULTIPLICATIVE_ROUNDS = 8
"""Rounds that scale all weights together, before the steps of single weights."""
WORK_OF_CALL = 1 << 27
"""Number of updates of values between two readings of the clock, about."""
MAX_PASSES = 200
"""Largest number of steps, as a multiple of the number of samples."""
STEPS_BETWEEN_FACTORS = 4
"""Steps after which the products are computed from the weights again, for each sample."""
LEAST_CURVATURE = 1e-300
"""Smallest κ by which a root is divided."""


class Samples(NamedTuple):
    """Samples of an ellipsoid: by kernel values, or by features of few dimensions."""

    K: np.ndarray  # (n, n) kernel values, or (0, 0)
    X: np.ndarray  # (n, d) features, or (0, 0)

    @property
    def n(self):
        """Number of samples."""
        return max(self.K.shape[0], self.X.shape[0])

    @property
    def dimension(self):
        """Bound on the number of dimensions of the span of the centred samples."""
        return min(self.n - 1, self.X.shape[1]) if self.X.size else self.n - 1


def mean_diagonal(samples, shares):
    """Return the mean of the diagonal of the kernel that is centred at a weighted mean.

    Parameters
    ----------
    samples : Samples
        Samples.
    shares : ndarray of shape (n,)
        Weight of each sample, of sum 1.

    Returns
    -------
    float
        Σ shares_i k_c(x_i, x_i), the trace of the weighted covariance.
    """
    if samples.X.size:
        centred = samples.X - shares @ samples.X
        return float(shares @ (centred * centred).sum(axis=1))
    return float(shares @ np.diag(samples.K) - shares @ samples.K @ shares)


class Ellipsoid:
    """State of the training: weights λ, and the products that steps need.

    Parameters
    ----------
    samples : Samples
        Samples.
    eta : float
        Weight η of the trace, positive.
    limit : ndarray of shape (n,)
        Largest weights E_i; infinite if no sample may lie outside.
    """

    def __init__(self, samples, eta, limit):
        self.samples, self.eta, self.limit = samples, float(eta), limit
        self.weights = np.minimum(limit, max(1.0, min(samples.dimension, 0.5 * samples.n)) / samples.n)

    def factor(self):
        """Compute the centred products from the weights.

        Returns
        -------
        centred : ndarray of shape (n, n) or (n, d)
            Centred kernel K_c, or centred features.
        L : ndarray
            Lower Cholesky factor of ηI + A½K_cA½ with A = diag(λ), or of ηI + S.
        """
        p, root = self.weights / self.weights.sum(), np.sqrt(self.weights)
        if self.samples.X.size:
            centred = self.samples.X - p @ self.samples.X
            scaled = root[:, None] * centred
            scatter = scaled.T @ scaled
        else:
            means = self.samples.K @ p
            centred = self.samples.K - means[:, None] - means + p @ means
            scatter = centred * root[:, None] * root
        scatter[np.diag_indices_from(scatter)] += self.eta
        return centred, cholesky(scatter, lower=True, overwrite_a=True, check_finite=False)

    def features(self, centred, L):
        """Return the factor of K_E, or what is subtracted in it.

        Parameters
        ----------
        centred : ndarray of shape (n, n) or (n, d)
            Centred kernel or features, of `factor`.
        L : ndarray
            Cholesky factor of `factor`.

        Returns
        -------
        ndarray of shape (n, n) or (d, n)
            T with ``K_E = (K_c − TᵀT)/η``, or with ``K_E = TᵀT`` for features.
        """
        right = centred.T if self.samples.X.size else np.sqrt(self.weights)[:, None] * centred
        return solve_triangular(L, right, lower=True, check_finite=False)

    def distances(self):
        """Return (x_i − μ)ᵀP(x_i − μ) of all samples.

        Returns
        -------
        ndarray of shape (n,)
            Diagonal of K_E.
        """
        centred, L = self.factor()
        squares = (self.features(centred, L) ** 2).sum(axis=0)
        if self.samples.X.size:
            return squares
        return np.maximum((np.diag(centred) - squares) / self.eta, 0.0)

    def kernel(self):
        """Return the kernel in the metric of the ellipsoid.

        Returns
        -------
        ndarray of shape (n, n)
            K_E.
        """
        centred, L = self.factor()
        T = self.features(centred, L)
        return T.T @ T if self.samples.X.size else (centred - T.T @ T) / self.eta

    def coefficients(self, theta):
        """Return the coefficients of a decision function in the kernel k.

        Parameters
        ----------
        theta : ndarray of shape (n,)
            Signed weights of the samples in the kernel K_E.

        Returns
        -------
        coefficients : ndarray of shape (n,)
            Signed coefficients of k(x_i, ·).
        constant : float
            Number that is added to the bias.
        """
        centred, L = self.factor()
        p = self.weights / self.weights.sum()
        if self.samples.X.size:
            inner = solve_triangular(L, centred.T @ theta, lower=True, check_finite=False)
            inner = centred @ solve_triangular(L, inner, lower=True, trans=1, check_finite=False)
            a = (theta - self.weights * inner) / self.eta
            means = self.samples.X @ (p @ self.samples.X)
        else:
            root = np.sqrt(self.weights)
            inner = solve_triangular(L, root * (centred @ theta), lower=True, check_finite=False)
            inner = root * solve_triangular(L, inner, lower=True, trans=1, check_finite=False)
            a = (theta - inner) / self.eta
            means = self.samples.K @ p
        total = float(a.sum())
        return a - total * p, float(total * (p @ means) - a @ means)

    def gap(self, distances):
        """Bound the distance from the optimum, in units of log volume for each dimension.

        The primal point is P with the slacks that it needs or, if there are none, P scaled into the samples.

        Parameters
        ----------
        distances : ndarray of shape (n,)
            Diagonal of K_E.

        Returns
        -------
        float
            Primal minus dual objective over the number of dimensions.
        """
        n, d = self.samples.n, float(self.samples.dimension)
        total, spread = self.weights.sum(), float(self.weights @ distances)
        outside = np.maximum(0.0, distances - 1.0)
        if np.isinf(self.limit).any():
            s = 1.0 / max(1.0, distances.max())
            slack = np.where(np.isinf(self.limit), 0.0, self.limit) @ np.maximum(0.0, s * distances - 1.0)
            excess = -d * np.log(s) + (s - 1.0) * (d - spread) + slack + total - spread
        else:
            excess = float(self.limit @ outside) + total - spread
        rounding = n * UNIT_ROUNDOFF * (total + spread)
        return max(0.0, float(excess) + rounding) / max(d, 1.0)

    def scale_together(self, rounds, tol, deadline):
        """Multiply every weight by its distance, which increases the dual objective.

        Parameters
        ----------
        rounds : int
            Largest number of rounds.
        tol : float
            Gap at which the rounds end.
        deadline : float
            Time on `solvers.common.clock.clock` at which to stop.

        Returns
        -------
        int
            Number of rounds.
        """
        for k in range(rounds):
            distances = self.distances()
            if self.gap(distances) <= tol or clock() > deadline:
                return k
            self.weights = np.minimum(self.weights * np.maximum(distances, UNIT_ROUNDOFF), self.limit)
        return rounds

    def step(self, tol, n_steps):
        """Take exact steps of single weights.

        Parameters
        ----------
        tol : float
            Largest violation of the optimality conditions.
        n_steps : int
            Largest number of steps.

        Returns
        -------
        steps : int
            Number of steps that were taken.
        is_optimal : bool
            Whether no violation exceeds `tol`.
        """
        total = self.weights.sum()
        if self.samples.X.size:
            p = self.weights / total
            lifted = np.column_stack([self.samples.X - p @ self.samples.X, np.ones(self.samples.n)])
            M = (lifted * self.weights[:, None]).T @ lifted
            M[np.arange(len(M) - 1), np.arange(len(M) - 1)] += self.eta
            inverse = np.linalg.inv(M)
            kappa = ((lifted @ inverse) * lifted).sum(axis=1)
            return steps_on_features(lifted, inverse, kappa, self.weights, self.limit, tol, n_steps)
        omega = self.kernel() + 1.0 / total
        return steps_on_kernel(omega, self.weights, self.limit, tol, n_steps)


@inner
def most_violating(kappa, weights, limit):
    """Return the weight that violates its optimality condition most.

    Parameters
    ----------
    kappa : array (n,)
        Diagonal of Ω.
    weights, limit : arrays (n,)
        Weights λ and their largest values.

    Returns
    -------
    best : int
        Index; −1 if there is no violation.
    violation : float
        |κ − 1/Λ − 1| of this weight.
    """
    best, worst = -1, 0.0
    level = 1.0 + 1.0 / weights.sum()
    for i in range(kappa.size):
        ahead = kappa[i] - level
        violation = ahead if ahead > 0.0 else -ahead
        can_move = weights[i] < limit[i] if ahead > 0.0 else weights[i] > 0.0
        if can_move and violation > worst:
            best, worst = i, violation
    return best, worst


@inner
def best_change(kappa, total, weight, limit):
    """Return the change of a weight that maximises the dual objective, within its bounds.

    Parameters
    ----------
    kappa : float
        Ω_ii.
    total : float
        Sum Λ of all weights.
    weight, limit : float
        The weight and its largest value.

    Returns
    -------
    float
        Change s, the larger root of ``κs² + (1 + κΛ)s + 1 + Λ − κΛ = 0``, clipped.
    """
    middle, constant = 1.0 + kappa * total, 1.0 + total - kappa * total
    discriminant = middle * middle - 4.0 * kappa * constant
    if discriminant < 0.0:
        return -weight
    root = np.sqrt(discriminant)
    # The larger root (−b + √)/2κ, without the difference of almost equal numbers.
    change = -2.0 * constant / (middle + root) if kappa > LEAST_CURVATURE else -constant / middle
    return min(max(change, -weight), limit - weight)


@njit
def steps_on_kernel(omega, weights, limit, tol, n_steps):
    """Take exact steps of single weights on the matrix Ω.

    Parameters
    ----------
    omega : array (n, n), changed in place
        Ω.
    weights : array (n,), changed in place
        Weights λ.
    limit : array (n,)
        Largest weights.
    tol : float
        Largest violation.
    n_steps : int
        Largest number of steps.

    Returns
    -------
    steps : int
        Number of steps.
    is_optimal : bool
        Whether no violation exceeds `tol`.
    """
    n = weights.size
    kappa, column = np.empty(n), np.empty(n)
    for i in range(n):
        kappa[i] = omega[i, i]
    for step in range(n_steps):
        i, violation = most_violating(kappa, weights, limit)
        if i < 0 or violation <= tol:
            return step, True
        change = best_change(kappa[i], weights.sum(), weights[i], limit[i])
        before = weights[i]
        weights[i] = 0.0 if change == -before else before + change
        factor = change / (1.0 + change * kappa[i])
        for t in range(n):
            column[t] = omega[i, t]
        for a in range(n):
            scaled = factor * column[a]
            row = omega[a]
            for b in range(n):
                row[b] -= scaled * column[b]
            kappa[a] = row[a]
    return n_steps, False


@njit
def steps_on_features(lifted, inverse, kappa, weights, limit, tol, n_steps):
    """Take exact steps of single weights on the inverse of the lifted scatter.

    Parameters
    ----------
    lifted : array (n, d + 1)
        Samples with a constant 1.
    inverse : array (d + 1, d + 1), changed in place
        M⁻¹.
    kappa : array (n,), changed in place
        Diagonal of Ω.
    weights : array (n,), changed in place
        Weights λ.
    limit : array (n,)
        Largest weights.
    tol : float
        Largest violation.
    n_steps : int
        Largest number of steps.

    Returns
    -------
    steps : int
        Number of steps.
    is_optimal : bool
        Whether no violation exceeds `tol`.
    """
    direction, column = np.empty(inverse.shape[0]), np.empty(weights.size)
    for step in range(n_steps):
        i, violation = most_violating(kappa, weights, limit)
        if i < 0 or violation <= tol:
            return step, True
        np.dot(inverse, lifted[i], direction)
        np.dot(lifted, direction, column)
        change = best_change(kappa[i], weights.sum(), weights[i], limit[i])
        before = weights[i]
        weights[i] = 0.0 if change == -before else before + change
        factor = change / (1.0 + change * kappa[i])
        for a in range(direction.size):
            scaled = factor * direction[a]
            for b in range(direction.size):
                inverse[a, b] -= scaled * direction[b]
        for t in range(column.size):
            kappa[t] -= factor * column[t] * column[t]
    return n_steps, False


def enclose(samples, eta, limit, tol, max_steps, deadline):
    """Compute the smallest ellipsoid around samples.

    Parameters
    ----------
    samples : Samples
        Samples.
    eta : float
        Weight η of the trace, positive.
    limit : ndarray of shape (n,)
        Largest weights E_i; infinite if no sample may lie outside.
    tol : float
        Largest gap, in units of log volume for each dimension.
    max_steps : int
        Largest number of steps.
    deadline : float
        Time on `solvers.common.clock.clock` at which to stop.

    Returns
    -------
    ellipsoid : Ellipsoid
        Ellipsoid with its weights.
    gap : float
        Bound on the distance from the optimum.
    steps : int
        Rounds and steps.
    status : int
        CONVERGED, LIMIT, TIMEOUT or STALLED.
    """
    ellipsoid, n = Ellipsoid(samples, eta, limit), samples.n
    most = min(max_steps, MAX_PASSES * n)
    cost = n * (samples.X.shape[1] + 1) if samples.X.size else n * n
    chunk = max(1, min(STEPS_BETWEEN_FACTORS * n, WORK_OF_CALL // cost))
    aimed_at = 0.5 * tol
    with one_blas_thread():
        steps = ellipsoid.scale_together(min(MULTIPLICATIVE_ROUNDS, most), tol, deadline)
        while True:
            gap = ellipsoid.gap(ellipsoid.distances())
            if gap <= tol:
                return ellipsoid, gap, steps, CONVERGED
            if clock() > deadline:
                return ellipsoid, gap, steps, TIMEOUT
            if steps >= most:
                return ellipsoid, gap, steps, LIMIT if steps >= max_steps else STALLED
            taken, is_optimal = ellipsoid.step(aimed_at, min(chunk, most - steps))
            steps += int(taken)
            if is_optimal:
                aimed_at *= 0.25
                if aimed_at < n * UNIT_ROUNDOFF:
                    return ellipsoid, gap, steps, STALLED
