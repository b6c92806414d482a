"""Newton's method on the support block of the modified L2 SVM.

With ``β = α / ||c||²`` the problem is ``min ½ βᵀHβ + ½ Σ max(0, 1 - f_i)² / ridge_i``, ``f = Hβ`` (Chapelle
2007, eq. 10-12, bias inside the kernel). On the active rows ``I = {f < 1}`` its Newton point solves
``(H_II + diag(ridge_I)) β_I = 1``; a round costs ``s³/3`` flops for s active rows and one product ``H[:, I]
β_I``.
"""

import numpy as np
from numba import njit

FINISHED, UNFINISHED, INDEFINITE = range(3)

# After a full step a row must violate its margin by this share of the tolerance to enter: rounding does not.
ENTRY_SHARE = 0.1


@njit(nogil=True, cache=True, error_model="numpy")
def block_product(H, rows, weights, out):
    """``out = Σ_k weights[k] H[rows[k]]`` in float64 (H is symmetric).

    Four rows at a time, and by partial sums of 32 rows, which keeps chains of additions short and so the
    rounding of the sums (`solvers.certificate`).
    """
    m = out.size
    n = rows.size
    out[:] = 0.0
    whole = n - n % 4
    partial = np.zeros(m)
    for k in range(0, whole, 4):
        h0, h1, h2, h3 = H[rows[k]], H[rows[k + 1]], H[rows[k + 2]], H[rows[k + 3]]
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for j in range(m):
            partial[j] += w0 * h0[j] + w1 * h1[j] + (w2 * h2[j] + w3 * h3[j])
        if k % 32 == 28 or k + 4 == whole:
            for j in range(m):
                out[j] += partial[j]
                partial[j] = 0.0
    for k in range(whole, n):
        h0 = H[rows[k]]
        w0 = weights[k]
        for j in range(m):
            out[j] += w0 * h0[j]


@njit(nogil=True, cache=True, error_model="numpy")
def solve_ones(H, ridge, active):
    """Solve ``(H_II + diag(ridge_I)) x = 1``; the answer is empty if the block is not positive definite."""
    s = active.size
    block = np.empty((s, s))
    for i in range(s):
        row = H[active[i]]
        for j in range(s):
            block[i, j] = row[active[j]]
        block[i, i] += ridge[active[i]]
    try:
        lower = np.linalg.cholesky(block)
    except Exception:
        return np.empty(0)
    return solve_cholesky(np.ascontiguousarray(lower), np.ones(s))


@njit(nogil=True, cache=True, error_model="numpy")
def solve_cholesky(lower, b):
    """Solve ``L Lᵀ x = b`` for a C-contiguous lower triangle; both sweeps run along its rows."""
    s = b.size
    x = b.copy()
    for i in range(s):
        x[i] = (x[i] - np.dot(lower[i, :i], x[:i])) / lower[i, i]
    for i in range(s - 1, -1, -1):
        x[i] /= lower[i, i]
        row = lower[i]
        xi = x[i]
        for j in range(i):
            x[j] -= xi * row[j]
    return x


@njit(nogil=True, cache=True, error_model="numpy")
def line_search(f, f_new, ridge, start, mixed, end):
    """Exact minimiser over ``t`` in (0, 1] of the primal objective between two points.

    Along the segment the objective's derivative is piecewise linear and increasing, so safeguarded Newton
    steps on it end at the root after finitely many breakpoints.

    Parameters
    ----------
    f, f_new : arrays (m,)
        Margins ``Hβ`` at the two ends.
    ridge : array (m,)
    start, mixed, end : float
        ``βᵀHβ``, ``βᵀHβ'`` and ``β'ᵀHβ'``.
    """
    low, high, t = 0.0, 1.0, 1.0
    curvature_norm = start - 2.0 * mixed + end
    for _ in range(60):
        slope = mixed - start + t * curvature_norm
        curvature = curvature_norm
        for i in range(f.size):
            step = f_new[i] - f[i]
            slack = 1.0 - f[i] - t * step
            if slack > 0.0:
                slope -= slack * step / ridge[i]
                curvature += step * step / ridge[i]
        if slope <= 0.0:
            if t == 1.0:
                return 1.0
            low = t
        else:
            high = t
        if curvature <= 0.0:
            return t
        proposal = t - slope / curvature
        if abs(proposal - t) <= 1e-14:
            return t
        t = proposal if low < proposal < high else 0.5 * (low + high)
    return t


@njit(nogil=True, cache=True, error_model="numpy")
def newton_rounds(H, ridge, beta, f, eps, max_rounds):
    """Newton rounds from ``β`` until ``β >= 0`` and every other row has ``f >= 1 - eps``.

    While fewer and fewer rows change sides, the full steps converge and rounding cannot disturb them; else
    the step is as long as the objective wants it.

    Parameters
    ----------
    H : array (m, m)
    ridge, beta, f : arrays (m,)
        ``beta`` and ``f = Hβ`` are changed in place.
    eps : float
    max_rounds : int

    Returns
    -------
    rounds : int
    outcome : int
        FINISHED: the point is optimal on its own support and violates no other margin by more than ``eps``;
        UNFINISHED; or INDEFINITE: the active block is not positive definite.
    """
    m = f.size
    f_new = np.empty(m)
    beta_new = np.empty(m)
    is_active = f < 1.0
    fewest_changes = m + 1
    for round_ in range(1, max_rounds + 1):
        active = np.flatnonzero(is_active)
        x = solve_ones(H, ridge, active)
        if x.size == 0:
            return round_, INDEFINITE
        block_product(H, active, x, f_new)
        beta_new[:] = 0.0
        beta_new[active] = x
        least_margin = 1.0
        changes = 0
        for i in range(m):
            if is_active[i]:
                changes += beta_new[i] < 0.0
            else:
                changes += f_new[i] < 1.0 - ENTRY_SHARE * eps
                least_margin = min(least_margin, f_new[i])
        if least_margin >= 1.0 - eps and np.min(x) >= 0.0:
            f[:] = f_new
            beta[:] = beta_new
            return round_, FINISHED
        t = 1.0
        if changes < fewest_changes:
            fewest_changes = changes
        else:
            t = line_search(f, f_new, ridge, np.dot(beta, f), np.dot(beta, f_new), np.dot(beta_new, f_new))
        for i in range(m):
            f[i] += t * (f_new[i] - f[i])
            beta[i] += t * (beta_new[i] - beta[i])
            if t < 1.0:
                is_active[i] = f[i] < 1.0
            elif is_active[i]:
                is_active[i] = beta[i] >= 0.0
            else:
                is_active[i] = f[i] < 1.0 - ENTRY_SHARE * eps
    return max_rounds, UNFINISHED
