"""Count the trials of a run by dataset × arm and show them on the caller's display."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from orchestrator.study.trials import Pair

SecondsLeft = Callable[[Pair, int], float]
"""Function that returns the expected seconds for further trials of a dataset × arm; NaN if it is unknown."""


@dataclass
class TrialCounts:
    """Numbers of trainings of one dataset × arm.

    Attributes
    ----------
    planned : int
        Number of trainings to run. It is exact for a grid and an upper bound for other searches.
    done : int
        Finished trainings, including those of earlier runs.
    stored : int
        Trainings that an earlier run finished.
    failed : int
        Finished trainings without a score.
    """

    planned: int
    done: int = 0
    stored: int = 0
    failed: int = 0

    @property
    def left(self) -> int:
        """Number of trainings still to run."""
        return max(0, self.planned - self.done)


class Display(Protocol):
    """Interface of a display that shows the progress of a run.

    Attributes
    ----------
    period : float
        Seconds between two calls of `show`.
    """

    period: float

    def start(self) -> None:
        """Start showing progress."""

    def stop(self) -> None:
        """Stop showing progress; the last state remains visible."""

    def show(self, progress: "Progress", seconds_left: SecondsLeft) -> None:
        """Show the state of a run.

        Parameters
        ----------
        progress : Progress
            The counts of the run.
        seconds_left : SecondsLeft
            Function that estimates the remaining time.
        """

    def say(self, text: str) -> None:
        """Print a line of the command's regular output.

        Parameters
        ----------
        text : str
            The line, without a line break at its end.
        """

    def note(self, text: str) -> None:
        """Print a notice about an event.

        Parameters
        ----------
        text : str
            One or more lines.
        """


class Progress:
    """Count finished trials and show them; also a context manager around the run.

    Parameters
    ----------
    planned : mapping of Pair to int
        Largest number of trials of each dataset × arm.
    display : Display
        The display that shows the counts.
    compiles : collection of str, default ()
        Arms whose first batch compiles before its first training.

    Attributes
    ----------
    counts : dict of Pair to TrialCounts
        Numbers of trials by dataset × arm.
    """

    def __init__(self, planned: Mapping[Pair, int], display: Display, compiles: Collection[str] = ()):
        self.counts = {pair: TrialCounts(number) for pair, number in planned.items()}
        self._display = display
        self._shown_at = float("-inf")
        self._to_compile = set(compiles)
        self._compiling: dict[str, None] = {}

    def start_again(self, planned: Mapping[Pair, int]) -> None:
        """Reset the counts, because stored trials vanished.

        Parameters
        ----------
        planned : mapping of Pair to int
            Largest number of trials of each dataset × arm.
        """
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
        """Record that a batch of a dataset × arm was submitted to a worker.

        Parameters
        ----------
        pair : Pair
            Names of the dataset and the arm.
        """
        if pair[1] in self._to_compile:
            self._compiling[pair[1]] = None

    def stored(self, pair: Pair, scored: bool, is_planned: bool = True) -> None:
        """Count a trial that an earlier run finished.

        Parameters
        ----------
        pair : Pair
            Names of the dataset and the arm.
        scored : bool
            Whether the trial has a score.
        is_planned : bool, default True
            Whether the planned number contains the trial. If not, it grows.
        """
        self.counts[pair].stored += 1
        self.counts[pair].planned += not is_planned
        self._count(pair, scored)

    def finished(self, pair: Pair, scored: bool) -> None:
        """Count a trial of this run.

        Parameters
        ----------
        pair : Pair
            Names of the dataset and the arm.
        scored : bool
            Whether the trial has a score.
        """
        self._to_compile.discard(pair[1])
        self._compiling.pop(pair[1], None)
        self._count(pair, scored)

    def _count(self, pair: Pair, scored: bool) -> None:
        """Add a finished trial to the counts.

        Parameters
        ----------
        pair : Pair
            Names of the dataset and the arm.
        scored : bool
            Whether the trial has a score.
        """
        counts = self.counts[pair]
        counts.done += 1
        counts.failed += not scored

    def complete(self, pair: Pair) -> None:
        """Lower the planned number of a dataset × arm whose search has ended to the number that it used.

        Parameters
        ----------
        pair : Pair
            Names of the dataset and the arm.
        """
        counts = self.counts[pair]
        counts.planned = counts.done

    def note(self, text: str) -> None:
        """Print a notice about an event.

        Parameters
        ----------
        text : str
            One or more lines.
        """
        self._display.note(text)

    def tick(self, seconds_left: SecondsLeft) -> None:
        """Show the state if the display's period has passed.

        Parameters
        ----------
        seconds_left : SecondsLeft
            Function that estimates the remaining time.
        """
        if time.monotonic() - self._shown_at >= self._display.period:
            self.show(seconds_left)

    def show(self, seconds_left: SecondsLeft) -> None:
        """Show the state now.

        Parameters
        ----------
        seconds_left : SecondsLeft
            Function that estimates the remaining time.
        """
        self._shown_at = time.monotonic()
        self._display.show(self, seconds_left)
