"""A printed table, with the numbers that it was printed from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.report.format import MISSING

ROWS_SHOWN = 400
"""Largest number of rows that a page or a LaTeX file shows of a table."""

SHADES = 5
"""Number of shades of a cell in either direction."""


@dataclass(frozen=True)
class Cell:
    """A printed value.

    Attributes
    ----------
    text : str
        Text of one line or several.
    strong : bool
        Set in bold.
    tone : {"", "good", "warn", "bad", "quiet"}
        Colour of the cell. The text must contain the same information.
    shade : int
        From −`SHADES` to `SHADES`: how far the number in the cell lies below or above zero.
    """

    text: str
    strong: bool = False
    tone: str = ""
    shade: int = 0


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes
    ----------
    name : str
        Stem of its files.
    title, caption : str
        Its content, and the meaning of each of its numbers.
    header : sequence of str
        Headings of the columns.
    rows : sequence of sequence of Cell
        The printed cells.
    data : DataFrame
        The numbers with all their digits, in a long form for programs.
    text_columns : int
        Number of leading columns that hold text and are set flush left.
    last_is_text : bool
        Whether the last column holds text too.
    """

    name: str
    title: str
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    data: pd.DataFrame = field(repr=False)
    text_columns: int = 1
    last_is_text: bool = False

    @property
    def is_grouped(self) -> bool:
        """Whether only the first row of a group has its heading."""
        return self.text_columns == 2 and any(not row[0].text for row in self.rows)

    def is_text(self, column: int) -> bool:
        """Whether a column holds text.

        Parameters
        ----------
        column : int
            Index of a column.
        """
        return column < self.text_columns or (self.last_is_text and column == len(self.header) - 1)


Row = dict[str, Any]
Printer = Callable[[Row], Cell | str]
Columns = Mapping[str, Printer]
"""The heading of each column, and the function that prints its cell of a row."""


def print_table(
    name: str,
    title: str,
    data: pd.DataFrame,
    columns: Columns,
    *,
    rows: Sequence[Row] | None = None,
    caption: str = "",
    text_columns: int = 1,
    last_is_text: bool = False,
) -> Table:
    """Print rows, by default those of `data`, and state in the caption if not all of them are shown.

    Parameters
    ----------
    name : str
        Stem of the files of the table.
    title : str
        Title of the table.
    data : DataFrame
        The numbers, in a long form for programs.
    columns : mapping of str to callable
        Headings, and the functions that print their cells.
    rows : sequence of dict, optional
        The rows to print; those of `data` by default.
    caption : str, default=''
        Meaning of each number.
    text_columns : int, default=1
        Number of leading columns that hold text.
    last_is_text : bool, default=False
        Whether the last column holds text.
    """
    rows = records(data) if rows is None else rows
    cut = f" The first {ROWS_SHOWN} of {len(rows):,} rows are shown. tables/{name}.csv contains all numbers."
    cells = [[printed(row) for printed in columns.values()] for row in rows[:ROWS_SHOWN]]
    return Table(
        name=name,
        title=title,
        caption=caption + (cut if len(rows) > ROWS_SHOWN else ""),
        header=list(columns),
        rows=[[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in cells],
        data=data,
        text_columns=text_columns,
        last_is_text=last_is_text,
    )


def records(frame: pd.DataFrame) -> list[Row]:
    """Return a frame's rows as dictionaries, as `DataFrame.to_dict` does in several times the time.

    Parameters
    ----------
    frame : DataFrame
        Table whose rows are wanted.
    """
    names = list(map(str, frame))
    columns = [_values(frame.iloc[:, index]) for index in range(len(names))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: "pd.Series[Any]") -> list[Any]:
    """Return the values of a column as types of Python.

    Parameters
    ----------
    column : Series
        A column of a frame.
    """
    values: list[Any] = column.tolist()
    if isinstance(column.dtype, np.dtype) and column.dtype != object:
        return values
    plain = (value.item() if isinstance(value, np.generic) else value for value in values)
    return [None if value is pd.NA else value for value in plain]


def lower_bound(text: str, row: Row) -> str:
    """Print a mean cost, as a lower bound if some of the refits were stopped.

    Parameters
    ----------
    text : str
        The mean, as it is printed without a bound.
    row : dict
        The field n_stopped.

    Returns
    -------
    str
        The text, perhaps after `≥`.
    """
    return f"≥ {text}" if row["n_stopped"] and text != MISSING else text
