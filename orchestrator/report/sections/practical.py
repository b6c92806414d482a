"""Probabilities that arms are practically equal, and the posterior distributions behind them."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.bayesian import DENSITY_CELLS, DRAWS, EQUAL_FROM, MIN_DATASETS
from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.marks import mark_note
from orchestrator.report.pair_cells import pair, units
from orchestrator.report.section import Drawing, Part, titled
from orchestrator.report.table import Cell, Table, print_table, records

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 3**0.5 / 2
"""Height of a triangle whose sides have length 1."""


def parts(study: Findings) -> list[Part]:
    """Return the table of probabilities, and the figure of their posteriors.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    list of Part
        Empty without a region of practical equivalence, or with too few datasets.
    """
    if findings.practical(study).empty:
        return []
    frame = findings.densities(study)
    n_drawn = len(frame[["first", "second"]].drop_duplicates()) if len(frame) else 0
    n_known = int(findings.practical(study)["equal"].notna().sum())
    drawn = f" Drawn: {n_drawn} of {n_known} pairs, those whose A has the highest mean."
    drawing = Drawing(
        "triangles",
        "Posterior distributions behind these probabilities (Benavoli et al., 2017). Each draw is a point, "
        "and its distances from the three sides are the shares of better, practically equal and worse. A "
        "point close to a corner means that this case has nearly all of the share. Stronger colours mark "
        "more draws. The probability at a corner is the share of draws in the third of the triangle next to "
        f"it.{drawn if n_drawn < n_known else ''}",
        lambda: _figure(study, frame),
        frame,
    )
    return [*titled(_table(study)), *([drawing] if len(frame) else [])]


def _table(study: Findings) -> Table:
    """Print the probabilities that two arms differ by more than the region of practical equivalence.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    frame, design = findings.practical(study), study.design
    margin = fmt.margin(frame["rope"].iloc[0], design.metric)
    caption = (
        f"Differences of at most {margin}, the region of practical equivalence, count as equal. The "
        "probabilities are those of the Bayesian signed-rank test (Benavoli et al., 2017). The average "
        f"difference of a pair of {fmt.plural_of(design.unit)} falls into one of three cases: A is better by "
        "more than that, the two are equal, or B is better by more than that. The probability of a case "
        "is the probability that it is the most frequent one among all pairs of "
        f"{fmt.plural_of(design.unit)}. The prior has the weight of half a {design.unit} without a "
        "difference. The posterior is "
        f"sampled with up to {DRAWS:,} random draws and a fixed seed. Bold: practically equal, with a "
        f"probability of at least {EQUAL_FROM}. It is a statement about the typical difference: single "
        f"{fmt.plural_of(design.unit)} may differ by more. Itself within it: the number of "
        f"{fmt.plural_of(design.unit)} on which the difference itself is within the region. "
        f"Pairs with fewer than {MIN_DATASETS} {fmt.plural_of(design.unit)} have no "
        "probability. These probabilities are not p-values: they "
        "control no error rate and are not adjusted for the number of pairs."
    )
    for names in frame["coarse"].unique():
        if names:
            caption += f" These have too few test rows for a difference of {margin}: {names}."
    return print_table(
        "practical",
        f"Practical equivalence: typically within {margin}",
        frame,
        {
            "Pair, A − B": pair(study),
            units(study): lambda row: fmt.count(row["n"]),
            "A better": lambda row: fmt.probability(row["better"]),
            "Practically equal": lambda row: Cell(
                fmt.probability(row["equal"]), strong=row["practically_equal"]
            ),
            "B better": lambda row: fmt.probability(row["worse"]),
            "Itself within it": lambda row: f"{row['n_within']} of {row['n']}",
        },
        caption=caption + mark_note(study),
    )


def _plane(better: Any, worse: Any) -> tuple[Any, Any]:
    """Return the position of a draw: worse at the bottom left, better at the bottom right, equal on top.

    Parameters
    ----------
    better : any
        Share of better.
    worse : any
        Share of worse.
    """
    return better + (1 - better - worse) / 2, (1 - better - worse) * _HEIGHT


def _figure(study: Findings, frame: pd.DataFrame) -> "Figure":
    """Draw the posterior of each pair in the triangle of better, practically equal and worse.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows that the figure shows.
    """
    # A terminal summary prints the tests and this table, and must not import matplotlib.
    from matplotlib.figure import Figure

    from orchestrator.report.figures import WIDTH, literal, wrapped

    probabilities = {(row["first"], row["second"]): row for row in records(findings.practical(study))}
    pairs = list(frame.groupby(["first", "second"], sort=False))
    n_rows = -(-len(pairs) // 3)
    figure = Figure(figsize=(WIDTH, 3.3 * n_rows))
    grid = figure.subplots(n_rows, 3, squeeze=False)
    for ax in grid.flat[len(pairs) :]:
        ax.set_visible(False)
    for ax, ((first, second), cells) in zip(grid.flat, pairs, strict=False):
        _triangle(ax, cells)
        row = probabilities[first, second]
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


def _triangle(ax: "Axes", cells: pd.DataFrame) -> None:
    """Shade the small triangles of a posterior by their shares of the draws.

    Parameters
    ----------
    ax : Axes
        The axes to draw on.
    cells : DataFrame
        The small triangles of one pair, with their shares of the draws.
    """
    import matplotlib as mpl
    from matplotlib.collections import PolyCollection

    from orchestrator.report.figures import INK, RULE

    n = DENSITY_CELLS
    low = np.floor(cells[["better", "equal", "worse"]].to_numpy() * n)
    upright = np.isclose(low.sum(axis=1), n - 1)
    polygons = []
    for lower, is_upright in zip(low, upright, strict=True):
        corners = lower + (np.eye(3) if is_upright else 1 - np.eye(3))
        polygons.append(np.column_stack(_plane(corners[:, 0] / n, corners[:, 2] / n)))
    share = cells["share"].to_numpy(dtype=float)
    colours = mpl.colormaps["Blues"](0.15 + 0.85 * np.sqrt(share / share.max()))
    ax.add_collection(PolyCollection(polygons, facecolors=colours, edgecolors=colours, linewidths=0.2))
    outline = np.array([_plane(*corner) for corner in ((1, 0), (0, 0), (0, 1), (1, 0))])
    ax.plot(*outline.T, color=INK, linewidth=0.9)
    middle = _plane(1 / 3, 1 / 3)
    for edge in ((0.5, 0.5), (0.5, 0), (0, 0.5)):  # within these lines one share is the largest
        ax.plot(*zip(middle, _plane(*edge), strict=True), color=RULE, linewidth=0.9)
    ax.set(xlim=(-0.12, 1.12), ylim=(-0.2, _HEIGHT + 0.16), aspect="equal")
    ax.axis("off")
