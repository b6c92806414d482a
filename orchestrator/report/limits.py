"""Which arms and datasets of a large study a page shows: the first arm and the best."""

from dataclasses import replace
from typing import Any

import pandas as pd

from orchestrator.analysis.findings import Findings
from orchestrator.report.table import ROWS_SHOWN

ARMS_SHOWN = 40


def shown_arms(findings: Findings) -> list[str]:
    """Return the arms that tables and figures show: all, or the first and those with the best mean ranks."""
    arms = list(findings.design.arms)
    if len(arms) <= ARMS_SHOWN:
        return arms
    ranked = list(findings.ranks["solver"]) if len(findings.ranks) else []
    return list(dict.fromkeys([arms[0], *ranked, *arms]))[:ARMS_SHOWN]


def shown(findings: Findings, frame: pd.DataFrame) -> pd.DataFrame:
    """Return those rows of a frame that belong to the shown arms."""
    if len(findings.design.arms) <= ARMS_SHOWN or frame.empty:
        return frame
    return frame[frame["solver"].isin(shown_arms(findings))]


def for_figures(findings: Findings) -> Findings:
    """Return the findings about the arms and datasets that figures show."""
    datasets = list(findings.design.datasets)[: max(1, ROWS_SHOWN // len(shown_arms(findings) or [""]))]

    def narrowed(frame: pd.DataFrame) -> pd.DataFrame:
        frame = shown(findings, frame)
        return frame[frame["dataset"].isin(datasets)] if "dataset" in frame else frame

    names = ["scores", "timing", "effort", "ranks", "choices", "standings", "profile"]
    names += ["sweep_differences", "sweep_summary"]
    frames: dict[str, Any] = {name: narrowed(getattr(findings, name)) for name in names}
    return replace(findings, **frames)
