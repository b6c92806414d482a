"""A 64-bit hash of every row: rows that are equal have equal ones, whether dense, sparse or in a frame.

The hash of a row is the sum, modulo 2⁶⁴, of what its values and their columns hash to. A value of zero adds
nothing, so that a sparse matrix gives the hashes of the dense one. Among n rows that differ some pair has
equal hashes with a probability of about n² / 2⁶⁵: 3·10⁻⁸ for a million rows.
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
"""Values hashed at a time: they and their hashes stay in the processor's cache."""

STEPS = 1e4 / np.pi
"""Steps of the grid to which scaled values are rounded. Scaled copies differ in their last digits, which the
rounding hides but for values on an edge of the grid; few are, for edges are irrational."""

_NAN = np.uint64(0x7FF8000000000000)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class _Scale(NamedTuple):
    low: NDArray[np.float64]
    factor: NDArray[np.float64]

    def words(self, values: NDArray[np.float64], columns: Any = slice(None)) -> Hashes:
        steps = (values - self.low[columns]) * self.factor[columns]
        return _bits(np.rint(steps) + 0.0)


def row_hashes(X: Features, ordered: bool = True) -> Hashes:
    """Return a hash of each row, shape (n,).

    Parameters
    ----------
    X : array, CSR matrix or frame, shape (n, d)
    ordered : bool
        Whether it matters in which column a value is.
    """
    return _hashes(X, _keys(X.shape[1], ordered), None)


def scaled_row_hashes(X: Features, ordered: bool = True) -> Hashes:
    """Return a hash of each row after scaling every column of numbers to [0, 1] and rounding.

    Parameters
    ----------
    X, ordered
        As of `row_hashes`.
    """
    return _hashes(X, _keys(X.shape[1], ordered), _scale(X))


def mixed(words: Hashes) -> Hashes:
    """Return the words with all bits mixed, in place, as splitmix64 ends."""
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def _keys(d: int, ordered: bool) -> Hashes:
    return mixed(np.arange(1, d + 1, dtype=np.uint64) * _GOLDEN) if ordered else np.zeros(d, np.uint64)


def _hashes(X: Features, keys: Hashes, scale: _Scale | None) -> Hashes:
    if scipy.sparse.issparse(X):
        return _of_sparse(X, keys, scale)
    hashes = np.empty(X.shape[0], dtype=np.uint64)
    for rows, words in _pieces(X, scale):
        terms = mixed(words + keys)
        terms[words == 0] = 0
        hashes[rows] = terms.sum(axis=1)
    return hashes


def _pieces(X: Any, scale: _Scale | None) -> Iterator[tuple[slice, Hashes]]:
    """Yield some rows at a time, and a word for each of their values."""
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
    if column.dtype == np.float64:
        values = column.to_numpy()
        return _bits(values) if scale is None else scale.words(values, at)
    codes, known = pd.factorize(column)
    words = pd.util.hash_array(np.asarray(known, dtype=object), categorize=False)
    return np.append(words, _NAN)[codes]  # -1, the code of what is missing, is the last one


def _bits(values: NDArray[np.float64]) -> Hashes:
    """Return the bits of numbers, of which one stands for zero and one for NaN."""
    bits = (values + 0.0).view(np.uint64)
    bits[np.isnan(values)] = _NAN
    return bits


def _of_sparse(X: Any, keys: Hashes, scale: _Scale | None) -> Hashes:
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
