"""Performance profiles of training time."""

from collections.abc import Callable

import pandas as pd
from matplotlib.figure import Figure

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.profiles import share_within
from orchestrator.report import format as fmt
from orchestrator.report.figures import colours, few_ticks, step_chart
from orchestrator.report.limits import arms_note, shown_arms, shown_in_figures
from orchestrator.report.marks import mark_note, marked_arms, marked_name
from orchestrator.report.processor_note import processor_note
from orchestrator.report.section import Drawing, Part, titled
from orchestrator.report.table import Row, Table, print_table

_FACTORS = (1, 2, 5, 10, 100)
"""Multiples of the fastest arm's time that the table has a column for."""


def parts(study: Findings) -> list[Part]:
    """Return the table and the figure.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    list of Part
        Empty for fewer than two timed arms.
    """
    steps = findings.profile(study)
    if steps.empty:
        return []
    frame = shown_in_figures(study, steps)
    caption = (
        "Performance profiles: the share of the datasets on which the training time of an arm is at most a "
        "given multiple of the fastest arm's. Higher is better. A line starts at the share of datasets on "
        "which the arm is the fastest."
    )
    drawing = Drawing("profile", caption + arms_note(study), lambda: _figure(study, frame), frame)
    return [*titled(_table(study, steps)), drawing]


def _table(study: Findings, frame: pd.DataFrame) -> Table:
    """Print the share of datasets on which each arm is within some factors of the fastest.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows of the table.
    """
    marked = marked_arms(study)

    def within(factor: float) -> Callable[[Row], str]:
        return lambda row: f"{100 * share_within(frame, row['solver'], factor):.0f}"

    factors = {f"Within {factor}×, %" if factor > 1 else "Fastest, %": within(factor) for factor in _FACTORS}
    return print_table(
        "profile",
        "Performance profiles of training time",
        frame,
        {"Arm": lambda row: marked_name(row["solver"], marked)} | factors,
        rows=[{"solver": arm} for arm in frame["solver"].unique() if arm in shown_arms(study)],
        caption=f"Share of the {fmt.plural(frame['n'].iloc[0], 'dataset')}, in per cent, on which the mean "
        "training time of an arm is at most the given multiple of the lowest of all arms (Dolan and Moré, "
        "2002). The CSV file contains every step. A stopped training counts as above every multiple. The "
        f"fastest arm depends on which arms take part.{processor_note(study, has_ratios=False)}"
        f"{mark_note(study)}{arms_note(study)}",
    )


def _figure(study: Findings, frame: pd.DataFrame) -> Figure:
    """Draw the share of datasets on which each arm is within a factor of the fastest one.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows that the figure shows.
    """
    end = max(2.0, 1.3 * frame["factor"].max())
    figure, ax = step_chart(frame, "factor", colours(list(study.design.arms)), end)
    ax.set(xscale="log", xlim=(1, end))
    few_ticks(ax)
    ax.set_xlabel("Training time, multiple of the fastest arm's, logarithmic")
    ax.set_ylabel("Datasets (%)")
    return figure
