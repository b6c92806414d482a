"""Failed trials of a study, grouped by kind: the first message of each kind, and the number of trials."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.study.records import Status

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = r"\d+(\.\d+)?(e[+-]?\d+)?"
"""Regular expression of a number. Messages that differ only in numbers are of one kind."""

KINDS_OF_AN_ARM = 5
"""Largest number of kinds of failure that a terminal shows for one arm."""

_LINES = 40
"""Largest number of lines about failures that a terminal shows."""

_LENGTH = 240
"""Longest quoted message, in characters."""

Kind = tuple[str, str, str]
"""Kind of failure: an arm, a status, and the first line of a message without its numbers."""


class Failure(NamedTuple):
    """One trial without a score, or several of one kind.

    Attributes
    ----------
    dataset, solver : str
        Names of the dataset and of the arm.
    status : str
        Status of the trial, a value of `Status`.
    message : str
        Recorded message; may be empty.
    number : int
        Number of such trials.
    """

    dataset: str
    solver: str
    status: str
    message: str
    number: int


def kind_of(solver: str, status: str, message: str) -> Kind:
    """Return the kind of failure of a trial without a score.

    Parameters
    ----------
    solver : str
        Name of the arm.
    status : str
        Status of the trial.
    message : str
        Recorded message. Only its first line counts, with every number replaced.
    """
    return solver, status, re.sub(NUMBERS, "#", message.split("\n", 1)[0])


class FirstOfEachKind:
    """Filter that passes the first failure of each kind, for as many kinds as a terminal shows."""

    def __init__(self) -> None:
        self._seen: set[Kind] = set()
        self._shown: Counter[str] = Counter()

    def is_new(self, solver: str, status: str, message: str) -> bool:
        """Record a failure, and return whether it is the first of its kind and should be shown.

        Parameters
        ----------
        solver : str
            Name of the arm.
        status : str
            Status of the trial.
        message : str
            Message that the failed trial recorded.
        """
        kind = kind_of(solver, status, message)
        full = self._shown[solver] >= KINDS_OF_AN_ARM or len(self._seen) >= _LINES
        if full or kind in self._seen:
            return False
        self._seen.add(kind)
        self._shown[solver] += 1
        return True


def failure_lines(trials: "pd.DataFrame") -> list[str]:
    """Return a line for each kind of failure: arm, dataset, number of trials and first message.

    Parameters
    ----------
    trials : DataFrame
        Trials with the columns dataset, solver, status, message and score. Those without a score have failed.
    """
    failed = trials[trials["score"].isna()]
    columns = (failed[name].tolist() for name in ("dataset", "solver", "status", "message"))
    return lines_of(
        Failure(dataset, solver, status, text if isinstance(text, str) else "", 1)
        for dataset, solver, status, text in zip(*columns, strict=True)
    )


def most_common_kinds(failures: Iterable[Failure]) -> list[Failure]:
    """Return the first failure of each kind with the number of trials of that kind, most frequent first.

    Parameters
    ----------
    failures : iterable of Failure
        Failures in the order in which they occurred.
    """
    counts: Counter[Kind] = Counter()
    first: dict[Kind, Failure] = {}
    for failure in failures:
        kind = kind_of(failure.solver, failure.status, failure.message)
        counts[kind] += failure.number
        first.setdefault(kind, failure)
    return [first[kind]._replace(number=number) for kind, number in counts.most_common()]


def lines_of(failures: Iterable[Failure]) -> list[str]:
    """Return a line for each kind of failure: arm, dataset, number of trials and first message.

    Parameters
    ----------
    failures : iterable of Failure
        Failures in the order in which they occurred.
    """
    failures = [*failures]
    datasets: dict[Kind, set[str]] = {}
    for failure in failures:
        datasets.setdefault(kind_of(*failure[1:4]), set()).add(failure.dataset)
    of_arm: dict[str, list[Failure]] = {}
    for failure in most_common_kinds(failures):
        if others := len(datasets[kind_of(*failure[1:4])]) - 1:
            where = f"{failure.dataset} and {others} more dataset{'s' if others > 1 else ''}"
            failure = failure._replace(dataset=where)
        of_arm.setdefault(failure.solver, []).append(failure)
    lines = list(_lines(of_arm))
    if len(lines) > _LINES:
        lines[_LINES:] = [f"and {len(lines) - _LINES:,} more lines; the report lists every kind"]
    return lines


def _lines(of_arm: dict[str, list[Failure]]) -> Iterator[str]:
    for solver, kinds in of_arm.items():
        for dataset, _, status, message, number in kinds[:KINDS_OF_AN_ARM]:
            yield f"{number:,} × {solver} {described(dataset, status, message)}"
        if (more := len(kinds) - KINDS_OF_AN_ARM) > 0:
            yield f"and {more:,} more kinds of {solver}; the report lists them"


def described(dataset: str, status: str, message: str) -> str:
    """Describe a failed training in one line: its dataset, and the reason.

    Parameters
    ----------
    dataset : str
        Name of the dataset.
    status : str
        Status of the trial. It is named unless it is "error".
    message : str
        Recorded message, which is shortened to 240 characters.
    """
    reason = textwrap.shorten(message, _LENGTH, placeholder=" …") or "it left no message"
    return f"on {dataset}: {reason}" if status == Status.ERROR else f"on {dataset}: {status}: {reason}"


def arms_without_success(arms: Iterable[str], trials: "pd.DataFrame") -> list[str]:
    """Return the arms that have no trial with status `ok`.

    Parameters
    ----------
    arms : iterable of str
        Names of arms.
    trials : DataFrame
        Trials with the columns solver and status.
    """
    succeeded = set(trials.loc[trials["status"] == Status.OK, "solver"].unique())
    return [arm for arm in arms if arm not in succeeded]
