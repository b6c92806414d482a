"""From labels of any kind to classes and codes; labels that differ never become one class."""

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.memory import require_room
from orchestrator.study.text import one_line, shown

MOST_CHARACTERS = 1000
"""Of a label: each row of a table repeats it."""

LEAST_ROWS = 20
"""Number of rows from which labels with mostly different numbers are taken for a regression target."""

_TYPES = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "U": np.str_}


def classes_and_codes(y: Any, n: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the labels that occur, ascending, and the position of each row's among them.

    Parameters
    ----------
    y : array-like, shape (n,)
        Integers, floats, booleans, strings or bytes.
    n : int
        Number of rows.

    Raises
    ------
    DatasetError
        If a row has no label, all have the same, most rows have a number of their own, or the labels cannot
        be distinguished or stored.
    """
    classes, codes = values_and_codes(y, n)
    if classes.dtype.kind in "if" and n >= LEAST_ROWS and len(classes) > n / 2:
        raise DatasetError(
            f"expected classes, found {len(classes):,} different numbers as labels in {n:,} rows, which is a "
            "regression target or an identifier; set `label` to a column of classes, or divide the numbers "
            "into classes first"
        )
    if len(classes) < 2:
        raise DatasetError(
            f"expected two classes or more, found {shown(classes[0].item())} in all {n} rows; "
            "check the labels"
        )
    return classes, codes


def as_integers(y: NDArray[Any]) -> NDArray[Any]:
    """Return labels as integers if all are whole numbers, else as they are."""
    if y.dtype.kind != "f":
        return y
    whole = (np.rint(y) == y) & (np.abs(y) < 2**53)
    return y.astype(np.int64) if whole.all() else y


def values_and_codes(y: Any, n: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the same of values that may all be one; see `classes_and_codes`."""
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
    if not isinstance(y, (list, tuple, range)) and not hasattr(y, "__array__"):
        raise DatasetError(f"expected an array or a list of labels as y, found a {type(y).__name__}")
    if isinstance(y, (list, tuple)):
        # As an array of numpy's choice 1 and "1" would become one label, and so would "a" and "a\0".
        labels = np.empty(len(y), dtype=object)
        for row, label in enumerate(y):
            labels[row] = label
        if all(isinstance(label, (list, tuple, np.ndarray)) for label in y):
            return np.asarray(y)
        return labels
    return np.asarray(y)


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as one of the types that JSON keeps: bool, int64, float64 or str."""
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
    return as_integers(plain)  # 1 and 1.0 are one label, whatever format a file has


def _from_objects(labels: NDArray[Any]) -> NDArray[Any]:
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
                f"expected {wanted} as labels, found {shown(label)} in row {row} "
                "(from 0); convert it, or drop the row"
            )
        if isinstance(label, str):  # from whose end numpy would drop NUL characters
            _require_storable(label, row)
    if wanted == "strings":
        longest = max(map(len, labels))
        require_room(8.0 * longest * len(labels), f"{len(labels):,} labels of up to {longest} characters")
        return labels.astype(np.str_)
    if wanted == "bytes":
        return _decoded(labels)
    return _numbers(labels)


def _numbers(labels: NDArray[Any]) -> NDArray[Any]:
    values = [label.item() if isinstance(label, np.generic) else label for label in labels.tolist()]
    converted = np.array(values)
    if converted.dtype.kind == "O":  # integers of any size, fractions, decimals
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
    if len(label) > MOST_CHARACTERS:
        raise DatasetError(
            f"expected labels of at most {MOST_CHARACTERS} characters, found {len(label):,} in row {row} "
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
