"""Cost of a prediction: accuracy against seconds per row, speed-ups, and vectors kept."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.prediction_costs import COST
from orchestrator.report import format as fmt
from orchestrator.report.by_dataset import rows_by_dataset
from orchestrator.report.figures import RULE, WIDTH, colours, few_ticks, literal, wrapped
from orchestrator.report.limits import arms_note, first_note, shown_in_figures
from orchestrator.report.marks import mark_note, marked_arms, marked_name
from orchestrator.report.pair_cells import units
from orchestrator.report.processor_note import processor_note
from orchestrator.report.ratio_cells import geometric_mean, typical_ratio
from orchestrator.report.section import Drawing, Part, Section, folded, titled
from orchestrator.report.table import Cell, Table, print_table

TITLE = "Cost of a prediction"
MAX_PANELS = 9
"""Largest number of datasets that the figure shows."""


def section(study: Findings) -> Section | None:
    """Return the section; None without two arms whose predictions were timed.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        Tables and a figure.
    """
    costs = findings.prediction_costs(study)
    if costs["solver"].nunique() < 2:
        return None
    parts: list[Part] = []
    if len(findings.speed_ups(study)):
        parts += titled(_speed_ups(study))
    frame = shown_in_figures(study, costs)
    caption = (
        f"{fmt.metric_name(study.design.metric)} against the seconds that a row takes in a batch, both as "
        "means over the outer folds. Higher is more accurate, and further left is faster. The line joins the "
        "arms that no other arm dominates."
    )
    n_datasets = costs["dataset"].nunique()
    caption += first_note(min(MAX_PANELS, frame["dataset"].nunique()), n_datasets)
    drawing = Drawing("prediction_cost", caption + arms_note(study), lambda: _figure(study, frame), frame)
    parts += folded(study, "Costs of each dataset and arm, and a figure", [drawing, _costs(study, costs)])
    return Section(TITLE, "", parts, needs_scores=True)


def _speed_ups(study: Findings) -> Table:
    """Return the table of speed-ups over datasets.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    marked, first = marked_arms(study), next(iter(study.design.arms))
    return print_table(
        "speed_ups",
        f"Predictions per second relative to {marked_name(first, marked)}",
        findings.speed_ups(study),
        {
            "Arm": lambda row: marked_name(row["reference"], marked),
            units(study): lambda row: fmt.count(row[f"{COST}_n"]),
            "Speed-up, geometric mean": lambda row: geometric_mean(row, COST),
            "Speed-up, typical ratio": lambda row: typical_ratio(row, COST),
        },
        caption=f"Seconds per row of {first} divided by those of the arm, both as means over the same outer "
        f"folds; values above 1 are faster. Geometric mean: over {fmt.plural_of(study.design.unit)}, with a "
        f"{fmt.level(study.design.alpha)} interval by Student's t on the logarithms. Typical ratio: the "
        "Hodges–Lehmann estimate on the logarithms, with a distribution-free interval. All test rows of a "
        f"fold are predicted together, and their number divides the time. Not tested, and the intervals are "
        f"not adjusted for their number.{processor_note(study)}{mark_note(study)}",
    )


def _costs(study: Findings, frame: pd.DataFrame) -> Table:
    """Return the table of the costs on each dataset.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        Result of `findings.prediction_costs`.
    """
    metric = study.design.metric
    columns = {
        f"Mean {fmt.metric_name(metric)}": lambda row: fmt.score(row["score"], metric),
        "Difference from the first arm": lambda row: fmt.difference(row["score_difference"], metric),
        "Time per row, µs": lambda row: fmt.time(1e6 * row[COST]),
        "Speed-up": lambda row: fmt.time_ratio(row["speed_up"]),
        "Vectors": lambda row: fmt.count(row["n_sv"]),
        "Vectors kept, %": lambda row: fmt.share(row["kept_share"]),
        "On the front": lambda row: Cell("yes", strong=True) if row["on_front"] else "no",
    }
    if frame["row_seconds"].notna().any():
        columns["Time of one row, µs"] = lambda row: fmt.time(1e6 * row["row_seconds"])
    return rows_by_dataset(
        study,
        "prediction_costs",
        TITLE,
        frame,
        columns,
        caption="Means over the outer folds. Time per row: that of the prediction of all test rows of a "
        "fold, divided by their number. Speed-up: time per row of the first arm divided by that of the arm. "
        "Vectors: support vectors of a model, or those of its reduced set. Vectors kept: divided by those of "
        "the arm with the most on the dataset. On the front: no other arm is at least as accurate and at "
        f"least as fast, and better in one of the two. {fmt.MISSING} marks a number that the solver "
        f"does not publish.{processor_note(study)}{arms_note(study)}",
    )


def _figure(study: Findings, frame: pd.DataFrame) -> Figure:
    """Draw the score against the seconds per row, one panel for each dataset.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows that the figure shows.
    """
    shades, datasets = colours(list(study.design.arms)), frame["dataset"].unique()[:MAX_PANELS]
    metric = study.design.metric
    scale = 100.0 if fmt.is_percent(metric) else 1.0
    n_columns = min(3, len(datasets))
    n_rows = -(-len(datasets) // n_columns)
    arms = frame["solver"].unique()
    figure = Figure(figsize=(WIDTH, 2.2 * n_rows + 0.4 + 0.16 * len(arms)))
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax in axes[len(datasets) :]:
        ax.axis("off")
    for ax, dataset in zip(axes, datasets, strict=False):
        points = frame[(frame["dataset"] == dataset) & (frame[COST] > 0)].sort_values(COST, kind="stable")
        front = points[points["on_front"]]
        ax.set_xscale("log")
        ax.grid(axis="both")
        ax.tick_params(length=0, which="both")
        ax.step(front[COST], front["score"] * scale, where="post", color=RULE, linewidth=1.0, zorder=1)
        colour = [shades[arm] for arm in points["solver"]]
        ax.scatter(points[COST], points["score"] * scale, s=26, color=colour, linewidths=0, zorder=3)
        ax.set_title(literal(wrapped(str(dataset), 24)), fontsize=8)
        _at_least_a_decade(ax)
        few_ticks(ax, n_decades=1)
    axes[0].set_ylabel(literal(f"{fmt.metric_name(metric)}{' (%)' if scale > 1 else ''}"))
    figure.supxlabel("Seconds per row, logarithmic", fontsize=8)
    names = [literal(wrapped(arm, 60)) for arm in arms]
    marks = [axes[0].scatter([], [], s=20, color=shades[arm], linewidths=0) for arm in arms]
    figure.legend(marks, names, loc="outside upper left", frameon=False, fontsize=7)
    return figure


def _at_least_a_decade(ax: Axes) -> None:
    """Widen a logarithmic axis of x to a decade, which has at least three ticks at 1, 2 and 5.

    On a shorter axis, matplotlib sets ticks at equal distances, whose long numbers overlap.

    Parameters
    ----------
    ax : Axes
        The axes to draw on. Its limits may change.
    """
    low, high = ax.get_xlim()
    factor = max(1.0, 9.99 * low / high) ** 0.5
    ax.set_xlim(low / factor, high * factor)
