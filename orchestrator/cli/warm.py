"""The verb `warm`."""

from functools import partial

from rich.console import Console

from orchestrator.cli.request import Request
from orchestrator.cli.terminal import say
from orchestrator.engine.warm import warm as compile_study


def warm(request: Request, console: Console) -> None:
    """Compile what a run would use.

    Parameters
    ----------
    request : Request
        Arguments of the command.
    console : Console
        Terminal for the output.
    """
    compile_study(request.settings(), partial(say, console))
