"""The Python modules of a user's folder, which are found before all others of their names."""

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
"""Modules that the program imports itself, some of them later than a user's folder is known."""


def find_modules(config_dir: Path | None) -> None:
    """Let Python find the modules in a user's folder.

    Parameters
    ----------
    config_dir : Path or None
        The folder. It becomes the first in which Python looks for modules.

    Raises
    ------
    ConfigError
        If Python would import another module in place of one of the folder, or the program needs another.
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
    """Yield what is wrong with the modules of a folder whose names other modules have."""
    for name, path in _modules(folder):
        if other := _other_module(name, path):
            yield (
                f"{path}: the module {name} is {other} already, "
                "so that no configuration can name this one; rename it"
            )


def _modules(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the names and files of the modules and packages in a folder."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:  # what reads configurations there says so
        return
    for entry in entries:
        path = entry if entry.suffix == ".py" else entry / "__init__.py"
        if entry.stem.isidentifier() and entry.stem != "__main__" and path.is_file():
            yield entry.stem, path


def _other_module(name: str, path: Path) -> str:
    """Return where Python, or the program, takes a module from, if that is not this path; else nothing."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module that was made by hand
        return "in use"
    if name in _NEEDED and name not in sys.modules:
        spec = PathFinder.find_spec(name, [place for place in sys.path if place != str(_path_entry(path))])
    if spec is None or spec.origin is None:
        return ""
    is_this = spec.has_location and Path(spec.origin).resolve() == path.resolve()
    return "" if is_this else spec.origin


def _path_entry(path: Path) -> Path:
    """Return the folder in which Python looks for a module of this file."""
    return path.parents[1] if path.name == "__init__.py" else path.parent
