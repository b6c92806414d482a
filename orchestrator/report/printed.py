"""A table as printed, beside the numbers it was printed from."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pandas as pd


@dataclass(frozen=True)
class Cell:
    """A printed value.

    Attributes
    ----------
    text : str
    strong : bool
        Set in bold.
    tone : {"", "good", "warn", "bad", "quiet"}
        Colour of the cell; the text alone must tell as much.
    """

    text: str
    strong: bool = False
    tone: str = ""


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes
    ----------
    name : str
        Stem of its files.
    title, caption : str
        What it shows, and how each of its numbers is to be read.
    header : sequence of str
    rows : sequence of sequence of Cell
    data : DataFrame
        The unrounded numbers, in a long form for programs.
    text_columns : int
        How many leading columns hold words and are set flush left.
    last_is_text : bool
        Whether the last column holds words too.
    """

    name: str
    title: str
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    data: pd.DataFrame = field(repr=False)
    text_columns: int = 1
    last_is_text: bool = False

    def is_text(self, column: int) -> bool:
        """Whether a column holds words."""
        return column < self.text_columns or (self.last_is_text and column == len(self.header) - 1)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a frame's rows as dictionaries."""
    return cast(list[dict[str, Any]], frame.to_dict("records"))
