"""Sums of kernel functions of several subproblems on shared vectors.

Subproblem p is the sum Ψ_p = Σ_i a_ip φ(x_i) in the space of the kernel. A reduced set replaces it by
Ψ'_p = Σ_j b_jp φ(z_j) on fewer vectors z_j, which all subproblems share. The residual is
ρ = Σ_p ω_p ‖Ψ_p − Ψ'_p‖², where ω_p = 1/(P ‖Ψ_p‖²) for P subproblems. It is 0 for equal sums, and 1 for
Ψ' = 0.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from solvers.common.resources import require_memory
from solvers.kernels.functions import GRAM, Kernel, kernel_block, kernel_diagonal

BLOCK_VALUES = 1 << 22
"""Largest number of kernel values that are computed at a time (32 MB)."""
SMALLEST_EIGENVALUE = 1e-12
"""Smallest eigenvalue that is inverted if a kernel matrix is singular, as a share of the largest one."""


class Expansion(NamedTuple):
    """Sums of kernel functions of P subproblems on N shared vectors."""

    vectors: np.ndarray  # (N, d), dense, as `Kernel.prepare` returns samples; the (N, N) matrix for `GRAM`
    kernel: Kernel  # positive semidefinite
    coefficients: np.ndarray  # (N, P): a_ip
    labels: np.ndarray  # (N,) int64: class of each vector

    @property
    def size(self):
        """Number of vectors."""
        return self.coefficients.shape[0]


class Reduced(NamedTuple):
    """Sums on the vectors of a reduced set."""

    rows: np.ndarray | None  # (m,) int64: chosen vectors of the expansion; None if the vectors are new
    vectors: np.ndarray  # (m, d): prepared vectors; empty for the kind `GRAM`
    coefficients: np.ndarray  # (m, P): b_jp
    labels: np.ndarray  # (m,) int64: class of the vector that each one was made from


def dense(X):
    """Return samples as a dense matrix, if that fits into memory.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples as `Kernel.prepare` returns them.

    Returns
    -------
    ndarray of shape (n, d)
        Dense samples.

    Raises
    ------
    MemoryError
        The dense matrix would not fit into memory.
    """
    if not sparse.issparse(X):
        return X
    what = f"a dense matrix of {X.shape[0]:,} support vectors with {X.shape[1]:,} features"
    require_memory(16.0 * X.shape[0] * X.shape[1], what, "select features, or keep the whole model")
    return X.toarray()


def values_between(expansion, rows, columns):
    """Return the kernel values between vectors of an expansion.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    rows, columns : {int64 ndarray, slice}
        Vectors, m and k of them.

    Returns
    -------
    ndarray of shape (m, k), float64
        Kernel values. Those of a precomputed kernel may be a view of `expansion.vectors`.
    """
    if expansion.kernel.kind == GRAM:
        return np.ascontiguousarray(expansion.vectors[rows][:, columns], dtype=np.float64)
    return kernel_block(expansion.vectors[rows], expansion.vectors[columns], expansion.kernel)


def diagonal_of(expansion):
    """Return k(x, x) of every vector.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.

    Returns
    -------
    ndarray of shape (N,)
        Values of the diagonal.
    """
    return kernel_diagonal(expansion.vectors, expansion.kernel)


def blocks_of(n, width):
    """Split rows into blocks of at most `BLOCK_VALUES` kernel values.

    Parameters
    ----------
    n : int
        Number of rows.
    width : int
        Number of values of a row.

    Returns
    -------
    list of slice
        Blocks of consecutive rows.
    """
    step = max(1, BLOCK_VALUES // max(1, width))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def sums_at_vectors(expansion, coefficients):
    """Return Σ_i c_ip k(x_i, ·) at every vector of an expansion.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    coefficients : ndarray of shape (N, P)
        Coefficients c_ip.

    Returns
    -------
    ndarray of shape (N, P)
        Values of the sums.
    """
    sums = np.empty_like(coefficients)
    for block in blocks_of(expansion.size, expansion.size):
        sums[block] = values_between(expansion, block, slice(None)) @ coefficients
    return sums


def weights_of(square_norms):
    """Return the weights ω_p of the subproblems.

    Parameters
    ----------
    square_norms : ndarray of shape (P,)
        ‖Ψ_p‖².

    Returns
    -------
    ndarray of shape (P,)
        1/(P ‖Ψ_p‖²), or 0 for a sum that is 0.
    """
    positive = square_norms > 0.0
    return np.where(positive, 1.0 / (square_norms.size * np.where(positive, square_norms, 1.0)), 0.0)


def best_coefficients(values, targets):
    """Return the coefficients of least residual on given vectors, K_zz⁻¹ K_zx A.

    Parameters
    ----------
    values : ndarray of shape (m, m)
        Kernel values K_zz of the vectors.
    targets : ndarray of shape (m, P)
        Sums Ψ_p at the vectors, K_zx A.

    Returns
    -------
    ndarray of shape (m, P)
        Coefficients; those of least norm if the vectors are dependent.
    """
    try:
        return cho_solve(cho_factor(values, lower=True), targets)
    except LinAlgError:
        eigenvalues, Q = eigh(values)
        kept = eigenvalues > SMALLEST_EIGENVALUE * max(eigenvalues[-1], 0.0)
        return Q[:, kept] @ ((Q[:, kept].T @ targets) / eigenvalues[kept, None])


def on_rows(expansion, rows, sums=None):
    """Return the reduced set of given vectors, with the coefficients of least residual.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    rows : int64 ndarray of shape (m,)
        Chosen vectors.
    sums : ndarray of shape (N, P), optional
        Result of `sums_at_vectors` for the coefficients of the expansion; by default it is computed at
        `rows`.

    Returns
    -------
    Reduced
        Sums on the chosen vectors.
    """
    if sums is None:
        targets = values_between(expansion, rows, slice(None)) @ expansion.coefficients
    else:
        targets = sums[rows]
    return of_rows(expansion, rows, best_coefficients(values_between(expansion, rows, rows), targets))


def of_rows(expansion, rows, coefficients):
    """Return the reduced set of given vectors with given coefficients.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    rows : int64 ndarray of shape (m,)
        Chosen vectors.
    coefficients : ndarray of shape (m, P)
        Their coefficients.

    Returns
    -------
    Reduced
        Sums on the chosen vectors.
    """
    is_gram = expansion.kernel.kind == GRAM
    vectors = np.empty((0, 0)) if is_gram else expansion.vectors[rows]
    return Reduced(rows, vectors, coefficients, expansion.labels[rows])


def refitted(expansion, vectors, labels):
    """Return the reduced set of new vectors, with the coefficients of least residual.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors, of a kernel of features.
    vectors : ndarray of shape (m, d)
        Prepared vectors.
    labels : int64 ndarray of shape (m,)
        Class of the vector that each one was made from.

    Returns
    -------
    Reduced
        Sums on the new vectors.
    """
    kernel = expansion.kernel
    targets = kernel_block(vectors, expansion.vectors, kernel) @ expansion.coefficients
    values = kernel_block(vectors, vectors, kernel)
    return Reduced(None, vectors, best_coefficients(values, targets), labels)
