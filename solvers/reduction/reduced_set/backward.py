"""Backward choice of vectors: the one that is removed raises the residual least.

With the inverse Q of the kernel matrix of the remaining vectors and their best coefficients b, removing
vector n raises ρ by Σ_p ω_p b_np²/Q_nn. Then b −= b_n Q_·n/Q_nn, and Q loses the outer product of its column.
This is the selection by kernel principal components (Schölkopf et al. 1999, section IV) in its exact form.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from solvers.common.compile import njit
from solvers.common.resources import require_memory
from solvers.reduction.reduced_set.exact import independent_rows
from solvers.reduction.reduced_set.expansion import on_rows, sums_at_vectors, values_between, weights_of
from solvers.reduction.reduced_set.greedy import SMALLEST_PIVOT


def backward(expansion, n_vectors):
    """Return the reduced set that remains after the removal of vectors one by one.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    n_vectors : int
        Largest number of vectors.

    Returns
    -------
    Reduced
        Sums on the remaining vectors, ascending.

    Raises
    ------
    MemoryError
        The inverse of the kernel matrix would not fit into memory.
    """
    what = f"the inverse kernel matrix of {expansion.size:,} vectors, for method='backward',"
    require_memory(24.0 * expansion.size**2, what, "set method='greedy'")
    sums = sums_at_vectors(expansion, expansion.coefficients)
    weights = weights_of((expansion.coefficients * sums).sum(axis=0))
    rows = independent_rows(expansion, SMALLEST_PIVOT)
    if rows.size > n_vectors:
        factor = cho_factor(values_between(expansion, rows, rows), lower=True)
        inverse = cho_solve(factor, np.eye(rows.size))
        coefficients = np.ascontiguousarray(cho_solve(factor, sums[rows]) * np.sqrt(weights))
        order = np.arange(rows.size)
        _remove(np.ascontiguousarray(inverse), coefficients, order, n_vectors)
        rows = np.sort(rows[order[:n_vectors]])
    return on_rows(expansion, rows, sums)


@njit(allocates=False)
def _remove(inverse, coefficients, order, n_left):
    """Remove vectors until a number of them is left.

    Parameters
    ----------
    inverse : float64 array (n, n)
        Inverse of the kernel matrix; changed in place.
    coefficients : float64 array (n, P)
        Best coefficients, times √ω_p; changed in place.
    order : int64 array (n,)
        Numbers of the vectors; the first `n_left` are the remaining ones at the end.
    n_left : int
        Number of vectors that remain.
    """
    for size in range(order.size, n_left, -1):
        least, worst = np.inf, 0
        for i in range(size):
            total = 0.0
            for p in range(coefficients.shape[1]):
                total += coefficients[i, p] * coefficients[i, p]
            if total / inverse[i, i] < least:
                least, worst = total / inverse[i, i], i
        last = size - 1
        _swap(inverse, coefficients, order, worst, last)
        pivot = inverse[last, last]
        for i in range(last):
            factor = inverse[i, last] / pivot
            for p in range(coefficients.shape[1]):
                coefficients[i, p] -= factor * coefficients[last, p]
            for j in range(last):
                inverse[i, j] -= factor * inverse[last, j]


@njit(allocates=False)
def _swap(inverse, coefficients, order, i, j):
    """Exchange two vectors.

    Parameters
    ----------
    inverse : float64 array (n, n)
        Inverse of the kernel matrix.
    coefficients : float64 array (n, P)
        Coefficients.
    order : int64 array (n,)
        Numbers of the vectors.
    i, j : int
        Positions of the two.
    """
    if i == j:
        return
    order[i], order[j] = order[j], order[i]
    for p in range(coefficients.shape[1]):
        coefficients[i, p], coefficients[j, p] = coefficients[j, p], coefficients[i, p]
    for k in range(inverse.shape[0]):
        inverse[i, k], inverse[j, k] = inverse[j, k], inverse[i, k]
    for k in range(inverse.shape[0]):
        inverse[k, i], inverse[k, j] = inverse[k, j], inverse[k, i]
