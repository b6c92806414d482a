"""Values that look like numbers and are not: dates, durations, complex numbers, records."""

import datetime

import numpy as np
from scipy import sparse

from solvers.common.plain import plain

# What to do about a type, by the kind of its dtype.
_REMEDIES = {
    "M": "Convert dates to numbers first, such as the days since the first one",
    "m": "Convert durations to numbers first, such as seconds",
    "c": "Complex data not supported: pass real and imaginary parts as two features",
    "V": "Pass its fields as columns of an array of numbers, as "
    "numpy.lib.recfunctions.structured_to_unstructured does",
}
_KINDS_OF_OBJECTS = (
    ((np.datetime64, datetime.date, datetime.time), "M"),
    ((np.timedelta64, datetime.timedelta), "m"),
    ((complex, np.complexfloating), "c"),
)


def require_real_numbers(values, name="X"):
    """Raise if values are of a type that NumPy would turn into real numbers, but that means something else.

    Parameters
    ----------
    values : array, sparse matrix, data frame or sequence
        Only its type is read, unless that is `object` or not known: then every element's type is.
    name : str, default="X"
        Name of the values in the message.

    Raises
    ------
    ValueError
        The values are dates, durations, complex numbers or records. The message names the type.
    """
    columns = getattr(values, "dtypes", None)
    if isinstance(values, np.ndarray) or sparse.issparse(values):
        _require_real(values, name)
    elif columns is not None and hasattr(columns, "items"):  # of a data frame
        for column, dtype in columns.items():
            _require_kind(getattr(dtype, "kind", "O"), dtype, f"{name}, column {plain(column)}")
        if any(getattr(dtype, "kind", "O") == "O" for dtype in columns):
            _require_real(np.asarray(values), name)
    else:
        try:
            array = np.asarray(values)
        except (TypeError, ValueError):  # rows of different lengths, say, which others refuse
            return
        _require_real(array, name)


def _require_real(array, name):
    """Raise if the dtype of an array, or of its elements if they are objects, is not one of real numbers."""
    kind = array.dtype.kind
    if kind in "biuf":
        return
    _require_kind(kind, array.dtype, name)
    if kind == "O":
        for element in set(map(type, np.asarray(array).ravel())):
            for types, kind_of_element in _KINDS_OF_OBJECTS:
                if issubclass(element, types):
                    _require_kind(kind_of_element, element.__name__, name)


def _require_kind(kind, dtype, name):
    """Raise if a kind of dtype is not one of real numbers."""
    if kind in _REMEDIES:
        raise ValueError(f"{name}: expected real numbers, found {dtype}. {_REMEDIES[kind]}.")
