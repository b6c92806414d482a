"""The hyper-parameters that the inner search selected: a table, and maps of the number of selections."""

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.by_dataset import rows_by_dataset
from orchestrator.report.figures import INK, RULE, WIDTH, literal, value_labels, wrapped
from orchestrator.report.limits import arms_note, shown_in_figures
from orchestrator.report.section import Drawing, Part, Section, folded
from orchestrator.report.sections import inner_scores
from orchestrator.report.table import Cell, Row, Table

TITLE = "Selected hyper-parameters"


def section(study: Findings) -> Section | None:
    """Return the section; None if no search is done.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    Section or None
        A table, and maps of selections and of inner scores.
    """
    rows = findings.selections(study)
    if rows.empty:
        return None
    parts: list[Part] = [_table(study, rows)]
    if len(findings.choices(study)):
        frame = shown_in_figures(study, findings.choices(study))
        caption = (
            "Number of selections of each pair of hyper-parameters, over all datasets and outer folds. Empty "
            "cells were never selected."
        )
        if _has_search(rows):
            caption += " Selections along a border suggest a wider range."
        parts.append(Drawing("choices", caption + arms_note(study), lambda: _figure(study, frame), frame))
    content = folded(
        study, "Selections of each dataset and arm, and a figure", [*parts, *inner_scores.parts(study)]
    )
    return Section(TITLE, "", content, link="Hyper-parameters", needs_scores=True)


def _has_search(frame: pd.DataFrame) -> bool:
    """Return whether inner scores selected the candidates, which may also be fixed before the study.

    Parameters
    ----------
    frame : DataFrame
        The rows of the table.
    """
    return bool(frame["inner_score"].notna().any())


def _fixed_table(study: Findings, frame: pd.DataFrame) -> Table:
    """Print the candidates of a study that searches for none.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows of the table.
    """
    return rows_by_dataset(
        study,
        "selections",
        TITLE,
        frame,
        {"Used": lambda row: row["chosen"]},
        caption="No inner search selected here: each arm was trained with hyper-parameters that were fixed "
        f"before. Used: these hyper-parameters, with their numbers of outer folds.{arms_note(study)}",
        last_is_text=True,
    )


def _table(study: Findings, frame: pd.DataFrame) -> Table:
    """Print the candidates that the inner search selected, and how often they lie on the border.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows of the table.
    """
    if not _has_search(frame):
        return _fixed_table(study, frame)
    metric = study.design.metric
    optimism = findings.optimism(study)
    names = ["dataset", "solver", "outer_minus_inner"]
    gaps = optimism.rename(columns={"difference": names[-1]}).reindex(columns=names)
    frame = frame.merge(gaps, on=names[:2], how="left")
    inner = f"Inner {fmt.metric_name(metric)}{', %' if fmt.is_percent(metric) else ''}"

    def border(row: Row) -> Cell:
        text = f"{row['at_edge']} of {row['n_folds']}"
        return Cell(text, tone="warn" if 2 * row["at_edge"] > row["n_folds"] else "")

    def failed(row: Row) -> Cell:
        text = f"{row['n_failed']:,} of {row['n_candidates']:,}"
        return Cell(text, tone="warn" if row["n_failed"] else "quiet")

    return rows_by_dataset(
        study,
        "selections",
        TITLE,
        frame,
        {
            inner: lambda row: fmt.score(row["inner_score"], metric),
            "Outer − inner": lambda row: fmt.difference(row["outer_minus_inner"], metric),
            "On the border": border,
            "Tied": lambda row: fmt.count(row["n_tied"]),
            "Without a score": failed,
            "Selected": lambda row: row["chosen"],
        },
        caption="On each outer fold the inner search selects the candidate with the highest mean inner "
        f"{fmt.metric_name(metric)}. Ties go to the smaller value of the first hyper-parameter (the one "
        "listed first if its values are not all numbers), then of the next. On the border: outer folds whose "
        "selected candidate lies at an end of a searched range; if there are many, a wider range may give "
        "other scores. Tied: mean number of candidates that share the highest score, the selected one "
        "included. Without a score: candidates that failed, over all outer folds. Selected: the selected "
        f"candidates, with their numbers of outer folds.{_optimism_note(study)}{arms_note(study)}",
        last_is_text=True,
    )


def _optimism_note(study: Findings) -> str:
    """State by how much inner scores are optimistic; empty if no dataset × arm is complete.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame, metric = findings.optimism(study), study.design.metric
    if frame.empty:
        return ""
    by_dataset = frame.groupby("dataset", sort=False)["difference"].mean().to_dict()
    mean = sum(by_dataset.values()) / len(by_dataset)
    name = max(by_dataset, key=lambda each: abs(by_dataset[each]))
    word = "optimistic" if mean < 0 else "not optimistic here"
    return (
        f" Outer − inner{fmt.in_unit(metric)}: the inner score is the highest of all candidates, and so "
        f"tends to be too high. Over {fmt.plural(len(by_dataset), 'dataset')}, inner scores are {word}: "
        f"outer − inner is {fmt.difference(mean, metric)} on average, and furthest from 0 on {name} "
        f"({fmt.difference(by_dataset[name], metric)}). Refits train on more rows than inner trainings, "
        "which works in the other direction."
    )


def _figure(study: Findings, frame: pd.DataFrame) -> Figure:
    """Draw the number of selections of each grid point, one map for each arm.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows that the figure shows.
    """
    arms = list(frame["solver"].unique())
    n_rows = -(-len(arms) // 4)
    shape = max(frame.groupby("solver")["y"].nunique()) / max(frame.groupby("solver")["x"].nunique())
    figure = Figure(figsize=(WIDTH, (0.75 + 1.7 * min(1.5, shape)) * n_rows))
    grid = figure.subplots(n_rows, 4, squeeze=False)
    for ax in grid.flat[len(arms) :]:
        ax.set_visible(False)
    for ax, arm in zip(grid.flat, arms, strict=False):
        _choice_map(ax, frame[frame["solver"] == arm], study.design.arms[arm]["space"], arm)
    return figure


def _choice_map(ax: Axes, counts: pd.DataFrame, space: dict[str, Any], arm: str) -> None:
    x_name, y_name = counts["x_name"].iloc[0], counts["y_name"].iloc[0]
    # A value that is fixed on a single dataset may be none of the arm's space.
    xs, ys = (
        sorted({*map(float, space[name]), *counts[axis]}) for name, axis in ((x_name, "x"), (y_name, "y"))
    )
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
