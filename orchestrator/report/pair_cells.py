"""Printing of tests of pairs of arms in a cell."""

from collections.abc import Callable

from orchestrator.analysis.findings import Findings
from orchestrator.report import format as fmt
from orchestrator.report.marks import marked_arms, marked_name
from orchestrator.report.table import Row


def units(study: Findings) -> str:
    """Return the heading of the number of datasets, or of families of datasets.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    str
        A capitalised plural.
    """
    return fmt.plural_of(study.design.unit).capitalize()


def estimate(row: Row, metric: str) -> str:
    """Print the typical difference of a pair with its interval and the confidence of the interval.

    Parameters
    ----------
    row : dict
        The fields n, estimate, low, high and confidence.
    metric : str
        Name of the scorer.

    Returns
    -------
    str
        A dash if the pair has no dataset in common.
    """
    if not row["n"]:
        return fmt.MISSING
    middle, low, high = (fmt.difference(row[name], metric) for name in ("estimate", "low", "high"))
    return fmt.with_interval(middle, low, high, row["confidence"])


def pair(study: Findings) -> Callable[[Row], str]:
    """Return the function that prints the names of a pair.

    Parameters
    ----------
    study : Findings
        The study of the report.

    Returns
    -------
    callable
        Takes a row with the fields first and second.
    """
    marked = marked_arms(study)
    return lambda row: f"{marked_name(row['first'], marked)} − {marked_name(row['second'], marked)}"
