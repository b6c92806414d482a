"""Kernel rows for `solvers.smo.row_steps`: the whole Gram matrix of a small machine, or a cache of rows."""

from typing import Any

import numpy as np

from solvers.kernels.subproblem_kernel import BLOCK_VALUES

# Of the memory allowed, that a copy of the active samples (side by side, they are read faster) may take.
SHARE_OF_COPY = 0.5
# A Gram matrix, and beside it the rows and columns of the active samples, at most 0.7 of them each way.
GRAM_AND_PART = 1.5
PARTS_OF_GRAM = 16  # a product copies one of them at a time
# Of a part of a sum: with fewer, adding up the parts would round more often than `SmoState.error` allows for.
MIN_TERMS = 4


class GramRows:
    """All kernel rows of the active samples.

    Parameters
    ----------
    kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
    """

    is_whole = True  # every value is at hand: a product takes no time to speak of

    def __init__(self, kernel):
        self._K = kernel.gram()
        self.rows = self._K
        self._reset(kernel.size)

    def _reset(self, n):
        self.slot = np.arange(n)
        self.clock = np.zeros(n + 1, dtype=np.int64)

    def activate(self, active):
        """Keep the rows and columns of these samples only."""
        self.rows = self._K  # lets go of the last part before the next is made
        if active.size < self._K.shape[0]:
            self.rows = self._K[np.ix_(active, active)]
        self._reset(active.size)

    def product(self, samples, support, weights):
        """``K[samples, support] @ weights``."""
        capacity = min(BLOCK_VALUES, self._K.size // PARTS_OF_GRAM)
        step = max(1, capacity // max(1, support.size))
        product = np.empty(samples.size)
        for start in range(0, samples.size, step):
            part = slice(start, start + step)
            product[part] = self._K[np.ix_(samples[part], support)] @ weights
        return product


class CachedRows:
    """Kernel rows computed on demand; the row that was not used for longest makes room.

    Parameters
    ----------
    kernel : solvers.kernels.subproblem_kernel.SubproblemKernel
    cache_bytes : float
    """

    is_whole = False

    def __init__(self, kernel, cache_bytes):
        self._kernel = kernel
        self._bytes = cache_bytes
        self._points: Any = None
        self.rows = np.empty((0, 0))
        self.activate(np.arange(kernel.size))

    def activate(self, active):
        """Start anew with rows over these samples only."""
        n = active.size
        copy_bytes = self._kernel.points_bytes(n)
        self._points, self.rows = None, np.empty((0, 0))  # makes room for the next
        self._active = active
        if copy_bytes <= SHARE_OF_COPY * self._bytes:
            self._points = self._kernel.points(active)
        left = self._bytes - (0 if self._points is None else copy_bytes)
        n_slots = int(min(n, max(2, left // (8 * n))))
        self.rows = np.empty((n_slots, n))
        self._owner = np.full(n_slots, -1)
        self.slot = np.full(n, -1)
        self.clock = np.zeros(n_slots + 1, dtype=np.int64)

    def fetch(self, i):
        """Compute the row of active sample `i`."""
        index = int(self.clock[:-1].argmin())
        if self._owner[index] >= 0:
            self.slot[self._owner[index]] = -1
        self._evaluate(self._kernel.points(self._active[i : i + 1]), self.rows[index])
        self._owner[index] = i
        self.slot[i] = index
        self.clock[-1] += 1
        self.clock[index] = self.clock[-1]

    def _evaluate(self, point, row):
        """Write the kernel between a point and the active samples; without a copy of them, some at a time."""
        if self._points is not None:
            row[:] = self._kernel.block(point, self._points)[0]
        elif self._kernel.are_most(row.size):
            row[:] = self._kernel.row_among(point, self._active)
        else:
            step = self._samples_to_copy(row.size)
            for start in range(0, row.size, step):
                part = slice(start, start + step)
                row[part] = self._kernel.block(point, self._kernel.points(self._active[part]))[0]

    def _samples_to_copy(self, n):
        """Return of how many of n samples a copy may be made at a time."""
        copy_bytes, capacity = self._kernel.points_bytes(n), SHARE_OF_COPY * self._bytes
        return n if copy_bytes <= capacity else max(1, int(capacity * n / copy_bytes))

    def product(self, samples, support, weights):
        """``K[samples, support] @ weights``, block by block.

        Raises
        ------
        OutOfTime
        """
        product = np.zeros(samples.size)
        step = max(MIN_TERMS, self._samples_to_copy(support.size))
        for start in range(0, support.size, step):
            part = slice(start, start + step)
            self._add_product(samples, support[part], weights[part], product)
        return product

    def _add_product(self, samples, support, weights, product):
        points = self._kernel.points(support)
        capacity = min(BLOCK_VALUES, self._bytes / 128)
        step = max(1, int(capacity // (support.size + self._kernel.points_bytes(1) / 8)))
        for start in range(0, samples.size, step):
            self._kernel.check_time()
            part = slice(start, start + step)
            product[part] += self._kernel.block(self._kernel.points(samples[part]), points) @ weights


def rows_of(kernel, cache_bytes):
    """Choose between the two for a machine: the Gram matrix if it fits the cache.

    Raises
    ------
    OutOfTime
    """
    n = kernel.size
    if GRAM_AND_PART * 8.0 * n * n + kernel.points_bytes(n) <= cache_bytes:
        return GramRows(kernel)
    return CachedRows(kernel, cache_bytes)
