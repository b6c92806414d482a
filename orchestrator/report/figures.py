"""The figures of a report, each a function from findings to a matplotlib figure, and how they become SVG."""

import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import ALL_PAIRS_UP_TO, cliques
from orchestrator.analysis.ratios import EXACT
from orchestrator.report import format as fmt
from orchestrator.report.table import records
from orchestrator.report.tables import time_unit
from orchestrator.study.text import printable

WIDTH = 9.0
"""Width of every figure in inches; a page shows them all at one scale."""

INK = "#1f2328"
MUTED = "#6b7280"
RULE = "#e3e6ea"

STYLE_SHEET = Path(__file__).parent / "templates" / "report.mplstyle"

HIGHEST_PDF = 20.0
"""Inches; what is higher, a figure of many arms, fits no page of a paper, and takes seconds to draw."""

_FEW_MAPS = 9

ROW = 0.19
"""Height of one line of text in a chart, inches."""


@dataclass(frozen=True)
class Panel:
    """One column of a bar chart: a quantity, perhaps its error, and whether stopped trainings bound it.

    A quantity that spans decades is drawn as dots on a logarithmic axis, where a bar would have no foot.
    """

    column: str
    label: str
    error: str | None = None
    dots: bool = False
    limits: tuple[float, float] | None = None
    lower_bounds: bool = False


@dataclass(frozen=True)
class Drawn:
    """A figure as documents.

    Attributes
    ----------
    svg : str
    pdf : bytes
        Empty of a figure that is higher than `HIGHEST_PDF`.
    data : DataFrame or None
        What it was drawn from; of a user's own figure that is not known.
    """

    svg: str
    pdf: bytes
    data: pd.DataFrame | None = None


def scores(findings: Findings) -> Figure:
    """Bars of mean scores with corrected standard errors, and the same enlarged about a dataset's mean."""
    metric = findings.design.metric
    scale = 100.0 if fmt.is_percent(metric) else 1.0
    frame = findings.scores.assign(
        mean=lambda f: f["mean"] * scale,
        corrected_se=lambda f: f["corrected_se"] * scale,
        centred=lambda f: f["mean"] - f.groupby("dataset", sort=False)["mean"].transform("mean"),
    )
    name = fmt.metric_name(metric)
    unit = " (%)" if fmt.is_percent(metric) else ""
    inside = frame["mean"].dropna().between(0, scale).all()
    enlarged = f"Enlarged: difference from the dataset's mean{unit.replace('%', 'points')}"
    panels = [
        Panel("mean", f"Mean {name}{unit}", "corrected_se", limits=(0, scale) if inside else None),
        Panel("centred", enlarged, "corrected_se", dots=True),
    ]
    return _chart(findings, frame, panels)


def timing(findings: Findings) -> Figure:
    """Bars of training and prediction times."""
    unit, scale = time_unit(findings.timing)
    times = ["fit_seconds", "fit_corrected_se", "predict_seconds"]
    frame = findings.timing.assign(**{name: findings.timing[name] * scale for name in times})
    panels = [
        Panel("fit_seconds", f"Training ({unit})", "fit_corrected_se", lower_bounds=True),
        Panel("predict_seconds", f"Prediction ({unit})"),
    ]
    return _chart(findings, frame, panels)


def effort(findings: Findings) -> Figure:
    """Bars of support-vector shares, iterations and kernel evaluations."""
    frame = findings.effort.assign(sv_share=findings.effort["sv_share"] * 100)
    panels = [
        Panel("sv_share", "Support-vector share (%)"),
        Panel("n_iter", "Iterations", lower_bounds=True),
        Panel("n_kernel_evals", "Kernel evaluations", lower_bounds=True),
    ]
    return _chart(findings, frame, [panel for panel in panels if frame[panel.column].notna().any()])


def _chart(findings: Findings, frame: pd.DataFrame, panels: Sequence[Panel]) -> Figure:
    """Draw one line for every dataset × arm, grouped by dataset, and one column for every panel."""
    colour = colours(list(findings.design.arms))
    labels, rows, y = [], [], 0.0
    for dataset, group in frame.groupby("dataset", sort=False):
        labels.append((y, wrapped(str(dataset), 30), "bold"))
        y += 0.25 + 0.75 * labels[-1][1].count("\n") + 0.75
        for row in records(group):
            text = wrapped(row["solver"], 30)
            extra = 0.75 * text.count("\n")
            labels.append((y + extra / 2, text, "normal"))
            rows.append((y + extra / 2, row))
            y += 1 + extra
        y += 0.35
    figure = Figure(figsize=(WIDTH, 0.55 + ROW * y))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, panel in zip(axes, panels, strict=True):
        ax.yaxis.set_visible(ax is axes[0])
        _panel(ax, panel, rows, colour)
    axes[0].set_ylim(y - 0.6, -0.7)
    axes[0].set_yticks([])
    # Ticks would do the same in five times as many objects, and annotations in twice the time.
    left = axes[0].get_yaxis_transform() + ScaledTranslation(-3.5 / 72, 0, figure.dpi_scale_trans)
    measured: set[tuple[str, str]] = set()  # the width of a name is needed once, not for every dataset
    for at, text, weight in labels:
        look: dict[str, Any] = {"ha": "right", "va": "center", "fontweight": weight}
        axes[0].text(0, at, literal(text), transform=left, in_layout=(text, weight) not in measured, **look)
        measured.add((text, weight))
    return figure


def _panel(
    ax: Axes, panel: Panel, rows: Sequence[tuple[float, dict[str, Any]]], colour: dict[str, str]
) -> None:
    plain_axis(ax)
    y = np.array([at for at, _ in rows])
    x = np.array([row[panel.column] for _, row in rows], dtype=float)
    error = np.array([row[panel.error] for _, row in rows], dtype=float) if panel.error else np.zeros_like(x)
    error = np.nan_to_num(error)
    shades = [colour[row["solver"]] for _, row in rows]
    log = not panel.dots and spans_decades(x)
    for at in y[~np.isfinite(x)]:
        ax.annotate("–", (0.01, at), xycoords=("axes fraction", "data"), va="center", color=MUTED)
    if log or panel.dots:
        if log:
            ax.set_xscale("log")
            ax.xaxis.set_minor_formatter(NullFormatter())
            x = np.where(x > 0, x, np.nan)
            # A lower end at or below zero has no place on this axis.
            error = np.minimum(error, 0.9 * x)
        ax.hlines(y, x - error, x + error, colors=shades, linewidth=1.2, zorder=2)
        ax.scatter(x, y, s=22, color=shades, linewidths=0, zorder=3)
    else:
        ax.barh(y, x, height=0.72, color=shades, zorder=2)
        whiskers = (error > 0) & np.isfinite(x)
        lines: dict[str, Any] = {"ecolor": INK, "elinewidth": 0.9, "capsize": 2, "capthick": 0.9, "zorder": 3}
        ax.errorbar(x[whiskers], y[whiskers], xerr=error[whiskers], fmt="none", **lines)
        ax.axvline(0, color=MUTED, linewidth=0.6)
    if panel.lower_bounds:
        stopped = np.array([row["n_stopped"] > 0 for _, row in rows]) & np.isfinite(x)
        ax.scatter(x[stopped], y[stopped], s=26, marker=">", color=INK, linewidths=0, zorder=4)
    if panel.dots:
        ax.axvline(0, color=MUTED, linewidth=0.6, zorder=1)
        reach = np.nanmax(np.abs(x) + error, initial=0) * 1.12 or 1.0
        ax.set_xlim(-reach, reach)
    if panel.limits:
        ax.set_xlim(*panel.limits)
    if log:
        low, high = ax.get_xlim()
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 3) if high < 300 * low else (1,)))
        ax.xaxis.set_major_formatter(FuncFormatter(_short_count))
    else:
        ax.locator_params(axis="x", nbins=5)
        if np.nanmax(x, initial=0) >= 10_000:
            ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    ax.set_xlabel(literal(panel.label + (", logarithmic" if log else "")))


def _short_count(value: float, _: Any = None) -> str:
    return str(EngFormatter(sep="")(value)) if value >= 1000 else f"{value:g}"


def mean_ranks(findings: Findings) -> Figure:
    """Mean ranks, best on top, with lines joining arms that no test tells apart."""
    frame = findings.ranks
    order = list(frame["solver"])
    colour = colours(list(findings.design.arms))
    runs = cliques(order, findings.tests) if len(order) <= ALL_PAIRS_UP_TO else []
    figure = Figure(figsize=(WIDTH, 0.6 + 0.26 * len(order)))
    ax = figure.subplots()
    plain_axis(ax)
    y = np.arange(len(order))
    lowest = max(len(order), int(np.ceil(frame["mean_rank"].max())))
    ax.hlines(y, 1, lowest, color=RULE, linewidth=0.8, zorder=1)
    ax.scatter(frame["mean_rank"], y, s=36, color=[colour[name] for name in order], zorder=3)
    for rank, at in zip(frame["mean_rank"], y, strict=True):
        above = ax.annotate(f"{rank:.2f}", (rank, at), (0, 5), textcoords="offset points")
        above.set(fontsize=7, ha="center", va="bottom")
    for i, (first, last) in enumerate(runs):
        x = lowest + 0.18 + 0.12 * i
        ax.plot([x, x], [first - 0.18, last + 0.18], color=INK, linewidth=2.4, solid_capstyle="round")
    ax.set_xlim(0.9, lowest + 0.15 + 0.12 * max(1, len(runs)) + 0.1)
    ax.set_ylim(len(order) - 0.4, -0.75)
    ax.set_xticks(range(1, lowest + 1, max(1, lowest // 40)))
    ax.set_yticks(y, [literal(wrapped(name, 40)) for name in order])
    ax.set_xlabel("Mean rank (1 is best)")
    return figure


def time_accuracy(findings: Findings) -> Figure:
    """Draw mean scores against time ratios; names stand apart and are joined to their points."""
    frame, metric = findings.standings, findings.design.metric
    exact = frame["is_control"] | (frame["fit_seconds_bound"] == EXACT)
    ratio = frame["fit_seconds_ratio"].astype(float).mask(frame["is_control"], 1.0)
    frame = frame.assign(x=ratio.where(exact)).dropna(subset=["x", "mean"])
    scale = 100.0 if fmt.is_percent(metric) else 1.0
    y = frame["mean"].to_numpy(dtype=float) * scale
    names = [wrapped(arm, 40) for arm in frame["solver"]]
    heights = np.array([1.0 + name.count("\n") for name in names])
    figure = Figure(figsize=(WIDTH, max(2.8, 0.8 + ROW * heights.sum())))
    ax, margin = figure.subplots(1, 2, width_ratios=(5, 3), sharey=True)
    room = 0.08 * np.ptp(y) or 1.0
    low, high = y.min() - room, y.max() + room
    ax.set(xscale="log", ylim=(low, high))
    ax.grid(axis="both")
    ax.tick_params(length=0, which="both")
    shades = [colours(list(findings.design.arms))[arm] for arm in frame["solver"]]
    ends = frame[["fit_seconds_ratio_low", "fit_seconds_ratio_high"]].to_numpy(dtype=float)
    ax.hlines(y, *ends.T, colors=shades, linewidth=1.2)
    ax.scatter(frame["x"], y, s=30, color=shades, linewidths=0, zorder=3)
    edge = ax.get_xlim()[1]
    ax.hlines(y, frame["x"], edge, color=RULE, linewidth=0.6, zorder=1)
    ax.set_xlim(right=edge)
    margin.axis("off")
    margin.set_xlim(0, 1)
    places = spread_out(y, heights, low, high)
    margin.scatter(np.full(len(y), 0.08), places, s=18, color=shades, linewidths=0)
    for name, value, place in zip(names, y, places, strict=True):
        margin.plot([0, 0.06], [value, place], color=RULE, linewidth=0.8)
        margin.text(0.11, place, literal(name), va="center", fontsize=7)
    _few_ticks(ax)
    ax.set_xlabel("Training time, ratio to the control, logarithmic")
    ax.set_ylabel(literal(f"Mean {fmt.metric_name(metric)}{' (%)' if scale > 1 else ''}"))
    return figure


def _few_ticks(ax: Axes) -> None:
    """Put ticks at 1, 2 and 5 of each decade of a logarithmic axis, or at decades alone if they are many."""
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1e3 * low else (1,)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:g}")


def spread_out(y: np.ndarray, heights: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the centres of texts of these heights, in lines: near y, in its order, between low and high."""
    order = np.argsort(y, kind="stable")
    half = heights[order] / 2 * (high - low) / max(heights.sum(), 14.0)
    places = y[order].astype(float)
    places[0] = max(places[0], low + half[0])
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + half[i - 1] + half[i])
    places[-1] = min(places[-1], high - half[-1])
    for i in range(len(places) - 2, -1, -1):
        places[i] = min(places[i], places[i + 1] - half[i + 1] - half[i])
    centres = np.empty_like(places)
    centres[order] = places
    return centres


def performance_profiles(findings: Findings) -> Figure:
    """Draw on which share of the datasets each arm is within a factor of the fastest one."""
    frame = findings.profile
    colour = colours(list(findings.design.arms))
    dashes = cycle(["-", "--", ":", "-."])
    end = max(2.0, 1.3 * frame["factor"].max())
    labels = {arm: wrapped(arm, 40) for arm in frame["solver"].unique()}
    lines = sum(1.3 + label.count("\n") for label in labels.values())
    figure = Figure(figsize=(WIDTH, max(2.8, 0.8 + ROW * lines)))
    ax = figure.subplots()
    for arm, label in labels.items():
        steps = frame[frame["solver"] == arm]
        x, share = [*steps["factor"], end], [*steps["share"], steps["share"].iloc[-1]]
        look: dict[str, Any] = {"color": colour[arm], "linestyle": next(dashes), "linewidth": 1.3}
        ax.step(x, 100 * np.array(share), where="post", label=literal(label), **look)
    ax.set(xscale="log", xlim=(1, end), ylim=(0, 104))
    _few_ticks(ax)
    ax.grid(axis="both")
    ax.tick_params(length=0, which="both")
    ax.set_xlabel("Training time, multiple of the fastest arm's, logarithmic")
    ax.set_ylabel("Datasets (%)")
    figure.legend(loc="outside right center", fontsize=7, frameon=False)
    return figure


def choices(findings: Findings) -> Figure:
    """How often each grid point won, one map for every arm."""
    frame = findings.choices
    arms = list(frame["solver"].unique())
    n_rows = -(-len(arms) // 4)
    shape = max(frame.groupby("solver")["y"].nunique()) / max(frame.groupby("solver")["x"].nunique())
    figure = Figure(figsize=(WIDTH, (0.75 + 1.7 * min(1.5, shape)) * n_rows))
    grid = figure.subplots(n_rows, 4, squeeze=False)
    for ax in grid.flat[len(arms) :]:
        ax.set_visible(False)
    for ax, arm in zip(grid.flat, arms, strict=False):
        _choice_map(ax, frame[frame["solver"] == arm], findings.design.arms[arm]["space"], arm)
    return figure


def _choice_map(ax: Axes, counts: pd.DataFrame, space: dict[str, Any], arm: str) -> None:
    x_name, y_name = counts["x_name"].iloc[0], counts["y_name"].iloc[0]
    xs, ys = (sorted(float(value) for value in space[name]) for name in (x_name, y_name))
    wide = counts.pivot(index="y", columns="x", values="count").reindex(index=ys, columns=xs)
    matrix = wide.fillna(0).to_numpy()
    # Rectangles rather than an image: a figure stays sharp, and the page holds no picture data.
    for (i, j), value in np.ndenumerate(matrix):
        if value:
            strength = value / matrix.max()
            ax.add_patch(Rectangle((j, i), 1, 1, facecolor=mpl.colormaps["Blues"](0.15 + 0.75 * strength)))
            shade = "white" if strength > 0.6 else INK
            ax.text(j + 0.5, i + 0.5, f"{value:.0f}", ha="center", va="center", fontsize=7, color=shade)
    ax.hlines(range(1, len(ys)), 0, len(xs), color=RULE, linewidth=0.4, zorder=0)
    ax.vlines(range(1, len(xs)), 0, len(ys), color=RULE, linewidth=0.4, zorder=0)
    ax.set(xlim=(0, len(xs)), ylim=(0, len(ys)), aspect="equal")
    for values, set_ticks in ((xs, ax.set_xticks), (ys, ax.set_yticks)):
        step = -(-len(values) // 6)
        set_ticks(np.arange(0, len(values), step) + 0.5, value_labels(values)[::step])
    ax.tick_params(length=0, labelsize=7)
    ax.spines[["top", "right"]].set_visible(True)
    ax.set_title(literal(wrapped(arm, 26)))
    ax.set_xlabel(literal(wrapped(x_name, 26)))
    ax.set_ylabel(literal(wrapped(y_name, 26)))


def sweep(findings: Findings) -> Figure:
    """Draw every sweep: paired differences and work ratios to the reference, a thin line for each dataset."""
    metric = findings.design.metric
    scale = 100.0 if fmt.is_percent(metric) else 1.0
    frame = findings.sweep_differences.assign(difference=lambda f: f["difference"] * scale)
    quantities = {
        "difference": f"Difference in {fmt.metric_name(metric)}{' (points)' if scale > 1 else ''}",
        "n_iter_ratio": "Iterations, ratio",
        "n_kernel_evals_ratio": "Kernel evaluations, ratio",
        "fit_seconds_ratio": "Training time, ratio",
    }
    shown = {name: label for name, label in quantities.items() if frame[name].notna().any()}
    groups = list(frame.groupby(["sweep", "axis"], sort=False))
    figure = Figure(figsize=(WIDTH, 2.5 * len(groups)))
    grid = figure.subplots(len(groups), len(shown), squeeze=False)
    for axes, ((title, axis), rows) in zip(grid, groups, strict=True):
        for ax, (name, label) in zip(axes, shown.items(), strict=True):
            _sweep_panel(ax, rows, name, findings.sweep_summary)
            if name == "difference":
                _band(ax, rows, findings.sweep_curves, scale)
            ax.set_ylabel(literal(label))
            ax.set_xlabel(literal(f"{wrapped(str(title), 30)}: {printable(str(axis))}"))
    return figure


def _sweep_panel(ax: Axes, rows: pd.DataFrame, name: str, summary: pd.DataFrame) -> None:
    ratio = name.endswith("_ratio")
    settings = list(dict.fromkeys(rows["setting"]))
    wide = rows.pivot(index="dataset", columns="setting", values=name)[settings]
    x = np.arange(len(settings))
    ax.axhline(1 if ratio else 0, color=MUTED, linewidth=0.6)
    for values in wide.to_numpy(dtype=float):
        ax.plot(x, values, color="#b8c4d0", linewidth=0.8, zorder=2)
    middle = _geometric_means(rows, name, summary) if ratio else wide.median()
    ax.plot(x, middle, color=colours(["first"])["first"], linewidth=1.8, marker="o", markersize=4, zorder=3)
    ax.grid(axis="y")
    ax.tick_params(length=0)
    long = max(len(str(setting)) for setting in settings) * len(settings) > 28
    slanted: dict[str, Any] = {"rotation": 45, "ha": "right"} if long else {}
    ax.set_xticks(x, [literal(str(setting)) for setting in settings], **slanted)
    ax.margins(x=0.06)


def _band(ax: Axes, rows: pd.DataFrame, curves: pd.DataFrame, scale: float) -> None:
    """Shade the simultaneous band of a sweep; the reference, drawn first, has no width."""
    same = (curves["sweep"] == rows["sweep"].iloc[0]) & (curves["axis"] == rows["axis"].iloc[0])
    ends = curves[same].set_index("solver").reindex(dict.fromkeys(rows["solver"]))[["low", "high"]] * scale
    low, high = ends.to_numpy(dtype=float).T
    low[0] = high[0] = 0.0
    ax.fill_between(np.arange(len(low)), low, high, color="#0072B2", alpha=0.15, linewidth=0, zorder=1)


def _geometric_means(rows: pd.DataFrame, name: str, summary: pd.DataFrame) -> np.ndarray:
    """Return a sweep's mean ratios by setting, NaN where stopped trainings leave only a bound."""
    arms = list(dict.fromkeys(rows["solver"]))
    same = (summary["sweep"] == rows["sweep"].iloc[0]) & (summary["axis"] == rows["axis"].iloc[0])
    found = summary[same].set_index("solver").loc[arms]
    return found[name].where(found[name.replace("_ratio", "_bound")] == EXACT).to_numpy(dtype=float)


def scaling(findings: Findings) -> Figure:
    """Draw training times against sizes, with the power laws that were fitted to them."""
    points, fits = findings.sizes, findings.scaling
    labels = {"n_train": "Training rows", "n_sv": "Support vectors"}
    arms = list(fits["solver"].unique())[:_ARMS_FITTED]
    colour = colours(list(findings.design.arms))
    shown = [name for name in labels if (fits["predictor"] == name).any()]
    names = {arm: wrapped(arm, 30) for arm in arms}
    lines = sum(1.3 + name.count("\n") for name in names.values())
    figure = Figure(figsize=(WIDTH, max(3.0, 0.8 + ROW * lines)))
    axes = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for ax, predictor in zip(axes, shown, strict=True):
        for row in records(fits[(fits["predictor"] == predictor) & fits["solver"].isin(arms)]):
            arm, ends = row["solver"], np.array([row["smallest"], row["largest"]])
            own = points[(points["solver"] == arm) & (points[predictor] > 0)]
            ax.scatter(own[predictor], own["fit_seconds"], s=14, color=colour[arm], linewidths=0, zorder=3)
            law = row["factor"] * ends ** row["exponent"]
            ax.plot(ends, law, color=colour[arm], linewidth=1.2, label=literal(names[arm]))
        ax.set(xscale="log", yscale="log", xlabel=f"{labels[predictor]}, logarithmic")
        ax.grid(axis="both")
        ax.tick_params(length=0, which="both")
        _few_ticks(ax)
    axes[0].set_ylabel("Training time (s), logarithmic")
    legends = [zip(*ax.get_legend_handles_labels(), strict=True) for ax in axes]
    handles = {label: line for pairs in legends for line, label in pairs}
    place: dict[str, Any] = {"loc": "outside right center", "fontsize": 7, "frameon": False}
    figure.legend([*handles.values()], [*handles], **place)
    return figure


_ARMS_FITTED = 12
"""Arms that a figure of fits can tell apart by colour."""


def colours(arms: Sequence[str]) -> dict[str, str]:
    """Give every arm its colour; figures name arms in words too, so a repeated colour does no harm."""
    palette = cycle(mpl.rcParams["axes.prop_cycle"].by_key()["color"])
    return dict(zip(arms, palette, strict=False))


def drawn(figure: Figure, data: pd.DataFrame | None = None) -> Drawn:
    """Return the figure as documents, the same for the same figure.

    It is laid out once for both, which `savefig` would do for each, after a drawing of its own.
    """
    figure.dpi = 72  # that of both formats
    vector = FigureCanvasSVG(figure)
    if (engine := figure.get_layout_engine()) is not None:
        # Of a few maps, which keep their proportions, the room for labels is known after a layout or two.
        few = len(figure.axes) <= _FEW_MAPS and any(ax.get_aspect() != "auto" for ax in figure.axes)
        for _ in range(3 if few else 1):
            engine.execute(figure)
        figure.set_layout_engine("none")
    svg, pdf = io.StringIO(), io.BytesIO()
    vector.print_svg(svg, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    if figure.get_figheight() <= HIGHEST_PDF:
        nothing = dict.fromkeys(("CreationDate", "Creator", "Producer"))
        FigureCanvasPdf(figure).print_pdf(pdf, metadata=nothing)
    return Drawn(re.sub(r"[ \t]+\n", "\n", svg.getvalue()), pdf.getvalue(), data)


def plain_axis(ax: Axes) -> None:
    """Leave an axis only its vertical grid lines and the numbers below them."""
    ax.grid(axis="x")
    ax.tick_params(length=0)
    ax.spines[["left", "right", "top"]].set_visible(False)


def literal(text: str) -> str:
    """Return a text for matplotlib in which dollar signs do not enclose mathematics."""
    return "\n".join(map(printable, text.split("\n"))).replace("$", r"\$")


def wrapped(name: str, width: int = 24) -> str:
    """Break a long name where a reader would, and anywhere else if need be; to be followed by `literal`."""
    name = printable(name)
    lines = [""]
    for piece in re.findall(r"\[?[^\[,_\- ]+[,_\- \]]*|.", name):
        for start in range(0, len(piece), width):
            part = piece[start : start + width]
            if len(lines[-1]) + len(part.rstrip(" ")) > width:
                lines.append("")
            lines[-1] += part
    return "\n".join(line.strip(" ") for line in lines if line.strip(" "))


def spans_decades(values: Iterable[float], factor: float = 30.0) -> bool:
    """Whether positive values differ so much that a linear axis would hide the small ones."""
    positive = [value for value in values if math.isfinite(value) and value > 0]
    return bool(positive) and max(positive) > factor * min(positive)


def value_labels(values: Sequence[float]) -> list[str]:
    """Print the values of an axis: as powers of 2 or 10 if all are such and some are unwieldy otherwise."""
    plain = [f"{value:.3g}".replace("-", "−") for value in values]
    if max(map(len, plain)) <= 3 or min(values) <= 0:
        return plain
    for base in (2, 10):
        exponents = [math.log(value, base) for value in values]
        if all(abs(exponent - round(exponent)) < 1e-9 for exponent in exponents):
            return [f"${base}^{{{round(exponent)}}}$" for exponent in exponents]
    return plain
