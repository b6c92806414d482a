"""Completion of verbs, overrides and names in a shell: the verb `completion`, and answers to the shell."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import argcomplete
from rich.console import Console

from orchestrator.cli.request import Request
from orchestrator.study.errors import ConfigError

_SHELLS = ("bash", "zsh", "fish")
_NAMES = {"datasets": "dataset", "solvers": "solver"}
_READER_KEYS = ("study", "paths.results", "paths.data")
"""Keys of verbs that read stored studies, besides those of `report`."""

_NAME_VERBS = ("run", "plan", "warm", "status", "report", "repair", "accept", "rename", "delete")
_KINDS = ("datasets", "solvers", "experiments", "searches")
_DATA_ACTIONS = ("list", "fetch", "check", "path", "describe")


def completion(request: Request, console: Console) -> None:
    """Print the script that lets a shell complete commands.

    Parameters
    ----------
    request : Request
        Arguments of the command: the name of a shell.
    console : Console
        Terminal. The script is printed without it, so that no line is wrapped.
    """
    shell = "".join(request.overrides[:1])
    if shell not in _SHELLS or len(request.overrides) > 1:
        found = " ".join(request.overrides) or "none"
        raise ConfigError([f"completion: expected a shell, one of {', '.join(_SHELLS)}; found {found}"])
    print(argcomplete.shellcode(["svmbench"], shell=shell))


def answer_shell(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks for completions of a command, and end the process.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Parser of the command line. Completers are added to its arguments.
    """
    actions = [action for each in _parsers(parser) for action in each._actions if action.dest == "overrides"]
    for action in actions:
        action.completer = _completions  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, always_complete_options=False)


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _parsers(each)


def _completions(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Return the completions of an argument: keys, values of a key, or names.

    Parameters
    ----------
    prefix : str
        Start of the argument, as typed.
    parsed_args : argparse.Namespace
        Arguments before it.
    **_ : object
        Further arguments of argcomplete, which are not used.
    """
    verb, config_dir = parsed_args.verb, getattr(parsed_args, "config_dir", None)
    if verb == "completion":
        return list(_SHELLS)
    key, given, value = prefix.partition("=")
    try:
        if given:
            return [f"{key}={text}" for text in _values(key, value, config_dir)]
        names = _names(verb, parsed_args.overrides, config_dir)
        keys = list(_keys(config_dir))
        if verb not in ("run", "plan", "warm", "accept", "cluster"):
            keys = [key for key in keys if key in _READER_KEYS or key.startswith("report.")]
        return [*names, *(f"{name}=" for name in keys)]
    except ConfigError:
        return []


def _names(verb: str, given: Sequence[str], config_dir: Path | None) -> Iterable[str]:
    """Return the names that a verb accepts, for an argument that is not an override.

    Parameters
    ----------
    verb : str
        Name of the verb.
    given : sequence of str
        Arguments before it.
    config_dir : Path or None
        The user's folder of configurations.
    """
    if verb == "data":
        from orchestrator.config.compose import known_names

        return known_names("dataset", config_dir=config_dir) if given else _DATA_ACTIONS
    return _KINDS if verb == "list" else _studies() if verb in _NAME_VERBS else ()


def _keys(config_dir: Path | None) -> Iterator[str]:
    from orchestrator.config.compose import compose_settings
    from orchestrator.config.user_files import GROUPS

    yield from (group for group in GROUPS if group not in _NAMES.values())
    yield from _leaves(compose_settings([], config_dir))


def _leaves(node: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _values(key: str, value: str, config_dir: Path | None) -> Iterator[str]:
    from orchestrator.config.compose import known_names
    from orchestrator.config.scalars import choices
    from orchestrator.config.user_files import GROUPS

    if key in _NAMES:
        start, separator, last = value.rpartition("," if "," in value else "[")
        chosen = start.strip("[").split(",")
        for name in known_names(_NAMES[key], config_dir=config_dir):
            if name.startswith(last) and name not in chosen:
                yield f"{start}{separator or '['}{name}"
    elif key == "study":
        yield from _studies()
    elif key in GROUPS:
        yield from known_names(key, config_dir=config_dir)
    else:
        yield from choices(key)


def _studies() -> Iterable[str]:
    from orchestrator.config.compose import compose_settings
    from orchestrator.config.schema import folders
    from orchestrator.store.study_folders import study_folders

    return [folder.name for folder in study_folders(folders(compose_settings([])).results)]
