"""Datasets from CSV files."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.files import READ_ERRORS, package_path
from orchestrator.datasets.table import split_table
from orchestrator.study.text import one_line

COMPRESSED = (".gz", ".bz2", ".zip", ".xz", ".zst", ".tar")
"""The endings from which pandas knows a compression."""

TAIL = 1 << 16
"""Bytes in which the last line is looked for."""


def csv_file(
    path: str,
    label: str | int,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    package: str = "",
    **options: Any,
) -> tuple[pd.DataFrame, pd.Series]:
    """Read a table whose first line names the columns.

    In files that end in `.tsv` or `.tab`, perhaps with the ending of a compression, tabs divide the columns.
    Empty cells, `NA`, `NaN` and the like are missing values, as `pandas.read_csv` says.

    Parameters
    ----------
    path : str
        The file, perhaps compressed; in a configuration, `${paths.data}/NAME.csv` is in the data folder.
    label : str or int
        The column of labels: its name, or its position from 0, below 0 from the end.
    drop : sequence of str
        Columns that are no features, such as an identifier.
    categories : sequence of str
        Columns to make categorical, for estimators that look at the type of a column.
    package : str
        The installed package that holds the file; `path` begins at its folder.
    **options
        Of `pandas.read_csv`, such as `sep` or `na_values`.

    Returns
    -------
    X : DataFrame, shape (n, d)
    y : Series, shape (n,)

    Raises
    ------
    DatasetError
        If there is no such package, file or column, two columns have one name, lines are longer than the
        first, the last one is cut, or pandas cannot read it.
    """
    if {".tsv", ".tab"} & {*Path(path).suffixes[-2:]} and not {"sep", "delimiter"} & options.keys():
        options["sep"] = "\t"
    if options.get("engine") != "pyarrow":
        options.setdefault("index_col", False)  # or pandas takes the first values for names of longer rows
    place = package_path(package, path) if package else Path(path).expanduser()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Length of header", pd.errors.ParserWarning)
            table = pd.read_csv(place, **options)
        twice = _named_twice(place, table, options)
    except FileNotFoundError:
        raise DatasetError(f"there is no file {path}; correct `path`") from None
    except pd.errors.ParserWarning:
        raise DatasetError(
            f"{path} has lines with more values than there are names of columns; name each column, or set "
            "index_col: 0 if the first values only number the rows"
        ) from None
    except (*READ_ERRORS, TypeError) as error:
        raise DatasetError(
            f"cannot read {path}: {one_line(error)}; correct the file or the options of pandas.read_csv"
        ) from error
    if not isinstance(table, pd.DataFrame):
        raise DatasetError(f"{path} was read in pieces; leave out `chunksize` and `iterator`")
    if twice:
        raise DatasetError(f"{path} has two columns {twice[0]!r}; give each column a name of its own")
    if _is_cut(place, table.shape[1], options):
        raise DatasetError(
            f"{path} ends in the middle of a line, as after a broken copy; copy it again, or mend the line"
        )
    return split_table(table, path, _named(label, table), drop, categories)


def _is_cut(path: Path, width: int, options: Mapping[str, Any]) -> bool:
    """Whether the last line of a file has no end and too few values, which pandas takes for missing ones."""
    sep = options.get("sep", options.get("delimiter", ","))
    elsewhere = {"comment", "compression", "nrows", "skipfooter"} & options.keys()
    if not isinstance(sep, str) or len(sep) > 1 or elsewhere or path.suffix in COMPRESSED:
        return False
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        _, end, last = file.read().rpartition(b"\n")
    return bool(end and last.strip()) and b'"' not in last and last.count(sep.encode()) < width - 1


def _named(label: Any, table: pd.DataFrame) -> Any:
    """Return the name of a column that a position may stand for."""
    width = table.shape[1]
    is_name = str(label) in map(str, table.columns)  # perhaps one that YAML does not read as text
    return label if type(label) is not int or is_name or not -width <= label < width else table.columns[label]


LAYOUT = (
    *("sep", "delimiter", "skipinitialspace", "skiprows", "skip_blank_lines", "comment", "compression"),
    *("quotechar", "quoting", "doublequote", "escapechar", "encoding", "engine"),
)
"""The options that say where the first line is and how it is divided."""


def _named_twice(path: Path, table: Any, options: Mapping[str, Any]) -> list[str]:
    """Return the names that stand twice in the first line, of which pandas calls the second `NAME.1`."""
    names = {str(name) for name in getattr(table, "columns", ())}
    renamed = any(name.rpartition(".")[2].isdigit() and name.rpartition(".")[0] in names for name in names)
    if not renamed or options.get("names") is not None or options.get("header", "infer") not in ("infer", 0):
        return []
    layout = {name: value for name, value in options.items() if name in LAYOUT}
    first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **layout).loc[0]
    return list(first[first.duplicated()])
