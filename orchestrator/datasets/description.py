"""What a loaded dataset is, in words, and whether that is what its configuration says."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import scipy.sparse

from orchestrator.datasets.about import About
from orchestrator.datasets.dataset import Dataset

_MOST_CLASSES = 30


def describe(dataset: Dataset) -> Mapping[str, str]:
    """Return the facts of a dataset as texts: rows, features, classes with their rows, and so on."""
    n, d = dataset.X.shape
    counts = np.bincount(dataset.codes, minlength=len(dataset.classes))
    shown = [f"{label}: {count:,}" for label, count in zip(dataset.classes, counts, strict=True)]
    more = f", and {len(shown) - _MOST_CLASSES} more" if len(shown) > _MOST_CLASSES else ""
    return {
        "rows": f"{n:,}{_dropped(dataset)}",
        "features": f"{d:,}{_kinds(dataset)}",
        "classes": f"{len(shown)} ({', '.join(shown[:_MOST_CLASSES])}{more})",
        "density": _density(dataset),
        "metadata": ", ".join(sorted(dataset.metadata)),
        "fingerprint": dataset.fingerprint,
    }


def _dropped(dataset: Dataset) -> str:
    return f" (dropped copies: {dataset.n_dropped:,})" if dataset.n_dropped else ""


def _kinds(dataset: Dataset) -> str:
    kinds = [*dataset.odd_columns.values()]
    found = [f"{kinds.count(kind)} with {kind}" for kind in sorted(set(kinds))]
    return f" ({', '.join(found)})" if found else ""


def _density(dataset: Dataset) -> str:
    """Return the share of values that are not zero; frames with text have none."""
    X = dataset.X
    if isinstance(X, pd.DataFrame):
        return ""
    sparse = scipy.sparse.issparse(X)
    nonzero = X.nnz if sparse else np.count_nonzero(X)
    return f"{nonzero / (X.shape[0] * X.shape[1]):.4f}{' (sparse)' if sparse else ''}"


def shape_problems(dataset: Dataset, about: About) -> list[str]:
    """Return how a dataset differs from the numbers of rows, features and classes that were declared."""
    n, d = dataset.X.shape
    found = {
        "n": ("rows", about.n, n + dataset.n_dropped),
        "d": ("features", about.d, d),
        "classes": ("classes", about.classes, len(dataset.classes)),
    }
    return [
        f"expected {told:,} {what} (about.{key}), found {number:,}; fetch it again, or correct about.{key}"
        for key, (what, told, number) in found.items()
        if told is not None and told != number
    ]
