"""Markdown on a terminal.

It has a module of its own, because importing rich's parser takes half as long as `svmbench --help`.
"""

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.table import Table

_MIN_TEXT_WIDTH = 10
"""Smallest width of a column of texts, in characters."""


class _WholeTable(TableElement):
    """Table of a Markdown text in which long words are wrapped instead of cut."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                _fold(table, options.max_width)
            yield table


def _fold(table: Table, width: int) -> None:
    """Allow all columns to wrap, except for numbers if enough width remains for texts.

    Parameters
    ----------
    table : Table
        The table. Its columns are changed.
    width : int
        Width of the terminal, in characters.
    """
    for column in table.columns:
        column.overflow = "fold"
    numbers = [column for column in table.columns if getattr(column.header, "justify", "") == "right"]
    taken = sum(max(len(str(cell)) for cell in (column.header, *column.cells)) for column in numbers)
    padding = 2 * len(table.columns) + 2
    n_texts = len(table.columns) - len(numbers)
    if taken + padding + _MIN_TEXT_WIDTH * n_texts <= width:
        for column in numbers:
            column.no_wrap = True


class MarkdownText(Markdown):
    """Markdown for a terminal, without truncation of tables."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "table_open": _WholeTable}
