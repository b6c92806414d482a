"""Functions that the methods on one dense block share.

The block is ``H_ij = (y_i·y_j)(k(x_i, x_j) + bias)``. The part of the diagonal that the penalties add,
``inverse_C``, is stored separately, so that C can change. A hull point has weights ``alpha`` and inner
products ``g = (H + diag(inverse_C)) alpha``.
"""

import numpy as np

from solvers.common.certificate import TERMS_IN_BLOCK, certified_gap, error_of_sums
from solvers.common.compile import inner, njit

# Rows whose g exceeds ‖c‖² by more than this share are left out of a shrunk block.
MARGIN = 0.1


@njit
def block_product(H, rows, weights, out):
    """Compute ``out = Σ_k weights[k] H[rows[k]]`` in float64, for a symmetric H.

    Parameters
    ----------
    H : array (m, m), float32 or float64
        Symmetric block.
    rows : int64 array (n,)
        Indices of the rows.
    weights : array (n,)
        Weight of each row.
    out : array (m,)
        Receives the sum.
    """
    sum_of_rows(H, rows, weights, out, np.empty(out.size))


@inner
def sum_of_rows(H, rows, weights, out, partial):
    """Do what `block_product` does, with memory for partial sums.

    The sum takes four rows at a time, and has partial sums of 32 rows. Chains of additions are therefore
    short, and the rounding errors of the sums are small (`solvers.common.certificate`).

    Parameters
    ----------
    H : array (m, m), float32 or float64
        Symmetric block.
    rows : int64 array (n,)
        Indices of the rows.
    weights : array (n,)
        Weight of each row.
    out : array (m,)
        Receives the sum.
    partial : array (m,)
        Memory for partial sums.
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
    """Do ``target[:] = source``, which numba takes seconds to compile because of its error message.

    Parameters
    ----------
    source : array (m,)
        Values to copy.
    target : array (m,)
        Receives the values.
    """
    for i in range(target.size):
        target[i] = source[i]


@njit(allocates=False)
def write_values(source, rows, target):
    """Do ``target[rows] = source``.

    Parameters
    ----------
    source : array (n,)
        Values to copy.
    rows : int64 array (n,)
        Indices in `target`.
    target : array (m,)
        Receives the values.
    """
    for a in range(rows.size):
        target[rows[a]] = source[a]


@inner
def gather_values(values, rows, chosen):
    """Write ``values[rows]`` to the first entries of ``chosen``.

    Parameters
    ----------
    values : array (m,)
        Values to choose from.
    rows : int64 array (n,)
        Indices of the chosen values.
    chosen : array
        Receives them; its size is at least n.
    """
    for a in range(rows.size):
        chosen[a] = values[rows[a]]


@njit
def chosen_values(values, rows):
    """Return ``values[rows]``, in a form that compiles faster.

    Parameters
    ----------
    values : array (m,)
        Values to choose from.
    rows : int64 array (n,)
        Indices of the chosen values.

    Returns
    -------
    array (n,)
        The chosen values.
    """
    chosen = np.empty(rows.size)
    for a in range(rows.size):
        chosen[a] = values[rows[a]]
    return chosen


@njit
def divided(values, divisor):
    """Return ``values / divisor``.

    Parameters
    ----------
    values : array (m,)
        Numbers to divide.
    divisor : float
        Number by which each value is divided, not 0.

    Returns
    -------
    array (m,)
        The quotients.
    """
    quotients = np.empty(values.size)
    for i in range(values.size):
        quotients[i] = values[i] / divisor
    return quotients


@njit(allocates=False)
def lowest_value(values):
    """Return the smallest entry, or NaN if an entry is NaN.

    Parameters
    ----------
    values : array (m,)
        Numbers, possibly none.

    Returns
    -------
    float
        The smallest entry; infinite if there is none.
    """
    lowest = np.inf
    for i in range(values.size):
        if np.isnan(values[i]):
            return np.nan
        if values[i] < lowest:
            lowest = values[i]
    return lowest


@njit(allocates=False)
def largest_value(values):
    """Return the largest entry, or NaN if an entry is NaN.

    Parameters
    ----------
    values : array (m,)
        Numbers, possibly none.

    Returns
    -------
    float
        The largest entry; minus infinity if there is none.
    """
    largest = -np.inf
    for i in range(values.size):
        if np.isnan(values[i]):
            return np.nan
        if values[i] > largest:
            largest = values[i]
    return largest


@inner
def find_rows_with_weight(weights, rows):
    """Write the rows whose weight is not 0 to ``rows``.

    Parameters
    ----------
    weights : array (m,)
        Weight of each row.
    rows : int64 array (m,)
        Receives the indices of the rows, ascending.

    Returns
    -------
    int
        Number of these rows.
    """
    n = 0
    for i in range(weights.size):
        if weights[i] != 0.0:
            rows[n] = i
            n += 1
    return n


@njit
def rows_with_weight(weights):
    """Return the rows whose weight is not 0.

    Parameters
    ----------
    weights : array (m,)
        Weight of each row.

    Returns
    -------
    int64 array
        Indices of the rows, ascending.
    """
    rows = np.empty(weights.size, np.int64)
    return rows[: find_rows_with_weight(weights, rows)]


@njit(allocates=False)
def gather(H, rows, part):
    """Do ``part = H[rows, rows]`` for any type of ``part``.

    Parameters
    ----------
    H : array (m, m)
        Matrix to gather from.
    rows : int64 array (n,)
        Indices of the rows and columns.
    part : array (n, n)
        Receives the values.
    """
    for a in range(rows.size):
        source, target = H[rows[a]], part[a]
        for b in range(rows.size):
            target[b] = source[rows[b]]


@inner(allocates=True)
def rows_near_margin(alpha, g, square_norm):
    """Return the rows that have weight or lie near the margin.

    Parameters
    ----------
    alpha, g : arrays (m,)
        Weights of the hull point, and inner products with it.
    square_norm : float
        Squared norm ‖c‖² of the current point c.

    Returns
    -------
    int64 array
        Indices of the rows, ascending.
    """
    rows = np.empty(g.size, np.int64)
    n = 0
    for i in range(g.size):
        if alpha[i] > 0.0 or g[i] < (1.0 + MARGIN) * square_norm:
            rows[n] = i
            n += 1
    return rows[:n]


@njit
def refresh(H, inverse_C, alpha, g):
    """Recompute ``g`` from ``alpha``.

    Parameters
    ----------
    H : array (m, m), float32 or float64
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.
    alpha : array (m,)
        Weights of the hull point.
    g : array (m,)
        Receives the inner products.

    Returns
    -------
    float
        ``||c||²``.
    """
    rows = rows_with_weight(alpha)
    block_product(H, rows, chosen_values(alpha, rows), g)
    for a in range(rows.size):
        g[rows[a]] += inverse_C[rows[a]] * alpha[rows[a]]
    return np.dot(alpha, g)


@njit(allocates=False)
def change_C(old, new, alpha, g, square_norm):
    """Update ``g`` to another C.

    Parameters
    ----------
    old, new : arrays (m,)
        1/C of each sample before and after.
    alpha : array (m,)
        Weights of the hull point.
    g : array (m,)
        Inner products, changed in place.
    square_norm : float
        ``||c||²`` before.

    Returns
    -------
    float
        ``||c||²`` after.
    """
    for i in range(g.size):
        shift = (new[i] - old[i]) * alpha[i]
        g[i] += shift
        square_norm += shift * alpha[i]
    return square_norm


@njit
def diagonal_of(H, inverse_C):
    """Return the diagonal of ``H + diag(inverse_C)``.

    Parameters
    ----------
    H : array (m, m)
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.

    Returns
    -------
    array (m,)
        The diagonal.
    """
    diagonal = np.empty(inverse_C.size)
    for i in range(inverse_C.size):
        diagonal[i] = H[i, i] + inverse_C[i]
    return diagonal


@inner(allocates=True)
def largest_diagonal(H, inverse_C):
    """Return the largest entry of the diagonal of ``H + diag(inverse_C)``, or 0 if all are negative.

    Parameters
    ----------
    H : array (m, m)
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.

    Returns
    -------
    float
        The largest entry, at least 0.
    """
    return max(0.0, largest_value(diagonal_of(H, inverse_C)))


@njit(allocates=False)
def gap_of(alpha, g, square_norm, largest, value_error, stale):
    """Return the certified gap of a hull point.

    Parameters
    ----------
    alpha, g : arrays (m,)
        Weights of the hull point, and inner products with it.
    square_norm : float
        Squared norm ``||c||²`` of the current point c.
    largest : float
        Largest entry of the diagonal of ``H + diag(inverse_C)``.
    value_error : float
        Bound on the error of an entry of ``H``.
    stale : int
        Steps since ``g`` was last computed from ``alpha``.

    Returns
    -------
    float
        Bound on the relative error of ``||c||²``.
    """
    n_terms, total = 0, 0.0
    for i in range(alpha.size):
        n_terms += alpha[i] != 0.0
        total += alpha[i]
    error = error_of_sums(value_error, largest, n_terms / TERMS_IN_BLOCK, stale)
    return certified_gap(square_norm, lowest_value(g), error, total)


@inner
def step_cost(m):
    """Return the cost of one pair step on m rows, in nanoseconds of a 2025 core.

    Parameters
    ----------
    m : int
        Number of rows.

    Returns
    -------
    float
        Expected cost, in nanoseconds.
    """
    return 60.0 + 0.35 * m
