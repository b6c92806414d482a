"""Studies of so few datasets that each of them gets an answer of its own."""

FEW_DATASETS = 3
"""Largest number of datasets of a study that a baseline is trained for, and whose report is a short page."""


def has_few_datasets(number: int) -> bool:
    """Return whether a study is answered dataset by dataset, with a baseline on each.

    Parameters
    ----------
    number : int
        Number of datasets.
    """
    return 1 <= number <= FEW_DATASETS
