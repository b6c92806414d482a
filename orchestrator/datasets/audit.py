"""Audit of the rows and columns of one dataset: copies, constant columns, features that leak the label."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.columns import column_findings
from orchestrator.datasets.dataset import Dataset, Features
from orchestrator.datasets.finding import CONSTANT, LABEL, ORDERED, WHOLE, Finding, brief, left_out
from orchestrator.datasets.row_hashes import mixed, row_hashes
from orchestrator.study.class_shares import rare_share
from orchestrator.study.score_warnings import copies_warning
from orchestrator.study.text import format_share, plural

NEAR_CONSTANT = 0.999
"""Smallest share of rows with the same value for which a column counts as nearly constant."""

LEAKAGE = 0.99
"""Smallest agreement beyond chance for which a single feature counts as leaking the label."""

Rows = NDArray[np.integer]

_SAMPLE = 4000
"""Number of rows on which each feature is tested by itself."""


@dataclass(frozen=True)
class Audit:
    """Findings about a dataset.

    Attributes
    ----------
    n : int
        Number of rows.
    distinct : int
        Number of different rows, label included.
    distinct_features : int
        Number of different rows, ignoring the label.
    near_constant : tuple of int
        Columns in which at least a share `NEAR_CONSTANT` of the rows has one value. For a sparse matrix, only
        columns with one value in all rows, because most of its columns are nearly always zero.
    gives_away : tuple of int
        Columns that predict the class nearly always by themselves.
    smallest_class : tuple of (label, int)
        The rarest class and its number of rows.
    tested_copies : float
        Share of test rows whose features equal those of a training row; 0 without splits.
    repeated : int
        Number of different rows that occur more than once, label included.
    columns : tuple of Finding
        Findings about columns with names.
    """

    n: int
    distinct: int
    distinct_features: int
    near_constant: tuple[int, ...]
    gives_away: tuple[int, ...]
    smallest_class: tuple[Any, int]
    tested_copies: float = 0.0
    repeated: int = 0
    columns: tuple[Finding, ...] = ()

    def warnings(self, dataset: Dataset) -> list[str]:
        """Return warnings about anything that makes scores look too good, and the notes of the loader.

        Parameters
        ----------
        dataset : Dataset
            The audited dataset.
        """
        found = [*dataset.notes]
        if copies := copies_warning(dataset.name, self.tested_copies):
            found.append(copies)
        if giving := self._columns_without({*self._labels_again()}, self.gives_away, dataset):
            found.append(
                f"{_columns(dataset, giving)} values that predict the class almost without error; "
                "drop features that are not known before the label"
            )
        return [f"dataset {dataset.name!r}: {sentence}" for sentence in found]

    def label_columns(self, dataset: Dataset) -> list[str | int]:
        """Return the columns that give the label: their names, or their indices if they have no names.

        Parameters
        ----------
        dataset : Dataset
            The audited dataset.
        """
        named = self._labels_again()
        giving = self._columns_without({*named}, self.gives_away, dataset)
        return [*named, *(dataset.columns[at] if dataset.columns else int(at) for at in giving)]

    def _labels_again(self) -> list[str]:
        """Return the names of the columns that repeat the label."""
        return [each.column for each in self.columns if each.kind == LABEL]

    def _columns_without(
        self, named: set[str], columns: tuple[int, ...], dataset: Dataset
    ) -> tuple[int, ...]:
        """Return the indices of columns, without those that a finding names already.

        Parameters
        ----------
        named : set of str
            Names of columns.
        columns : tuple of int
            Indices of columns.
        dataset : Dataset
            The audited dataset.
        """
        return tuple(at for at in columns if not dataset.columns or dataset.columns[at] not in named)

    def _repeats(self) -> str:
        """Return how many rows occur more than once."""
        return f"{self.repeated:,} {'row occurs' if self.repeated == 1 else 'rows occur'} more than once"

    def sentences(self, dataset: Dataset, folds: int = 0) -> list[str]:
        """Return a sentence for each unusual finding.

        Parameters
        ----------
        dataset : Dataset
            The audited dataset.
        folds : int
            Largest number of folds of its resampling; 0 if unknown.
        """
        found = []
        if self.distinct < self.n:
            found.append(
                f"{self._repeats()}: {self.distinct:,} of its {self.n:,} rows are different, label included; "
                f"dataset.{dataset.name}.deduplicate=drop keeps one of each"
            )
        if self.distinct_features < self.distinct:
            found.append(f"{self.distinct_features:,} of its {self.n:,} rows are different, label excluded")
        constant = {each.column for each in self.columns if each.kind == CONSTANT}
        if near_constant := self._columns_without(constant, self.near_constant, dataset):
            is_sparse, share = scipy.sparse.issparse(dataset.X), format_share(NEAR_CONSTANT, 1)
            which = "all" if is_sparse else f"at least {share} of the"
            found.append(f"{_columns(dataset, near_constant)} one value in {which} rows")
        label, count = self.smallest_class
        if count < folds:
            found.append(f"its class {label!r} has {plural(count, 'row')}, fewer than the {folds} folds")
        if (part := count / self.n) < rare_share(len(dataset.classes)):
            found.append(
                f"its class {label!r} has {count:,} of the {self.n:,} rows ({format_share(part, 1)}), and "
                "accuracy hides it: metric=balanced_accuracy counts every class alike"
            )
        found += [each.sentence() for each in self.columns]
        found += filter(None, [left_out(self.columns)])
        return [*(f"dataset {dataset.name!r}: {sentence}" for sentence in found), *self.warnings(dataset)]

    def brief(self, dataset: Dataset, has_splitter: bool = False) -> list[str]:
        """Return the findings about columns in a few lines.

        Parameters
        ----------
        dataset : Dataset
            The audited dataset.
        has_splitter : bool
            Whether the user has chosen an outer splitter, so that none is suggested. Default False.
        """
        settled = {ORDERED} if has_splitter else set()
        lines = [each.sentence() for each in self.columns if each.kind in WHOLE and each.kind not in settled]
        if self.distinct < self.n:
            lines.insert(0, self._repeats())
        lines = [*filter(None, [brief(list(self.columns))]), *lines, *filter(None, [left_out(self.columns)])]
        return [f"{dataset.name}: {line}" for line in lines]


def audit(dataset: Dataset, splits: Iterable[tuple[Rows, Rows]] = ()) -> Audit:
    """Audit the rows and columns of a dataset.

    Parameters
    ----------
    dataset : Dataset
        Dataset to examine.
    splits : iterable of (train, test)
        Row indices of each split; none by default.
    """
    features = row_hashes(dataset.X)
    labelled = features + mixed(dataset.codes.astype(np.uint64) + np.uint64(1))
    _, kinds = np.unique(features, return_inverse=True)
    _, times = np.unique(labelled, return_counts=True)
    counts = np.bincount(dataset.codes, minlength=len(dataset.classes))
    rarest = int(np.argmin(counts))
    return Audit(
        n=len(kinds),
        distinct=len(times),
        distinct_features=int(kinds.max()) + 1,
        near_constant=_near_constant(dataset.X),
        gives_away=_leaking(dataset.X, dataset.codes),
        smallest_class=(dataset.classes[rarest].item(), int(counts[rarest])),
        tested_copies=_tested_copies(kinds, splits),
        repeated=int(np.count_nonzero(times > 1)),
        columns=tuple(column_findings(dataset)),
    )


def _tested_copies(kinds: Rows, splits: Iterable[tuple[Rows, Rows]]) -> float:
    """Return the share of test rows whose features equal those of a training row.

    Parameters
    ----------
    kinds : int array, shape (n,)
        Equal rows have equal numbers.
    splits : iterable of (train, test)
        Row indices of each split.
    """
    tested = copies = 0
    for train, test in splits:
        trained = np.zeros(len(kinds), dtype=bool)
        trained[kinds[train]] = True
        copies += int(trained[kinds[test]].sum())
        tested += len(test)
    return copies / tested if tested else 0.0


def _columns(dataset: Dataset, columns: tuple[int, ...]) -> str:
    """Return the subject and verb of a sentence about columns, such as `column 'age' has`.

    Parameters
    ----------
    dataset : Dataset
        Dataset of the columns.
    columns : tuple of int
        Their indices; at most five are named.
    """
    names = [repr(dataset.columns[at]) if dataset.columns else str(at) for at in columns[:5]]
    named = ", ".join(names) + ("" if dataset.columns else " (from 0)")
    rest = f" and {len(columns) - 5:,} more" if len(columns) > 5 else ""
    return f"column {named} has" if len(columns) == 1 else f"columns {named}{rest} have"


def _near_constant(X: Features) -> tuple[int, ...]:
    """Return the indices of nearly constant columns; see `Audit`.

    Parameters
    ----------
    X : array, CSR matrix or frame, shape (n, d)
        Features, one row for each sample.
    """
    n = X.shape[0]
    if scipy.sparse.issparse(X):
        stored = np.bincount(X.indices, minlength=X.shape[1])
        low, high = (bound(axis=0).toarray().ravel() for bound in (X.min, X.max))
        constant = (stored == 0) | (low == high)
        return tuple(np.flatnonzero(constant).tolist())
    constant_columns = []
    for at in range(X.shape[1]):
        column = _numbers(X, at)
        # If most rows have one value, it is the median of a sample of equidistant rows.
        sample = column[:: max(1, n // 1001)]
        common = np.partition(sample, len(sample) // 2)[len(sample) // 2]
        same = np.isnan(column) if np.isnan(common) else column == common
        if np.count_nonzero(same) >= NEAR_CONSTANT * n:
            constant_columns.append(at)
    return tuple(constant_columns)


def _numbers(X: Features, at: int) -> NDArray[np.float64]:
    """Encode a column as numbers: equal values get equal numbers.

    Parameters
    ----------
    X : array or frame, shape (n, d)
        Features, one row for each sample.
    at : int
        Index of the column.
    """
    if not isinstance(X, pd.DataFrame):
        return np.asarray(X[:, at])
    column = X.iloc[:, at]
    if column.dtype == np.float64:
        return column.to_numpy()
    return np.asarray(pd.factorize(column)[0], dtype=np.float64)


def _leaking(X: Features, codes: NDArray[np.int32]) -> tuple[int, ...]:
    """Return the columns whose order puts rows of one class next to each other, nearly without exception.

    This finds thresholds, intervals, identifiers of sorted rows, and categories that belong to one class.

    Parameters
    ----------
    X : array, CSR matrix or frame, shape (n, d)
        Features, one row for each sample.
    codes : int32 array, shape (n,)
        Class of each row.
    """
    # Shuffled: a stable sort keeps the order of rows with equal values, and files are often sorted by class.
    rows = np.random.default_rng(0).permutation(len(codes))[:_SAMPLE]
    labels = codes[rows]
    chance = float(((np.bincount(labels) / len(labels)) ** 2).sum())
    if chance == 1 or len(rows) < 20:
        return ()
    columns: Any = range(X.shape[1])
    sample: Any = X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]
    if scipy.sparse.issparse(X):
        # A column with more zeros than the largest class has rows cannot separate the classes.
        sample = sample.tocsc()
        columns = np.flatnonzero(np.diff(sample.indptr) >= 0.9 * (len(rows) - np.bincount(labels).max()))
    found = []
    for at in map(int, columns):
        values = sample[:, [at]].toarray().ravel() if scipy.sparse.issparse(X) else _numbers(sample, at)
        is_text = isinstance(X, pd.DataFrame) and X.dtypes.iloc[at] != np.float64
        if _agreement(values, labels, chance, is_text) >= LEAKAGE:
            found.append(at)
    return tuple(found)


def _agreement(values: NDArray[np.float64], labels: NDArray[Any], chance: float, is_text: bool) -> float:
    """Return how often neighbours in the order of a feature share their class: 0 for chance, 1 for always.

    Parameters
    ----------
    values : float64 array, shape (n,)
        Values of the feature.
    labels : array, shape (n,)
        Classes of the rows.
    chance : float
        Probability that two random rows share their class.
    is_text : bool
        Whether the values are codes of text, whose order has no meaning.
    """
    order = np.argsort(values, kind="stable")
    same = np.diff(labels[order]) == 0
    # Even a feature that sorts the rows by class has neighbours of different classes where one class ends.
    borders = len(np.unique(labels)) - 1
    if is_text:  # only neighbours with equal texts are comparable
        same, borders = same[np.diff(values[order]) == 0], 0
        if 2 * len(same) < len(labels):
            return 0.0
    share = min(1.0, (np.count_nonzero(same) + borders) / len(same))
    return (share - chance) / (1 - chance)
