"""Figures over two dimensions: maps of inner scores, and the triangles of three-way comparisons."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from orchestrator.analysis.bayesian import DENSITY_CELLS
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.inner_scores import over_datasets, visits_differ
from orchestrator.report import format as fmt
from orchestrator.report.figures import INK, MUTED, RULE, WIDTH, literal, value_labels, wrapped
from orchestrator.report.table import records

MAPS_BY_DATASET = 24
"""Maps that are drawn of single datasets."""

_LEVELS = 8
"""Colours of a map; a scale of so few is drawn without picture data."""


def inner_scores(findings: Findings) -> Figure:
    """One map for each arm: how far candidates are below the best of a dataset, on average."""
    frame = over_datasets(findings.inner_scores)
    titles = {arm: wrapped(str(arm), 26) for arm in frame["solver"].unique()}
    rows = [(titles[arm], group) for arm, group in frame.groupby("solver", sort=False)]
    return _maps(rows, findings)


def of_single_datasets(findings: Findings) -> pd.DataFrame:
    """Return the rows of `inner_scores` for which there is room in a figure."""
    frame = findings.inner_scores
    datasets = list(frame["dataset"].unique())[:MAPS_BY_DATASET] if len(frame) else []
    n_arms = max(1, MAPS_BY_DATASET // max(1, len(datasets)))
    arms = list(frame["solver"].unique())[:n_arms] if len(frame) else []
    return frame[frame["solver"].isin(arms) & frame["dataset"].isin(datasets)] if len(frame) else frame


def inner_scores_by_dataset(findings: Findings) -> Figure:
    """One map for each arm and dataset, headed by the highest mean inner score."""
    metric, rows = findings.design.metric, []
    unit = " %" if fmt.is_percent(metric) else ""
    for (arm, dataset), group in of_single_datasets(findings).groupby(["solver", "dataset"], sort=False):
        best = f"best {fmt.score(group['score'].max(), metric)}{unit}"
        rows.append((f"{wrapped(str(dataset), 26)}\n{wrapped(str(arm), 26)}\n{best}", group))
    return _maps(rows, findings)


def _maps(maps: Sequence[tuple[str, pd.DataFrame]], findings: Findings) -> Figure:
    scale = 100.0 if fmt.is_percent(findings.design.metric) else 1.0
    below = np.concatenate([group["below_best"].to_numpy(dtype=float) for _, group in maps]) * scale
    below = below[np.isfinite(below)]
    # The worst candidates are often far below all others: half of the range shows the better half.
    lowest = min(float(np.quantile(below, 0.25)) if len(below) else 0.0, -1e-6)
    bounds = np.linspace(lowest, 0, _LEVELS + 1)
    norm = BoundaryNorm(bounds, _LEVELS + 1, extend="min")
    colours = ListedColormap(mpl.colormaps["Blues"](np.linspace(0.12, 1, _LEVELS + 1)))
    n_rows = -(-len(maps) // 4)
    lines = max(title.count("\n") for title, _ in maps)
    shape = max(group["y"].nunique() / group["x"].nunique() for _, group in maps)
    figure = Figure(figsize=(WIDTH, (0.85 + 0.15 * lines + 1.7 * min(1.5, shape)) * n_rows + 0.55))
    grid = figure.subplots(n_rows, 4, squeeze=False)
    dots = visits_differ(findings.inner_scores)
    for ax in grid.flat[len(maps) :]:
        ax.set_visible(False)
    for ax, (title, group) in zip(grid.flat, maps, strict=False):
        mesh = _map(ax, group, scale, {"norm": norm, "cmap": colours}, dots)
        ax.set_title(literal(title))
    bar = figure.colorbar(mesh, ax=grid, location="bottom", aspect=50, fraction=0.04, extend="min")
    bar.set_label(f"Mean inner score below the best candidate{' (points)' if scale > 1 else ''}")
    bar.set_ticks([*bounds[::2]])
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    bar.ax.xaxis.set_major_formatter("{x:.3g}")
    return figure


def _map(ax: Axes, frame: pd.DataFrame, scale: float, colours: dict[str, Any], dots: bool) -> Any:
    xs, ys = (np.sort(frame[name].unique()) for name in ("x", "y"))
    j, i = np.searchsorted(xs, frame["x"]), np.searchsorted(ys, frame["y"])
    values = np.full((len(ys), len(xs)), np.nan)
    values[i, j] = frame["below_best"].to_numpy(dtype=float) * scale
    mesh = ax.pcolormesh(np.ma.masked_invalid(values), **colours)
    if dots:
        size = frame["n"].to_numpy(dtype=float)
        ax.scatter(j + 0.5, i + 0.5, s=7 * size / size.max(), color=MUTED, linewidths=0, zorder=2)
    chosen = frame["chosen"].to_numpy(dtype=float)
    rings = chosen > 0
    ax.scatter(
        *(j[rings] + 0.5, i[rings] + 0.5),
        s=15 + 60 * chosen[rings] / max(chosen.max(), 1),
        facecolors="none",
        edgecolors="#D55E00",
        linewidths=1.2,
        zorder=3,
    )
    ax.set(xlim=(0, len(xs)), ylim=(0, len(ys)), aspect="equal")
    for ticks, set_ticks in ((xs, ax.set_xticks), (ys, ax.set_yticks)):
        step = -(-len(ticks) // 6)
        set_ticks(np.arange(0, len(ticks), step) + 0.5, value_labels([*ticks])[::step])
    ax.tick_params(length=0, labelsize=7)
    ax.spines[["top", "right"]].set_visible(True)
    ax.set_xlabel(literal(wrapped(frame["x_name"].iloc[0], 26)))
    ax.set_ylabel(literal(wrapped(frame["y_name"].iloc[0], 26)))
    return mesh


_HEIGHT = 3**0.5 / 2


def _plane(better: Any, worse: Any) -> tuple[Any, Any]:
    """Return the place of two of three shares: worse bottom left, better bottom right, equal on top."""
    return better + (1 - better - worse) / 2, (1 - better - worse) * _HEIGHT


def triangles(findings: Findings) -> Figure:
    """Draw the posterior of each pair in the triangle of better, practically equal and worse."""
    frame = findings.densities
    said = {(row["first"], row["second"]): row for row in records(findings.practical)}
    pairs = list(frame.groupby(["first", "second"], sort=False))
    n_rows = -(-len(pairs) // 3)
    figure = Figure(figsize=(WIDTH, 3.3 * n_rows))
    grid = figure.subplots(n_rows, 3, squeeze=False)
    for ax in grid.flat[len(pairs) :]:
        ax.set_visible(False)
    for ax, ((first, second), cells) in zip(grid.flat, pairs, strict=False):
        _triangle(ax, cells)
        row = said[first, second]
        ax.set_title(literal(f"A = {wrapped(str(first), 30)}\nB = {wrapped(str(second), 30)}"))
        corners = {
            "Practically equal": ((0, 0), row["equal"], "bottom", "center", 0.02),
            "B better": ((0, 1), row["worse"], "top", "left", -0.03),
            "A better": ((1, 0), row["better"], "top", "right", -0.03),
        }
        for name, (shares, probability, va, ha, away) in corners.items():
            x, y = _plane(*shares)
            x += {"left": -0.08, "right": 0.08, "center": 0}[ha]
            ax.text(x, y + away, f"{name}\n{fmt.probability(probability)}", va=va, ha=ha, fontsize=7.5)
    return figure


def _triangle(ax: Axes, cells: pd.DataFrame) -> None:
    n = DENSITY_CELLS
    low = np.floor(cells[["better", "equal", "worse"]].to_numpy() * n)
    upright = np.isclose(low.sum(axis=1), n - 1)
    polygons = []
    for place, is_upright in zip(low, upright, strict=True):
        corners = place + (np.eye(3) if is_upright else 1 - np.eye(3))
        polygons.append(np.column_stack(_plane(corners[:, 0] / n, corners[:, 2] / n)))
    share = cells["share"].to_numpy(dtype=float)
    shades = mpl.colormaps["Blues"](0.15 + 0.85 * np.sqrt(share / share.max()))
    ax.add_collection(PolyCollection(polygons, facecolors=shades, edgecolors=shades, linewidths=0.2))
    outline = np.array([_plane(*corner) for corner in ((1, 0), (0, 0), (0, 1), (1, 0))])
    ax.plot(*outline.T, color=INK, linewidth=0.9)
    middle = _plane(1 / 3, 1 / 3)
    for edge in ((0.5, 0.5), (0.5, 0), (0, 0.5)):  # within these lines one share is the largest
        ax.plot(*zip(middle, _plane(*edge), strict=True), color=RULE, linewidth=0.9)
    ax.set(xlim=(-0.12, 1.12), ylim=(-0.2, _HEIGHT + 0.16), aspect="equal")
    ax.axis("off")
