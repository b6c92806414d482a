"""The critical-difference diagram, a section on request, for readers who expect one.

Write a report with `report.sections=[orchestrator.report.critical_difference.section]`.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from orchestrator.analysis import findings
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.score_profiles import rank_cliques
from orchestrator.report import format as fmt
from orchestrator.report.figures import INK, WIDTH, literal, plain_axis, wrapped
from orchestrator.report.section import Section
from orchestrator.store.results import StudyResults


def section(results: StudyResults) -> Section | None:
    """Return the diagram with cliques of Holm-adjusted Wilcoxon tests of all pairs.

    Parameters
    ----------
    results : StudyResults
        The study.

    Returns
    -------
    Section or None
        None for fewer than three arms, or fewer than two datasets that all arms completed.
    """
    study = analyse(results) if not isinstance(results, findings.Findings) else results
    pairs = findings.comparison_matrix(study)
    if pairs.empty:
        return None
    frame = rank_cliques(findings.compared_means(study), pairs, study.design.alpha)
    if frame.empty or frame["n"].iloc[0] < 2:
        return None
    tests, n = len(pairs) // 2, int(frame["n"].iloc[0])
    caption = (
        f"Mean ranks over {fmt.plural(n, study.design.unit)} that every arm completed; rank 1 is the "
        "highest score. A bar joins arms between which none of the "
        f"{tests} exact Wilcoxon signed-rank tests, adjusted by Holm's method over all pairs, finds a "
        f"difference at level {study.design.alpha:g}. Weaknesses: mean ranks depend on which arms take part, "
        "so another arm may change the order of two (Benavoli et al., 2016). A bar does not say that arms "
        "are equal. Ranks hide the size of differences. These tests are a family of their own, beside the "
        "declared tests of this report, which decide."
    )
    if len(frame) < len(study.design.arms):
        caption += (
            f" Shown and tested: the first arm and those with the highest means, {len(frame)} of "
            f"{len(study.design.arms)}."
        )
    return Section("Critical-difference diagram", caption, _figure(frame))


def _figure(frame: pd.DataFrame) -> Figure:
    """Draw mean ranks on one axis, the best at the left, with a bar for each clique.

    Parameters
    ----------
    frame : DataFrame
        Arms in the order of their ranks, with the numbers of their cliques.
    """
    n, ranks = len(frame), frame["mean_rank"].to_numpy(dtype=float)
    members = [[int(number) for number in text.split(", ") if text] for text in frame["cliques"]]
    n_bars = max((number for each in members for number in each), default=0)
    left = (n + 1) // 2
    figure = Figure(figsize=(WIDTH, 0.9 + 0.14 * n_bars + 0.24 * left))
    ax = figure.subplots()
    plain_axis(ax)
    highest = int(np.ceil(ranks.max()))
    for bar in range(1, n_bars + 1):
        inside = [rank for rank, each in zip(ranks, members, strict=True) if bar in each]
        ax.plot([inside[0] - 0.04, inside[-1] + 0.04], [-0.35 * bar] * 2, color=INK, linewidth=3)
    for at, (name, rank) in enumerate(zip(frame["solver"], ranks, strict=True)):
        is_left = at < left
        y = -0.35 * n_bars - 0.6 * (1 + (at if is_left else n - 1 - at))
        x = 0.7 if is_left else highest + 0.3
        ax.plot([rank, rank, x], [0, y, y], color=INK, linewidth=0.7)
        ax.text(
            x + (-0.05 if is_left else 0.05),
            y,
            literal(f"{wrapped(name, 30)} ({rank:.2f})"),
            ha="right" if is_left else "left",
            va="center",
            fontsize=7.5,
        )
    ax.plot([1, highest], [0, 0], color=INK, linewidth=1)
    ax.set_xticks(range(1, highest + 1))
    ax.xaxis.set_ticks_position("top")
    ax.set_yticks([])
    ax.grid(visible=False)
    ax.spines[["bottom", "left"]].set_visible(False)
    ax.set_ylim(-0.35 * n_bars - 0.6 * (left + 0.6), 0.3)
    reach = 0.35 * (highest + 1)
    ax.set_xlim(0.7 - reach, highest + 0.3 + reach)
    return figure
