"""Printing of ratios of costs in a cell, with their bounds."""

from collections.abc import Callable

import pandas as pd

from orchestrator.analysis.ratios import BETWEEN, EXACT
from orchestrator.report import format as fmt
from orchestrator.report.table import Row


def ratio(row: Row, cost: str) -> str:
    """Print a geometric mean, or the bound that is known.

    Parameters
    ----------
    row : dict
        A row with the columns of `RatioSummary`.
    cost : str
        Name of the cost.
    """
    keys = ("bound", "ratio", "median_low", "median_high")
    bound, value, low, high = (row[f"{cost}_{key}"] for key in keys)
    return fmt.bounded_ratio(bound, value, low, high, _printer(cost))


def _printer(cost: str) -> Callable[[float], str]:
    """Return the function that prints ratios of a cost: times have fewer digits than counts.

    Parameters
    ----------
    cost : str
        Name of the cost.
    """
    return fmt.time_ratio if "seconds" in cost else fmt.ratio


def geometric_mean(row: Row, cost: str) -> str:
    """Print a geometric mean with its interval.

    Parameters
    ----------
    row : dict
        A row with the columns of `RatioSummary`.
    cost : str
        Name of the cost.
    """
    low, high = row[f"{cost}_ratio_low"], row[f"{cost}_ratio_high"]
    text, printed = ratio(row, cost), _printer(cost)
    return text if pd.isna(low) else f"{text} [{printed(low)}, {printed(high)}]"


def typical_ratio(row: Row, cost: str) -> str:
    """Print the Hodges–Lehmann estimate with its interval and the confidence of the interval.

    Parameters
    ----------
    row : dict
        A row with the columns of `RatioSummary`.
    cost : str
        Name of the cost.
    """
    names = ("bound", "typical", "typical_low", "typical_high", "confidence", "n")
    bound, estimate, low, high, confidence, n = (row[f"{cost}_{name}"] for name in names)
    sign = "" if bound in (EXACT, BETWEEN) or pd.isna(estimate) else f"{bound} "
    if not n:
        return fmt.MISSING
    printed = _printer(cost)
    return fmt.with_interval(f"{sign}{printed(estimate)}", printed(low), printed(high), confidence)
