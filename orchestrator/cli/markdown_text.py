"""Markdown on a terminal; apart, for importing rich's parser takes half as long as `svmbench --help`."""

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.table import Table

_LEAST = 10
"""Columns of the terminal that a text is left at least."""


class _WholeTable(TableElement):
    """A table of a Markdown text whose words are broken rather than cut where a column is too narrow."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                _fold(table, options.max_width)
            yield table


def _fold(table: Table, width: int) -> None:
    """Let texts be broken to fit, and numbers only where these alone leave no room for texts."""
    for column in table.columns:
        column.overflow = "fold"
    numbers = [column for column in table.columns if getattr(column.header, "justify", "") == "right"]
    taken = sum(max(len(str(cell)) for cell in (column.header, *column.cells)) for column in numbers)
    padding = 2 * len(table.columns) + 2
    n_texts = len(table.columns) - len(numbers)
    if taken + padding + _LEAST * n_texts <= width:
        for column in numbers:
            column.no_wrap = True


class MarkdownText(Markdown):
    """Markdown for a terminal, nothing of it cut."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "table_open": _WholeTable}
