"""A user's configuration file, checked before Hydra loads it: Hydra expands whatever the file says."""

from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped]

MOST_BYTES = 1_000_000
MOST_NODES = 20_000
"""Keys and values, counted as often as aliases repeat them."""
MOST_DEPTH = 30


def file_problem(path: Path) -> str:
    """Return why a configuration file cannot be loaded; empty if it can be.

    What is read are YAML's events, which name an alias without repeating what it stands for.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            return f"{path} is larger than {MOST_BYTES:,} bytes; expected a few settings"
        text = content.decode("utf-8")
    except OSError as error:
        return f"cannot read {path}: {error.strerror or error}"
    except UnicodeDecodeError as error:
        return f"{path} is not UTF-8 (at byte {error.start}); save it in that encoding"
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
    """Of the part of a document below a node."""

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
                return f"*{event.anchor} refers to what it is a part of, or to nothing"
            known = anchored[event.anchor]
            found = _Size(known.nodes, known.depth)
        else:
            continue
        if found is not None and found.anchor is not None:
            anchored[found.anchor] = found
        if found is not None and open_nodes:
            open_nodes[-1].nodes += found.nodes
            open_nodes[-1].depth = max(open_nodes[-1].depth, found.depth + 1)
        if open_nodes and open_nodes[-1].nodes > MOST_NODES:
            return f"its keys and values, with aliases written out, are more than {MOST_NODES:,}"
        if len(open_nodes) + (found.depth if found else 0) > MOST_DEPTH:
            return f"its values are nested more than {MOST_DEPTH} levels deep"
    return ""
