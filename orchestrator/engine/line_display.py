"""Show the progress of a run as plain lines on standard output."""

from contextlib import suppress

from orchestrator.engine.progress import Progress, SecondsLeft
from orchestrator.engine.time_left import first_names, time_left
from orchestrator.study.text import printable, printable_lines
from orchestrator.study.trials import Pair


class LineDisplay:
    """Print one line for each finished dataset × arm and one for the whole run.

    Attributes
    ----------
    period : float
        Seconds between two calls of `show`.
    """

    period = 10.0

    def __init__(self) -> None:
        self._announced: set[Pair] = set()
        self._last = ""

    def start(self) -> None:
        """Start showing progress."""

    def stop(self) -> None:
        """Stop showing progress; the printed lines remain."""

    def show(self, progress: Progress, seconds_left: SecondsLeft) -> None:
        """Print the pairs that have finished since the last call, and a line for the whole run.

        Parameters
        ----------
        progress : Progress
            The counts of the run.
        seconds_left : SecondsLeft
            Function that estimates the remaining time.
        """
        for pair, tally in progress.counts.items():
            if tally.left == 0 and pair not in self._announced:
                self._announced.add(pair)
                failed = f", {tally.failed} failed" if tally.failed else ""
                self.say(f"{pair[0]} × {pair[1]}: {tally.done:,} trials done{failed}")
        line = total_line(progress, seconds_left)
        if line != self._last or any(tally.left for tally in progress.counts.values()):
            self.say(line)
        self._last = line

    def say(self, text: str) -> None:
        """Print a line of the run's regular output.

        Parameters
        ----------
        text : str
            The line, without a line break at its end.
        """
        _print(printable(text))

    def note(self, text: str) -> None:
        """Print a notice about an event.

        Parameters
        ----------
        text : str
            One or more lines.
        """
        _print(printable_lines(text))


def _print(text: str) -> None:
    """Print text, and ignore that standard output is closed.

    Parameters
    ----------
    text : str
        One or more printable lines.
    """
    with suppress(OSError, ValueError):  # a run continues when its output is closed
        print(text, flush=True)


def total_line(progress: Progress, seconds_left: SecondsLeft) -> str:
    """Return a line with the counts and the remaining time of a run.

    Parameters
    ----------
    progress : Progress
        The counts of the run.
    seconds_left : SecondsLeft
        Function that estimates the remaining time.

    Returns
    -------
    str
        The line, without a line break at its end.
    """
    tallies = progress.counts
    done = sum(tally.done for tally in tallies.values())
    planned = sum(tally.planned for tally in tallies.values())
    failed = sum(tally.failed for tally in tallies.values())
    left = {pair: seconds_left(pair, tally.left) for pair, tally in tallies.items() if tally.left}
    ending = time_left(left) if done < planned else "done"
    return f"{done:,} of {planned:,} trials, {failed:,} failed, {ending}{_what_compiles(progress)}"


def _what_compiles(progress: Progress) -> str:
    """Return the end of a line that names the compiling arms.

    Parameters
    ----------
    progress : Progress
        The counts of the run.

    Returns
    -------
    str
        An empty string if no arm is compiling.
    """
    arms = progress.compiling
    return f"; compiling {first_names(arms)} …" if arms else ""
