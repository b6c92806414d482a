"""How far a run is: counts by dataset × arm, shown by whatever display the caller has."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from orchestrator.study.records import FINISHED
from orchestrator.study.trials import Pair

SecondsLeft = Callable[[Pair, int], float]
"""Expected seconds until so many further trials of a dataset × arm are done."""


@dataclass
class TrialCounts:
    """Trainings of one dataset × arm; `planned` is an upper bound unless the search is a grid."""

    planned: int
    done: int = 0
    stored: int = 0
    failed: int = 0

    @property
    def left(self) -> int:
        """Trainings still to come."""
        return max(0, self.planned - self.done)


class Display(Protocol):
    """Where a run shows how far it is.

    Attributes
    ----------
    period : float
        Seconds between two calls of `show`.
    """

    period: float

    def start(self) -> None:
        """Begin to show progress."""

    def stop(self) -> None:
        """Leave what was shown last."""

    def show(self, progress: "Progress", seconds_left: SecondsLeft) -> None:
        """Show the state of a run."""

    def say(self, text: str) -> None:
        """Print a line that is part of the command's output."""

    def note(self, text: str) -> None:
        """Print something that happened."""


class Progress:
    """Count finished trials and show them; also a context manager around the run.

    Parameters
    ----------
    planned : mapping of (dataset, arm) to int
    display : Display
    compiles : collection of str
        Arms whose first batch compiles, before any of its trainings.

    Attributes
    ----------
    counts : dict of (dataset, arm) to TrialCounts
    """

    def __init__(self, planned: Mapping[Pair, int], display: Display, compiles: Collection[str] = ()):
        self.counts = {pair: TrialCounts(number) for pair, number in planned.items()}
        self._display = display
        self._shown_at = float("-inf")
        self._to_compile = set(compiles)
        self._compiling: dict[str, None] = {}

    def start_again(self, planned: Mapping[Pair, int]) -> None:
        """Count from the start, because stored trials vanished."""
        self.counts = {pair: TrialCounts(number) for pair, number in planned.items()}

    def __enter__(self) -> "Progress":
        self._display.start()
        self._shown_at = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.stop()

    @property
    def compiling(self) -> list[str]:
        """The arms that are being compiled."""
        return [*self._compiling]

    def started(self, pair: Pair) -> None:
        """Tell that a batch of a dataset × arm was given to a worker."""
        if pair[1] in self._to_compile:
            self._compiling[pair[1]] = None

    def stored(self, pair: Pair, status: str) -> None:
        """Count a trial that an earlier run finished."""
        self.counts[pair].stored += 1
        self._count(pair, status)

    def finished(self, pair: Pair, status: str) -> None:
        """Count a trial of this run."""
        self._to_compile.discard(pair[1])
        self._compiling.pop(pair[1], None)
        self._count(pair, status)

    def _count(self, pair: Pair, status: str) -> None:
        counts = self.counts[pair]
        counts.done += 1
        counts.failed += status not in FINISHED

    def complete(self, pair: Pair) -> None:
        """Settle a dataset × arm whose search needed fewer trials than planned."""
        counts = self.counts[pair]
        counts.planned = counts.done

    def note(self, text: str) -> None:
        """Print something that happened."""
        self._display.note(text)

    def tick(self, seconds_left: SecondsLeft) -> None:
        """Show the state if enough time has passed."""
        if time.monotonic() - self._shown_at >= self._display.period:
            self.show(seconds_left)

    def show(self, seconds_left: SecondsLeft) -> None:
        """Show the state now."""
        self._shown_at = time.monotonic()
        self._display.show(self, seconds_left)
