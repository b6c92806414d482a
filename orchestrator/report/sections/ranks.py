"""The mean rank of every arm, and the Friedman test."""

from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from orchestrator.analysis import findings
from orchestrator.analysis.findings import Findings
from orchestrator.analysis.pairwise import cliques, of_different_solvers
from orchestrator.report import format as fmt
from orchestrator.report.adjusted import tests_all_pairs
from orchestrator.report.limits import arms_note, shown_in_figures
from orchestrator.report.marks import mark_note, marked_arms, marked_name
from orchestrator.report.section import Drawing, Part, titled
from orchestrator.report.table import Table, print_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def parts(study: Findings) -> list[Part]:
    """Return the table of mean ranks, and its figure where several datasets are complete.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    list of Part
        Empty for fewer than three arms, or if no dataset is complete.
    """
    frame = findings.arm_ranks(study)
    if len(findings.means(study).columns) < 3 or frame.empty:
        return []
    caption = "Mean rank of every arm, the best at the top."
    if tests_all_pairs(study):
        caption += (
            " A thick line on the right joins arms between which no pairwise test found a difference. "
            "Because the line follows pairwise tests, two joined arms may each differ from a third."
        )
    rows = shown_in_figures(study, frame)
    drawing = Drawing("ranks", caption + arms_note(study), lambda: _figure(study, rows), rows)
    return [*titled(_table(study, frame)), *([drawing] if frame["n"].iloc[0] > 1 else [])]


def _table(study: Findings, frame: pd.DataFrame) -> Table:
    marked = marked_arms(study)
    return print_table(
        "ranks",
        "Mean ranks",
        frame,
        {
            "Arm": lambda row: marked_name(row["solver"], marked),
            "Mean rank": lambda row: f"{row['mean_rank']:.2f}",
        },
        caption=f"Rank 1 is the highest score on a {study.design.unit}, and ties have the mean of their "
        f"ranks. The means are over {fmt.plural(frame['n'].iloc[0], study.design.unit)} that every arm "
        "completed. Ranks depend on which arms take part; the pairwise tests do "
        f"not.{_omnibus(study)}{mark_note(study)}",
    )


def _omnibus(study: Findings) -> str:
    """Return the sentences on the Friedman test; empty where there is none.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    test, units = findings.friedman_test(study), fmt.plural_of(study.design.unit)
    if test is None:
        p = findings.joint_test(study)
        if len(findings.compared_means(study).means) < 2 or of_different_solvers(study.design.arms):
            return ""
        return (
            f" Joint sign-flip test of whether any tested pair differs: {fmt.p_equals(p)}. There is no "
            "Friedman test, because some arms are settings of one solver. Equal settings are not "
            "exchangeable: neighbouring ones are more alike."
        )
    permutations = (
        "exact, over all permutations"
        if test.n_permutations is None
        else f"from {test.n_permutations:,} random permutations"
    )
    statistic = (
        f"{test.statistic:.2f}"
        if isfinite(test.statistic)
        else f"∞ (all {units} rank the arms in the same order)"
    )
    return (
        f" Friedman test of whether any arms differ: {fmt.p_equals(test.p)}, {permutations} of the "
        f"ranks within {units}. For description only: χ² = {test.chi2:.2f}, corrected for ties, and "
        f"F({test.df[0]}, {test.df[1]}) = {statistic} in the form of Iman and Davenport. No other test "
        "depends on this one."
    )


def _figure(study: Findings, frame: pd.DataFrame) -> "Figure":
    """Draw mean ranks, the best on top; lines join arms between which no test found a difference.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        The rows that the figure shows.
    """
    # A terminal summary prints the tests and this table, and must not import matplotlib.
    from matplotlib.figure import Figure

    from orchestrator.report.figures import INK, RULE, WIDTH, colours, literal, plain_axis, wrapped

    order = list(frame["solver"])
    colour = colours(list(study.design.arms))
    joined = cliques(order, findings.tests(study)) if tests_all_pairs(study) else []
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
    for i, (first, last) in enumerate(joined):
        x = lowest + 0.18 + 0.12 * i
        ax.plot([x, x], [first - 0.18, last + 0.18], color=INK, linewidth=2.4, solid_capstyle="round")
    ax.set_xlim(0.9, lowest + 0.15 + 0.12 * max(1, len(joined)) + 0.1)
    ax.set_ylim(len(order) - 0.4, -0.75)
    ax.set_xticks(range(1, lowest + 1, max(1, lowest // 40)))
    ax.set_yticks(y, [literal(wrapped(name, 40)) for name in order])
    ax.set_xlabel("Mean rank (1 is best)")
    return figure
