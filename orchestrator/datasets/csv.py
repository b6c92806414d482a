"""Datasets from CSV files."""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas._libs.parsers import STR_NA_VALUES  # type: ignore[import-not-found]

from orchestrator.datasets.csv_layout import (
    detected_separator,
    has_header,
    header_hint,
    is_cut,
    long_line,
    looks_like_values,
    named_twice,
    row_location,
    separator_hint,
)
from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.encodings import decoded_lines, encoding_of, undecodable
from orchestrator.datasets.files import READ_ERRORS, existing_file, opened, package_path
from orchestrator.datasets.spellings import AUTO, TEXT, require_label_type, typed_category, typed_labels
from orchestrator.datasets.table import (
    REFUSE,
    noted,
    require_lists,
    require_unlabelled,
    split_table,
    unlabelled_note,
    with_text_reader,
    without_unnamed,
)
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import one_line, shown

_MARK = "="
"""Prefix of each label while it is read, so that pandas does not take a label for a missing value."""

_CHARACTERS = {
    "decimal": ",",
    "thousands": ".",
    "comment": "#",
    "quotechar": '"',
    "escapechar": "\\",
    "lineterminator": ";",
}
"""Options of `pandas.read_csv` that are one character, each with an example."""

_MAX_NAMES = 5
"""Largest number of columns that a note names."""


def csv_file(
    path: str,
    label: str | int,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    package: str = "",
    label_type: str = "auto",
    unlabelled: str = "refuse",
    **options: Any,
) -> tuple[pd.DataFrame, Any]:
    """Read a CSV file whose first line names the columns.

    In files with the suffix `.tsv` or `.tab`, plain or compressed, the separator is a tab. Empty cells, `NA`,
    `NaN` and the other texts of `pandas.read_csv` are missing values. A feature is numeric if all its values
    are numbers; a column with both `true` and `TRUE` stays text. A column without a name is not a feature if
    it is empty, or holds only row numbers or row names. UTF-16 and UTF-32 are recognised by their byte-order
    mark.

    Parameters
    ----------
    path : str
        Path of the file, plain or compressed; in a configuration, `${paths.data}/NAME.csv` is in the data
        folder.
    label : str or int
        Column of labels: its name, or its index from 0; negative indices count from the end.
    drop : sequence of str
        Columns that are not features, such as an identifier.
    categories : sequence of str
        Columns to convert to categories, for estimators that use the type of a column. Their values are
        numbers if `label_type: auto` would make them numbers.
    package : str
        Installed package that contains the file; `path` is relative to its folder. Empty for a path on disk.
    label_type : {"auto", "number", "text"}
        Type of labels. "auto" makes them numbers if each is written in the canonical form of its number (`1`
        and `0.5`; not `01`, `+1` or `1e3`), else all are text. "number" rejects two spellings of one number.
        "text" keeps the text of the file, `NA` included.
    unlabelled : {"refuse", "drop"}
        Whether rows without a label are an error, or are dropped with a note.
    **options
        Options of `pandas.read_csv`, such as `sep`, `encoding` or `na_values`. `sep="auto"` detects which of
        comma, semicolon, tab and bar separates the values.

    Returns
    -------
    X : DataFrame, shape (n, d)
        Features; the columns are named as in the file.
    y : array or Series, shape (n,)
        Class label of each row.

    Raises
    ------
    DatasetError
        If the package, file, option or column does not exist, or pandas cannot read the file. Also if two
        columns have one name, a line is longer than the first, the last line is truncated, or a row has no
        label and such rows are not dropped.
    """
    require_label_type(label_type)
    require_unlabelled(unlabelled)
    require_lists(drop=drop, categories=categories)
    _require_options(options, label)
    source, options = _source(path, package, options)
    names = _names(source, options)
    label = _named(label, names)
    if label not in names:
        raise DatasetError(_no_label(source, label, names, options))
    table = _read(source, options, label, [name for name in categories if name in names])
    _require_whole(source, table, options)
    labels, absent = _text_labels(table[label], label_type, options)
    location = partial(row_location, source, options)
    if absent.any() and unlabelled == REFUSE:
        raise DatasetError(_absent_labels(source, label, labels, absent, location))
    words = sorted({text for text in labels[absent] if isinstance(text, str)} - {""})
    without = unlabelled_note(label, absent, location, words)
    present = np.flatnonzero(~absent)
    if len(present) < len(absent):
        table, labels = (
            table.iloc[present].reset_index(drop=True),
            labels.iloc[present].reset_index(drop=True),
        )
    y = typed_labels(labels, label_type, lambda row: f"{source}, {location(int(present[row]))}")
    table[label] = y
    note = ""
    if has_header(options):
        table, note = without_unnamed(table, [label, *drop, *categories])
    X, y = split_table(table, source, label, drop, categories)
    title = _values_note(names, label, set(labels), options)
    X = with_text_reader(noted(X, title, note, without), partial(_reread, source, options, present))
    return X, y.to_numpy() if y.dtype.kind in "if" else y


def csv_table(path: str, package: str = "", **options: Any) -> pd.DataFrame:
    """Return the table of a CSV file with all its columns, as `csv_file` reads its features.

    Parameters
    ----------
    path : str
        Path of the file, plain or compressed.
    package : str
        Installed package that contains the file; `path` is relative to its folder. Empty for a path on disk.
    **options
        Options of `pandas.read_csv`.

    Raises
    ------
    DatasetError
        If the file does not exist, or pandas cannot read it.
    """
    source, options = _source(path, package, options)
    if hint := header_hint(source, options, len(_names(source, options))):
        raise DatasetError(hint)
    return _parsed(source, options, options)


def _source(path: str, package: str, options: Mapping[str, Any]) -> tuple[Path, dict[str, Any]]:
    """Return a file, and the options of `pandas.read_csv` with defaults that depend on it.

    Parameters
    ----------
    path : str
        Path of the file.
    package : str
        Installed package that contains the file; empty for a path on disk.
    options : mapping
        Options as configured.
    """
    source, found = existing_file(package_path(package, path) if package else path), dict(options)
    found["encoding"] = encoding_of(source, found.get("encoding"))
    suffixes = {suffix.lower() for suffix in source.suffixes[-2:]}
    is_auto = found.get("sep") == AUTO
    if {".tsv", ".tab"} & suffixes and (is_auto or not {"sep", "delimiter"} & found.keys()):
        found["sep"] = "\t"
    elif is_auto:
        found["sep"] = detected_separator(source, found["encoding"])
    if found.get("engine") != "pyarrow":
        found.setdefault("index_col", False)  # else pandas uses the first values of long rows as an index
    if _takes_whole_columns(found):
        found.setdefault("low_memory", False)  # else the type of a column may differ between pieces
    return source, found


def _require_options(options: Mapping[str, Any], label: Any) -> None:
    """Raise a DatasetError for an option that does not exist or that cannot be used here.

    Parameters
    ----------
    options : mapping
        Options of `pandas.read_csv`, as configured.
    label : object
        Column of labels, as configured.
    """
    known = [*inspect.signature(pd.read_csv).parameters][1:]
    for name in options:
        if name not in known:
            ours = ["path", "label", "drop", "categories", "package", "label_type", "unlabelled"]
            raise DatasetError(
                f"{name} is not an option of csv_file or pandas.read_csv{did_you_mean(name, [*ours, *known])}"
            )
    if isinstance(options.get("header"), bool):
        wanted = "0, for names in line 1" if options["header"] else "null, for a file that names no columns"
        raise DatasetError(f"header is {shown(options['header'])}; write header: {wanted}")
    for name, example in _CHARACTERS.items():
        value = options.get(name, example)
        is_unset = value is None and name != "decimal"
        if not is_unset and not (isinstance(value, str) and len(value) == 1):
            raise DatasetError(f"{name} is {shown(value)}; write one character, such as {name}: '{example}'")
    for name in ("sep", "delimiter"):
        if not isinstance(value := options.get(name, ","), str | None) or value == "":
            raise DatasetError(f"{name} is {shown(value)}; write a text, such as {name}: ';'")
    marks = {
        name: options[name] for name in ("decimal", "thousands", "sep", "delimiter") if options.get(name)
    }
    for (first, mark), (second, other) in combinations(marks.items(), 2):
        if mark == other and {first, second} != {"sep", "delimiter"}:
            raise DatasetError(f"{first} and {second} are both {shown(mark)}; write different characters")
    for name in ("chunksize", "iterator"):
        if options.get(name):
            raise DatasetError(f"{name} would read the table in pieces, which csv_file cannot use; remove it")
    for name in ("dtype", "converters"):
        if isinstance(options.get(name), Mapping) and label in options[name]:
            raise DatasetError(f"{name} names the label {label!r}; set label_type: number or text instead")


def _takes_whole_columns(options: Mapping[str, Any]) -> bool:
    """Return whether pandas uses the engine that may read a column in pieces of different types.

    Parameters
    ----------
    options : mapping
        Options of `pandas.read_csv`.
    """
    sep = options.get("sep", options.get("delimiter", ","))
    is_simple = isinstance(sep, str) and (len(sep) == 1 or sep == r"\s+")
    return is_simple and options.get("engine", "c") == "c" and not options.get("skipfooter")


def _names(source: Path, options: Mapping[str, Any]) -> list[Any]:
    """Return the names of the columns, or their indices if the file does not name them.

    Parameters
    ----------
    source : Path
        CSV file.
    options : mapping
        Options of `pandas.read_csv`, with `encoding`.
    """
    head = {name: value for name, value in options.items() if name not in ("skipfooter", "nrows")}
    if head.get("engine") == "pyarrow":  # it cannot read a part of a file
        head |= {"engine": "c"}
    return [*_parsed(source, head | {"nrows": 0}, options).columns]


def _parsed(source: Path, used: Mapping[str, Any], options: Mapping[str, Any]) -> pd.DataFrame:
    """Read the file with pandas, or raise a DatasetError that explains the failure.

    Parameters
    ----------
    source : Path
        CSV file.
    used : mapping
        Options for this call of `pandas.read_csv`.
    options : mapping
        Options as configured, for messages.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Length of header", pd.errors.ParserWarning)
            warnings.filterwarnings("ignore", "Both a converter and dtype", pd.errors.ParserWarning)
            if source.suffix.lower() != ".zst" or used.get("compression", "infer") != "infer":
                return pd.read_csv(source, **used)
            with opened(source) as file:
                return pd.read_csv(file, **used)
    except pd.errors.ParserWarning:
        location, line = long_line(source, options)
        title = f"; set skiprows: {line - 1} if line {line} names the columns" if line else ""
        raise DatasetError(
            f"{source}{location} has more values than there are names of columns; name each column, or set "
            f"index_col: 0 if the first values are only row numbers{title}"
        ) from None
    except UnicodeError:
        raise undecodable(source, options["encoding"]) from None
    except (*READ_ERRORS, TypeError, AttributeError) as error:
        hint = separator_hint(source, options, 1)
        raise DatasetError(
            f"cannot read {source}: {one_line(error)}; correct the file or the options of pandas.read_csv"
            f"{f' ({hint})' if hint else ''}"
        ) from error


def _no_label(source: Path, label: Any, names: list[Any], options: Mapping[str, Any]) -> str:
    """Return a message that explains why the column of labels does not exist.

    Parameters
    ----------
    source : Path
        CSV file.
    label : object
        Column of labels, as configured.
    names : list of object
        Names of the columns.
    options : mapping
        Options of `pandas.read_csv`, with `encoding`.
    """
    if hint := header_hint(source, options, len(names)):
        return hint
    known = [str(name) for name in names]
    found = did_you_mean(str(label), known) or f"; it has {', '.join(known[:20])}"
    first = _values_hint(names, options)
    quotes = "" if isinstance(label, str) else "; a name that YAML does not read as text needs quotes"
    return f"{source}{_first_line(options)} has no column {label!r}{found}{quotes}{first}; correct `label`"


def _values_hint(names: Sequence[Any], options: Mapping[str, Any]) -> str:
    """Return how to read a file whose line 1 seems to be a row; empty if it seems to name the columns.

    Parameters
    ----------
    names : sequence of object
        Names of the columns.
    options : mapping
        Options of `pandas.read_csv`.
    """
    if not has_header(options) or not looks_like_values(names):
        return ""
    return "; line 1 seems to hold values: set header: null, and label to a position from 0"


def _values_note(names: Sequence[Any], label: Any, labels: Set[str], options: Mapping[str, Any]) -> str:
    """Return a note that the names of the columns seem to be a row; empty if they do not.

    Parameters
    ----------
    names : sequence of object
        Names of the columns.
    label : object
        Name of the column of labels.
    labels : set of str
        Labels as text. There is a note only if one of them is also the name of their column.
    options : mapping
        Options of `pandas.read_csv`. With the key `header` there is no note.
    """
    hint = _values_hint(names, options)
    if not hint or "header" in options or str(label) not in labels:
        return ""
    listed = one_line(", ".join(map(str, names[:_MAX_NAMES])))
    return f"its columns are named {listed}, which may be a row that is not counted{hint}"


def _first_line(options: Mapping[str, Any]) -> str:
    """Return `, line 1,` if the columns are named there; empty if they may be named elsewhere.

    Parameters
    ----------
    options : mapping
        Options of `pandas.read_csv`.
    """
    return ", line 1," if has_header(options) and "skiprows" not in options else ""


def _named(label: Any, names: list[Any]) -> Any:
    """Return the name of the column that a label stands for.

    Parameters
    ----------
    label : object
        Name or index of a column.
    names : list of object
        Names of the columns.
    """
    is_name = str(label) in map(str, names)  # YAML reads some names as numbers
    if type(label) is int and not is_name and -len(names) <= label < len(names):
        return names[label]
    return label


def _read(source: Path, options: dict[str, Any], label: Any, categories: list[Any]) -> pd.DataFrame:
    """Read the table; labels, categories and truth values with several spellings are text.

    Parameters
    ----------
    source : Path
        CSV file.
    options : dict
        Options of `pandas.read_csv`.
    label : object
        Name of the column of labels.
    categories : list of object
        Names of the columns to convert to categories.
    """
    table = _parsed(source, _with_text(options, label, categories), options)
    truths = [name for name in table.columns if name != label and _is_truth(table[name])]
    if truths:
        again = _parsed(source, _with_text(options, label, [*categories, *truths]), options)
        spelt = [name for name in truths if again[name].nunique() > table[name].nunique()]
        table[spelt] = again[spelt]
    for name in categories:
        table[name] = typed_category(table[name])
    return table


def _reread(
    source: Path, options: dict[str, Any], present: NDArray[np.integer], name: Any, label_type: str
) -> Any:
    """Read a column again as text and convert it like `typed_labels`.

    The result is None if the options give the column a type, or a value is missing.

    Parameters
    ----------
    source : Path
        CSV file.
    options : dict
        Options of `pandas.read_csv`.
    present : int array
        Rows of the file that have a label, ascending.
    name : object
        Name of the column.
    label_type : {"auto", "number", "text"}
        Type of the values.
    """
    if any(name in _by_column(options, key) for key in ("dtype", "converters")):
        return None
    column = _parsed(source, options | {"dtype": _by_column(options, "dtype") | {name: str}}, options)[name]
    column = column.iloc[present].reset_index(drop=True)
    if column.isna().any():
        return None
    location = partial(row_location, source, options)
    return typed_labels(column, label_type, lambda row: f"{source}, {location(int(present[row]))}")


def _by_column(options: Mapping[str, Any], key: str) -> dict[Any, Any]:
    """Return an option as a mapping from columns; empty if it has one value for all columns.

    Parameters
    ----------
    options : mapping
        Options of `pandas.read_csv`.
    key : str
        Name of the option.
    """
    given = options.get(key)
    return dict(given) if isinstance(given, Mapping) else {}


def _with_text(options: dict[str, Any], label: Any, columns: list[Any]) -> dict[str, Any]:
    """Return options that make pandas read labels and some other columns as text.

    Parameters
    ----------
    options : dict
        Options of `pandas.read_csv`.
    label : object
        Name of the column of labels.
    columns : list of object
        Names of the other columns.
    """
    given = options.get("dtype")
    types = _by_column(options, "dtype") | dict.fromkeys(columns, str)
    if options.get("engine") == "pyarrow":  # it supports no converters
        return options | {"dtype": types | {label: str}}
    converters = dict(options.get("converters") or {}) | {label: _marked}
    return options | {"converters": converters} | ({"dtype": types} if types or given is None else {})


def _marked(text: str) -> str:
    """Return a label with its prefix.

    Parameters
    ----------
    text : str
        Label as in the file.
    """
    return _MARK + text


def _is_truth(column: pd.Series) -> bool:
    """Return whether a column contains truth values, and possibly missing values.

    Parameters
    ----------
    column : Series, shape (n,)
        Column to check.
    """
    if column.dtype == bool:
        return True
    return column.dtype == object and bool(column.dropna().map(lambda value: isinstance(value, bool)).all())


def _require_whole(source: Path, table: pd.DataFrame, options: Mapping[str, Any]) -> None:
    """Raise a DatasetError if the table has duplicate columns, a truncated last line or no rows.

    Parameters
    ----------
    source : Path
        CSV file.
    table : DataFrame
        Table as pandas read it.
    options : mapping
        Options of `pandas.read_csv`, with `encoding`.
    """
    if twice := named_twice(source, table, options):
        raise DatasetError(
            f"{source}{_first_line(options)} has two columns {twice[0]!r}; give each column a different name"
            f"{_values_hint([*table.columns], options)}"
        )
    if is_cut(source, table.shape[1], options):
        last = sum(1 for _ in decoded_lines(source, options["encoding"]))
        raise DatasetError(
            f"{source}, line {last}, is incomplete, as after an interrupted copy; copy the file again, or "
            "complete the line"
        )
    if table.empty:
        raise DatasetError(f"{source} has no rows after the names of its columns; fetch or copy it again")


def _text_labels(
    column: pd.Series, label_type: str, options: Mapping[str, Any]
) -> tuple[pd.Series, NDArray[np.bool_]]:
    """Return the labels as text, and whether each is missing.

    Parameters
    ----------
    column : Series, shape (n,)
        Labels as read, with their prefix.
    label_type : {"auto", "number", "text"}
        Type to which labels are converted; see `LABEL_TYPES`.
    options : mapping
        Options of `pandas.read_csv`.
    """
    texts = column.where(column.notna(), _MARK) if options.get("engine") != "pyarrow" else _MARK + column
    texts = texts.fillna(_MARK).astype(object).str.removeprefix(_MARK)
    missing = {""} if label_type == TEXT else _missing_texts(options, column.name)
    return texts, texts.isin([*missing]).to_numpy()


def _absent_labels(
    source: Path, label: Any, texts: pd.Series, absent: NDArray[np.bool_], location: Callable[[int], str]
) -> str:
    """Return a message that names the line of the first missing label.

    Parameters
    ----------
    source : Path
        CSV file.
    label : object
        Name of the column of labels.
    texts : Series, shape (n,)
        Labels as text.
    absent : bool array, shape (n,)
        Whether each label is missing.
    location : callable
        Function from the index of a row to its location.
    """
    row = int(absent.argmax())
    found = texts.iloc[row]
    keep = "" if found == "" else f", or set label_type: {TEXT} if {found} is the name of a class"
    what = f"the text {found}, which stands for a missing value" if found else "none"
    return (
        f"{source}, {location(row)}: expected a label in column {label!r}, found {what}; drop "
        f"rows without a label (there are {int(absent.sum()):,}) by unlabelled: drop{keep}"
    )


def _missing_texts(options: Mapping[str, Any], label: Any) -> set[str]:
    """Return the texts that denote a missing label, by the rules of `pandas.read_csv`.

    Parameters
    ----------
    options : mapping
        Options of `pandas.read_csv`.
    label : object
        Name of the column of labels.
    """
    if not options.get("na_filter", True):
        return {""}
    given = options.get("na_values", ())
    if isinstance(given, Mapping):
        given = given.get(label, ())
    given = [] if given is None else [given] if isinstance(given, (str, int, float)) else given
    known = STR_NA_VALUES if options.get("keep_default_na", True) else ()
    return {"", *map(str, given), *known}
