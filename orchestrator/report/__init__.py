"""The report of a study: one HTML page, its content as JSON, and the tables and figures for papers."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from os.path import lexists
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_float_dtype, is_numeric_dtype

from orchestrator.analysis.findings import Findings, analyse
from orchestrator.report.answer import answer_text
from orchestrator.report.format import reproducible
from orchestrator.report.latex import latex
from orchestrator.report.markdown import markdown_summary
from orchestrator.report.section import Section, SectionFunction
from orchestrator.store.files import StoreError, is_plain_file
from orchestrator.store.results import StudyResults
from orchestrator.study.atomic import atomic_write
from orchestrator.study.text import spreadsheet_text

__all__ = ["Section", "answer_text", "markdown_summary", "write_report"]

_FILE = re.compile(r"index\.html|report\.json|(tables|figures)/[^/.][^/]*\.(csv|tex|svg|pdf)")


def write_report(
    results: StudyResults,
    folder: Path,
    findings: Findings | None = None,
    sections: Sequence[str | SectionFunction] = (),
    reload_seconds: int | None = None,
    pdf: bool = True,
) -> Path:
    """Write `index.html`, `report.json`, `tables/*.csv|tex`, `figures/*.svg|pdf|csv`; return the page's path.

    Each file is replaced in one step, the page last. Tables and figures of an earlier report of the study,
    which its `report.json` lists, are removed if this report does not have them.

    Parameters
    ----------
    results : StudyResults
        The study, complete or not.
    folder : Path
        Folder for the files.
    findings : Findings, optional
        The study as `analyse` returns it; by default with the choices of its newest run.
    sections : sequence of str or callable, default=()
        Functions of users that return a `Section` each, or their dotted paths. A message replaces the section
        of a function that fails.
    reload_seconds : int, optional
        Seconds after which the page reloads itself, for a study that is running; by default it does not.
    pdf : bool, default=True
        Whether to write figures as PDF, too. This takes as long as the rest of the report.

    Returns
    -------
    Path
        The path of the page.

    Raises
    ------
    StoreError
        If the folder cannot be written to, is a symbolic link, or has other files with the same names.
    """
    # A run shows a summary in Markdown only, and need not wait for the import of matplotlib and Jinja.
    from orchestrator.report.contents import AFTER, BEFORE, drawn_figures, our_sections, tables_of
    from orchestrator.report.html import html
    from orchestrator.report.printed import users_sections
    from orchestrator.report.report_json import report_json

    study = findings or analyse(results)
    before, after = our_sections(study, BEFORE), our_sections(study, AFTER)
    figures = drawn_figures([*before, *after], pdf)
    users = list(users_sections(sections, study, pdf))
    for section in users:
        figures |= section.figures
    printed = [*before, *users, *after]
    tables = tables_of(printed)
    folder = Path(folder)
    files: dict[Path, str | bytes] = {}
    for name, figure in figures.items():
        files[folder / "figures" / f"{name}.svg"] = figure.svg
        if figure.pdf:
            files[folder / "figures" / f"{name}.pdf"] = figure.pdf
        if figure.data is not None:
            files[folder / "figures" / f"{name}.csv"] = _csv(figure.data)
    for name, table in tables.items():
        files[folder / "tables" / f"{name}.csv"] = _csv(table.data)
        files[folder / "tables" / f"{name}.tex"] = latex(table)
    index, listing = folder / "index.html", folder / "report.json"
    names = [path.relative_to(folder).as_posix() for path in [*files, listing, index]]
    # The list is written first, so that the next report can remove the files of a killed one.
    files = {
        listing: report_json(study, tables, names, users, figures),
        **files,
        index: html(study, printed, figures, reload_seconds, names[:-2]),
    }
    _refuse_links(folder)
    earlier = {folder / name for name in _listed(listing, results.name, names)}
    if folder.absolute() != results.folder / "report":
        _refuse_to_overwrite(files.keys() - earlier)
    for path in earlier - files.keys():
        if path.exists() and is_plain_file(path):
            with _naming_file(path):
                path.unlink()
    for path, content in files.items():
        _write(path, content)
    return index


def _csv(frame: pd.DataFrame) -> str:
    """Return a CSV file in which every text is quoted, so that it is valid for any separator.

    Parameters
    ----------
    frame : DataFrame
        The rows of a table or a figure.
    """
    safe = frame.apply(_column)
    return safe.rename(columns=spreadsheet_text).to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)


def _column(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return a column for CSV. Its texts are not formulas, and its numbers have the digits of `reproducible`.

    Parameters
    ----------
    column : Series
        A column of a frame.
    """
    if is_float_dtype(column):
        return column.map(reproducible, na_action="ignore")
    return column if is_numeric_dtype(column) else column.map(_cell)


def _cell(value: Any) -> Any:
    return reproducible(value) if isinstance(value, float) else spreadsheet_text(value)


def _listed(path: Path, study: str, names: list[str]) -> list[str]:
    """Return the files of an earlier report of a study that its `report.json` lists.

    Parameters
    ----------
    path : Path
        Path of the earlier `report.json`.
    study : str
        Name of the study.
    names : list of str
        The files of an older report whose `report.json` has no list.
    """
    try:
        content = json.loads(path.read_bytes()) if is_plain_file(path) else {}
        listed = content.get("files", names) if content.get("study") == study else []
        return [name for name in listed if _FILE.fullmatch(name)]
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return []


def _refuse_to_overwrite(paths: Iterable[Path]) -> None:
    for path in sorted(paths):
        if lexists(path):
            raise StoreError(
                f"{path}: expected a file of an earlier report of this study, found another file, which is "
                "not overwritten; move it, or choose another folder for the report with to=DIR"
            )


def _refuse_links(folder: Path) -> None:
    for path in (folder, folder / "tables", folder / "figures"):
        if path.is_symlink():
            raise StoreError(
                f"{path}: expected a folder, found a symbolic link, through which no report is written; "
                "remove it, or give the target folder with to=DIR"
            )


def _write(path: Path, content: str | bytes) -> None:
    with _naming_file(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def _naming_file(path: Path) -> Iterator[None]:
    """Raise an error that names the file that cannot be written or removed, and the remedy.

    Parameters
    ----------
    path : Path
        The file that is written or removed.

    Yields
    ------
    None
        The block writes or removes the file.
    """
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}; free space or permit writing there, or choose another "
            "folder with to=DIR"
        ) from None
