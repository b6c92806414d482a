"""Output on a terminal. Text is printed literally, even if it looks like markup or an emoji code of rich."""

import os
import sys
from contextlib import suppress

from rich.console import Console
from rich.text import Text

from orchestrator.study.text import printable


class _Console(Console):
    """Console that prints nothing more after its reader has ended, as in `svmbench run … | head`."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        drop_output()


def terminal() -> Console:
    """Return the console for the output of a command."""
    return _Console()


def flush() -> None:
    """Flush the standard streams, and drop their output if the reader has ended."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except BrokenPipeError:
            drop_output()


def drop_output() -> None:
    """Redirect streams that cannot be written to the null device, so that Python does not fail at exit."""
    with suppress(OSError, ValueError), open(os.devnull, "w") as nothing:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            try:
                stream.flush()
            except OSError:
                os.dup2(nothing.fileno(), stream.fileno())


def as_text(text: str, style: str = "") -> Text:
    """Return a literal text for rich. Use it wherever rich would read a `str` as markup.

    Parameters
    ----------
    text : str
        Text to print.
    style : str
        Style of rich, such as "bold". Default: none.
    """
    return Text(printable(text), style=style)


def say(console: Console, text: str, *, wrap: bool = True) -> None:
    """Print a line.

    Parameters
    ----------
    console : Console
        Terminal for the output.
    text : str
        The line.
    wrap : bool
        Whether a long line is wrapped. Use False for paths and commands that users may copy. Default True.
    """
    console.print(as_text(text), soft_wrap=not wrap)
