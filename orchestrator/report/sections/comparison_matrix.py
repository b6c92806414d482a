"""The Multi-Comparison Matrix: arms × arms, each cell shaded by the difference that it prints."""

from collections.abc import Callable

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.section import Section
from orchestrator.report.shades import shades
from orchestrator.report.table import Cell, Row, Table, print_table, records

TITLE = "Comparison of all pairs of arms"


def section(study: Findings) -> Section | None:
    """Return the section; None for fewer than three arms, or before any refit has a score.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        Section with one table.
    """
    if findings.is_empty(study) or findings.standings(study).empty:
        return None
    return Section(TITLE, "", [_table(study, findings.comparison_matrix(study))], link="Pairs")


def _table(study: Findings, frame: pd.DataFrame) -> Table:
    """Print the mean difference, the wins, ties and losses of the row, and p of each pair.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows of the table.
    """
    metric, arms = study.design.metric, list(frame["row"].unique())
    found = {
        (row["row"], row["column"]): (row, shade)
        for row, shade in zip(records(frame), shades(frame["difference"]), strict=True)
    }
    largest_n = frame["n"].max()

    def of(column: str) -> Callable[[Row], Cell]:
        def cell(line: Row) -> Cell:
            if line["arm"] == column:
                return Cell("", tone="quiet")
            row, shade = found[line["arm"], column]
            if not row["n"]:
                return Cell(fmt.MISSING, tone="quiet")
            lines = [
                fmt.difference(row["difference"], metric),
                f"{row['wins']}/{row['ties']}/{row['losses']}",
                fmt.p_value(row["p"]) + (" *" if row["marked"] else ""),
                *([f"n = {row['n']}"] if row["n"] < largest_n else []),
            ]
            return Cell("\n".join(lines), strong=row["marked"], shade=shade)

        return cell

    return print_table(
        "comparison_matrix",
        TITLE,
        frame,
        {"Row − column": lambda row: row["arm"]} | {arm: of(arm) for arm in arms},
        rows=[{"arm": arm} for arm in arms],
        caption=_caption(study, len(arms)),
    )


def _caption(study: Findings, n_shown: int) -> str:
    design = study.design
    units = fmt.plural_of(design.unit)
    text = (
        "Each cell compares the arm of its row with the arm of its column. It has the difference of means"
        f"{fmt.in_unit(design.metric)}, the numbers of {units} on which the row is higher, equal "
        f"and lower, and p of the exact Wilcoxon signed-rank test. *: p is at most {design.alpha:g}. These "
        "values of p are not adjusted; the table of tests has adjusted values. Stronger colours mark larger "
        "differences. A further arm may change the order of the arms, but not the content of a cell "
        "(Ismail-Fawaz et al., 2023)."
    )
    if len(design.arms) > n_shown:
        text += f" Shown: the first arm and those with the highest means, {n_shown} of {len(design.arms)}."
    return text
