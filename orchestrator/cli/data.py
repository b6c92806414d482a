"""The verb `data`: lists datasets, shows where their files are, and fetches, checks and describes them."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from orchestrator.cli.request import Request
from orchestrator.cli.terminal import as_text, say
from orchestrator.config.compose import data_problems, dataset_nodes
from orchestrator.config.override_text import override_of
from orchestrator.config.schema import dataset_spec, folders
from orchestrator.config.tables import TABLES, table_problems
from orchestrator.config.user_modules import find_modules
from orchestrator.datasets.about import (
    About,
    about_problems,
    available_path,
    file_of,
    is_available,
    read_about,
)
from orchestrator.datasets.openml_files import OpenML, openml_of
from orchestrator.study.atomic import atomic_write
from orchestrator.study.errors import ConfigError
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import printable

_WIDE = 1000
"""Width of the list of datasets where the output is not a terminal, in characters."""

_INSTALL = "pip install 'svmbench[datasets]'"
"""Command that installs the packages that contain datasets."""

OnProgress = Callable[[int, int | None], None]
"""Function that is called with the number of bytes received and, if known, their total."""

Nodes = Mapping[str, Mapping[str, Any]]
"""Configurations of datasets by name."""


def data(request: Request, console: Console) -> None:
    """List datasets, or fetch, check, find or describe some by name.

    Parameters
    ----------
    request : Request
        Arguments of the command: an action and names of datasets.
    console : Console
        Terminal for the output.
    """
    words = [text for text in request.overrides if "=" not in text or Path(text).is_file()]
    overrides = [text for text in request.overrides if text not in words and not text.startswith("to=")]
    action, *names = words or ["list"]
    if action not in ACTIONS:
        near = did_you_mean(action, ACTIONS)
        raise ConfigError([f"data has no action {action!r}{near}; known: {', '.join(ACTIONS)}"])
    if _target_folders(request) and action != "describe":
        raise ConfigError([f"data {action} does not accept to=DIR; only data describe writes to a folder"])
    if action != "list" and not names:
        found = f"none beside {printable(overrides[0])}" if overrides else "none"
        problem = f"data {action} takes names of datasets, found {found}"
        raise ConfigError([f"{problem}. Write: svmbench data {action} NAME (names: svmbench data list)"])
    if action == "list":
        nodes = _all(names, request, overrides)
    else:
        each = [name for text in names for name in ([text] if Path(text).is_file() else text.split(","))]
        overrides.append(override_of("datasets", list(dict.fromkeys(each))))
        nodes = _chosen(request, overrides)
    ACTIONS[action](nodes, request, overrides, console)


def _target_folders(request: Request) -> list[Path]:
    """Return the folders of all arguments `to=DIR`. Only the last one is used.

    Parameters
    ----------
    request : Request
        Arguments of the command.
    """
    given = [text.removeprefix("to=") for text in request.overrides if text.startswith("to=")]
    if "" in given:
        raise ConfigError(["to= names no folder; expected to=DIR"])
    return [Path(each).expanduser() for each in given]


def _all(names: list[str], request: Request, overrides: list[str]) -> Nodes:
    """Return the configurations of all datasets.

    Parameters
    ----------
    names : list of str
        Names of datasets, which must be empty.
    request : Request
        Arguments of the command.
    overrides : list of str
        Overrides among them.
    """
    if names:
        raise ConfigError([f"data list takes no name, found {names[0]!r}"])
    return dataset_nodes(overrides, request.config_dir)


def _chosen(request: Request, overrides: list[str]) -> Nodes:
    """Return the configurations of the chosen datasets.

    Parameters
    ----------
    request : Request
        Arguments of the command.
    overrides : list of str
        Overrides among them, and one that chooses datasets.
    """
    find_modules(request.config_dir)
    config = request.config(overrides)
    nodes: Nodes = config["dataset"]
    problems = [problem for name, node in nodes.items() for problem in about_problems(name, node)]
    problems += table_problems({name: nodes[name] for name in config[TABLES]})
    if problems:
        raise ConfigError(problems)
    return nodes


def _list(nodes: Nodes, request: Request, overrides: list[str], console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for name, justify in (("name", "left"), ("n", "right"), ("d", "right"), ("classes", "right")):
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("available", no_wrap=True)
    table.add_column("source", overflow="fold")
    for name, node in sorted(nodes.items()):
        about = read_about(node)
        sizes = [f"{size:,}" if size else "" for size in (about.n, about.d, about.classes)]
        table.add_row(*map(as_text, (name, *sizes, _availability(node, about), about.source)))
    if not console.is_terminal:
        console.width = _WIDE  # one line for each dataset, for programs that read the output
    console.print(table)


def _availability(node: Mapping[str, Any], about: About) -> str:
    if is_available(node):
        return "yes"
    if about.files or openml_of(node):
        return "to fetch"
    return "to install" if node.get("package") else "no"


def _path(nodes: Nodes, request: Request, overrides: list[str], console: Console) -> None:
    problems = []
    for name, node in nodes.items():
        if (path := available_path(node)) is not None:
            say(console, str(path.absolute()), wrap=False)
        elif node.get("package"):
            problems.append(_not_installed(name, node))
        elif file_of(node) is None and openml_of(node) is None:
            problems.append(
                _no_such_path(name, node)
                or f"{name} is not read from a file: {node.get('_target_')} loads it"
            )
        else:
            problems.append(f"{name} is not downloaded. Run: svmbench data fetch {name}")
    if problems:
        raise ConfigError(problems)


def _fetch(nodes: Nodes, request: Request, overrides: list[str], console: Console) -> None:
    problems: list[str] = []
    for name, node in nodes.items():
        about, location = read_about(node), file_of(node)
        if (path := available_path(node)) is not None:
            say(console, f"{name} is available: {path}", wrap=False)
        elif node.get("package"):
            problems.append(_not_installed(name, node))
        elif (openml := openml_of(node)) is not None:
            problems += _fetched(name, partial(_from_openml, openml), console)
        elif location is None and (missing := _no_such_path(name, node)):
            problems.append(missing)
        elif location is None:
            say(console, f"{name} needs no file: {node.get('_target_')} loads it", wrap=False)
        else:
            problems += _fetch_one(location[1], about, location[0], console)
    if problems:
        raise ConfigError(problems)


def _no_such_path(name: str, node: Mapping[str, Any]) -> str:
    """Return how to get the missing file of a dataset with a `path`; empty for a dataset without one.

    Parameters
    ----------
    name : str
        Name of the dataset.
    node : mapping
        Configuration of the dataset.
    """
    if not isinstance(path := node.get("path"), str):
        return ""
    source = read_about(node).source
    published = f"; it is published as: {source}" if source else ""
    return f"no address is known to fetch {name!r} from{published}; put it in {path}, or correct `path`"


def _not_installed(name: str, node: Mapping[str, Any]) -> str:
    return f"{name} comes with the package {node['package']}, which is not installed. Run: {_INSTALL}"


def _fetch_one(name: str, about: About, folder: Path, console: Console) -> list[str]:
    """Fetch the file of a dataset, and return the problems.

    Parameters
    ----------
    name : str
        Name of the file.
    about : About
        Addresses and checksums of the file.
    folder : Path
        Folder for the file.
    console : Console
        Terminal for the output.
    """
    from orchestrator.datasets.fetch import fetch, how_to_get

    if not about.files:
        return [how_to_get(name, about, folder)]

    def wait() -> None:
        say(console, f"{name}: another process is fetching it; waiting for that process", wrap=False)

    problems = _fetched(name, lambda on_progress: fetch(name, about, folder, on_progress, wait), console)
    if about.note and not problems:
        say(console, f"  {about.note}")
    return problems


def _from_openml(found: OpenML, on_progress: OnProgress) -> Path:
    from orchestrator.datasets.openml import fetch_openml

    return fetch_openml(found.id, found.folder, found.server, on_progress)


def _fetched(name: str, fetch: Callable[[OnProgress], Path], console: Console) -> list[str]:
    """Fetch a file with a progress bar, and return the problems.

    Parameters
    ----------
    name : str
        Name of the dataset.
    fetch : callable
        Fetches the file and returns its path. It takes a function that receives the progress.
    console : Console
        Terminal for the output.
    """
    from orchestrator.datasets.fetch import FetchError

    try:
        with _progress(name, console) as on_progress:
            path = fetch(on_progress)
    except FetchError as error:
        return error.problems
    say(console, f"{name}: {path.stat().st_size:,} bytes in {path}", wrap=False)
    return []


@contextmanager
def _progress(name: str, console: Console) -> Iterator[OnProgress]:
    """Show a progress bar of a file on a terminal; other outputs show none.

    Parameters
    ----------
    name : str
        Name of the dataset.
    console : Console
        Terminal for the output.

    Yields
    ------
    callable
        Receives the number of bytes and their total, if it is known.
    """
    if not console.is_terminal:
        yield lambda here, total: None
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    text = TextColumn("{task.description}", markup=False)
    columns = text, BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(printable(name), total=None)
        yield lambda here, total: progress.update(task, completed=here, total=total)


def _describe(nodes: Nodes, request: Request, overrides: list[str], console: Console) -> None:
    from orchestrator.datasets.description import describe

    available = {name: node for name, node in nodes.items() if is_available(node)}
    found = {}
    for name, _, dataset in _loaded(available, request, overrides):
        found[name] = describe(dataset)
        if targets := _target_folders(request):
            _write_croissant(name, available[name], dataset, targets[-1])
    for name, node in nodes.items():
        about = read_about(node)
        table = Table(
            box=None, show_header=False, pad_edge=False, title=as_text(name, "bold"), title_justify="left"
        )
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        summary = {
            **(found.get(name) or _published(name, node, about)),
            "source": about.source,
            "licence": about.licence,
        }
        for key, value in {**summary, "citation": about.citation, "note": about.note}.items():
            if value:
                table.add_row(as_text(key), as_text(value))
        console.print(table)


def _write_croissant(name: str, node: Mapping[str, Any], dataset: Any, folder: Path) -> None:
    from orchestrator.datasets.croissant import croissant
    from orchestrator.datasets.csv_layout import LAYOUT

    label, path = node.get("label"), available_path(node)
    if not isinstance(label, str) or {"header", "names", *LAYOUT} & node.keys():
        label = None
    if path is not None and path.is_dir():
        path = None
    metadata = croissant(dataset, read_about(node), path, label)
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(folder / f"{name}.croissant.json") as file:
        file.write((json.dumps(metadata, indent=1, ensure_ascii=False) + "\n").encode())


def _published(name: str, node: Mapping[str, Any], about: About) -> dict[str, str]:
    """Return the configured sizes of a dataset that is not available, and how to get it.

    Parameters
    ----------
    name : str
        Name of the dataset.
    node : mapping
        Configuration of the dataset.
    about : About
        Configured description of the dataset.
    """
    sizes = {"rows": about.n, "features": about.d, "classes": about.classes}
    said = {key: f"{size:,}" for key, size in sizes.items() if size is not None}
    command = _INSTALL if node.get("package") else f"svmbench data fetch {name}"
    return {"available": f"no. Run: {command}", **said}


def _check(nodes: Nodes, request: Request, overrides: list[str], console: Console) -> None:
    from orchestrator.datasets.description import shape_problems
    from orchestrator.datasets.fetch import FetchError, changed_since_fetched
    from orchestrator.datasets.findings import cached_audit

    problems: list[str] = []
    protocol = request.config(overrides)["protocol"]
    folds = max(number if type(number := protocol[level]) is int else 0 for level in ("outer", "inner"))
    for name, node in nodes.items():
        try:
            ((_, folder, dataset),) = _loaded({name: node}, request, overrides)
            found = shape_problems(dataset, read_about(node))
            if (path := available_path(node)) is not None and path.is_file():
                found += changed_since_fetched(path)
        except ConfigError as error:
            problems += error.problems
            continue
        except FetchError as error:
            found = error.problems
        problems += [f"dataset {name!r}: {problem}" for problem in found]
        if not found:
            n, d = dataset.X.shape
            # The audit describes properties of the data, which are not errors.
            sentences = cached_audit(folder, dataset).sentences(dataset, folds)
            ending = "" if sentences else "; nothing is wrong"
            say(console, f"{name}: {n:,} rows × {d:,} features, {len(dataset.classes)} classes{ending}")
            for sentence in sentences:
                say(console, f"  {sentence.removeprefix(f'dataset {name!r}: ')}")
    if problems:
        raise ConfigError(problems)


def _loaded(nodes: Nodes, request: Request, overrides: list[str]) -> Iterator[tuple[str, Path, Any]]:
    """Load datasets one after the other.

    Parameters
    ----------
    nodes : mapping of str to mapping
        Configurations of the datasets by name.
    request : Request
        Arguments of the command.
    overrides : list of str
        Overrides among them.

    Yields
    ------
    tuple of str, Path and Dataset
        Name, folder of the prepared copy, and content of a dataset.
    """
    from orchestrator.datasets import DatasetError, load_and_prepare, open_prepared

    config = request.config(overrides)
    memory = config["data_memory"] and config["data_memory"] * 2**30
    for name, node in nodes.items():
        problems = data_problems({name: node}, overrides, request.config_dir)
        spec = dataset_spec(name, node, problems)
        if problems:
            raise ConfigError(problems)
        try:
            folder = load_and_prepare(spec, folders(config).cache, memory)
            yield name, folder, open_prepared(folder)
        except DatasetError as error:
            raise ConfigError([str(error)]) from error


ACTIONS: dict[str, Callable[[Nodes, Request, list[str], Console], None]] = {
    "list": _list,
    "fetch": _fetch,
    "check": _check,
    "path": _path,
    "describe": _describe,
}
"""Functions of the actions by name."""
