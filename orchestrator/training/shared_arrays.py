"""Arrays that many trainings share: read-only for good, handed out as fresh views, checked for damage.

Of a frame every training gets a copy.
"""

import copy
import zlib
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

_SPARSE_PARTS = ("data", "indices", "indptr")
_BLOCK = 512  # words


def read_only(X: Any) -> Any:
    """Return an array, or a CSR matrix, with the same values in memory that Python code cannot change.

    The memory belongs to a `bytes` object. So neither `X.flags.writeable = True` nor a way through `X.base`
    or a memoryview makes it writeable, as they would for an array that owns its memory.
    """
    if isinstance(X, pd.DataFrame):
        return X.copy()
    if scipy.sparse.issparse(X):
        return _with_parts(X, [read_only(getattr(X, name)) for name in _SPARSE_PARTS])
    return read_only_view(np.ndarray(X.shape, X.dtype, buffer=X.tobytes()))


def read_only_view(X: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array that its owner goes on writing to, without a copy."""
    # As `buffer` of an array, the memoryview would be replaced by what it views, which may be writeable.
    return np.asarray(X.data.toreadonly())


def fresh_view(X: Any) -> Any:
    """Return another object over the memory of a read-only one: its shape and parts can be set without harm.

    `X.view()` would not do, for its `base` is the shared object.
    """
    if isinstance(X, pd.DataFrame):
        return private_copy(X)
    if scipy.sparse.issparse(X):
        return _with_parts(X, [fresh_view(getattr(X, name)) for name in _SPARSE_PARTS])
    return np.asarray(X.base)


def private_copy(X: Any) -> Any:
    """Return a copy that can be written to."""
    if not isinstance(X, pd.DataFrame):
        return X.copy()
    # pandas shares values between copies until one is written to, but not by all ways to write to them.
    columns = {name: X[name].array.copy() for name in X.columns}
    return pd.DataFrame(
        {name: pd.Series(values, X.index, values.dtype) for name, values in columns.items()}, X.index
    )


def checksum(X: Any) -> tuple[Any, ...]:
    """Return what differs, but for contrived changes, once any value of an array or a CSR matrix does.

    Sums along both axes of a table of words run at the speed of memory, and find values that change
    places, which a plain sum would not.
    """
    if isinstance(X, pd.DataFrame):
        return ()  # no training can reach it
    if scipy.sparse.issparse(X):
        return tuple(checksum(getattr(X, name)) for name in _SPARSE_PARTS)
    if X.nbytes < 8 * _BLOCK:
        return (zlib.crc32(X.data),)
    content = np.ndarray(X.nbytes, np.uint8, buffer=X)
    words = content[: X.nbytes // (8 * _BLOCK) * 8 * _BLOCK].view(np.uint64).reshape(-1, _BLOCK)
    sums = [words.sum(axis=axis, dtype=np.uint64).tobytes() for axis in (0, 1)]
    return (*sums, zlib.crc32(content[words.nbytes :].data))


def _with_parts(X: Any, parts: list[NDArray[Any]]) -> Any:
    shared = copy.copy(X)  # keeps what is known of the order of its entries
    for name, part in zip(_SPARSE_PARTS, parts, strict=True):
        setattr(shared, name, part)
    return shared
