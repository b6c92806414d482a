"""The folders of studies: which there are, how large they are, renaming and deleting them."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.store.files import StoreError, is_folder
from orchestrator.store.store import Store

_DELETED = ".deleted-"
"""What the name of a folder starts with that is being deleted: a study is there whole, or not at all."""


def study_folders(results: Path) -> list[Path]:
    """Return the folders of the studies in a folder of studies, by name; none if it is not there.

    Raises
    ------
    StoreError
        When it cannot be read.
    """
    try:
        return sorted(path for path in results.iterdir() if path.name[0] != "." and holds_study(path))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {results}: {error.strerror}") from None


def holds_study(folder: Path) -> bool:
    """Whether a folder holds a study, be its trials lost or something else in their place."""
    for name in ("trials", "provenance"):
        with suppress(FileNotFoundError, NotADirectoryError):
            (folder / name).lstat()
            return True
    return False


def size_and_age(folder: Path) -> tuple[int, datetime]:
    """Return the bytes of a study's files, and when the youngest was written."""
    sizes, times = [0], [folder.lstat().st_mtime]
    for status in _statuses(folder):
        sizes.append(status.st_size)
        times.append(status.st_mtime)
    return sum(sizes), datetime.fromtimestamp(max(times), UTC)


def _statuses(folder: Path) -> Iterator[os.stat_result]:
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # a run merges its parts
                yield os.lstat(os.path.join(place, name))


def rename_study(store: Store, name: str) -> Path:
    """Give a study's folder another name, and return it.

    Raises
    ------
    StoreError
        When the study is being run, or another has the name.
    """
    target = store.folder.with_name(name)
    with store.lock():
        if os.path.lexists(target):
            raise StoreError(f"{target} is there already; choose another name, or delete it first")
        _move(store.folder, target)
    return target


def delete_study(store: Store) -> None:
    """Delete a study's folder with all that is in it, and what killed deletions have left beside it.

    Raises
    ------
    StoreError
        When the study is being run, its folder is a link, or something in it cannot be deleted.
    """
    folder = store.folder
    if not is_folder(folder):
        raise StoreError(f"{folder} is a link; delete the link itself, and the folder that it names")
    with store.lock():
        _move(folder, folder.with_name(f"{_DELETED}{folder.name}-{uuid.uuid4().hex[:8]}"))
    for path in folder.parent.glob(f"{_DELETED}*"):
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            continue  # another process deletes it
        except OSError as error:
            raise StoreError(f"cannot delete all of {path}: {error.strerror}; delete it by hand") from None


def _move(folder: Path, target: Path) -> None:
    try:
        folder.rename(target)
    except OSError as error:
        raise StoreError(f"cannot rename {folder} to {target}: {error.strerror}") from None
