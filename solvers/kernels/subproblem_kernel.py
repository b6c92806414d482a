"""Kernel between the samples of one subproblem, computed in parts."""

import numpy as np
from scipy import sparse

from solvers.common.clock import clock
from solvers.kernels.functions import GRAM, kernel_block, kernel_diagonal
from solvers.kernels.gaussian_rows import GaussianRows, has_gaussian_rows

BLOCK_VALUES = 1 << 20
"""Number of kernel values between two checks of the deadline."""


class OutOfTime(Exception):
    """The deadline passed before the requested kernel values were computed."""


class SubproblemKernel:
    """Kernel between the samples of a subproblem, read from a Gram matrix or evaluated on their features.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Subproblem with its samples, kernel and deadline.
    """

    def __init__(self, problem):
        self.kernel = problem.kernel
        self.is_gram = problem.kernel.kind == GRAM
        self._X, self._rows, self._deadline = problem.X, problem.rows, problem.deadline
        self._gaussian_rows: GaussianRows | None = None
        self.evaluations = 0

    @property
    def size(self):
        """Number of samples."""
        return self._rows.size

    def points_bytes(self, n):
        """Return the memory that a copy of samples takes.

        Parameters
        ----------
        n : int
            Number of samples.

        Returns
        -------
        float
            Bytes; 0 if a Gram matrix is read in place.
        """
        if self.is_gram:
            return 0
        if sparse.issparse(self._X):
            per_value = self._X.data.itemsize + self._X.indices.itemsize
            return n * (per_value * self._X.nnz / self._X.shape[0] + self._X.indptr.itemsize)
        return n * self._X.shape[1] * self._X.itemsize

    def points(self, samples):
        """Return the form of some samples that `block` takes.

        Parameters
        ----------
        samples : slice or int ndarray
            Samples of the subproblem.

        Returns
        -------
        {ndarray, CSR}
            Copy of their features, or their row numbers in a Gram matrix.
        """
        return self._rows[samples] if self.is_gram else self._X[self._rows[samples]]

    def diagonal(self):
        """Evaluate k(x, x) of every sample, without a copy of all samples.

        Returns
        -------
        ndarray of shape (n,), float64
            Values of the diagonal.
        """
        if self.is_gram:
            return kernel_diagonal(self._X, self.kernel)[self._rows]
        step = max(1, BLOCK_VALUES // self._X.shape[1])
        parts = [self._rows[a : a + step] for a in range(0, self.size, step)]
        return np.concatenate([kernel_diagonal(self._X[part], self.kernel) for part in parts])

    def check_time(self):
        """Raise if the deadline has passed.

        Raises
        ------
        OutOfTime
            The deadline has passed.
        """
        if clock() > self._deadline:
            raise OutOfTime

    def block(self, some, others):
        """Evaluate the kernel between two sets of samples.

        Parameters
        ----------
        some : {ndarray, CSR}
            Samples of the rows, as `points` returns them.
        others : {ndarray, CSR}
            Samples of the columns, as `points` returns them.

        Returns
        -------
        ndarray, float64
            Kernel values.
        """
        self.evaluations += some.shape[0] * others.shape[0]
        if self.is_gram:
            return self._X[np.ix_(some, others)].astype(np.float64, copy=False)
        return kernel_block(some, others, self.kernel)

    def row_among(self, point, samples):
        """Evaluate the kernel between one sample and many, from all rows of X, which saves copies.

        Parameters
        ----------
        point : {ndarray, CSR}
            Sample, as `points` returns it.
        samples : int ndarray of shape (n,)
            Samples of the subproblem.

        Returns
        -------
        ndarray of shape (n,), float64
            Kernel values.
        """
        self.evaluations += self._X.shape[0]
        if not has_gaussian_rows(self.kernel):
            return kernel_block(point, self._X, self.kernel)[0, self._rows[samples]]
        if self._gaussian_rows is None:
            self._gaussian_rows = GaussianRows(self._X, self.kernel, by_feature=False)
        row = np.empty(self._X.shape[0])
        self._gaussian_rows.write(point, row)
        return row[self._rows[samples]]

    def are_most(self, n):
        """Return whether a number of samples is at least half of the rows of X.

        Parameters
        ----------
        n : int
            Number of samples.

        Returns
        -------
        bool
            False if the kernel is a Gram matrix.
        """
        return not self.is_gram and 2 * n >= self._X.shape[0]

    def gram(self):
        """Evaluate the kernel between all samples.

        Returns
        -------
        ndarray of shape (n, n), float64
            Kernel matrix.

        Raises
        ------
        OutOfTime
            The deadline passed before all values were computed.
        """
        K = np.empty((self.size, self.size))
        points = self.points(slice(None))
        step = max(1, min(BLOCK_VALUES // self.size, self.size // 8))
        for start in range(0, self.size, step):
            self.check_time()
            K[start : start + step] = self.block(points[start : start + step], points)
        return K
