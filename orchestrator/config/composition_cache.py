"""Composed configurations of earlier commands, in the user's cache folder.

The key of a composition includes everything that can change it: overrides, working folder, versions of the
programs, and path, size and time of the last change of every configuration file. A composition that depends
on anything else, such as an environment variable of the user, is not kept. All files of the cache can be
deleted.
"""

import hashlib
import importlib.util
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from orchestrator import __version__
from orchestrator.config.user_files import CONF_FOLDER, SUFFIXES, collected_warnings, warn_once
from orchestrator.datasets.libsvm_files import libsvm_names
from orchestrator.study.user_cache import read_value, write_value

Composition = tuple[dict[str, Any], list[str]]
"""A configuration in plain containers, and its problems."""

_KIND = "configurations"
"""Folder of the user's cache for compositions."""

_MAX_ENTRIES = 2000
"""Largest number of files and folders in a user's folder of configurations whose compositions are kept."""

_FRESH_SECONDS = 2.0
"""Age that every file must exceed for its composition to be kept, in seconds. A file that changes twice in a
shorter time may have the same time of change."""

_RESOLVER = re.compile(r"\$\{[^{}$]*:")
"""Start of an interpolation by a function, such as `${oc.env:HOME}`."""

VARIABLES = ("SVMBENCH_CACHE", "SVMBENCH_DATA")
"""Environment variables that the built-in configurations read."""

_PROGRAM = (
    *("config", "datasets/formats.py", "datasets/libsvm_files.py", "study/targets.py", "study/text.py"),
)
"""Sources of this package that decide a composition."""

_Stamp = tuple[str, int, int]
"""Path, size in bytes, and time of the last change in nanoseconds."""


def cached_composition(
    overrides: Sequence[str], folders: Sequence[Path], compose: Callable[[], Composition]
) -> Composition:
    """Return a composition of an earlier command with the same inputs, or else compose.

    Warnings of replaced built-in files are repeated. A configuration with problems is not kept.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar.
    folders : sequence of Path
        The user's folders of configurations.
    compose : callable
        Composes the configuration.

    Returns
    -------
    config : dict
        The configuration, which the caller may change.
    problems : list of str
        One message for each problem.
    """
    stamps = _stamps(folders)
    key = "" if stamps is None else _key(overrides, folders, stamps)
    found = read_value(_KIND, key) if key else None
    if _is_current(found):
        for text in found["warnings"]:
            warn_once(text)
        return found["config"], []
    with collected_warnings() as said:
        config, problems = compose()
    if stamps is not None and not problems and not _depends_on_more(overrides, folders, stamps):
        data = str(config["paths"]["data"])
        value = {"config": config, "warnings": said, "data": data, "names": _names(data)}
        if stamps == _stamps(folders):  # no file has changed in the meantime
            write_value(_KIND, key, value)
    return config, problems


def _is_current(found: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a value of the cache is complete, and its folder of data has the same LIBSVM files.

    Parameters
    ----------
    found : object
        Value of the cache, or None.
    """
    if not isinstance(found, dict) or found.keys() != {"config", "warnings", "data", "names"}:
        return False
    return bool(found["names"] == _names(found["data"]))


def _names(folder: str) -> list[str]:
    try:
        return libsvm_names(folder)
    except (OSError, ValueError):  # for example a null byte in the name
        return []


def _key(overrides: Sequence[str], folders: Sequence[Path], stamps: Sequence[_Stamp]) -> str:
    """Return a hash of everything that decides a composition, besides the files of the folder of data.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar.
    folders : sequence of Path
        The user's folders of configurations.
    stamps : sequence of (str, int, int)
        Stamps of all configuration files and of the program.
    """
    resolved = [str(folder.resolve()) for folder in folders]
    variables = [os.environ.get(name) for name in VARIABLES]
    inputs = [__version__, sys.version, variables, list(overrides), resolved, stamps]
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:32]


def _stamps(folders: Sequence[Path]) -> list[_Stamp] | None:
    """Return the stamps of all files that decide a composition; None if there are too many.

    Parameters
    ----------
    folders : sequence of Path
        The user's folders of configurations.
    """
    package = Path(__file__).parents[1]
    try:
        if importlib.util.find_spec("hydra_plugins") is not None:  # their code may add files
            return None
        specs = [importlib.util.find_spec(name) for name in ("hydra", "omegaconf", "yaml")]
        files = [spec.origin for spec in specs if spec is not None and spec.origin]
        found = [(os.getcwd(), 0, 0), *map(_stamp, files)]
        found += [stamp for name in _PROGRAM for stamp in _tree(package / name, (".py",))]
        found += _tree(CONF_FOLDER)
        for folder in folders:
            found += _tree(folder, SUFFIXES)
    except (OSError, ValueError, OverflowError):  # a file that cannot be read is reported by Hydra
        return None
    return found


def _stamp(path: str) -> _Stamp:
    found = os.stat(path)
    # A copied file may keep its modification time (mtime), but never the change time of its inode (ctime).
    return path, found.st_size, max(found.st_mtime_ns, found.st_ctime_ns)


def _tree(root: str | Path, suffixes: tuple[str, ...] = ("",)) -> Iterator[_Stamp]:
    """Yield the stamps of the files in a folder and in the folders below it, and of these folders' names.

    Parameters
    ----------
    root : path
        Folder, or a single file.
    suffixes : tuple of str
        Ends of the names of the files. Default: any.

    Yields
    ------
    (str, int, int)
        Stamp of a file; size and time of a folder are 0.

    Raises
    ------
    OverflowError
        If there are more than `_MAX_ENTRIES` entries.
    """
    if not os.path.isdir(root):
        yield _stamp(str(root))
        return
    waiting, number = [str(root)], 0
    while waiting:
        folder = waiting.pop()
        yield folder, 0, 0
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if (number := number + 1) > _MAX_ENTRIES:
                raise OverflowError
            if entry.name == "__pycache__":
                continue
            if entry.is_dir():
                waiting.append(entry.path)
            elif entry.name.endswith(suffixes):
                yield _stamp(entry.path)


def _depends_on_more(overrides: Sequence[str], folders: Sequence[Path], stamps: Sequence[_Stamp]) -> bool:
    """Return whether a composition may change while its key does not.

    Parameters
    ----------
    overrides : sequence of str
        Overrides in Hydra's grammar.
    folders : sequence of Path
        The user's folders of configurations.
    stamps : sequence of (str, int, int)
        Stamps of all configuration files and of the program.
    """
    newest = max(changed for _, _, changed in stamps)
    if not 0 <= newest < (time.time() - _FRESH_SECONDS) * 1e9:
        return True
    files = (path for folder in folders for path, _, changed in _tree(folder, SUFFIXES) if changed)
    texts = (Path(path).read_text(encoding="utf-8", errors="replace") for path in files)
    return any(map(_RESOLVER.search, overrides)) or any(map(_RESOLVER.search, texts))
