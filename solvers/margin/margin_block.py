"""A block of kernel values between the samples near the margin: float32, grown and shrunk in place."""

import numpy as np

from solvers.common.compile import njit
from solvers.kernels.tiles import fill_block, tiles_of

# The block is cut down to the samples asked for when they are less than this share of it.
KEPT_SHARE = 0.8
MIN_ROWS = 100
PIECE = 1024  # columns that there are tiles of at a time
LANES = 16


class MarginBlock:
    """The kernel, less a shift, between some of the samples.

    Parameters
    ----------
    samples : solvers.kernels.tiles.Samples
    n_features : int
    rows : int64 ndarray of shape (m,)
        The machine's samples.
    shift : float
    n_bytes : float
        That the block may take.

    Attributes
    ----------
    capacity : int
        Number of samples that there is memory for.
    members : int64 ndarray of shape (w,)
        Which samples of the machine the block is about, in its order.
    evaluations : int
    """

    def __init__(self, samples, n_features, rows, shift, n_bytes):
        self._samples, self._n_features, self._rows, self.shift = samples, n_features, rows, shift
        self.capacity = int(min(rows.size, max(MIN_ROWS, np.sqrt(n_bytes / 4.0))))
        self._values = np.empty((0, 0), np.float32)
        self.members = np.empty(0, np.int64)
        self.evaluations = 0

    @property
    def values(self):
        """Kernel values, of which the first w columns are meant."""
        return self._values[: self.members.size]

    def gather(self, wanted):
        """Make the block hold the samples asked for, and few others.

        Parameters
        ----------
        wanted : bool ndarray of shape (m,)
        """
        if not self._values.size:
            self._values = new_block(self.capacity)
        is_new = wanted.copy()
        is_new[self.members] = False
        new = np.flatnonzero(is_new)
        n_wanted, n_both = np.count_nonzero(wanted), self.members.size + new.size
        if n_wanted < KEPT_SHARE * n_both or n_both > self.capacity:
            kept = np.flatnonzero(wanted[self.members])
            compact(self._values, kept)
            self.members = self.members[kept]
        if new.size:
            self._append(new)

    def _append(self, new):
        """Evaluate the kernel of the new ones with all, row by row: mirroring would be slower."""
        w = self.members.size
        self.members = np.concatenate((self.members, new))
        rows, indices = self._rows[self.members], np.arange(self.members.size)
        for first, end, some in ((0, w, slice(w, None)), (w, rows.size, slice(None))):
            for start in range(first, end, PIECE):
                columns = tiles_of(self._samples, rows[start : min(start + PIECE, end)], self._n_features)
                fill_block(self._samples, rows[some], indices[some], columns, start, self.shift, self._values)
        self.evaluations += new.size * (2 * w + new.size)


def new_block(capacity):
    """Allocate room for a block of so many samples, in rows of more."""
    stride = -(-capacity // LANES) * LANES
    # Rows a multiple of 4096 bytes apart would share the same lines of the cache.
    stride += LANES if stride % 1024 == 0 else 0
    return np.empty((capacity, stride), np.float32)


@njit(allocates=False)
def compact(values, kept):
    """Move rows and columns to the front, in ascending order: none is overwritten before it is read."""
    for a in range(kept.size):
        source, target = values[kept[a]], values[a]
        for b in range(kept.size):
            target[b] = source[kept[b]]
