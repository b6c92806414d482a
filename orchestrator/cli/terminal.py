"""Text on a terminal: what it says is shown as it is, whatever looks like rich's markup or an emoji code."""

import os
import sys
from contextlib import suppress

from rich.console import Console
from rich.text import Text

from orchestrator.study.text import printable


class _Console(Console):
    """A console whose reader may leave (`svmbench run … | head`): then the command prints nothing more."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        drop_output()


def terminal() -> Console:
    """Return the console for what a command prints."""
    return _Console()


def flush() -> None:
    """Write what waits to be written, or drop it when its reader has left."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except BrokenPipeError:
            drop_output()


def drop_output() -> None:
    """Connect an output that cannot be written to nothing, so that Python does not fail on it at its end."""
    with suppress(OSError, ValueError), open(os.devnull, "w") as nothing:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            try:
                stream.flush()
            except OSError:
                os.dup2(nothing.fileno(), stream.fileno())


def as_text(text: str, style: str = "") -> Text:
    """Return a line for rich that is no markup; to be used wherever rich takes a `str` too."""
    return Text(printable(text), style=style)


def say(console: Console, text: str, *, wrap: bool = True) -> None:
    """Print a line; paths and commands that someone may copy are not to be wrapped."""
    console.print(as_text(text), soft_wrap=not wrap)
