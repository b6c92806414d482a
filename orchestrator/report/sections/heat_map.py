"""Datasets × arms, each cell shaded by the mean difference from the control."""

from collections.abc import Callable

from orchestrator.analysis import findings
from orchestrator.analysis.comparison_matrix import by_mean
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.limits import arms_note, shown_arms
from orchestrator.report.marks import mark_note, marked_arms, marked_name
from orchestrator.report.section import Section
from orchestrator.report.shades import shades
from orchestrator.report.table import Cell, Row, Table, print_table, records


def section(study: Findings) -> Section | None:
    """Return the section; None for fewer than three arms, or without a difference.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        Section with one table.
    """
    if findings.is_empty(study) or findings.standings(study).empty or findings.differences(study).empty:
        return None
    printed = _table(study)
    return Section(printed.title, "", [printed], link="Differences")


def _table(study: Findings) -> Table:
    """Print the mean differences from the control, the best arm first.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    metric, marked = study.design.metric, marked_arms(study)
    frame = findings.differences(study)[["dataset", "solver", "reference", "difference"]]
    found = {
        (row["dataset"], row["solver"]): Cell(fmt.difference(row["difference"], metric), shade=shade)
        for row, shade in zip(records(frame), shades(frame["difference"]), strict=True)
    }
    reference, kept = frame["reference"].iloc[0], set(shown_arms(study))

    def of(arm: str) -> Callable[[Row], Cell]:
        return lambda row: found.get((row["dataset"], arm), Cell(fmt.MISSING, tone="quiet"))

    arms = [arm for arm in by_mean(findings.means(study)) if arm in kept and arm != reference]
    caption = (
        f"Paired difference from {reference}{fmt.in_unit(metric)}, on the same outer folds. Arms are ordered "
        "by their means over the datasets that all arms completed, the highest first. Stronger colours "
        "mark larger differences. The table of differences on each dataset gives the intervals."
    )
    return print_table(
        "heat_map",
        f"Paired differences from {marked_name(reference, marked)} by dataset",
        frame,
        {"Dataset": lambda row: row["dataset"]} | {marked_name(arm, marked): of(arm) for arm in arms},
        rows=[{"dataset": dataset} for dataset in study.design.datasets],
        caption=caption + mark_note(study) + arms_note(study),
    )
