"""Relative paths of data: beside the YAML file that names them, or in the working folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

_KEYS = ("path", "folder")
_OURS = "orchestrator.datasets."

Nodes = Mapping[str, Mapping[str, Any]]


def with_paths(nodes: Nodes, folders: list[Path]) -> dict[str, dict[str, Any]]:
    """Return configurations of datasets in which a path that exists beside its file leads there.

    Parameters
    ----------
    nodes : mapping of str to mapping
        Configurations by the names of their datasets.
    folders : list of Path
        A user's folders of configurations, the first of which counts.
    """
    found = {name: dict(node) for name, node in nodes.items()}
    for name, key, beside, _ in _named(nodes, folders):
        if beside.exists():
            found[name][key] = _near(beside) or str(beside)
    return found


def path_problems(nodes: Nodes, folders: list[Path]) -> Iterator[str]:
    """Yield a sentence for each path that leads to two different files, or to none.

    Parameters
    ----------
    nodes, folders
        As of `with_paths`.
    """
    for name, key, beside, here in _named(nodes, folders):
        both = f"{beside} (beside {name}.yaml) and {here} (in the working folder)"
        if beside.exists() and here.exists() and not beside.samefile(here):
            yield (
                f"dataset {name}: {key} names two different files, {both}; remove one of them, or write a "
                "whole path"
            )
        elif key == "path" and not (beside.exists() or here.exists()):
            yield f"dataset {name}: expected a file as {key}, found neither of {both}; correct `{key}`"


def _named(nodes: Nodes, folders: list[Path]) -> Iterator[tuple[str, str, Path, Path]]:
    """Yield the dataset, the key and the two whole paths of each relative path that a user's file names."""
    for name, node in nodes.items():
        names = (f"{name}.yaml", f"{name}.yml")
        files = (folder / "dataset" / each for folder in folders for each in names)
        file = next((file for file in files if file.is_file()), None)
        if file is None or not str(node.get("_target_")).startswith(_OURS) or node.get("package"):
            continue
        for key, given in _written(file).items():
            beside, here = file.resolve().parent / given, Path.cwd() / given
            if str(node.get(key)) in (given, str(beside), _near(beside)):  # no override names another
                yield name, key, beside, here


def _near(path: Path) -> str:
    """Return a path from the working folder; empty for one outside of it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else ""


def _written(file: Path) -> dict[str, str]:
    """Return the relative paths that stand in a file; those with an interpolation start elsewhere."""
    try:
        node = OmegaConf.to_container(OmegaConf.load(file), resolve=False)
    except (OSError, ValueError, OmegaConfBaseException, YAMLError):  # which composing it reports
        return {}
    if not isinstance(node, Mapping):
        return {}
    texts = {key: node[key] for key in _KEYS if isinstance(node.get(key), str) and node[key]}
    return {
        key: text
        for key, text in texts.items()
        if "${" not in text and not text.startswith("~") and not Path(text).is_absolute() and "\0" not in text
    }
