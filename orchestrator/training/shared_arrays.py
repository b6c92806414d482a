"""Share the features of a split between trainings, in memory that no training can change unnoticed.

An array is read-only. Each training gets a new view of it, and a checksum detects writing through a pointer.
A data frame is copied for each training.
"""

import copy
import zlib
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

_SPARSE_PARTS = ("data", "indices", "indptr")
"""Arrays of a CSR matrix."""

_BLOCK = 512
"""Length of a row of the table whose sums are the checksum, in words of 8 bytes."""


def read_only(X: Any) -> Any:
    """Return an array or CSR matrix with the same values in memory that Python code cannot change.

    The memory belongs to a `bytes` object. So `X.flags.writeable = True`, `X.base` and memoryviews do not
    make it writeable, as they do for an array that owns its memory.

    Parameters
    ----------
    X : ndarray, CSR matrix or DataFrame
        Values to copy.

    Returns
    -------
    ndarray, CSR matrix or DataFrame
        A read-only copy; a plain copy of a data frame.
    """
    if isinstance(X, pd.DataFrame):
        return X.copy()
    if scipy.sparse.issparse(X):
        return _with_parts(X, [read_only(getattr(X, name)) for name in _SPARSE_PARTS])
    return read_only_view(np.ndarray(X.shape, X.dtype, buffer=X.tobytes()))


def read_only_view(X: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array, to which its owner can still write.

    Parameters
    ----------
    X : ndarray
        Array to protect.

    Returns
    -------
    ndarray
        A view, without a copy.
    """
    # `np.ndarray(buffer=...)` would replace the memoryview by its base, which may be writeable.
    return np.asarray(X.data.toreadonly())


def fresh_view(X: Any) -> Any:
    """Return a new object over the memory of a read-only one.

    A training can set its shape and parts without an effect on other trainings. `X.view()` does not suffice,
    because its `base` is the shared object.

    Parameters
    ----------
    X : ndarray, CSR matrix or DataFrame
        Result of `read_only` or `read_only_view`.

    Returns
    -------
    ndarray, CSR matrix or DataFrame
        A view; a copy of a data frame.
    """
    if isinstance(X, pd.DataFrame):
        return private_copy(X)
    if scipy.sparse.issparse(X):
        return _with_parts(X, [fresh_view(getattr(X, name)) for name in _SPARSE_PARTS])
    return np.asarray(X.base)


def private_copy(X: Any) -> Any:
    """Return a copy that can be written to.

    Parameters
    ----------
    X : ndarray, CSR matrix or DataFrame
        Values to copy.

    Returns
    -------
    ndarray, CSR matrix or DataFrame
        Copy that shares no memory with the original.
    """
    if not isinstance(X, pd.DataFrame):
        return X.copy()
    # pandas copies are lazy, and some ways of writing reach the shared values.
    columns = {name: X[name].array.copy() for name in X.columns}
    return pd.DataFrame(
        {name: pd.Series(values, X.index, values.dtype) for name, values in columns.items()}, X.index
    )


def checksum(X: Any) -> tuple[Any, ...]:
    """Return a checksum that changes with any value of an array or CSR matrix, except for contrived changes.

    Sums along both axes of a table of words run at the speed of memory. They also detect values that were
    exchanged, which a plain sum does not.

    Parameters
    ----------
    X : ndarray, CSR matrix or DataFrame
        Features whose change is to be detected.

    Returns
    -------
    tuple
        The checksum; empty for a data frame, because each training has a copy of it.
    """
    if isinstance(X, pd.DataFrame):
        return ()
    if scipy.sparse.issparse(X):
        return tuple(checksum(getattr(X, name)) for name in _SPARSE_PARTS)
    if X.nbytes < 8 * _BLOCK:
        return (zlib.crc32(X.data),)
    content = np.ndarray(X.nbytes, np.uint8, buffer=X)
    words = content[: X.nbytes // (8 * _BLOCK) * 8 * _BLOCK].view(np.uint64).reshape(-1, _BLOCK)
    sums = [words.sum(axis=axis, dtype=np.uint64).tobytes() for axis in (0, 1)]
    return (*sums, zlib.crc32(content[words.nbytes :].data))


def bytes_of(X: Any) -> int:
    """Return the memory of features, in bytes.

    Parameters
    ----------
    X : ndarray, CSR matrix or DataFrame
        Features whose size is wanted.
    """
    if isinstance(X, pd.DataFrame):
        return int(X.memory_usage(index=False).sum())
    parts = [getattr(X, name) for name in _SPARSE_PARTS] if scipy.sparse.issparse(X) else [X]
    return sum(part.nbytes for part in parts)


def _with_parts(X: Any, parts: list[NDArray[Any]]) -> Any:
    """Return a CSR matrix with other arrays.

    Parameters
    ----------
    X : CSR matrix
        Its shape, and the known order of its entries, are kept.
    parts : list of ndarray
        `data`, `indices` and `indptr`.

    Returns
    -------
    CSR matrix
        A new object.
    """
    shared = copy.copy(X)
    for name, part in zip(_SPARSE_PARTS, parts, strict=True):
        setattr(shared, name, part)
    return shared
