"""Layout of a CSV file: separators, truncated or duplicated parts, and the line of each row."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from orchestrator.datasets.encodings import decoded_lines, first_lines
from orchestrator.datasets.files import READ_ERRORS
from orchestrator.datasets.table import may_be_renamed

COMPRESSED = (".gz", ".bz2", ".zip", ".xz", ".zst", ".tar")
"""Suffixes from which pandas infers a compression."""

LAYOUT = (
    *("sep", "delimiter", "skipinitialspace", "skiprows", "skip_blank_lines", "comment", "compression"),
    *("quotechar", "quoting", "doublequote", "escapechar", "encoding", "engine"),
)
"""Options that select the first line and split it into names."""

_TAIL = 1 << 16
"""Size of the tail that is searched for the last line, in bytes: a multiple of the width of a character."""

_SNIFFED = 20
"""Number of lines from which a separator is detected."""

_SEPARATORS = (";", "\t", "|", ",", ":")
"""Possible separators, in the order in which they are suggested."""

Options = Mapping[str, Any]


def separator_hint(path: Path, options: Options, width: int) -> str:
    """Return a message that suggests another separator; empty if none seems better.

    Parameters
    ----------
    path : Path
        CSV file.
    options : mapping
        Options of `pandas.read_csv`, with `encoding`.
    width : int
        Number of columns with the present separator.
    """
    skipped = options.get("skiprows", 0)
    if width > 1 or type(skipped) is not int or path.suffix in (".zip", ".zst", ".tar"):
        return ""
    lines = first_lines(path, options["encoding"], skipped + 3)[skipped:]
    for mark in _SEPARATORS:
        counts = [line.count(mark) for line in lines if line.strip()]
        if mark != options.get("sep", options.get("delimiter", ",")) and counts and min(counts) > 0:
            written = '"\\t"' if mark == "\t" else f'"{mark}"'
            return (
                f"{path}, line {skipped + 1}: expected several columns, found one with {counts[0]} {written} "
                f"in it; write sep: {written}"
            )
    words = {len(line.split()) for line in lines if line.strip()}
    if len(words) == 1 and 1 not in words and "\\s" not in str(options.get("sep")):
        return (
            f"{path}, line {skipped + 1}: expected several columns, found one with spaces in it; "
            "write sep: '\\s+'"
        )
    return ""


def header_hint(path: Path, options: Options, width: int) -> str:
    """Return a message that suggests how to read the names of columns; empty if they seem to be read.

    Parameters
    ----------
    path : Path
        CSV file.
    options : mapping
        Options of `pandas.read_csv`, with `encoding`.
    width : int
        Number of columns that the first line names.
    """
    return separator_hint(path, options, width) or _title_hint(path, options, width)


def _title_hint(path: Path, options: Options, width: int) -> str:
    """Return a message that suggests to skip lines of a title or comment; empty if there seem to be none.

    Parameters
    ----------
    path : Path
        CSV file.
    options : mapping
        Options of `pandas.read_csv`, with `encoding`.
    width : int
        Number of columns that the first line names.
    """
    line = long_line(path, options)[1] if width == 1 and has_header(options) else 0
    if not line:
        return ""
    return (
        f"{path}, line 1: expected several names of columns, found one; set skiprows: {line - 1} if line "
        f"{line} names the columns"
    )


def detected_separator(path: Path, encoding: str) -> str:
    """Return the separator that splits the first lines of a file most evenly; a comma if none does.

    Parameters
    ----------
    path : Path
        CSV file.
    encoding : str
        Its character encoding.
    """
    lines = [line for line in first_lines(path, encoding, _SNIFFED) if line.strip()]
    best, found = (0.0, 1), ","
    if not lines:
        return found
    for mark in (",", ";", "\t", "|"):
        with suppress(csv.Error):
            widths = [len(record) for record in csv.reader(lines, delimiter=mark)]
            even = sum(width == widths[0] for width in widths) / len(widths)
            if widths[0] > 1 and (even, widths[0]) > best:
                best, found = (even, widths[0]), mark
    return found


def is_cut(path: Path, width: int, options: Options) -> bool:
    """Return whether the last line has no line end and too few values.

    pandas would read the absent values as missing.

    Parameters
    ----------
    path : Path
        CSV file.
    width : int
        Number of values in a complete line.
    options : mapping
        Options of `pandas.read_csv`, with `encoding`.
    """
    sep = options.get("sep", options.get("delimiter", ","))
    unsupported = {"comment", "compression", "nrows", "skipfooter"} & options.keys()
    if not isinstance(sep, str) or len(sep) > 1 or unsupported or path.suffix in COMPRESSED:
        return False
    size = path.stat().st_size
    with path.open("rb") as file:
        mark = file.read(4)
        file.seek(max(0, size - _TAIL - size % 4))
        tail = file.read()
    codec = options["encoding"]
    if codec in ("utf-16", "utf-32"):  # the byte-order mark is not in the tail
        codec += "-be" if mark.startswith((b"\xfe\xff", b"\0\0")) else "-le"
    _, end, last = tail.decode(codec, "replace").rpartition("\n")
    return bool(end and last.strip()) and '"' not in last and last.count(sep) < width - 1


def named_twice(path: Path, table: pd.DataFrame, options: Options) -> list[str]:
    """Return the column names that occur twice in the first line.

    pandas renames the second occurrence to `NAME.1`.

    Parameters
    ----------
    path : Path
        CSV file.
    table : DataFrame
        Table as pandas read it.
    options : mapping
        Options of `pandas.read_csv`.
    """
    if not may_be_renamed(table.columns) or not has_header(options):
        return []
    layout = {name: value for name, value in options.items() if name in LAYOUT}
    first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **layout).loc[0]
    return [name for name in first[first.duplicated()] if name]


def has_header(options: Options) -> bool:
    """Return whether one line of the file names the columns.

    Parameters
    ----------
    options : mapping
        Options of `pandas.read_csv`.
    """
    return options.get("names") is None and options.get("header", "infer") in ("infer", 0)


def row_location(path: Path, options: Options, row: int) -> str:
    """Return the location of a row for a message: its line if it can be determined, else its index.

    Parameters
    ----------
    path : Path
        CSV file.
    options : mapping
        Options of `pandas.read_csv`, with `encoding`.
    row : int
        Index of the row in the table, from 0.
    """
    first = -1 if has_header(options) else 0
    found = next((line for at, (line, _) in enumerate(_records(path, options), first) if at == row), None)
    return f"row {row} (from 0)" if found is None else f"line {found}"


def long_line(path: Path, options: Options) -> tuple[str, int]:
    """Return `, line 7,` for the first line with more values than line 1; empty if there is none.

    The second value is its number if line 1 has a single value, as a title has, else 0.

    Parameters
    ----------
    path : Path
        CSV file.
    options : mapping
        Options of `pandas.read_csv`, with `encoding`.
    """
    records = _records(path, options)
    _, width = next(records, (1, 0))
    found = next((line for line, values in records if values > width), None)
    if found is None:
        return "", 0
    return f", line {found},", found if width == 1 else 0


def _records(path: Path, options: Options) -> Iterator[tuple[int, int]]:
    """Yield the line and the number of values of each record; nothing if lines cannot be determined.

    Parameters
    ----------
    path : Path
        CSV file.
    options : mapping
        Options of `pandas.read_csv`, with `encoding`.

    Yields
    ------
    tuple of (int, int)
        Line, from 1, and number of values.
    """
    sep = options.get("sep", options.get("delimiter", ","))
    special = {"comment", "escapechar", "quoting", "skip_blank_lines", "compression"} & options.keys()
    known = isinstance(sep, str) and len(sep) == 1 and type(options.get("skiprows", 0)) is int
    if known and not special and path.suffix not in (".zip", ".zst", ".tar"):
        with suppress(*READ_ERRORS, csv.Error):
            yield from _csv_records(path, options, sep)


def _csv_records(path: Path, options: Options, sep: str) -> Iterator[tuple[int, int]]:
    """Yield the first line and the number of values of each record that is not blank.

    Parameters
    ----------
    path : Path
        CSV file.
    options : mapping
        Options of `pandas.read_csv`, with `encoding`.
    sep : str
        Separator, one character.

    Yields
    ------
    tuple of (int, int)
        Line, from 1, and number of values.
    """
    skipped = options.get("skiprows", 0)
    lines = decoded_lines(path, options["encoding"])
    for _ in range(skipped):
        next(lines, "")
    reader = csv.reader(lines, delimiter=sep, quotechar=options.get("quotechar", '"'))
    before = 0
    for record in reader:
        if len(record) > 1 or (record and record[0].strip()):
            yield skipped + before + 1, len(record)
        before = reader.line_num


def looks_like_values(names: Sequence[Any]) -> bool:
    """Return whether column names seem to be the values of a first row: most of them are numbers.

    Parameters
    ----------
    names : sequence of object
        Names of the columns.
    """
    numbers = 0
    for name in map(str, names):
        try:
            float(name)
            numbers += 1
        except ValueError:
            continue
    return numbers > len(names) / 2
