"""Conversion of text columns to numbers without merging different spellings of one number."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.labels import as_integers
from orchestrator.study.text import shown

AUTO, NUMBER, TEXT = "auto", "number", "text"
LABEL_TYPES = (AUTO, NUMBER, TEXT)
"""Types of labels: numbers if no information is lost, always numbers, or always text."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")

RowName = Callable[[int], str]
"""Function from the index of a row to its name in a message, such as `line 7`."""


def require_label_type(label_type: Any) -> None:
    """Raise a DatasetError unless a value is one of `LABEL_TYPES`.

    Parameters
    ----------
    label_type : object
        Configured value.
    """
    if label_type not in LABEL_TYPES:
        raise DatasetError(f"expected label_type: {', '.join(LABEL_TYPES)}, found {shown(label_type)}")


def typed_labels(column: pd.Series, label_type: str, row_name: RowName) -> Any:
    """Return a column of labels as numbers or text, by its label type.

    Parameters
    ----------
    column : Series, shape (n,)
        Labels as text, without missing values.
    label_type : {"auto", "number", "text"}
        See `LABEL_TYPES`.
    row_name : callable
        Function from the index of a row to its name in a message.

    Returns
    -------
    array or Series, shape (n,)
        int64 or float64 numbers, or `str` objects.

    Raises
    ------
    DatasetError
        If labels must be numbers and one is not, or two spellings are one number.
    """
    codes, texts = _distinct(column)
    if label_type == NUMBER:
        numbers: Any = _required_numbers(texts, codes, row_name)
    else:
        numbers = exact_numbers(texts) if label_type == AUTO else None
    return column.astype(object) if numbers is None else numbers[codes]


def retyped_labels(y: pd.Series, label_type: str, row_name: RowName) -> pd.Series:
    """Convert labels of a file with declared types to the configured type.

    Parameters
    ----------
    y : Series, shape (n,)
        Numbers, truth values, text or categories of text; the index is the row. Missing labels stay missing.
    label_type : {"auto", "number", "text"}
        Configured type; "auto" changes nothing.
    row_name : callable
        Function from the index of a row to its name in a message.

    Raises
    ------
    DatasetError
        If labels must be numbers and one is not, or two spellings are one number.
    """
    is_number = y.dtype.kind in "iuf"
    if label_type == TEXT and y.dtype.kind == "b":
        return y.astype(str)
    if label_type == AUTO or (label_type == NUMBER) == is_number:
        return y
    present = y[y.notna()]
    if is_number:
        texts = [str(value) for value in as_integers(present.to_numpy()).tolist()]
        return pd.Series(texts, present.index, dtype=object).reindex(y.index)
    rows = present.index
    numbers = typed_labels(present.astype(str), label_type, lambda at: row_name(int(rows[at])))
    return pd.Series(np.asarray(numbers, dtype=np.float64), rows).reindex(y.index)


def typed_category(column: pd.Series) -> pd.Categorical:
    """Return a text column as categories; they are numbers if each text is the canonical form of one.

    Parameters
    ----------
    column : Series, shape (n,)
        Text; missing values stay missing.
    """
    codes, texts = _distinct(column)
    numbers = exact_numbers(texts)
    values = np.array(texts, dtype=object) if numbers is None else numbers
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(order) + 1, dtype=np.int64)
    ranks[order], ranks[-1] = np.arange(len(order)), -1  # the code of a missing value is -1
    return pd.Categorical.from_codes(ranks[codes], pd.Index(values[order]))


def exact_numbers(texts: Sequence[str]) -> NDArray[Any] | None:
    """Return texts as numbers if each text is the canonical form of its number, else None.

    `1`, `-3` and `0.5` are canonical; `01`, `+1`, `1e3` and `0.50` are not.

    Parameters
    ----------
    texts : sequence of str
        Texts without repetitions.
    """
    if not texts or not all(map(_is_exact, texts)):
        return None
    numbers = _as_numbers(texts)
    return numbers if numbers is not None and len(np.unique(numbers)) == len(texts) else None


def _is_exact(text: str) -> bool:
    """Return whether a text is the canonical form of a number.

    Parameters
    ----------
    text : str
        Text to check.
    """
    if _INTEGER.fullmatch(text):
        return len(text) < 20 and text == str(int(text))
    return _NUMBER.fullmatch(text) is not None and text == repr(float(text))


def _as_numbers(texts: Sequence[str]) -> NDArray[Any] | None:
    """Return texts as 64-bit numbers; None if one is too large for an exact conversion.

    Parameters
    ----------
    texts : sequence of str
        Texts of numbers.
    """
    if all(map(_INTEGER.fullmatch, texts)):
        integers = [int(text) for text in texts]
        return np.array(integers, dtype=np.int64) if all(-(2**63) <= i < 2**63 for i in integers) else None
    numbers = np.array([float(text) for text in texts])
    exact = np.isfinite(numbers).all() and all(
        int(text) == number for text, number in zip(texts, numbers, strict=True) if _INTEGER.fullmatch(text)
    )
    return as_integers(numbers) if exact else None


def _required_numbers(texts: list[str], codes: NDArray[Any], row_name: RowName) -> NDArray[Any]:
    """Return different texts as different numbers, or raise a DatasetError.

    Parameters
    ----------
    texts : list of str
        Texts without repetitions.
    codes : int array, shape (n,)
        Index of each row's text.
    row_name : callable
        Function from the index of a row to its name in a message.
    """
    first = pd.Series(np.arange(len(codes))).groupby(codes).min()
    for code, text in enumerate(texts):
        if not _NUMBER.fullmatch(text):
            raise DatasetError(
                f"{row_name(int(first[code]))}: expected a number as the label (label_type: number), found "
                f"{shown(text)}; correct it, or set label_type: text"
            )
    numbers = _as_numbers([text.strip() for text in texts])
    if numbers is None:
        raise DatasetError("expected labels that 64 bits hold (label_type: number); set label_type: text")
    _, indices = np.unique(numbers, return_inverse=True)
    known: dict[int, int] = {}
    for code, number in enumerate(indices.tolist()):
        if (other := known.setdefault(number, code)) != code:
            raise DatasetError(
                f"the labels {shown(texts[other])} ({row_name(int(first[other]))}) and {shown(texts[code])} "
                f"({row_name(int(first[code]))}) would be one number (label_type: number); write one "
                "spelling, or set label_type: text to keep two classes"
            )
    return numbers


def _distinct(column: pd.Series) -> tuple[NDArray[Any], list[str]]:
    """Return the index of each row's text, and the different texts.

    Parameters
    ----------
    column : Series, shape (n,)
        Text; a missing value has the index -1.
    """
    codes, texts = pd.factorize(column)
    return codes, [str(text) for text in texts]
