"""Reading of built-in configuration files, and checks of the user's before Hydra loads them.

Hydra expands aliases without limit, so a user's file is checked first. Built-in files are parsed in C, which
takes an eighth of the time.
"""

import os
import re
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

MAX_BYTES = 1_000_000
"""Largest configuration file, in bytes."""

MAX_NODES = 20_000
"""Largest number of YAML nodes of a configuration file, with every alias expanded."""

MAX_DEPTH = 30
"""Largest number of nested lists and mappings in a configuration."""


def file_problem(path: Path) -> str:
    """Return why a configuration file cannot be loaded; empty if it can be loaded.

    The check reads YAML events, in which aliases are not expanded.

    Parameters
    ----------
    path : Path
        Configuration file.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            return f"{path} is larger than {MAX_BYTES:,} bytes; expected a few settings"
        text = content.decode("utf-8")
    except OSError as error:
        return f"cannot read {path}: {error.strerror or error}"
    except UnicodeDecodeError as error:
        return f"{path} is not UTF-8 (at byte {error.start}); save it as UTF-8"
    try:
        problem = _document_problem(text)
        return f"{path}: {problem}" if problem else ""
    except yaml.YAMLError as error:
        return f"{path} is not YAML: {_yaml_problem(error)}"


def _yaml_problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return where + str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)


@dataclass
class _Size:
    """Size of the part of a document below a node.

    Attributes
    ----------
    nodes : int
        Number of nodes, with every alias expanded.
    depth : int
        Number of nested levels.
    anchor : str or None
        Name by which aliases refer to the node.
    """

    nodes: int = 1
    depth: int = 1
    anchor: str | None = None


def _document_problem(text: str) -> str:
    anchored: dict[str, _Size] = {}
    open_nodes: list[_Size] = []
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            if not open_nodes and isinstance(event, yaml.SequenceStartEvent):
                return "expected settings such as `kernel: rbf`, one a line, found a list"
            open_nodes.append(_Size(anchor=event.anchor))
            found = None
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            found = open_nodes.pop()
        elif isinstance(event, yaml.ScalarEvent):
            if not open_nodes and event.value:
                return "expected settings such as `kernel: rbf`, one a line, found a single value"
            found = _Size(anchor=event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchored:
                return f"the alias *{event.anchor} has no anchor, or is part of its anchor's value; remove it"
            known = anchored[event.anchor]
            found = _Size(known.nodes, known.depth)
        else:
            continue
        if found is not None and found.anchor is not None:
            anchored[found.anchor] = found
        if found is not None and open_nodes:
            open_nodes[-1].nodes += found.nodes
            open_nodes[-1].depth = max(open_nodes[-1].depth, found.depth + 1)
        if open_nodes and open_nodes[-1].nodes > MAX_NODES:
            return f"the file expands to more than {MAX_NODES:,} YAML nodes; remove aliases or values"
        if len(open_nodes) + (found.depth if found else 0) > MAX_DEPTH:
            return f"its values are nested more than {MAX_DEPTH} levels deep; use fewer levels"
    return ""


def built_in_content(path: str | Path) -> Any:
    """Return the content of a built-in file as `OmegaConf.load` reads it, in plain containers.

    A file is parsed once in a process, unless it changes. The tests compare every built-in file with what
    `OmegaConf.load` returns.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    object
        New containers, which the caller may change. An empty file has no settings: an empty dict.
    """
    found = os.stat(path)
    return deepcopy(_parsed(str(path), found.st_mtime_ns, found.st_size))


@lru_cache(maxsize=1024)
def _parsed(path: str, changed: int, size: int) -> Any:
    """Return the content of a file. It is cached and must not be changed.

    Parameters
    ----------
    path : str
        The file.
    changed : int
        Time of its last change in nanoseconds. It makes the cache forget a changed file.
    size : int
        Size of the file in bytes, for the same purpose.
    """
    with open(path, encoding="utf-8") as file:
        content = yaml.load(file, Loader=_Loader)
    return {} if content is None else content


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Loader that reads values as OmegaConf does, with the parser of libyaml where PyYAML has it.

    Numbers such as 1e-3 are numbers, and dates are texts. Repeated keys are not reported.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML declares it
        first: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?([0-9]+(_[0-9]+)*(\.[0-9_]*)?|\.[0-9]+(_[0-9]+)*)[eE][-+]?[0-9]+$"),
    list("-+0123456789."),
)
