"""Pivoted Cholesky factor ``H ≈ ZᵀZ`` with ``Z (r, m)``, computed from r columns of ``H``.

Pivots are the rows of largest residual diagonal (Fine & Scheinberg 2001; Harbrecht, Peters & Schneider 2012).
The factors are nested: more columns refine the same ``Z``. The residual ``E = H - ZᵀZ`` is positive
semidefinite, hence ``|E_ij| <= sqrt(E_ii E_jj)``. Its diagonal is known exactly, and bounds the whole
residual.
"""

import numpy as np

from solvers.common.compile import njit
from solvers.gram.block import copy_values, largest_value

# Largest residual that counts as noise, in roundings of the largest diagonal entry.
NOISE_ROUNDINGS = 8.0


@njit
def append_pivot(Z, rank, residual, pivot, column):
    """Write factor row ``Z[rank]`` from column ``H[:, pivot]``, and reduce ``residual`` in place.

    Parameters
    ----------
    Z : array (r_max, m), float64, C-contiguous
        Factor with `rank` rows; row `rank` is written.
    rank : int
        Number of rows of ``Z`` in use.
    residual : array (m,)
        Diagonal of ``H - ZᵀZ``; its entry at ``pivot`` must be positive.
    pivot : int
        Index of the row and column of ``H`` that become the next pivot.
    column : array (m,)
        Kernel values of the pivot with all rows, ``H[:, pivot]``.
    """
    scale = 1.0 / np.sqrt(residual[pivot])
    row = Z[rank]
    of_pivot, known = np.empty(rank), np.zeros(row.size)
    for a in range(rank):
        of_pivot[a] = Z[a, pivot]
    if rank > 0:
        np.dot(of_pivot, Z[:rank], known)
    for i in range(row.size):
        z = (column[i] - known[i]) * scale
        row[i] = z
        left = residual[i] - z * z
        residual[i] = left if left > 0.0 else 0.0
    residual[pivot] = 0.0


@njit
def extend_from_block(H, Z, rank, pivots, residual, target, max_rank):
    """Append pivots of a dense block until ``max(residual) <= target``.

    Parameters
    ----------
    H : array (m, m), float32 or float64
        The block. The extension also ends where its rounding exceeds the residual.
    Z : array (r_max, m), float64, C-contiguous
        The factor, extended in place.
    rank : int
        Number of rows of ``Z`` in use.
    pivots : int array (r_max,)
        Indices of the pivots, extended in place.
    residual : array (m,)
        Diagonal of ``H - ZᵀZ``, reduced in place.
    target : float
        Residual at which the extension ends.
    max_rank : int
        Largest number of pivots of the factor.

    Returns
    -------
    rank : int
        Number of rows of ``Z`` in use after the extension.
    left : float
        Largest entry of `residual` after the extension.
    """
    column = np.empty(residual.size)
    largest = 0.0
    for i in range(residual.size):
        largest = max(largest, np.float64(H[i, i]))
    smallest = max(target, NOISE_ROUNDINGS * np.finfo(H.dtype).eps * largest)
    while rank < max_rank:
        pivot = np.int64(0)  # for a constant, numba would compile the callees a second time
        for i in range(residual.size):
            if residual[i] > residual[pivot]:
                pivot = np.int64(i)
        if residual[pivot] <= smallest:
            break
        copy_values(H[pivot], column)
        append_pivot(Z, rank, residual, pivot, column)
        pivots[rank] = pivot
        rank += 1
    return rank, largest_value(residual)
