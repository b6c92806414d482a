"""The arms and datasets that a page shows of a large study."""

import pandas as pd

from orchestrator.analysis.findings import Findings, arm_ranks
from orchestrator.report import format as fmt
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
    frame = shown(study, frame)
    return frame[frame["dataset"].isin(_datasets_in_figures(study))] if "dataset" in frame else frame


def _datasets_in_figures(study: Findings) -> list[str]:
    """Return the datasets that figures of each dataset × arm show, which are the first of many.

    Parameters
    ----------
    study : Findings
        The study of the report.
    """
    return list(study.design.datasets)[: max(1, ROWS_SHOWN // len(shown_arms(study) or [""]))]


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
    which = f"the first and the {ARMS_SHOWN - 1} with the best mean ranks"
    if arm_ranks(study).empty:
        which = f"the first {ARMS_SHOWN}"
    return f" Of {number} arms, {which} are shown. The CSV files contain all arms."


def figure_note(study: Findings) -> str:
    """Return the end of the caption of a figure of each dataset × arm that says which of them it shows.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    str
        Sentences after a space; empty if the figure shows all.
    """
    return arms_note(study) + first_note(len(_datasets_in_figures(study)), len(study.design.datasets))


def first_note(n_shown: int, n: int, noun: str = "dataset") -> str:
    """Return the end of a caption that says how many of several things a figure shows; empty if it shows all.

    Parameters
    ----------
    n_shown, n : int
        Number of things that the figure shows, which are the first ones, and of all.
    noun : str, default="dataset"
        Name of such a thing, in the singular.

    Returns
    -------
    str
        A sentence after a space.
    """
    if n_shown >= n:
        return ""
    return f" Drawn: the first {n_shown} of {fmt.plural(n, noun)}."
