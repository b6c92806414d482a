"""Dual problem of the ellipsoidal support vector machine, its certificate, and centres of hard margins.

The machine searches the centre w and the matrix B of an ellipsoid in the version space (Momma 2011, 7)::

    minimise  −r log|B| + (1−r) tr B + Σ C_i ξ_i   so that   y_i (w·z_i + b) + ξ_i ≥ z_iᵀ B z_i,  ‖w‖ ≤ 1

for samples z_i in the space of the kernel. Its dual problem is, with v = Σ α_i y_i z_i::

    maximise  r log|M| − ‖v‖ + r dim,   M = B⁻¹ = ((1−r) I + Σ α_i z_i z_iᵀ) / r,   0 ≤ α ≤ C,  yᵀα = 0

In the code, `omega` holds ω_i = z_iᵀ B z_i, and Ω = Z B Zᵀ is the matrix of all z_iᵀ B z_j. A hard margin has
C_i = ∞. Samples enter by a factor of their kernel matrix, K ≈ Zᵀ Z with Z (rank, n). Where K differs from
ZᵀZ, B is r/(1−r) I in the directions that Z lacks, which the certificate takes into account.

Later rounds linearise the constraint ‖E z_i‖ of the largest ellipsoid at another matrix E than a multiple of
I (Momma 2011, 6). Then z_i z_iᵀ is replaced by (p_i z_iᵀ + z_i p_iᵀ)/2 with p_i = E z_i / ‖E z_i‖.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf, dpotrs, dpstrf

from solvers.common.certificate import UNIT_ROUNDOFF
from solvers.common.compile import njit

FEW_ROUNDINGS = 16.0
"""Rounding errors of a value that is computed by a triangular solution, in units of its own size."""
SMALL_DIAGONAL = 1e-6
"""Least k(x, x) by which C is divided, as a share of the mean: a row of zeros would have an infinite C_i."""
LOW_RANK_SHARE = 0.5
"""Rank as a share of n up to which a factor with a residual replaces a complete one."""
TARGET_SHARE = 1e-2
"""Share of the tolerance that the residual of a factor may cost."""
CANCELLING_SIZE = 1e4
"""Size of the coefficients of a vector, in units of its norm, above which their sum cancels many digits."""
RIDGE = 1e-12
"""Addition to the diagonal of ZZᵀ where w gets its smallest coefficients, as a share of its mean."""
COLLAPSED_NORM = 0.9
"""Norm of w below which v counts as 0."""
HARD_C = 1e8
"""Value of C that replaces a hard margin if the classes do not separate."""


@dataclass
class Block:
    """Samples of a subproblem in the space of the kernel, as a factor of their kernel matrix.

    Attributes
    ----------
    K : ndarray of shape (n, n), C-contiguous
        Kernel values.
    y : ndarray of shape (n,)
        Labels, −1.0 or 1.0.
    Z : ndarray of shape (rank, n), C-contiguous
        Factor of the kernel matrix.
    residual : ndarray of shape (n,)
        Diagonal of K − ZᵀZ, nonnegative.
    error : float
        Bound on the error of a kernel value.
    is_given : bool
        Whether the samples are Z by definition, as those of the linear kernel. Then K is ZᵀZ, and inner
        products are computed without it, which keeps more digits where v vanishes.
    P : ndarray of shape (rank, n) or None
        Directions p_i of later rounds; None in the first round, where they equal Z.
    """

    K: np.ndarray
    y: np.ndarray
    Z: np.ndarray
    residual: np.ndarray
    error: float = 0.0
    is_given: bool = False
    P: np.ndarray | None = None

    @property
    def rank(self):
        """Dimension of the space that Z spans."""
        return self.Z.shape[0]

    @property
    def size(self):
        """Number of samples."""
        return self.y.size

    @property
    def is_exact(self):
        """Whether ZᵀZ is the kernel matrix up to the rounding of its factor."""
        return self.residual.max() <= noise_of(self.K.diagonal())

    def products(self, beta):
        """Multiply the kernel matrix by a vector.

        Parameters
        ----------
        beta : ndarray of shape (n,)
            Coefficients β of v = Σ β_i z_i.

        Returns
        -------
        products : ndarray of shape (n,)
            v·z_i of every sample.
        norm : float
            ‖v‖.
        """
        if self.is_given:
            v = self.Z @ beta
            return v @ self.Z, float(np.linalg.norm(v))
        products = self.K @ beta
        return products, float(np.sqrt(max(float(beta @ products), 0.0)))

    def upper_norm(self, beta, norm):
        """Bound ‖v‖ from above.

        Parameters
        ----------
        beta : ndarray of shape (n,)
            Coefficients of v.
        norm : float
            Computed norm.

        Returns
        -------
        float
            Bound that allows for the rounding of kernel values and of the sums.
        """
        total, largest = np.abs(beta).sum(), float(self.K.diagonal().max(initial=0.0))  # total² may overflow
        unit = FEW_ROUNDINGS * UNIT_ROUNDOFF
        if self.is_given:
            return float(norm + unit * total * np.sqrt(largest))
        return float(np.sqrt(norm**2 + total**2 * (self.error + unit * largest)))


class Certificate(NamedTuple):
    """Point of the primal problem, and its distance from a point of the dual problem."""

    gap: float  # (P − D) / (Σ C ξ + ‖v‖), with an allowance for rounding errors
    bias: float  # b
    omega: np.ndarray  # (n,): z_iᵀ B z_i, without the directions that Z lacks
    decisions: np.ndarray  # (n,): w·z_i
    coefficients: np.ndarray  # (n,): w = Σ coefficients_i z_i
    is_collapsed: bool  # whether v vanishes, so that ‖w‖ is less than 1
    norm: float  # ‖v‖
    mean_margin: float  # Σ α ω / Σ α
    objective: float  # dual objective
    denominator: float  # w = v / denominator


def noise_of(diagonal):
    """Return the size below which the pivot of a kernel matrix is rounding.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        Diagonal of the kernel matrix.

    Returns
    -------
    float
        Bound on the rounding of a pivot.
    """
    return 2.0 * diagonal.size * UNIT_ROUNDOFF * float(diagonal.max(initial=0.0))


def factor_of(K, target):
    """Factor a kernel matrix by the pivoted Cholesky method.

    Parameters
    ----------
    K : ndarray of shape (n, n), C-contiguous
        Symmetric positive semidefinite matrix.
    target : float
        Largest entry of the residual's diagonal. It is at least the rounding of a pivot.

    Returns
    -------
    Z : ndarray of shape (rank, n), C-contiguous
        Factor with at least one row.
    residual : ndarray of shape (n,)
        Diagonal of K − ZᵀZ, nonnegative; 0 if the factor is complete.
    """
    n = K.shape[0]
    diagonal = K.diagonal()
    tolerance = max(target, noise_of(diagonal))
    lower, pivots, rank, _ = dpstrf(K.T, tol=tolerance, lower=1)
    rank = max(1, int(rank))
    if diagonal.max() <= 0.0:
        return np.zeros((1, n)), np.zeros(n)
    order = pivots - 1
    Z = np.zeros((rank, n))
    _scatter_factor(lower.T, order.astype(np.int64), Z)
    residual = np.maximum(diagonal - np.einsum("ij,ij->j", Z, Z), 0.0)
    if rank == n:
        residual[:] = 0.0
    return Z, residual


@njit(allocates=False)
def _scatter_factor(upper, order, Z):
    """Write the rows of a triangular factor in the original order of the samples.

    Parameters
    ----------
    upper : array (n, n)
        Transposed lower factor of the permuted matrix: row a holds step a.
    order : int64 array (n,)
        Sample at each position of the permuted matrix.
    Z : array (rank, n)
        Receives the factor; 0 at the start.
    """
    for a in range(Z.shape[0]):
        for i in range(a, order.size):
            Z[a, order[i]] = upper[a, i]


def new_block(K, y, target, error=0.0, floor=0.0):
    """Factor the kernel matrix of a subproblem.

    Parameters
    ----------
    K : ndarray of shape (n, n), C-contiguous
        Kernel values.
    y : ndarray of shape (n,)
        Labels, −1.0 or 1.0.
    target : float or None
        Largest residual of a factor of low rank; None for a complete factor.
    error : float, default=0
        Bound on the error of a kernel value.
    floor : float, default=0
        Largest pivot that is a rounding error of the kernel values.

    Returns
    -------
    Block
        Samples with a factor of low rank if its rank is at most `LOW_RANK_SHARE` of n, else a complete one.
    """
    if target is not None:
        Z, residual = factor_of(K, max(target, floor))
        if Z.shape[0] <= LOW_RANK_SHARE * y.size:
            return Block(K, y, Z, residual, error)
    Z, residual = factor_of(K, floor)
    return Block(K, y, Z, residual, error)


def residual_target(C, diagonal, r, tol):
    """Return the residual of a factor that hardly changes the certificate.

    Parameters
    ----------
    C : ndarray of shape (n,)
        Penalties of the slacks; infinite for a hard margin.
    diagonal : ndarray of shape (n,)
        Values k(x_i, x_i).
    r : float
        Share of log|B| in the objective.
    tol : float
        Largest gap.

    Returns
    -------
    float
        Largest entry of the residual's diagonal.
    """
    scale = 1.0 / float(C.max()) if np.isfinite(C[0]) else tol * float(diagonal.mean())
    return TARGET_SHARE * tol * (1.0 - r) / r * min(scale, float(diagonal.mean()))


def is_positive_semidefinite(block):
    """Return whether the kernel matrix is positive semidefinite up to rounding.

    Parameters
    ----------
    block : Block
        Samples with a factor whose residual the method knows.

    Returns
    -------
    bool
        False if an entry of K − ZᵀZ exceeds what its diagonal allows.
    """
    n, step = block.size, max(1, (1 << 22) // block.size)
    allowed = block.residual.max() + 8.0 * noise_of(block.K.diagonal()) + 2.0 * block.error
    for first in range(0, n, step):
        part = slice(first, first + step)
        if np.abs(block.K[part] - block.Z[:, part].T @ block.Z).max() > allowed:
            return False
    return True


def penalties_of(C, diagonal):
    """Return the penalties C_i = C / k(x_i, x_i).

    Parameters
    ----------
    C : ndarray of shape (1,) or (n,)
        Penalties C, multiplied by the weights of the samples; infinite for a hard margin.
    diagonal : ndarray of shape (n,)
        Values k(x_i, x_i).

    Returns
    -------
    ndarray of shape (n,)
        Penalties of the slacks.
    """
    mean = float(diagonal.mean())
    floor = SMALL_DIAGONAL * mean if mean > 0.0 else 1.0
    return np.broadcast_to(C, diagonal.shape) / np.maximum(diagonal, floor)


class SpanFactor:
    """Factor of (1−r) I + Σ α_i z_i z_iᵀ in the space that Z spans.

    Parameters
    ----------
    block : Block
        Samples.
    r : float
        Share of log|B| in the objective.
    """

    def __init__(self, block, r):
        self.block, self.r = block, r
        self._work = np.empty((block.size, block.rank), order="F")
        self._lower = np.empty((0, 0))

    def log_determinant(self, alpha):
        """Factor the matrix for a point, and return its log-determinant.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
            Point of the dual problem, nonnegative.

        Returns
        -------
        float
            log|(1−r) I + Σ α_i z_i z_iᵀ|; NaN if it is not positive definite.
        """
        block, work = self.block, self._work
        if block.P is None:
            np.multiply(block.Z.T, np.sqrt(alpha)[:, None], out=work)
            S = dsyrk(1.0, work, trans=1, lower=1)
        else:
            np.multiply(block.Z.T, alpha[:, None], out=work)
            product = work.T @ block.P.T
            S = np.asfortranarray(0.5 * (product + product.T))
        S[np.diag_indices(block.rank)] += 1.0 - self.r
        lower, info = dpotrf(S, lower=1, overwrite_a=1)
        self._lower = lower
        if info != 0:
            return np.nan
        return 2.0 * float(np.log(lower.diagonal()).sum())

    def half(self, A, out=None):
        """Multiply samples by a root of B.

        Parameters
        ----------
        A : ndarray of shape (rank, n), C-contiguous
            Samples, one a column.
        out : F-ordered ndarray of shape (n, rank), optional
            Memory of the result.

        Returns
        -------
        F-ordered ndarray of shape (n, rank)
            Rows whose inner products are those of B.
        """
        if out is None:
            out = np.empty(A.T.shape, order="F")
        out[:] = A.T
        return dtrsm(np.sqrt(self.r), self._lower, out, side=1, lower=1, trans_a=1, overwrite_b=1)

    def omega(self):
        """Return z_iᵀ B p_i of every sample for the last point.

        Returns
        -------
        ndarray of shape (n,)
            Values, which are z_iᵀ B z_i in the first round.
        """
        W = self.half(self.block.Z, self._work)
        if self.block.P is None:
            return np.einsum("ij,ij->i", W, W)
        return np.einsum("ij,ij->i", W, self.half(self.block.P))

    def log_volume(self):
        """Return log|B| in the space that Z spans, for the last point.

        Returns
        -------
        float
            Logarithm of the determinant.
        """
        return self.block.rank * np.log(self.r) - 2.0 * float(np.log(self._lower.diagonal()).sum())

    def images(self):
        """Return B z_i of every sample for the last point.

        Returns
        -------
        ndarray of shape (rank, n), C-contiguous
            Images, one a column.
        """
        W = self.half(self.block.Z)
        out = dtrsm(np.sqrt(self.r), self._lower, W, side=1, lower=1, trans_a=0, overwrite_b=1)
        return np.ascontiguousarray(out.T)


def dual_objective(block, r, log_determinant, norm):
    """Return the dual objective r log|M| − ‖v‖ + r dim in the space that Z spans.

    Parameters
    ----------
    block : Block
        Samples.
    r : float
        Share of log|B| in the objective.
    log_determinant : float
        Logarithm log|(1−r) I + Σ α_i z_i z_iᵀ|.
    norm : float
        ‖v‖.

    Returns
    -------
    float
        Objective, which is maximised.
    """
    return r * (log_determinant - block.rank * np.log(r) + block.rank) - norm


def certify(block, factor, alpha, C, smoothing=0.0):
    """Bound the distance of a point from the optimum.

    Parameters
    ----------
    block : Block
        Samples.
    factor : SpanFactor
        Workspace, which is factored for the point.
    alpha : ndarray of shape (n,)
        Point of the dual problem: 0 ≤ α ≤ C and yᵀα = 0.
    C : ndarray of shape (n,)
        Penalties of the slacks; all infinite for a hard margin.
    smoothing : float, default=0
        Number μ in w = v / (μ + √(μ² + ‖v‖²)); 0 for w = v / ‖v‖.

    Returns
    -------
    Certificate
        Bound and primal point; the gap is infinite if no primal point is known.
    """
    r, y = factor.r, block.y
    beta = y * alpha
    _, norm = block.products(beta)
    log_determinant = factor.log_determinant(alpha)
    omega = factor.omega()
    denominator = smoothing + np.hypot(smoothing, norm)
    scale = 1.0 / denominator if denominator > 0.0 else 0.0
    coefficients = centre_of(block, scale * beta, scale * norm)
    decisions, _ = block.products(coefficients)
    unit = FEW_ROUNDINGS * UNIT_ROUNDOFF
    value_error = block.error + unit * np.abs(block.K).max(initial=0.0)
    error = value_error * float(np.abs(coefficients).sum())
    total, of_dual = float(alpha.sum()), float(alpha @ omega)
    upper_norm = block.upper_norm(beta, norm)
    upper = omega * (1.0 + unit * np.sqrt(block.rank)) + r / (1.0 - r) * block.residual
    lower_sum = of_dual * (1.0 - unit * np.sqrt(block.rank))
    if np.isfinite(C[0]):
        bias = soft_bias(y, upper - y * decisions, C)
        slacks = np.maximum(upper + error - y * (decisions + bias), 0.0)
        loss = float(C @ slacks)
        distance, size = loss + upper_norm - lower_sum + abs(bias * float(beta.sum())), loss + upper_norm
        gap = distance / size if size > 0.0 else 0.0
    else:
        bias, share = hard_bias(y, decisions, upper, error)
        gap = np.inf
        if share > 0.0 and norm > 0.0:
            dimension = block.rank if block.is_exact else block.size
            spread = share - 1.0 - np.log(share)
            gap = (r * dimension * spread + upper_norm - share * lower_sum) / norm
    mean_margin = of_dual / total if total > 0.0 else 1.0
    objective = dual_objective(block, r, log_determinant, norm)
    gap = float(max(gap, 0.0)) if np.isfinite(log_determinant) and not np.isnan(gap) else np.inf
    is_collapsed = norm * scale < COLLAPSED_NORM
    return Certificate(
        gap, bias, omega, decisions, coefficients, is_collapsed, norm, mean_margin, objective, denominator
    )


def centre_of(block, coefficients, norm):
    """Return coefficients of the centre w that are not much larger than needed.

    Where v vanishes, the coefficients of w = v / (μ + S) are huge, and their sum cancels. Then w is expressed
    by all samples, with the smallest coefficients.

    Parameters
    ----------
    block : Block
        Samples.
    coefficients : ndarray of shape (n,)
        Coefficients of w.
    norm : float
        Norm of w, at most 1.

    Returns
    -------
    ndarray of shape (n,)
        Coefficients of the same vector, or of one that differs by little.
    """
    size = float(np.abs(coefficients).sum()) * np.sqrt(max(float(block.K.diagonal().mean()), 0.0))
    if not size > CANCELLING_SIZE * norm:
        return coefficients
    S = dsyrk(1.0, block.Z.T, trans=1, lower=1)
    S[np.diag_indices(block.rank)] += RIDGE * float(S.diagonal().mean())
    lower, info = dpotrf(S, lower=1, overwrite_a=1)
    if info != 0:
        return coefficients
    solved, _ = dpotrs(lower, block.Z @ coefficients, lower=1)
    found = solved @ block.Z
    _, norm = block.products(found)
    return found / max(1.0, norm)


def soft_bias(y, lacking, C):
    """Return the bias b that minimises Σ C_i max(0, lacking_i − y_i b).

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels.
    lacking : ndarray of shape (n,)
        Values ω_i − y_i w·z_i.
    C : ndarray of shape (n,)
        Penalties, finite.

    Returns
    -------
    float
        Weighted median of y_i · lacking_i: the middle of the interval if it is not unique.
    """
    points = y * lacking
    order = np.argsort(points, kind="stable")
    reached = np.cumsum(C[order])
    needed = float(C[y > 0.0].sum())
    k = min(int(np.searchsorted(reached, needed * (1.0 - 1e-14))), y.size - 1)
    # All samples are within their margins, and both classes have the same penalty: an end of the interval
    # would classify all samples alike.
    last = k + 1 if k + 1 < y.size and reached[k] <= needed * (1.0 + 1e-14) else k
    return float(0.5 * (points[order[k]] + points[order[last]]))


def hard_bias(y, decisions, omega, error=0.0):
    """Return the bias for which the smallest y_i (w·z_i + b) / ω_i is largest, and this share.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels of both classes.
    decisions : ndarray of shape (n,)
        Values w·z_i.
    omega : ndarray of shape (n,)
        Values ω_i, nonnegative.
    error : float, default=0
        Bound on the error of a decision, by which each is lowered.

    Returns
    -------
    bias : float
        Bias b.
    share : float
        Smallest ratio, at most 1; 0 if a sample is on the wrong side.
    """
    first, second = y > 0.0, y < 0.0
    f, g = decisions[first] - error, -decisions[second] - error
    of_first, of_second = omega[first], omega[second]
    share = 1.0
    for _ in range(y.size):
        low, high = share * of_first - f, g - share * of_second
        i, j = int(low.argmax()), int(high.argmin())
        sizes = of_first[i] + of_second[j]
        if low[i] <= high[j] or not sizes > 0.0:
            break
        lower = float(f[i] + g[j]) / sizes
        if not 0.0 < lower < share:  # not separated, or equal up to rounding
            share = max(0.0, min(lower, share))
            break
        share = lower
    bias = 0.5 * float((share * of_first - f).max() + (g - share * of_second).min())
    if share > 0.0:
        ratios = np.append(
            (f + bias) / np.maximum(of_first, 1e-300), (g - bias) / np.maximum(of_second, 1e-300)
        )
        share = max(0.0, min(1.0, float(ratios.min())))
    return bias, share


def margin_share(block, decisions):
    """Return the largest ρ with y_i (w·z_i + b) ≥ ρ k(x_i, x_i) for every sample and some b.

    Parameters
    ----------
    block : Block
        Samples.
    decisions : ndarray of shape (n,)
        Values w·z_i.

    Returns
    -------
    float
        Share; 0 if the samples are not separated. If it is at least r/(1−r), α = 0 is optimal.
    """
    diagonal = block.K.diagonal()
    top = float(np.abs(decisions).max(initial=0.0)) / max(float(diagonal.min()), 1e-300)
    if not 0.0 < top < np.inf:
        return 0.0
    _, share = hard_bias(block.y, decisions, 2.0 * top * diagonal)
    return 2.0 * top * share


def with_directions(block, factor):
    """Return the samples for the next round, linearised at the matrix B of the last point.

    Parameters
    ----------
    block : Block
        Samples of the first round.
    factor : SpanFactor
        Factor of the last point.

    Returns
    -------
    Block
        Samples with the directions B z_i / ‖B z_i‖.
    """
    images = factor.images()
    norms = np.sqrt(np.einsum("ij,ij->j", images, images))
    P = images / np.where(norms > 0.0, norms, 1.0)
    return Block(block.K, block.y, block.Z, block.residual, block.error, block.is_given, P)


def outside_share(block, factor, certificate):
    """Return the share of the samples whose hyperplane cuts the ellipsoid with the matrix B.

    Parameters
    ----------
    block : Block
        Samples.
    factor : SpanFactor
        Factor of the last point.
    certificate : Certificate
        Centre and bias.

    Returns
    -------
    float
        Share of the samples with y_i (w·z_i + b) < ‖B z_i‖, up to 0.1 %.
    """
    images = factor.images()
    radii = np.sqrt(
        np.einsum("ij,ij->j", images, images) + (factor.r / (1.0 - factor.r)) ** 2 * block.residual
    )
    margins = block.y * (certificate.decisions + certificate.bias)
    return float((margins < (1.0 - 1e-3) * radii).mean())
