"""A study's report: one HTML page, the same as JSON, and the tables and figures for papers."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from orchestrator.analysis.findings import Findings, analyse
from orchestrator.report.latex import latex
from orchestrator.report.markdown import markdown_summary
from orchestrator.report.tables import all_tables
from orchestrator.store.files import StoreError
from orchestrator.store.results import StudyResults
from orchestrator.study.atomic import atomic_write
from orchestrator.study.text import spreadsheet_text

__all__ = ["markdown_summary", "write_report"]


def write_report(results: StudyResults, folder: Path, findings: Findings | None = None) -> Path:
    """Write `index.html`, `report.json`, `tables/*.csv|tex` and `figures/*.svg`, and return the page's path.

    Each file is whole at any moment, and the page comes last; tables and figures of an earlier report that
    this one no longer has are removed.

    Raises
    ------
    StoreError
        When the folder cannot be written to, or is a link.
    """
    # A run shows a summary in Markdown only, and need not wait for the import of matplotlib and Jinja.
    from orchestrator.report.figures import all_figures
    from orchestrator.report.html import html
    from orchestrator.report.report_json import report_json
    from orchestrator.report.words import captioned

    findings = findings or analyse(results)
    tables = {name: captioned(table, findings) for name, table in all_tables(findings).items()}
    figures = all_figures(findings)
    folder = Path(folder)
    files = {folder / "figures" / f"{name}.svg": svg for name, svg in figures.items()}
    for name, table in tables.items():
        files[folder / "tables" / f"{name}.csv"] = _csv(table.data)
        files[folder / "tables" / f"{name}.tex"] = latex(table)
    others = set(files)
    files[folder / "report.json"] = report_json(findings, tables)
    index = folder / "index.html"
    files[index] = html(findings, tables, figures)
    _refuse_links(folder)
    _remove_others(folder, others)
    for path, text in files.items():
        _write(path, text)
    return index


def _csv(frame: pd.DataFrame) -> str:
    """Return a CSV file in which every text is quoted, whatever a spreadsheet takes for a separator."""
    safe = frame.apply(lambda column: column if is_numeric_dtype(column) else column.map(spreadsheet_text))
    return safe.rename(columns=spreadsheet_text).to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)


def _remove_others(folder: Path, kept: set[Path]) -> None:
    """Remove what an earlier report left; a folder without one may hold other tables."""
    if not (folder / "report.json").is_file():
        return
    ours = {path for kind in ("tables/*.csv", "tables/*.tex", "figures/*.svg") for path in folder.glob(kind)}
    for path in ours - kept:
        with _naming_file(path):
            path.unlink()


def _refuse_links(folder: Path) -> None:
    for path in (folder, folder / "tables", folder / "figures"):
        if path.is_symlink():
            raise StoreError(
                f"{path} is a link, which no report is written through; remove it, or name the folder that "
                "is meant with to=DIR"
            )


def _write(path: Path, text: str) -> None:
    with _naming_file(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(text.encode())


@contextmanager
def _naming_file(path: Path) -> Iterator[None]:
    """Name the file that cannot be written or removed, and say where a report can go instead."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}; make room there, or choose another folder with to=DIR"
        ) from None
