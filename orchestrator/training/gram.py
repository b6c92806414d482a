"""Compute the Gaussian Gram matrices of a split, which all trainings on it share.

One matrix product computes all squared distances of a split. One exponential for each γ makes them a Gram
matrix. Solvers take it by scikit-learn's convention, `kernel="precomputed"`. Values are float32, which is
fast and halves the memory. A solver with a parameter `gram_error` gets a bound on their error, so that its
certificate holds for the exact kernel. A solver with `gram_shift` gets k − 1 where values of k are near 1.
All other solvers get the same values as float64, because scikit-learn would copy float32 matrices in every
fit. Refits do not share matrices: they get the features.
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

from orchestrator.study.study import Arm, Protocol
from orchestrator.study.trials import DataSource
from orchestrator.training.environment import cache_folder
from orchestrator.training.estimators import takes
from orchestrator.training.shared_arrays import read_only_view
from orchestrator.training.split_data import Split, open_split

MAX_ROWS = 20_000
"""Largest number of rows of a dataset whose trainings share Gram matrices (1.6 GB a split).

Sharing rounds the values, so it may not depend on a worker's memory. The memory decides only which matrices
are kept (`SplitGram`).
"""

DEFAULT_GB = 8.0
"""Memory of a worker for which none is configured, in GiB."""

MEMORY_SHARE = 0.5
"""Share of a worker's memory that the matrices of a split may take."""

PRECOMPUTED = "precomputed"
"""Value of scikit-learn's parameter `kernel` for a matrix of kernel values in place of features."""

_SMALL_DISTANCE = 0.7
"""Product of γ and the mean squared distance below which k − 1 is stored, for solvers that take it.

Values of k near 1 differ in few digits of float32. For larger distances values of k − 1 are near −1, and the
same holds for them.
"""

_MIN_EXPONENT = np.float32(-80.0)
"""Smallest exponent of a kernel value; smaller ones are replaced by it.

Its exponential is 2e-35. Some processors take a hundred times as long for numbers that are subnormal in
float32, here and in every solver.
"""

_STACK_BYTES = 1 << 22
"""Size of the Gram matrices that are computed together, in bytes, which saves Python calls for small ones."""

_BLOCK_VALUES = 1 << 18
"""Number of values in a block: 1 MB of float32, which fits the cache of one core."""

_ROUNDING = 2.0**-53
# NumPy's float32 exp has an error of up to 2.52 units in the last place. A unit is 2⁻²⁴ for values below 1.
# Its argument −x has a relative error of 3 · 2⁻²⁴, by the roundings of ‖x − x'‖², γ and their product, and
# e⁻ˣ x ≤ 0.37.
_FLOAT32_ERROR = (2.52 + 1.11) * 2.0**-24
# NumPy's float32 expm1 has a relative error of at most 3.41 · 2⁻²⁴, measured for arguments −2⁻⁴⁰ … −2⁷.
_SHIFTED_ERROR = 3.5 * 2.0**-24
_ARGUMENT_ERROR = 3.0 * 2.0**-24
_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
_SMALLEST_FLOAT32 = 2.0**-149
"""Largest absolute error of a distance or a value that is close to 0."""


Blocks = Iterator[tuple[slice, NDArray[np.float32]]]
"""Blocks of a matrix, each with the slice of its rows."""


class SplitGram:
    """Squared distances of a split, and its Gram matrices by γ.

    Training rows are sorted by class, so that the block of a pair of classes is contiguous.

    Parameters
    ----------
    split : Split
        Rows of features.
    memory : float
        Memory for the matrices, in bytes. Distances that do not fit beside the Gram matrices are computed
        again for every γ. Gram matrices that do not fit are mapped from a file. The values are the same, bit
        for bit. Unlimited by default.
    dtype : float32 or float64
        Type of the Gram matrices. Their values are those of float32 in either case. float32 by default.
    may_shift : bool
        Whether 1 may be subtracted from all values; see `shift`. False by default.

    Attributes
    ----------
    at_once : int
        Largest number of γ that `splits` takes.
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
        # An upper bound, which is exact for centred rows. Sparse rows are not centred.
        self._mean_distance = 2.0 * float(square_lengths.mean())
        self._largest_distance = 4.0 * float(square_lengths.max())
        of_test = 4.0 * _square_lengths(self._X_test).max(initial=0.0)
        self._farthest = float(np.maximum(self._largest_distance, of_test))  # NaN if one is
        n, m = self._X_train.shape[0], self._X_test.shape[0]
        shapes, size = [(n, n), (m, n)], n * (n + m)
        taken = np.dtype(dtype).itemsize * size
        kept = [] if taken + 4 * size > memory else shapes
        available = min(_STACK_BYTES, memory - (4 * size if kept else 0))
        self.at_once = max(1, int(available // max(1, taken)))
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

        The next call overwrites `X_train` and `X_test`, because new memory costs more than the values. The
        split is read-only.

        Parameters
        ----------
        gamma : float
            Factor γ of the kernel.

        Returns
        -------
        Split
            `X_train` has shape (n_train, n_train), and `X_test` (n_test, n_train).
        """
        self._fill([gamma])
        return self._split

    def splits(self, gammas: Sequence[float]) -> Split:
        """Return one split for several γ; see `split`.

        Parameters
        ----------
        gammas : sequence of float
            Values of γ, at most `at_once` of them.

        Returns
        -------
        Split
            `X_train` has shape (n_gammas, n_train, n_train), and `X_test` (n_gammas, n_test, n_train).
        """
        self._fill(gammas)
        train, test = (read_only_view(stack[: len(gammas)]) for stack in (self._train, self._test))
        return Split(train, self._split.y_train, test, self._split.y_test)

    def _fill(self, gammas: Sequence[float]) -> None:
        """Compute the Gram matrices of several γ.

        Parameters
        ----------
        gammas : sequence of float
            Values of γ, at most `at_once` of them.
        """
        factors = -np.array(gammas, dtype=np.float32)[:, None, None]
        distances = [_row_blocks(kept) for kept in self._kept] or self._computed()
        for blocks, stack in zip(distances, (self._train, self._test), strict=True):
            for rows, block in blocks:
                # The exponents stay in the cache, so that only the result is written to main memory.
                exponents = _workspace("exponents", (len(gammas), *block.shape), np.float32)
                np.multiply(block, factors, out=exponents)
                for gamma, values, out in zip(gammas, exponents, stack[: len(gammas), rows], strict=True):
                    self._exponentiate(values, gamma, out)

    def _exponentiate(self, exponents: NDArray[np.float32], gamma: float, out: NDArray[Any]) -> None:
        """Compute kernel values from exponents.

        Parameters
        ----------
        exponents : float32 array
            −γ‖x − x'‖². Very small values are raised in place.
        gamma : float
            Factor γ of the kernel.
        out : ndarray
            Receives the kernel values; same shape as `exponents`.
        """
        if self.shift(gamma):
            np.expm1(exponents, out=out)
            return
        if not gamma * self._farthest <= -_MIN_EXPONENT:
            _raise_to(_MIN_EXPONENT, exponents)
        np.exp(exponents, out=out)

    def _computed(self) -> list[Blocks]:
        """Compute the distances of training rows and of test rows to the training rows."""
        return [squared_distances(rows, self._X_train) for rows in (self._X_train, self._X_test)]

    def shift(self, gamma: float) -> float:
        """Return the number that `split` subtracts from the kernel.

        Parameters
        ----------
        gamma : float
            Factor γ of the kernel.

        Returns
        -------
        float
            Number to subtract: 0, or 1 for a shifted kernel.
        """
        return float(self._may_shift and gamma * self._mean_distance < _SMALL_DISTANCE)

    def is_finite(self, gamma: float) -> bool:
        """Return whether all values of a Gram matrix are known to be finite, without reading them.

        Parameters
        ----------
        gamma : float
            Factor γ of the kernel.

        Returns
        -------
        bool
            False if they may not be finite.
        """
        return 0.0 <= gamma <= _LARGEST_FLOAT32 and 2.0 * self._farthest <= _LARGEST_FLOAT32

    def error(self, gamma: float) -> float:
        """Return a bound on the error of the values in `X_train` of `split`.

        Parameters
        ----------
        gamma : float
            Factor γ of the kernel.

        Returns
        -------
        float
            Largest absolute difference from exp(−γ‖x − x'‖²) − shift(γ).
        """
        rounding = _FLOAT32_ERROR
        if self.shift(gamma):
            largest = gamma * self._largest_distance
            rounding = _SHIFTED_ERROR * -math.expm1(-largest) + _ARGUMENT_ERROR * min(largest, 0.37)
        return rounding + (gamma + 1.0) * _SMALLEST_FLOAT32 + gamma * self._distance_error


def open_gram(
    source: DataSource,
    protocol: Protocol,
    outer: int,
    inner: int,
    memory: float = math.inf,
    dtype: DTypeLike = np.float32,
    may_shift: bool = False,
) -> SplitGram:
    """Return the Gram matrices of a split, which this thread keeps until it asks for another split.

    Parameters
    ----------
    source : DataSource
        The prepared dataset.
    protocol : Protocol
        Resampling and preparation.
    outer : int
        Index of the outer split.
    inner : int
        Index of the inner split.
    memory : float
        Memory for the matrices, in bytes; see `SplitGram`. Unlimited by default.
    dtype : float32 or float64
        Type of the Gram matrices. float32 by default.
    may_shift : bool
        Whether 1 may be subtracted from all values. False by default.

    Returns
    -------
    SplitGram
        Squared distances, and Gram matrices by γ.
    """
    wanted = (source, protocol, outer, inner, memory, dtype, may_shift)
    known, gram = getattr(_local, "gram", (None, None))
    if gram is None or known != wanted:
        gram = SplitGram(open_split(source, protocol, outer, inner), memory, dtype, may_shift)
        _local.gram = (wanted, gram)
    return gram


def gram_type(arm: Arm) -> type[np.floating[Any]]:
    """Return the type of Gram matrix that an arm takes.

    Parameters
    ----------
    arm : Arm
        Solver with its fixed parameters and sweep values.

    Returns
    -------
    type
        float32 for classes with a parameter `gram_error`, else float64.
    """
    return np.float32 if takes(arm, "gram_error") else np.float64


def gram_parameters(gram: SplitGram, gamma: float, arm: Arm) -> dict[str, Any]:
    """Return the parameters that declare kernel values in place of features to an estimator.

    Parameters
    ----------
    gram : SplitGram
        The Gram matrices of the split.
    gamma : float
        Factor γ of the kernel.
    arm : Arm
        Solver with its fixed parameters and sweep values.

    Returns
    -------
    dict
        `kernel`, and those of `gram_error` and `gram_shift` that the class takes.
    """
    known = {"gram_error": gram.error, "gram_shift": gram.shift}
    return {"kernel": PRECOMPUTED} | {name: of(gamma) for name, of in known.items() if takes(arm, name)}


def forget_gram() -> None:
    """Release the matrices of this thread, so that the next call of `open_gram` computes them again."""
    _local.gram = (None, None)


def squared_distances(A: Any, B: Any) -> Blocks:
    """Yield blocks of ‖A_i − B_j‖² = ‖A_i‖² − 2 A_i·B_j + ‖B_j‖², summed in float64.

    Two more columns, (‖A_i‖², 1) and (1, ‖B_j‖²), make the whole sum one matrix product. The next block of
    this thread overwrites a block.

    Parameters
    ----------
    A : float64 array or CSR matrix, shape (a, d)
        Rows of the distance matrix.
    B : float64 array or CSR matrix, shape (b, d)
        Columns of the distance matrix. If it is the same object as `A`, the diagonal is 0.

    Yields
    ------
    rows : slice
        Rows of the block.
    block : float32 array, shape (n_rows, b)
        Squared distances.
    """
    left = _with_columns(A, -2.0, _square_lengths(A), np.ones(A.shape[0]))
    right = _with_columns(B, 1.0, np.ones(B.shape[0]), _square_lengths(B)).T
    blocks = list(_blocks_of(A.shape[0], B.shape[0]))
    shape = (blocks[0].stop if blocks else 0, B.shape[0])
    product, distances = _workspace("product", shape, np.float64), _workspace("distances", shape, np.float32)
    for rows in blocks:
        n = rows.stop - rows.start
        sums, block = product[:n], distances[:n]
        if scipy.sparse.issparse(left):
            (left[rows] @ right).toarray(out=sums)
        else:
            np.dot(left[rows], right, out=sums)
        block[:] = sums
        _raise_to(np.float32(0.0), block)  # rounding may make a distance negative
        if B is A:
            np.fill_diagonal(block[:, rows], 0.0)
        yield rows, block


def _raise_to(lower: np.float32, values: NDArray[np.float32]) -> None:
    """Replace values below a bound by the bound, in place.

    NumPy is two to four times faster with a row of equal numbers than with one number, except for short rows.

    Parameters
    ----------
    lower : float32
        Smallest value after the call.
    values : float32 array
        Values to change.
    """
    np.maximum(values, np.full(values.shape[-1], lower), out=values)


def _workspace(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialised array of this thread, which calls with the same name share.

    New memory costs more than filling it.

    Parameters
    ----------
    name : str
        Name of the array.
    shape : tuple of int
        Shape of the result.
    dtype : dtype
        Type of the array, the same in all calls with its name.

    Returns
    -------
    ndarray
        The array. A later call with the same name overwrites it.
    """
    size, kept = math.prod(shape), _local.__dict__.setdefault("workspaces", {})
    if name not in kept or kept[name].size < size:
        kept[name] = np.empty(size, dtype)
    return kept[name][:size].reshape(shape)


def _row_blocks(matrix: NDArray[np.float32]) -> Blocks:
    """Return the blocks of a matrix.

    Parameters
    ----------
    matrix : float32 array, shape (n, m)
        Matrix to divide by rows.

    Returns
    -------
    iterator of (slice, float32 array)
        Rows of each block, and a view of them.
    """
    return ((rows, matrix[rows]) for rows in _blocks_of(*matrix.shape))


def _blocks_of(n: int, width: int) -> Iterator[slice]:
    """Return slices that cover n rows.

    scikit-learn's `gen_batches` takes longer than the matrices of a small split.

    Parameters
    ----------
    n : int
        Number of rows.
    width : int
        Number of columns, which determines the number of rows of a block.

    Returns
    -------
    iterator of slice
        The slices, in order.
    """
    step = max(1, _BLOCK_VALUES // max(1, width))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def memory_for_gram(memory_gb: float | None) -> float:
    """Return the memory that the matrices of a split may take on a worker.

    Parameters
    ----------
    memory_gb : float or None
        Memory of the worker, in GiB; None for `DEFAULT_GB`.

    Returns
    -------
    float
        Bytes.
    """
    return MEMORY_SHARE * (memory_gb or DEFAULT_GB) * 2**30


def _centered(X_train: Any, X_test: Any) -> tuple[Any, Any]:
    """Move the origin to the mean of dense training rows, which reduces cancellation in squared distances.

    Parameters
    ----------
    X_train : float64 array or CSR matrix, shape (n, d)
        Training rows. CSR rows are not moved.
    X_test : float64 array or CSR matrix, shape (m, d)
        Rows that are moved by the same mean.

    Returns
    -------
    X_train, X_test : float64 array or CSR matrix
        Moved rows.
    """
    if scipy.sparse.issparse(X_train):
        return X_train, X_test
    center = X_train.mean(axis=0)
    return X_train - center, X_test - center


def _distance_error(X: Any, square_lengths: NDArray[np.float64]) -> float:
    """Return a bound on the rounding error of squared distances between rows.

    Parameters
    ----------
    X : float64 array or CSR matrix, shape (n, d)
        Features, one row for each sample.
    square_lengths : float64 array, shape (n,)
        Their ‖x‖².

    Returns
    -------
    float
        Largest absolute error in float64.
    """
    terms = int(np.diff(X.indptr).max()) if scipy.sparse.issparse(X) else X.shape[1]
    return float(4 * (terms + 6) * _ROUNDING * square_lengths.max())


def _square_lengths(X: Any) -> NDArray[np.float64]:
    """Return ‖x‖² of each row.

    Parameters
    ----------
    X : float64 array or CSR matrix, shape (n, d)
        Features, one row for each sample.

    Returns
    -------
    float64 array, shape (n,)
        Squared lengths.
    """
    if scipy.sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def _with_columns(X: Any, factor: float, *columns: NDArray[np.float64]) -> Any:
    """Multiply a matrix by a factor and append columns.

    Parameters
    ----------
    X : float64 array or CSR matrix, shape (n, d)
        Features to multiply.
    factor : float
        Factor of the matrix.
    *columns : float64 array, shape (n,)
        Columns to append, without the factor.

    Returns
    -------
    float64 array or CSR matrix, shape (n, d + n_columns)
        A new matrix.
    """
    if scipy.sparse.issparse(X):
        return scipy.sparse.hstack([factor * X, np.column_stack(columns)], format="csr")
    return np.column_stack([factor * X, *columns])


_local = threading.local()


def _matrices(
    kinds: Sequence[tuple[tuple[int, ...], DTypeLike]], in_file: bool = False
) -> list[NDArray[Any]]:
    """Return matrices in the one buffer of this thread, which grows if necessary.

    Matrices of earlier calls are overwritten.

    Parameters
    ----------
    kinds : sequence of (shape, dtype)
        Shape and type of each matrix. The widest type comes first, so that all are aligned.
    in_file : bool
        Whether to map the buffer from a file. False by default.

    Returns
    -------
    list of ndarray
        Uninitialised matrices.
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
    """Map an anonymous file in the folder of prepared datasets, which vanishes with the last reference.

    Parameters
    ----------
    size : int
        Size of the buffer, in bytes.

    Returns
    -------
    uint8 array, shape (size,)
        Array whose memory is the file.
    """
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):  # not on macOS
            os.posix_fallocate(file.fileno(), 0, max(1, size))  # so that a full disk fails here
        return np.asarray(np.memmap(file, dtype=np.uint8, mode="w+", shape=(size,)))
