"""The difference from the first arm on each single dataset."""

from collections.abc import Callable

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.limits import arms_note, shown_arms
from orchestrator.report.marks import mark_note, marked_arms, marked_name
from orchestrator.report.table import Cell, Row, Table, print_table, records


def table(study: Findings) -> Table | None:
    """Print the mean difference from the first arm and its interval, as datasets × arms.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Table or None
        None if no arm can be compared with the first.
    """
    frame, metric, marked = findings.differences(study), study.design.metric, marked_arms(study)
    if frame.empty:
        return None
    found = {(row["dataset"], row["solver"]): row for row in records(frame)}
    reference = frame["reference"].iloc[0]
    others = [arm for arm in shown_arms(study) if arm != reference]

    def of(arm: str) -> Callable[[Row], Cell]:
        def cell(row: Row) -> Cell:
            if (row["dataset"], arm) not in found:
                return Cell(fmt.MISSING, tone="quiet")
            numbers = found[row["dataset"], arm]
            mean, low, high = (
                fmt.difference(numbers[name], metric) for name in ("difference", "low", "high")
            )
            return Cell(f"{mean} [{low}, {high}]")

        return cell

    caption = (
        f"Paired difference: the arm's score minus that of {reference}{fmt.in_unit(metric)}, the mean over "
        "the same outer folds, if both arms completed all of them, and its approximate "
        f"{fmt.level(study.design.alpha)} "
        "interval, mean ± t·s·√(1/n + test rows/training rows) with n − 1 degrees of freedom (Nadeau and "
        "Bengio, 2003). Each interval speaks of new data of the size of one dataset, and is conservative for "
        "differences: it covers those of redrawn splits far more often. It says nothing of other datasets. "
        "The intervals are not adjusted for their number, and none is a test."
    )
    return print_table(
        "differences",
        f"Paired difference from {marked_name(reference, marked)} on each dataset",
        frame,
        {"Dataset": lambda row: row["dataset"]} | {marked_name(arm, marked): of(arm) for arm in others},
        rows=[{"dataset": dataset} for dataset in study.design.datasets],
        caption=caption + mark_note(study) + arms_note(study),
    )
