"""Size and work of the refits, and their distance from the optimum."""

import pandas as pd
from matplotlib.figure import Figure

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.by_dataset import rows_by_dataset
from orchestrator.report.figures import Panel, bar_chart
from orchestrator.report.limits import arms_note, figure_note, shown_in_figures
from orchestrator.report.marks import mark_note, marked_cells
from orchestrator.report.section import Drawing, Part, Section, folded
from orchestrator.report.table import Cell, Row, Table, lower_bound

TITLE = "Model size and training work"


def section(study: Findings) -> Section | None:
    """Return the section; None before any refit has a score.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        A table, and a figure if some solver publishes the numbers.
    """
    if findings.is_empty(study):
        return None
    rows = findings.effort(study)
    parts: list[Part] = [_table(study, rows)]
    frame = shown_in_figures(study, rows)
    if frame[["sv_share", "n_iter", "n_kernel_evals"]].notna().any(axis=None):
        caption = (
            "Means over the refits; k stands for thousand, M for million. If counts span decades, the axis "
            "is logarithmic and dots replace bars. A triangle marks a lower bound, because trainings were "
            "stopped."
        )
        parts.append(Drawing("effort", caption + figure_note(study), lambda: _figure(study, frame), frame))
    content = folded(study, "Models of each dataset and arm, and a figure", parts)
    return Section(TITLE, "", content, link="Models and work")


def _table(study: Findings, frame: pd.DataFrame) -> Table:
    def not_converged(row: Row) -> Cell:
        number = row["not_converged"]
        return Cell(f"{number} of {row['n_fits']}", tone="warn" if number else "quiet")

    return rows_by_dataset(
        study,
        "effort",
        TITLE,
        frame,
        {
            "Support-vector share, %": lambda row: fmt.share(row["sv_share"]),
            "Support vectors": lambda row: fmt.count(row["n_sv"]),
            "Iterations": lambda row: lower_bound(fmt.count(row["n_iter"]), row),
            "Kernel evaluations": lambda row: lower_bound(fmt.count(row["n_kernel_evals"]), row),
            "Median gap": lambda row: fmt.gap(row["gap_median"]),
            "Largest gap": lambda row: Cell(
                fmt.gap(row["gap_max"]), tone="warn" if row["n_gap_above"] else ""
            ),
            "Not converged": not_converged,
            "Stopped by": lambda row: row["stopping"] or fmt.MISSING,
        },
        caption="Means over the refits, one for each outer fold, with the selected hyper-parameters. "
        "Support-vector share: support vectors divided by training rows, averaged over the binary "
        "subproblems if a model has several. Iterations and kernel evaluations are counts that do not "
        "depend on the load of the machine; rounding of another processor may change them. An iteration of "
        "one solver may cost more than one of another. Gap: the relative duality gap that a refit claims, "
        "a bound on the distance of its objective from the optimum. Not converged: refits that stopped "
        "before their tolerance was met, of those that gave a model. Stopped by: the stopping criteria "
        "that were met, and by how many refits. ≥: some refits timed out, so counts are lower bounds. "
        f"{fmt.MISSING} marks a number that the solver does not publish.{mark_note(study)}{arms_note(study)}",
        marked=marked_cells(study),
        last_is_text=True,
    )


def _figure(study: Findings, frame: pd.DataFrame) -> Figure:
    """Draw bars of support-vector shares, iterations and kernel evaluations.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows that the figure shows.
    """
    frame = frame.assign(sv_share=frame["sv_share"] * 100)
    panels = [
        Panel("sv_share", "Support-vector share (%)"),
        Panel("n_iter", "Iterations", lower_bounds=True),
        Panel("n_kernel_evals", "Kernel evaluations", lower_bounds=True),
    ]
    return bar_chart(study, frame, [panel for panel in panels if frame[panel.column].notna().any()])
