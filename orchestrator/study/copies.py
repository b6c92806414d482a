"""The warning about test rows that have a copy among their training rows."""

from orchestrator.study.text import format_share

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
