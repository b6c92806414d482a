"""Frames whose columns are numbers, text or categories, as arrays of numbers and as what describes them.

In such a frame a column of numbers is float64 with NaN where a value is missing, a column of text holds `str`
objects with NaN, and a categorical column has categories of text or of numbers. Names of columns are text.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray


class EncodedFrame(NamedTuple):
    """A frame as arrays.

    Attributes
    ----------
    columns : list of dict
        Of each column `name` and `kind` ("number", "text" or "category"), and of the latter two the values
        that occur, or may occur, as `values`, and whether these are `ordered`.
    numbers : float64 array, shape (n, number of columns of numbers)
    codes : int32 array, shape (n, number of other columns)
        Positions in `values`; -1 where a value is missing.
    """

    columns: list[dict[str, Any]]
    numbers: NDArray[np.float64]
    codes: NDArray[np.int32]


def encode(X: pd.DataFrame) -> EncodedFrame:
    """Return a frame as arrays and what describes them; equal frames give equal ones."""
    columns: list[dict[str, Any]] = []
    numbers, codes = [], []
    for name in X.columns:
        series = X[name]
        if series.dtype == np.float64:
            columns.append({"name": name, "kind": "number"})
            numbers.append(series.to_numpy())
            continue
        if isinstance(series.dtype, pd.CategoricalDtype):
            kind, ordered = "category", bool(series.dtype.ordered)
            positions, values = series.cat.codes.to_numpy(), series.cat.categories
        else:
            kind, ordered = "text", False
            positions, values = pd.factorize(series, sort=True)
        columns.append({"name": name, "kind": kind, "values": values.tolist(), "ordered": ordered})
        codes.append(positions)
    return EncodedFrame(columns, _table(numbers, len(X), np.float64), _table(codes, len(X), np.int32))


def decode(encoded: EncodedFrame) -> pd.DataFrame:
    """Return the frame that `encode` was given.

    Raises
    ------
    ValueError, KeyError, IndexError
        If the parts do not fit together.
    """
    numbers, codes = iter(encoded.numbers.T), iter(encoded.codes.T)
    content: dict[str, Any] = {}
    for column in encoded.columns:
        if column["kind"] == "number":
            content[column["name"]] = next(numbers)
            continue
        positions, values = next(codes), column["values"]
        if column["kind"] == "category":
            content[column["name"]] = category(positions, values, column["ordered"])
        else:
            texts = np.array([*values, np.nan], dtype=object)
            content[column["name"]] = pd.Series(texts[positions], dtype=object)
    return pd.DataFrame(content)


def category(codes: Any, values: list[Any], ordered: bool) -> pd.Categorical:
    """Return a categorical column; texts are `str` objects, whatever pandas' version would make of them."""
    index = pd.Index(values, dtype=object if any(isinstance(value, str) for value in values) else None)
    return pd.Categorical.from_codes(codes, index, ordered=ordered)


def number_columns(X: pd.DataFrame) -> list[str]:
    """Return the names of the columns of numbers."""
    return [name for name in X.columns if X[name].dtype == np.float64]


def _table(columns: list[Any], n: int, dtype: type) -> NDArray[Any]:
    return np.column_stack(columns).astype(dtype) if columns else np.empty((n, 0), dtype)
