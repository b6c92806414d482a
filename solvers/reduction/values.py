"""Kernel values between rows of a training set."""

import numpy as np
from scipy import sparse

from solvers.kernels.functions import GRAM, kernel_block
from solvers.kernels.tiles import add_products, error_of_values, is_tiled, scaled_samples, tiles_of

DENSE_FEATURES = 4_000
"""Largest number of features with which sparse rows become dense, because BLAS is then faster."""

MIN_TILED = 3_000
"""Number of rows above which tiles are used, which are compiled for the training of large sets anyway."""
MAX_TILED_SUMS = 4
"""Largest number of sums for which tiles are used. They compute a kernel value again for each sum."""
SHARE_OF_TILES = 0.5
"""Largest share of the memory for tiles."""


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


class Sums:
    """Sums Σ_k c_k k(x_k, ·) for several lists of coefficients, at rows of a training set.

    Parameters
    ----------
    X, kernel
        As in `rows_of`.
    n_rows : int
        Largest number of rows at which sums are computed.
    n_sums : int
        Number of lists of coefficients.
    memory : float
        Memory for kernel values, in bytes.

    Attributes
    ----------
    is_tiled : bool
        Whether kernel values are computed in tiles and used at once, which is fastest for few sums.
    value_error : float
        Bound on the error of a kernel value.
    """

    def __init__(self, X, kernel, n_rows, n_sums, memory):
        self._X, self._kernel, self._memory = X, kernel, memory
        self.value_error = kernel.error
        fits = 8.0 * n_rows * X.shape[1] <= SHARE_OF_TILES * memory
        is_worth = n_rows > MIN_TILED and n_sums <= MAX_TILED_SUMS and fits
        self.is_tiled = kernel.kind != GRAM and is_worth and is_tiled(kernel, X)
        if self.is_tiled:
            self._samples = scaled_samples(X, kernel.gamma)
            self.value_error = max(self.value_error, error_of_values(self._samples))

    def at(self, rows, coefficients, targets):
        """Compute the sums.

        Parameters
        ----------
        rows : int64 ndarray of shape (k,)
            Rows x_k.
        coefficients : ndarray of shape (n_sums, k)
            Coefficients c_k.
        targets : int64 ndarray of shape (m,)
            Rows at which the sums are computed.

        Returns
        -------
        ndarray of shape (n_sums, m)
            Sums.
        """
        sums = np.zeros((coefficients.shape[0], targets.size))
        if self.is_tiled:
            tiles = tiles_of(self._samples, targets, self._X.shape[1])
            for of_sum, out in zip(np.ascontiguousarray(coefficients), sums, strict=True):
                chosen = np.flatnonzero(of_sum)
                add_products(self._samples, rows[chosen], of_sum[chosen], tiles, out)
            return sums
        vectors = rows_of(self._X, self._kernel, rows)
        for part in parts_of(targets.size, rows.size, self._memory):
            some = rows_of(self._X, self._kernel, targets[part])
            sums[:, part] = coefficients @ values_between(self._X, self._kernel, some, vectors).T
        return sums

    def square_norms(self, rows, coefficients):
        """Return ‖Σ_k c_k φ_k‖².

        Parameters
        ----------
        rows : int64 ndarray of shape (k,)
            Rows x_k.
        coefficients : ndarray of shape (n_sums, k)
            Coefficients c_k.

        Returns
        -------
        squares : ndarray of shape (n_sums,)
            Squared norms.
        n_kernel_evals : int
            Number of kernel values.
        """
        used = np.flatnonzero(coefficients.any(axis=0))
        coefficients, rows = coefficients[:, used], rows[used]
        if self.is_tiled:
            return (coefficients * self.at(rows, coefficients, rows)).sum(axis=1), used.size**2
        squares, n_values = np.zeros(coefficients.shape[0]), 0
        for part in parts_of(used.size, used.size, self._memory):  # values before a part: its transpose
            left = rows_of(self._X, self._kernel, rows[part])
            right = rows_of(self._X, self._kernel, rows[part.start :])
            values = values_between(self._X, self._kernel, left, right)
            size, of_part = values.shape[0], coefficients[:, part]
            inside = ((of_part @ values[:, :size]) * of_part).sum(axis=1)
            squares += inside + 2.0 * ((of_part @ values[:, size:]) * coefficients[:, part.stop :]).sum(
                axis=1
            )
            n_values += values.size
        return squares, n_values


def parts_of(n, width, memory):
    """Split rows into parts whose kernel values fit into memory.

    Parameters
    ----------
    n : int
        Number of rows.
    width : int
        Number of values of a row.
    memory : float
        Memory for kernel values, in bytes.

    Returns
    -------
    list of slice
        Parts.
    """
    step = int(min(max(memory / (24.0 * max(width, 1)), 16), 2048))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
