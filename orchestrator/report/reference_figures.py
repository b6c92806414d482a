"""Figures of every arm against a reference arm: the points of the grid, and bars of the summaries."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.reference_measures import point_means
from orchestrator.report import format as fmt
from orchestrator.report.figures import WIDTH, Panel, bar_chart, colours, few_ticks, literal, wrapped
from orchestrator.report.limits import arms_note, figure_note, first_note, shown_in_figures
from orchestrator.report.section import Drawing

MAX_DRAWN = 6
"""Largest number of datasets whose points are drawn."""


def drawings(study: Findings, frame: pd.DataFrame) -> list[Drawing]:
    """Return the figures: the points of the grid, and bars of the summaries against each reference.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        Rows of `findings.against_references`.

    Returns
    -------
    list of Drawing
        The points first, unless no point has a cost; then the summaries, in the order of the references.
    """
    found = []
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
        found.append(
            Drawing(
                "grid_points",
                caption + arms_note(study),
                lambda: _figure_of_points(study, drawn, costs),
                means,
            )
        )
    for number, (reference, rows) in enumerate(frame.groupby("reference", sort=False)):
        shown = shown_in_figures(study, rows)
        found.append(_summaries(study, str(reference), shown, fmt.file_suffix(number)))
    return found


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
