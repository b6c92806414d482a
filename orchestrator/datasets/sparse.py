"""Conversion of sparse matrices to CSR, with a check of their indices before compiled code uses them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import DatasetError, Features
from orchestrator.datasets.memory import require_memory

_MAX_INT32 = np.iinfo(np.int32).max


def to_csr(X: Any) -> Features:
    """Return a copy of a sparse matrix as a CSR matrix in canonical format with int32 indices.

    Parameters
    ----------
    X : sparse matrix or array, shape (n, d)
        Matrix in any format.

    Raises
    ------
    DatasetError
        If indices are outside the matrix, its parts are inconsistent, or it is too large.
    """
    if len(X.shape) != 2:
        raise DatasetError(f"expected X with two dimensions (rows, features), found shape {X.shape}")
    n, d = map(int, X.shape)
    if np.iscomplexobj(X):
        raise TypeError("complex numbers have no order")
    if max(n, d) > _MAX_INT32:
        raise DatasetError(f"expected at most 2³¹ - 1 rows and features, found {n:,} × {d:,}; use fewer")
    _require_valid(X, n, d)
    nnz = int(X.nnz)
    # Two copies of values and indices, two of the row pointers, and the scaling parameters of each feature.
    size = f"{n:,} rows × {d:,} features with {nnz:,} non-zero values"
    require_memory(24.0 * nnz + 8.0 * n + 17.0 * d, size)
    csr = scipy.sparse.csr_matrix(X, dtype=np.float64, copy=True)
    _require_valid(csr, n, d)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    if csr.nnz > _MAX_INT32:
        raise DatasetError(f"expected at most 2³¹ - 1 non-zero values, found {csr.nnz}; use fewer rows")
    csr.indices = csr.indices.astype(np.int32, copy=False)
    csr.indptr = csr.indptr.astype(np.int32, copy=False)
    return csr


def _require_valid(X: Any, n: int, d: int) -> None:
    """Check the parts of a matrix that scipy uses without a check.

    Parameters
    ----------
    X : sparse matrix or array, shape (n, d)
        Matrix in any format.
    n, d : int
        Numbers of rows and columns.
    """
    if X.format in ("csr", "csc", "bsr"):
        rows, columns = X.blocksize if X.format == "bsr" else (1, 1)
        major, minor = (d, n) if X.format == "csc" else (n // rows, d // columns)
        _require_compressed(X.data, X.indices, X.indptr, major, minor)
    elif X.format == "coo":
        _require_equal_lengths({"row": X.row, "col": X.col, "data": X.data})
        _require_indices("row", X.row, n)
        _require_indices("col", X.col, d)
    elif X.format == "lil":
        for row, values in zip(X.rows, X.data, strict=True):
            _require_equal_lengths({"rows": row, "data": values})
            _require_indices("rows", np.asarray(row, dtype=None if row else np.int64), d)
    elif X.format == "dia":
        _require_whole("offsets", X.offsets)
        _require_equal_lengths({"offsets": X.offsets, "data": X.data})


def _require_compressed(data: Any, indices: Any, indptr: Any, major: int, minor: int) -> None:
    """Check a matrix in compressed format.

    Parameters
    ----------
    data, indices, indptr : arrays
        Parts of the matrix.
    major : int
        Number of compressed rows or columns.
    minor : int
        Upper limit of `indices`, exclusive.
    """
    _require_whole("indptr", indptr)
    if len(indptr) != major + 1:
        raise _broken(f"indptr with {major + 1} entries, found {len(indptr)}")
    _require_equal_lengths({"indices": indices, "data": data})
    if indptr[0] != 0 or indptr[-1] > len(indices):
        raise _broken(
            f"indptr from 0 to the number of values, {len(indices)}; found {indptr[0]} to {indptr[-1]}"
        )
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if len(falls):
        at = int(falls[0])
        raise _broken(f"an ascending indptr, found {indptr[at + 1]} after {indptr[at]} at position {at + 1}")
    _require_indices("indices", indices[: indptr[-1]], minor)  # entries after the last are unused


def _require_indices(name: str, indices: NDArray[Any], size: int) -> None:
    """Raise a DatasetError unless all values of an array are indices in range.

    Parameters
    ----------
    name : str
        Name of the array, for the message.
    indices : array
        Array to check. Its values must be integers from 0 to `size` − 1.
    size : int
        Upper limit, exclusive.
    """
    _require_whole(name, indices)
    bad = np.flatnonzero((indices < 0) | (indices >= size))
    if len(bad):
        at = int(bad[0])
        raise _broken(f"{name} from 0 to {size - 1}, found {indices[at]} at position {at}")


def _require_whole(name: str, values: Any) -> None:
    """Raise a DatasetError if an object is not a one-dimensional array of integers.

    Parameters
    ----------
    name : str
        Name of the array, for the message.
    values : object
        Object to check.
    """
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "iu":
        found = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else type(values)
        raise _broken(f"{name} to be an array of whole numbers with one dimension, found {found}")


def _require_equal_lengths(parts: dict[str, Sequence[Any]]) -> None:
    """Raise a DatasetError if the parts of a matrix have different lengths.

    Parameters
    ----------
    parts : dict of str to sequence
        Parts, by name.
    """
    lengths = {name: len(part) for name, part in parts.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{number} of {name}" for name, number in lengths.items())
        raise _broken(f"as many {' as '.join(parts)}, found {found}")


def _broken(expected: str) -> DatasetError:
    """Return the error for an inconsistent matrix.

    Parameters
    ----------
    expected : str
        What was expected, and what was found.
    """
    return DatasetError(f"X is a broken sparse matrix: expected {expected}; rebuild it in the loader")
