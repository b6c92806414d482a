"""The user's folders of configuration files, which are searched before the built-in folder."""

import csv
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from orchestrator.config.override_text import value_of
from orchestrator.study.errors import ConfigError
from orchestrator.study.text import shown

_PACKAGE = Path(__file__).parents[1]

CONF_FOLDER = next(folder for folder in (_PACKAGE / "conf", _PACKAGE.parent / "conf") if folder.is_dir())
"""Folder of the built-in configurations: inside the package in a wheel, beside it in a checkout."""

SEARCH_PATH = "hydra.searchpath="
"""Start of an override of Hydra's search path."""

SUFFIXES = (".yaml", ".yml")
"""Ends of the names of configuration files."""

GROUPS = ("dataset", "solver", "search", "protocol", "cluster", "experiment")
"""Groups of configuration files that a study can choose from."""

_PLURALS = {
    "dataset": "datasets",
    "solver": "solvers",
    "search": "searches",
    "protocol": "protocols",
    "cluster": "clusters",
    "experiment": "experiments",
    "claim": "claims",
}
"""Folder names that users may choose by mistake, by group, because keys such as `datasets` are plurals."""


def two_files(files: Sequence[Path]) -> str:
    """Return a message if two files share a folder and a name; empty if there is at most one file.

    Parameters
    ----------
    files : sequence of Path
        Files of one name in one folder.
    """
    if len(files) < 2:
        return ""
    first, second = sorted(files)[:2]
    return f"{first.parent} holds {first.name} and {second.name}, two files of one name; remove one of them"


def say_if_other(path: Path, name: str, config: Any) -> None:
    """Warn if a user's file replaces a built-in configuration with different content.

    Parameters
    ----------
    path : Path
        User's file.
    name : str
        Group and name of the file, such as ``"dataset/iris"``.
    config : DictConfig
        Content of the file.
    """
    from omegaconf import OmegaConf

    built_in = _built_in(name)
    if built_in is not None and built_in != OmegaConf.to_container(config):
        say_replaced(str(path), name.replace("/", " "))


def say_replaced(file: str, name: str) -> None:
    """Warn that a user's file replaces a built-in configuration.

    Parameters
    ----------
    file : str
        Path of the user's file.
    name : str
        Group and name of both configurations.
    """
    text = (
        f"{file} replaces the built-in {name}, from which it differs; rename the file to use the built-in one"
    )
    if (said := _said.get()) is not None:
        said.append(text)
    warn_once(text)


def warn_once(text: str) -> None:
    """Warn about a configuration file. Python shows a repetition from the same line only once.

    Parameters
    ----------
    text : str
        The sentence.
    """
    warnings.warn(text, stacklevel=1)


_said: ContextVar[list[str] | None] = ContextVar("said", default=None)
"""List that receives the texts of warnings; None outside `collected_warnings`."""


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the texts of the warnings that `say_replaced` gives in the block.

    Yields
    ------
    list of str
        The texts, complete after the block.
    """
    said: list[str] = []
    token = _said.set(said)
    try:
        yield said
    finally:
        _said.reset(token)


def reads_bare_file(name: str) -> bool:
    """Return whether a built-in dataset reads the LIBSVM file of the same name.

    Parameters
    ----------
    name : str
        Name of a file in the folder of data, without its suffix.
    """
    node = _built_in(f"dataset/{name}") or {}
    return str(node.get("_target_")).endswith(".libsvm_file") and node.get("name") == name


def _built_in(name: str) -> Any:
    """Return a built-in configuration in plain containers, or None if it does not exist.

    Parameters
    ----------
    name : str
        Group and name, such as ``"dataset/iris"``.
    """
    path = CONF_FOLDER / f"{name}.yaml"
    if path.is_file():
        from orchestrator.config.yaml_files import built_in_content  # imports a parser of YAML

        return built_in_content(path)
    group, _, item = name.partition("/")
    return built_in_table().get(item) if group == "dataset" else None


def built_in_table() -> Mapping[str, dict[str, Any]]:
    """Return the configurations of the datasets in the built-in table, by name. They must not be changed."""
    return table_datasets(CONF_FOLDER / "dataset" / "packages.csv")


def user_folders(config_dir: Path | None, overrides: Sequence[str]) -> list[Path]:
    """Return the user's folders of configurations, in the order in which they are searched.

    Parameters
    ----------
    config_dir : Path or None
        Folder that is searched first.
    overrides : sequence of str
        Overrides. Those of Hydra's search path name further folders.

    Raises
    ------
    ConfigError
        If one of them is not a folder, or a built-in file would be used instead of a file in it.
    """
    if config_dir is not None and not _is_folder(config_dir):
        raise ConfigError([f"--config-dir: {config_dir} is not a folder"])
    further = [path for text in overrides if text.startswith(SEARCH_PATH) for path in _search_path(text)]
    folders = [*([] if config_dir is None else [config_dir]), *further]
    if problems := [problem for folder in folders for problem in _misplaced(folder)]:
        raise ConfigError(problems)
    return folders


def _misplaced(folder: Path) -> Iterator[str]:
    """Yield a message for each file that svmbench does not read and that has the name of a built-in one.

    The built-in one would be used instead.

    Parameters
    ----------
    folder : Path
        One of the user's folders.
    """
    for group, plural in _PLURALS.items():
        for path in _replaced_by_built_in(folder / plural, group):
            yield f"{path} is not in a folder that svmbench reads; move it to {folder / group}"
        for path in _replaced_by_built_in(folder / group, group):
            if path.suffix not in SUFFIXES:
                right = path.with_suffix(path.suffix.lower()).name
                yield f"{path}: the name of a configuration file ends in .yaml or .yml; rename it to {right}"
            elif not path.is_file():
                built_in = f"to use the built-in {group} {path.stem}"
                yield f"{path} is a broken link, or not a file; correct it, or remove it {built_in}"


def _replaced_by_built_in(folder: Path, group: str) -> list[Path]:
    """Return the entries of a folder that end in `.yaml`, in capital or small letters, with built-in names.

    Parameters
    ----------
    folder : Path
        Folder. One that is absent or cannot be read has no entries.
    group : str
        Group of the built-in configurations.
    """
    try:
        entries = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)
    except OSError:  # reported when configurations are read from the folder
        return []
    if not entries:
        return []
    built_in = {path.stem for path in (CONF_FOLDER / group).glob("*.yaml")}
    names = built_in.union(built_in_table() if group == "dataset" else ())
    return [path for path in entries if path.stem in names]


def _search_path(text: str) -> list[Path]:
    """Return the folders of an override of Hydra's search path.

    Parameters
    ----------
    text : str
        Override as typed, such as `hydra.searchpath=[file://DIR]`.
    """
    try:
        value = value_of(text)
    except ConfigError:
        value = None
    paths = [Path(str(item).removeprefix("file://")) for item in value] if isinstance(value, list) else []
    if not paths or not all(map(_is_folder, paths)):
        raise ConfigError([f"expected {SEARCH_PATH}[file://DIR,…] with folders, found {shown(text)}"])
    return paths


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except ValueError:  # a null byte
        return False


def group_names(group: str, folders: Sequence[Path]) -> list[str]:
    """Return the sorted names of the files of a group.

    Parameters
    ----------
    group : str
        Name of the group, such as ``"dataset"``.
    folders : sequence of Path
        The user's folders.
    """
    return sorted(group_paths(group, folders))


def group_paths(group: str, folders: Sequence[Path]) -> dict[str, Path]:
    """Return the files of a group by name, unchecked. A user's file has precedence over a built-in one.

    Parameters
    ----------
    group : str
        Name of the group, such as ``"dataset"``.
    folders : sequence of Path
        The user's folders, in the order of their precedence.
    """
    paths = {path.stem: path for path in (CONF_FOLDER / group).glob("*.yaml")}
    for folder in reversed(folders):
        if (folder / group).is_dir():
            files = (path for path in (folder / group).iterdir() if path.suffix in SUFFIXES)
            paths |= {path.stem: path for path in files if path.is_file()}
    return paths


def group_files(group: str, folders: Sequence[Path]) -> dict[str, Path]:
    """Return the files of a group by name. A user's file has precedence over a built-in one, and is checked.

    Parameters
    ----------
    group : str
        Name of the group, such as ``"dataset"``.
    folders : sequence of Path
        The user's folders, in the order of their precedence.

    Raises
    ------
    ConfigError
        If files cannot be loaded. The error lists all of them.
    """
    from orchestrator.config.yaml_files import file_problem  # imports a parser of YAML

    files = {path.stem: path for path in (CONF_FOLDER / group).glob("*.yaml")}
    problems: list[str] = []
    for folder in reversed(folders):
        there: dict[str, list[Path]] = {}
        for path in sorted((folder / group).glob("*.y*ml")):
            if path.suffix in SUFFIXES:
                there.setdefault(path.stem, []).append(path)
        problems += filter(None, map(two_files, there.values()))
        files |= {name: paths[0] for name, paths in there.items()}
    users = (path for path in files.values() if not path.is_relative_to(CONF_FOLDER))
    if problems := [*problems, *filter(None, map(file_problem, users))]:
        raise ConfigError(problems)
    return files


_NUMBERS = ("n", "d", "classes")
"""Columns of the table of datasets that hold whole numbers of `about`."""

_TEXTS = ("source", "licence", "citation", "note")
"""Columns of the table of datasets that hold texts of `about`."""


@cache
def table_datasets(path: Path) -> dict[str, dict[str, Any]]:
    """Return the configurations in a table of datasets, by name. They must not be changed.

    Parameters
    ----------
    path : Path
        CSV file with the columns of `conf/dataset/packages.csv`: name, arguments of `arff_file`, family, and
        the keys of `about`.

    Raises
    ------
    ConfigError
        If two rows have the same name, or a row has the name of a file in the folder of the table.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = Counter([row["name"] for row in rows] + [file.stem for file in path.parent.glob("*.yaml")])
    if problems := [
        f"{path}: {name} names {count} datasets of rows and files; keep one of them"
        for name, count in names.items()
        if count > 1
    ]:
        raise ConfigError(problems)
    return {row["name"]: _node(row) for row in rows}


def _node(row: dict[str, str]) -> dict[str, Any]:
    numbers = {key: int(row[key]) for key in _NUMBERS}
    texts = {key: row[key] for key in _TEXTS if row[key]}
    complete = {"complete_rows": True} if row["complete_rows"] else {}
    family = {"family": row["family"]} if row["family"] else {}
    return {
        "_target_": "orchestrator.datasets.arff_file",
        **{key: row[key] for key in ("package", "path", "label")},
        "one_hot": True,
        **complete,
        **family,
        "about": {**numbers, **texts},
    }
