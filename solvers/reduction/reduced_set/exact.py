"""Reduced sets without an error beyond rounding.

The linear kernel needs one vector for each subproblem, Σ_i a_ip x_i. The kernel (γ x·z)² needs the
eigenvectors of Σ_i a_ip x_i x_iᵀ, at most one for each feature. With other kernels, vectors that depend on
others in the space of the kernel are left out (Downs, Gates and Masters 2001).
"""

import numpy as np
from scipy.linalg import block_diag, eigh
from scipy.linalg.lapack import dpstrf

from solvers.common.resources import require_memory
from solvers.kernels.functions import LINEAR, POLY
from solvers.reduction.reduced_set.expansion import (
    Reduced,
    best_coefficients,
    diagonal_of,
    of_rows,
    values_between,
)

DEPENDENT = 1e-12
"""Largest squared distance of a dependent vector from the span of the others, as a share of k(x, x)."""
SMALLEST_EIGENVALUE = 1e-14
"""Largest eigenvalue that counts as 0, as a share of the largest absolute one."""


def exact(expansion):
    """Return a reduced set with the same sums.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.

    Returns
    -------
    Reduced
        Sums on the fewest vectors that these methods find.
    """
    rows = independent_rows(expansion, DEPENDENT)
    kernel = expansion.kernel
    special = None
    if kernel.kind == LINEAR:
        special = _linear(expansion)
    elif kernel.kind == POLY and kernel.degree == 2 and kernel.coef0 == 0.0:
        special = _quadratic(expansion)
    if special is not None and special.coefficients.shape[0] < rows.size:
        return special
    return _without_dependent(expansion, rows)


def independent_rows(expansion, smallest):
    """Return vectors that span all others, by the pivoted Cholesky factor of the kernel matrix.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    smallest : float
        Largest squared distance from the span that counts as 0, as a share of k(x, x).

    Returns
    -------
    int64 ndarray of shape (m,)
        Vectors, ascending; at least one.

    Raises
    ------
    MemoryError
        The kernel matrix would not fit into memory.
    """
    n = expansion.size
    what = f"the kernel matrix of {n:,} support vectors"
    require_memory(16.0 * n**2, what, "set method='greedy', which needs few of its columns")
    diagonal = diagonal_of(expansion)
    scale = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)
    # The values of a precomputed kernel are the expansion's own matrix, which must not be overwritten.
    values = values_between(expansion, slice(None), slice(None)) * scale[:, None]
    values *= scale
    _, order, rank, _ = dpstrf(values.T, tol=smallest, lower=0, overwrite_a=True)
    return np.sort(order[: max(1, rank)].astype(np.int64) - 1)


def _without_dependent(expansion, rows):
    """Return the sums on independent vectors, which also take the coefficients of the others.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    rows : int64 ndarray of shape (m,)
        Vectors that span all others.

    Returns
    -------
    Reduced
        Sums on these vectors.
    """
    others = np.setdiff1d(np.arange(expansion.size), rows)
    coefficients = expansion.coefficients[rows]
    if others.size:
        targets = values_between(expansion, rows, others) @ expansion.coefficients[others]
        coefficients = coefficients + best_coefficients(values_between(expansion, rows, rows), targets)
    return of_rows(expansion, rows, coefficients)


def _linear(expansion):
    """Return one vector for each subproblem.

    Parameters
    ----------
    expansion : Expansion
        Sums of the linear kernel.

    Returns
    -------
    Reduced
        Sums on the weights of the features.
    """
    vectors = np.ascontiguousarray(expansion.coefficients.T @ expansion.vectors)
    n = vectors.shape[0]
    return Reduced(None, vectors, np.eye(n), np.zeros(n, dtype=np.int64))


def _quadratic(expansion):
    """Return the eigenvectors of Σ_i a_ip x_i x_iᵀ, with its eigenvalues as coefficients.

    Parameters
    ----------
    expansion : Expansion
        Sums of the kernel (γ x·z)².

    Returns
    -------
    Reduced
        Sums on the eigenvectors, those of one subproblem after the other.
    """
    X, vectors, coefficients = expansion.vectors, [], []
    for a in expansion.coefficients.T:
        eigenvalues, Q = eigh((X.T * a) @ X)
        kept = np.abs(eigenvalues) > SMALLEST_EIGENVALUE * np.abs(eigenvalues).max()
        vectors.append(Q[:, kept].T)
        coefficients.append(eigenvalues[kept, None])
    stacked = np.ascontiguousarray(np.concatenate(vectors))
    return Reduced(None, stacked, block_diag(*coefficients), np.zeros(stacked.shape[0], dtype=np.int64))
