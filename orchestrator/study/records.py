"""The rows that trials leave, held by columns: they travel and are stored by the hundred."""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from orchestrator.study.storable import storable_values

Columns = dict[str, list[Any]]
"""Some rows by columns: lists with a value for each row."""


@dataclass(frozen=True)
class Records:
    """Rows of one batch.

    Attributes
    ----------
    constants : dict
        Columns with the same value in every row.
    columns : dict of str to list
        The others; None where a row has no value.
    """

    constants: dict[str, Any]
    columns: dict[str, list[Any]]

    @classmethod
    def of(cls, constants: dict[str, Any], rows: Sequence[Mapping[str, Any]]) -> "Records":
        """Turn rows, which may lack columns, into columns that can be stored."""
        names = dict.fromkeys(name for row in rows for name in row)
        return cls.joined(constants, [{name: [row.get(name) for row in rows] for name in names}])

    @classmethod
    def joined(cls, constants: dict[str, Any], parts: Sequence[Columns]) -> "Records":
        """Turn rows by columns, of which some parts may lack some, into columns that can be stored.

        Parameters stay as they are, for they come from the configuration, and so do lists of predictions.
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
        """Yield status and score of each row; the score of a failed trial is None."""
        return zip(self.columns["status"], self.columns["score"], strict=True)

    def row(self, index: int) -> dict[str, Any]:
        """Return one row as a mapping."""
        return self.constants | {name: values[index] for name, values in self.columns.items()}


def merged(batches: Iterable[Records]) -> Iterator[Records]:
    """Yield the rows of batches, those of batches in a row whose constants are the same as one."""
    for _, group in itertools.groupby(batches, lambda records: (records.constants, records.columns.keys())):
        first, *others = group
        columns = {
            name: [*values, *itertools.chain.from_iterable(other.columns[name] for other in others)]
            for name, values in first.columns.items()
        }
        yield Records(first.constants, columns) if others else first


def number_of_rows(columns: Columns) -> int:
    """Return how many rows columns hold."""
    return len(next(iter(columns.values()), ()))


class Status(StrEnum):
    """How a training ended."""

    OK = "ok"
    TIMEOUT = "timeout"
    DIVERGED = "diverged"
    ERROR = "error"
    WORKER_LOST = "worker_lost"


FINISHED = (Status.OK, Status.TIMEOUT)
"""A training with a score: one that was stopped by its time limit may have one, too."""


class StoredTrial(NamedTuple):
    """What a resumed run has to know about a finished trial."""

    status: str
    score: float

    @property
    def scored(self) -> bool:
        """Whether it has a score, be it of a training that was stopped."""
        return not math.isnan(self.score)


PREDICTION_COLUMNS = ("test_row", "true_class", "predicted_class")
"""Of a refit, if the study keeps them: lists of the places of its test rows in the dataset, of their classes
and of those predicted, both as places among the dataset's sorted labels."""


def final_trials(
    stored: dict[str, StoredTrial], retry_failed: bool, incomplete: Collection[str] = ()
) -> dict[str, StoredTrial]:
    """Return the stored trials that a run does not train again.

    Parameters
    ----------
    stored : dict of str to StoredTrial
    retry_failed : bool
        Whether those without a score are trained again.
    incomplete : collection of str
        The keys of trials with a score that are trained again, too.
    """
    if not retry_failed and not incomplete:
        return stored
    return {
        key: trial
        for key, trial in stored.items()
        if key not in incomplete and (trial.scored or not retry_failed)
    }
