"""Layouts of tables about each dataset × arm."""

from collections.abc import Callable, Iterable

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.limits import shown, shown_arms
from orchestrator.report.table import Cell, Columns, Row, Table, print_table, records


def matrix(
    study: Findings, name: str, title: str, frame: pd.DataFrame, cell: Callable[[Row], Cell], caption: str
) -> Table:
    """Lay out a long frame as datasets (rows) × arms (columns).

    Parameters
    ----------
    study : Findings
        The study of the report.
    name, title : str
        Name and title of the table.
    frame : DataFrame
        One row for each dataset × arm.
    cell : callable
        Prints the cell of a row of the frame.
    caption : str
        Caption of the table.

    Returns
    -------
    Table
        Table of the shown arms. Its data are the whole frame.
    """
    cells = {(row["dataset"], row["solver"]): cell(row) for row in records(shown(study, frame))}
    nothing = Cell("another protocol", tone="quiet")

    def of(arm: str) -> Callable[[Row], Cell]:
        return lambda row: cells.get((row["dataset"], arm), nothing)

    return print_table(
        name,
        title,
        frame,
        {"Dataset": lambda row: row["dataset"]} | {arm: of(arm) for arm in shown_arms(study)},
        rows=[{"dataset": dataset} for dataset in study.design.datasets],
        caption=caption,
    )


def rows_by_dataset(
    study: Findings,
    name: str,
    title: str,
    frame: pd.DataFrame,
    columns: Columns,
    *,
    caption: str,
    marked: Iterable[tuple[str, str]] = (),
    last_is_text: bool = False,
) -> Table:
    """Print a row for each shown dataset × arm, and name the dataset once for all its arms.

    Parameters
    ----------
    study : Findings
        The study of the report.
    name, title : str
        Name and title of the table.
    frame : DataFrame
        One row for each dataset × arm.
    columns : mapping of str to callable
        Headings after dataset and arm, and the functions that print their cells.
    caption : str
        Caption of the table.
    marked : iterable of (dataset, arm)
        Dataset × arm to print with `format.MARK`; none by default.
    last_is_text : bool, default=False
        Whether the last column holds text.

    Returns
    -------
    Table
        Its data are the whole frame.
    """
    marked = frozenset(marked)
    datasets = shown(study, frame)["dataset"]
    rows = records(shown(study, frame).assign(heading=datasets.mask(datasets == datasets.shift(), "")))

    def arm(row: Row) -> str:
        return row["solver"] + (fmt.MARK if (row["dataset"], row["solver"]) in marked else "")

    return print_table(
        name,
        title,
        frame,
        {"Dataset": lambda row: row["heading"], "Arm": arm} | dict(columns),
        rows=rows,
        caption=caption,
        text_columns=2,
        last_is_text=last_is_text,
    )
