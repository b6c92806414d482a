"""Shared functions of all figures: style, bar charts by dataset, and conversion to documents."""

import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
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
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from orchestrator.analysis.findings import Findings
from orchestrator.report.section import Drawing, Drawn
from orchestrator.report.table import records
from orchestrator.study.text import printable

WIDTH = 9.0
"""Width of every figure in inches; a page shows them all at one scale."""

INK = "#1f2328"
MUTED = "#6b7280"
RULE = "#e3e6ea"

STYLE_SHEET = Path(__file__).parent / "templates" / "report.mplstyle"

HIGHEST_PDF = 20.0
"""Largest height of a figure that is written as PDF, in inches: a higher one fits no page of a paper."""

_FEW_MAPS = 9

ROW = 0.19
"""Height of one line of text in a chart, inches."""

_DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
"""Five styles of lines, so that arms of one of the twelve colours differ in style."""


@dataclass(frozen=True)
class Panel:
    """One column of a bar chart.

    A quantity that spans decades is drawn as dots on a logarithmic axis, on which a bar has no origin.

    Attributes
    ----------
    column : str
        Column of the quantity.
    label : str
        Label of the axis.
    error : str or None
        Column of its error. Default: none.
    dots : bool
        Whether to draw dots on a linear axis that is symmetric about 0, in place of bars. Default False.
    limits : (float, float) or None
        Ends of the axis. By default they follow from the values.
    lower_bounds : bool
        Whether a triangle marks values that stopped trainings (column n_stopped) make lower bounds. Default
        False.
    """

    column: str
    label: str
    error: str | None = None
    dots: bool = False
    limits: tuple[float, float] | None = None
    lower_bounds: bool = False


def bar_chart(study: Findings, frame: pd.DataFrame, panels: Sequence[Panel]) -> Figure:
    """Draw one line for every dataset × arm, grouped by dataset, and one column for every panel.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        One row for each dataset × arm.
    panels : sequence of Panel
        The columns of the chart.
    """
    colour = colours(list(study.design.arms))
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
        below = error
        if log:
            ax.set_xscale("log")
            ax.xaxis.set_minor_formatter(NullFormatter())
            # Zero, and a lower end at or below it, have no place on this axis.
            for at in y[x == 0]:
                ax.annotate("0", (0.01, at), xycoords=("axes fraction", "data"), va="center", color=MUTED)
            x = np.where(x > 0, x, np.nan)
            below = np.minimum(error, 0.9 * x)
        ax.hlines(y, x - below, x + error, colors=shades, linewidth=1.2, zorder=2)
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


def few_ticks(ax: Axes, n_decades: int = 3) -> None:
    """Set ticks at 1, 2 and 5 of each decade of a logarithmic axis, or only at decades if there are many.

    Parameters
    ----------
    ax : Axes
        The axes to draw on.
    n_decades : int, default 3
        Largest number of decades with three ticks. A narrow panel has space for the ticks of one.
    """
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 10.0**n_decades * low else (1,)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter("{x:g}")


def colours(arms: Sequence[str]) -> dict[str, str]:
    """Return a colour for every arm. Figures also name the arms, so colours may repeat.

    Parameters
    ----------
    arms : sequence of str
        Names of the arms in declared order.
    """
    palette = cycle(mpl.rcParams["axes.prop_cycle"].by_key()["color"])
    return dict(zip(arms, palette, strict=False))


def step_chart(
    frame: pd.DataFrame, distance: str, colour: Mapping[str, str], end: float
) -> tuple[Figure, Axes]:
    """Draw a line of steps for each arm: the share of units within a distance of the best arm.

    Parameters
    ----------
    frame : DataFrame
        Steps of the arms; columns solver, share and the distance.
    distance : str
        Name of the column of distances.
    colour : mapping of str to str
        Colour of each arm.
    end : float
        Distance at which the lines end.

    Returns
    -------
    figure : Figure
        The figure, with its legend.
    ax : Axes
        Its axes, whose labels are missing.
    """
    labels = {arm: wrapped(arm, 40) for arm in frame["solver"].unique()}
    lines = sum(1.3 + label.count("\n") for label in labels.values())
    figure = Figure(figsize=(WIDTH, max(2.8, 0.8 + ROW * lines)))
    ax, dashes = figure.subplots(), cycle(_DASHES)
    for arm, label in labels.items():
        steps = frame[frame["solver"] == arm]
        x, share = [*steps[distance], end], [*steps["share"], steps["share"].iloc[-1]]
        look: dict[str, Any] = {"color": colour[arm], "linestyle": next(dashes), "linewidth": 1.3}
        ax.step(x, 100 * np.array(share), where="post", label=literal(label), **look)
    ax.set_ylim(0, 104)
    ax.grid(axis="both")
    ax.tick_params(length=0, which="both")
    figure.legend(loc="outside right center", fontsize=7, frameon=False)
    return figure, ax


def styled(drawing: Drawing) -> Figure:
    """Return a figure in the style of reports.

    Parameters
    ----------
    drawing : Drawing
        Figure with its axes, as the section drew it.
    """
    with mpl.rc_context(fname=STYLE_SHEET):
        return drawing.draw()


def documents(drawing: Drawing, pdf: bool = True) -> Drawn:
    """Draw a figure in the style of reports, and return it as documents.

    Parameters
    ----------
    drawing : Drawing
        The figure and its name, which seeds the identifiers in the SVG: the same figure gives the same file.
    pdf : bool, default=True
        Whether to make a PDF, whose fonts take most of the time.

    Returns
    -------
    Drawn
        The documents and the data.
    """
    with mpl.rc_context({"svg.hashsalt": drawing.name}, STYLE_SHEET):
        return _documents(drawing.draw(), drawing.data, pdf)


def _documents(figure: Figure, data: pd.DataFrame | None, with_pdf: bool) -> Drawn:
    """Return a figure as SVG and PDF; one layout serves both, where `savefig` would do it for each.

    Parameters
    ----------
    figure : Figure
        Figure of Matplotlib with its content, not yet laid out.
    data : DataFrame or None
        The rows that it shows.
    with_pdf : bool
        Whether to make a PDF.
    """
    figure.dpi = 72  # that of both formats
    vector = FigureCanvasSVG(figure)
    if (engine := figure.get_layout_engine()) is not None:
        # Maps keep their proportions, so the space for their labels is known only after a few layouts.
        few = len(figure.axes) <= _FEW_MAPS and any(ax.get_aspect() != "auto" for ax in figure.axes)
        for _ in range(3 if few else 1):
            engine.execute(figure)
        figure.set_layout_engine("none")
    svg, pdf = io.StringIO(), io.BytesIO()
    vector.print_svg(svg, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    if with_pdf and figure.get_figheight() <= HIGHEST_PDF:
        nothing = dict.fromkeys(("CreationDate", "Creator", "Producer"))
        FigureCanvasPdf(figure).print_pdf(pdf, metadata=nothing)
    return Drawn(re.sub(r"[ \t]+\n", "\n", svg.getvalue()), pdf.getvalue(), data)


def plain_axis(ax: Axes) -> None:
    """Remove everything from an axis but vertical grid lines and the numbers below them.

    Parameters
    ----------
    ax : Axes
        The axes to draw on.
    """
    ax.grid(axis="x")
    ax.tick_params(length=0)
    ax.spines[["left", "right", "top"]].set_visible(False)


def literal(text: str) -> str:
    """Return a text for matplotlib in which dollar signs do not enclose mathematics.

    Parameters
    ----------
    text : str
        The text, of one line or several.
    """
    return "\n".join(map(printable, text.split("\n"))).replace("$", r"\$")


def wrapped(name: str, width: int = 24) -> str:
    """Break a long name at separators, or anywhere if necessary. Apply `literal` to the result.

    Parameters
    ----------
    name : str
        Name of an arm, a dataset or a hyper-parameter.
    width : int, default=24
        Largest number of characters of a line.
    """
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
    """Return whether positive values differ so much that a linear axis would hide the small ones.

    Parameters
    ----------
    values : iterable of float
        The values of an axis.
    factor : float, default=30.0
        Ratio of the largest to the smallest value from which they span decades.
    """
    positive = [value for value in values if math.isfinite(value) and value > 0]
    return bool(positive) and max(positive) > factor * min(positive)


def value_labels(values: Sequence[float]) -> list[str]:
    """Print the values of an axis, as powers of 2 or 10 if all are such and the numbers are long otherwise.

    Parameters
    ----------
    values : sequence of float
        The values in ascending order.
    """
    plain = [f"{value:.3g}".replace("-", "−") for value in values]
    if max(map(len, plain)) <= 3 or min(values) <= 0:
        return plain
    for base in (2, 10):
        exponents = [math.log(value, base) for value in values]
        if all(abs(exponent - round(exponent)) < 1e-9 for exponent in exponents):
            return [f"${base}^{{{round(exponent)}}}$" for exponent in exponents]
    return plain
