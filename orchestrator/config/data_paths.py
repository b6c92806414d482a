"""Relative paths of data files, which start at the folder of the YAML file or at the working folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator.datasets.memory_files import lost_copy

_KEYS = ("path", "folder")
"""Parameters of our dataset loaders that are paths."""

_OURS = "orchestrator.datasets."
"""Start of the dotted paths of our dataset loaders."""

Nodes = Mapping[str, Mapping[str, Any]]
"""Configurations of datasets by name."""


def with_paths(nodes: Nodes, folders: list[Path]) -> dict[str, dict[str, Any]]:
    """Return configurations of datasets with paths relative to the YAML file, where such a file exists.

    Parameters
    ----------
    nodes : mapping of str to mapping
        Configurations by the names of their datasets.
    folders : list of Path
        The user's folders of configurations. The first one that has a dataset defines it.
    """
    found = {name: dict(node) for name, node in nodes.items()}
    for name, key, beside, _ in _named(nodes, folders):
        if beside.exists():
            found[name][key] = _near(beside) or str(beside)
    return found


def path_problems(nodes: Nodes, folders: list[Path]) -> Iterator[str]:
    """Yield a sentence for each path that matches two different files or no file.

    Parameters
    ----------
    nodes : mapping of str to mapping
        Configurations by the names of their datasets.
    folders : list of Path
        The user's folders of configurations. The first one that has a dataset defines it.
    """
    for name, key, beside, here in _named(nodes, folders):
        both = f"{beside} (beside {name}.yaml) and {here} (in the working folder)"
        if beside.exists() and here.exists() and not beside.samefile(here):
            yield (
                f"dataset {name}: {key} names two different files, {both}; remove one of them, or write an "
                "absolute path"
            )
        elif key == "path" and not (beside.exists() or here.exists()):
            found = f"expected a file as {key}, found neither of {both}; correct `{key}`"
            yield f"dataset {name}: {lost_copy(beside.resolve()) or found}"


def _named(nodes: Nodes, folders: list[Path]) -> Iterator[tuple[str, str, Path, Path]]:
    """Yield each relative path in the user's files.

    Parameters
    ----------
    nodes : mapping of str to mapping
        Configurations by the names of their datasets.
    folders : list of Path
        The user's folders of configurations.

    Yields
    ------
    tuple
        Dataset, key, and the two absolute paths: from the YAML file's folder and from the working folder.
    """
    for name, node in nodes.items():
        names = (f"{name}.yaml", f"{name}.yml")
        files = (folder / "dataset" / each for folder in folders for each in names)
        file = next((file for file in files if file.is_file()), None)
        if file is None or not str(node.get("_target_")).startswith(_OURS) or node.get("package"):
            continue
        for key, given in _written(file).items():
            beside, here = file.resolve().parent / given, Path.cwd() / given
            if str(node.get(key)) in (given, str(beside), _near(beside)):  # no override replaces the path
                yield name, key, beside, here


def _near(path: Path) -> str:
    """Return a path relative to the working folder; empty for a path outside of it.

    Parameters
    ----------
    path : Path
        Path to shorten, absolute.
    """
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else ""


def _written(file: Path) -> dict[str, str]:
    """Return the relative paths in a file by key, except for paths with an interpolation.

    Parameters
    ----------
    file : Path
        YAML file of a dataset.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError  # type: ignore[import-untyped]

    try:
        node = OmegaConf.to_container(OmegaConf.load(file), resolve=False)
    except (OSError, ValueError, OmegaConfBaseException, YAMLError):  # reported when the file is composed
        return {}
    if not isinstance(node, Mapping):
        return {}
    texts = {key: node[key] for key in _KEYS if isinstance(node.get(key), str) and node[key]}
    return {
        key: text
        for key, text in texts.items()
        if "${" not in text and not text.startswith("~") and not Path(text).is_absolute() and "\0" not in text
    }
