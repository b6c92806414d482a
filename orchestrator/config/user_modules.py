"""Python modules in the user's folder, which precede all other modules of the same names."""

import importlib.util
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from orchestrator.study.errors import ConfigError

_NEEDED = (
    *("orchestrator", "solvers", "svmbench", "dask", "distributed", "hydra", "joblib", "matplotlib"),
    *("numba", "numpy", "omegaconf", "pandas", "pyarrow", "rich", "scipy", "sklearn", "yaml"),
)
"""Modules that the program imports, some of them after the user's folder has become importable."""


def find_modules(config_dir: Path | None) -> None:
    """Make the modules in the user's folder importable.

    Parameters
    ----------
    config_dir : Path or None
        The folder, which becomes the first entry of `sys.path`. None has no effect.

    Raises
    ------
    ConfigError
        If a module of the folder has the name of a module that is in use or that the program needs.
    """
    if config_dir is None:
        return
    folder = config_dir.resolve()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
    if problems := list(_taken_names(folder)):
        raise ConfigError(problems)


def _taken_names(folder: Path) -> Iterator[str]:
    """Yield a message for each module in a folder whose name another module has.

    Parameters
    ----------
    folder : Path
        The user's folder.
    """
    for name, path in _modules(folder):
        if other := _other_module(name, path):
            yield (
                f"{path}: the name {name} belongs to another module already ({other}), "
                "so that no configuration can name this one; rename it"
            )


def _modules(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the names and files of the modules and packages in a folder.

    Parameters
    ----------
    folder : Path
        The user's folder.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError:  # reported when configurations are read from the folder
        return
    for entry in entries:
        path = entry if entry.suffix == ".py" else entry / "__init__.py"
        if entry.stem.isidentifier() and entry.stem != "__main__" and path.is_file():
            yield entry.stem, path


def _other_module(name: str, path: Path) -> str:
    """Return the origin of another module that has a name; empty if Python imports the given file.

    Parameters
    ----------
    name : str
        Name of the module.
    path : Path
        File of the user's module.
    """
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module without a specification
        return "in use"
    if name in _NEEDED and name not in sys.modules:
        spec = PathFinder.find_spec(name, [entry for entry in sys.path if entry != str(_path_entry(path))])
    if spec is None or spec.origin is None:
        return ""
    is_this = spec.has_location and Path(spec.origin).resolve() == path.resolve()
    return "" if is_this else spec.origin


def _path_entry(path: Path) -> Path:
    """Return the folder from which Python imports a module.

    Parameters
    ----------
    path : Path
        File of the module, which is `__init__.py` for a package.
    """
    return path.parents[1] if path.name == "__init__.py" else path.parent
