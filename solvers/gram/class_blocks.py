"""Gram matrices of the subproblems, one at a time. Kernel values within a class are computed only once."""

import numpy as np

from solvers.kernels.functions import kernel_block
from solvers.kernels.tiles import error_of_values, fill_block, scaled_samples, tiles_of

# Share of the memory for the stored blocks of classes.
SHARE_KEPT = 0.5
# Largest mean number of terms of an inner product for which tiles are faster than BLAS.
FEW_TERMS = 64


class ClassBlocks:
    """The Gaussian kernel within the classes of a training set, stored as far as the memory suffices.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, n_features), float64
        Samples of the training set.
    kernel : solvers.kernels.functions.Kernel
        Gaussian kernel with its width γ.
    memory : float
        Memory allowed, in bytes. The stored blocks take at most `SHARE_KEPT` of it.

    Attributes
    ----------
    samples : solvers.kernels.tiles.Samples
        The samples, scaled for tiles.
    """

    def __init__(self, X, kernel, memory):
        self._X, self._kernel, self._left = X, kernel, SHARE_KEPT * memory
        self.samples = scaled_samples(X, kernel.gamma)
        self._is_tiled = self.samples.values.size <= FEW_TERMS * X.shape[0]
        self._within: dict[bytes, np.ndarray] = {}  # blocks of classes, by the samples of the class

    @property
    def error(self):
        """Bound on the error of a kernel value."""
        return error_of_values(self.samples) if self._is_tiled else self._kernel.error

    def gram(self, problem):
        """Return the Gram matrix of a subproblem.

        Parameters
        ----------
        problem : solvers.problem.Problem
            Samples of the subproblem, with their penalties C, the kernel and the limits.

        Returns
        -------
        K : ndarray of shape (m, m)
            Kernel values of all pairs of samples of the subproblem, float64.
        error : float
            Bound on the error of its entries.
        """
        start, m = problem.class_start, problem.rows.size
        parts = [slice(start[t], start[t + 1]) for t in range(start.size - 1)]
        K = np.empty((m, m))
        for a, part in enumerate(parts):
            rows = problem.rows[part].astype(np.int64)
            K[part, part] = self._of_class(rows)
            for other in parts[a + 1 :]:
                values = self._evaluate(rows, problem.rows[other].astype(np.int64))
                K[part, other], K[other, part] = values, values.T
        return K, self.error

    def _of_class(self, rows):
        """Return the block of a class, stored or computed.

        Parameters
        ----------
        rows : int64 ndarray of shape (n,)
            Samples of the class.

        Returns
        -------
        ndarray of shape (n, n)
            Kernel values.
        """
        key = rows.tobytes()
        if key in self._within:
            return self._within[key]
        values = self._evaluate(rows, rows)
        if values.nbytes <= self._left:
            self._left -= values.nbytes
            self._within[key] = values
        return values

    def _evaluate(self, rows, others):
        """Compute the kernel between two sets of samples.

        Parameters
        ----------
        rows, others : int64 ndarrays
            Indices of the samples in the rows, and of those in the columns.

        Returns
        -------
        ndarray of shape (rows.size, others.size)
            Kernel values.
        """
        if not self._is_tiled:
            return kernel_block(self._X[rows], self._X[others], self._kernel)
        values = np.empty((rows.size, others.size))
        columns = tiles_of(self.samples, others, self._X.shape[1])
        fill_block(self.samples, rows, np.arange(rows.size), columns, 0, 0.0, values)
        return values
