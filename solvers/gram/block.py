"""What the methods on one dense block share.

The block is ``H_ij = (y_i·y_j)(k(x_i, x_j) + bias)``; what the penalties add to its diagonal, ``inverse_C``,
is kept apart, so that C can change. A point of the hull has weights ``alpha`` and ``g = (H + diag(inverse_C))
alpha``.
"""

import numpy as np

from solvers.common.certificate import TERMS_IN_BLOCK, certified_gap, error_of_sums
from solvers.common.compile import inner, njit

# Rows with a larger g than ‖c‖² by this share are left out while others are solved for.
MARGIN = 0.1


@njit
def block_product(H, rows, weights, out):
    """``out = Σ_k weights[k] H[rows[k]]`` in float64 (H is symmetric)."""
    sum_of_rows(H, rows, weights, out, np.empty(out.size))


@inner
def sum_of_rows(H, rows, weights, out, partial):
    """`block_product` with memory for partial sums.

    Four rows at a time, and by partial sums of 32 rows, which keeps chains of additions short and so the
    rounding of the sums (`solvers.common.certificate`).
    """
    m = out.size
    n = rows.size
    for j in range(m):
        out[j] = partial[j] = 0.0
    whole = n - n % 4
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


@njit(allocates=False)
def copy_values(source, target):
    """``target[:] = source``, which takes seconds to compile for the text of its error."""
    for i in range(target.size):
        target[i] = source[i]


@njit(allocates=False)
def write_values(source, rows, target):
    """``target[rows] = source``."""
    for a in range(rows.size):
        target[rows[a]] = source[a]


@inner
def gather_values(values, rows, chosen):
    """Write ``values[rows]`` to the first places of ``chosen``."""
    for a in range(rows.size):
        chosen[a] = values[rows[a]]


@njit
def chosen_values(values, rows):
    """``values[rows]``, which takes longer to compile."""
    chosen = np.empty(rows.size)
    for a in range(rows.size):
        chosen[a] = values[rows[a]]
    return chosen


@njit
def divided(values, divisor):
    """``values / divisor``."""
    quotients = np.empty(values.size)
    for i in range(values.size):
        quotients[i] = values[i] / divisor
    return quotients


@njit(allocates=False)
def lowest_value(values):
    """Smallest entry, or NaN if there is one."""
    lowest = np.inf
    for i in range(values.size):
        if np.isnan(values[i]):
            return np.nan
        if values[i] < lowest:
            lowest = values[i]
    return lowest


@njit(allocates=False)
def largest_value(values):
    """Largest entry, or NaN if there is one."""
    largest = -np.inf
    for i in range(values.size):
        if np.isnan(values[i]):
            return np.nan
        if values[i] > largest:
            largest = values[i]
    return largest


@inner
def find_rows_with_weight(weights, rows):
    """Write the rows whose weight is not 0 to ``rows``; return how many there are."""
    n = 0
    for i in range(weights.size):
        if weights[i] != 0.0:
            rows[n] = i
            n += 1
    return n


@njit
def rows_with_weight(weights):
    """Return the rows whose weight is not 0."""
    rows = np.empty(weights.size, np.int64)
    return rows[: find_rows_with_weight(weights, rows)]


@njit(allocates=False)
def gather(H, rows, part):
    """Fill ``part = H[rows, rows]``, of any type."""
    for a in range(rows.size):
        source, target = H[rows[a]], part[a]
        for b in range(rows.size):
            target[b] = source[rows[b]]


@inner(allocates=True)
def rows_near_margin(alpha, g, square_norm):
    """Rows with weight, or with a g that is hardly larger than it has to be."""
    rows = np.empty(g.size, np.int64)
    n = 0
    for i in range(g.size):
        if alpha[i] > 0.0 or g[i] < (1.0 + MARGIN) * square_norm:
            rows[n] = i
            n += 1
    return rows[:n]


@njit
def refresh(H, inverse_C, alpha, g):
    """Recompute ``g`` from ``alpha``; return ``||c||²``."""
    rows = rows_with_weight(alpha)
    block_product(H, rows, chosen_values(alpha, rows), g)
    for a in range(rows.size):
        g[rows[a]] += inverse_C[rows[a]] * alpha[rows[a]]
    return np.dot(alpha, g)


@njit(allocates=False)
def change_C(old, new, alpha, g, square_norm):
    """Move ``g`` from one C to another; return the new ``||c||²``."""
    for i in range(g.size):
        shift = (new[i] - old[i]) * alpha[i]
        g[i] += shift
        square_norm += shift * alpha[i]
    return square_norm


@njit
def diagonal_of(H, inverse_C):
    """Diagonal of ``H + diag(inverse_C)``."""
    diagonal = np.empty(inverse_C.size)
    for i in range(inverse_C.size):
        diagonal[i] = H[i, i] + inverse_C[i]
    return diagonal


@inner(allocates=True)
def largest_diagonal(H, inverse_C):
    """Largest entry of the diagonal of ``H + diag(inverse_C)``, or 0 if all are negative."""
    return max(0.0, largest_value(diagonal_of(H, inverse_C)))


@njit(allocates=False)
def gap_of(alpha, g, square_norm, largest, value_error, stale):
    """Certified gap of a point.

    Parameters
    ----------
    alpha, g : arrays (m,)
    square_norm : float
    largest : float
        Of the diagonal.
    value_error : float
        Bound on the error of an entry of ``H``.
    stale : int
        Steps since ``g`` was last computed from ``alpha``.
    """
    n_terms, total = 0, 0.0
    for i in range(alpha.size):
        n_terms += alpha[i] != 0.0
        total += alpha[i]
    error = error_of_sums(value_error, largest, n_terms / TERMS_IN_BLOCK, stale)
    return certified_gap(square_norm, lowest_value(g), error, total)


@inner
def step_cost(m):
    """Cost of one pair step on m rows, in nanoseconds of a 2025 core."""
    return 60.0 + 0.35 * m
