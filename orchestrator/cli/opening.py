"""The first lines of `run` and `plan`: what a short command stands for."""

import shlex

from rich.console import Console

from orchestrator.cli.request import Request
from orchestrator.cli.terminal import say
from orchestrator.study.settings import Settings


def say_meaning(request: Request, settings: Settings, console: Console) -> None:
    """Print what a command leaves out: the study's name, its overrides, or its outer folds.

    Parameters
    ----------
    request : Request
        Arguments of the command.
    settings : Settings
        Checked configuration.
    console : Console
        Terminal for the output.
    """
    if request.meant:
        say(console, f"Stands for: {shlex.join(request.command)}", wrap=False)
    keys = {text.lstrip("+").partition("=")[0] for text in request.overrides}
    if keys.isdisjoint({"study", "experiment"}):
        name = settings.study.name
        say(console, f"The study is called {name}, after its table; study=NAME gives another name.")
    if {"train", "test"} <= keys:
        say(console, "The split is given by train and test: one outer fold, so no standard error.")
