"""Maps of the mean inner scores at each pair of hyper-parameters."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.inner_scores import by_dataset, over_datasets, visits_differ
from orchestrator.report import format as fmt
from orchestrator.report.figures import MUTED, WIDTH, literal, value_labels, wrapped
from orchestrator.report.limits import first_note
from orchestrator.report.section import Drawing, Fold, Part

MAPS_BY_DATASET = 24
"""Largest number of maps of single datasets."""

_LEVELS = 8
"""Number of colours of a map. A scale with few colours is drawn without picture data."""


def parts(study: Findings) -> list[Part]:
    """Return the maps of inner scores, those of single datasets folded away.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    list of Part
        Empty if no arm has exactly two hyper-parameters with several values.
    """
    frame = findings.inner_scores(study)
    if frame.empty:
        return []
    caption = (
        f"Mean inner {fmt.metric_name(study.design.metric)} of each candidate, as the difference from "
        "the best candidate of the same dataset, and averaged over the datasets. Stronger colours are nearer "
        "to the best. Candidates in blank cells were not tried. Rings mark the selected candidates. A larger "
        "ring means more outer folds."
    )
    if visits_differ(frame):
        caption += " Dots mark the trained candidates, larger for more trainings."
    if len(mapped := frame["solver"].unique()) < len(study.design.arms):
        caption += f" The maps show {fmt.listed(list(mapped))}."
    maps: list[Part] = [Drawing("inner_scores", caption, lambda: _over_datasets(study), frame)]
    if by_dataset(frame, len(study.design.arms)):
        single = Drawing(
            "inner_scores_by_dataset",
            f"The same maps for single datasets, each with its highest mean.{_single_note(study, frame)}",
            lambda: _by_dataset(study),
            frame,
        )
        maps.append(Fold("Maps of single datasets", [single]))
    return maps


def _single_note(study: Findings, frame: pd.DataFrame) -> str:
    """Return the end of the caption that says which datasets and arms the maps of single datasets show.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows of all maps.
    """
    drawn, names = _of_single_datasets(study), ("dataset", "solver")
    (n_datasets, n_arms), (datasets, arms) = (
        [each[name].nunique() for name in names] for each in (drawn, frame)
    )
    note = first_note(n_datasets, datasets)
    if n_arms < arms:
        note += f" The maps show {fmt.listed([*drawn['solver'].unique()])}."
    return note


def _over_datasets(study: Findings) -> Figure:
    """Draw a map for each arm: the mean shortfall of candidates from the best of a dataset.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame = over_datasets(findings.inner_scores(study))
    titles = {arm: wrapped(str(arm), 26) for arm in frame["solver"].unique()}
    rows = [(titles[arm], group) for arm, group in frame.groupby("solver", sort=False)]
    return _maps(rows, study)


def _of_single_datasets(study: Findings) -> pd.DataFrame:
    """Return the rows of `inner_scores` that fit in a figure.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame = findings.inner_scores(study)
    datasets = list(frame["dataset"].unique())[:MAPS_BY_DATASET] if len(frame) else []
    n_arms = max(1, MAPS_BY_DATASET // max(1, len(datasets)))
    arms = list(frame["solver"].unique())[:n_arms] if len(frame) else []
    return frame[frame["solver"].isin(arms) & frame["dataset"].isin(datasets)] if len(frame) else frame


def _by_dataset(study: Findings) -> Figure:
    """Draw a map for each arm and dataset, headed by the highest mean inner score.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    metric, rows = study.design.metric, []
    unit = " %" if fmt.is_percent(metric) else ""
    for (arm, dataset), group in _of_single_datasets(study).groupby(["solver", "dataset"], sort=False):
        best = f"best {fmt.score(group['score'].max(), metric)}{unit}"
        rows.append((f"{wrapped(str(dataset), 26)}\n{wrapped(str(arm), 26)}\n{best}", group))
    return _maps(rows, study)


def _maps(maps: Sequence[tuple[str, pd.DataFrame]], study: Findings) -> Figure:
    scale = 100.0 if fmt.is_percent(study.design.metric) else 1.0
    below = np.concatenate([group["below_best"].to_numpy(dtype=float) for _, group in maps]) * scale
    below = below[np.isfinite(below)]
    # The worst candidates are often far below all others. The worst quarter shares the palest colour, so that
    # the range of colours shows the differences between the others.
    lowest = min(float(np.quantile(below, 0.25)) if len(below) else 0.0, -1e-6)
    bounds = np.linspace(lowest, 0, _LEVELS + 1)
    norm = BoundaryNorm(bounds, _LEVELS + 1, extend="min")
    colours = ListedColormap(mpl.colormaps["Blues"](np.linspace(0.12, 1, _LEVELS + 1)))
    n_rows = -(-len(maps) // 4)
    lines = max(title.count("\n") for title, _ in maps)
    shape = max(group["y"].nunique() / group["x"].nunique() for _, group in maps)
    figure = Figure(figsize=(WIDTH, (0.85 + 0.15 * lines + 1.7 * min(1.5, shape)) * n_rows + 0.55))
    grid = figure.subplots(n_rows, 4, squeeze=False)
    dots = visits_differ(findings.inner_scores(study))
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
