"""Find the columns on which a solver cannot be trained because of missing values or text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orchestrator.datasets.dataset import MISSING, Dataset
from orchestrator.training.shared_arrays import private_copy
from orchestrator.training.split_data import Split

_MAX_COLUMNS = 20
"""Largest number of columns that are tried one by one, and for which the sample gets a row with a missing
value."""

_MAX_NAMED = 10
"""Largest number of columns that a message names."""


class Refusal(NamedTuple):
    """Columns on which a solver cannot be trained.

    Attributes
    ----------
    columns : str
        Names of all these columns, each with its content.
    error : str
        Error of a training on the first of them.
    """

    columns: str
    error: str


@dataclass(frozen=True)
class OddColumns:
    """Columns of a dataset that are not finite numbers.

    Attributes
    ----------
    dataset : Dataset
        Loaded features, labels and metadata.
    kinds : mapping of int to str
        Kind of content of each such column, by its index.
    """

    dataset: Dataset
    kinds: Mapping[int, str]

    @classmethod
    def of(cls, dataset: Dataset) -> "OddColumns":
        """Return the columns of a dataset that are not finite numbers.

        Parameters
        ----------
        dataset : Dataset
            Loaded features, labels and metadata.

        Returns
        -------
        OddColumns
            The dataset, and what each such column contains.
        """
        return cls(dataset, dataset.odd_columns)

    def rows(self) -> NDArray[np.integer]:
        """Return one row with a missing value for each of the first columns that have them.

        Returns
        -------
        ndarray
            Row indices, distinct and in ascending order.
        """
        incomplete = [column for column, kind in self.kinds.items() if MISSING in kind][:_MAX_COLUMNS]
        first = (int(np.argmax(_is_missing(self.dataset.X, column))) for column in incomplete)
        return np.unique(np.fromiter(first, dtype=np.intp))

    def refusal(self, error_on: Callable[[Split], str | None], sample: Split) -> Refusal | None:
        """Return the columns on which a solver cannot be trained.

        Missing values and text are the cause only if the solver can be trained on the same rows without them.

        Parameters
        ----------
        error_on : callable
            Function that trains the solver on a split and returns a description of its error, or None.
        sample : Split
            A few rows of the dataset.

        Returns
        -------
        Refusal or None
            All such columns; None if there are none.
        """
        if not self.kinds:
            return None

        def error_with(X: Any) -> str | None:
            return error_on(
                Split(X, sample.y_train, X, sample.y_train).read_only()
            )  # testing on the same rows, so no category is unknown

        plain = _plain(sample.X_train, self.kinds)
        if (error := error_with(sample.X_train)) is None or error_with(plain) is not None:
            return None
        tried = {
            column: error_with(_with_column(plain, sample.X_train, column))
            for column in list(self.kinds)[:_MAX_COLUMNS]
        }
        failed = {column: found for column, found in tried.items() if found is not None}
        refused = {self.kinds[column] for column in failed}
        # Columns beyond those that were tried are judged by their content.
        columns = [
            column
            for column, kind in self.kinds.items()
            if column in failed or (column not in tried and kind in refused)
        ]
        return Refusal(self._named(columns or list(self.kinds)), next(iter(failed.values()), error))

    def _named(self, columns: Sequence[int]) -> str:
        """Return the names of columns, each with its content.

        Parameters
        ----------
        columns : sequence of int
            Indices of columns.
        """
        names = [f"{self.dataset.column_name(column)} ({self.kinds[column]})" for column in columns]
        more = len(names) - _MAX_NAMED
        listed = ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
        return f"column{'s' if len(names) > 1 else ''} {listed}"


def _is_missing(X: Any, column: int) -> Any:
    """Return which rows of a column are missing.

    Parameters
    ----------
    X : object
        Features, as a data frame or a dense array.
    column : int
        Index of the column.

    Returns
    -------
    Series or ndarray of bool
        One value for each row.
    """
    return X.iloc[:, column].isna() if isinstance(X, pd.DataFrame) else np.isnan(X[:, column])


def _plain(X: Any, columns: Mapping[int, str]) -> Any:
    """Return a copy of features with numbers in place of text and missing values.

    Parameters
    ----------
    X : object
        Features, as a data frame or a dense array.
    columns : mapping of int to str
        The columns to replace, by index.

    Returns
    -------
    DataFrame or ndarray
        Finite features: missing numbers are 0, and text is encoded by integers.
    """
    X = private_copy(X)
    if not isinstance(X, pd.DataFrame):
        return np.nan_to_num(X)
    for column in columns:
        values = X.iloc[:, column]
        is_number = values.dtype == np.float64
        codes = values.fillna(0.0) if is_number else pd.factorize(values, use_na_sentinel=False)[0]
        X.isetitem(column, np.asarray(codes, dtype=np.float64))
    return X


def _with_column(plain: Any, X: Any, column: int) -> Any:
    """Return a copy of plain features with one column of the original features.

    Parameters
    ----------
    plain : object
        Features without text and missing values.
    X : object
        The original features.
    column : int
        Index of the column.

    Returns
    -------
    DataFrame or ndarray
        A copy; the argument is not changed.
    """
    made = private_copy(plain)
    if isinstance(X, pd.DataFrame):
        made.isetitem(column, X.iloc[:, column])
    else:
        made[:, column] = X[:, column]
    return made


def refusal_text(columns: str, words: str, refused: Sequence[tuple[str, str]]) -> str:
    """Return why solvers cannot be trained on columns, and what to do.

    Parameters
    ----------
    columns : str
        The columns, with their contents.
    words : str
        Description of the solvers' preparation.
    refused : sequence of (str, str)
        Name of each solver, and its error.

    Returns
    -------
    str
        The sentence, without the name of the dataset.
    """
    solvers = list(dict.fromkeys(solver for solver, _ in refused))
    many = len(solvers) > 1
    whose, preparation = "their" if many else "its", words.partition(" (")[0]
    return (
        f"solver{'s' if many else ''} {', '.join(solvers)} cannot be trained on {columns}, which "
        f"{whose} preparation {preparation} leaves as they are ({refused[0][1]}). "
        "Set protocol.prepare=table, which encodes texts and dates and fills gaps, handle the columns in a "
        "pipeline, or leave them out"
    )
