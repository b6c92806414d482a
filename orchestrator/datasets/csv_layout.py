"""How the lines of a CSV file are divided: what is wrong with it, and where in the file a row is."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from orchestrator.datasets.encodings import decoded_lines, first_lines
from orchestrator.datasets.files import READ_ERRORS

COMPRESSED = (".gz", ".bz2", ".zip", ".xz", ".zst", ".tar")
"""The endings from which pandas knows a compression."""

LAYOUT = (
    *("sep", "delimiter", "skipinitialspace", "skiprows", "skip_blank_lines", "comment", "compression"),
    *("quotechar", "quoting", "doublequote", "escapechar", "encoding", "engine"),
)
"""The options that say where the first line is and how it is divided."""

_TAIL = 1 << 16
"""Bytes in which the last line is looked for; a multiple of the bytes of a character."""

_SEPARATORS = (";", "\t", "|", ",", ":")
"""Characters that may divide lines, in the order in which they are suggested."""

Options = Mapping[str, Any]


def separator_hint(path: Path, options: Options, width: int) -> str:
    """Return which separator a file seems to have instead of the one it was read with; perhaps nothing.

    Parameters
    ----------
    path : Path
    options : mapping
        Those of pandas.read_csv, with `encoding`.
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
    return ""


def is_cut(path: Path, width: int, options: Options) -> bool:
    """Return whether the last line has no end and too few values, which pandas takes for missing ones.

    Parameters
    ----------
    path : Path
    width : int
        Number of values in a whole line.
    options : mapping
        Those of pandas.read_csv, with `encoding`.
    """
    sep = options.get("sep", options.get("delimiter", ","))
    elsewhere = {"comment", "compression", "nrows", "skipfooter"} & options.keys()
    if not isinstance(sep, str) or len(sep) > 1 or elsewhere or path.suffix in COMPRESSED:
        return False
    size = path.stat().st_size
    with path.open("rb") as file:
        mark = file.read(4)
        file.seek(max(0, size - _TAIL - size % 4))
        tail = file.read()
    codec = options["encoding"]
    if codec in ("utf-16", "utf-32"):  # of the order that the mark says, which is not in the tail
        codec += "-be" if mark.startswith((b"\xfe\xff", b"\0\0")) else "-le"
    _, end, last = tail.decode(codec, "replace").rpartition("\n")
    return bool(end and last.strip()) and '"' not in last and last.count(sep) < width - 1


def named_twice(path: Path, table: pd.DataFrame, options: Options) -> list[str]:
    """Return the names that stand twice in the first line, of which pandas calls the second `NAME.1`."""
    names = {str(name) for name in table.columns}
    renamed = any(name.rpartition(".")[2].isdigit() and name.rpartition(".")[0] in names for name in names)
    if not renamed or not has_header(options):
        return []
    layout = {name: value for name, value in options.items() if name in LAYOUT}
    first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **layout).loc[0]
    return [name for name in first[first.duplicated()] if name]


def has_header(options: Options) -> bool:
    """Return whether one line names the columns."""
    return options.get("names") is None and options.get("header", "infer") in ("infer", 0)


def place_of(path: Path, options: Options, row: int) -> str:
    """Return where a row is in a file, for a message: its line where that can be told, else its number.

    Parameters
    ----------
    path : Path
    options : mapping
        Those of pandas.read_csv, with `encoding`.
    row : int
        Position of the row in the table, from 0.
    """
    first = -1 if has_header(options) else 0
    found = next((line for at, (line, _) in enumerate(_records(path, options), first) if at == row), None)
    return f"row {row} (from 0)" if found is None else f"line {found}"


def long_line(path: Path, options: Options) -> str:
    """Return `, line 7,` for the first line with more values than the first has; perhaps nothing.

    Parameters
    ----------
    path : Path
    options : mapping
        Those of pandas.read_csv, with `encoding`.
    """
    records = _records(path, options)
    _, width = next(records, (1, 0))
    found = next((line for line, values in records if values > width), None)
    return "" if found is None else f", line {found},"


def _records(path: Path, options: Options) -> Iterator[tuple[int, int]]:
    """Yield the line and the number of values of each record; none where lines cannot be told."""
    sep = options.get("sep", options.get("delimiter", ","))
    special = {"comment", "escapechar", "quoting", "skip_blank_lines", "compression"} & options.keys()
    known = isinstance(sep, str) and len(sep) == 1 and type(options.get("skiprows", 0)) is int
    if known and not special and path.suffix not in (".zip", ".zst", ".tar"):
        with suppress(*READ_ERRORS, csv.Error):
            yield from _csv_records(path, options, sep)


def _csv_records(path: Path, options: Options, sep: str) -> Iterator[tuple[int, int]]:
    """Yield the line on which each record begins that is not blank, and its number of values."""
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
    """Return whether the names of the columns seem to be the values of a first row."""
    numbers = 0
    for name in map(str, names):
        try:
            float(name)
            numbers += 1
        except ValueError:
            continue
    return numbers > len(names) / 2
