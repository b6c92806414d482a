"""Newton's method with a barrier for the dual problem of the ellipsoidal support vector machine.

It minimises −r log|M| + S − μ log(μ + S) − μ Σ log α − μ Σ log(C − α) for yᵀα = 0 and S = √(μ² + ‖v‖²). The
number μ decreases by factors of 10. The terms with S belong to −μ log(1 − ‖w‖²) in the primal problem. They
define the centre w = v / (μ + S) also where v vanishes. It does if classes overlap and C is large (collapse).

A round factors the Hessian Ω∘Ω/r + Q/(μ+S) − q qᵀ/S + diag(δ/α + π/(C−α)) with q = Qα/(μ+S). The multipliers
δ and π of the bounds approach μ/α and μ/(C−α). They take Newton steps of their own (primal-dual), which saves
half of the rounds. Ω comes from the factor of the kernel matrix at n² rank flops, or from an inverse of n × n
at n³ flops if the rank of the kernel matrix is more than half of n.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from solvers.common.clock import clock
from solvers.common.compile import njit
from solvers.common.resources import NO_LIMIT
from solvers.common.status import CONVERGED, LIMIT, STALLED, TIMEOUT
from solvers.version_space.ellipsoid_dual import (
    HARD_C,
    LOW_RANK_SHARE,
    Certificate,
    SpanFactor,
    certify,
    margin_share,
    penalties_of,
    with_directions,
)

AT_ZERO, NOT_SEPARABLE, FAR_AWAY = 101, 102, 103
"""Statuses of `minimise`: α = 0 is optimal, so that r has to grow; the classes do not separate; the first
centre of the barrier is too far from the start."""
CENTRED = 0.3
"""Squared Newton decrement in units of μ below which μ decreases."""
FIRST_MU, WARM_MU, LAST_MU = 1.0, 1e-2, 1e-16
"""Weight of the barrier at a cold start, at a start from another solution, and the least one."""
LOOSE_TOL = 1e-3
"""Gap from which every centre of the barrier is certified, because a smaller one may be out of reach."""
MAX_ROUNDS = 40
"""Largest number of rounds for one weight of the barrier: more of them are a sign of rounding."""
LARGEST_RATIO = 1e3
"""Largest ratio of a multiplier of a bound and its value at the centre of the barrier."""
ARMIJO = 1e-4
"""Share of the predicted decrease that a step has to reach."""
SNAPPED_SHARES = (3e-2, 1e-3, 3e-5)
"""Shares of the mean α ω below which weights are set to 0, if the gap allows it; tried in this order."""
SNAPPED_SHARE = 1e-2
"""Distance of a weight from C, as a share of C, within which it is set to C."""
LEAST_IDENTITY = 1e-3
"""Least 1−r with which (1−r) I + A^½ K A^½ is inverted if K is singular: a smaller one costs digits."""
MARGIN_ACCURACY = 1e-6
"""Relative accuracy of the largest margin, from which the least useful r follows."""
SCALED_SIZES = (1e2, 1e1, 1.0, 1e3)
"""Values C k(x, x) from which the solution for a larger C is scaled if v vanishes; tried in this order."""
LARGEST_SCALE = 1e12
"""Factor from which rounding outweighs a scaled solution."""
SCALED_TOL = 0.3
"""Gap of a solution that is scaled, as a share of the tolerance."""
RAISED_BY = 1.001
"""Factor by which r/(1−r) exceeds the largest margin after r was raised."""


class Limits(NamedTuple):
    """When a training ends."""

    tol: float  # largest gap
    max_iter: int = NO_LIMIT  # limit of the rounds
    deadline: float = np.inf  # time on `solvers.common.clock.clock`


@dataclass
class Outcome:
    """Result of a training.

    Attributes
    ----------
    alpha : ndarray of shape (n,)
        Point of the dual problem.
    certificate : Certificate
        Primal point and gap.
    status : int
        One of the statuses of `solvers.common.status`, or `AT_ZERO` or `NOT_SEPARABLE`.
    n_iter : int
        Number of rounds or steps.
    start : ndarray of shape (n,)
        Interior point from which the training for another C or r may start.
    """

    alpha: np.ndarray
    certificate: Certificate
    status: int
    n_iter: int
    start: np.ndarray


class SpanForm(SpanFactor):
    """Ω from the factor of the kernel matrix.

    Parameters
    ----------
    block : Block
        Samples.
    r : float
        Share of log|B| in the objective.
    H : ndarray of shape (n, n), C-contiguous
        Memory of the Hessian.
    """

    def __init__(self, block, r, H):
        super().__init__(block, r)
        self._H = H

    def hessian(self, alpha, q, of_kernel, of_q):
        """Write the upper triangle of the Hessian without the barrier, for the last point.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
            Last point of `log_determinant`.
        q : ndarray of shape (n,)
            Gradient of the norm.
        of_kernel, of_q : float
            Factors of Q and of −q qᵀ.

        Returns
        -------
        ndarray of shape (n,)
            Values ω_i.
        """
        block, H = self.block, self._H
        W = self.half(block.Z, self._work)
        dsyrk(1.0, W, lower=1, c=H.T, overwrite_c=1)
        omega = np.einsum("ij,ij->i", W, W)
        if block.P is None:
            _square_omega(H, block.K, block.y, q, of_kernel, of_q, 1.0 / self.r)
            return omega
        V = self.half(block.P)
        omega = np.einsum("ij,ij->i", W, V)
        between = W @ V.T
        H *= (V @ V.T) * 0.5
        H += 0.5 * between * between.T
        H *= 1.0 / self.r
        H += of_kernel * np.outer(block.y, block.y) * block.K - of_q * np.outer(q, q)
        return omega


class GramForm:
    """Ω from an inverse of n × n, for kernel matrices of a large rank.

    Parameters
    ----------
    block : Block
        Samples.
    r : float
        Share of log|B| in the objective.
    H : ndarray of shape (n, n), C-contiguous
        Memory of the factor, its inverse and the Hessian.
    """

    def __init__(self, block, r, H):
        self.block, self.r, self._H = block, r, H

    def log_determinant(self, alpha):
        """Factor (1−r) I + A^½ K A^½ for a point, and return its log-determinant.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
            Point of the dual problem, positive.

        Returns
        -------
        float
            Logarithm; NaN if the matrix is not positive definite.
        """
        H = self._H
        _scaled_kernel(self.block.K, np.sqrt(alpha), 1.0 - self.r, H)
        _, info = dpotrf(H.T, lower=1, overwrite_a=1, clean=0)
        return np.nan if info != 0 else 2.0 * float(np.log(H.diagonal()).sum())

    def hessian(self, alpha, q, of_kernel, of_q):
        """Write the upper triangle of the Hessian without the barrier, for the last point.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
            Last point of `log_determinant`.
        q : ndarray of shape (n,)
            Gradient of the norm.
        of_kernel, of_q : float
            Factors of Q and of −q qᵀ.

        Returns
        -------
        ndarray of shape (n,)
            Values ω_i.
        """
        block, H = self.block, self._H
        dpotri(H.T, lower=1, overwrite_c=1)
        omega = np.empty(block.size)
        inverse_root = 1.0 / np.sqrt(alpha)
        _omega_of_inverse(H, inverse_root, self.r, omega)
        _square_omega(H, block.K, block.y, q, of_kernel, of_q, 1.0 / self.r)
        return omega


@njit(allocates=False)
def _scaled_kernel(K, root, shift, out):
    """Write the upper triangle of A^½ K A^½ + shift · I.

    Parameters
    ----------
    K : array (n, n)
        Kernel matrix.
    root : array (n,)
        Square roots of α.
    shift : float
        Addition to the diagonal.
    out : array (n, n)
        Receives the matrix.
    """
    for i in range(root.size):
        of_row, row, values = root[i], out[i], K[i]
        for j in range(i, root.size):
            row[j] = of_row * root[j] * values[j]
        row[i] += shift


@njit(allocates=False)
def _omega_of_inverse(H, inverse_root, r, omega):
    """Replace the inverse of (1−r) I + A^½ K A^½ by Ω, in the upper triangle.

    Parameters
    ----------
    H : array (n, n)
        Inverse; receives Ω.
    inverse_root : array (n,)
        1/√α.
    r : float
        Share of log|B| in the objective.
    omega : array (n,)
        Receives the diagonal.
    """
    for i in range(omega.size):
        row, of_row = H[i], r * inverse_root[i]
        for j in range(i + 1, omega.size):
            row[j] = -(1.0 - r) * row[j] * of_row * inverse_root[j]
        row[i] = (1.0 - (1.0 - r) * row[i]) * of_row * inverse_root[i]
        omega[i] = row[i]


@njit(allocates=False)
def _square_omega(H, K, y, q, of_kernel, of_q, of_omega):
    """Replace Ω by the Hessian without the barrier, in the upper triangle.

    Parameters
    ----------
    H : array (n, n)
        Ω; receives the Hessian.
    K : array (n, n)
        Kernel matrix.
    y : array (n,)
        Labels.
    q : array (n,)
        Gradient of the norm.
    of_kernel, of_q, of_omega : float
        Factors of Q, of −q qᵀ and of Ω∘Ω.
    """
    for i in range(y.size):
        row, values = H[i], K[i]
        of_label, of_gradient = of_kernel * y[i], of_q * q[i]
        for j in range(i, y.size):
            row[j] = of_omega * row[j] * row[j] + of_label * y[j] * values[j] - of_gradient * q[j]


def new_form(block, r, H, is_soft):
    """Return the cheaper way to compute Ω.

    With the factor of the kernel matrix a round takes 2 n ρ² + n² ρ + (n³ + ρ³)/3 flops for the rank ρ. With
    the inverse it takes 4/3 n³, which is less if ρ exceeds about n/2.

    Parameters
    ----------
    block : Block
        Samples.
    r : float
        Share of log|B| in the objective.
    H : ndarray of shape (n, n), C-contiguous
        Memory.
    is_soft : bool
        Whether the penalties are finite. A hard margin keeps the factor, because its α spreads over more
        magnitudes than the inverse has digits.

    Returns
    -------
    SpanForm or GramForm
        Way to compute Ω.
    """
    is_full = block.P is None and block.rank == block.size > 1
    is_large = is_soft and block.P is None and not block.is_given and block.rank > LOW_RANK_SHARE * block.size
    is_inverted = is_full or (is_large and 1.0 - r >= LEAST_IDENTITY)
    return GramForm(block, r, H) if is_inverted else SpanForm(block, r, H)


class _Barrier:
    """Objective with a barrier, and its Newton steps.

    Parameters
    ----------
    block : Block
        Samples.
    C : ndarray of shape (n,)
        Penalties; infinite for a hard margin.
    r : float
        Share of log|B| in the objective.
    """

    def __init__(self, block, C, r):
        self.block, self.C, self.r = block, C, r
        self.is_soft = bool(np.isfinite(C[0]))
        self._H = np.zeros((block.size, block.size))
        self.form = new_form(block, r, self._H, self.is_soft)
        self._log_determinant = np.nan

    def value(self, alpha, mu, is_factored=False):
        """Evaluate the objective, and factor the matrix of its logarithm.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
            Point inside the box.
        mu : float
            Weight of the barrier.
        is_factored : bool, default=False
            Whether the matrix of this point is still factored from the last call.

        Returns
        -------
        float
            Value, which is minimised; infinite outside the domain.
        """
        _, norm = self.block.products(self.block.y * alpha)
        S = np.hypot(mu, norm)
        if not is_factored:
            self._log_determinant = self.form.log_determinant(alpha)
        if np.isnan(self._log_determinant):
            return np.inf
        value = -self.r * self._log_determinant + S - mu * np.log(mu + S)
        with np.errstate(divide="ignore", invalid="ignore"):  # a weight may reach its bound by rounding
            value -= mu * float(np.log(alpha).sum())
            if self.is_soft:
                value -= mu * float(np.log(self.C - alpha).sum())
        return np.inf if np.isnan(value) else value

    def direction(self, alpha, mu, bounds):
        """Compute the Newton step at the last point of `value`.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
            Point inside the box.
        mu : float
            Weight of the barrier.
        bounds : tuple of ndarray of shape (n,)
            Multipliers δ and π of the bounds.

        Returns
        -------
        step : ndarray of shape (n,) or None
            Step with yᵀ step = 0; None if the Hessian cannot be factored.
        decrement : float
            Squared Newton decrement.
        omega_sum : float
            Σ α ω, which estimates ‖v‖ + Σ C ξ.
        """
        y, H = self.block.y, self._H
        products, norm = self.block.products(y * alpha)
        S = np.hypot(mu, norm)
        q = y * products / (mu + S)
        omega = self.form.hessian(alpha, q, 1.0 / (mu + S), 1.0 / S)
        gradient = q - omega - mu / alpha
        of_barrier = bounds[0] / alpha
        if self.is_soft:
            left = self.C - alpha
            gradient += mu / left
            of_barrier += bounds[1] / left
        diagonal = np.einsum("ii->i", H)
        diagonal += of_barrier
        kept, jitter = diagonal.copy(), 0.0
        for _ in range(5):
            lower, info = dpotrf(H.T, lower=1, overwrite_a=1, clean=0)
            if info == 0:
                break
            # The factor has overwritten the triangle: compute it again, with a larger diagonal.
            jitter = max(1e2 * jitter, 1e-14 * y.size)
            self.form.log_determinant(alpha)
            self.form.hessian(alpha, q, 1.0 / (mu + S), 1.0 / S)
            diagonal[:] = kept * (1.0 + jitter)  # kept has the same values without the jitter
        else:
            return None, np.inf, 0.0
        both, _ = dpotrs(lower, np.asfortranarray(np.column_stack((-gradient, y))), lower=1)
        step = both[:, 0] - (y @ both[:, 0]) / (y @ both[:, 1]) * both[:, 1]
        return step, max(float(-(gradient @ step)), 0.0), float(alpha @ omega)

    def centred(self, alpha, mu):
        """Return the multipliers of the bounds at the centre of the barrier.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
            Point inside the box.
        mu : float
            Weight of the barrier.

        Returns
        -------
        tuple of ndarray of shape (n,)
            μ/α and μ/(C−α), which is 0 for a hard margin.
        """
        return mu / alpha, mu / (self.C - alpha)

    def moved(self, bounds, alpha, new, mu):
        """Move the multipliers of the bounds by their Newton step.

        Parameters
        ----------
        bounds : tuple of ndarray of shape (n,)
            Multipliers δ and π.
        alpha, new : ndarray of shape (n,)
            Last point and the new one.
        mu : float
            Weight of the barrier.

        Returns
        -------
        tuple of ndarray of shape (n,)
            Multipliers, within a factor of `LARGEST_RATIO` of those of the centre.
        """
        centre = self.centred(new, mu)
        steps = new - alpha
        of_zero = (mu - bounds[0] * steps) / alpha
        of_C = (mu + bounds[1] * steps) / (self.C - alpha)
        return tuple(
            np.clip(each, middle / LARGEST_RATIO, LARGEST_RATIO * middle)
            for each, middle in zip((of_zero, of_C), centre, strict=True)
        )

    def longest(self, alpha, step):
        """Return the step length at which a weight reaches a bound.

        Parameters
        ----------
        alpha, step : ndarray of shape (n,)
            Point and direction.

        Returns
        -------
        float
            Length; infinite if there is none.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = np.where(step < 0.0, -alpha / step, np.inf)
            if self.is_soft:
                lengths = np.minimum(lengths, np.where(step > 0.0, (self.C - alpha) / step, np.inf))
        return float(lengths.min())

    def search(self, alpha, step, decrement, mu, value):
        """Search a step length with enough decrease.

        Parameters
        ----------
        alpha, step : ndarray of shape (n,)
            Point and Newton direction.
        decrement : float
            Squared Newton decrement.
        mu : float
            Weight of the barrier.
        value : float
            Objective at `alpha`.

        Returns
        -------
        alpha : ndarray of shape (n,) or None
            New point; None without enough decrease.
        value : float
            Objective at the new point, which is factored.
        """
        length = min(1.0, 0.99 * self.longest(alpha, step))
        rounding = 1e-14 * (abs(value) + alpha.size)
        for _ in range(40):
            moved = alpha + length * step
            new = self.value(moved, mu)
            if new <= value - ARMIJO * length * decrement + rounding:
                return moved, new
            length *= 0.5
        return None, value


def first_point(block, C, start=None):
    """Return a point inside the box with yᵀα = 0.

    Parameters
    ----------
    block : Block
        Samples.
    C : ndarray of shape (n,)
        Penalties; infinite for a hard margin.
    start : ndarray of shape (n,), optional
        Weights to start from.

    Returns
    -------
    ndarray of shape (n,)
        Point, positive.
    """
    mean = float(block.K.diagonal().mean())
    usual = 1.0 / np.sqrt(mean) if mean > 0.0 else 1.0
    if start is None:
        alpha = np.minimum(0.5 * C, usual)
    else:
        least = 1e-8 * np.minimum(C, max(usual, float(start.max())))
        alpha = np.minimum(np.maximum(start, least), 0.9 * C)
    return balanced(alpha, block.y)


def balanced(alpha, y):
    """Shrink the weights of one class so that yᵀα = 0.

    Parameters
    ----------
    alpha : ndarray of shape (n,)
        Weights, nonnegative.
    y : ndarray of shape (n,)
        Labels.

    Returns
    -------
    ndarray of shape (n,)
        Weights.
    """
    first = y > 0.0
    sums = float(alpha[first].sum()), float(alpha[~first].sum())
    least = min(sums)
    factors = [least / each if each > 0.0 else 0.0 for each in sums]
    return alpha * np.where(first, *factors)


def minimise(block, C, r, limits, start=None, from_middle=False):
    """Train for one C and r.

    Parameters
    ----------
    block : Block
        Samples.
    C : ndarray of shape (n,)
        Penalties; infinite for a hard margin.
    r : float
        Share of log|B| in the objective.
    limits : Limits
        When the training ends.
    start : ndarray of shape (n,), optional
        Interior point of a training for another C or r.
    from_middle : bool, default=False
        Whether to start from the middle of the box, which takes more rounds, but also succeeds where v
        vanishes. Finite penalties only.

    Returns
    -------
    Outcome
        Result. Its status is `AT_ZERO` if α = 0 is optimal, and `NOT_SEPARABLE` if a hard margin has no
        solution.
    """
    barrier = _Barrier(block, C, r)
    span = barrier.form if isinstance(barrier.form, SpanForm) else SpanFactor(block, r)
    diagonal = block.K.diagonal()
    alpha = first_point(block, C, start)
    mu = FIRST_MU if start is None else WARM_MU
    if from_middle:  # there the barrier is at its centre if it outweighs ‖v‖
        alpha = balanced(0.5 * C, block.y)
        mu = max(FIRST_MU, block.products(block.y * alpha)[1])
    first_mu = mu
    while not np.isfinite(barrier.value(alpha, mu)) and alpha.max() > 1e-12:
        alpha = 0.5 * alpha  # later rounds need M positive definite
    value, kept, n_iter = barrier.value(alpha, mu, is_factored=True), alpha, 0
    n_terms = block.size * (2 if barrier.is_soft else 1)
    found: tuple[Certificate, np.ndarray, float] | None = None

    def result(status):
        """Certify the best known point, and wrap it up.

        Parameters
        ----------
        status : int
            How the training ended.

        Returns
        -------
        Outcome
            Result.
        """
        certificate, point, at = found or (_certified(span, alpha, C, mu), alpha, mu)
        if status == CONVERGED:
            point, certificate = _snapped(span, point, C, at, certificate, limits.tol)
        return Outcome(point, certificate, status, n_iter, kept)

    bounds, n_at_mu = barrier.centred(alpha, mu), 0
    while True:
        if n_iter >= limits.max_iter:
            return result(LIMIT)
        if clock() > limits.deadline:
            return result(TIMEOUT)
        n_iter, n_at_mu = n_iter + 1, n_at_mu + 1
        step, decrement, estimate = barrier.direction(alpha, mu, bounds)
        if step is None or not np.isfinite(decrement):
            return result(STALLED)
        moved, new = barrier.search(alpha, step, decrement, mu, value)
        if moved is None or n_at_mu > MAX_ROUNDS:
            return result(FAR_AWAY if mu == first_mu and not from_middle else STALLED)
        bounds = barrier.moved(bounds, alpha, moved, mu)
        alpha, value = moved, new
        if not barrier.is_soft and float((alpha * diagonal).max()) > HARD_C:
            return result(NOT_SEPARABLE)
        if decrement >= CENTRED * mu:
            continue
        if mu >= WARM_MU * (1.0 - 1e-9):
            kept = alpha
        if _is_at_zero(block, alpha, r, diagonal):
            return result(AT_ZERO)
        if 0.1 * n_terms * mu <= max(limits.tol, LOOSE_TOL) * estimate or mu <= LAST_MU:
            certificate = _certified(span, alpha, C, mu)
            if found is None or certificate.gap < found[0].gap:
                found = certificate, alpha, mu
            if certificate.gap <= limits.tol:
                return result(CONVERGED)
            if mu <= LAST_MU or certificate.gap > 10.0 * found[0].gap:
                return result(STALLED)
        mu, n_at_mu = 0.1 * mu, 0
        value = barrier.value(alpha, mu, is_factored=True)  # a certificate factors the same matrix


def _certified(span, alpha, C, mu):
    """Certify a point of the barrier's path.

    Parameters
    ----------
    span : SpanFactor
        Workspace.
    alpha : ndarray of shape (n,)
        Point of the dual problem, balanced up to rounding.
    C : ndarray of shape (n,)
        Penalties.
    mu : float
        Weight of the barrier.

    Returns
    -------
    Certificate
        Certificate of the point.
    """
    return certify(span.block, span, alpha, C, mu if np.isfinite(C[0]) else 0.0)


def _is_at_zero(block, alpha, r, diagonal):
    """Return whether α = 0 is optimal.

    Parameters
    ----------
    block : Block
        Samples.
    alpha : ndarray of shape (n,)
        Point of the dual problem.
    r : float
        Share of log|B| in the objective.
    diagonal : ndarray of shape (n,)
        Values k(x_i, x_i).

    Returns
    -------
    bool
        True if a centre w leaves every sample outside the ball with B = r/(1−r) I.
    """
    if block.P is not None or float(alpha @ diagonal) > 0.1 * (1.0 - r) * block.size:
        return False
    products, norm = block.products(block.y * alpha)
    return norm > 0.0 and margin_share(block, products / norm) >= r / (1.0 - r)


def _snapped(span, alpha, C, mu, certificate, tol):
    """Set small weights to 0, and those close to their bound to it, if the gap stays within the tolerance.

    Parameters
    ----------
    span : SpanFactor
        Workspace.
    alpha : ndarray of shape (n,)
        Certified point.
    C : ndarray of shape (n,)
        Penalties.
    mu : float
        Weight of the barrier.
    certificate : Certificate
        Certificate of the point.
    tol : float
        Largest gap.

    Returns
    -------
    alpha : ndarray of shape (n,)
        Point.
    certificate : Certificate
        Its certificate.
    """
    y, omega = span.block.y, np.maximum(certificate.omega, 0.0)
    shares = alpha * omega
    slack = y * (certificate.decisions + certificate.bias) - omega
    near_bound = C - alpha < SNAPPED_SHARE * C
    for share in SNAPPED_SHARES:
        is_small = (shares < share * shares.mean()) & (slack > 0.0)
        new = np.where(is_small, 0.0, np.where(near_bound & (slack < 0.0), C, alpha))
        if not (new[y > 0.0].any() and new[y < 0.0].any()):
            continue
        new = balanced(new, y)
        of_new = _certified(span, new, C, mu)
        if of_new.gap <= tol:
            return new, of_new
    return alpha, certificate


def largest_margin(block, deadline=np.inf):
    """Return an upper bound on the largest ρ with y_i (w·z_i + b) ≥ ρ k(x_i, x_i) for a w with ‖w‖ ≤ 1.

    Parameters
    ----------
    block : Block
        Samples of two classes that a hyperplane separates.
    deadline : float, default=inf
        Time on `solvers.common.clock.clock` after which no round starts but the first one.

    Returns
    -------
    float
        Bound. Its relative error is `MARGIN_ACCURACY`, unless rounding is larger or the deadline was reached.
    """
    y, c = block.y, block.K.diagonal()
    Q = block.K * np.outer(y, y)
    alpha = balanced(np.full(y.size, 1.0 / max(float(c.mean()), 1e-300)), y)
    mu, best = 1.0, np.inf
    for _ in range(200):
        H = Q + np.diag(mu / alpha**2)
        gradient = Q @ alpha - c - mu / alpha
        lower, info = dpotrf(np.asfortranarray(H), lower=1, overwrite_a=1)
        if info != 0:
            break
        both, _ = dpotrs(lower, np.asfortranarray(np.column_stack((-gradient, y))), lower=1)
        step = both[:, 0] - (y @ both[:, 0]) / (y @ both[:, 1]) * both[:, 1]
        decrement = max(float(-(gradient @ step)), 0.0)
        with np.errstate(divide="ignore"):
            longest = float(np.where(step < 0.0, -alpha / step, np.inf).min())
        alpha = alpha + min(1.0, 0.95 * longest, 1.0 / (1.0 + 0.5 * np.sqrt(decrement / mu))) * step
        products = Q @ alpha
        norm = np.sqrt(max(float(alpha @ products), 0.0))
        upper = norm / float(alpha @ c)
        best = min(best, upper)
        if clock() > deadline:
            break
        if decrement < CENTRED * mu:
            lower_bound = margin_share(block, y * products / norm) if norm > 0.0 else 0.0
            if lower_bound >= best * (1.0 - MARGIN_ACCURACY):
                break
            mu *= 0.1
    return best


def train(block, C, r, limits, start=None):
    """Train for one C and r, with a larger r where α = 0 is optimal, and with a C where no margin is hard.

    Parameters
    ----------
    block : Block
        Samples.
    C : ndarray of shape (n,)
        Penalties; infinite for a hard margin.
    r : float
        Share of log|B| in the objective.
    limits : Limits
        When the training ends.
    start : ndarray of shape (n,), optional
        Interior point of a training for another C or r.

    Returns
    -------
    outcome : Outcome
        Result.
    r : float
        Value of r that was used.
    C : ndarray of shape (n,)
        Penalties that were used.
    """
    outcome, n_iter = _from_anywhere(block, C, r, limits, start), 0
    is_hopeless = outcome.status in (NOT_SEPARABLE, FAR_AWAY) or outcome.certificate.is_collapsed
    if not np.isfinite(C[0]) and is_hopeless:  # v of a hard margin vanishes only if all samples are equal
        C = penalties_of(np.array([HARD_C]), block.K.diagonal())
        n_iter += outcome.n_iter
        outcome = minimise(block, C, r, _left(limits, n_iter), from_middle=True)
    if outcome.status == AT_ZERO:
        ratio = RAISED_BY * largest_margin(block, limits.deadline)
        r = max(r, ratio / (1.0 + ratio))
        n_iter += outcome.n_iter
        outcome = minimise(block, C, r, _left(limits, n_iter))
    if outcome.status > STALLED:
        outcome.status = STALLED
    outcome.n_iter += n_iter
    if outcome.status == STALLED and np.isfinite(C[0]) and outcome.certificate.is_collapsed:
        outcome = _scaled(block, outcome, C, r, limits)
    return outcome, r, C


def _from_anywhere(block, C, r, limits, start=None):
    """Train, with a soft margin from the middle of the box if the usual start is too far away.

    Parameters
    ----------
    block : Block
        Samples.
    C : ndarray of shape (n,)
        Penalties; infinite for a hard margin.
    r : float
        Share of log|B| in the objective.
    limits : Limits
        When the training ends.
    start : ndarray of shape (n,), optional
        Interior point of a training for another C or r.

    Returns
    -------
    Outcome
        Result, with the number of all rounds.
    """
    outcome = minimise(block, C, r, limits, start)
    if outcome.status != FAR_AWAY or not np.isfinite(C[0]):
        return outcome
    if clock() > limits.deadline:
        outcome.status = TIMEOUT
        return outcome
    n_iter = outcome.n_iter
    outcome = minimise(block, C, r, _left(limits, n_iter), from_middle=True)
    outcome.n_iter += n_iter
    return outcome


def _scaled(block, outcome, C, r, limits):
    """Scale the solution for a smaller C, where v vanishes and rounding hides the optimum for this C.

    Without the constraint ‖w‖ ≤ 1, w, b, B and ξ of a C are those of C/s divided by s, and α is s times as
    large, but for the term (1−r) tr(B). The certificate is that of the scaled point, for the C asked for.

    Parameters
    ----------
    block : Block
        Samples.
    outcome : Outcome
        Result for this C, which did not converge.
    C : ndarray of shape (n,)
        Penalties, finite.
    r : float
        Share of log|B| in the objective.
    limits : Limits
        When the training ends; `outcome` has taken a part of its rounds.

    Returns
    -------
    Outcome
        Result with the smallest gap, and the number of all rounds.
    """
    size, finer = float((C * block.K.diagonal()).max()), limits._replace(tol=SCALED_TOL * limits.tol)
    for scale in (size / each for each in SCALED_SIZES if 1.0 < size / each < LARGEST_SCALE):
        if clock() > limits.deadline:
            outcome.status = TIMEOUT
            break
        smaller = _from_anywhere(block, C / scale, r, _left(finer, outcome.n_iter))
        n_iter, found = outcome.n_iter + smaller.n_iter, smaller.certificate
        if found.is_collapsed and found.denominator > 0.0:
            alpha = np.minimum(scale * smaller.alpha, C)
            # v grows by the scale, and w shrinks by it.
            denominator, norm = scale**2 * found.denominator, scale * found.norm
            smoothing = 0.5 * (denominator - norm * (norm / denominator))
            certificate = certify(block, SpanFactor(block, r), alpha, C, smoothing)
            if certificate.gap < outcome.certificate.gap:
                status = CONVERGED if certificate.gap <= limits.tol else STALLED
                outcome = Outcome(alpha, certificate, status, n_iter, scale * smaller.start)
        outcome.n_iter = n_iter
        if outcome.status == CONVERGED:
            break
    return outcome


def _left(limits, n_iter):
    """Return the limits that remain after some rounds.

    Parameters
    ----------
    limits : Limits
        Limits of the whole training.
    n_iter : int
        Number of rounds so far.

    Returns
    -------
    Limits
        Limits of the next rounds.
    """
    if limits.max_iter == NO_LIMIT:
        return limits
    return limits._replace(max_iter=max(1, limits.max_iter - n_iter))


def linearised_again(block, outcome, C, r, limits, rounds):
    """Linearise the constraints of the largest ellipsoid at the last solution, and train again.

    Parameters
    ----------
    block : Block
        Samples of the first round.
    outcome : Outcome
        Result of the first round.
    C : ndarray of shape (n,)
        Penalties.
    r : float
        Share of log|B| in the objective.
    limits : Limits
        When the training ends.
    rounds : int
        Number of rounds, with the first one.

    Returns
    -------
    outcome : Outcome
        Result of the last round.
    block : Block
        Samples with the directions of the last round.
    """
    current = block
    for _ in range(rounds - 1):
        span = SpanFactor(current, r)
        if outcome.status != CONVERGED or not np.isfinite(span.log_determinant(outcome.alpha)):
            break
        current = with_directions(current, span)
        n_iter = outcome.n_iter
        outcome = minimise(current, C, r, _left(limits, n_iter), outcome.start)
        outcome.n_iter += n_iter
        if outcome.status > STALLED:
            outcome.status = STALLED
    return outcome, current
