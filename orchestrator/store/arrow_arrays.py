"""Convert between NumPy arrays and Arrow arrays without pandas.

pyarrow's own `array`, `scalar` and `to_numpy` import pandas first.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def encoded(column: pa.ChunkedArray) -> tuple[NDArray[Any], pa.Array]:
    """Encode a column as integers: equal values get equal codes.

    Parameters
    ----------
    column : ChunkedArray
        Column of any type.

    Returns
    -------
    codes : int array
        Code of each row.
    values : Array
        The value of each code.
    """
    encoded = column.combine_chunks().dictionary_encode()
    return np.from_dlpack(encoded.indices), encoded.dictionary


def arrow_array(numbers: NDArray[Any]) -> pa.Array:
    """Return numbers as an Arrow array.

    Parameters
    ----------
    numbers : ndarray
        One-dimensional array of a numeric type.

    Returns
    -------
    Array
        The same numbers.
    """
    content = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, content])


def text_scalar(text: str) -> pa.StringScalar:
    """Return a text as an Arrow scalar.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    StringScalar
        The same text.
    """
    content = text.encode()
    ends = pa.py_buffer(np.array([0, len(content)], dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(content)])[0]


def floats(column: pa.ChunkedArray, null: float) -> NDArray[Any]:
    """Return a column of floats as an array, with a number in place of gaps.

    Parameters
    ----------
    column : ChunkedArray
        Floats, among which may be nulls.
    null : float
        Value for a gap.

    Returns
    -------
    float64 array
        Values of the column, with `null` in place of gaps.
    """
    filled = pc.fill_null(column.combine_chunks(), arrow_array(np.array([null]))[0])
    return np.from_dlpack(filled)
