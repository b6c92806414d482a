"""The Gaussian Gram matrices of a split, shared by every training on it.

One matrix product gives all squared distances of a split, one exponential for each γ its Gram matrix.
Solvers take it by scikit-learn's own convention, `kernel="precomputed"`. Values are float32, which is fast
and takes half the memory; solvers that have a parameter `gram_error` get a bound on their error, so that what
they certify holds for the kernel of the features, and those that have `gram_shift` get k − 1 where values of
k would be near 1. All others get the same values as float64, of which those of scikit-learn would otherwise
make a copy in every fit. Refits do not share: they get the features.
"""

import math
import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray

from orchestrator.study.batch import DataSource
from orchestrator.study.study import Protocol
from orchestrator.training.environment import cache_folder
from orchestrator.training.shared_arrays import read_only_view
from orchestrator.training.split_data import Split, open_split

MOST_ROWS = 20_000
"""The largest dataset whose trainings share Gram matrices; those of a split take less than 1.6 GB.

Sharing rounds, so it may not depend on a worker's memory. That decides only what is kept (`SplitGram`).
"""

DEFAULT_GB = 8.0
"""A worker's memory where none is configured."""

MEMORY_SHARE = 0.5
"""Share of a worker's memory that the matrices of a split may take."""

PRECOMPUTED = "precomputed"
"""What scikit-learn's estimators call a kernel whose values are given in place of features."""

_SMALL_DISTANCE = 0.7
"""Where γ times the mean squared distance is less, k − 1 is stored for solvers that take it: of values near 1
float32 loses what tells them apart. Elsewhere values of k − 1 would be near −1, and lose it in turn."""

_LEAST_EXPONENT = np.float32(-80.0)
"""Values of k below its exponential, 2e-35, become this one: numbers that are subnormal in float32 take some
processors a hundred times as long, here and in every solver."""

_AT_ONCE = 1 << 22  # bytes of Gram matrices that are made together: small ones cost more in Python
_BLOCK_VALUES = 1 << 18  # of a block: 1 MB of float32, about what the cache of one core holds
_ROUNDING = 2.0**-53
# NumPy's float32 exp is off by up to 2.52 units in the last place, which are 2⁻²⁴ below 1. Its argument −x is
# off by three roundings, of ‖x − x'‖², γ and their product: by 3 x 2⁻²⁴, and e⁻ˣ x ≤ 0.37.
_FLOAT32_ERROR = (2.52 + 1.11) * 2.0**-24
# NumPy's float32 expm1 is off by at most 3.41 · 2⁻²⁴ of its value: measured for arguments −2⁻⁴⁰ … −2⁷.
_SHIFTED_ERROR = 3.5 * 2.0**-24
_ARGUMENT_ERROR = 3.0 * 2.0**-24
_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
_LEAST_FLOAT32 = 2.0**-149  # what a distance or a value may be off by where it is close to 0


Blocks = Iterator[tuple[slice, NDArray[np.float32]]]
"""Blocks of a matrix, each with its rows."""


class SplitGram:
    """Squared distances of a split, and its Gram matrices by γ.

    Training rows are sorted by class, so that the blocks of pairs of classes lie together.

    Parameters
    ----------
    split : Split
        Of features.
    memory : float
        Bytes to get by with. Distances are kept if there is room for them beside the Gram matrices, and
        computed again for every γ if not; Gram matrices that have no room themselves lie in a file. The
        values are the same, bit for bit.
    dtype : float32 or float64
        Of the Gram matrices, whose values are those of float32 in either.
    may_shift : bool
        Whether 1 may be subtracted from all values, which `shift` tells.

    Attributes
    ----------
    at_once : int
        Number of γ that `splits` takes at most.
    """

    def __init__(
        self,
        split: Split,
        memory: float = math.inf,
        dtype: DTypeLike = np.float32,
        may_shift: bool = False,
    ):
        order = np.argsort(split.y_train, kind="stable")
        self._X_train, self._X_test = _centered(split.X_train[order], split.X_test)
        square_lengths = _square_lengths(self._X_train)
        self._distance_error = _distance_error(self._X_train, square_lengths)
        self._may_shift = may_shift
        # An upper bound; it is the mean where that of the rows is 0. Sparse rows are not centred.
        self._mean_distance = 2.0 * float(square_lengths.mean())
        self._largest_distance = 4.0 * float(square_lengths.max())
        of_test = 4.0 * _square_lengths(self._X_test).max(initial=0.0)
        self._farthest = float(np.maximum(self._largest_distance, of_test))  # NaN if one is
        n, m = self._X_train.shape[0], self._X_test.shape[0]
        shapes, size = [(n, n), (m, n)], n * (n + m)
        taken = np.dtype(dtype).itemsize * size
        kept = [] if taken + 4 * size > memory else shapes
        room = min(_AT_ONCE, memory - (4 * size if kept else 0))
        self.at_once = max(1, int(room // max(1, taken)))
        stacks = [((self.at_once, *shape), dtype) for shape in shapes]
        self._train, self._test, *self._kept = _matrices(
            [*stacks, *((shape, np.float32) for shape in kept)], in_file=taken > memory
        )
        for distances, blocks in zip(self._kept, self._computed(), strict=False):
            for rows, block in blocks:
                distances[rows] = block
        arrays = (self._train[0], split.y_train[order], self._test[0], split.y_test)
        self._split = Split(*map(read_only_view, arrays))

    @property
    def y_train(self) -> NDArray[Any]:
        """The labels of the training rows, sorted by class."""
        return self._split.y_train

    def split(self, gamma: float) -> Split:
        """Return the split with exp(−γ‖x − x'‖²) − shift(γ) in place of features.

        `X_train` (n_train, n_train) and `X_test` (n_test, n_train) are overwritten by the next call:
        touching fresh memory costs more than filling it. The split is read-only.
        """
        self._fill([gamma])
        return self._split

    def splits(self, gammas: Sequence[float]) -> Split:
        """Return one split for several γ, as many as `at_once` at most: see `split`.

        `X_train` is (n_gammas, n_train, n_train), and `X_test` (n_gammas, n_test, n_train).
        """
        self._fill(gammas)
        train, test = (read_only_view(stack[: len(gammas)]) for stack in (self._train, self._test))
        return Split(train, self._split.y_train, test, self._split.y_test)

    def _fill(self, gammas: Sequence[float]) -> None:
        factors = -np.array(gammas, dtype=np.float32)[:, None, None]
        distances = [_row_blocks(kept) for kept in self._kept] or self._computed()
        for blocks, stack in zip(distances, (self._train, self._test), strict=True):
            for rows, block in blocks:
                # In the cache, so that only the exponential waits for the memory that it fills.
                exponents = _room("exponents", (len(gammas), *block.shape), np.float32)
                np.multiply(block, factors, out=exponents)
                for gamma, values, out in zip(gammas, exponents, stack[: len(gammas), rows], strict=True):
                    self._exponentiate(values, gamma, out)

    def _exponentiate(self, exponents: NDArray[np.float32], gamma: float, out: NDArray[Any]) -> None:
        if self.shift(gamma):
            np.expm1(exponents, out=out)
            return
        if not gamma * self._farthest <= -_LEAST_EXPONENT:
            _raise_to(_LEAST_EXPONENT, exponents)
        np.exp(exponents, out=out)

    def _computed(self) -> list[Blocks]:
        """Compute the distances of training and of test rows to the training rows."""
        return [squared_distances(rows, self._X_train) for rows in (self._X_train, self._X_test)]

    def shift(self, gamma: float) -> float:
        """Return what `split(gamma)` subtracts from the kernel: 0 or 1."""
        return float(self._may_shift and gamma * self._mean_distance < _SMALL_DISTANCE)

    def is_finite(self, gamma: float) -> bool:
        """Whether all values of `split(gamma)` are known to be finite, without a look at each."""
        return 0.0 <= gamma <= _LARGEST_FLOAT32 and 2.0 * self._farthest <= _LARGEST_FLOAT32

    def error(self, gamma: float) -> float:
        """Return a bound on how far a value of `split(gamma).X_train` is from exp(−γ‖x − x'‖²) − shift(γ)."""
        rounding = _FLOAT32_ERROR
        if self.shift(gamma):
            largest = gamma * self._largest_distance
            rounding = _SHIFTED_ERROR * -math.expm1(-largest) + _ARGUMENT_ERROR * min(largest, 0.37)
        return rounding + (gamma + 1.0) * _LEAST_FLOAT32 + gamma * self._distance_error


def open_gram(
    source: DataSource,
    protocol: Protocol,
    outer: int,
    inner: int,
    memory: float = math.inf,
    dtype: DTypeLike = np.float32,
    may_shift: bool = False,
) -> SplitGram:
    """Return the distances of a split, kept by this thread until it asks for another split's."""
    wanted = (source, protocol, outer, inner, memory, dtype, may_shift)
    held, gram = getattr(_local, "gram", (None, None))
    if gram is None or held != wanted:
        gram = SplitGram(open_split(source, protocol, outer, inner), memory, dtype, may_shift)
        _local.gram = (wanted, gram)
    return gram


def forget_gram() -> None:
    """Let go of this thread's distances; the next to be opened are computed."""
    _local.gram = (None, None)


def squared_distances(A: Any, B: Any) -> Blocks:
    """Yield blocks of ‖A_i − B_j‖² = ‖A_i‖² − 2 A_i·B_j + ‖B_j‖² (a, b), summed in float64; 0 where B is A.

    Two more columns, (‖A_i‖², 1) and (1, ‖B_j‖²), make the whole sum one matrix product. A block is
    overwritten by the next of this thread.
    """
    left = _with_columns(A, -2.0, _square_lengths(A), np.ones(A.shape[0]))
    right = _with_columns(B, 1.0, np.ones(B.shape[0]), _square_lengths(B)).T
    blocks = list(_blocks_of(A.shape[0], B.shape[0]))
    shape = (blocks[0].stop if blocks else 0, B.shape[0])
    product, distances = _room("product", shape, np.float64), _room("distances", shape, np.float32)
    for rows in blocks:
        n = rows.stop - rows.start
        sums, block = product[:n], distances[:n]
        if scipy.sparse.issparse(left):
            (left[rows] @ right).toarray(out=sums)
        else:
            np.dot(left[rows], right, out=sums)
        block[:] = sums
        _raise_to(np.float32(0.0), block)  # rounding may leave less than nothing
        if B is A:
            np.fill_diagonal(block[:, rows], 0.0)
        yield rows, block


def _raise_to(least: np.float32, values: NDArray[np.float32]) -> None:
    """Replace smaller values, in place.

    With a number in place of the row NumPy takes two to four times as long, but for rows of few values.
    """
    np.maximum(values, np.full(values.shape[-1], least), out=values)


def _room(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of any values, this thread's of its name: fresh memory costs more than filling it."""
    size, kept = math.prod(shape), _local.__dict__.setdefault("rooms", {})
    if name not in kept or kept[name].size < size:
        kept[name] = np.empty(size, dtype)
    return kept[name][:size].reshape(shape)


def _row_blocks(matrix: NDArray[np.float32]) -> Blocks:
    return ((rows, matrix[rows]) for rows in _blocks_of(*matrix.shape))


def _blocks_of(n: int, width: int) -> Iterator[slice]:
    """Yield slices of n rows; scikit-learn's `gen_batches` takes longer than a small split's matrices."""
    step = max(1, _BLOCK_VALUES // max(1, width))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def memory_for_gram(memory_gb: float | None) -> float:
    """Return the bytes that the matrices of a split may take on a worker."""
    return MEMORY_SHARE * (memory_gb or DEFAULT_GB) * 2**30


def _centered(X_train: Any, X_test: Any) -> tuple[Any, Any]:
    """Move the origin to the mean of dense training rows, so that ‖x‖² + ‖x'‖² − 2 x·x' cancels little."""
    if scipy.sparse.issparse(X_train):
        return X_train, X_test
    center = X_train.mean(axis=0)
    return X_train - center, X_test - center


def _distance_error(X: Any, square_lengths: NDArray[np.float64]) -> float:
    """Bound the rounding of squared distances between rows in float64."""
    terms = int(np.diff(X.indptr).max()) if scipy.sparse.issparse(X) else X.shape[1]
    return float(4 * (terms + 6) * _ROUNDING * square_lengths.max())


def _square_lengths(X: Any) -> NDArray[np.float64]:
    if scipy.sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def _with_columns(X: Any, factor: float, *columns: NDArray[np.float64]) -> Any:
    if scipy.sparse.issparse(X):
        return scipy.sparse.hstack([factor * X, np.column_stack(columns)], format="csr")
    return np.column_stack([factor * X, *columns])


_local = threading.local()


def _matrices(
    kinds: Sequence[tuple[tuple[int, ...], DTypeLike]], in_file: bool = False
) -> list[NDArray[Any]]:
    """Return matrices in this thread's one buffer, which grows if need be; who held it before loses it.

    Parameters
    ----------
    kinds : sequence of (shape, dtype)
        The widest dtype first, so that all are aligned.
    in_file : bool
    """
    _local.gram = (None, None)
    ends = np.cumsum([0, *(np.dtype(dtype).itemsize * math.prod(shape) for shape, dtype in kinds)])
    buffer = getattr(_local, "buffer", None)
    if in_file:
        _local.buffer = buffer = None
        buffer = _file_buffer(int(ends[-1]))
    elif buffer is None or len(buffer) < ends[-1]:
        _local.buffer = buffer = None  # free the old before taking the new
        _local.buffer = buffer = np.empty(ends[-1], dtype=np.uint8)
    return [
        buffer[start:end].view(dtype).reshape(shape)
        for (shape, dtype), (start, end) in zip(kinds, pairwise(ends), strict=True)
    ]


def _file_buffer(size: int) -> NDArray[np.uint8]:
    """Map a file without a name, in the folder of prepared datasets; it goes with the last reference."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):  # not on macOS
            os.posix_fallocate(file.fileno(), 0, max(1, size))  # room is short now, or never
        return np.asarray(np.memmap(file, dtype=np.uint8, mode="w+", shape=(size,)))
