"""Show the progress of a run as plain lines on standard output."""

from contextlib import suppress

from orchestrator.engine.progress import Progress, SecondsLeft
from orchestrator.study.text import format_seconds, printable, printable_lines
from orchestrator.study.trials import Pair

_NAMED = 3
"""Number of compiling arms that a line names."""


class LineDisplay:
    """Print lines, one for each dataset × arm that is done and one for the whole.

    Attributes
    ----------
    period : float
        See `Display`.
    """

    period = 10.0

    def __init__(self) -> None:
        self._announced: set[Pair] = set()

    def start(self) -> None:
        """Begin to show progress."""

    def stop(self) -> None:
        """Leave what was shown last."""

    def show(self, progress: Progress, seconds_left: SecondsLeft) -> None:
        """Print what is new."""
        for pair, tally in progress.counts.items():
            if tally.left == 0 and pair not in self._announced:
                self._announced.add(pair)
                failed = f", {tally.failed} failed" if tally.failed else ""
                self.say(f"{pair[0]} × {pair[1]}: {tally.done:,} trials done{failed}")
        self.say(total_line(progress, seconds_left))

    def say(self, text: str) -> None:
        """Print a line that is part of the run's output."""
        _print(printable(text))

    def note(self, text: str) -> None:
        """Print something that happened."""
        _print(printable_lines(text))


def _print(text: str) -> None:
    with suppress(OSError, ValueError):  # a run goes on without its output if that is closed
        print(text, flush=True)


def total_line(progress: Progress, seconds_left: SecondsLeft) -> str:
    """Sum up a run in a line."""
    tallies = progress.counts
    done = sum(tally.done for tally in tallies.values())
    planned = sum(tally.planned for tally in tallies.values())
    failed = sum(tally.failed for tally in tallies.values())
    left = sum(seconds_left(pair, tally.left) for pair, tally in tallies.items() if tally.left)
    ending = f"about {format_seconds(left)} left" if done < planned else "done"
    return f"{done:,} of {planned:,} trials, {failed:,} failed, {ending}{_what_compiles(progress)}"


def _what_compiles(progress: Progress) -> str:
    arms = progress.compiling
    more = f" and {len(arms) - _NAMED:,} more" if len(arms) > _NAMED else ""
    return f"; compiling {', '.join(arms[:_NAMED])}{more} …" if arms else ""
