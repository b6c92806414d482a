"""Checks of a user's configuration file before Hydra loads it, as Hydra expands aliases without limit."""

from dataclasses import dataclass
from pathlib import Path

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
                return f"the alias *{event.anchor} has no anchor, or is inside of its own anchor; remove it"
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
