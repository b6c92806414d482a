"""Configuration nodes as YAML files of a user's folder."""

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.study.atomic import atomic_write
from orchestrator.study.text import shown

CONFIGURATIONS = "python"
"""Name of a study's folder with the configurations and modules that were written for Python objects."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""Names that Hydra reads as one key."""

_HEADER = "# svmbench wrote this file for a Python object.\n"


def name_problem_of_node(group: str, name: str, is_object: bool) -> str:
    """Return the reason why a dataset or solver cannot have a name; empty if it can.

    Parameters
    ----------
    group : {"dataset", "solver"}
        Group of the configuration.
    name : str
        Name that the user chose.
    is_object : bool
        Whether the name is for an object. Other names are checked where they are looked up.
    """
    if not is_object or _NAME.fullmatch(name):
        return ""
    plain = "".join(
        letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter)
    )
    near = re.sub(r"[^A-Za-z0-9_-]+", "_", plain.replace("ß", "ss")).strip("_-")
    better = near if _NAME.fullmatch(near) else f"{group}_{near}".rstrip("_")
    return (
        f"{group} {shown(name)}: expected a name of letters, digits, '-' and '_', a letter first; "
        f"call it {shown(better)}"
    )


def write_nodes(folder: Path, nodes: Mapping[str, Mapping[str, Any]]) -> None:
    """Write a YAML file for each configuration.

    Parameters
    ----------
    folder : Path
        Folder of a group, such as `conf/solver`, which is created if necessary.
    nodes : mapping of str to mapping
        Configurations by name.
    """
    import yaml  # type: ignore[import-untyped]

    for name, node in nodes.items():
        folder.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(_escaped(node), sort_keys=False, allow_unicode=True)
        with atomic_write(folder / f"{name}.yaml") as file:
            file.write(f"{_HEADER}{text}".encode())


def _escaped(node: Any) -> Any:
    """Return a node in plain containers, with texts escaped so that Hydra does not interpolate them.

    Parameters
    ----------
    node : object
        Node whose texts may contain `${`.
    """
    if isinstance(node, Mapping):
        return {key: _escaped(value) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return list(map(_escaped, node))
    return node.replace("${", "\\${") if isinstance(node, str) else node
