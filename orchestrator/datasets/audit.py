"""What may be wrong with the rows and columns of one dataset: copies, constants, a label given away."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import Dataset, Features
from orchestrator.datasets.row_hashes import mixed, row_hashes

NEAR_CONSTANT = 0.999
"""Share of rows with the same value from which a column counts as nearly constant."""

GIVES_AWAY = 0.99
"""Agreement beyond chance from which a single feature gives the label away."""

MANY_COPIES = 0.05
"""Share of test rows with a copy among their training rows from which a warning is due."""

Rows = NDArray[np.integer]

_SAMPLE = 4000
"""Rows on which each feature is tried as the only one."""


@dataclass(frozen=True)
class Audit:
    """What was found in a dataset.

    Attributes
    ----------
    n : int
        Number of rows.
    distinct : int
        Number of different rows, label included.
    distinct_features : int
        Number of different rows, label aside: less by the rows that differ in nothing but their label.
    near_constant : tuple of int
        Columns in which a share of `NEAR_CONSTANT` of the rows, or more, has one value; of a sparse matrix
        only those with one value in all rows, for most of its columns are nearly always zero.
    gives_away : tuple of int
        Columns that tell the class nearly always by themselves.
    smallest_class : tuple of (label, int)
        The rarest class and its number of rows.
    tested_copies : float
        Share of the rows tested whose features are, exactly, those of a row that was trained on; 0 where no
        splits were given.
    """

    n: int
    distinct: int
    distinct_features: int
    near_constant: tuple[int, ...]
    gives_away: tuple[int, ...]
    smallest_class: tuple[Any, int]
    tested_copies: float = 0.0

    def warnings(self, dataset: Dataset) -> list[str]:
        """Say what makes scores look better than they are."""
        found = []
        if self.tested_copies >= MANY_COPIES:
            found.append(
                f"{self.tested_copies:.0%} of its test rows have an exact copy among their training rows; "
                "drop the copies (deduplicate: drop), or keep them together (deduplicate: group)"
            )
        if self.gives_away:
            found.append(
                f"{_columns(dataset, self.gives_away)} all it takes to tell its classes apart; "
                "leave out what is known only once the label is"
            )
        return [f"dataset {dataset.name!r}: {sentence}" for sentence in found]

    def sentences(self, dataset: Dataset, folds: int = 0) -> list[str]:
        """Say all that is unusual.

        Parameters
        ----------
        dataset : Dataset
            The one that was looked at.
        folds : int
            The largest number of folds into which it will be split.
        """
        found = []
        if self.distinct < self.n:
            found.append(f"{self.distinct:,} of its {self.n:,} rows are different, label included")
        if self.distinct_features < self.distinct:
            found.append(f"{self.distinct_features:,} of its {self.n:,} rows are different, label aside")
        if self.near_constant:
            share = "all" if scipy.sparse.issparse(dataset.X) else f"at least {NEAR_CONSTANT:.1%} of the"
            found.append(f"{_columns(dataset, self.near_constant)} one value in {share} rows")
        label, count = self.smallest_class
        if count < folds:
            found.append(f"its class {label!r} has {count:,} rows, fewer than the {folds} folds")
        return [*(f"dataset {dataset.name!r}: {sentence}" for sentence in found), *self.warnings(dataset)]


def audit(dataset: Dataset, splits: Iterable[tuple[Rows, Rows]] = ()) -> Audit:
    """Look at the rows and columns of a dataset.

    Parameters
    ----------
    dataset : Dataset
    splits : iterable of (train, test)
        Indices of the rows of each split.
    """
    features = row_hashes(dataset.X)
    labelled = features + mixed(dataset.codes.astype(np.uint64) + np.uint64(1))
    _, kinds = np.unique(features, return_inverse=True)
    counts = np.bincount(dataset.codes, minlength=len(dataset.classes))
    rarest = int(np.argmin(counts))
    return Audit(
        n=len(kinds),
        distinct=len(np.unique(labelled)),
        distinct_features=int(kinds.max()) + 1,
        near_constant=_near_constant(dataset.X),
        gives_away=_gives_away(dataset.X, dataset.codes),
        smallest_class=(dataset.classes[rarest].item(), int(counts[rarest])),
        tested_copies=_tested_copies(kinds, splits),
    )


def _tested_copies(kinds: Rows, splits: Iterable[tuple[Rows, Rows]]) -> float:
    tested = copies = 0
    for train, test in splits:
        trained = np.zeros(len(kinds), dtype=bool)
        trained[kinds[train]] = True
        copies += int(trained[kinds[test]].sum())
        tested += len(test)
    return copies / tested if tested else 0.0


def _columns(dataset: Dataset, columns: tuple[int, ...]) -> str:
    names = [repr(dataset.columns[at]) if dataset.columns else str(at) for at in columns[:5]]
    named = ", ".join(names) + ("" if dataset.columns else " (from 0)")
    rest = f" and {len(columns) - 5:,} more" if len(columns) > 5 else ""
    return f"column {named} has" if len(columns) == 1 else f"columns {named}{rest} have"


def _near_constant(X: Features) -> tuple[int, ...]:
    n = X.shape[0]
    if scipy.sparse.issparse(X):
        stored = np.bincount(X.indices, minlength=X.shape[1])
        low, high = (bound(axis=0).toarray().ravel() for bound in (X.min, X.max))
        constant = (stored == 0) | (low == high)
        return tuple(np.flatnonzero(constant).tolist())
    most = []
    for at in range(X.shape[1]):
        column = _numbers(X, at)
        # The value of most rows is the median of rows at even distances.
        sample = column[:: max(1, n // 1001)]
        common = np.partition(sample, len(sample) // 2)[len(sample) // 2]
        same = np.isnan(column) if np.isnan(common) else column == common
        if np.count_nonzero(same) >= NEAR_CONSTANT * n:
            most.append(at)
    return tuple(most)


def _numbers(X: Features, at: int) -> NDArray[np.float64]:
    """Return a column as numbers, which are equal where its values are."""
    if not isinstance(X, pd.DataFrame):
        return np.asarray(X[:, at])
    column = X.iloc[:, at]
    if column.dtype == np.float64:
        return column.to_numpy()
    return np.asarray(pd.factorize(column)[0], dtype=np.float64)


def _gives_away(X: Features, codes: NDArray[np.int32]) -> tuple[int, ...]:
    """Return the columns after which sorted rows have neighbours of one class, as good as always.

    That finds thresholds, intervals, identifiers of sorted rows, and categories that belong to one class.
    """
    # In no order: sorting by a column leaves rows of equal values as they are, perhaps by their class.
    rows = np.random.default_rng(0).permutation(len(codes))[:_SAMPLE]
    labels = codes[rows]
    chance = float(((np.bincount(labels) / len(labels)) ** 2).sum())
    if chance == 1 or len(rows) < 20:
        return ()
    columns: Any = range(X.shape[1])
    sample: Any = X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]
    if scipy.sparse.issparse(X):
        # A column that is zero in more rows than the largest class has cannot tell the classes apart.
        sample = sample.tocsc()
        columns = np.flatnonzero(np.diff(sample.indptr) >= 0.9 * (len(rows) - np.bincount(labels).max()))
    found = []
    for at in map(int, columns):
        values = sample[:, [at]].toarray().ravel() if scipy.sparse.issparse(X) else _numbers(sample, at)
        is_text = isinstance(X, pd.DataFrame) and X.dtypes.iloc[at] != np.float64
        if _agreement(values, labels, chance, is_text) >= GIVES_AWAY:
            found.append(at)
    return tuple(found)


def _agreement(values: NDArray[np.float64], labels: NDArray[Any], chance: float, is_text: bool) -> float:
    """Return how often neighbours share their class, from 0 for chance to 1 for always."""
    order = np.argsort(values, kind="stable")
    same = np.diff(labels[order]) == 0
    borders = len(np.unique(labels)) - 1  # that a feature needs which sorts the rows by class
    if is_text:  # the order of texts means nothing
        same, borders = same[np.diff(values[order]) == 0], 0
        if 2 * len(same) < len(labels):
            return 0.0
    share = min(1.0, (np.count_nonzero(same) + borders) / len(same))
    return (share - chance) / (1 - chance)
