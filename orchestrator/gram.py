"""The Gaussian Gram matrices of a split, shared by every training on it.

One matrix product gives all squared distances of a split, one exponential for each γ its Gram matrix.
Solvers take it by scikit-learn's own convention, `kernel="precomputed"`. Matrices are float32: their
entries are off by less than 1e-6, a thousandth of the solvers' tolerance, and take half the memory.
"""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.shared_arrays import read_only_view
from orchestrator.sources import DataSource, Split, open_split
from orchestrator.study import Protocol

DEFAULT_GB = 8.0
"""A worker's memory where none is configured, for deciding what to share; the same on every host."""

PRECOMPUTED = "precomputed"
"""What scikit-learn's estimators call a kernel whose values are given in place of features."""

_ROWS = 256  # of a block that stays in the cache


class SplitGram:
    """Squared distances of a split, and its Gram matrices by γ.

    Training rows are sorted by class, so that the blocks of pairs of classes lie together.

    Parameters
    ----------
    split : Split
        Of features.
    """

    def __init__(self, split: Split):
        order = np.argsort(split.y_train, kind="stable")
        X_train = split.X_train[order]
        n, m = X_train.shape[0], split.X_test.shape[0]
        shapes = ((n, n), (m, n), (n, n), (m, n))
        self._distances_train, self._distances_test, self._train, self._test = _matrices(shapes)
        squared_distances(X_train, X_train, self._distances_train)
        squared_distances(split.X_test, X_train, self._distances_test)
        np.fill_diagonal(self._distances_train, 0.0)
        self._y_train, self._y_test = split.y_train[order], split.y_test

    def split(self, gamma: float) -> Split:
        """Return the split with exp(−γ‖x − x'‖²) in place of features, float32.

        `X_train` (n_train, n_train) and `X_test` (n_test, n_train) are overwritten by the next call:
        touching fresh memory costs more than filling it. The split is read-only.
        """
        _exponential(self._distances_train, gamma, self._train)
        _exponential(self._distances_test, gamma, self._test)
        return Split(*map(read_only_view, (self._train, self._y_train, self._test, self._y_test)))


def open_gram(source: DataSource, protocol: Protocol, outer: int, inner: int) -> SplitGram:
    """Return the distances of a split, kept by this thread until it asks for another split's."""
    wanted = (source, protocol, outer, inner)
    held, gram = getattr(_local, "gram", (None, None))
    if gram is None or held != wanted:
        gram = SplitGram(open_split(source, protocol, outer, inner))
        _local.gram = (wanted, gram)
    return gram


def forget_gram() -> None:
    """Let go of this thread's distances; the next to be opened are computed."""
    _local.gram = (None, None)


def gram_bytes(n: int, outer: int) -> int:
    """Return the memory that `SplitGram` takes for the largest split of a dataset, the refit's."""
    n_test = -(-n // outer)
    return 2 * 4 * (n - n_test) * n


def squared_distances(A: Any, B: Any, out: NDArray[np.float32]) -> None:
    """Fill `out` (a, b) with ‖A_i − B_j‖² = ‖A_i‖² − 2 A_i·B_j + ‖B_j‖², summed in float64.

    Two more columns, (‖A_i‖², 1) and (1, ‖B_j‖²), make the whole sum one matrix product.
    """
    left = _with_columns(A, -2.0, _square_lengths(A), np.ones(A.shape[0]))
    right = _with_columns(B, 1.0, np.ones(B.shape[0]), _square_lengths(B)).T
    for start in range(0, A.shape[0], _ROWS):
        rows = slice(start, start + _ROWS)
        product = left[rows] @ right
        if scipy.sparse.issparse(product):
            product = product.toarray()
        np.maximum(product, 0.0, out=out[rows], casting="same_kind")  # rounding may leave less than nothing


def _square_lengths(X: Any) -> NDArray[np.float64]:
    if scipy.sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def _with_columns(X: Any, factor: float, *columns: NDArray[np.float64]) -> Any:
    if scipy.sparse.issparse(X):
        return scipy.sparse.hstack([factor * X, np.column_stack(columns)], format="csr")
    return np.column_stack([factor * X, *columns])


def _exponential(distances: NDArray[np.float32], gamma: float, out: NDArray[np.float32]) -> None:
    for start in range(0, len(distances), _ROWS):
        rows = slice(start, start + _ROWS)
        np.multiply(distances[rows], np.float32(-gamma), out=out[rows])
        np.exp(out[rows], out=out[rows])


_local = threading.local()


def _matrices(shapes: Sequence[tuple[int, int]]) -> list[NDArray[np.float32]]:
    """Return matrices in this thread's one buffer, which grows if need be; who held it before loses it."""
    _local.gram = (None, None)
    ends = np.cumsum([rows * columns for rows, columns in shapes])
    buffer = getattr(_local, "buffer", None)
    if buffer is None or len(buffer) < ends[-1]:
        _local.buffer = buffer = None  # free the old before taking the new
        _local.buffer = buffer = np.empty(ends[-1], dtype=np.float32)
    pieces = np.split(buffer[: ends[-1]], ends[:-1])
    return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
