"""Markdown on a terminal; apart, for importing rich's parser takes half as long as `svmbench --help`."""

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.table import Table


class _WholeTable(TableElement):
    """A table of a Markdown text whose words are broken rather than cut where a column is too narrow."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                for column in table.columns:
                    column.overflow = "fold"
            yield table


class MarkdownText(Markdown):
    """Markdown for a terminal, nothing of it cut."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "table_open": _WholeTable}
