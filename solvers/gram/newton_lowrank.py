"""Newton's method for the modified L2 SVM in a low-rank feature space.

With ``H ≈ ZᵀZ`` the kernel machine is a linear L2-loss SVM in r dimensions, ``min ½|w|² + ½ Σ max(0, 1 -
f_i)² · C_i``, ``f = Zᵀw`` (Mangasarian 2002; Keerthi & DeCoste 2005). A Newton round costs ``s r²`` flops
for s active rows instead of ``s³/3``, and less when few rows changed since the last round.
"""

from typing import NamedTuple

import numpy as np

from solvers.common.certificate import TERMS_IN_PRODUCT, UNIT_ROUNDOFF, certified_gap, error_of_sums
from solvers.common.compile import njit
from solvers.gram.block import copy_values
from solvers.gram.newton_support import line_search, solve_cholesky

# A certificate is worth its price once at most one active row in this many has changed.
CHANGES_NEAR_THE_END = 64
# The low-rank problem is solved well enough at this share of the tolerance: more would not show in the exact
# kernel.
INNER_SHARE = 0.1
# What the elimination of a column makes of an error in it, and of its own roundings.
NOISE_OF_VALUES, NOISE_OF_RANK = 4.0, 1.0


class FeatureSpace(NamedTuple):
    """A low-rank feature space with the last Newton point in it."""

    Z: np.ndarray  # (r, m), C-contiguous
    residual: np.ndarray  # (m,) diagonal of H - ZᵀZ
    f: np.ndarray  # (m,) margins Zᵀw
    w: np.ndarray  # (r,)
    scatter: np.ndarray  # (r, r), see `update_scatter`
    counted: np.ndarray  # (m,) bool: the rows that the scatter holds


@njit
def update_scatter(space, inverse_weight):
    """Bring ``scatter = Σ z_i z_iᵀ / inverse_weight_i`` over ``{f < 1}`` up to date."""
    Z, f, scatter, counted = space.Z, space.f, space.scatter, space.counted
    rank = Z.shape[0]
    changed = np.flatnonzero((f < 1.0) != counted)
    n_active = np.sum(f < 1.0)
    rebuild = changed.size > n_active
    rows = np.flatnonzero(f < 1.0) if rebuild else changed
    if rebuild:
        scatter[:] = 0.0
    weight = np.where(f[rows] < 1.0, 1.0, -1.0) / inverse_weight[rows]
    part = np.empty((rank, rows.size))
    for a in range(rank):
        for b in range(rows.size):
            part[a, b] = Z[a, rows[b]]
    scatter += np.dot(weight * part, part.T)
    copy_values(f < 1.0, counted)


@njit
def dual_certificate(space, inverse_C, value_error, largest, alpha, g):
    """Fill the hull point of margins ``f`` and its low-rank ``g``; return (square_norm, inner gap, gap).

    ``value_error`` bounds the error of the columns that ``Z`` was made of, ``largest`` the diagonal of ``H``.
    The inner gap is that of the low-rank problem. The other one holds for the exact kernel: what the rank
    leaves out, ``E``, enters by Cauchy-Schwarz, ``|(Eα)_i| <= sqrt(E_ii) q`` and ``0 <= αᵀEα <= q²`` with ``q
    = Σ sqrt(E_jj) α_j``. ``E_ii`` is known to some roundings for each rank.
    """
    Z, residual, f = space.Z, space.residual, space.f
    total, n_terms = 0.0, 0
    largest += np.max(inverse_C)
    for i in range(f.size):
        n_terms += f[i] < 1.0
        alpha[i] = max(0.0, 1.0 - f[i]) / inverse_C[i]
        total += alpha[i]
    noise = NOISE_OF_VALUES * value_error + NOISE_OF_RANK * (Z.shape[0] + 8) * UNIT_ROUNDOFF * largest
    error = error_of_sums(noise, largest, (n_terms + Z.shape[0]) / TERMS_IN_PRODUCT, 0)
    q = 0.0
    square = 0.0
    for i in range(f.size):
        alpha[i] /= total
        q += np.sqrt(residual[i] + noise) * alpha[i]
        square += inverse_C[i] * alpha[i] * alpha[i]
    w = np.dot(Z, alpha)
    square_norm = np.dot(w, w) + square
    copy_values(np.dot(w, Z), g)
    inner, outer = np.inf, np.inf
    for i in range(f.size):
        g[i] += inverse_C[i] * alpha[i]
        inner = min(inner, g[i])
        outer = min(outer, g[i] - np.sqrt(residual[i] + noise) * q)
    inner = max(inner, 0.0) / square_norm
    return square_norm, 1.0 - inner * inner, certified_gap(square_norm + q * q, outer, error)


@njit
def newton_rounds_lowrank(space, inverse_weight, C, alpha, g, tol, value_error, largest, max_rounds):
    """Newton rounds from ``w`` until the gap, or at least that of the low-rank problem, is small enough.

    Parameters
    ----------
    space : FeatureSpace
        The Newton point in it and its scatter are changed in place.
    inverse_weight : array (m,)
        ``1 / sample_weight``; inverse_C is this over C.
    C : float
    alpha, g : arrays (m,)
        The hull point and its products, filled.
    tol : float
    value_error, largest : float
        Bound on the error of the columns that ``Z`` was made of; largest diagonal entry of ``H``.
    max_rounds : int

    Returns
    -------
    rounds : int
    square_norm : float
    gap : float
        Certified against the exact kernel; above ``tol`` when the rank is too small for it (or rounds ran
        out).
    finished : bool
        Whether more rounds would not help.
    """
    Z, f, w, scatter, counted = space.Z, space.f, space.w, space.scatter, space.counted
    inverse_C = inverse_weight / C
    square_norm, gap = 0.0, 1.0
    for round_ in range(1, max_rounds + 1):
        update_scatter(space, inverse_weight)
        system = C * scatter
        for a in range(w.size):
            system[a, a] += 1.0
        lower = np.ascontiguousarray(np.linalg.cholesky(system))
        w_new = solve_cholesky(lower, np.dot(Z, counted / inverse_C))
        f_new = np.dot(w_new, Z)
        changed = np.sum((f_new < 1.0) != counted)
        t = 1.0
        if changed:
            t = line_search(f, f_new, inverse_C, np.dot(w, w), np.dot(w, w_new), np.dot(w_new, w_new))
        w += t * (w_new - w)
        f += t * (f_new - f)
        if CHANGES_NEAR_THE_END * changed <= np.sum(counted):
            square_norm, inner, gap = dual_certificate(space, inverse_C, value_error, largest, alpha, g)
            if changed == 0 or gap <= tol or inner <= INNER_SHARE * tol:
                return round_, square_norm, gap, True
    square_norm, inner, gap = dual_certificate(space, inverse_C, value_error, largest, alpha, g)
    return max_rounds, square_norm, gap, gap <= tol
