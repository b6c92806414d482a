"""Figures without a sampling error, such as ratios between candidates of one search."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pandas as pd
from scipy.special import ndtri

from orchestrator.analysis.summaries import numbers
from orchestrator.claims.figures import LEVEL, Figure, Side, Unanswered
from orchestrator.study.text import format_share
from orchestrator.study.trials import REFIT


def candidate_ratios(arm: Side, quantity: str, above: str, below: str) -> list[Figure]:
    """Return the median ratio of a column between two datasets over candidates.

    Parameters
    ----------
    arm : Side
        Arm and the studies that have it.
    quantity : str
        Name of the column.
    above : str
        Name of the dataset in the numerator.
    below : str
        Name of the dataset in the denominator.

    Returns
    -------
    list of Figure
        A single figure, whose interval contains the ratios of nine candidates in ten.

    Raises
    ------
    Unanswered
        If the arm has no trainings on both datasets.
    """
    means = by_candidate(arm, quantity)
    try:
        ratios = (means.loc[above] / means.loc[below]).dropna()
    except KeyError:
        raise Unanswered(f"no trainings of {arm.arm} on {above} and on {below}") from None
    what = f"{arm.arm}, {quantity}, {above} / {below}"
    middle = ratios.quantile(LEVEL), ratios.quantile(1 - LEVEL)
    return [_whole(what, float(ratios.median()), *middle, len(ratios), "candidates")]


def candidate_steps(arm: Side, quantity: str, along: str, rises: bool) -> list[Figure]:
    """Return the share of neighbouring candidates between which a column rises or falls.

    Parameters
    ----------
    arm : Side
        Arm and the studies that have it.
    quantity : str
        Name of the column.
    along : str
        Name of the parameter in which the neighbours differ.
    rises : bool
        Count rising steps; otherwise falling ones.

    Returns
    -------
    list of Figure
        A single figure.

    Raises
    ------
    Unanswered
        If the parameter does not exist or has only one value.
    """
    means = by_candidate(arm, quantity)
    levels = [name for name in means.index.names if name != f"param_{along}"]
    if len(levels) == len(means.index.names):
        raise Unanswered(f"the trainings of {arm.arm} have no parameter {along}")
    steps = means.sort_index().groupby(level=levels, sort=False).diff().dropna()
    if steps.empty:
        raise Unanswered(f"the trainings of {arm.arm} have one value of {along} only")
    share = float((steps > 0).mean() if rises else (steps < 0).mean())
    what = f"{arm.arm}, {quantity} {'rises' if rises else 'falls'} with {along}"
    return [_whole(what, share, share, share, len(steps), "steps")]


def largest(arm: Side, quantity: str, datasets: Callable[[str], bool]) -> list[Figure]:
    """Return the largest value of a column over all trainings of an arm.

    Parameters
    ----------
    arm : Side
        Arm and the studies that have it.
    quantity : str
        Name of the column.
    datasets : callable
        Function from the name of a dataset to whether the test includes it.

    Returns
    -------
    list of Figure
        A single figure.

    Raises
    ------
    Unanswered
        If there are no such trainings.
    """
    trials = pd.concat([study.results.trials for study in arm.studies])
    rows = trials[(trials["solver"] == arm.arm) & trials["dataset"].astype(str).map(datasets).astype(bool)]
    values = numbers(rows[quantity]) if quantity in rows else np.zeros(0)
    values = values[~np.isnan(values)]
    if not len(values):
        raise Unanswered(f"no trainings of {arm.arm} with {quantity}")
    top = float(values.max())
    return [_whole(f"{arm.arm}, largest {quantity}", top, top, top, len(values), "trainings")]


def unseen_violators(draws: int, confidence: float) -> list[Figure]:
    """Return an upper bound of the share of violators if no draw found one, as in Strack (2013), 5.1.

    Parameters
    ----------
    draws : int
        Number of draws.
    confidence : float
        Confidence of the bound.

    Returns
    -------
    list of Figure
        A single figure.
    """
    z = float(ndtri((1 + confidence) / 2))
    n = draws + z * z
    share = z * z / (2 * n)
    bound = share + z * sqrt(share * (1 - share) / n)
    return [_whole(f"{draws} draws at {format_share(confidence)}", bound, bound, bound, draws, "draws")]


def by_candidate(arm: Side, quantity: str) -> pd.Series:
    """Return the mean of a column over the inner trainings of each dataset and candidate.

    Parameters
    ----------
    arm : Side
        Arm and the studies that have it.
    quantity : str
        Name of the column.

    Returns
    -------
    Series
        Means, indexed by dataset and parameters.

    Raises
    ------
    Unanswered
        If there are no such trainings.
    """
    trials = pd.concat([study.results.trials for study in arm.studies])
    rows = trials[(trials["solver"] == arm.arm) & (trials["inner"] != REFIT)]
    if rows.empty or quantity not in rows:
        raise Unanswered(f"no inner trainings of {arm.arm} with {quantity}")
    params = [name for name in map(str, rows.columns) if name.startswith("param_")]
    params = [name for name in params if rows[name].notna().all()]
    return rows.assign(value=numbers(rows[quantity])).groupby(["dataset", *params])["value"].mean()


def _whole(what: str, estimate: float, low: float, high: float, n: int, unit: str) -> Figure:
    """Return a figure that is not an estimate. Its interval extends from the smallest to the largest value.

    Parameters
    ----------
    what : str
        Description of the number.
    estimate : float
        Value of the figure.
    low : float
        Smallest value.
    high : float
        Largest value.
    n : int
        Number of values.
    unit : str
        Unit that `n` counts, in the plural.

    Returns
    -------
    Figure
        The number with the interval from `low` to `high`.
    """
    return Figure(what, estimate, float(low), float(high), n, unit)
