"""Sections of a user's own: functions of `StudyResults` that return a title, a caption and what to show.

They are named on the command line or in the user's own configuration, never in a study's folder.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from orchestrator.isolation.exits import exits_raised
from orchestrator.report import format as fmt
from orchestrator.report.figures import STYLE_SHEET, Drawn, drawn
from orchestrator.report.table import Cell, Table, print_table
from orchestrator.store.results import StudyResults
from orchestrator.study.names import resolve
from orchestrator.study.text import error_line


@dataclass(frozen=True)
class Section:
    """What a section shows.

    Attributes
    ----------
    title, caption : str
        What it shows, and how it is to be read.
    content : DataFrame, Figure or str
        A table, a figure of matplotlib's, or a text, whose paragraphs are apart by empty lines.
    """

    title: str
    caption: str
    content: Any


SectionFunction = Callable[[StudyResults], Section]


@dataclass(frozen=True)
class PrintedSection:
    """A section as the page and its files show it.

    Attributes
    ----------
    name : str
        The function's dotted path; stem of its files, and part of its anchor.
    title, caption : str
    table : Table or None
    figure : Drawn or None
    paragraphs : sequence of str
    """

    name: str
    title: str
    caption: str = ""
    table: Table | None = None
    figure: Drawn | None = None
    paragraphs: Sequence[str] = ()


def printed_sections(
    sections: Sequence[str | SectionFunction], results: StudyResults
) -> Iterator[PrintedSection]:
    """Call each function and print what it returns; of one that fails, print why.

    Parameters
    ----------
    sections : sequence of str or callable
        Functions, or their dotted paths.
    results : StudyResults
    """
    names: set[str] = set()
    for number, section in enumerate(dict.fromkeys(sections), start=1):
        name = _name(section)
        name = f"{name}.{number}" if name in names else name  # two functions may have one name
        names.add(name)
        open_before = _open_figures()
        try:
            # The name seeds the identifiers in an SVG, so that it comes out the same.
            with mpl.rc_context({"svg.hashsalt": name}, STYLE_SHEET):
                with exits_raised():
                    function = resolve(section) if isinstance(section, str) else section
                    printed = _printed(name, function(_copy(results)))
                yield printed
        except (Exception, SystemExit) as error:  # of the user's code
            problem = f"This section cannot be shown: {error_line(error)}; correct {name} and report again."
            yield PrintedSection(name, name, paragraphs=[problem])
        finally:
            _close_figures(open_before)


def _copy(results: StudyResults) -> StudyResults:
    """Return results that a section may change without changing what others print."""
    frames: dict[str, Any] = {
        field.name: value.copy()
        for field in fields(results)
        if isinstance(value := getattr(results, field.name), pd.DataFrame)
    }
    provenance = deepcopy(results.provenance)  # by which its declaration is found again
    return replace(results, **frames, provenance=provenance, states=dict(results.states), declaration=None)


def _name(section: str | SectionFunction) -> str:
    """Return a dotted path that can be a part of a file's name."""
    if isinstance(section, str):
        return section
    path = f"{section.__module__}.{getattr(section, '__qualname__', type(section).__name__)}"
    return re.sub(r"[^\w.]", "", path)


def _printed(name: str, section: Any) -> PrintedSection:
    if not isinstance(section, Section):
        raise TypeError(f"expected a Section(title, caption, content), found a {type(section).__name__}")
    title, caption, content = str(section.title), str(section.caption), section.content
    if isinstance(content, pd.DataFrame):
        return PrintedSection(name, title, caption, table=_table(name, title, caption, content))
    if isinstance(content, Figure):
        return PrintedSection(name, title, caption, figure=drawn(content))
    if isinstance(content, str):
        return PrintedSection(name, title, caption, paragraphs=content.split("\n\n"))
    raise TypeError(
        f"expected a DataFrame, a Figure or text as its content, found a {type(content).__name__}"
    )


def _table(name: str, title: str, caption: str, frame: pd.DataFrame) -> Table:
    """Print a frame, with its index where that says something."""
    if isinstance(frame.columns, pd.MultiIndex):
        frame = frame.set_axis([" ".join(map(str, names)) for names in frame.columns], axis="columns")
    frame = frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index()
    frame = frame.rename(columns=str)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"expected columns of different names, found two called {twice!r}")

    def printed(column: str) -> Callable[[dict[str, Any]], Cell]:
        return lambda row: Cell(_text(row[column]))

    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    return print_table(
        name,
        title,
        frame,
        {column: printed(column) for column in frame.columns},
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
    """Close what a section has opened by pyplot, which would keep it."""
    for number in _open_figures() - open_before:
        sys.modules["matplotlib.pyplot"].close(number)
