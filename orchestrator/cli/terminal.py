"""Output on a terminal. Text is printed literally, even if it looks like markup or an emoji code of rich."""

from rich.console import Console
from rich.text import Text

from orchestrator.cli.streams import drop_output
from orchestrator.study.text import printable


class _Console(Console):
    """Console that prints nothing more after its reader has ended, as in `svmbench run … | head`."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        drop_output()


def terminal() -> Console:
    """Return the console for the output of a command."""
    return _Console()


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
        Line to print, without a line break at its end.
    wrap : bool
        Whether a long line is wrapped. Use False for paths and commands that users may copy. Default True.
    """
    console.print(as_text(text), soft_wrap=not wrap)
