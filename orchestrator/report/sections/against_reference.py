"""Every arm against a reference arm, point by point, in a study that selects no candidates."""

from dataclasses import replace

import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.by_dataset import rows_by_dataset
from orchestrator.report.limits import arms_note
from orchestrator.report.section import Paragraph, Part, Section, titled
from orchestrator.report.table import Cell, Printer, Row, Table

TITLE = "Against a reference"

MAX_SETTINGS = 12
"""Largest number of settings that the table of representative sets shows as columns."""

_NO_ESTIMATE = (
    "The candidates were scored on test rows, and none was selected. So the maximum over the grid is no "
    "estimate of accuracy, and no arm is called better. Points of a grid are no sample, so no interval is "
    "given."
)


def section(study: Findings) -> Section | None:
    """Return the section; None for a study that selects candidates, or before any training has a score.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        A table for each reference arm, the points of the grid, and the summaries as bars.
    """
    # A terminal summary prints the tables, and must not import matplotlib.
    from orchestrator.report.reference_figures import drawings

    frame = findings.against_references(study)
    if frame.empty:
        return None
    parts: list[Part] = [Paragraph(_NO_ESTIMATE)]
    if frame["ots"].isna().all():
        parts.append(
            Paragraph(
                "Times are comparable only under the profile “timing”, so ETS and OTS are missing. Run the "
                "study with protocol.profile=timing to measure them."
            )
        )
    for each in tables(study):
        parts += titled(each)
    return Section(TITLE, "", [*parts, *drawings(study, frame)], link="Reference")


def tables(study: Findings) -> list[Table]:
    """Print a table for each reference arm.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    list of Table
        In the order of the references, and one of representative sets if an arm has them; empty for a study
        that selects candidates.
    """
    frame = findings.against_references(study)
    if frame.empty:
        return []
    measured = [
        _table(study, str(reference), rows.reset_index(drop=True), fmt.file_suffix(number))
        for number, (reference, rows) in enumerate(frame.groupby("reference", sort=False))
    ]
    sets = findings.representative_sets(study)
    return measured if sets.empty else [*measured, _table_of_sets(study, sets)]


def _table_of_sets(study: Findings, sets: pd.DataFrame) -> Table:
    """Print the sizes of representative sets and the times to derive them, by the parameters but C.

    Parameters
    ----------
    study : Findings
        The study of the report.
    sets : DataFrame
        Rows of `findings.representative_sets`.
    """
    cells = {(row["dataset"], row["solver"], row["parameters"]): row for row in sets.to_dict("records")}
    timed = bool(sets["reduction_seconds"].notna().any())

    def of(parameters: str) -> Printer:
        def printed(row: Row) -> Cell:
            found = cells.get((row["dataset"], row["solver"], parameters))
            if found is None:
                return Cell("")
            seconds = f" ({fmt.time(found['reduction_seconds'])} s)" if timed else ""
            return Cell(f"{100 * found['share']:.1f}{seconds}")

        return printed

    names = list(dict.fromkeys(sets["parameters"]))
    unit = ", in parentheses the seconds to derive the set" if timed else ""
    more = f" The table shows {MAX_SETTINGS} of {len(names)} settings." if len(names) > MAX_SETTINGS else ""
    table = rows_by_dataset(
        study,
        "representative_sets",
        "Representative sets",
        sets.drop_duplicates(["dataset", "solver"]),
        {name or "M/N, %": of(name) for name in names[:MAX_SETTINGS]},
        caption=f"Size of the representative set in per cent of the training rows (M/N){unit}: means over "
        f"outer splits, for each value of the parameters but C.{more}" + arms_note(study),
    )
    return replace(table, data=sets)


def _table(study: Findings, reference: str, frame: pd.DataFrame, suffix: str) -> Table:
    """Print the measures of every arm against one reference arm.

    Parameters
    ----------
    study : Findings
        The study of the report.
    reference : str
        Name of the reference arm.
    frame : DataFrame
        Its rows of `findings.against_references`.
    suffix : str
        End of the name of the table.
    """
    metric = study.design.metric

    def points(row: Row) -> Cell:
        number, planned = row["n_points"], row["n_planned"]
        if number < planned:
            return Cell(f"{fmt.count(number)} of {fmt.count(planned)}", tone="warn")
        return Cell(fmt.count(number))

    def score(name: str) -> Printer:
        return lambda row: fmt.score(row[name], metric)

    def ratio(name: str) -> Printer:
        printed = fmt.time_ratio if name in ("ets", "ots") else fmt.ratio
        return lambda row: printed(row[name])

    columns: dict[str, Printer] = {"Points × splits": points, "RMSE": score("rmse")}
    columns |= {name.upper(): ratio(name) for name in ("ets", "ots", "ecs", "ocs")}
    if (frame["reduction_seconds"] > 0).any():
        columns["Reductions, s"] = lambda row: fmt.time(row["reduction_seconds"])
    columns |= {
        "Maximum": score("maximum"),
        "Mean": score("mean"),
        "σ over points × splits": score("sd"),
        "σ over points": score("sd_of_means"),
    }
    return rows_by_dataset(
        study,
        f"against_reference{suffix}",
        f"Every arm against {reference}",
        frame,
        columns,
        caption=_caption(study, reference) + arms_note(study),
    )


def _caption(study: Findings, reference: str) -> str:
    """Return the definitions of the columns.

    Parameters
    ----------
    study : Findings
        The study of the report.
    reference : str
        Name of the reference arm.
    """
    percent = fmt.is_percent(study.design.metric)
    unit, points = (", in per cent", ", in percentage points") if percent else ("", "")
    return (
        "Measures of Nandan et al. (2014) over the points of the grid × outer splits at which both arms have "
        "a score and were not stopped; “of” gives the planned number where some are missing. "
        f"RMSE: root mean squared difference of the {fmt.metric_name(study.design.metric)} of the arm from "
        f"that of {reference} at the same point{points}. ETS: mean ratio of their training times, "
        f"{reference} divided by the arm, without reductions and certificates. OTS: ratio of their total "
        "training times, in which each reduction to a representative set counts once for all values of C. "
        "ECS and OCS: the same ratios of the numbers of support vectors, which stand for the time of "
        "classification. A ratio above 1 favours the arm. Maximum, mean and σ are those of the arm's own "
        f"scores on these points{unit}. The maximum is over points, of means over splits; the mean and the "
        "population standard deviation are over points × splits; the last column is the population standard "
        "deviation over points, of means over splits. Points that lack a split enter neither the maximum "
        "nor the last column."
    )
