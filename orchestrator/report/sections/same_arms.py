"""Comparison of the arms that several merged studies have in common."""

from collections.abc import Callable

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.pair_cells import estimate, units
from orchestrator.report.section import Section
from orchestrator.report.table import Cell, Row, Table, print_table

TITLE = "The same arms in several studies"


def section(study: Findings) -> Section | None:
    """Return the section; None unless merged studies have an arm in common.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        Section with one table.
    """
    frame = findings.same_arms(study)
    return Section(TITLE, "", [_table(study, frame)], link="Studies") if len(frame) else None


def _table(study: Findings, frame: pd.DataFrame) -> Table:
    """Print how the arms compare: rows in both studies, scores, times.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows of the table.
    """
    metric = study.design.metric
    columns: dict[str, Callable[[Row], Cell | str]] = {
        "Arm": lambda row: row["arm"],
        "A, B": lambda row: f"{row['first']}, {row['second']}",
        "Differs in": lambda row: row["differs"] or "nothing",
        "Trials in both": lambda row: fmt.count(row["n_common"]),
        "Different score": _disagreeing,
        units(study): lambda row: fmt.count(row["n"]),
        "Typical difference, B − A": lambda row: estimate(row, metric),
        "p": lambda row: fmt.p_value(row["p"]),
        "Adjusted p": lambda row: fmt.p_value(row["p_holm"]),
    }
    if (frame["n_timed"] > 0).any():
        columns["Training time, B / A"] = lambda row: fmt.time_ratio(row["time_ratio"])
        columns["Machines"] = lambda row: f"A: {row['first_machine']}\nB: {row['second_machine']}"
    return print_table(
        "same_arms",
        TITLE,
        frame,
        columns,
        caption=_caption(study, frame),
        text_columns=3,
        last_is_text="Machines" in columns,
    )


def _disagreeing(row: Row) -> Cell:
    number = row["n_common"] - row["n_agree"]
    return Cell(fmt.count(number) if row["n_common"] else fmt.MISSING, tone="bad" if number else "quiet")


def _caption(study: Findings, frame: pd.DataFrame) -> str:
    text = (
        "Each row compares the arms of one name in two studies. If they differ in nothing, they are one arm "
        "of this report, with the rows of the study that has completed more trials. Otherwise they are two "
        "arms, called ARM@STUDY. Trials in both: trials with the same key, which covers everything that may "
        "change a score. Different score: trials in both whose scores differ in any bit. Typical difference: "
        f"the Hodges–Lehmann estimate{fmt.in_unit(study.design.metric)} over the "
        f"{fmt.plural_of(study.design.unit)} that both have completed. p: the exact Wilcoxon signed-rank "
        f"test. Adjusted p: by Holm's method for the {fmt.plural(len(frame), 'row')} of this table, "
        "separately from the other tests of this report."
    )
    if (frame["n_timed"] > 0).any():
        text += (
            " Training time: geometric mean over datasets of the ratios of the mean times of the refits, "
            "which ran under the profile “timing” and none of which was stopped."
        )
    return text
