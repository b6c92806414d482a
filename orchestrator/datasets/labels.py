"""Conversion of labels of any type to classes and codes. Different labels never become one class."""

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.memory import require_memory
from orchestrator.study.text import one_line, represented, shown

MAX_CHARACTERS = 1000
"""Largest length of a label, in characters. Every row of a result table repeats it."""

MIN_ROWS = 20
"""Smallest number of rows for which mostly different numeric labels count as a regression target."""

_TYPES = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "U": np.str_}


def classes_and_codes(y: Any, n: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the different labels, ascending, and the class of each row as an index into them.

    Parameters
    ----------
    y : array-like, shape (n,)
        Labels: integers, floats, booleans, strings or bytes.
    n : int
        Number of rows of the features.

    Raises
    ------
    DatasetError
        If a row has no label, all labels are equal, most rows have a different number, a label is a fraction,
        or the labels cannot be distinguished or stored.
    """
    classes, codes = values_and_codes(y, n)
    if classes.dtype.kind in "if" and n >= MIN_ROWS and len(classes) > n / 2:
        raise DatasetError(
            f"expected classes, found {len(classes):,} different numbers as labels in {n:,} rows, which is a "
            "regression target or an identifier; set `label` to a column of classes, or divide the numbers "
            "into classes first"
        )
    if fractions := [value for value in classes.tolist() if classes.dtype.kind == "f" and value % 1]:
        raise DatasetError(
            f"expected whole numbers or texts as labels, found {shown(fractions[0])}; scikit-learn takes "
            "fractions for a regression target. Number the classes 0, 1, …, or make them texts: for a table, "
            "set label_type: text"
        )
    if len(classes) < 2:
        raise DatasetError(
            f"expected two classes or more, found {shown(classes[0].item())} in all {n} rows; "
            "check the labels"
        )
    return classes, codes


def as_integers(y: NDArray[Any]) -> NDArray[Any]:
    """Return labels as integers if all are whole numbers, else unchanged.

    Parameters
    ----------
    y : array, shape (n,)
        Class label of each row.
    """
    if y.dtype.kind != "f":
        return y
    whole = (np.rint(y) == y) & (np.abs(y) < 2**53)
    return y.astype(np.int64) if whole.all() else y


def values_and_codes(y: Any, n: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the different values and the index of each row's value; unlike labels, all may be equal.

    Parameters
    ----------
    y : array-like, shape (n,)
        Values: integers, floats, booleans, strings or bytes.
    n : int
        Number of rows of the features.

    Raises
    ------
    DatasetError
        If a row has no value, or the values cannot be distinguished or stored.
    """
    if np.ma.is_masked(y):
        row = int(np.flatnonzero(np.ma.getmaskarray(y))[0])
        raise DatasetError(
            f"expected a label in every row, found a masked one in row {row} (from 0); drop the row"
        )
    labels = _array(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.reshape(-1)
    if labels.ndim != 1:
        raise DatasetError(f"expected y with one label for each row, found shape {labels.shape}")
    if len(labels) != n:
        raise DatasetError(
            f"expected a label for each row, found {n} rows and {len(labels)} labels; check the loader"
        )
    classes, codes = np.unique(_plain(labels), return_inverse=True)
    return classes, codes.astype(np.int32)


def _array(y: Any) -> NDArray[Any]:
    """Return labels as an array, without merging labels of different types.

    Parameters
    ----------
    y : array-like, shape (n,)
        Class label of each row.
    """
    if not isinstance(y, (list, tuple, range)) and not hasattr(y, "__array__"):
        raise DatasetError(f"expected an array or a list of labels as y, found a {type(y).__name__}")
    if isinstance(y, (list, tuple)):
        # With an automatic type, numpy would make one label of 1 and "1", or of "a" and "a\0".
        labels = np.empty(len(y), dtype=object)
        for row, label in enumerate(y):
            labels[row] = label
        if all(isinstance(label, (list, tuple, np.ndarray)) for label in y):
            return np.asarray(y)
        return labels
    return np.asarray(y)


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels with a type that JSON preserves: bool, int64, float64 or str.

    Parameters
    ----------
    labels : array, shape (n,)
        Labels of any type.
    """
    if labels.dtype.kind == "O":
        labels = _from_objects(labels)
    if labels.dtype.kind == "S":
        labels = _decoded(labels)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise DatasetError(
            f"expected a label in every row, found {labels[row]} in row {row} (from 0); drop the row"
        )
    if labels.dtype.kind not in _TYPES:
        raise DatasetError(
            "expected numbers, booleans or strings as labels, "
            f"found dtype {one_line(labels.dtype, 80)}; convert them"
        )
    if labels.dtype.kind == "U":
        for label, row in zip(*np.unique(labels, return_index=True), strict=True):
            _require_storable(str(label), int(row))
    with np.errstate(all="ignore"):
        plain: NDArray[Any] = labels.astype(_TYPES[labels.dtype.kind], copy=False)
    changed = np.flatnonzero(plain != labels) if labels.dtype.kind in "uf" else np.empty(0, int)
    if labels.dtype.kind == "u":
        changed = np.flatnonzero(plain < 0)
    if len(changed):
        row = int(changed[0])
        raise DatasetError(
            f"expected labels that 64 bits hold, found {labels[row]} in row {row} (from 0); "
            "number the classes"
        )
    return as_integers(plain)  # 1 and 1.0 are one label in every file format


def _from_objects(labels: NDArray[Any]) -> NDArray[Any]:
    """Return an array of labels of one type from an array of objects, or raise a DatasetError.

    Parameters
    ----------
    labels : object array, shape (n,)
        Label of each row, as a Python object.
    """
    first = next(iter(labels), None)
    kinds = {
        "strings": (str,),
        "bytes": (bytes,),
        "booleans": (bool, np.bool_),
        "numbers": (numbers.Real,),
    }
    wanted = next((name for name, types in kinds.items() if isinstance(first, types)), "numbers")
    if any(isinstance(label, str) for label in labels):
        wanted = "strings"
    for row, label in enumerate(labels):
        mixed = wanted == "numbers" and isinstance(label, (bool, np.bool_))
        if not isinstance(label, kinds[wanted]) or mixed:
            raise DatasetError(
                f"expected {wanted} as labels, found {represented(label)} in row {row} "
                "(from 0); convert it, or drop the row"
            )
        if isinstance(label, str):  # checked here, because numpy drops NUL characters at the end
            _require_storable(label, row)
    if wanted == "strings":
        longest = max(map(len, labels))
        require_memory(8.0 * longest * len(labels), f"{len(labels):,} labels of up to {longest} characters")
        return labels.astype(np.str_)
    if wanted == "bytes":
        return _decoded(labels)
    return _numbers(labels)


def _numbers(labels: NDArray[Any]) -> NDArray[Any]:
    """Return objects as an array of 64-bit numbers, or raise a DatasetError if a value would change.

    Parameters
    ----------
    labels : object array, shape (n,)
        Numbers of any type.
    """
    values = [label.item() if isinstance(label, np.generic) else label for label in labels.tolist()]
    converted = np.array(values)
    if converted.dtype.kind == "O":  # integers beyond 64 bits, fractions or decimals
        converted = np.array([float(value) for value in values])
    for row, (value, number) in enumerate(zip(values, converted.tolist(), strict=True)):
        rounded = value == value and value != number
        if rounded or (isinstance(value, int) and not -(2**63) <= value < 2**63):
            raise DatasetError(
                f"expected labels that 64 bits hold, found {shown(value)} in row {row} (from 0); "
                "number the classes"
            )
    return converted


def _decoded(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels decoded from UTF-8.

    Parameters
    ----------
    labels : array of bytes, shape (n,)
        Label of each row, in UTF-8.
    """
    texts = []
    for row, label in enumerate(labels.tolist()):
        try:
            texts.append(label.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise DatasetError(
                f"expected labels in UTF-8, found {shown(label)} in row {row} (from 0); decode them"
            ) from error
        _require_storable(texts[-1], row)
    return np.array(texts)


def _require_storable(label: str, row: int) -> None:
    """Raise a DatasetError if a label is too long, or UTF-8 cannot store it.

    Parameters
    ----------
    label : str
        Text to check. At most `MAX_CHARACTERS` characters are allowed.
    row : int
        Its row, from 0, for the message.
    """
    if len(label) > MAX_CHARACTERS:
        raise DatasetError(
            f"expected labels of at most {MAX_CHARACTERS} characters, found {len(label):,} in row {row} "
            "(from 0); name the classes, or number them"
        )
    try:
        storable = b"\0" not in label.encode()
    except UnicodeEncodeError:
        storable = False
    if not storable:
        raise DatasetError(
            f"expected labels that UTF-8 can store and without NUL, found {shown(label)} in row {row} "
            "(from 0); rename the class"
        )
