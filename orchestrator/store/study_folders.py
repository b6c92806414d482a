"""List, measure, rename and delete the folders of studies."""

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
"""Start of the name of a folder that is being deleted, so that a study is never seen in part."""


def study_folders(results: Path) -> list[Path]:
    """Return the folders of the studies in a results folder, sorted by name.

    Parameters
    ----------
    results : Path
        The results folder; a missing one is empty.

    Returns
    -------
    list of Path
        The studies' folders.

    Raises
    ------
    StoreError
        If the results folder cannot be read.
    """
    try:
        return sorted(path for path in results.iterdir() if path.name[0] != "." and _is_study(path))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {results}: {error.strerror}") from None


def _is_study(path: Path) -> bool:
    """Return whether a path in a results folder is a study that this user can read.

    Parameters
    ----------
    path : Path
        A file or folder.

    Returns
    -------
    bool
        False for a folder of another user, such as `lost+found` at the root of a disk.
    """
    try:
        return holds_study(path)
    except PermissionError:
        return False


def holds_study(folder: Path) -> bool:
    """Return whether a folder holds a study, even if its trials are lost or damaged.

    Parameters
    ----------
    folder : Path
        Folder to examine.

    Returns
    -------
    bool
        Whether it contains `trials` or `provenance`.
    """
    for name in ("trials", "provenance"):
        with suppress(FileNotFoundError, NotADirectoryError):
            (folder / name).lstat()
            return True
    return False


def size_and_age(folder: Path) -> tuple[int, datetime]:
    """Return the size of a study and the time of its last change.

    Parameters
    ----------
    folder : Path
        The study's folder.

    Returns
    -------
    size : int
        Size of its files, in bytes.
    changed : datetime
        Time at which the newest file was written.
    """
    sizes, times = [0], [folder.lstat().st_mtime]
    for status in _statuses(folder):
        sizes.append(status.st_size)
        times.append(status.st_mtime)
    return sum(sizes), datetime.fromtimestamp(max(times), UTC)


def _statuses(folder: Path) -> Iterator[os.stat_result]:
    """Yield the status of each file below a folder.

    Parameters
    ----------
    folder : Path
        Folder to walk; links are not followed.

    Yields
    ------
    stat_result
        Status of a file.
    """
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # a run may merge its parts meanwhile
                yield os.lstat(os.path.join(parent, name))


def rename_study(store: Store, name: str) -> Path:
    """Rename the folder of a study.

    Parameters
    ----------
    store : Store
        Store of the study.
    name : str
        Name that the study gets.

    Returns
    -------
    Path
        The new folder.

    Raises
    ------
    StoreError
        If the study is being run, or another study has the name.
    """
    target = store.folder.with_name(name)
    with store.lock():
        if os.path.lexists(target):
            raise StoreError(f"{target} already exists; choose another name, or delete it first")
        _move(store.folder, target)
    return target


def delete_study(store: Store) -> None:
    """Delete the folder of a study, and remains of earlier deletions beside it.

    Parameters
    ----------
    store : Store
        Store of the study.

    Raises
    ------
    StoreError
        If the study is being run, its folder is a link, or a file in it cannot be deleted.
    """
    folder = store.folder
    if not is_folder(folder):
        raise StoreError(f"{folder} is a link; delete the link and its target by hand")
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
    """Rename a folder.

    Parameters
    ----------
    folder : Path
        Existing folder of a study.
    target : Path
        Its new path.

    Raises
    ------
    StoreError
        If it cannot be renamed.
    """
    try:
        folder.rename(target)
    except OSError as error:
        raise StoreError(f"cannot rename {folder} to {target}: {error.strerror}") from None
