"""The Gaussian Gram matrices of a split, shared by every training on it.

One matrix product gives all squared distances of a split, one exponential for each γ its Gram matrix.
Solvers take it by scikit-learn's own convention, `kernel="precomputed"`. Matrices are float32, which takes
half the memory; by how much their entries are off is told to solvers that have a parameter `gram_error`, so
that what they certify holds for the kernel of the features. Refits do not share: they get the features.
"""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.sources import DataSource, Split, open_split
from orchestrator.study import Protocol

DEFAULT_GB = 8.0
"""A worker's memory where none is configured, for deciding what to share; the same on every host."""

PRECOMPUTED = "precomputed"
"""What scikit-learn's estimators call a kernel whose values are given in place of features."""

_ROWS = 256  # of a block that stays in the cache
_ROUNDING = 2.0**-53
# NumPy's float32 exp is off by up to 2.52 units in the last place, which are 2⁻²⁴ below 1. Its argument −x is
# off by three roundings, of ‖x − x'‖², γ and their product: by 3 x 2⁻²⁴, and e⁻ˣ x ≤ 0.37.
_FLOAT32_ERROR = (2.52 + 1.11) * 2.0**-24


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
        X_train, X_test = _centered(split.X_train[order], split.X_test)
        self._distance_error = _distance_error(X_train)
        n, m = X_train.shape[0], split.X_test.shape[0]
        shapes = ((n, n), (m, n), (n, n), (m, n))
        self._distances_train, self._distances_test, self._train, self._test = _matrices(shapes)
        squared_distances(X_train, X_train, self._distances_train)
        squared_distances(X_test, X_train, self._distances_test)
        np.fill_diagonal(self._distances_train, 0.0)
        self._y_train, self._y_test = split.y_train[order], split.y_test

    def split(self, gamma: float) -> Split:
        """Return the split with exp(−γ‖x − x'‖²) in place of features, float32.

        `X_train` (n_train, n_train) and `X_test` (n_test, n_train) are overwritten by the next call:
        touching fresh memory costs more than filling it.
        """
        _exponential(self._distances_train, gamma, self._train)
        _exponential(self._distances_test, gamma, self._test)
        return Split(self._train, self._y_train, self._test, self._y_test)

    def error(self, gamma: float) -> float:
        """Return a bound on how far a value of `split(gamma).X_train` is from exp(−γ‖x − x'‖²)."""
        return _FLOAT32_ERROR + gamma * self._distance_error


def open_gram(source: DataSource, protocol: Protocol, outer: int, inner: int) -> SplitGram:
    """Return the distances of a split, kept by this thread until it asks for another split's."""
    wanted = (source, protocol, outer, inner)
    held, gram = getattr(_local, "gram", (None, None))
    if gram is None or held != wanted:
        gram = SplitGram(open_split(source, protocol, outer, inner))
        _local.gram = (wanted, gram)
    return gram


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


def _centered(X_train: Any, X_test: Any) -> tuple[Any, Any]:
    """Move the origin to the mean of dense training rows, so that ‖x‖² + ‖x'‖² − 2 x·x' cancels little."""
    if scipy.sparse.issparse(X_train):
        return X_train, X_test
    center = X_train.mean(axis=0)
    return X_train - center, X_test - center


def _distance_error(X: Any) -> float:
    """Bound the rounding of squared distances between rows in float64."""
    terms = int(np.diff(X.indptr).max()) if scipy.sparse.issparse(X) else X.shape[1]
    return float(4 * (terms + 6) * _ROUNDING * _square_lengths(X).max())


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
