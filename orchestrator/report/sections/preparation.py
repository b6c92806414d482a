"""What was done to the data for each solver, on the short page of a study of few datasets."""

from collections.abc import Callable

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.preparations import preparation_of
from orchestrator.report import format as fmt
from orchestrator.report.section import Part, Section, Terms
from orchestrator.report.table import Printer, Row, Table, print_table

TITLE = "What was done to the data"


def section(study: Findings) -> Section | None:
    """Return the section; None for a study of many datasets, or if no preparation is recorded.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        The preparations in words, each with its solvers, and what they did to which column.
    """
    solvers = _solvers_by_preparation(study)
    if not solvers or not findings.dataset_answers(study):
        return None
    several = len(study.design.datasets) > 1
    texts = {
        f"{fmt.listed(arms)}{f' on {dataset}' if several else ''}": words
        for (dataset, words), arms in solvers.items()
    }
    table = _table(study, solvers)
    parts: list[Part] = [Terms(texts), *([] if table is None else [table])]
    return Section(TITLE, "", parts, link="Data")


def _solvers_by_preparation(study: Findings) -> dict[tuple[str, str], list[str]]:
    """Return the solvers by dataset and by the description of their preparation.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    declared = study.declaration.pairs if study.declaration else {}
    solvers: dict[tuple[str, str], list[str]] = {}
    for dataset, arm in study.design.pairs:
        pair = declared.get((dataset, arm))
        if pair is not None and pair.identity is not None:
            words = pair.identity.protocol.preparation.words
            solvers.setdefault((dataset, words), []).append(arm)
    return solvers


def _table(study: Findings, solvers: dict[tuple[str, str], list[str]]) -> Table | None:
    """Print a row for each column of a dataset, with what each preparation did to it.

    Parameters
    ----------
    study : Findings
        The study of the report.
    solvers : dict of (str, str) to list of str
        The solvers by dataset and by the description of their preparation.

    Returns
    -------
    Table or None
        None if every preparation treats all columns alike.
    """
    frame = preparation_of(study)
    frame = frame[(frame["column"] != "") & frame["dataset"].isin([*study.design.datasets])]
    frame = frame[frame["solver"].isin([*study.design.arms])]
    if frame.empty:
        return None
    steps = {(row.dataset, row.column, row.preparation): row.steps for row in frame.itertuples()}
    words = [*dict.fromkeys(frame["preparation"])]

    def of(preparation: str) -> Callable[[Row], str]:
        return lambda row: str(steps.get((row["dataset"], row["column"], preparation), fmt.MISSING))

    columns: dict[str, Printer] = {"Column": lambda row: row["column"]}
    if len(study.design.datasets) > 1:
        columns = {"Dataset": lambda row: row["dataset"]} | columns
    for preparation in words:
        named = (arms for (_, each), arms in solvers.items() if each == preparation)
        arms = dict.fromkeys(arm for each in named for arm in each)
        columns[fmt.listed([*arms]) or preparation] = of(preparation)
    rows = frame[["dataset", "column"]].drop_duplicates().to_dict("records")
    return print_table(
        "preparation",
        "What was done to which column",
        pd.DataFrame(frame),
        columns,
        rows=[{str(key): value for key, value in row.items()} for row in rows],
        caption="Each preparation was fitted on the training rows of a split only. The table shows the first "
        "outer split.",
        text_columns=len(columns),
    )
