"""Completion of commands that only name a stored study, by the overrides of its last command."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from orchestrator.datasets.formats import dataset_name
from orchestrator.study.study_name import name_problem

_NOT_REMEMBERED = ("study", "paths.results", "retry", "minutes")
"""Keys of one command that later commands do not take over."""

_OF_TABLES = ("label", "drop", "groups")
"""Keys that describe the columns of tables given by a path."""

_SHORT_FORMS = ({"metric", "protocol.metric"},)
"""Keys of which each sets the same value."""

_NAME = re.compile(r"[\w-]+")
"""Name of a dataset or solver in the value of `datasets` or `solvers`."""


class Meaning(NamedTuple):
    """A command with the overrides of an earlier one.

    Attributes
    ----------
    overrides : list of str
        Those of the earlier command, and then those of the later one, which have precedence.
    config_dir : Path or None
        The user's folder of configurations.
    """

    overrides: list[str]
    config_dir: Path | None


def is_incomplete(overrides: Sequence[str]) -> bool:
    """Return whether overrides name a study but not everything that declares it.

    Parameters
    ----------
    overrides : sequence of str
        Overrides of a command.
    """
    keys = set(map(_key, overrides))
    has_data = not keys.isdisjoint({"datasets", "train"})
    return "study" in keys and "experiment" not in keys and not (has_data and "solvers" in keys)


def meaning(overrides: Sequence[str], config_dir: Path | None) -> Meaning | None:
    """Return an incomplete command together with the last one that ran its study; None if there is none.

    Parameters
    ----------
    overrides : sequence of str
        Overrides of the command; see `is_incomplete`.
    config_dir : Path or None
        The user's folder of configurations in the command.

    Raises
    ------
    ConfigError
        If the command names nothing but a study that is not stored.
    StoreError
        If the records of the study cannot be read.
    """
    given = {_key(text): text.partition("=")[2].strip("'\"") for text in overrides}
    if name_problem(given["study"]):
        return None
    # Imported here, because most commands are complete.
    from orchestrator.config.node_files import CONFIGURATIONS
    from orchestrator.store.store import Store
    from orchestrator.store.study_folders import holds_study

    folder = Path(given.get("paths.results", "results")).expanduser() / given["study"]
    if not holds_study(folder):
        if {"datasets", "train", "solvers", "hydra.searchpath"}.isdisjoint(given) and config_dir is None:
            raise _not_stored(folder)
        return None
    commands = (run.get("command") or [] for run in reversed(Store(folder).provenance()))
    last = next((command for command in commands if command[:2] == ["svmbench", "run"]), None)
    if last is None:
        return None
    earlier, earlier_dir = _parsed(last[2:])
    own = folder / CONFIGURATIONS
    if earlier_dir is not None and not earlier_dir.is_dir() and own.is_dir():
        earlier_dir = own  # the study was renamed
    return Meaning(_merged(earlier, overrides), config_dir or earlier_dir)


def _not_stored(folder: Path) -> Exception:
    """Return the error of a command that names nothing but a study that is not stored.

    Parameters
    ----------
    folder : Path
        Folder that the study would have.
    """
    from orchestrator.store.study_folders import study_folders
    from orchestrator.study.errors import ConfigError
    from orchestrator.study.targets import did_you_mean

    near = did_you_mean(folder.name, [path.name for path in study_folders(folder.parent)]) or "."
    return ConfigError(
        [
            f"study={folder.name}: there is no stored study of this name in {folder.parent}{near} "
            "To begin it, add datasets=[NAME,…] and solvers=[NAME,…]"
        ]
    )


def _parsed(arguments: Sequence[str]) -> tuple[list[str], Path | None]:
    """Return the overrides of an earlier command, and its folder of configurations.

    Parameters
    ----------
    arguments : sequence of str
        Arguments after `svmbench run`.
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--config-dir", type=Path)
    parser.add_argument("--multirun", "-m", action="store_true")
    found, rest = parser.parse_known_args(list(arguments))
    words = [*found.words, *rest]
    overrides = [text for text in words if text.startswith("~") or ("=" in text and not text.startswith("-"))]
    if found.multirun:
        from orchestrator.config.multirun import as_axes  # imports Hydra

        overrides = as_axes(overrides)
    return overrides, found.config_dir


def _merged(earlier: Sequence[str], later: Sequence[str]) -> list[str]:
    """Return the overrides of two commands; those of the later one replace those of the same key.

    Settings of a former kind of cluster are dropped, and so are those of datasets and solvers that a later
    list leaves out. The columns of earlier tables are dropped if a later list names none of these tables.

    Parameters
    ----------
    earlier, later : sequence of str
        Overrides of the commands.
    """
    replaced = {*_NOT_REMEMBERED, *map(_key, later)}
    replaced |= set().union(*(keys for keys in _SHORT_FORMS if keys & replaced))
    if (named := _datasets(later)) and not named & _datasets(earlier):
        replaced |= {*_OF_TABLES}
    below = ["cluster."] if "cluster" in replaced else []
    split = [text.partition("=")[2] for text in (*earlier, *later) if _key(text) == "train"]
    for group, others in (("dataset", split), ("solver", [])):
        if lists := [text.partition("=")[2] for text in later if _key(text) == f"{group}s"]:
            named = {*_NAME.findall(lists[-1]), *map(_name_of, [*lists[-1].split(","), *others])}
            set_before = (key.split(".")[1] for key in map(_key, earlier) if key.startswith(f"{group}."))
            below += [f"{group}.{name}." for name in set_before if name not in named]
    kept = [
        text
        for text in earlier
        if _key(text) not in replaced and not f"{_key(text)}.".startswith(tuple(below))
    ]
    return [*kept, *later]


def _datasets(overrides: Sequence[str]) -> set[str]:
    """Return the names of the datasets that overrides list.

    Parameters
    ----------
    overrides : sequence of str
        Overrides of a command.
    """
    lists = [text.partition("=")[2] for text in overrides if _key(text) in ("datasets", "train")]
    return {_name_of(item) for each in lists for item in each.split(",")}


def _name_of(text: str) -> str:
    """Return the name of a dataset in a list: of a file, its name as overrides spell it.

    Parameters
    ----------
    text : str
        Item of a list, with the brackets and quotes beside it.
    """
    return dataset_name(text.strip(" []'\""))


def _key(text: str) -> str:
    """Return the key of an override.

    Parameters
    ----------
    text : str
        Override in Hydra's grammar.
    """
    return text.lstrip("+~").partition("=")[0]
