"""What went wrong in a study, by kind: the first message of each kind, and how often it came."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.study.records import Status

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = r"\d+(\.\d+)?(e[+-]?\d+)?"
"""What messages of one kind may differ in."""

KINDS_OF_AN_ARM = 5
"""How many kinds of failure of one arm a terminal shows."""

_LINES = 40
_LENGTH = 240

Kind = tuple[str, str, str]
"""An arm, a status, and a message's first line without its numbers."""


class Failure(NamedTuple):
    """A trial without a score, or several of one kind."""

    dataset: str
    solver: str
    status: str
    message: str
    number: int


def kind_of(solver: str, status: str, message: str) -> Kind:
    """Return what kind of failure a trial without a score is."""
    return solver, status, re.sub(NUMBERS, "#", message.split("\n", 1)[0])


class FirstOfEachKind:
    """Tell the first failure of each kind from those that follow, for as many kinds as are shown."""

    def __init__(self) -> None:
        self._seen: set[Kind] = set()
        self._shown: Counter[str] = Counter()

    def is_new(self, solver: str, status: str, message: str) -> bool:
        """Whether a failure is the first of its kind, and to be shown."""
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
        With the columns dataset, solver, status, message and score; those without a score have failed.
    """
    failed = trials[trials["score"].isna()]
    columns = (failed[name].tolist() for name in ("dataset", "solver", "status", "message"))
    return lines_of(
        Failure(dataset, solver, status, text if isinstance(text, str) else "", 1)
        for dataset, solver, status, text in zip(*columns, strict=True)
    )


def most_common_kinds(failures: Iterable[Failure]) -> list[Failure]:
    """Return the first failure of each kind, with the number of all of its kind, most frequent first."""
    counts: Counter[Kind] = Counter()
    first: dict[Kind, Failure] = {}
    for failure in failures:
        kind = kind_of(failure.solver, failure.status, failure.message)
        counts[kind] += failure.number
        first.setdefault(kind, failure)
    return [first[kind]._replace(number=number) for kind, number in counts.most_common()]


def lines_of(failures: Iterable[Failure]) -> list[str]:
    """Return a line for each kind of failure: arm, dataset, number of trials and first message."""
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
    """Say on what dataset and why a training failed, in one line of bounded length."""
    reason = textwrap.shorten(message, _LENGTH, placeholder=" …") or "it left no message"
    return f"on {dataset}: {reason}" if status == Status.ERROR else f"on {dataset}: {status}: {reason}"


def arms_without_success(arms: Iterable[str], trials: "pd.DataFrame") -> list[str]:
    """Return the arms none of whose trials is `ok`."""
    succeeded = set(trials.loc[trials["status"] == Status.OK, "solver"].unique())
    return [arm for arm in arms if arm not in succeeded]
