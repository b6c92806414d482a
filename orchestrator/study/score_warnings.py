"""Warnings about data for which scores are too high: copies of rows, and columns that give the label."""

from collections.abc import Sequence

from orchestrator.study.column_overrides import drop_override
from orchestrator.study.text import format_share

_MAX_NAMES = 5
"""Largest number of columns that a warning names."""

MAX_COPIES = 0.05
"""Smallest share of test rows with a copy among their training rows that causes a warning."""


def copies_warning(dataset: str, share: float) -> str:
    """Return a sentence about copies of training rows, without its full stop; empty if they are few.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    share : float
        Share of its test rows whose features equal those of a training row, from 0 to 1.
    """
    if share < MAX_COPIES:
        return ""
    key = f"dataset.{dataset}.deduplicate"
    return (
        f"{format_share(share)} of its test rows have an exact copy among their training rows; "
        f"drop the copies ({key}=drop), or keep them together ({key}=group)"
    )


def label_warning(columns: Sequence[str | int]) -> str:
    """Return a sentence about columns that give the label, without its full stop; empty if there are none.

    Parameters
    ----------
    columns : sequence of str or int
        Names of the columns, or their indices from 0 if the columns have no names.
    """
    if not columns:
        return ""
    more = len(columns) - _MAX_NAMES
    named = ", ".join(map(repr, columns[:_MAX_NAMES])) + (f" and {more:,} more" if more > 0 else "")
    names = [each for each in columns if isinstance(each, str)]
    counted, how = ("", f" with {drop_override(names)}") if names else (" (from 0)", "")
    is_one = len(columns) == 1
    subject, repeat, predict, it = (
        ("column", "repeats", "predicts", "it") if is_one else ("columns", "repeat", "predict", "them")
    )
    return (
        f"{subject} {named}{counted} {repeat} the label, or {predict} it almost without error; leave {it} "
        f"out{how}, unless known before the label"
    )
