"""Sweeps: each setting against the first, all settings at once, and the setting selected by inner scores."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.ratios import EXACT
from orchestrator.report import format as fmt
from orchestrator.report.figures import MUTED, WIDTH, colours, literal, wrapped
from orchestrator.report.limits import figure_note, shown_in_figures
from orchestrator.report.marks import mark_note, marked_arms
from orchestrator.report.pair_cells import estimate
from orchestrator.report.ratio_cells import ratio
from orchestrator.report.section import Drawing, Part, Section, titled
from orchestrator.report.table import Row, Table, print_table, records
from orchestrator.study.text import printable

TITLE = "Sweeps: each setting against the first one"


def section(study: Findings) -> Section | None:
    """Return the section; None without a sweep, or before any refit has a score.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        The table of settings, a figure, and two tables of tests.
    """
    summary = findings.sweep_summary(study)
    if findings.is_empty(study) or summary.empty:
        return None
    parts: list[Part] = [_table(study, summary)]
    if findings.sweep_differences(study)["difference"].notna().any():
        frame = shown_in_figures(study, findings.sweep_differences(study))
        caption = (
            "Each setting against the first one. Thin lines are datasets. The thick line is their median for "
            "differences and their geometric mean for ratios. A dataset with a stopped training has no "
            "ratio, and its setting has no mean. Shaded: the simultaneous band of the typical difference."
        )
        parts.append(Drawing("sweep", caption + figure_note(study), lambda: _figure(study, frame), frame))
    return Section(TITLE, "", [*parts, *titled(_curves(study)), *titled(_selected(study))], link="Sweeps")


def _table(study: Findings, frame: pd.DataFrame) -> Table:
    """Print a row for each swept setting, against its reference.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows of the table.
    """
    metric, marked = study.design.metric, marked_arms(study)

    def extremes(row: Row) -> str:
        ends = (row["lowest_difference"], row["highest_difference"])
        return " to ".join(fmt.difference(end, metric) for end in ends)

    columns: dict[str, Callable[[Row], str]] = {
        "Sweep": lambda row: f"{row['sweep']}: {row['axis']}",
        "Setting": lambda row: str(row["setting"]) + (fmt.MARK if row["solver"] in marked else ""),
        "Reference": lambda row: str(row["reference"]),
        "Datasets": lambda row: fmt.count(row["n"]),
        "Higher / same / lower": lambda row: f"{row['higher']} / {row['equal']} / {row['lower']}",
        "Median difference": lambda row: fmt.difference(row["median_difference"], metric),
        "Range of differences": extremes,
        "Iterations, ratio": lambda row: ratio(row, "n_iter"),
        "Kernel evaluations, ratio": lambda row: ratio(row, "n_kernel_evals"),
    }
    if (frame["fit_seconds_n"] > 0).any():
        columns["Training time, ratio"] = lambda row: ratio(row, "fit_seconds")
    return print_table(
        "sweep",
        TITLE,
        frame,
        columns,
        caption=f"Paired differences{fmt.in_unit(metric)}, on the same folds and with the same seeds, over "
        "the datasets that both settings completed. Ratios: geometric means of setting / reference over the "
        "datasets on which both have finished every outer fold; values below 1 mean less work. ≤ and ≥ mark "
        "bounds where trainings timed out. Exploratory: a test of a setting that was selected here "
        f"because it looks best needs fresh data.{mark_note(study)}",
        rows=[row for row in records(frame) if row["setting"] != row["reference"]],
    )


def _interval(row: Row, metric: str) -> str:
    low, high = (fmt.difference(row[name], metric) for name in ("low", "high"))
    return fmt.MISSING if pd.isna(row["confidence"]) else f"[{low}, {high}]"


def _curves(study: Findings) -> Table | None:
    """Print the tests of all settings of each sweep at once.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame, design = findings.sweep_curves(study), study.design
    if frame.empty:
        return None
    metric, units = design.metric, fmt.plural_of(design.unit)
    return print_table(
        "sweep_curves",
        "Sweeps: all settings at once",
        frame,
        {
            "Sweep": lambda row: f"{row['sweep']}: {row['axis']}",
            "Setting": lambda row: str(row["setting"]),
            "Datasets": lambda row: fmt.count(row["n"]),
            "Typical difference": lambda row: fmt.difference(row["estimate"], metric),
            "Band": lambda row: _interval(row, metric),
            "T": lambda row: fmt.MISSING if pd.isna(row["t"]) else f"{row['t']:.2f}",
            "p, single step": lambda row: fmt.p_value(row["p_single_step"]),
            "p, step-down": lambda row: fmt.p_value(row["p"]),
        },
        caption=f"Each setting against the one declared first, over the {units} that all settings of the "
        "sweep completed. T: the sum of the signed ranks of the differences, divided by the square root of "
        "the sum of their squares. p: the share of sign flips of whole "
        f"{units} for which the largest T is at least as large (Westfall and Young, 1993), single-step and "
        "step-down. Both are adjusted for all settings of the sweep only. Band: distribution-free intervals "
        f"of the typical difference{fmt.in_unit(metric)} that hold for all settings of a sweep together, at "
        f"{fmt.level(design.alpha)}; {fmt.MISSING} if there are too few {units}.",
        text_columns=2,
    )


def _selected(study: Findings) -> Table | None:
    """Print the comparison of each sweep's selected setting with the one declared first.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame, metric = findings.sweep_selected(study), study.design.metric
    if frame.empty or not frame["n"].any():  # without a search there are no inner scores
        return None

    return print_table(
        "sweep_selected",
        "Sweeps: the setting selected by inner scores",
        frame,
        {
            "Arm": lambda row: row["solver"],
            "Reference": lambda row: row["reference"],
            "Datasets": lambda row: fmt.count(row["n"]),
            f"Mean{', %' if fmt.is_percent(metric) else ''}": lambda row: fmt.score(row["mean"], metric),
            "Higher / same / lower": lambda row: f"{row['wins']} / {row['n_zero']} / {row['losses']}",
            "Typical difference": lambda row: estimate(row, metric),
            "p": lambda row: fmt.p_value(row["p"]) if row["n"] else fmt.MISSING,
            "Adjusted p": lambda row: fmt.p_value(row["p_holm"]) if row["n"] else fmt.MISSING,
            "Verdict": lambda row: row["verdict"],
        },
        caption="On each outer fold the arm uses the setting with the highest inner score; ties go to the "
        "setting declared first. The outer scores take no part in this selection, so the arm is compared "
        "with the reference like any other. The setting that looks best afterwards is biased: of eight equal "
        "settings on ten datasets, the best looks significantly better in one study of ten. Adjusted p: by "
        f"Holm's method for {fmt.plural(frame['family'].iloc[0], 'sweep')}, separately from the other tests "
        "of this report.",
        text_columns=2,
        last_is_text=True,
    )


def _figure(study: Findings, frame: pd.DataFrame) -> Figure:
    """Draw every sweep: paired differences and work ratios to the reference, a thin line for each dataset.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows that the figure shows.
    """
    metric = study.design.metric
    summary = shown_in_figures(study, findings.sweep_summary(study))
    scale = 100.0 if fmt.is_percent(metric) else 1.0
    frame = frame.assign(difference=lambda f: f["difference"] * scale)
    quantities = {
        "difference": f"Difference in {fmt.metric_name(metric)}{' (points)' if scale > 1 else ''}",
        "n_iter_ratio": "Iterations, ratio",
        "n_kernel_evals_ratio": "Kernel evaluations, ratio",
        "fit_seconds_ratio": "Training time, ratio",
    }
    panels = {name: label for name, label in quantities.items() if frame[name].notna().any()}
    groups = list(frame.groupby(["sweep", "axis"], sort=False))
    figure = Figure(figsize=(WIDTH, 2.5 * len(groups)))
    grid = figure.subplots(len(groups), len(panels), squeeze=False)
    for axes, ((title, axis), rows) in zip(grid, groups, strict=True):
        for ax, (name, label) in zip(axes, panels.items(), strict=True):
            _panel(ax, rows, name, summary)
            if name == "difference":
                _shade_band(ax, rows, findings.sweep_curves(study), scale)
            ax.set_ylabel(literal(label))
            ax.set_xlabel(literal(f"{wrapped(str(title), 30)}: {printable(str(axis))}"))
    return figure


def _panel(ax: Axes, rows: pd.DataFrame, name: str, summary: pd.DataFrame) -> None:
    """Draw one quantity of a sweep.

    Parameters
    ----------
    ax : Axes
        The axes to draw on.
    rows : DataFrame
        The differences of one sweep. Arms of several studies may share a setting.
    name : str
        Column of the quantity.
    summary : DataFrame
        The comparison of each setting over datasets.
    """
    ratio = name.endswith("_ratio")
    settings = rows.drop_duplicates("solver").set_index("solver")["setting"]
    wide = rows.pivot(index="dataset", columns="solver", values=name)[settings.index]
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


def _shade_band(ax: Axes, rows: pd.DataFrame, curves: pd.DataFrame, scale: float) -> None:
    """Shade the simultaneous band of a sweep, which has no width at the reference.

    Parameters
    ----------
    ax : Axes
        The axes to draw on.
    rows : DataFrame
        The differences of one sweep.
    curves : DataFrame
        The tests of all settings at once.
    scale : float
        Factor from scores to the unit of the axis.
    """
    same = (curves["sweep"] == rows["sweep"].iloc[0]) & (curves["axis"] == rows["axis"].iloc[0])
    ends = curves[same].set_index("solver").reindex(dict.fromkeys(rows["solver"]))[["low", "high"]] * scale
    low, high = ends.to_numpy(dtype=float).T
    low[0] = high[0] = 0.0
    ax.fill_between(np.arange(len(low)), low, high, color="#0072B2", alpha=0.15, linewidth=0, zorder=1)


def _geometric_means(rows: pd.DataFrame, name: str, summary: pd.DataFrame) -> np.ndarray:
    """Return a sweep's mean ratios by setting, NaN if stopped trainings leave only a bound.

    Parameters
    ----------
    rows : DataFrame
        The differences of one sweep.
    name : str
        Column of the ratios.
    summary : DataFrame
        The comparison of each setting over datasets.
    """
    arms = list(dict.fromkeys(rows["solver"]))
    same = (summary["sweep"] == rows["sweep"].iloc[0]) & (summary["axis"] == rows["axis"].iloc[0])
    found = summary[same].set_index("solver").loc[arms]
    return found[name].where(found[name.replace("_ratio", "_bound")] == EXACT).to_numpy(dtype=float)
