"""The verb `accept`: keep stored trials of older code if a sample of them, trained again, is the same."""

from collections.abc import Sequence

from rich.console import Console

from orchestrator.cli.request import Request
from orchestrator.cli.terminal import say
from orchestrator.engine.acceptance import Choice, prepare_acceptance, stale_trials
from orchestrator.engine.acceptance import accept as accept_trials
from orchestrator.engine.load import find_study


def accept(request: Request, console: Console) -> Sequence[str]:
    """Train a sample of the stored trials of older code again, and accept the arms whose rows are the same.

    Parameters
    ----------
    request : Request
        Arguments of the command, which name the study.
    console : Console
        Terminal for the output.

    Returns
    -------
    sequence of str
        Names of the arms that are not accepted.
    """
    store = find_study(*request.study())
    settings = request.settings()
    choice = Choice(request.share, request.at_least, request.seed)
    with store.lock():
        prepared, declaration = prepare_acceptance(settings, store)
        stale = stale_trials(prepared, declaration, store, choice)
        if not stale.pairs and not stale.problems:
            say(console, f"{store.folder.name}: every stored trial is of today's code, or accepted already.")
            return ()
        if sentence := stale.sentence(store.folder.name):
            say(console, sentence)
        return accept_trials(prepared, stale, store, choice, request.command, lambda line: say(console, line))
