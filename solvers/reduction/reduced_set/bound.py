"""Bounds on the change of a decision by a reduced set.

By Cauchy and Schwarz |f_p(x) − f'_p(x)| ≤ ‖Ψ_p − Ψ'_p‖ √k(x, x). The norm is computed in float64 and rounded
up: its square may be too small by the error of every kernel value and of every sum. Both decisions are
computed with rounding errors, too, so that a label is certain only beyond `rounding_of_decisions`.
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils.extmath import row_norms

from solvers.common.certificate import FEW_ROUNDINGS, UNIT_ROUNDOFF
from solvers.kernels.functions import GRAM, IMQ, LINEAR, POLY, RADIAL, kernel_block, kernel_diagonal
from solvers.reduction.reduced_set.expansion import blocks_of, diagonal_of, sums_at_vectors


class ErrorBound(NamedTuple):
    """Bounds on the differences between the sums of P subproblems and those of their reduced set."""

    norms: np.ndarray  # (P,): upper bounds on ‖Ψ_p − Ψ'_p‖
    sizes: np.ndarray  # (P,): sums of all absolute coefficients, old and new
    n_terms: int  # number of old and new vectors
    largest: float  # largest ‖v‖² of a vector, for kernels of features; else the largest k(v, v)
    n_features: int  # number of products whose sum is x·z


def error_bound(expansion, reduced):
    """Bound the differences between sums and those of their reduced set.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    reduced : Reduced
        Their reduced set, with the vectors that predictions use.

    Returns
    -------
    ErrorBound
        Bounds.
    """
    A, B, kernel = expansion.coefficients, reduced.coefficients, expansion.kernel
    sizes = np.abs(A).sum(axis=0) + np.abs(B).sum(axis=0)
    n_terms = A.shape[0] + B.shape[0]
    is_gram = kernel.kind == GRAM
    if is_gram:
        largest, n_features = float(np.max(diagonal_of(expansion), initial=0.0)), 0
    else:
        squares = np.concatenate([row_norms(V, squared=True) for V in (expansion.vectors, reduced.vectors)])
        largest, n_features = float(squares.max(initial=0.0)), expansion.vectors.shape[1]
    bound = ErrorBound(np.zeros(A.shape[1]), sizes, n_terms, largest, n_features)
    if reduced.rows is None:
        squares, moved = _squares_of_new(expansion, reduced), sizes
    else:
        difference = A.copy()
        difference[reduced.rows] -= B
        squares = (difference * sums_at_vectors(expansion, difference)).sum(axis=0)
        moved = np.abs(difference).sum(axis=0)
    error, most = _errors_of_values(kernel, np.array([largest]), bound)
    slack = moved**2 * (error[0] + 2.0 * (n_terms + FEW_ROUNDINGS) * UNIT_ROUNDOFF * most[0])
    norms = np.sqrt(np.maximum(squares, 0.0) + slack) * (1.0 + FEW_ROUNDINGS * UNIT_ROUNDOFF)
    return bound._replace(norms=norms)


def _squares_of_new(expansion, reduced):
    """Return ‖Ψ_p − Ψ'_p‖² for a reduced set of new vectors, with its rounding error.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    reduced : Reduced
        Reduced set.

    Returns
    -------
    ndarray of shape (P,)
        Squares.
    """
    A, B, kernel, Z = expansion.coefficients, reduced.coefficients, expansion.kernel, reduced.vectors
    V, C = np.concatenate([expansion.vectors, Z]), np.concatenate([A, -B])
    squares = np.zeros(A.shape[1])
    for block in blocks_of(V.shape[0], V.shape[0]):
        squares += (C[block] * (kernel_block(V[block], V, kernel) @ C)).sum(axis=0)
    return squares


def roots_of_diagonal(X, kernel):
    """Return √k(x, x), rounded up.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Prepared samples.
    kernel : Kernel
        Kernel of features.

    Returns
    -------
    ndarray of shape (n,)
        Roots.
    """
    diagonal = np.maximum(kernel_diagonal(X, kernel), 0.0)
    n_terms = X.shape[1] * (max(1.0, kernel.degree) if kernel.kind == POLY else 1.0)
    return np.sqrt(diagonal) * (1.0 + (n_terms + FEW_ROUNDINGS) * UNIT_ROUNDOFF)


def bounds_at(X, kernel, bound):
    """Bound |f_p(x) − f'_p(x)| of every sample, as both are computed.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Prepared samples.
    kernel : Kernel
        Kernel of features.
    bound : ErrorBound
        Bounds of the reduced set.

    Returns
    -------
    ndarray of shape (n, P)
        Bounds, without the rounding of the addition of the constant.
    """
    return roots_of_diagonal(X, kernel)[:, None] * bound.norms + rounding_of_decisions(X, kernel, bound)


def rounding_of_decisions(X, kernel, bound):
    """Bound the rounding errors of both sums together, at every sample.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Prepared samples.
    kernel : Kernel
        Kernel of features.
    bound : ErrorBound
        Bounds of the reduced set.

    Returns
    -------
    ndarray of shape (n, P)
        Bounds.
    """
    errors, most = _errors_of_values(kernel, row_norms(X, squared=True), bound)
    roundings = (bound.n_terms + FEW_ROUNDINGS) * UNIT_ROUNDOFF
    return (errors + roundings * most)[:, None] * bound.sizes


def _errors_of_values(kernel, squares, bound):
    """Bound the errors of k(x, v) and the values themselves, for the vectors v of a bound.

    Parameters
    ----------
    kernel : Kernel
        Kernel.
    squares : ndarray of shape (n,)
        ‖x‖² of prepared samples; not used for the kind `GRAM`.
    bound : ErrorBound
        Bound with the largest ‖v‖².

    Returns
    -------
    errors, values : ndarray of shape (n,)
        Bounds on the absolute errors and on the absolute values.
    """
    kind, u, terms = kernel.kind, UNIT_ROUNDOFF, bound.n_features
    if kind == GRAM:
        return np.array([kernel.error]), np.array([bound.largest])
    if kind in RADIAL:
        most = 1.0 if kind != IMQ else kernel.coef0**-0.5
        slope = kernel.gamma * (1.0 if kind != IMQ else 0.5 * kernel.coef0**-1.5)
        if kernel.by_differences:
            return np.full(squares.shape, (0.5 * terms + 4) * u * most), np.full(squares.shape, most)
        square = np.maximum(squares, bound.largest)
        errors = np.minimum(slope * 4 * (terms + 6) * u * square + 8 * u * most, most)
        return errors, np.full(squares.shape, most)
    product = np.sqrt(squares * bound.largest) * (1.0 + (terms + FEW_ROUNDINGS) * u)
    if kind == LINEAR:
        return (terms + 2) * u * product, product
    base = kernel.gamma * product + abs(kernel.coef0)
    values = base**kernel.degree
    return (kernel.degree * (terms + 6) + 4) * u * values, values
