"""Newton's method on the support block of the modified L2 SVM.

With ``β = α / ||c||²`` the problem is ``min ½ βᵀHβ + ½ Σ max(0, 1 - f_i)² · C_i``, ``f = Hβ`` (Chapelle
2007, eq. 10-12, bias inside the kernel). On the active rows ``I = {f < 1}`` its Newton point solves
``(H_II + diag(1/C_I)) β_I = 1``. A round costs ``s³/3`` flops for s active rows, and one product ``H[:, I]
β_I``.
"""

import numpy as np

from solvers.common.compile import inner, njit
from solvers.common.status import CONVERGED, LIMIT, NOT_POSITIVE
from solvers.gram.block import (
    block_product,
    copy_values,
    gather,
    lowest_value,
    rows_with_weight,
    write_values,
)

# Smallest violation with which a row becomes active after a full step, as a share of the tolerance. A
# violation by rounding is smaller.
ENTRY_SHARE = 0.1


@inner(allocates=True)
def solve_ones(H, inverse_C, active):
    """Solve ``(H_II + diag(1/C_I)) x = 1`` for the active rows I.

    Parameters
    ----------
    H : array (m, m), float32 or float64
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.
    active : int64 array (s,)
        Indices of the active rows.

    Returns
    -------
    array (s,)
        The solution; empty if the active block is not positive definite.
    """
    s = active.size
    block = np.empty((s, s))
    gather(H, active, block)
    for i in range(s):
        block[i, i] += inverse_C[active[i]]
    try:
        lower = np.linalg.cholesky(block)
    except Exception:
        return np.empty(0)
    return solve_cholesky(np.ascontiguousarray(lower), np.ones(s))


@njit
def solve_cholesky(lower, b):
    """Solve ``L Lᵀ x = b``; both sweeps run along the rows of ``L``.

    Parameters
    ----------
    lower : array (s, s), C-contiguous
        Lower triangle ``L``.
    b : array (s,)
        Right side.

    Returns
    -------
    array (s,)
        The solution.
    """
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


@njit(allocates=False)
def line_search(f, f_new, inverse_C, start, mixed, end):
    """Return the exact minimiser over ``t`` in (0, 1] of the primal objective between two points.

    Along the segment the derivative of the objective is piecewise linear and increasing. Safeguarded Newton
    steps on it therefore end at the root after finitely many breakpoints.

    Parameters
    ----------
    f, f_new : arrays (m,)
        Margins ``Hβ`` at the two ends.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.
    start, mixed, end : float
        ``βᵀHβ``, ``βᵀHβ'`` and ``β'ᵀHβ'``.

    Returns
    -------
    float
        Step t at the minimum.
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
                slope -= slack * step / inverse_C[i]
                curvature += step * step / inverse_C[i]
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


@inner(allocates=True)
def newton_rounds(H, inverse_C, beta, f, epsilon, max_rounds):
    """Run Newton rounds from ``β`` until ``β >= 0`` and every other row has ``f >= 1 - epsilon``.

    As long as each round changes fewer rows between active and inactive than the one before, full steps are
    taken. They converge, and rounding cannot disturb them. Otherwise an exact line search sets the length of
    the step.

    Parameters
    ----------
    H : array (m, m)
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.
    beta, f : arrays (m,), changed in place
        The point and its margins ``f = Hβ``.
    epsilon : float
        Largest violation of a margin.
    max_rounds : int
        Number of Newton rounds after which the loop stops.

    Returns
    -------
    rounds : int
        Number of Newton rounds that were done.
    outcome : int
        CONVERGED: the point is optimal on its support, and violates no other margin by more than ``epsilon``.
        LIMIT: the rounds are used up. NOT_POSITIVE: the active block is not positive definite.
    """
    m = f.size
    f_new = np.empty(m)
    beta_new = np.empty(m)
    is_active = np.empty(m, np.bool_)
    for i in range(m):
        is_active[i] = f[i] < 1.0
    fewest_changes = m + 1
    for round_ in range(1, max_rounds + 1):
        active = rows_with_weight(is_active)
        x = solve_ones(H, inverse_C, active)
        if x.size == 0:
            return round_, NOT_POSITIVE
        block_product(H, active, x, f_new)
        beta_new[:] = 0.0
        write_values(x, active, beta_new)
        least_margin = 1.0
        changes = 0
        for i in range(m):
            if is_active[i]:
                changes += beta_new[i] < 0.0
            else:
                changes += f_new[i] < 1.0 - ENTRY_SHARE * epsilon
                least_margin = min(least_margin, f_new[i])
        if least_margin >= 1.0 - epsilon and lowest_value(x) >= 0.0:
            copy_values(f_new, f)
            copy_values(beta_new, beta)
            return round_, CONVERGED
        t = 1.0
        if changes < fewest_changes:
            fewest_changes = changes
        else:
            t = line_search(
                f, f_new, inverse_C, np.dot(beta, f), np.dot(beta, f_new), np.dot(beta_new, f_new)
            )
        for i in range(m):
            f[i] += t * (f_new[i] - f[i])
            beta[i] += t * (beta_new[i] - beta[i])
            if t < 1.0:
                is_active[i] = f[i] < 1.0
            elif is_active[i]:
                is_active[i] = beta[i] >= 0.0
            else:
                is_active[i] = f[i] < 1.0 - ENTRY_SHARE * epsilon
    return max_rounds, LIMIT
