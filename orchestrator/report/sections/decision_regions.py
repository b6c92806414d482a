"""On request: the decision regions of arms on datasets of two features, with their planes or vectors.

`report.sections=[orchestrator.report.sections.decision_regions.section]` adds this section to a report.
Stores keep no models. The section therefore trains the refits of the first outer fold again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from orchestrator.analysis.findings import Findings, analyse
from orchestrator.report import format as fmt
from orchestrator.report.figures import INK, WIDTH, colours, literal, wrapped
from orchestrator.report.section import Drawing, Part, Section
from orchestrator.report.table import print_table
from orchestrator.store.results import Refit, StudyResults

TITLE = "Decision regions"
MAX_PANELS = 9
"""Largest number of arms that are trained again on a dataset."""
MAX_POINTS = 1_000
"""Largest number of training rows that a panel shows."""
STEPS = 240
"""Number of points of the grid along each axis at which labels are predicted."""
OUTER = 0
"""Outer fold whose refits are trained again."""


@dataclass(frozen=True, eq=False)
class Panel:
    """A fitted estimator, and the rows on which its regions are drawn.

    Attributes
    ----------
    title : str
        Title of the panel.
    estimator : object
        Fitted classifier of two features.
    X : array of shape (n, 2)
        Training rows.
    y : ndarray of shape (n,)
        Their labels.
    """

    title: str
    estimator: Any
    X: np.ndarray
    y: np.ndarray


def section(results: StudyResults) -> Section | None:
    """Train refits of the first outer fold again, and return the section with their regions.

    Parameters
    ----------
    results : StudyResults
        The study of the report.

    Returns
    -------
    Section or None
        A figure for each dataset of two features, and a table. None without a refit on such a dataset.

    Raises
    ------
    StoreError, DatasetError
        If a refit or the prepared copy of a dataset is missing.
    """
    study = results if isinstance(results, Findings) else analyse(results)
    refits = {pair: study.refit(*pair, outer=OUTER) for pair in _pairs(study)} if study.design.selects else {}
    if not refits:
        return None
    parts: list[Part] = []
    rows = []
    for number, dataset in enumerate(dict.fromkeys(dataset for dataset, _ in refits), start=1):
        of_dataset = {arm: refit for (name, arm), refit in refits.items() if name == dataset}
        panels = [
            Panel(arm, refit.estimator, _dense(refit.X_train), refit.y_train)
            for arm, refit in of_dataset.items()
        ]
        parts.append(Drawing(f"decision_regions_{number}", _caption(dataset), partial(figure, panels)))
        rows += [_row(dataset, arm, refit) for arm, refit in of_dataset.items()]
    return Section(TITLE, "", [*parts, _table(study, pd.DataFrame(rows))], needs_scores=True)


def _pairs(study: Findings) -> Iterator[tuple[str, str]]:
    """Yield the dataset × arm with two features and a scored refit of the fold.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Yields
    ------
    (str, str)
        Names of the dataset and the arm; at most `MAX_PANELS` arms of a dataset.
    """
    outer = study.outer
    usable = outer[(outer["n_features"] == 2) & (outer["outer"] == OUTER) & outer["score"].notna()]
    stored = set(zip(usable["dataset"], usable["solver"], strict=True))
    for dataset in study.design.datasets:
        arms = [arm for arm in study.design.arms if (dataset, arm) in stored]
        yield from ((dataset, arm) for arm in arms[:MAX_PANELS])


def _caption(dataset: str) -> str:
    """Return the caption of a figure.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    """
    return (
        f"Decision regions on {dataset}, in prepared features. A study stores no models: for this figure, "
        f"each arm was trained again on the training rows of outer fold {OUTER}, with the candidate that its "
        f"search selected there. Colours are labels. Points are training rows, at most {MAX_POINTS:,}. Lines "
        "are the planes of decision lists. Rings are the vectors of kernel machines. At most "
        f"{MAX_PANELS} arms are drawn; report.leave_out chooses them."
    )


def _row(dataset: str, arm: str, refit: Refit) -> dict[str, Any]:
    """Return a row of the table.

    Parameters
    ----------
    dataset, arm : str
        Names of the dataset and the arm.
    refit : Refit
        The refit, trained again.
    """
    planes, vectors = planes_of(refit.estimator), vectors_of(refit.estimator)
    return {
        "dataset": dataset,
        "solver": arm,
        "candidate": ", ".join(f"{name}={value}" for name, value in refit.params.items()),
        "score": refit.score,
        "stored_score": refit.stored_score,
        "n_planes": len(planes[1]),
        "n_vectors": len(vectors),
    }


def _table(study: Findings, frame: pd.DataFrame) -> Part:
    """Return the table of the refits that were trained again.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        Rows of `_row`.
    """
    metric = study.design.metric
    return print_table(
        "decision_regions",
        "Refits that were trained again",
        frame,
        {
            "Dataset": lambda row: row["dataset"],
            "Arm": lambda row: row["solver"],
            "Candidate": lambda row: row["candidate"],
            f"{fmt.metric_name(metric)}, trained again": lambda row: fmt.score(row["score"], metric),
            "Stored": lambda row: fmt.score(row["stored_score"], metric),
            "Planes": lambda row: fmt.count(row["n_planes"]),
            "Vectors": lambda row: fmt.count(row["n_vectors"]),
        },
        caption=f"Scores on the test rows of outer fold {OUTER}. They differ from the stored scores if the "
        "stored refit used a shared Gram matrix, a warm start, or other versions of the code.",
        text_columns=3,
    )


def planes_of(estimator: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the planes that a fitted estimator publishes as `planes_`.

    Parameters
    ----------
    estimator : object
        Fitted classifier.

    Returns
    -------
    directions : ndarray of shape (n_planes, 2)
        Normals w.
    thresholds : ndarray of shape (n_planes,)
        Thresholds r: a plane has the points w·x = r.
    """
    directions, thresholds = getattr(estimator, "planes_", (np.empty((0, 2)), np.empty(0)))
    return np.asarray(directions, dtype=float), np.asarray(thresholds, dtype=float)


def vectors_of(estimator: Any) -> np.ndarray:
    """Return the support vectors, or those of a reduced set, that a fitted estimator publishes.

    Parameters
    ----------
    estimator : object
        Fitted classifier.

    Returns
    -------
    ndarray of shape (n_vectors, 2)
        Vectors; empty if it publishes none.
    """
    vectors = _dense(getattr(estimator, "support_vectors_", np.empty((0, 2))))
    return vectors if vectors.shape[1:] == (2,) else np.empty((0, 2))  # a shared Gram matrix has none


def _dense(X: Any) -> np.ndarray:
    """Return rows as a dense array.

    Parameters
    ----------
    X : array, CSR matrix or DataFrame
        Rows.
    """
    return np.asarray(X.toarray() if scipy.sparse.issparse(X) else X, dtype=float)


def figure(panels: Sequence[Panel]) -> Figure:
    """Draw the regions of fitted estimators, one panel for each.

    Parameters
    ----------
    panels : sequence of Panel
        Estimators with their training rows.

    Returns
    -------
    Figure
        Figure with the same axes in all panels.
    """
    labels = np.unique(np.concatenate([panel.y for panel in panels]))
    shades = list(colours([str(label) for label in labels]).values())
    shades = [shades[i % len(shades)] for i in range(len(labels))]
    n_columns = min(3, len(panels))
    n_rows = -(-len(panels) // n_columns)
    drawn = Figure(figsize=(WIDTH, 0.3 + 3.0 * n_rows))
    axes = drawn.subplots(n_rows, n_columns, squeeze=False, sharex=True, sharey=True).ravel()
    for ax in axes[len(panels) :]:
        ax.axis("off")
    for ax, panel in zip(axes, panels, strict=False):
        _panel(ax, panel, labels, shades)
    marks = [axes[0].scatter([], [], s=14, color=shade, linewidths=0) for shade in shades]
    names = [literal(wrapped(str(label), 30)) for label in labels]
    drawn.legend(marks, names, loc="outside upper left", frameon=False, fontsize=7, ncols=6)
    return drawn


def _panel(ax: Axes, panel: Panel, labels: np.ndarray, shades: Sequence[str]) -> None:
    """Draw the regions, rows, planes and vectors of an estimator.

    Parameters
    ----------
    ax : Axes
        The axes to draw on.
    panel : Panel
        Estimator with its training rows.
    labels : ndarray
        Labels of all panels, ascending.
    shades : sequence of str
        Colour of each label.
    """
    low, high = panel.X.min(axis=0), panel.X.max(axis=0)
    margin = 0.05 * np.where(high > low, high - low, 1.0)
    low, high = low - margin, high + margin
    x, y = (np.linspace(low[k], high[k], STEPS) for k in range(2))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    codes = np.searchsorted(labels, panel.estimator.predict(grid)).reshape(STEPS, STEPS)
    extent = (low[0], high[0], low[1], high[1])
    look: dict[str, Any] = {"origin": "lower", "aspect": "auto", "interpolation": "nearest", "alpha": 0.25}
    look |= {"vmin": -0.5, "vmax": len(labels) - 0.5, "zorder": 0}
    ax.imshow(codes, extent=extent, cmap=ListedColormap(list(shades)), **look)
    shown = slice(None, None, max(1, -(-len(panel.y) // MAX_POINTS)))
    of_rows = np.array(shades)[np.searchsorted(labels, panel.y[shown])]
    rows = panel.X[shown]
    ax.scatter(rows[:, 0], rows[:, 1], s=3, color=of_rows, linewidths=0, zorder=2)
    vectors = vectors_of(panel.estimator)
    look = {"facecolors": "none", "edgecolors": INK, "linewidths": 0.4, "zorder": 3}
    ax.scatter(vectors[:, 0], vectors[:, 1], s=14, **look)
    ax.add_collection(
        LineCollection(_lines(panel.estimator, low, high), colors=INK, linewidths=0.6, zorder=3)
    )
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    ax.tick_params(length=0)
    ax.set_title(literal(wrapped(panel.title, 40)), fontsize=8)


def _lines(estimator: Any, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """Return the planes of an estimator as line segments that cross a rectangle.

    Parameters
    ----------
    estimator : object
        Fitted classifier.
    low, high : ndarray of shape (2,)
        Corners of the rectangle.

    Returns
    -------
    list of ndarray of shape (2, 2)
        Ends of each segment.
    """
    centre, reach = 0.5 * (low + high), float(np.linalg.norm(high - low))
    lines = []
    for w, r in zip(*planes_of(estimator), strict=True):
        square = float(w @ w)
        if square > 0.0:
            foot = centre + (r - w @ centre) / square * w
            along = reach / np.sqrt(square) * np.array([-w[1], w[0]])
            lines.append(np.array([foot - along, foot + along]))
    return lines
