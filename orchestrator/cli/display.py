"""Displays of the progress of a run: live lines on a terminal, plain lines for any other output."""

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from orchestrator.cli.terminal import as_text, say
from orchestrator.engine.line_display import LineDisplay, total_line
from orchestrator.engine.progress import Display, Progress, SecondsLeft
from orchestrator.study.text import format_seconds, printable_lines
from orchestrator.study.trials import Pair

_VISIBLE_LINES = 24
"""Largest number of bars on the screen."""


def display(console: Console) -> Display:
    """Return the display of progress for a console.

    Parameters
    ----------
    console : Console
        Terminal, file or pipe for the output.
    """
    return LiveDisplay(console) if console.is_terminal else ConsoleDisplay(console)


class ConsoleDisplay(LineDisplay):
    """Print progress as plain lines on a console.

    Parameters
    ----------
    console : Console
        Terminal, file or pipe for the output.
    """

    def __init__(self, console: Console):
        super().__init__()
        self._console = console

    def say(self, text: str) -> None:
        """Print a line that is part of the output of the command.

        Parameters
        ----------
        text : str
            Line to print, without a line break at its end.
        """
        say(self._console, text, wrap=False)

    def note(self, text: str) -> None:
        """Print an event of the run.

        Parameters
        ----------
        text : str
            One or more lines.
        """
        self._console.print(Text(printable_lines(text), style="yellow"))


class LiveDisplay(ConsoleDisplay):
    """Show a bar for each dataset × arm and update it.

    Parameters
    ----------
    console : Console
        Terminal for the output.
    """

    period = 0.25

    def __init__(self, console: Console):
        super().__init__(console)
        self._live = Live(console=console, auto_refresh=False, transient=False)

    def start(self) -> None:
        """Start to show progress."""
        self._live.start()

    def stop(self) -> None:
        """Stop updates. The last bars stay on the screen."""
        self._live.stop()

    def show(self, progress: Progress, seconds_left: SecondsLeft) -> None:
        """Draw the bars.

        Parameters
        ----------
        progress : Progress
            Numbers of trials by dataset × arm.
        seconds_left : callable
            Estimates the remaining time of a dataset × arm from its number of remaining trials, in seconds.
        """
        table = Table.grid(padding=(0, 2))
        for justify in ("left", "left", "left", "right", "right", "right"):
            table.add_column(justify=justify, overflow="fold")
        for pair in _active_first(progress)[:_VISIBLE_LINES]:
            tally = progress.counts[pair]
            left = format_seconds(seconds_left(pair, tally.left)) if tally.left else "done"
            failed = as_text(f"{tally.failed} failed" if tally.failed else "", "red")
            bar = ProgressBar(total=max(1, tally.planned), completed=tally.done, width=24)
            names = (as_text(name) for name in pair)
            table.add_row(*names, bar, f"{tally.done:,}/{tally.planned:,}", failed, left)
        self._live.update(Group(table, as_text(total_line(progress, seconds_left), "bold")), refresh=True)


def _active_first(progress: Progress) -> list[Pair]:
    """Return every dataset × arm: first those in training, then finished ones, then waiting ones.

    Parameters
    ----------
    progress : Progress
        Numbers of trials by dataset × arm.
    """
    tallies = progress.counts.items()
    active = [pair for pair, tally in tallies if 0 < tally.done < tally.planned]
    finished = [pair for pair, tally in tallies if tally.left == 0]
    waiting = [pair for pair, tally in tallies if tally.done == 0 and tally.left]
    return active + finished + waiting
