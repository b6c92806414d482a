"""The figures that a study has data for."""

from collections.abc import Callable, Sequence

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from orchestrator.analysis.findings import Findings
from orchestrator.analysis.inner_scores import by_dataset
from orchestrator.report import figures, maps
from orchestrator.report.limits import for_figures


def all_figures(findings: Findings) -> dict[str, figures.Drawn]:
    """Return the figures that this study has data for, by name.

    Each is listed with whether there is data, the function that draws it, and the attribute of the findings
    that it shows.
    """
    compared = len(findings.means.columns) > 2 and len(findings.ranks) > 0 and findings.ranks["n"].iloc[0] > 1
    placed = len(findings.profile) > 0 and len(findings.standings) > 0
    worked = _any(findings.effort, ("sv_share", "n_iter", "n_kernel_evals"))
    mapped = len(findings.inner_scores) > 0
    several = by_dataset(findings.inner_scores, len(findings.design.arms))
    swept = _any(findings.sweep_differences, ("difference",))
    build: list[tuple[str, bool, Callable[[Findings], Figure], str]] = [
        ("scores", not findings.is_empty, figures.scores, "scores"),
        ("ranks", compared, figures.mean_ranks, "ranks"),
        ("triangles", len(findings.densities) > 0, maps.triangles, "densities"),
        ("timing", len(findings.timing) > 0, figures.timing, "timing"),
        ("time_accuracy", placed, figures.time_accuracy, "standings"),
        ("profile", len(findings.profile) > 0, figures.performance_profiles, "profile"),
        ("scaling", len(findings.scaling) > 0, figures.scaling, "sizes"),
        ("effort", worked, figures.effort, "effort"),
        ("choices", len(findings.choices) > 0, figures.choices, "choices"),
        ("inner_scores", mapped, maps.inner_scores, "inner_scores"),
        ("inner_scores_by_dataset", several, maps.inner_scores_by_dataset, "inner_scores"),
        ("sweep", swept, figures.sweep, "sweep_differences"),
    ]
    drawings = {}
    findings = for_figures(findings)
    for name, wanted, draw, data in build:
        if wanted:
            # The name seeds the identifiers in an SVG, so that it comes out the same.
            with mpl.rc_context({"svg.hashsalt": name}, figures.STYLE_SHEET):
                drawings[name] = figures.drawn(draw(findings), getattr(findings, data))
    return drawings


def _any(frame: pd.DataFrame, columns: Sequence[str]) -> bool:
    return len(frame) > 0 and bool(frame[list(columns)].notna().any(axis=None))
