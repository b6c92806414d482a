"""Float32 block of kernel values between the samples near the margin, which grows and shrinks in place."""

import numpy as np

from solvers.common.compile import njit
from solvers.kernels.tiles import WIDTH, fill_block, in_float32, tiles_of

# Smallest share of the wanted samples in the block. Below it, the block is reduced to them.
KEPT_SHARE = 0.8
# Smallest capacity of a block, in rows.
MIN_ROWS = 100
# Largest number of columns whose tiles are in memory at a time.
PIECE = 1024
# Largest memory of these tiles, as a share of the memory of the block.
SHARE_OF_PIECE = 1.0 / 3.0
# Number of float32 values by which the length of a row is divisible.
LANES = 16


class MarginBlock:
    """Kernel values, less a shift, between some of the samples.

    Parameters
    ----------
    samples : solvers.kernels.tiles.Samples
        Samples of the training set, scaled for tiles.
    n_features : int
        Number of columns of the feature matrix.
    rows : int64 ndarray of shape (m,)
        Indices of the subproblem's samples.
    shift : float
        Value that is subtracted from the kernel.
    n_bytes : float
        Memory for the block, in bytes.

    Attributes
    ----------
    capacity : int
        Largest number of samples for which the memory suffices.
    members : int64 ndarray of shape (w,)
        Samples of the subproblem in the block, in the order of its rows.
    evaluations : int
        Number of kernel values computed so far.
    """

    def __init__(self, samples, n_features, rows, shift, n_bytes):
        self._samples, self._n_features, self._rows, self.shift = samples, n_features, rows, shift
        self._piece = piece_of(samples, n_features, n_bytes)
        self.capacity = int(min(rows.size, max(MIN_ROWS, np.sqrt(n_bytes / 4.0))))
        self._values = np.empty((0, 0), np.float32)
        self.members = np.empty(0, np.int64)
        self.evaluations = 0

    @property
    def values(self):
        """Kernel values of shape (w, any); the first w columns are valid."""
        return self._values[: self.members.size]

    def gather(self, wanted):
        """Make the block contain the wanted samples, and few others.

        Parameters
        ----------
        wanted : bool ndarray of shape (m,)
            True for each sample that the block must contain.
        """
        if not self._values.size:
            # Not before: the block of a subsample comes first, and has a copy of its own.
            self._samples = in_float32(self._samples, self.shift)
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
        """Compute the kernel between new samples and all members, row by row, which is faster than mirroring.

        Parameters
        ----------
        new : int64 ndarray
            Indices of the samples to add.
        """
        w = self.members.size
        self.members = np.concatenate((self.members, new))
        rows, indices = self._rows[self.members], np.arange(self.members.size)
        for first, end, some in ((0, w, slice(w, None)), (w, rows.size, slice(None))):
            for start in range(first, end, self._piece):
                columns = tiles_of(
                    self._samples, rows[start : min(start + self._piece, end)], self._n_features
                )
                fill_block(self._samples, rows[some], indices[some], columns, start, self.shift, self._values)
        self.evaluations += new.size * (2 * w + new.size)


def piece_of(samples, n_features, n_bytes):
    """Return the number of columns whose tiles may be in memory at a time.

    Parameters
    ----------
    samples : solvers.kernels.tiles.Samples
        Samples of the training set, scaled for tiles.
    n_features : int
        Number of columns of the feature matrix.
    n_bytes : float
        Memory for the block, in bytes.

    Returns
    -------
    int
        Number of columns; those of one tile, at least.
    """
    tiles = SHARE_OF_PIECE * n_bytes / (samples.values.itemsize * n_features * WIDTH)
    return min(PIECE, WIDTH * max(1, int(tiles)))


def new_block(capacity):
    """Allocate a block.

    Parameters
    ----------
    capacity : int
        Largest number of samples.

    Returns
    -------
    float32 ndarray of shape (capacity, stride)
        The block; its rows may be longer than `capacity`.
    """
    stride = -(-capacity // LANES) * LANES
    # Rows at distances of a multiple of 4096 bytes would share the same lines of the cache.
    stride += LANES if stride % 1024 == 0 else 0
    return np.empty((capacity, stride), np.float32)


@njit(allocates=False)
def compact(values, kept):
    """Move rows and columns to the front of a matrix.

    The indices are ascending, so that no value is overwritten before it is read.

    Parameters
    ----------
    values : array (n, any)
        Matrix whose first rows and columns are moved in place.
    kept : int64 array
        Indices of the rows and columns, ascending.
    """
    for a in range(kept.size):
        source, target = values[kept[a]], values[a]
        for b in range(kept.size):
            target[b] = source[kept[b]]
