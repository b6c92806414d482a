"""Datasets from ARFF files, the format of Weka, OpenML and KEEL."""

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.files import existing_file, package_path, read_text, unreadable
from orchestrator.datasets.labels import as_integers
from orchestrator.datasets.table import split_table
from orchestrator.study.text import one_line, shown

TAKEN = 25
"""Bytes of memory that a byte of text may take while it is read: a value of one digit becomes a `str`."""

_ATTRIBUTE = re.compile(
    r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(\{.*\}|\w+)\s*(?:\[.*\])?(?:%.*)?""",
    re.IGNORECASE,
)
_SPECIAL = re.compile(r"""['"\\]""")
_MISSING = ("?", "<null>")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class _Attribute(NamedTuple):
    """A column: its name, and its values if it is nominal, none if it is text, None if it is a number."""

    name: str
    values: list[str] | None


class _Line(NamedTuple):
    number: int
    text: str


def arff_file(
    path: str,
    label: str,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    package: str = "",
    one_hot: bool = False,
    complete_rows: bool = False,
) -> tuple[pd.DataFrame, Any]:
    """Read an ARFF file, perhaps compressed; `?` and `<null>` are missing, nominal columns are categories.

    Parameters
    ----------
    path : str
        The file; in a configuration, `${paths.data}/NAME.arff` is in the data folder.
    label : str
        The column of labels.
    drop : sequence of str
        Columns that are no features, such as an identifier.
    categories : sequence of str
        Further columns to make categorical.
    package : str
        The installed package that holds the file; `path` begins at its folder.
    one_hot : bool
        Whether a nominal column becomes a column of zeros and ones for each value that the file declares, or
        one column if these are two. Nothing is learnt from the rows.
    complete_rows : bool
        Whether rows with a missing value are left out.

    Returns
    -------
    X : DataFrame, shape (n, d)
    y : array or Series, shape (n,)
        Text where the column is nominal or a string.

    Raises
    ------
    DatasetError
        If there is no such package, file or column, a line is broken, which is named, or the file has sparse
        rows or dates.
    """
    place = existing_file(package_path(package, path) if package else path)
    try:
        lines = _lines(place)
        attributes = _header(lines)
        table = _table(attributes, [*_rows(lines, len(attributes))])
    except _Broken as error:
        raise DatasetError(f"{path}{error}") from None
    X, y = split_table(table, path, label, drop, categories)
    if complete_rows:
        complete = X.notna().all(axis=1) & y.notna()
        X, y = X[complete].reset_index(drop=True), y[complete].reset_index(drop=True)
    if one_hot:
        X = _one_hot(X)
    return X, (as_integers(y.to_numpy()) if y.dtype == np.float64 else y.astype(object))


class _Broken(Exception):
    """What is wrong with a file, to be said after its name."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f", line {line}: {problem}; correct the file, or fetch it again")


def _lines(path: Path) -> Iterator[_Line]:
    """Return an iterator of the lines that are neither empty nor a comment."""
    try:
        text = read_text(path, TAKEN).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise unreadable(path, error) from error
    numbered = enumerate(re.split("\r\n|\n|\r", text), start=1)
    lines = (_Line(number, line.strip()) for number, line in numbered)
    return (line for line in lines if line.text and not line.text.startswith("%"))


def _header(lines: Iterator[_Line]) -> list[_Attribute]:
    attributes: list[_Attribute] = []
    number = 1
    for number, text in lines:
        word = text.split(maxsplit=1)[0].lower()
        if word == "@data":
            if attributes:
                return attributes
            raise _Broken(number, "expected lines such as '@attribute age numeric' before @data")
        if word == "@attribute":
            attributes.append(_attribute(number, text))
        elif word != "@relation":
            raise _Broken(number, f"expected @relation, @attribute or @data, found {shown(text)}")
    raise _Broken(number, "expected @data and rows after it, found the end of the file")


def _attribute(number: int, text: str) -> _Attribute:
    if not (found := _ATTRIBUTE.fullmatch(text)):
        raise _Broken(number, f"expected '@attribute name type', found {shown(text)}")
    name, kind = ",".join(_fields(number, found[1])), found[2]
    if kind.startswith("{"):
        return _Attribute(name, [*dict.fromkeys(_fields(number, kind[1:-1]))])
    if kind.lower() in ("numeric", "real", "integer"):
        return _Attribute(name, None)
    if kind.lower() == "string":
        return _Attribute(name, [])
    raise _Broken(
        number, f"expected numeric, string or {{values}} as the type of {name!r}, found {shown(kind)}"
    )


def _fields(number: int, text: str) -> list[str]:
    """Return the values of a line, which may stand in quotes of either kind."""
    if not _SPECIAL.search(text):
        return [value.strip() for value in text.split(",")]
    quote = '"' if re.search(r"""(^|,)\s*["]""", text) else "'"
    text = re.sub(rf"{quote}\s+,", f"{quote},", text)  # which csv would refuse
    try:
        (row,) = csv.reader([text], quotechar=quote, escapechar="\\", skipinitialspace=True, strict=True)
    except (csv.Error, ValueError) as error:
        raise _Broken(number, f"expected values with commas between them, but {one_line(error)}") from error
    return [value.strip() for value in row]


def _rows(lines: Iterator[_Line], width: int) -> Iterator[tuple[int, list[str]]]:
    number = 0
    for number, text in lines:
        if text.startswith("{"):
            raise _Broken(
                number, "expected a value for each attribute, found a sparse row; save it as LIBSVM text"
            )
        fields = _fields(number, text)
        if len(fields) != width:
            raise _Broken(number, f"expected {width} values, found {len(fields)}")
        yield number, fields
    if not number:
        raise _Broken(number, "expected rows after @data, found none")


def _table(attributes: list[_Attribute], rows: list[tuple[int, list[str]]]) -> pd.DataFrame:
    columns = []
    for at, attribute in enumerate(attributes):
        values = [None if fields[at] in _MISSING else fields[at] for _, fields in rows]
        make = _numbers if attribute.values is None else _texts
        column = make(attribute, values)
        if column is None:
            raise next(_broken_values(attribute, zip((number for number, _ in rows), values, strict=True)))
        columns.append(pd.Series(column, name=attribute.name))
    return pd.concat(columns, axis=1)


def _numbers(attribute: _Attribute, values: list[str | None]) -> Any:
    """Return a column of numbers; None if a value is none, or too large for one."""
    if any("_" in value for value in values if value):  # which Python reads as it does 1_000
        return None
    try:
        numbers = np.array([np.nan if value is None else float(value) for value in values])
    except ValueError:
        return None
    return numbers if np.count_nonzero(~np.isfinite(numbers)) == values.count(None) else None


def _texts(attribute: _Attribute, values: list[str | None]) -> Any:
    """Return a column of text, as categories if its values are declared; None if one is not."""
    if not attribute.values:
        return pd.Series(values, dtype=object)
    return pd.Categorical(values, attribute.values) if {None, *attribute.values}.issuperset(values) else None


def _broken_values(attribute: _Attribute, values: Iterable[tuple[int, str | None]]) -> Iterator[_Broken]:
    for number, value in values:
        if value is None:
            continue
        if attribute.values is None and not _is_number(value):
            yield _Broken(number, f"expected a number as {attribute.name!r}, found {shown(value)}")
        if attribute.values and value not in attribute.values:
            yield _Broken(
                number,
                f"expected one of the values that {attribute.name!r} may have, found {shown(value)}",
            )


def _one_hot(X: pd.DataFrame) -> pd.DataFrame:
    columns: dict[str, pd.Series] = {}
    for name in X.columns:
        if not isinstance(X[name].dtype, pd.CategoricalDtype):
            columns[name] = X[name]
            continue
        values = list(X[name].cat.categories)
        for value in values[1:] if len(values) == 2 else values:
            columns[f"{name}={value}"] = (X[name] == value).astype(float).where(X[name].notna())
    return pd.DataFrame(columns)


def _is_number(value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None and math.isfinite(float(value))
