"""Progress of a comparison: a line that is updated in a notebook, lines of text elsewhere, or nothing."""

import sys
from html import escape
from typing import Any

from orchestrator.comparison.python_terms import in_python
from orchestrator.engine.line_display import LineDisplay, total_line
from orchestrator.engine.progress import Display, Progress, SecondsLeft
from orchestrator.study.text import printable


def make_display(shown: bool) -> Display:
    """Return the display of progress for this process.

    Parameters
    ----------
    shown : bool
        Whether progress is shown.
    """
    if not shown:
        return NoDisplay()
    return NotebookDisplay() if _in_notebook() else TextDisplay()


def _in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    python = sys.modules.get("IPython")
    shell = python.get_ipython() if python is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class NoDisplay(LineDisplay):
    """Show nothing."""

    def show(self, progress: Progress, seconds_left: SecondsLeft) -> None:
        """Show nothing.

        Parameters
        ----------
        progress : Progress
            Not used.
        seconds_left : callable
            Not used.
        """

    def say(self, text: str) -> None:
        """Show nothing.

        Parameters
        ----------
        text : str
            Not used.
        """

    def note(self, text: str) -> None:
        """Show nothing.

        Parameters
        ----------
        text : str
            Not used.
        """


class TextDisplay(LineDisplay):
    """Print lines, with advice in the terms of `compare`."""

    def say(self, text: str) -> None:
        """Print a line.

        Parameters
        ----------
        text : str
            Line to print, without a line break at its end.
        """
        super().say(in_python(text))

    def note(self, text: str) -> None:
        """Print a notice about an event.

        Parameters
        ----------
        text : str
            One or more lines.
        """
        super().note(in_python(text))


class NotebookDisplay(TextDisplay):
    """Show a bar and a line below the cell, and update them. They disappear at the end of the run.

    Sentences about the data and the stored trials remain.
    """

    period = 0.5

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None

    def start(self) -> None:
        """Show an empty line."""
        from IPython.display import HTML, display

        self._handle = display(HTML("<p>svmbench: starting …</p>"), display_id=True)

    def stop(self) -> None:
        """Remove the line."""
        self._update("")

    def show(self, progress: Progress, seconds_left: SecondsLeft) -> None:
        """Update the bar and the line.

        Parameters
        ----------
        progress : Progress
            The counts of the run.
        seconds_left : callable
            Estimates the remaining time.
        """
        tallies = progress.counts.values()
        done, planned = (sum(getattr(tally, name) for tally in tallies) for name in ("done", "planned"))
        line = escape(printable(total_line(progress, seconds_left)))
        self._update(f"<p><progress value='{done}' max='{max(1, planned)}'></progress> {line}</p>")

    def _update(self, content: str) -> None:
        """Replace the shown HTML.

        Parameters
        ----------
        content : str
            HTML.
        """
        from IPython.display import HTML

        if self._handle is not None:
            self._handle.update(HTML(content))
