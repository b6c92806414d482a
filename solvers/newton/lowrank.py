"""Newton's method for the modified L2 SVM in a low-rank feature space.

With ``H ≈ ZᵀZ`` the kernel problem is a linear L2-loss SVM in r dimensions, ``min ½|w|² + ½ Σ max(0, 1 -
f_i)² · C_i``, ``f = Zᵀw`` (Mangasarian 2002; Keerthi & DeCoste 2005). A Newton round costs ``s r²`` flops
for s active rows instead of ``s³/3``. It costs less if few rows changed since the last round.
"""

from typing import NamedTuple

import numpy as np

from solvers.common.certificate import TERMS_IN_PRODUCT, UNIT_ROUNDOFF, certified_gap, error_of_sums
from solvers.common.compile import inlined, inner, njit
from solvers.gram.block import divided, largest_value
from solvers.newton.support import line_search, solve_cholesky

# Smallest ratio of active rows to changed rows at which a certificate is worth its cost.
CHANGES_NEAR_THE_END = 64
# Gap of the low-rank problem, as a share of the tolerance, below which more rounds would not improve the gap
# for the exact kernel.
INNER_SHARE = 0.1
# Bounds on two errors of a factor: how much the elimination of a column amplifies its error, and how many
# roundings each pivot adds.
NOISE_OF_VALUES, NOISE_OF_RANK = 4.0, 1.0


class FeatureSpace(NamedTuple):
    """A low-rank feature space with the last Newton point in it."""

    Z: np.ndarray  # (r, m), C-contiguous
    residual: np.ndarray  # (m,) diagonal of H - ZᵀZ
    f: np.ndarray  # (m,) margins Zᵀw
    w: np.ndarray  # (r,) Newton point
    scatter: np.ndarray  # (r, r), see `update_scatter`
    counted: np.ndarray  # (m,) bool: rows that the scatter contains


@inlined
def update_scatter(space, inverse_weight):
    """Update ``scatter = Σ z_i z_iᵀ / inverse_weight_i`` over the rows with ``f < 1``.

    Parameters
    ----------
    space : FeatureSpace
        The feature space; `scatter` and `counted` are changed in place.
    inverse_weight : array (m,)
        Factor of each sample that gives 1/C of the sample when it is divided by C.
    """
    Z, f, scatter, counted = space.Z, space.f, space.scatter, space.counted
    rank, m = Z.shape
    n_changed, n_active = 0, 0
    for i in range(m):
        n_changed += (f[i] < 1.0) != counted[i]
        n_active += f[i] < 1.0
    rebuild = n_changed > n_active
    rows, n = np.empty(m, np.int64), 0
    for i in range(m):
        is_active = f[i] < 1.0
        if is_active if rebuild else is_active != counted[i]:
            rows[n] = i
            n += 1
        counted[i] = is_active
    part, weighted = np.empty((rank, n)), np.empty((rank, n))
    for a in range(rank):
        for b in range(n):
            i = rows[b]
            part[a, b] = Z[a, i]
            weighted[a, b] = (1.0 if counted[i] else -1.0) / inverse_weight[i] * Z[a, i]
    product = np.zeros((rank, rank))
    if n > 0:
        np.dot(weighted, part.T, product)
    for a in range(rank):
        for b in range(rank):
            scatter[a, b] = (0.0 if rebuild else scatter[a, b]) + product[a, b]


@inner(allocates=True)
def dual_certificate(space, inverse_C, value_error, largest, alpha, g):
    """Compute the hull point that belongs to the margins ``f``, and its gaps.

    The inner gap is that of the low-rank problem. The other gap holds for the exact kernel. The part that
    the rank leaves out, ``E``, enters by Cauchy-Schwarz: ``|(Eα)_i| <= sqrt(E_ii) q`` and ``0 <= αᵀEα <=
    q²`` with ``q = Σ sqrt(E_jj) α_j``. ``E_ii`` is known up to some roundings for each rank.

    Parameters
    ----------
    space : FeatureSpace
        The feature space with its margins.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.
    value_error : float
        Bound on the error of the columns from which ``Z`` was computed.
    largest : float
        Bound on the diagonal of ``H``.
    alpha : array (m,)
        Receives the weights of the hull point.
    g : array (m,)
        Receives the low-rank inner products.

    Returns
    -------
    square_norm : float
        ``||c||²`` of the low-rank problem.
    inner : float
        Gap of the low-rank problem.
    gap : float
        Certified gap for the exact kernel.
    """
    Z, residual, f = space.Z, space.residual, space.f
    total, n_terms = 0.0, 0
    largest += largest_value(inverse_C)
    for i in range(f.size):
        n_terms += f[i] < 1.0
        alpha[i] = max(0.0, 1.0 - f[i]) / inverse_C[i]
        total += alpha[i]
    noise = NOISE_OF_VALUES * value_error + NOISE_OF_RANK * (Z.shape[0] + 8) * UNIT_ROUNDOFF * largest
    error = error_of_sums(noise, largest, (n_terms + Z.shape[0]) / TERMS_IN_PRODUCT, np.int64(0))
    q = 0.0
    square = 0.0
    for i in range(f.size):
        alpha[i] /= total
        q += np.sqrt(residual[i] + noise) * alpha[i]
        square += inverse_C[i] * alpha[i] * alpha[i]
    w = np.empty(Z.shape[0])
    np.dot(Z, alpha, w)
    square_norm = np.dot(w, w) + square
    g[:] = 0.0  # BLAS does not write g if the rank is 0
    np.dot(w, Z, g)
    inner, outer = np.inf, np.inf
    for i in range(f.size):
        g[i] += inverse_C[i] * alpha[i]
        inner = min(inner, g[i])
        outer = min(outer, g[i] - np.sqrt(residual[i] + noise) * q)
    inner = max(inner, 0.0) / square_norm
    return square_norm, 1.0 - inner * inner, certified_gap(square_norm + q * q, outer, error, 1.0)


@njit
def newton_rounds_lowrank(space, inverse_weight, C, alpha, g, tol, value_error, largest, max_rounds):
    """Run Newton rounds from ``w`` until its gap, or that of the low-rank problem, is small enough.

    Parameters
    ----------
    space : FeatureSpace
        The feature space; its Newton point and scatter are changed in place.
    inverse_weight : array (m,)
        ``1 / sample_weight``; inverse_C is this over C.
    C : float
        Penalty of the errors, positive.
    alpha, g : arrays (m,)
        Receive the hull point and its inner products.
    tol : float
        Bound on the certified gap.
    value_error : float
        Bound on the error of the columns from which ``Z`` was computed.
    largest : float
        Largest diagonal entry of ``H``.
    max_rounds : int
        Number of Newton rounds after which the loop stops.

    Returns
    -------
    rounds : int
        Number of Newton rounds that were done.
    square_norm : float
        ``||c||²`` of the low-rank problem.
    gap : float
        Gap certified against the exact kernel. It exceeds ``tol`` if the rank is too small for it, or if the
        rounds are used up.
    finished : bool
        Whether more rounds would not help.
    """
    Z, f, w, scatter, counted = space.Z, space.f, space.w, space.scatter, space.counted
    m, rank = f.size, w.size
    inverse_C, active_C = divided(inverse_weight, C), np.empty(m)
    system, right, f_new = np.empty((rank, rank)), np.empty(rank), np.zeros(m)
    square_norm, gap = 0.0, 1.0
    for round_ in range(1, max_rounds + 1):
        update_scatter(space, inverse_weight)
        for a in range(rank):
            for b in range(rank):
                system[a, b] = C * scatter[a, b]
            system[a, a] += 1.0
        for i in range(m):
            active_C[i] = (1.0 if counted[i] else 0.0) / inverse_C[i]
        np.dot(Z, active_C, right)
        w_new = solve_cholesky(np.ascontiguousarray(np.linalg.cholesky(system)), right)
        np.dot(w_new, Z, f_new)
        changed, n_active = 0, 0
        for i in range(m):
            changed += (f_new[i] < 1.0) != counted[i]
            n_active += counted[i]
        t = 1.0
        if changed:
            t = line_search(f, f_new, inverse_C, np.dot(w, w), np.dot(w, w_new), np.dot(w_new, w_new))
        for a in range(rank):
            w[a] += t * (w_new[a] - w[a])
        for i in range(m):
            f[i] += t * (f_new[i] - f[i])
        if CHANGES_NEAR_THE_END * changed <= n_active:
            square_norm, inner, gap = dual_certificate(space, inverse_C, value_error, largest, alpha, g)
            if changed == 0 or gap <= tol or inner <= INNER_SHARE * tol:
                return round_, square_norm, gap, True
    square_norm, inner, gap = dual_certificate(space, inverse_C, value_error, largest, alpha, g)
    return max_rounds, square_norm, gap, gap <= tol
