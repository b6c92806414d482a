"""Mean scores against training times."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.ratios import EXACT
from orchestrator.report import format as fmt
from orchestrator.report.figures import ROW, RULE, WIDTH, colours, few_ticks, literal, wrapped
from orchestrator.report.limits import arms_note, shown_in_figures
from orchestrator.report.section import Drawing, Part


def parts(study: Findings) -> list[Part]:
    """Return the figure.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    list of Part
        Empty for fewer than three arms, or fewer than two that have a mean and were timed.
    """
    if findings.profile(study).empty or findings.standings(study).empty:
        return []
    frame = shown_in_figures(study, findings.standings(study))
    points = _points(frame)
    if len(points) < 2:
        return []
    caption = (
        f"Mean {fmt.metric_name(study.design.metric)} against training time, which is the geometric mean of "
        "the ratios to the control with its interval. Higher is more accurate, and further left is faster. "
        "Arms with stopped trainings are not drawn."
    )
    return [Drawing("time_accuracy", caption + arms_note(study), lambda: _figure(study, points), frame)]


def _points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the arms that have a mean and an exact time ratio, with the ratio as column x.

    Parameters
    ----------
    frame : DataFrame
        Standings of the arms.
    """
    exact = frame["is_control"] | (frame["fit_seconds_bound"] == EXACT)
    ratio = frame["fit_seconds_ratio"].astype(float).mask(frame["is_control"], 1.0)
    return frame.assign(x=ratio.where(exact)).dropna(subset=["x", "mean"])


def _figure(study: Findings, frame: pd.DataFrame) -> Figure:
    """Draw mean scores against time ratios; lines join the points to their names in the margin.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows that the figure shows, as `_points` returns them.
    """
    metric = study.design.metric
    scale = 100.0 if fmt.is_percent(metric) else 1.0
    y = frame["mean"].to_numpy(dtype=float) * scale
    names = [wrapped(arm, 40) for arm in frame["solver"]]
    heights = np.array([1.0 + name.count("\n") for name in names])
    figure = Figure(figsize=(WIDTH, max(2.8, 0.8 + ROW * heights.sum())))
    ax, margin = figure.subplots(1, 2, width_ratios=(5, 3), sharey=True)
    padding = 0.08 * np.ptp(y) or 1.0
    low, high = y.min() - padding, y.max() + padding
    ax.set(xscale="log", ylim=(low, high))
    ax.grid(axis="both")
    ax.tick_params(length=0, which="both")
    shades = [colours(list(study.design.arms))[arm] for arm in frame["solver"]]
    ends = frame[["fit_seconds_ratio_low", "fit_seconds_ratio_high"]].to_numpy(dtype=float)
    ax.hlines(y, *ends.T, colors=shades, linewidth=1.2)
    ax.scatter(frame["x"], y, s=30, color=shades, linewidths=0, zorder=3)
    edge = ax.get_xlim()[1]
    ax.hlines(y, frame["x"], edge, color=RULE, linewidth=0.6, zorder=1)
    ax.set_xlim(right=edge)
    margin.axis("off")
    margin.set_xlim(0, 1)
    centres = spread_out(y, heights, low, high)
    margin.scatter(np.full(len(y), 0.08), centres, s=18, color=shades, linewidths=0)
    for name, value, centre in zip(names, y, centres, strict=True):
        margin.plot([0, 0.06], [value, centre], color=RULE, linewidth=0.8)
        margin.text(0.11, centre, literal(name), va="center", fontsize=7)
    few_ticks(ax)
    ax.set_xlabel("Training time, ratio to the control, logarithmic")
    ax.set_ylabel(literal(f"Mean {fmt.metric_name(metric)}{' (%)' if scale > 1 else ''}"))
    return figure


def spread_out(y: np.ndarray, heights: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return centres in [low, high] at which texts do not overlap, close to `y` and in its order.

    Parameters
    ----------
    y : ndarray
        Positions that the texts belong to.
    heights : ndarray
        Heights of the texts, in lines.
    low : float
        Lower end of the axis.
    high : float
        Upper end of the axis.
    """
    order = np.argsort(y, kind="stable")
    half = heights[order] / 2 * (high - low) / max(heights.sum(), 14.0)
    centres_in_order = y[order].astype(float)
    centres_in_order[0] = max(centres_in_order[0], low + half[0])
    for i in range(1, len(centres_in_order)):
        centres_in_order[i] = max(centres_in_order[i], centres_in_order[i - 1] + half[i - 1] + half[i])
    centres_in_order[-1] = min(centres_in_order[-1], high - half[-1])
    for i in range(len(centres_in_order) - 2, -1, -1):
        centres_in_order[i] = min(centres_in_order[i], centres_in_order[i + 1] - half[i + 1] - half[i])
    centres = np.empty_like(centres_in_order)
    centres[order] = centres_in_order
    return centres
