"""The verb `list`. It starts quickly, because it imports neither datasets, nor solvers, nor the store."""

from rich.console import Console

from orchestrator.cli.request import Request
from orchestrator.cli.terminal import as_text, say
from orchestrator.config.compose import compose_settings, known_names
from orchestrator.config.schema import folders
from orchestrator.datasets.libsvm_files import libsvm_names
from orchestrator.study.errors import ConfigError
from orchestrator.study.targets import did_you_mean

_GROUP_OF = {"datasets": "dataset", "solvers": "solver", "experiments": "experiment", "searches": "search"}


def list(request: Request, console: Console) -> None:
    """Show the names that datasets=, solvers=, experiment= and search= accept.

    Parameters
    ----------
    request : Request
        Arguments of the command: kinds of names, or none for all kinds.
    console : Console
        Terminal for the output.
    """
    kinds = [text for text in request.overrides if "=" not in text]
    overrides = [text for text in request.overrides if "=" in text]
    if unknown := [kind for kind in kinds if kind not in _GROUP_OF]:
        near = did_you_mean(unknown[0], _GROUP_OF)
        raise ConfigError([f"cannot list {unknown[0]!r}{near}; known: {', '.join(_GROUP_OF)}"])
    config = compose_settings(overrides, request.config_dir)
    for kind in kinds or _GROUP_OF:
        console.print(as_text(kind, "bold"))
        names = known_names(_GROUP_OF[kind], overrides, request.config_dir)
        if kind == "datasets":
            names = sorted({*names, *libsvm_names(folders(config).data)})
        for name in names:
            say(console, f"  {name}")
