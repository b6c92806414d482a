"""A section of a report, and its possible parts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.report.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Section:
    """A section of a report: a title, and content with captions.

    Attributes
    ----------
    title : str
        Heading of the section.
    caption : str
        Explains how to read the content. It is empty where each part of the content has its own caption.
    content : DataFrame, matplotlib Figure, str or sequence of Part
        A table, a figure, a text whose paragraphs are separated by empty lines, or several parts.
    link : str
        Name of the section in the contents of the page; by default the title.
    needs_scores : bool
        Whether the page leaves the section out until some refit has a score.
    """

    title: str
    caption: str
    content: Any
    link: str = ""
    needs_scores: bool = False


SectionFunction = Callable[[Findings], Section | None]
"""A function of a study, as `analyse` returns it. It returns None if the section does not apply."""


@dataclass(frozen=True)
class Drawn:
    """A figure as documents.

    Attributes
    ----------
    svg : str
        SVG document.
    pdf : bytes
        PDF document; empty for a figure that is higher than `HIGHEST_PDF`.
    data : DataFrame or None
        The rows that the figure shows; None for a figure of a user's section.
    """

    svg: str
    pdf: bytes
    data: pd.DataFrame | None = None


@dataclass(frozen=True)
class Drawing:
    """A figure of the page.

    Attributes
    ----------
    name : str
        Stem of its files.
    caption : str
        Explains how to read it.
    draw : callable
        Returns the figure; it is called when the report is written.
    data : DataFrame or None
        The rows that the figure shows.
    """

    name: str
    caption: str
    draw: "Callable[[], Figure]"
    data: pd.DataFrame | None = None


@dataclass(frozen=True)
class Heading:
    """A title within a section."""

    text: str


@dataclass(frozen=True)
class Terms:
    """Terms and their explanations."""

    texts: Mapping[str, str]


@dataclass(frozen=True)
class Paragraph:
    """A text, in small type if it explains other content."""

    text: str
    small: bool = False


@dataclass(frozen=True)
class Glance:
    """A table that is shown before its caption."""

    table: Table


@dataclass(frozen=True)
class Fold:
    """Details that are shown on demand, and always when the page is printed."""

    summary: str
    parts: Sequence["Part"]


Part = Table | Drawing | Heading | Terms | Paragraph | Glance | Fold

FOLD_FROM = 40
"""Smallest number of dataset × arm from which details about each of them are folded."""


def titled(table: Table | None) -> list[Part]:
    """Return a table under its title; nothing without a table.

    Parameters
    ----------
    table : Table or None
        The table to show.

    Returns
    -------
    list of Part
        A heading and the table.
    """
    return [] if table is None else [Heading(table.title), table]


def folded(study: Findings, summary: str, parts: Sequence[Part]) -> Sequence[Part]:
    """Return parts about each dataset × arm, folded away if there are at least `FOLD_FROM` of them.

    Parameters
    ----------
    study : Findings
        The study of the report.
    summary : str
        Text that a reader clicks to see the parts.
    parts : sequence of Part
        The parts to fold.

    Returns
    -------
    sequence of Part
        The parts, or one `Fold` that holds them.
    """
    return [Fold(summary, parts)] if len(study.design.pairs) >= FOLD_FROM else parts


def flat(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield all parts, those inside of folds and glances in their place.

    Parameters
    ----------
    parts : iterable of Part
        The content of a section.

    Yields
    ------
    Part
        No `Fold` and no `Glance`.
    """
    for part in parts:
        if isinstance(part, Fold):
            yield from flat(part.parts)
        else:
            yield part.table if isinstance(part, Glance) else part
