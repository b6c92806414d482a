"""Find the column on which a solver cannot be trained because of missing values or text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orchestrator.datasets.dataset import MISSING, Dataset
from orchestrator.training.split_data import Split, private_copy

_MAX_COLUMNS = 20
"""Largest number of columns that are tried one by one, and for which the sample gets a row with a missing
value."""

_ADVICE = {
    True: "impute them in a pipeline, or remove the column",
    False: "encode it in a pipeline, or remove the column",
}
"""Remedies for a column, by whether it lacks values (True) or holds text (False)."""


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

    def refusal(self, error_on: Callable[[Split], str | None], sample: Split) -> str:
        """Return which column a solver cannot be trained on.

        Missing values and text are the cause only if the solver can be trained on the same rows without them.

        Parameters
        ----------
        error_on : callable
            Function that trains the solver on a split and returns a description of its error, or None.
        sample : Split
            A few rows of the dataset.

        Returns
        -------
        str
            Name of the column, the error and the remedy; an empty string if there is no such column.
        """
        if not self.kinds:
            return ""

        def error_with(X: Any) -> str | None:
            return error_on(
                Split(X, sample.y_train, X, sample.y_train).read_only()
            )  # testing on the same rows, so no category is unknown

        plain = _plain(sample.X_train, self.kinds)
        if error_with(sample.X_train) is None or error_with(plain) is not None:
            return ""
        for column in list(self.kinds)[:_MAX_COLUMNS]:
            if (error := error_with(_with_column(plain, sample.X_train, column))) is not None:
                kind = self.kinds[column]
                name = f"column {self.dataset.column_name(column)}, which has {kind}"
                return f"{name} ({error}); {_ADVICE[kind == MISSING]}"
        return "its columns with missing values or text; handle them in a pipeline, or remove the columns"


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
