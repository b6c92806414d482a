"""Find out whether a solver can be trained on missing values and text, and if not, on which column."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orchestrator.datasets.dataset import MISSING, Dataset
from orchestrator.training.shared_arrays import private_copy
from orchestrator.training.split_data import Split

_MOST = 20
"""Columns whose missing values the sample of rows is extended for, and that are tried one by one."""

_ADVICE = {
    True: "fill them in by a pipeline with an imputer, or leave the column out",
    False: "encode it in a pipeline, or leave the column out",
}


@dataclass(frozen=True)
class OddColumns:
    """The columns of a dataset that are not finite numbers.

    Attributes
    ----------
    dataset : Dataset
    kinds : mapping of int to str
        What is in each of them.
    """

    dataset: Dataset
    kinds: Mapping[int, str]

    @classmethod
    def of(cls, dataset: Dataset) -> "OddColumns":
        """Return those of a dataset."""
        return cls(dataset, dataset.odd_columns)

    def rows(self) -> NDArray[np.integer]:
        """Return for each of the first columns with missing values a row that lacks it."""
        lacking = [column for column, kind in self.kinds.items() if MISSING in kind][:_MOST]
        first = (int(np.argmax(_is_missing(self.dataset.X, column))) for column in lacking)
        return np.unique(np.fromiter(first, dtype=np.intp))

    def refusal(self, error_on: Callable[[Split], str | None], sample: Split) -> str:
        """Say which column a solver cannot be trained on; empty if there is none.

        Missing values and text are to blame only if the solver can be trained on the same rows without them.

        Parameters
        ----------
        error_on : callable
            Trains the solver on a split, and returns what went wrong.
        sample : Split
            A few rows of the dataset.
        """
        if not self.kinds:
            return ""

        def error_with(X: Any) -> str | None:
            return error_on(Split(X, sample.y_train, X, sample.y_train).read_only())  # no unknown categories

        plain = _plain(sample.X_train, self.kinds)
        if error_with(sample.X_train) is None or error_with(plain) is not None:
            return ""
        for column in list(self.kinds)[:_MOST]:
            if (error := error_with(_with_column(plain, sample.X_train, column))) is not None:
                kind = self.kinds[column]
                name = f"column {self.dataset.column_name(column)}, which has {kind}"
                return f"{name} ({error}); {_ADVICE[kind == MISSING]}"
        return "its columns with missing values or text; handle them in a pipeline, or leave them out"


def _is_missing(X: Any, column: int) -> Any:
    return X.iloc[:, column].isna() if isinstance(X, pd.DataFrame) else np.isnan(X[:, column])


def _plain(X: Any, columns: Mapping[int, str]) -> Any:
    """Return features with numbers in place of text and of what is missing."""
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
    """Return plain features with one column as it is."""
    made = private_copy(plain)
    if isinstance(X, pd.DataFrame):
        made.isetitem(column, X.iloc[:, column])
    else:
        made[:, column] = X[:, column]
    return made
