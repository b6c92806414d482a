"""The verb `list`. It starts quickly, because it imports neither datasets, nor solvers, nor the store."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from orchestrator.cli.request import Request, check_keys
from orchestrator.cli.terminal import as_text, say
from orchestrator.config.compose import compose_settings, known_files, known_names
from orchestrator.config.descriptions import description, missing_packages
from orchestrator.config.schema import folders
from orchestrator.config.user_files import CONF_FOLDER
from orchestrator.datasets.libsvm_files import libsvm_names
from orchestrator.study.errors import ConfigError
from orchestrator.study.targets import did_you_mean

_GROUP_OF = {"solvers": "solver", "datasets": "dataset", "experiments": "experiment", "searches": "search"}
"""Configuration group of each kind of name, in the order of the output."""

_HOW = {
    "solvers": "solvers=[NAME,…]",
    "datasets": "datasets=[NAME,…], or the path of a table: datasets=[table.csv] label=COLUMN",
    "experiments": "experiment=NAME",
    "searches": "search=NAME",
}
"""Override that each kind of name belongs to."""

_EVERYDAY = "Everyday classifiers"
_BOOSTERS = "Gradient boosting libraries"
_MACHINES = "Support vector machines"
_CUSTOM = "Custom"

_SOLVERS = {
    _EVERYDAY: (
        *("baseline", "logistic", "knn", "naive_bayes", "lda", "tree", "forest", "extra_trees", "boosting"),
        *("mlp", "svm"),
    ),
    _BOOSTERS: ("xgboost", "lightgbm", "catboost"),
}
"""Names of built-in solvers by heading; the others are support vector machines."""

_DATASETS = "Built-in datasets"
_CUSTOM_DATASETS = "Custom datasets"

_FIRST = {"datasets": ("iris", "wine", "breast_cancer", "digits"), "experiments": ("quickstart", "small")}
"""Names that a list of all kinds shows: datasets without a download, and the first experiments."""


class _Name(NamedTuple):
    """A name that an override accepts.

    Attributes
    ----------
    name : str
        The name.
    heading : str
        Heading under which it is listed; empty for kinds of names without headings.
    description : str
        First sentence of its configuration file; empty if the file has none.
    missing : sequence of str
        Packages that it needs and that are not installed.
    """

    name: str
    heading: str = ""
    description: str = ""
    missing: Sequence[str] = ()


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
    check_keys("list", overrides, f"[{'|'.join(_GROUP_OF)}]")
    if unknown := [kind for kind in kinds if kind not in _GROUP_OF]:
        near = did_you_mean(unknown[0], _GROUP_OF)
        raise ConfigError([f"cannot list {unknown[0]!r}{near}; known: {', '.join(_GROUP_OF)}"])
    names = {kind: _names(kind, overrides, request.config_dir) for kind in kinds or _GROUP_OF}
    if request.as_json:
        console.file.write(json.dumps(_for_json(names), indent=2, ensure_ascii=False) + "\n")
        return
    for kind, found in names.items():
        say(console, "")
        console.print(as_text(f"{kind.capitalize()}: {_HOW[kind]}", "bold"))
        if kinds or kind not in _FIRST:
            _show(found, console)
        else:
            custom = [each.name for each in found if each.heading in (_CUSTOM, _CUSTOM_DATASETS)]
            first = [*custom, *_FIRST[kind]]
            say(console, f"  {', '.join(first)} and {len(found) - len(first)} more: svmbench list {kind}")


def _names(kind: str, overrides: Sequence[str], config_dir: Path | None) -> Sequence[_Name]:
    """Return the names of a kind, in the order in which they are shown.

    Parameters
    ----------
    kind : {"solvers", "datasets", "experiments", "searches"}
        Kind of names.
    overrides : sequence of str
        Overrides in Hydra's grammar, which may name further folders.
    config_dir : Path or None
        The user's folder of further configurations.
    """
    files = known_files(_GROUP_OF[kind], overrides, config_dir)
    if kind == "datasets":
        in_folder = libsvm_names(folders(compose_settings(overrides, config_dir)).data)
        built_in = {*known_names("dataset")}
        custom = {*in_folder, *(name for name, file in files.items() if not _is_built_in(file))} - built_in
        return [
            *(_Name(name, _CUSTOM_DATASETS) for name in sorted(custom)),
            *(_Name(name, _DATASETS) for name in sorted(built_in)),
        ]
    names = [
        _Name(name, _heading(kind, name, file), description(file), missing_packages(file))
        for name, file in files.items()
    ]
    return sorted(names, key=_position)


def _heading(kind: str, name: str, file: Path) -> str:
    if not _is_built_in(file):
        return _CUSTOM
    if kind != "solvers":
        return ""
    return next((heading for heading, names in _SOLVERS.items() if name in names), _MACHINES)


def _is_built_in(file: Path) -> bool:
    return file.is_relative_to(CONF_FOLDER)


def _position(each: _Name) -> tuple[int, int, str]:
    headings = (_CUSTOM, "", *_SOLVERS, _MACHINES)
    order = _SOLVERS.get(each.heading, _FIRST["experiments"])
    return (
        headings.index(each.heading),
        order.index(each.name) if each.name in order else len(order),
        each.name,
    )


def _show(names: Iterable[_Name], console: Console) -> None:
    """Print names with their descriptions, under their headings.

    Parameters
    ----------
    names : iterable of _Name
        Names in their order.
    console : Console
        Terminal for the output.
    """
    for heading, grouped in itertools.groupby(names, key=attrgetter("heading")):
        group = [*grouped]
        if heading:
            say(console, f"  {heading}{_how_to_get(group)}")
        table = Table.grid(padding=(0, 2), pad_edge=True)
        for each in group:
            table.add_row(as_text(f"  {each.name}"), as_text(each.description))
        console.print(table)


def _how_to_get(names: Sequence[_Name]) -> str:
    """Return how to install the packages that the names under a heading need; empty if they are installed.

    Parameters
    ----------
    names : sequence of _Name
        Names under one heading.
    """
    missing = sorted({package for each in names for package in each.missing})
    if not missing:
        return ""
    extra = "'svmbench[boosters]'" if names[0].heading == _BOOSTERS else " ".join(missing)
    return f", of which {', '.join(missing)} must be installed: pip install {extra}"


def _for_json(names: Mapping[str, Iterable[_Name]]) -> dict[str, object]:
    return {
        kind: [
            {"name": name, "group": heading, "description": text, "missing_packages": [*missing]}
            for name, heading, text, missing in found
        ]
        for kind, found in names.items()
    }
