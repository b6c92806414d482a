"""Gram matrices of one machine after the other, of which each value within a class is computed once."""

import numpy as np

from solvers.kernels.functions import kernel_block
from solvers.kernels.tiles import error_of_values, fill_block, scaled_samples, tiles_of

SHARE_KEPT = 0.5
FEW_TERMS = 64  # of a product, with which tiles are faster than BLAS


class ClassBlocks:
    """The Gaussian kernel within the classes of a training set, kept as far as the memory goes.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, n_features), float64
    kernel : solvers.kernels.functions.Kernel
    memory : float
        Bytes, a share of which is for what is kept.

    Attributes
    ----------
    samples : solvers.kernels.tiles.Samples
    """

    def __init__(self, X, kernel, memory):
        self._X, self._kernel, self._left = X, kernel, SHARE_KEPT * memory
        self.samples = scaled_samples(X, kernel.gamma)
        self._is_tiled = self.samples.values.size <= FEW_TERMS * X.shape[0]
        self._within: dict[int, np.ndarray] = {}  # by the first sample of a class

    @property
    def error(self):
        """Bound on the error of a value."""
        return error_of_values(self.samples) if self._is_tiled else self._kernel.error

    def gram(self, problem):
        """Return the Gram matrix of a machine, and a bound on the error of its entries."""
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
        if rows[0] in self._within:
            return self._within[rows[0]]
        values = self._evaluate(rows, rows)
        if values.nbytes <= self._left:
            self._left -= values.nbytes
            self._within[rows[0]] = values
        return values

    def _evaluate(self, rows, others):
        if not self._is_tiled:
            return kernel_block(self._X[rows], self._X[others], self._kernel)
        values = np.empty((rows.size, others.size))
        columns = tiles_of(self.samples, others, self._X.shape[1])
        fill_block(self.samples, rows, np.arange(rows.size), columns, 0, 0.0, values)
        return values
