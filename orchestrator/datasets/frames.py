"""Conversion between arrays and frames whose columns are numbers, text or categories.

In such a frame, a column of numbers is float64 with NaN for missing values. A column of text contains `str`
objects and NaN. A categorical column has categories of text or of numbers. Column names are text.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray


class EncodedFrame(NamedTuple):
    """Frame as arrays.

    Attributes
    ----------
    columns : list of dict
        Description of each column: `name` and `kind` ("number", "text" or "category"). Columns of text and
        categories also have `values`, the different values, and `ordered`.
    numbers : float64 array, shape (n, number of numeric columns)
        Values of the numeric columns.
    codes : int32 array, shape (n, number of other columns)
        Indices into `values`; -1 for a missing value.
    """

    columns: list[dict[str, Any]]
    numbers: NDArray[np.float64]
    codes: NDArray[np.int32]


def encode(X: pd.DataFrame) -> EncodedFrame:
    """Return a frame as arrays and column descriptions; equal frames give equal results.

    Parameters
    ----------
    X : DataFrame, shape (n, d)
        Frame as described above.
    """
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
    """Return the frame from which `encode` made arrays.

    Parameters
    ----------
    encoded : EncodedFrame
        Arrays and column descriptions.

    Raises
    ------
    ValueError, KeyError, IndexError
        If the arrays and descriptions are inconsistent.
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
    """Return a categorical column; texts are `str` objects in every version of pandas.

    Parameters
    ----------
    codes : int array, shape (n,)
        Indices into `values`; -1 for a missing value.
    values : list
        Categories.
    ordered : bool
        Whether the categories have an order.
    """
    index = pd.Index(values, dtype=object if any(isinstance(value, str) for value in values) else None)
    return pd.Categorical.from_codes(codes, index, ordered=ordered)


def number_columns(X: pd.DataFrame) -> list[str]:
    """Return the names of the numeric columns.

    Parameters
    ----------
    X : DataFrame, shape (n, d)
        Frame as described above.
    """
    return [name for name in X.columns if X[name].dtype == np.float64]


def has_durations(X: Any) -> bool:
    """Return whether features are a frame with a column of durations, which datasets hold as seconds.

    Parameters
    ----------
    X : object
        Features as the caller passed them.
    """
    return isinstance(X, pd.DataFrame) and any(dtype.kind == "m" for dtype in X.dtypes)


def durations_as_seconds(X: Any) -> Any:
    """Return a frame whose durations are seconds, as in the dataset; other features unchanged.

    Parameters
    ----------
    X : object
        Features.
    """
    if not has_durations(X):
        return X
    seconds = {name: column.dt.total_seconds() for name, column in X.items() if column.dtype.kind == "m"}
    return X.assign(**seconds)


def _table(columns: list[Any], n: int, dtype: type) -> NDArray[Any]:
    """Return columns as an array of shape (n, number of columns).

    Parameters
    ----------
    columns : list of array, shape (n,)
        Columns; may be empty.
    n : int
        Number of rows.
    dtype : type
        Type of the values.
    """
    return np.column_stack(columns).astype(dtype) if columns else np.empty((n, 0), dtype)
