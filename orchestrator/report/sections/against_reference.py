"""Every arm against a reference arm, point by point, in a study that selects no candidates."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.reference_measures import point_means
from orchestrator.report import format as fmt
from orchestrator.report.by_dataset import rows_by_dataset
from orchestrator.report.figures import WIDTH, Panel, bar_chart, colours, few_ticks, literal, wrapped
from orchestrator.report.limits import arms_note, figure_note, first_note, shown_in_figures
from orchestrator.report.section import Drawing, Paragraph, Part, Section, titled
from orchestrator.report.table import Cell, Printer, Row, Table

TITLE = "Against a reference"

MAX_DRAWN = 6
"""Largest number of datasets whose points are drawn."""

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
    return Section(TITLE, "", [*parts, *_drawings(study, frame)], link="Reference")


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
        _table(study, str(reference), rows.reset_index(drop=True), _suffix(number))
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


def _suffix(number: int) -> str:
    """Return the end of the names of the files about a reference arm.

    Parameters
    ----------
    number : int
        Index of the reference, from 0.
    """
    return f"_{number + 1}" if number else ""


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


# -- figures -------------------------------------------------------------------------------------


def _drawings(study: Findings, frame: pd.DataFrame) -> list[Drawing]:
    """Return the figures: the points of the grid, and bars of the summaries against each reference.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        Rows of `findings.against_references`.
    """
    drawings = []
    means = point_means(findings.grid_points(study))
    drawn = shown_in_figures(study, means)
    names = [name for name in study.design.datasets if name in set(means["dataset"])]
    drawn = drawn[drawn["dataset"].isin(names[:MAX_DRAWN])]
    costs = [name for name in _COSTS if drawn[name].notna().any()]
    if costs:
        cut = first_note(drawn["dataset"].nunique(), len(names))
        caption = (
            f"Mean {fmt.metric_name(study.design.metric)} over splits of every point of the grid, against "
            f"{' and '.join(_COSTS[name][0] for name in costs)}. Each dot is one point of one arm. Higher is "
            f"more accurate on these test rows, and further left is cheaper.{cut}"
        )
        drawings.append(
            Drawing(
                "grid_points",
                caption + arms_note(study),
                lambda: _figure_of_points(study, drawn, costs),
                means,
            )
        )
    for number, (reference, rows) in enumerate(frame.groupby("reference", sort=False)):
        drawings.append(_summaries(study, str(reference), shown_in_figures(study, rows), _suffix(number)))
    return drawings


_COSTS = {
    "seconds": ("training time", "Training time (s), logarithmic"),
    "n_sv": ("number of support vectors", "Support vectors, logarithmic"),
}
"""Name of each cost in a caption and on its axis."""


def _figure_of_points(study: Findings, points: pd.DataFrame, costs: Sequence[str]) -> Figure:
    """Draw the score of every point against its costs, a row of axes for each dataset.

    Parameters
    ----------
    study : Findings
        The study of the report.
    points : DataFrame
        Means of the points, as `point_means` returns them.
    costs : sequence of str
        Columns to draw on the horizontal axes.
    """
    metric, colour = study.design.metric, colours(list(study.design.arms))
    datasets = list(dict.fromkeys(points["dataset"]))
    figure = Figure(figsize=(WIDTH, 0.4 + 2.6 * len(datasets)))
    axes = figure.subplots(len(datasets), len(costs), sharey="row", squeeze=False)
    scale = 100.0 if fmt.is_percent(metric) else 1.0
    for line, dataset in zip(axes, datasets, strict=True):
        rows = points[points["dataset"] == dataset]
        for ax, cost in zip(line, costs, strict=True):
            _points_of_arms(ax, rows, cost, scale, colour)
        line[0].set_title(literal(wrapped(dataset, 60)), loc="left", fontweight="bold")
        line[0].set_ylabel(literal(f"{fmt.metric_name(metric)}{' (%)' if scale > 1 else ''}"))
    legends = [zip(*ax.get_legend_handles_labels(), strict=True) for ax in axes.flat]
    handles = {label: dots for pairs in legends for dots, label in pairs}
    position: dict[str, Any] = {"loc": "outside right center", "fontsize": 7, "frameon": False}
    figure.legend([*handles.values()], [*handles], **position)
    return figure


def _points_of_arms(ax: Axes, rows: pd.DataFrame, cost: str, scale: float, colour: dict[str, str]) -> None:
    """Draw the points of all arms on one dataset.

    Parameters
    ----------
    ax : Axes
        The axes to draw on.
    rows : DataFrame
        Means of the points of the dataset.
    cost : str
        Column of the horizontal axis.
    scale : float
        Factor of the scores.
    colour : dict of str to str
        Colour of each arm.
    """
    for arm, shade in colour.items():
        known = rows[(rows["solver"] == arm) & (rows[cost] > 0)]
        if known.empty:
            continue
        label = literal(wrapped(arm, 30))
        ax.scatter(
            known[cost], scale * known["score"], s=10, color=shade, linewidths=0, alpha=0.7, label=label
        )
    ax.set(xscale="log", xlabel=_COSTS[cost][1])
    ax.grid(axis="both")
    ax.tick_params(length=0, which="both")
    few_ticks(ax)


def _summaries(study: Findings, reference: str, frame: pd.DataFrame, suffix: str) -> Drawing:
    """Return bars of the four summaries against a reference arm.

    Parameters
    ----------
    study : Findings
        The study of the report.
    reference : str
        Name of the reference arm.
    frame : DataFrame
        The rows to draw.
    suffix : str
        End of the name of the figure.
    """
    metric = study.design.metric
    percent = fmt.is_percent(metric)
    scaled = frame.assign(**{name: frame[name] * (100 if percent else 1) for name in ("rmse", "maximum")})
    unit, differs = " (%)" if percent else "", bool((scaled["rmse"] > 0).any())
    panels = [
        Panel("rmse", "RMSE" + (" (points)" if percent else ""), limits=None if differs else (0.0, 1.0)),
        Panel("maximum", f"Maximum {fmt.metric_name(metric)}{unit}"),
        Panel("ots", "OTS"),
        Panel("ocs", "OCS"),
    ]
    panels = [panel for panel in panels if scaled[panel.column].notna().any()] or panels[:1]
    caption = (
        f"Summaries of the table against {reference}. RMSE 0 means the scores of {reference}; OTS and OCS "
        "above 1 mean less time. If a quantity spans decades, the axis is logarithmic and dots replace bars. "
        "The maximum over a grid on test rows is no estimate of accuracy."
    )
    return Drawing(
        f"against_reference{suffix}",
        caption + figure_note(study),
        lambda: bar_chart(study, scaled, panels),
        frame,
    )
