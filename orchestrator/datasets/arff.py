"""Datasets from ARFF files, the format of Weka, OpenML and KEEL."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.datasets.arff_lines import SPACE, Attribute, Broken, Line, Row, Value, attribute_of, row_of
from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.encodings import encoding_of, undecodable
from orchestrator.datasets.files import existing_file, package_path, read_text
from orchestrator.datasets.labels import as_integers
from orchestrator.datasets.memory import require_memory
from orchestrator.datasets.spellings import require_label_type, retyped_labels
from orchestrator.datasets.table import DROP, noted, require_unlabelled, split_table, unlabelled_note
from orchestrator.study.text import shown

MEMORY_PER_BYTE = 25
"""Memory needed to parse one byte of text, in bytes: a value of one digit becomes a `str`."""

_IGNORED_KEYWORDS = ("@relation", "@input", "@inputs", "@output", "@outputs")
"""Keywords of header lines that carry no data; the last four are KEEL's."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def arff_file(
    path: str,
    label: str,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    package: str = "",
    one_hot: bool = False,
    complete_rows: bool = False,
    label_type: str = "auto",
    encoding: str | None = None,
    unlabelled: str = "refuse",
) -> tuple[pd.DataFrame, Any]:
    """Read an ARFF file, plain or compressed.

    `?` and `<null>` are missing values, but a `?` in quotes is a value. Nominal columns become categories.
    Rows may be sparse. A value that a sparse row omits is 0, or the first declared value of a nominal
    attribute. Weights of rows are ignored, and so are lines with `@inputs` and `@outputs`.

    Parameters
    ----------
    path : str
        Path of the file; in a configuration, `${paths.data}/NAME.arff` is in the data folder.
    label : str
        Name of the column of labels.
    drop : sequence of str
        Columns that are not features, such as an identifier or a date.
    categories : sequence of str
        Additional columns to convert to categories.
    package : str
        Installed package that contains the file; `path` is relative to its folder. Empty for a path on disk.
    one_hot : bool
        Whether to replace a nominal column by a column of zeros and ones for each declared value. A column
        with two values becomes one such column. Nothing is learnt from the rows.
    complete_rows : bool
        Whether to drop rows with a missing value.
    label_type : {"auto", "number", "text"}
        Type of labels. "auto" keeps the declared type. "number" also converts nominal labels to numbers, and
        "text" also converts numeric labels to text.
    encoding : str, optional
        Character encoding; by default that of the byte-order mark, or UTF-8 without one.
    unlabelled : {"refuse", "drop"}
        Whether rows without a label are an error, or are dropped with a note.

    Returns
    -------
    X : DataFrame, shape (n, d)
        Features, with the column names of the file; `one_hot` names its columns `NAME=VALUE`.
    y : array or Series, shape (n,)
        Labels; text if the column is nominal or a string.

    Raises
    ------
    DatasetError
        If the package, file or column does not exist, a line is malformed (the message gives its number), or
        a feature is a date.
    """
    require_label_type(label_type)
    require_unlabelled(unlabelled)
    file = existing_file(package_path(package, path) if package else path)
    attributes, rows, table = _whole(file, encoding)
    without = ""
    if unlabelled == DROP and label in table.columns:
        absent = table[label].isna().to_numpy()
        without = unlabelled_note(label, absent, lambda row: f"line {rows[row].number}")
        rows = [row for row, lacks in zip(rows, absent, strict=True) if not lacks]
        table = table[~absent].reset_index(drop=True)
    X, y = split_table(table, file, label, drop, categories)
    if date := next((each for each in attributes if each.kind == "date" and each.name in X), None):
        raise DatasetError(
            f"{file}, line {date.line}: expected numbers or categories as features, found dates as "
            f"{date.name!r}; add it to `drop`, or convert it to a number"
        )
    y = retyped_labels(y, label_type, lambda row: f"{file}, line {rows[row].number}")
    if complete_rows:
        complete = X.notna().all(axis=1) & y.notna()
        X, y = X[complete].reset_index(drop=True), y[complete].reset_index(drop=True)
    elif y.isna().any():
        line = rows[int(y.isna().to_numpy().argmax())].number
        raise DatasetError(
            f"{file}, line {line}: expected a label in column {label!r}, found a missing value; drop rows "
            f"without a label (there are {int(y.isna().sum()):,}) by unlabelled: drop, or set "
            "complete_rows: true"
        )
    if one_hot:
        X = _one_hot(X, file)
    weights = sum(row.is_weighted for row in rows)
    note = f"its file gives weights to {weights:,} of {len(rows):,} rows, which are not used"
    labels = as_integers(y.to_numpy()) if y.dtype == np.float64 else y.astype(object)
    return noted(X, note if weights else "", without), labels


def arff_table(path: str, package: str = "", encoding: str | None = None) -> pd.DataFrame:
    """Return the table of an ARFF file with all its columns.

    Parameters
    ----------
    path : str
        Path of the file, plain or compressed.
    package : str
        Installed package that contains the file; `path` is relative to its folder. Empty for a path on disk.
    encoding : str, optional
        Character encoding; by default that of the byte-order mark, or UTF-8 without one.

    Raises
    ------
    DatasetError
        If the file does not exist, or a line is malformed.
    """
    return _whole(existing_file(package_path(package, path) if package else path), encoding)[2]


def _whole(file: Path, encoding: str | None) -> tuple[list[Attribute], list[Row], pd.DataFrame]:
    """Return the attributes and rows of a file, and its table.

    Parameters
    ----------
    file : Path
        ARFF file.
    encoding : str or None
        Character encoding, as configured.
    """
    try:
        lines = _lines(file, encoding_of(file, encoding))
        attributes = _header(lines)
        rows = _rows(lines, len(attributes))
        return attributes, rows, _table(attributes, rows)
    except Broken as error:
        raise DatasetError(f"{file}{error}") from None


def _lines(path: Path, encoding: str) -> Iterator[Line]:
    """Return an iterator of the lines that are neither empty nor a comment.

    Parameters
    ----------
    path : Path
        File to read.
    encoding : str
        Its character encoding.
    """
    content = read_text(path, MEMORY_PER_BYTE)
    try:
        text = content.decode(encoding)
    except UnicodeError:
        raise undecodable(path, encoding) from None
    numbered = enumerate(re.split("\r\n|\n|\r", text), start=1)
    lines = (Line(number, line.strip(SPACE)) for number, line in numbered)
    return (line for line in lines if line.text and not line.text.startswith("%"))


def _header(lines: Iterator[Line]) -> list[Attribute]:
    """Read the declarations up to `@data` and return the attributes.

    Parameters
    ----------
    lines : iterator of Line
        Lines of the file; the iterator is left at the first row.
    """
    attributes: list[Attribute] = []
    number = 1
    for line in lines:
        number, text = line
        word = re.split("[\x01-\x20%]", text, maxsplit=1)[0].lower()
        if word == "@data":
            if rest := text[len(word) :].partition("%")[0].strip(SPACE):
                raise Broken(number, f"expected rows on the lines after @data, found {shown(rest)} beside it")
            if attributes:
                return attributes
            raise Broken(number, "expected lines such as '@attribute age numeric' before @data")
        if word == "@attribute":
            attributes.append(attribute_of(line))
        elif word not in _IGNORED_KEYWORDS:
            raise Broken(number, f"expected @relation, @attribute or @data, found {shown(text)}")
    raise Broken(number, "expected @data and rows after it, found the end of the file")


def _rows(lines: Iterator[Line], width: int) -> list[Row]:
    """Read the rows after `@data`.

    Parameters
    ----------
    lines : iterator of Line
        Remaining lines of the file.
    width : int
        Number of attributes.
    """
    line = Line(0, "")
    rows = []
    for line in lines:
        if row := row_of(line, width):
            rows.append(row)
    if not rows:
        raise Broken(line.number, "expected rows after @data, found none")
    return rows


def _table(attributes: list[Attribute], rows: list[Row]) -> pd.DataFrame:
    """Return a frame with the type that each attribute declares; dates stay text.

    Parameters
    ----------
    attributes : list of Attribute
        Declarations of the columns.
    rows : list of Row
        Values of each data line, in the order of the attributes.
    """
    require_memory(8.0 * len(rows) * len(attributes), f"{len(rows):,} rows × {len(attributes):,} columns")
    columns = []
    for attribute, values in zip(attributes, _columns(attributes, rows), strict=True):
        make = _numbers if attribute.kind == "number" else _texts
        column = make(attribute, values)
        if column is None:
            raise next(_broken_values(attribute, zip((row.number for row in rows), values, strict=True)))
        columns.append(pd.Series(column, name=attribute.name))
    return pd.concat(columns, axis=1)


def _columns(attributes: list[Attribute], rows: list[Row]) -> Iterator[list[Value]]:
    """Yield the values of each column, with the defaults of sparse rows filled in.

    Parameters
    ----------
    attributes : list of Attribute
        Declarations of the columns.
    rows : list of Row
        Values, dense or sparse.

    Yields
    ------
    list of (str or None)
        Values of one column; None where a value is missing.
    """
    if all(row.at is None for row in rows):
        for at in range(len(attributes)):
            yield [row.values[at] for row in rows]
        return
    named: list[dict[int, Value]] = [{} for _ in attributes]
    for position, row in enumerate(rows):
        for at, value in zip(row.at or range(len(row.values)), row.values, strict=True):
            named[at][position] = value
    for attribute, found in zip(attributes, named, strict=True):
        omitted = attribute.values[0] if attribute.kind == "nominal" else "0"
        if attribute.kind in ("string", "date") and len(found) < len(rows):
            number = next(row.number for position, row in enumerate(rows) if position not in found)
            raise Broken(number, f"expected the text of {attribute.name!r}, which a sparse row must not omit")
        yield [found.get(position, omitted) for position in range(len(rows))]


def _numbers(attribute: Attribute, values: list[Value]) -> Any:
    """Return a column of numbers; None if a value is not a number, or overflows.

    Parameters
    ----------
    attribute : Attribute
        Declaration of the column.
    values : list of (str or None)
        Texts of the values.
    """
    # `float` also accepts 1_000 and digits of other scripts.
    if any("_" in value or not value.isascii() for value in values if value):
        return None
    try:
        numbers = np.array([np.nan if value is None else float(value) for value in values])
    except ValueError:
        return None
    return numbers if np.count_nonzero(~np.isfinite(numbers)) == values.count(None) else None


def _texts(attribute: Attribute, values: list[Value]) -> Any:
    """Return a column of text, as categories for a nominal one; None if a value is not declared.

    Parameters
    ----------
    attribute : Attribute
        Declaration of the column.
    values : list of (str or None)
        Texts of the values.
    """
    if attribute.kind != "nominal":
        return pd.Series(values, dtype=object)
    return pd.Categorical(values, attribute.values) if {None, *attribute.values}.issuperset(values) else None


def _broken_values(attribute: Attribute, values: Iterable[tuple[int, Value]]) -> Iterator[Broken]:
    """Yield an error for each value that does not fit its attribute.

    Parameters
    ----------
    attribute : Attribute
        Declaration of the column.
    values : iterable of (int, str or None)
        Line and text of each value.

    Yields
    ------
    Broken
        Error that names the line.
    """
    for number, value in values:
        if value is None:
            continue
        if attribute.kind == "number" and not _is_number(value):
            yield Broken(number, f"expected a number as {attribute.name!r}, found {shown(value)}")
        if attribute.kind == "nominal" and value not in attribute.values:
            yield Broken(
                number,
                f"expected one of the values that {attribute.name!r} may have, found {shown(value)}",
            )


def _one_hot(X: pd.DataFrame, file: Path) -> pd.DataFrame:
    """Return a frame whose nominal columns are replaced by indicator columns.

    Parameters
    ----------
    X : DataFrame, shape (n, d)
        Features, with nominal columns as categories.
    file : Path
        Source of the data, for messages.
    """
    columns: dict[str, pd.Series] = {}
    for name, column in _indicators(X):
        if name in columns:
            raise DatasetError(
                f"one_hot would give {file} two columns {name!r}; rename an attribute, or leave out one_hot"
            )
        columns[name] = column
    return pd.DataFrame(columns)


def _indicators(X: pd.DataFrame) -> Iterator[tuple[str, pd.Series]]:
    """Yield the name and values of each output column of one-hot encoding.

    Parameters
    ----------
    X : DataFrame, shape (n, d)
        Features, with nominal columns as categories.

    Yields
    ------
    tuple of (str, Series)
        Name and values; columns that are not nominal are unchanged.
    """
    for name in X.columns:
        if not isinstance(X[name].dtype, pd.CategoricalDtype):
            yield name, X[name]
            continue
        values = list(X[name].cat.categories)
        for value in values[1:] if len(values) == 2 else values:
            yield f"{name}={value}", (X[name] == value).astype(float).where(X[name].notna())


def _is_number(value: str) -> bool:
    """Return whether a text is a finite number in the grammar of ARFF.

    Parameters
    ----------
    value : str
        Text of a value.
    """
    return _NUMBER.fullmatch(value) is not None and math.isfinite(float(value))
