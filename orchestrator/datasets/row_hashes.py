"""64-bit hashes of rows: equal rows have equal hashes in dense arrays, sparse matrices and frames.

The hash of a row is the sum of the hashes of its values and their columns, modulo 2⁶⁴. A zero adds nothing,
so a sparse matrix has the same hashes as the dense array. Among n different rows, some pair has equal hashes
with a probability of about n² / 2⁶⁵: 3·10⁻⁸ for a million rows.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import Features

Hashes = NDArray[np.uint64]

PIECE = 1 << 17
"""Number of values hashed at a time, so that they and their hashes stay in the processor's cache."""

STEPS = 1e4 / np.pi
"""Number of grid steps per unit to which scaled values are rounded. Scaled copies differ in their last
digits. Rounding removes the difference, except at boundaries of the grid, which are irrational numbers."""

_NAN = np.uint64(0x7FF8000000000000)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class _Scale(NamedTuple):
    """Linear scaling of columns.

    Attributes
    ----------
    low : float64 array, shape (d,)
        Smallest value of each column.
    factor : float64 array, shape (d,)
        Grid steps per unit of each column.
    """

    low: NDArray[np.float64]
    factor: NDArray[np.float64]

    def words(self, values: NDArray[np.float64], columns: Any = slice(None)) -> Hashes:
        """Return scaled and rounded values as 64-bit words.

        Parameters
        ----------
        values : float64 array
            Values to scale.
        columns : index
            Columns of the values; all by default.
        """
        steps = (values - self.low[columns]) * self.factor[columns]
        return _bits(np.rint(steps) + 0.0)


def row_hashes(X: Features, ordered: bool = True) -> Hashes:
    """Return the hash of each row, shape (n,).

    Parameters
    ----------
    X : array, CSR matrix or frame, shape (n, d)
        Features, one row for each sample.
    ordered : bool
        Whether the hash depends on the order of columns; true by default.
    """
    return _hashes(X, _keys(X.shape[1], ordered), None)


def scaled_row_hashes(X: Features, ordered: bool = True) -> Hashes:
    """Return the hash of each row after scaling numeric columns to [0, 1] and rounding, shape (n,).

    Parameters
    ----------
    X : array, CSR matrix or frame, shape (n, d)
        Features, one row for each sample.
    ordered : bool
        Whether the hash depends on the order of columns; true by default.
    """
    return _hashes(X, _keys(X.shape[1], ordered), _scale(X))


def mixed(words: Hashes) -> Hashes:
    """Mix the bits of words in place with the last steps of splitmix64, and return the words.

    Parameters
    ----------
    words : uint64 array
        Words to mix.
    """
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def _keys(d: int, ordered: bool) -> Hashes:
    """Return a word for each column; equal words if the order of columns does not matter.

    Parameters
    ----------
    d : int
        Number of columns.
    ordered : bool
        Whether the hash depends on the order of columns.
    """
    return mixed(np.arange(1, d + 1, dtype=np.uint64) * _GOLDEN) if ordered else np.zeros(d, np.uint64)


def _hashes(X: Features, keys: Hashes, scale: _Scale | None) -> Hashes:
    """Return the hash of each row, shape (n,).

    Parameters
    ----------
    X : array, CSR matrix or frame, shape (n, d)
        Features, one row for each sample.
    keys : uint64 array, shape (d,)
        Word of each column.
    scale : _Scale or None
        Scaling of the values; None if they are not scaled.
    """
    if scipy.sparse.issparse(X):
        return _of_sparse(X, keys, scale)
    hashes = np.empty(X.shape[0], dtype=np.uint64)
    for rows, words in _pieces(X, scale):
        terms = mixed(words + keys)
        terms[words == 0] = 0
        hashes[rows] = terms.sum(axis=1)
    return hashes


def _pieces(X: Any, scale: _Scale | None) -> Iterator[tuple[slice, Hashes]]:
    """Yield the words of some rows at a time.

    Parameters
    ----------
    X : array or frame, shape (n, d)
        Features, one row for each sample.
    scale : _Scale or None
        Scaling of the values; None if they are not scaled.

    Yields
    ------
    tuple of (slice, uint64 array)
        Rows, and a word for each of their values.
    """
    step = max(1, PIECE // X.shape[1])
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        if not isinstance(X, pd.DataFrame):
            yield rows, _bits(X[rows]) if scale is None else scale.words(X[rows])
            continue
        columns = (X.iloc[rows, at] for at in range(X.shape[1]))
        words = [_words(column, at, scale) for at, column in enumerate(columns)]
        yield rows, np.column_stack(words)


def _words(column: pd.Series, at: int, scale: _Scale | None) -> Hashes:
    """Return a word for each value of a frame's column.

    Parameters
    ----------
    column : Series, shape (n,)
        Numbers, text or categories of one feature.
    at : int
        Index of the column.
    scale : _Scale or None
        Scaling of numeric values; None if they are not scaled.
    """
    if column.dtype == np.float64:
        values = column.to_numpy()
        return _bits(values) if scale is None else scale.words(values, at)
    codes, known = pd.factorize(column)
    words = pd.util.hash_array(np.asarray(known, dtype=object), categorize=False)
    return np.append(words, _NAN)[codes]  # the code of a missing value, -1, selects the last word


def _bits(values: NDArray[np.float64]) -> Hashes:
    """Return the bits of numbers, with one bit pattern each for zero and NaN.

    Parameters
    ----------
    values : float64 array
        Numbers, among which may be NaN and both zeros.
    """
    bits = (values + 0.0).view(np.uint64)
    bits[np.isnan(values)] = _NAN
    return bits


def _of_sparse(X: Any, keys: Hashes, scale: _Scale | None) -> Hashes:
    """Return the hash of each row of a sparse matrix, shape (n,).

    Parameters
    ----------
    X : CSR matrix, shape (n, d)
        Features with their non-zero values.
    keys : uint64 array, shape (d,)
        Word of each column.
    scale : _Scale or None
        Scaling of the values; None if they are not scaled.
    """
    n, d = X.shape
    zeros = np.zeros(d, np.uint64) if scale is None else scale.words(np.zeros(d))
    at_zero = mixed(zeros + keys)
    at_zero[zeros == 0] = 0
    hashes = np.full(n, at_zero.sum(), dtype=np.uint64)
    step = max(1, PIECE * n // max(X.nnz, 1))
    for start in range(0, n, step):
        ends = X.indptr[start : start + step + 1]
        values, columns = X.data[ends[0] : ends[-1]], X.indices[ends[0] : ends[-1]]
        words = _bits(values) if scale is None else scale.words(values, columns)
        terms = mixed(words + keys[columns])
        terms[words == 0] = 0
        sums = np.append(np.uint64(0), np.cumsum(terms - at_zero[columns], dtype=np.uint64))
        hashes[start : start + step] += np.diff(sums[ends - ends[0]])
    return hashes


def _scale(X: Features) -> _Scale:
    """Return the scaling of numeric columns to [0, 1] times `STEPS`.

    Parameters
    ----------
    X : array, CSR matrix or frame, shape (n, d)
        Features, one row for each sample.
    """
    with np.errstate(all="ignore"):
        if scipy.sparse.issparse(X):
            low, high = (bound(axis=0).toarray().ravel() for bound in (X.min, X.max))
        elif isinstance(X, pd.DataFrame):
            numbers = [dtype == np.float64 for dtype in X.dtypes]
            low, high = np.zeros((2, X.shape[1]))
            low[numbers], high[numbers] = X.loc[:, numbers].min(), X.loc[:, numbers].max()
        else:
            low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        factor = np.where(high > low, STEPS / (high - low), 0.0)
    return _Scale(low, factor)
