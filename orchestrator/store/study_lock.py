"""Lock a study for one writer."""

import os
import platform
import uuid
from pathlib import Path

import filelock

from orchestrator.store.files import (
    FOLDERS,
    StoreError,
    naming_errors,
    read_whole,
    remove_temporaries,
    replacing,
    require_folder,
)


class StudyLock:
    """A lock on a study, held until it is released or the `with` block ends.

    Parameters
    ----------
    lock : BaseFileLock
        The acquired lock.
    removed : list of Path
        Half-written files of killed writers that were removed.

    Attributes
    ----------
    removed : list of Path
        Half-written files of killed writers that were removed.
    """

    def __init__(self, lock: filelock.BaseFileLock, removed: list[Path]):
        self._lock = lock
        self.removed = removed

    def release(self) -> None:
        """Release the study for other writers."""
        self._lock.release()

    def __enter__(self) -> "StudyLock":
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def lock_study(study: Path) -> StudyLock:
    """Lock a study, and remove half-written files of killed writers.

    The operating system releases the lock when the process ends, for any reason.

    Parameters
    ----------
    study : Path
        The study's folder, which is created if it does not exist.

    Returns
    -------
    StudyLock
        Acquired lock, with the files that it removed.

    Raises
    ------
    StoreError
        If a process, possibly this one, holds the lock, or the folder cannot be written.
    """
    for name in FOLDERS:
        require_folder(study, study / name)
    _make_folders(study)
    path, holder = study / ".lock", study / ".lock-holder"
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except (filelock.Timeout, RuntimeError):  # RuntimeError if this thread holds the lock
        raise StoreError(
            f"study {study.name!r} is being run by {_holder(holder)}; wait for it, stop it, or "
            f"choose another name with study=NAME"
        ) from None
    except OSError:
        with naming_errors(study, path):
            raise
    try:
        with replacing(study, holder) as file:
            file.write(f"process {os.getpid()} on {platform.node()}\n".encode())
        return StudyLock(lock, remove_temporaries(study))
    except BaseException:
        lock.release()
        raise


def _make_folders(study: Path) -> None:
    """Create the folders of the study, and raise StoreError if they cannot be written.

    Parameters
    ----------
    study : Path
        The study's folder.
    """
    try:
        (study / "trials").mkdir(parents=True, exist_ok=True)
        probe = study / f".probe-{uuid.uuid4().hex}.tmp"
        probe.touch(exist_ok=False)
        probe.unlink(missing_ok=True)  # another client may have removed it as a half-written file
    except OSError as error:
        raise StoreError(
            f"cannot write to the results folder {study}: {error.strerror}; "
            f"choose a writable one with paths.results=DIR. To resume a study, copy it there first"
        ) from None


def _holder(path: Path) -> str:
    """Return a description of the process that holds the lock of a study.

    Parameters
    ----------
    path : Path
        File that the process wrote.

    Returns
    -------
    str
        Process id and host, or "another process".
    """
    try:
        text = read_whole(path.parent, path)[:200].decode("utf-8", "replace").strip()
    except (StoreError, FileNotFoundError):
        text = ""
    return text or "another process"
