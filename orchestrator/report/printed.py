"""Sections as a page and its files show them: built-in sections, and those of users.

Users name their sections on the command line or in their own configuration, never in a study's folder.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from orchestrator.analysis.findings import Findings
from orchestrator.isolation.exits import exits_raised
from orchestrator.report import format as fmt
from orchestrator.report.figures import STYLE_SHEET, documents
from orchestrator.report.section import Drawing, Drawn, Paragraph, Part, Section, SectionFunction, flat
from orchestrator.report.table import Cell, Table, print_table
from orchestrator.study.targets import resolve
from orchestrator.study.text import error_line


@dataclass(frozen=True)
class PrintedSection:
    """A section as the page and its files show it.

    Attributes
    ----------
    name : str
        Name of the section in the report's files: the name of the module of a built-in section, or the dotted
        path of a user's function.
    anchor : str
        Identifier of the heading in the page.
    title : str
        Heading of the section.
    link : str
        Name of the section in the contents of the page.
    parts : sequence of Part
        The content, each part with its caption.
    caption : str
        Caption of the whole section.
    figures : dict of str to Drawn
        The figures of a user's section, which are drawn with it.
    needs_scores : bool
        Whether the page leaves the section out until some refit has a score.
    is_folded : bool
        Whether the page shows only the title until a reader opens the section.
    """

    name: str
    anchor: str
    title: str
    link: str
    parts: Sequence[Part]
    caption: str = ""
    figures: dict[str, Drawn] = field(default_factory=dict)
    needs_scores: bool = False
    is_folded: bool = False

    @property
    def tables(self) -> dict[str, Table]:
        """The tables by name, in the order of the section."""
        return {part.name: part for part in flat(self.parts) if isinstance(part, Table)}

    @property
    def drawings(self) -> list[Drawing]:
        """The figures in the order of the section."""
        return [part for part in flat(self.parts) if isinstance(part, Drawing)]

    @property
    def paragraphs(self) -> list[str]:
        """The texts of the section, without explanations."""
        return [part.text for part in flat(self.parts) if isinstance(part, Paragraph) and not part.small]


def printed(name: str, anchor: str, section: Section) -> PrintedSection:
    """Print a section.

    Parameters
    ----------
    name : str
        Name of the section in the report's files.
    anchor : str
        Identifier of its heading in the page.
    section : Section
        The return value of the function of the section.

    Returns
    -------
    PrintedSection
        Without its figures, which are not drawn yet.

    Raises
    ------
    TypeError
        If the section or its content is of another type.
    ValueError
        If two columns of a table have the same name.
    """
    if not isinstance(section, Section):
        raise TypeError(f"expected a Section(title, caption, content), found a {type(section).__name__}")
    title, caption = str(section.title), str(section.caption)
    parts = _parts(name, title, caption, section.content)
    return PrintedSection(
        name, anchor, title, section.link or title, parts, caption, needs_scores=section.needs_scores
    )


def _parts(name: str, title: str, caption: str, content: Any) -> Sequence[Part]:
    if isinstance(content, pd.DataFrame):
        return [_table(name, title, caption, content)]
    if isinstance(content, Figure):
        return [Drawing(name, caption, lambda: content)]
    if isinstance(content, str):
        explained = [Paragraph(caption, small=True)] if caption else []
        return [*map(Paragraph, content.split("\n\n")), *explained]
    if isinstance(content, list | tuple) and all(isinstance(part, Part) for part in content):
        return content
    raise TypeError(
        f"expected a DataFrame, a Figure or text as its content, found a {type(content).__name__}"
    )


def users_sections(
    sections: Sequence[str | SectionFunction], study: Findings, pdf: bool
) -> Iterator[PrintedSection]:
    """Call each function of a user and print its section, or the error message if it fails.

    Parameters
    ----------
    sections : sequence of str or callable
        Functions, or their dotted paths. A function may have an attribute `name`, which its files get.
    study : Findings
        The study of the report; each function gets a copy.
    pdf : bool
        Whether to make PDFs of figures.

    Yields
    ------
    PrintedSection
        One for each function that does not return None.
    """
    names: set[str] = set()
    for number, section in enumerate(dict.fromkeys(sections), start=1):
        name = _name(section)
        name = f"{name}.{number}" if name in names else name  # two functions may have one name
        names.add(name)
        anchor = f"section-{name}"
        open_before = _open_figures()
        try:
            with mpl.rc_context({"svg.hashsalt": name}, STYLE_SHEET):
                with exits_raised():
                    function = resolve(section) if isinstance(section, str) else section
                    returned = function(_copy(study))
                if returned is None:
                    continue
                found = printed(name, anchor, returned)
                yield replace(found, figures={each.name: documents(each, pdf) for each in found.drawings})
        except (Exception, SystemExit) as error:  # raised by the user's code
            problem = f"This section cannot be shown: {error_line(error)}. Correct {name} and report again."
            yield PrintedSection(name, anchor, name, name, [Paragraph(problem)])
        finally:
            _close_figures(open_before)


def _copy(study: Findings) -> Findings:
    """Return a copy of a study, so that a section cannot change the output of other sections.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frames: dict[str, Any] = {
        each.name: value.copy()
        for each in fields(study)
        if isinstance(value := getattr(study, each.name), pd.DataFrame)
    }
    provenance = deepcopy(study.provenance)  # the declaration can be derived from it
    return replace(study, **frames, provenance=provenance, states=dict(study.states), declaration=None)


def _name(section: str | SectionFunction) -> str:
    """Return the name of a section, which can be a part of a file's name.

    Parameters
    ----------
    section : str or SectionFunction
        A function, or its dotted path.
    """
    if isinstance(section, str):
        return section
    path = f"{section.__module__}.{getattr(section, '__qualname__', type(section).__name__)}"
    return re.sub(r"[^\w.]", "", getattr(section, "name", path))


def _table(name: str, title: str, caption: str, frame: pd.DataFrame) -> Table:
    """Print a frame, with its index unless that only counts the rows.

    Parameters
    ----------
    name : str
        Name of the table.
    title : str
        Title of the section.
    caption : str
        Caption of the section.
    frame : DataFrame
        The rows of the table.
    """
    if isinstance(frame.columns, pd.MultiIndex):
        frame = frame.set_axis([" ".join(map(str, names)) for names in frame.columns], axis="columns")
    frame = frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index()
    frame = frame.rename(columns=str)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"expected columns of different names, found two called {twice!r}")

    def cell(column: str) -> Callable[[dict[str, Any]], Cell]:
        return lambda row: Cell(_text(row[column]))

    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    return print_table(
        name,
        title,
        frame,
        {column: cell(column) for column in frame.columns},
        caption=caption,
        text_columns=numeric.index(True) if True in numeric else len(numeric),
    )


def _text(value: Any) -> str:
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return fmt.MISSING
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _open_figures() -> set[int]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return set() if pyplot is None else set(pyplot.get_fignums())


def _close_figures(open_before: set[int]) -> None:
    """Close the figures that a section has opened by pyplot, which would keep them in memory.

    Parameters
    ----------
    open_before : set of int
        Numbers of the figures that were open before the section was called.
    """
    for number in _open_figures() - open_before:
        sys.modules["matplotlib.pyplot"].close(number)
