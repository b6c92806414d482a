"""Kernel rows for `solvers.smo_steps`: the whole Gram matrix of a small machine, or a cache of rows."""

import numpy as np

from solvers.kernels import GRAM, kernel_block


class GramRows:
    """All kernel rows of the active samples.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel between the samples of a machine.
    """

    is_whole = True  # every value is at hand

    def __init__(self, K):
        self._K = K
        self.rows = K
        self.evaluations = K.size
        self._reset(K.shape[0])

    def _reset(self, n):
        self.slot = np.arange(n)
        self.clock = np.zeros(n + 1, dtype=np.int64)

    def activate(self, active):
        """Keep the rows and columns of these samples only."""
        is_all = active.size == self._K.shape[0]
        self.rows = self._K if is_all else np.ascontiguousarray(self._K[np.ix_(active, active)])
        self._reset(active.size)

    def product(self, samples, support, weights):
        """``K[samples, support] @ weights``."""
        return self._K[np.ix_(samples, support)] @ weights


class CachedRows:
    """Kernel rows computed on demand; the row that was not used for longest makes room.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        The samples of a machine.
    kernel : Kernel
    cache_bytes : float
    """

    is_whole = False

    def __init__(self, X, kernel, cache_bytes):
        self._X = X
        self._kernel = kernel
        self._bytes = cache_bytes
        self.evaluations = 0
        self.activate(np.arange(X.shape[0]))

    def activate(self, active):
        """Start anew with rows over these samples only."""
        n = active.size
        n_slots = int(min(n, max(2, self._bytes // (8 * n))))
        self._active = active
        self._points = self._X[active]
        self.rows = np.empty((n_slots, n))
        self._owner = np.full(n_slots, -1)
        self.slot = np.full(n, -1)
        self.clock = np.zeros(n_slots + 1, dtype=np.int64)

    def fetch(self, i):
        """Compute the row of active sample `i`."""
        place = int(self.clock[:-1].argmin())
        if self._owner[place] >= 0:
            self.slot[self._owner[place]] = -1
        self.rows[place] = kernel_block(self._points[i : i + 1], self._points, self._kernel)[0]
        self.evaluations += self._points.shape[0]
        self._owner[place] = i
        self.slot[i] = place
        self.clock[-1] += 1
        self.clock[place] = self.clock[-1]

    def product(self, samples, support, weights):
        """``K[samples, support] @ weights``, block by block."""
        self.evaluations += samples.size * support.size
        points = self._X[support]
        step = max(1, int(self._bytes // (8 * max(1, support.size))))
        parts = [
            kernel_block(self._X[samples[a : a + step]], points, self._kernel) @ weights
            for a in range(0, samples.size, step)
        ]
        return np.concatenate(parts) if parts else np.empty(0)


def rows_of(problem, cache_bytes):
    """Choose between the two for a machine: the Gram matrix if it fits the cache."""
    n = problem.rows.size
    if problem.kernel.kind == GRAM:
        return GramRows(problem.X[np.ix_(problem.rows, problem.rows)].astype(np.float64))
    X = problem.X[problem.rows]
    if 8.0 * n * n <= cache_bytes:
        return GramRows(kernel_block(X, X, problem.kernel))
    return CachedRows(X, problem.kernel, cache_bytes)
