"""Description of a loaded dataset for readers, and its comparison with the configuration."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import scipy.sparse

from orchestrator.datasets.about import About
from orchestrator.datasets.dataset import Dataset

_MAX_CLASSES = 30
"""Largest number of classes listed by name."""


def describe(dataset: Dataset) -> Mapping[str, str]:
    """Return a summary of a dataset as texts: rows, features, rows of each class, and further properties.

    Parameters
    ----------
    dataset : Dataset
        Loaded dataset.
    """
    n, d = dataset.X.shape
    counts = np.bincount(dataset.codes, minlength=len(dataset.classes))
    shown = [f"{label}: {count:,}" for label, count in zip(dataset.classes, counts, strict=True)]
    more = f", and {len(shown) - _MAX_CLASSES} more" if len(shown) > _MAX_CLASSES else ""
    return {
        "rows": f"{n:,}{_dropped(dataset)}",
        "features": f"{d:,}{_kinds(dataset)}",
        "classes": f"{len(shown)} ({', '.join(shown[:_MAX_CLASSES])}{more})",
        "density": _density(dataset),
        "metadata": ", ".join(sorted(dataset.metadata)),
        "fingerprint": dataset.fingerprint,
    }


def _dropped(dataset: Dataset) -> str:
    """Return the number of dropped copies in parentheses; empty if there are none.

    Parameters
    ----------
    dataset : Dataset
        Loaded dataset.
    """
    return f" (dropped copies: {dataset.n_dropped:,})" if dataset.n_dropped else ""


def _kinds(dataset: Dataset) -> str:
    """Return the numbers of columns with missing values and with text; empty if there are none.

    Parameters
    ----------
    dataset : Dataset
        Loaded dataset.
    """
    kinds = [*dataset.odd_columns.values()]
    found = [f"{kinds.count(kind)} with {kind}" for kind in sorted(set(kinds))]
    return f" ({', '.join(found)})" if found else ""


def _density(dataset: Dataset) -> str:
    """Return the share of non-zero values; empty for frames with text.

    Parameters
    ----------
    dataset : Dataset
        Loaded dataset.
    """
    X = dataset.X
    if isinstance(X, pd.DataFrame):
        return ""
    sparse = scipy.sparse.issparse(X)
    nonzero = X.nnz if sparse else np.count_nonzero(X)
    return f"{nonzero / (X.shape[0] * X.shape[1]):.4f}{' (sparse)' if sparse else ''}"


def shape_problems(dataset: Dataset, about: About) -> list[str]:
    """Return a message for each difference between a dataset and its declared size.

    Parameters
    ----------
    dataset : Dataset
        Loaded dataset.
    about : About
        Description with the declared numbers of rows, features and classes.
    """
    n, d = dataset.X.shape
    found = {
        "n": ("rows", about.n, n + dataset.n_dropped),
        "d": ("features", about.d, d),
        "classes": ("classes", about.classes, len(dataset.classes)),
    }
    return [
        f"expected {stated:,} {what} (about.{key}), found {number:,}; fetch it again, or correct about.{key}"
        for key, (what, stated, number) in found.items()
        if stated is not None and stated != number
    ]
