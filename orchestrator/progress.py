"""How a run shows that it advances: live lines on a terminal, plain lines anywhere else."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from orchestrator.plain_text import printable_lines
from orchestrator.terminal import as_text, say

Pair = tuple[str, str]
SecondsLeft = Callable[[Pair, int], float]
"""Expected wall seconds of so many more trainings of one dataset × arm."""

PLAIN_SECONDS = 10.0
"""How often plain lines tell how far the study is."""

LIVE_SECONDS = 0.25
_VISIBLE_LINES = 24
_NAMED = 3


@dataclass
class Tally:
    """Trainings of one dataset × arm; `planned` is an upper bound unless the search is a grid."""

    planned: int
    done: int = 0
    stored: int = 0
    failed: int = 0

    @property
    def left(self) -> int:
        """Trainings still to come."""
        return max(0, self.planned - self.done)


class Progress:
    """Count finished trials and show them; also a context manager around the run.

    Parameters
    ----------
    planned : mapping of (dataset, arm) to int
    console : rich.console.Console
    compiles : collection of str
        Arms whose first batch compiles, before any of its trainings.
    """

    def __init__(self, planned: Mapping[Pair, int], console: Console, compiles: Collection[str] = ()):
        self.tallies = {pair: Tally(number) for pair, number in planned.items()}
        self._console = console
        self._shown_at = float("-inf")
        self._live = (
            Live(console=console, auto_refresh=False, transient=False) if console.is_terminal else None
        )
        self._period = LIVE_SECONDS if self._live else PLAIN_SECONDS
        self._announced: set[Pair] = set()
        self._to_compile = set(compiles)
        self._compiling: dict[str, None] = {}

    def __enter__(self) -> "Progress":
        if self._live:
            self._live.start()
        self._shown_at = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def started(self, pair: Pair) -> None:
        """Tell that a batch of a dataset × arm was given to a worker."""
        if pair[1] in self._to_compile:
            self._compiling[pair[1]] = None

    def stored(self, pair: Pair, status: str) -> None:
        """Count a trial that an earlier run finished."""
        self.tallies[pair].stored += 1
        self._count(pair, status)

    def finished(self, pair: Pair, status: str) -> None:
        """Count a trial of this run."""
        self._to_compile.discard(pair[1])
        self._compiling.pop(pair[1], None)
        self._count(pair, status)

    def _count(self, pair: Pair, status: str) -> None:
        tally = self.tallies[pair]
        tally.done += 1
        tally.failed += status not in ("ok", "timeout")

    def complete(self, pair: Pair) -> None:
        """Settle a dataset × arm whose search needed fewer trials than planned."""
        tally = self.tallies[pair]
        tally.planned = tally.done

    def note(self, text: str) -> None:
        """Say something that happened."""
        (self._live.console if self._live else self._console).print(
            Text(printable_lines(text), style="yellow")
        )

    def tick(self, seconds_left: SecondsLeft) -> None:
        """Show the state if enough time has passed."""
        if time.monotonic() - self._shown_at < self._period:
            return
        self.show(seconds_left)

    def show(self, seconds_left: SecondsLeft) -> None:
        """Show the state now."""
        self._shown_at = time.monotonic()
        if self._live:
            self._live.update(self._table(seconds_left), refresh=True)
        else:
            self._print_lines(seconds_left)

    def _table(self, seconds_left: SecondsLeft) -> Group:
        table = Table.grid(padding=(0, 2))
        for justify in ("left", "left", "left", "right", "right", "right"):
            table.add_column(justify=justify, overflow="fold")
        active = [pair for pair, tally in self.tallies.items() if 0 < tally.done < tally.planned]
        finished = [pair for pair, tally in self.tallies.items() if tally.left == 0]
        waiting = [pair for pair, tally in self.tallies.items() if tally.done == 0 and tally.left]
        for pair in (active + finished + waiting)[:_VISIBLE_LINES]:
            tally = self.tallies[pair]
            left = format_seconds(seconds_left(pair, tally.left)) if tally.left else "done"
            failed = as_text(f"{tally.failed} failed" if tally.failed else "", "red")
            bar = ProgressBar(total=max(1, tally.planned), completed=tally.done, width=24)
            names = (as_text(name) for name in pair)
            table.add_row(*names, bar, f"{tally.done:,}/{tally.planned:,}", failed, left)
        return Group(table, as_text(self._total(seconds_left), "bold"))

    def _print_lines(self, seconds_left: SecondsLeft) -> None:
        for pair, tally in self.tallies.items():
            if tally.left == 0 and pair not in self._announced:
                self._announced.add(pair)
                failed = f", {tally.failed} failed" if tally.failed else ""
                say(self._console, f"{pair[0]} × {pair[1]}: {tally.done:,} trials done{failed}")
        say(self._console, self._total(seconds_left))

    def _total(self, seconds_left: SecondsLeft) -> str:
        done = sum(tally.done for tally in self.tallies.values())
        planned = sum(tally.planned for tally in self.tallies.values())
        failed = sum(tally.failed for tally in self.tallies.values())
        left = sum(seconds_left(pair, tally.left) for pair, tally in self.tallies.items() if tally.left)
        ending = f"about {format_seconds(left)} left" if done < planned else "done"
        return f"{done:,} of {planned:,} trials, {failed:,} failed, {ending}{self._what_compiles()}"

    def _what_compiles(self) -> str:
        arms = [*self._compiling]
        more = f" and {len(arms) - _NAMED:,} more" if len(arms) > _NAMED else ""
        return f"; compiling {', '.join(arms[:_NAMED])}{more} …" if arms else ""


def format_seconds(seconds: float) -> str:
    """Write a duration as a person would: `12 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"
