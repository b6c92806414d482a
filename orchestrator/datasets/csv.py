"""Datasets from CSV files."""

import inspect
import re
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from pandas._libs.parsers import STR_NA_VALUES  # type: ignore[import-not-found]

from orchestrator.datasets.csv_layout import (
    has_header,
    is_cut,
    long_line,
    looks_like_values,
    named_twice,
    place_of,
    separator_hint,
)
from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.encodings import decoded_lines, encoding_of, undecodable
from orchestrator.datasets.files import READ_ERRORS, existing_file, package_path
from orchestrator.datasets.spellings import TEXT, require_label_type, typed_category, typed_labels
from orchestrator.datasets.table import noted, require_lists, respelt, split_table
from orchestrator.study.names import did_you_mean
from orchestrator.study.text import one_line

_MARK = "="
"""A character before each label while it is read, so that no label is one of the texts of missing values."""

_UNNAMED = re.compile(r"Unnamed: \d+(\.\d+)?")
"""What pandas calls a column without a name, also when such a table was saved and read again."""


def csv_file(
    path: str,
    label: str | int,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    package: str = "",
    label_type: str = "auto",
    **options: Any,
) -> tuple[pd.DataFrame, Any]:
    """Read a table whose first line names the columns.

    In files that end in `.tsv` or `.tab`, perhaps with the ending of a compression, tabs divide the columns.
    Empty cells, `NA`, `NaN` and the like are missing values, as `pandas.read_csv` says. Columns of features
    are numbers where all their values are; `true` and `TRUE` in one column stay text. A column without a name
    that is empty, or numbers or names the rows, is no feature. UTF-16 and UTF-32 are recognised by their
    byte-order mark.

    Parameters
    ----------
    path : str
        The file, perhaps compressed; in a configuration, `${paths.data}/NAME.csv` is in the data folder.
    label : str or int
        The column of labels: its name, or its position from 0, below 0 from the end.
    drop : sequence of str
        Columns that are no features, such as an identifier.
    categories : sequence of str
        Columns to make categorical, for estimators that look at the type of a column. Their values are
        numbers where `label_type: auto` would make them so.
    package : str
        The installed package that holds the file; `path` begins at its folder.
    label_type : {"auto", "number", "text"}
        Whether labels are numbers or text. "auto" takes them as numbers if each is written as its number is
        (`1` and `0.5`; not `01`, `+1` or `1e3`), else all as text. "number" refuses two spellings of one
        number. With "text" a label is what stands in the file, `NA` included.
    **options
        Of `pandas.read_csv`, such as `sep`, `encoding` or `na_values`.

    Returns
    -------
    X : DataFrame, shape (n, d)
    y : array or Series, shape (n,)

    Raises
    ------
    DatasetError
        If there is no such package, file, option or column, two columns have one name, lines are longer than
        the first, the last one is cut, a row has no label, or pandas cannot read the file.
    """
    require_label_type(label_type)
    require_lists(drop=drop, categories=categories)
    _require_options(options, label)
    place = existing_file(package_path(package, path) if package else path)
    options["encoding"] = encoding_of(place, options.get("encoding"))
    if {".tsv", ".tab"} & {*place.suffixes[-2:]} and not {"sep", "delimiter"} & options.keys():
        options["sep"] = "\t"
    if options.get("engine") != "pyarrow":
        options.setdefault("index_col", False)  # or pandas takes the first values for names of longer rows
    if _takes_whole_columns(options):
        options.setdefault("low_memory", False)  # or a column's type may differ from piece to piece
    names = _names(place, options)
    label = _named(label, names)
    if label not in names:
        raise DatasetError(_no_label(place, label, names, options))
    table = _read(place, options, label, [name for name in categories if name in names])
    _require_whole(place, table, options)
    table[label] = _labels(table[label], label_type, place, options)
    table, note = _without_unnamed(table, [label, *drop, *categories], options)
    X, y = split_table(table, place, label, drop, categories)
    X = respelt(noted(X, note), partial(_reread, place, options))
    return X, y.to_numpy() if y.dtype.kind in "if" else y


def _require_options(options: Mapping[str, Any], label: Any) -> None:
    known = [*inspect.signature(pd.read_csv).parameters][1:]
    for name in options:
        if name not in known:
            own = ["path", "label", "drop", "categories", "package", "label_type"]
            raise DatasetError(
                f"{name} is no option of csv_file or of pandas.read_csv{did_you_mean(name, [*own, *known])}"
            )
    for name in ("chunksize", "iterator"):
        if options.get(name):
            raise DatasetError(f"{name} makes pieces of a table; leave it out")
    for name in ("dtype", "converters"):
        if isinstance(options.get(name), Mapping) and label in options[name]:
            raise DatasetError(f"{name} names the label {label!r}; set label_type: number or text instead")


def _takes_whole_columns(options: Mapping[str, Any]) -> bool:
    """Return whether the engine is the one that may read a column in pieces, each of another type."""
    sep = options.get("sep", options.get("delimiter", ","))
    is_simple = isinstance(sep, str) and (len(sep) == 1 or sep == r"\s+")
    return is_simple and options.get("engine", "c") == "c" and not options.get("skipfooter")


def _names(place: Path, options: Mapping[str, Any]) -> list[Any]:
    """Return the names of the columns, or their positions if the file does not name them."""
    head = {name: value for name, value in options.items() if name not in ("skipfooter", "nrows")}
    if head.get("engine") == "pyarrow":  # which cannot read a part
        head |= {"engine": "c"}
    return [*_parsed(place, head | {"nrows": 0}, options).columns]


def _parsed(place: Path, used: Mapping[str, Any], options: Mapping[str, Any]) -> pd.DataFrame:
    """Return what pandas reads, or say what it cannot."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Length of header", pd.errors.ParserWarning)
            warnings.filterwarnings("ignore", "Both a converter and dtype", pd.errors.ParserWarning)
            return pd.read_csv(place, **used)
    except pd.errors.ParserWarning:
        line = long_line(place, options)
        raise DatasetError(
            f"{place}{line} has more values than there are names of columns; name each column, or set "
            "index_col: 0 if the first values only number the rows"
        ) from None
    except UnicodeError:
        raise undecodable(place, options["encoding"]) from None
    except (*READ_ERRORS, TypeError, AttributeError) as error:
        hint = separator_hint(place, options, 1)
        raise DatasetError(
            f"cannot read {place}: {one_line(error)}; correct the file or the options of pandas.read_csv"
            f"{f' ({hint})' if hint else ''}"
        ) from error


def _no_label(place: Path, label: Any, names: list[Any], options: Mapping[str, Any]) -> str:
    """Say why there is no column of labels."""
    if hint := separator_hint(place, options, len(names)):
        return hint
    known = [str(name) for name in names]
    found = did_you_mean(str(label), known) or f"; it has {', '.join(known[:20])}"
    first = ""
    if has_header(options) and looks_like_values(names):
        first = "; line 1 seems to hold values: set header: null, and label to a position from 0"
    quotes = "" if isinstance(label, str) else "; a name that YAML does not read as text needs quotes"
    return f"{place}{_first_line(options)} has no column {label!r}{found}{quotes}{first}; correct `label`"


def _first_line(options: Mapping[str, Any]) -> str:
    return ", line 1," if has_header(options) and "skiprows" not in options else ""


def _named(label: Any, names: list[Any]) -> Any:
    """Return the name of a column that a position may stand for."""
    is_name = str(label) in map(str, names)  # perhaps one that YAML does not read as text
    if type(label) is int and not is_name and -len(names) <= label < len(names):
        return names[label]
    return label


def _read(place: Path, options: dict[str, Any], label: Any, categories: list[Any]) -> pd.DataFrame:
    """Return the table, with labels, categories and truth values of several spellings as text."""
    table = _parsed(place, _with_text(options, label, categories), options)
    truths = [name for name in table.columns if name != label and _is_truth(table[name])]
    if truths:
        again = _parsed(place, _with_text(options, label, [*categories, *truths]), options)
        spelt = [name for name in truths if again[name].nunique() > table[name].nunique()]
        table[spelt] = again[spelt]
    for name in categories:
        table[name] = typed_category(table[name])
    return table


def _reread(place: Path, options: dict[str, Any], name: Any, label_type: str) -> Any:
    """Return a column as `typed_labels` does; None if options give it a type or a value is missing."""
    if any(name in _by_column(options, key) for key in ("dtype", "converters")):
        return None
    column = _parsed(place, options | {"dtype": _by_column(options, "dtype") | {name: str}}, options)[name]
    if column.isna().any():
        return None
    line = partial(place_of, place, options)
    return typed_labels(column, label_type, lambda row: f"{place}, {line(row)}")


def _by_column(options: Mapping[str, Any], key: str) -> dict[Any, Any]:
    """Return an option that has a value for each column; an empty one if it has one for all."""
    given = options.get(key)
    return dict(given) if isinstance(given, Mapping) else {}


def _with_text(options: dict[str, Any], label: Any, columns: list[Any]) -> dict[str, Any]:
    """Return options with which pandas takes labels and some columns as text."""
    given = options.get("dtype")
    types = _by_column(options, "dtype") | dict.fromkeys(columns, str)
    if options.get("engine") == "pyarrow":  # which takes no converters
        return options | {"dtype": types | {label: str}}
    converters = dict(options.get("converters") or {}) | {label: _marked}
    return options | {"converters": converters} | ({"dtype": types} if types or given is None else {})


def _marked(text: str) -> str:
    return _MARK + text


def _is_truth(column: pd.Series) -> bool:
    if column.dtype == bool:
        return True
    return column.dtype == object and bool(column.dropna().map(lambda value: isinstance(value, bool)).all())


def _require_whole(place: Path, table: pd.DataFrame, options: Mapping[str, Any]) -> None:
    if twice := named_twice(place, table, options):
        raise DatasetError(
            f"{place}{_first_line(options)} has two columns {twice[0]!r}; give each column a name of its own"
        )
    if is_cut(place, table.shape[1], options):
        last = sum(1 for _ in decoded_lines(place, options["encoding"]))
        raise DatasetError(
            f"{place}, line {last}, ends in the middle of a line, as after a broken copy; copy it again, or "
            "mend the line"
        )
    if table.empty:
        raise DatasetError(f"{place} has no rows after the names of its columns; fetch or copy it again")


def _labels(column: pd.Series, label_type: str, place: Path, options: Mapping[str, Any]) -> Any:
    """Return the labels; a DatasetError names the line of one that is missing."""
    line = partial(place_of, place, options)
    texts = column.where(column.notna(), _MARK) if options.get("engine") != "pyarrow" else _MARK + column
    texts = texts.fillna(_MARK).astype(object).str.removeprefix(_MARK)
    missing = {""} if label_type == TEXT else _missing_texts(options, column.name)
    absent = texts.isin([*missing])
    if absent.any():
        row = int(absent.to_numpy().argmax())
        found = texts.iloc[row]
        keep = "" if found == "" else f", or set label_type: {TEXT} if {found} is the name of a class"
        what = f"the text {found}, which stands for a missing value" if found else "none"
        raise DatasetError(
            f"{place}, {line(row)}: expected a label in column {column.name!r}, found {what}; drop "
            f"rows without a label (there are {int(absent.sum()):,}){keep}"
        )
    return typed_labels(texts, label_type, lambda row: f"{place}, {line(row)}")


def _missing_texts(options: Mapping[str, Any], label: Any) -> set[str]:
    """Return the texts that stand for a missing label, as pandas.read_csv has them."""
    if not options.get("na_filter", True):
        return {""}
    given = options.get("na_values", ())
    if isinstance(given, Mapping):
        given = given.get(label, ())
    given = [] if given is None else [given] if isinstance(given, (str, int, float)) else given
    known = STR_NA_VALUES if options.get("keep_default_na", True) else ()
    return {"", *map(str, given), *known}


def _without_unnamed(
    table: pd.DataFrame, named: list[Any], options: Mapping[str, Any]
) -> tuple[pd.DataFrame, str]:
    """Return a table without the columns that only number or name its rows, and a sentence about them."""
    if not has_header(options):
        return table, ""
    unnamed = [name for name in table.columns if _UNNAMED.fullmatch(str(name)) and name not in named]
    found = [name for name in unnamed if _marks_rows(table[name], name == table.columns[0])]
    if not found:
        return table, ""
    names = ", ".join(map(repr, found))
    return table.drop(columns=found), (
        f"{names} has no name in the file and only numbers or names the rows: it is no feature; give it a "
        "name in the file if it is one"
    )


def _marks_rows(column: pd.Series, is_first: bool) -> bool:
    if column.isna().all():
        return True
    different = column.notna().all() and column.is_unique
    return bool(different and (column.dtype.kind in "iu" or (is_first and column.dtype.kind in "OUT")))
