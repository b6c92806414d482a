"""Rows of trials, kept by columns, because they are sent and stored by the hundred.

All values of rows are converted to numbers of 64 bits and texts of bounded length, which every host can read.
A value that is storable already stays unchanged.
"""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from orchestrator.study.text import TEXT_BYTES, storable_text

Columns = dict[str, list[Any]]
"""Rows by columns: lists with one value for each row."""


@dataclass(frozen=True)
class Records:
    """Rows of one batch.

    Attributes
    ----------
    constants : dict
        Columns that have the same value in every row.
    columns : dict of str to list
        All other columns, with None where a row has no value.
    """

    constants: dict[str, Any]
    columns: dict[str, list[Any]]

    @classmethod
    def of(cls, constants: dict[str, Any], rows: Sequence[Mapping[str, Any]]) -> "Records":
        """Convert rows to columns that can be stored.

        Parameters
        ----------
        constants : dict
            Columns that have the same value in every row.
        rows : sequence of mapping
            Other columns of each row. A column that a row lacks becomes None.
        """
        names = dict.fromkeys(name for row in rows for name in row)
        return cls.joined(constants, [{name: [row.get(name) for row in rows] for name in names}])

    @classmethod
    def joined(cls, constants: dict[str, Any], parts: Sequence[Columns]) -> "Records":
        """Concatenate parts to columns that can be stored.

        Parameters of candidates stay unchanged, because they come from the configuration. Lists of
        predictions stay unchanged, too.

        Parameters
        ----------
        constants : dict
            Columns that have the same value in every row.
        parts : sequence of dict of str to list
            Rows by columns. Rows of a part that lacks a column get None.
        """
        columns: Columns = {name: [] for part in parts for name in part}
        for part in parts:
            lacking = [None] * number_of_rows(part)
            for name, values in columns.items():
                values += part.get(name, lacking)
        for name, values in columns.items():
            if not name.startswith("param_") and name not in PREDICTION_COLUMNS:
                columns[name] = storable_values(values)
        return cls(constants, columns)

    def __len__(self) -> int:
        return number_of_rows(self.columns)

    def outcomes(self) -> Iterator[tuple[str, float | None]]:
        """Yield the status and the score of each row; the score of a failed trial is None."""
        return zip(self.columns["status"], self.columns["score"], strict=True)

    def row(self, index: int) -> dict[str, Any]:
        """Return one row as a mapping.

        Parameters
        ----------
        index : int
            Index of the row, from 0.
        """
        return self.constants | {name: values[index] for name, values in self.columns.items()}


def merged(batches: Iterable[Records]) -> Iterator[Records]:
    """Yield rows of batches, after joining consecutive batches with equal constants and columns.

    Parameters
    ----------
    batches : iterable of Records
        Rows of each batch.
    """
    for _, group in itertools.groupby(batches, lambda records: (records.constants, records.columns.keys())):
        first, *others = group
        columns = {
            name: [*values, *itertools.chain.from_iterable(other.columns[name] for other in others)]
            for name, values in first.columns.items()
        }
        yield Records(first.constants, columns) if others else first


def number_of_rows(columns: Columns) -> int:
    """Return the number of rows.

    Parameters
    ----------
    columns : dict of str to list
        Rows by columns, all of one length.
    """
    return len(next(iter(columns.values()), ()))


class Status(StrEnum):
    """Outcome of a training."""

    OK = "ok"
    TIMEOUT = "timeout"
    DIVERGED = "diverged"
    ERROR = "error"
    WORKER_LOST = "worker_lost"


FINISHED = (Status.OK, Status.TIMEOUT)
"""Statuses of trainings that can have a score. A training stopped by its time limit may have one."""


class StoredTrial(NamedTuple):
    """Part of a stored trial that a resumed run needs.

    Attributes
    ----------
    status : str
        Value of `Status`.
    score : float
        Score, or NaN without one.
    """

    status: str
    score: float

    @property
    def scored(self) -> bool:
        """Whether the trial has a score. A training that was stopped may have one."""
        return not math.isnan(self.score)


PREDICTION_COLUMNS = ("test_row", "true_class", "predicted_class")
"""Columns of a refit if the study keeps predictions, each a list with one integer for each test row.

`test_row` holds indices of rows in the dataset. The other two hold indices into the sorted labels.
"""


PARTS_OF_FIT = ("reduction_seconds", "certificate_seconds")
"""Columns with parts of `fit_seconds` besides the training itself. The trainings of a path share them."""


def final_trials(
    stored: dict[str, StoredTrial], retry_failed: bool, incomplete: Collection[str] = ()
) -> dict[str, StoredTrial]:
    """Return the stored trials that a run does not train again.

    Parameters
    ----------
    stored : dict of str to StoredTrial
        Stored trials by key.
    retry_failed : bool
        Whether trials without a score are trained again.
    incomplete : collection of str
        Keys of trials that are trained again although they have a score. Default: none.
    """
    if not retry_failed and not incomplete:
        return stored
    return {
        key: trial
        for key, trial in stored.items()
        if key not in incomplete and (trial.scored or not retry_failed)
    }


# -- values of rows --------------------------------------------------------------------------------


SMALLEST, LARGEST = -(2**63), 2**63 - 1
"""Range of a column of integers."""


_UNCHANGED = {NoneType, bool, float, datetime}
"""Types whose values are stored unchanged."""


def storable_value(value: Any) -> Any:
    """Convert a value to None, a boolean, an integer of 64 bits, a float, a time or a text.

    Parameters
    ----------
    value : object
        Any value. An integer of more than 64 bits becomes the nearest float, or None if there is none.
    """
    if type(value) in _UNCHANGED or isinstance(value, datetime):
        return value
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        whole = int.__int__(value) if isinstance(value, int) else int(value)
        return whole if SMALLEST <= whole <= LARGEST else _as_float(whole)
    if isinstance(value, float):
        return float.__float__(value)
    return float(value) if isinstance(value, np.floating) else storable_text(value)


def _as_float(number: int) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


def storable_values(values: Sequence[Any]) -> list[Any]:
    """Convert values as `storable_value` does; the fast way is taken if none of them needs a conversion.

    Parameters
    ----------
    values : sequence
        Values of one column.
    """
    kinds = set(map(type, values))
    odd = kinds - _UNCHANGED
    if (
        not odd
        or (odd == {str} and all(map(_is_short_ascii, set(values) if kinds <= {NoneType, str} else values)))
        or (odd == {int} and datetime not in kinds and _are_small(values))
    ):
        return list(values)
    return [storable_value(value) for value in values]


def _are_small(values: Sequence[Any]) -> bool:
    """Return whether all integers fit 64 bits, which is much faster than checking each.

    Parameters
    ----------
    values : sequence of int or None
        Values, at least one of which is an integer.
    """
    numbers = [value for value in values if value is not None]
    return min(numbers) >= SMALLEST and max(numbers) <= LARGEST


def _is_short_ascii(value: Any) -> bool:
    return value is None or (type(value) is str and len(value) <= TEXT_BYTES and value.isascii())
