"""Store computed values as small files in the user's cache folder. They can be deleted at any time."""

import json
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs

_MAX_FILES = 200
"""Largest number of files in one folder of values. Beyond this number, the older half is deleted."""


def cache_folder() -> Path:
    """Return the folder for prepared datasets: SVMBENCH_CACHE, or the user's cache folder."""
    return Path(os.environ.get("SVMBENCH_CACHE") or platformdirs.user_cache_dir("svmbench")).expanduser()


def read_value(kind: str, key: str) -> Any:
    """Return a value as `write_value` wrote it; None if there is none, or it cannot be read.

    Parameters
    ----------
    kind : str
        Name of the folder of such values.
    key : str
        Name of the file, such as a hash of everything that decides the value.
    """
    try:
        return json.loads((cache_folder() / kind / f"{key}.json").read_bytes())
    except (OSError, ValueError, RuntimeError, RecursionError):  # absent or damaged; no home folder
        return None


def write_value(kind: str, key: str, value: Any) -> None:
    """Write a value for later processes, if the user's cache folder can be written.

    A value that JSON would change, such as one with a key that is not a string, is not written.

    Parameters
    ----------
    kind : str
        Name of the folder of such values.
    key : str
        Name of the file.
    value : object
        Nested mappings and lists of texts, numbers, booleans and None.
    """
    try:
        text = json.dumps(value)
        if json.loads(text) != value:
            return
        folder = cache_folder() / kind
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".{key}.{uuid.uuid4().hex[:8]}.tmp"
        try:
            temporary.write_text(text)
            temporary.replace(folder / f"{key}.json")  # not synced to disk: a damaged file is not valid JSON
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, ValueError, TypeError, RuntimeError, RecursionError):
        return
    _delete_oldest(folder)


def _delete_oldest(folder: Path) -> None:
    """Delete the older half of the files of a folder with more than `_MAX_FILES` files.

    Parameters
    ----------
    folder : Path
        Folder of values.
    """
    with suppress(OSError):
        files = [(entry.stat().st_mtime_ns, entry.path) for entry in os.scandir(folder)]
        if len(files) > _MAX_FILES:
            for _, path in sorted(files)[: len(files) // 2]:
                with suppress(OSError):
                    os.unlink(path)
