"""Kernel values between rows of a training set."""

import numpy as np
from scipy import sparse

from solvers.kernels.functions import GRAM, kernel_block

DENSE_FEATURES = 4_000
"""Largest number of features with which sparse rows become dense, because BLAS is then faster."""


def rows_of(X, kernel, rows):
    """Return rows for `values_between`.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d), or ndarray of shape (n, n)
        Samples as `Kernel.prepare` returns them, or the Gram matrix.
    kernel : solvers.kernels.functions.Kernel
        Kernel of the samples.
    rows : int64 ndarray of shape (m,)
        Rows of X.

    Returns
    -------
    {ndarray, CSR}
        Rows of X, dense if that is faster; the row numbers for a Gram matrix.
    """
    if kernel.kind == GRAM:
        return rows
    chosen = X[rows]
    return chosen.toarray() if sparse.issparse(X) and X.shape[1] <= DENSE_FEATURES else chosen


def values_between(X, kernel, A, B):
    """Return the kernel values between two sets of rows.

    Parameters
    ----------
    X, kernel
        As in `rows_of`.
    A, B : {ndarray, CSR}
        Results of `rows_of`, of m and k rows.

    Returns
    -------
    ndarray of shape (m, k), float64, C-contiguous
        Kernel values.
    """
    values = X[np.ix_(A, B)] if kernel.kind == GRAM else kernel_block(A, B, kernel)
    return np.ascontiguousarray(values, dtype=np.float64)
