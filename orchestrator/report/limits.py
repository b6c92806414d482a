"""The arms and datasets that a page shows of a large study."""

import pandas as pd

from orchestrator.analysis.findings import Findings, arm_ranks
from orchestrator.report.table import ROWS_SHOWN

ARMS_SHOWN = 40
"""Largest number of arms in the tables and figures of a page."""


def shown_arms(study: Findings) -> list[str]:
    """Return the arms that tables and figures show: all, or the first and those with the best mean ranks.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    list of str
        At most `ARMS_SHOWN` names.
    """
    arms = list(study.design.arms)
    if len(arms) <= ARMS_SHOWN:
        return arms
    ranks = arm_ranks(study)
    ranked = list(ranks["solver"]) if len(ranks) else []
    return list(dict.fromkeys([arms[0], *ranked, *arms]))[:ARMS_SHOWN]


def shown(study: Findings, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a frame that belong to the shown arms.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        Rows with the name of an arm in the column solver.

    Returns
    -------
    DataFrame
        The frame, or some of its rows.
    """
    if len(study.design.arms) <= ARMS_SHOWN or frame.empty:
        return frame
    return frame[frame["solver"].isin(shown_arms(study))]


def shown_in_figures(study: Findings, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a frame that belong to the arms and datasets that figures show.

    Parameters
    ----------
    study : Findings
        The study of the report.
    frame : DataFrame
        Rows with the name of an arm in the column solver, and perhaps of a dataset in the column dataset.

    Returns
    -------
    DataFrame
        The frame, or some of its rows.
    """
    datasets = list(study.design.datasets)[: max(1, ROWS_SHOWN // len(shown_arms(study) or [""]))]
    frame = shown(study, frame)
    return frame[frame["dataset"].isin(datasets)] if "dataset" in frame else frame


def arms_note(study: Findings) -> str:
    """Return the end of a caption that says which arms are shown; empty if all are.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    str
        A sentence after a space.
    """
    if (number := len(study.design.arms)) <= ARMS_SHOWN:
        return ""
    which = (
        f"{ARMS_SHOWN}" if arm_ranks(study).empty else f"and the {ARMS_SHOWN - 1} with the best mean ranks"
    )
    return f" Of {number} arms, the first {which} are shown. The CSV files contain all arms."
