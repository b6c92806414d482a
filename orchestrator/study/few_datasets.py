"""Studies of few datasets, for each of which the report gives a separate answer."""

FEW_DATASETS = 3
"""Largest number of datasets of a study with a baseline and a short report."""


def has_few_datasets(number: int) -> bool:
    """Return whether a study is answered dataset by dataset, with a baseline on each.

    Parameters
    ----------
    number : int
        Number of datasets.
    """
    return 1 <= number <= FEW_DATASETS
