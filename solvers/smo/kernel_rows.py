"""Kernel rows for `solvers.smo.row_steps`: the Gram matrix of a small subproblem, or a cache of rows."""

from typing import Any

import numpy as np

from solvers.kernels.gaussian_rows import GaussianRows, has_gaussian_rows
from solvers.kernels.subproblem_kernel import BLOCK_VALUES

# Largest share of the memory for a contiguous copy of the active samples, which is faster to read.
SHARE_OF_COPY = 0.5
# Memory of a Gram matrix with a copy of its active part, as a multiple of the matrix. The copy has at most
# 0.7 of the rows and of the columns.
GRAM_AND_PART = 1.5
# Number of parts of a Gram matrix. A product copies one part at a time.
PARTS_OF_GRAM = 16
# Smallest number of terms of a partial sum. With fewer terms, adding the partial sums would round more often
# than `SmoState.error` allows for.
MIN_TERMS = 4


class GramRows:
    """All kernel rows of the active samples.

    Parameters
    ----------
    kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
        Kernel between the samples of the subproblem.
    """

    is_whole = True  # every value is stored, so a product takes next to no time

    def __init__(self, kernel):
        self._K = kernel.gram()
        self.rows = self._K
        self._reset(kernel.size)

    def _reset(self, n):
        """Set the look-up of rows to n active samples.

        Parameters
        ----------
        n : int
            Number of active samples.
        """
        self.slot = np.arange(n)
        self.clock = np.zeros(n + 1, dtype=np.int64)

    def activate(self, active):
        """Use only the rows and columns of some samples.

        Parameters
        ----------
        active : int64 ndarray of shape (n,)
            Active samples, ascending.
        """
        self.rows = self._K  # frees the last part before the next one is allocated
        if active.size < self._K.shape[0]:
            self.rows = self._K[np.ix_(active, active)]
        self._reset(active.size)

    def product(self, samples, support, weights):
        """Compute ``K[samples, support] @ weights``.

        Parameters
        ----------
        samples : int64 ndarray of shape (n,)
            Indices of the samples.
        support : int64 ndarray of shape (k,)
            Indices of the columns.
        weights : ndarray of shape (k,)
            Weight of each column.

        Returns
        -------
        ndarray of shape (n,)
            The product.
        """
        capacity = min(BLOCK_VALUES, self._K.size // PARTS_OF_GRAM)
        step = max(1, capacity // max(1, support.size))
        product = np.empty(samples.size)
        for start in range(0, samples.size, step):
            part = slice(start, start + step)
            product[part] = self._K[np.ix_(samples[part], support)] @ weights
        return product


class CachedRows:
    """Kernel rows computed on demand. A new row replaces the least recently used one.

    Parameters
    ----------
    kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
        Kernel between the samples of the subproblem.
    cache_bytes : float
        Memory for the rows and for a copy of the active samples, in bytes.
    min_rows : int
        Least number of rows in memory.
    """

    is_whole = False

    def __init__(self, kernel, cache_bytes, min_rows=2):
        self._kernel = kernel
        self._bytes, self._min_rows = cache_bytes, min_rows
        self._points: Any = None
        self.rows = np.empty((0, 0))
        self.activate(np.arange(kernel.size))

    def activate(self, active):
        """Start with an empty cache of rows over some samples.

        Parameters
        ----------
        active : int64 ndarray of shape (n,)
            Active samples, ascending.
        """
        n = active.size
        copy_bytes = self._kernel.points_bytes(n)
        self._points, self.rows = None, np.empty((0, 0))  # frees memory before the next allocation
        self._active = active
        if copy_bytes <= SHARE_OF_COPY * self._bytes:
            points = self._kernel.points(active)
            is_fast = has_gaussian_rows(self._kernel.kernel)
            self._points = GaussianRows(points, self._kernel.kernel) if is_fast else points
        left = self._bytes - (0 if self._points is None else copy_bytes)
        n_slots = int(min(n, max(self._min_rows, left // (8 * n))))
        self.rows = np.empty((n_slots, n))
        self._owner = np.full(n_slots, -1)
        self.slot = np.full(n, -1)
        self.clock = np.zeros(n_slots + 1, dtype=np.int64)

    def fetch(self, i):
        """Compute the row of an active sample.

        Parameters
        ----------
        i : int
            Index of the sample among the active ones.
        """
        index = int(self.clock[:-1].argmin())
        if self._owner[index] >= 0:
            self.slot[self._owner[index]] = -1
        self._evaluate(self._kernel.points(self._active[i : i + 1]), self.rows[index])
        self._owner[index] = i
        self.slot[i] = index
        self.clock[-1] += 1
        self.clock[index] = self.clock[-1]

    def _evaluate(self, point, row):
        """Write the kernel between a point and the active samples.

        Parameters
        ----------
        point : {ndarray, CSR} of shape (1, n_features)
            Sample whose kernel values are computed.
        row : ndarray of shape (n,)
            Receives the values.
        """
        if isinstance(self._points, GaussianRows):
            self._kernel.evaluations += row.size
            self._points.write(point, row)
        elif self._points is not None:
            row[:] = self._kernel.block(point, self._points)[0]
        elif self._kernel.are_most(row.size):
            row[:] = self._kernel.row_among(point, self._active)
        else:
            step = self._samples_to_copy(row.size)
            for start in range(0, row.size, step):
                part = slice(start, start + step)
                row[part] = self._kernel.block(point, self._kernel.points(self._active[part]))[0]

    def _samples_to_copy(self, n):
        """Return the number of samples that may be copied at a time.

        Parameters
        ----------
        n : int
            Number of samples.

        Returns
        -------
        int
            At least 1, and at most n.
        """
        copy_bytes, capacity = self._kernel.points_bytes(n), SHARE_OF_COPY * self._bytes
        return n if copy_bytes <= capacity else max(1, int(capacity * n / copy_bytes))

    def product(self, samples, support, weights):
        """Compute ``K[samples, support] @ weights`` block by block.

        Parameters
        ----------
        samples : int64 ndarray of shape (n,)
            Indices of the samples.
        support : int64 ndarray of shape (k,)
            Indices of the columns.
        weights : ndarray of shape (k,)
            Weight of each column.

        Returns
        -------
        ndarray of shape (n,)
            The product.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        product = np.zeros(samples.size)
        step = max(MIN_TERMS, self._samples_to_copy(support.size))
        for start in range(0, support.size, step):
            part = slice(start, start + step)
            self._add_product(samples, support[part], weights[part], product)
        return product

    def _add_product(self, samples, support, weights, product):
        """Add ``K[samples, support] @ weights`` to a product.

        Parameters
        ----------
        samples : int64 ndarray of shape (n,)
            Indices of the samples.
        support : int64 ndarray of shape (k,)
            Indices of the columns. A copy of these columns must fit into the memory.
        weights : ndarray of shape (k,)
            Weight of each column.
        product : ndarray of shape (n,)
            Sum so far, changed in place.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        points = self._kernel.points(support)
        capacity = min(BLOCK_VALUES, self._bytes / 128)
        step = max(1, int(capacity // (support.size + self._kernel.points_bytes(1) / 8)))
        for start in range(0, samples.size, step):
            self._kernel.check_time()
            part = slice(start, start + step)
            product[part] += self._kernel.block(self._kernel.points(samples[part]), points) @ weights


def rows_of(kernel, cache_bytes, min_rows=2):
    """Return the kernel rows of a subproblem: its Gram matrix if that fits the memory, else a cache.

    Parameters
    ----------
    kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
        Kernel between the samples of the subproblem.
    cache_bytes : float
        Memory allowed, in bytes.
    min_rows : int, default=2
        Least number of rows in memory, even if they need more than `cache_bytes`.

    Returns
    -------
    GramRows or CachedRows
        Reader of kernel rows by sample.

    Raises
    ------
    OutOfTime
        If the deadline passes.
    """
    n = kernel.size
    if GRAM_AND_PART * 8.0 * n * n + kernel.points_bytes(n) <= cache_bytes:
        return GramRows(kernel)
    return CachedRows(kernel, cache_bytes, min_rows)
