"""Read and write the files of a study: files are written as a whole, and damaged files are named.

The name of a part of the trials ends in a checksum of its bytes. No file is written through a link. A pipe, a
folder or a broken link with the name of a file counts as damage.
"""

import errno
import hashlib
import io
import os
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from orchestrator.study.atomic import atomic_write

_PART = re.compile(r"part-.*-(?P<checksum>[0-9a-f]{16})\.parquet")
"""Pattern of the name of a part, with its checksum."""

_DAMAGE = {errno.EIO, errno.ELOOP, errno.EISDIR, errno.ENOTDIR, errno.ENXIO, errno.ENODEV}
"""Errors of the operating system that mean damage, and not a lack of permission."""

_LARGE, _LARGEST = 1 << 26, 1 << 34
"""Size from which a part is not read as a whole, and largest size of a file, in bytes."""

FOLDERS = ("trials", "provenance", "logs", "searches")
"""Folders of a study to which a run writes."""


class StoreError(RuntimeError):
    """A study's folder cannot be read or written; the message names it and says what to do."""


class DamageError(StoreError):
    """A file of a study is missing, or differs from what svmbench wrote.

    Parameters
    ----------
    study : Path
        Folder of the study.
    path : Path
        The file or folder.
    reason : str
        Description of the damage.

    Attributes
    ----------
    path : Path
        The file or folder.
    reason : str
        Description of the damage.
    """

    def __init__(self, study: Path, path: Path, reason: str):
        super().__init__(
            f"{path} is damaged ({reason}); the study is not run or reported until this file is restored or "
            f"moved aside. Run: {repair_command(study)}"
        )
        self.path = path
        self.reason = reason


def repair_command(study: Path) -> str:
    """Return the command that repairs a study.

    Parameters
    ----------
    study : Path
        Folder of the study.

    Returns
    -------
    str
        The command line.
    """
    elsewhere = study.parent != Path("results").absolute()
    results = [f"paths.results={study.parent}"] if elsewhere else []
    return shlex.join(["svmbench", "repair", f"study={study.name}", *results])


# -- reading -------------------------------------------------------------------------------------


def read_whole(study: Path, path: Path) -> bytes:
    """Return the bytes of a regular file.

    Parameters
    ----------
    study : Path
        Folder of the study.
    path : Path
        File to read.

    Returns
    -------
    bytes
        Content of the file.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    DamageError
        If it is not a regular file, or the disk cannot read it.
    StoreError
        If this user or process may not read it.
    """
    with _regular_file(study, path) as file:
        return file.read()


@contextmanager
def opened_part(study: Path, path: Path) -> Iterator[bytes | BinaryIO]:
    """Return a context with the content of a Parquet file, after checking the checksum in its name.

    Parameters
    ----------
    study : Path
        Folder of the study.
    path : Path
        Parquet file of the study.

    Yields
    ------
    bytes or BinaryIO
        The bytes, or the open file if it is large.

    Raises
    ------
    FileNotFoundError, DamageError, StoreError
        See `read_whole`. A wrong checksum is a DamageError.
    """
    with _regular_file(study, path) as file:
        content: bytes | BinaryIO = file
        if os.fstat(file.fileno()).st_size > _LARGE:  # the reader may need only a few columns
            found = hashlib.file_digest(file, _hash).hexdigest()
            file.seek(0)
        else:
            content = file.read()
            found = checksum(content)
        expected = _PART.fullmatch(path.name)
        if expected is not None and found != expected["checksum"]:
            raise DamageError(study, path, "its bytes do not match the checksum in its name")
        yield content


@contextmanager
def _regular_file(study: Path, path: Path) -> Iterator[io.BufferedReader]:
    """Return a context with an open file, after checking that it is a regular file.

    Parameters
    ----------
    study : Path
        Folder of the study.
    path : Path
        File to open.

    Yields
    ------
    BufferedReader
        The open file.

    Raises
    ------
    FileNotFoundError, DamageError, StoreError
        See `read_whole`.
    """
    try:
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise DamageError(study, path, "it is not a regular file")
            if status.st_size > _LARGEST:
                raise DamageError(study, path, f"it has {status.st_size:,} bytes")
            yield file
    except FileNotFoundError:
        if os.path.lexists(path):
            raise DamageError(study, path, "it is a broken link") from None
        raise
    except OSError as error:
        if error.errno in _DAMAGE:
            raise DamageError(study, path, f"{error.strerror}") from None
        raise StoreError(f"cannot read {path}: {error.strerror}") from None


def require_folder(study: Path, path: Path) -> None:
    """Raise if a folder of a study is not a folder; a link is refused because it may lead to other files.

    Parameters
    ----------
    study : Path
        Folder of the study.
    path : Path
        A folder in it, which may be missing.

    Raises
    ------
    DamageError
        If it is neither a folder nor a link to one, so that repair can move it aside.
    StoreError
        If it is a link to a folder, which may hold stored trials.
    """
    if not os.path.lexists(path) or is_folder(path):
        return
    if os.path.isdir(path):
        raise StoreError(
            f"{path} is a link to a folder, which svmbench does not follow; replace the link by the folder, "
            "or remove it"
        )
    raise DamageError(study, path, "it is not a folder")


def listed(study: Path, folder: Path, start: str, end: str) -> list[Path]:
    """Return the files of a folder by the start and end of their names, sorted.

    Parameters
    ----------
    study : Path
        Folder of the study.
    folder : Path
        A folder in it; a missing one is empty.
    start : str
        Start of the names.
    end : str
        End of the names.

    Returns
    -------
    list of Path
        Paths of the files.

    Raises
    ------
    DamageError, StoreError
        If it is not a folder, or cannot be read.
    """
    require_folder(study, folder)
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        if error.errno in _DAMAGE:
            raise DamageError(study, folder, f"{error.strerror}") from None
        raise StoreError(f"cannot read {folder}: {error.strerror}") from None
    return [folder / name for name in names if name.startswith(start) and name.endswith(end)]


def has_checksum(path: Path) -> bool:
    """Return whether the name of a file contains a checksum of its bytes.

    Parameters
    ----------
    path : Path
        File whose name is examined.

    Returns
    -------
    bool
        False for parts of older versions.
    """
    return _PART.fullmatch(path.name) is not None


def checksum(content: bytes) -> str:
    """Return the checksum of bytes, in the format of the names of parts.

    Parameters
    ----------
    content : bytes
        Bytes of a file or a part of one.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    return _hash(content).hexdigest()


def is_plain_file(path: Path) -> bool:
    """Return whether a path is a regular file, and not a link to one.

    Parameters
    ----------
    path : Path
        An existing path.

    Returns
    -------
    bool
        False for a link.
    """
    return stat.S_ISREG(path.lstat().st_mode)


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder, and not a link to one.

    Parameters
    ----------
    path : Path
        An existing path.

    Returns
    -------
    bool
        False for a link.
    """
    return stat.S_ISDIR(path.lstat().st_mode)


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file or folder, which does not change when it is renamed.

    Parameters
    ----------
    path : Path
        A file or folder.

    Returns
    -------
    tuple of int or None
        Numbers of its device and inode; None if it does not exist.
    """
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _hash(content: bytes = b"") -> "hashlib.blake2b":
    """Return a hash object for checksums.

    Parameters
    ----------
    content : bytes
        First bytes. Empty by default.

    Returns
    -------
    blake2b
        The hash of the bytes so far.
    """
    return hashlib.blake2b(content, digest_size=8)


# -- writing -------------------------------------------------------------------------------------


@contextmanager
def replacing(study: Path, target: Path) -> Iterator[BinaryIO]:
    """Return a context with a temporary file that replaces the target at the end.

    If the block raises, the target is not changed.

    Parameters
    ----------
    study : Path
        Folder of the study.
    target : Path
        The file to write.

    Yields
    ------
    BinaryIO
        The temporary file.

    Raises
    ------
    DamageError
        If the target exists and is not a file.
    StoreError
        If it cannot be written.
    """
    with naming_errors(study, target):
        with atomic_write(target) as file:
            yield file
        _sync_folder(target.parent)


@contextmanager
def new_part(study: Path) -> Iterator["HashedFile"]:
    """Return a context with a new part, which gets a name with the checksum of its bytes at the end.

    Parameters
    ----------
    study : Path
        Folder of the study.

    Yields
    ------
    HashedFile
        The file to write to.
    """
    path = study / "trials" / f"part-{datetime.now():%Y%m%d%H%M%S%f}.parquet"
    hashed = HashedFile(path)
    with naming_errors(study, path):
        with atomic_write(path, lambda: hashed.path.name) as file:
            hashed.file = file
            yield hashed
        _sync_folder(path.parent)


@contextmanager
def naming_errors(study: Path, path: Path) -> Iterator[None]:
    """Return a context that adds the file's name to errors of writing.

    Parameters
    ----------
    study : Path
        Folder of the study.
    path : Path
        File or folder that is written, for the message.

    Raises
    ------
    DamageError, StoreError
        In place of an OSError.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _DAMAGE:
            raise DamageError(study, path, f"{error.strerror}") from None
        raise StoreError(
            f"cannot write {path}: {error.strerror}; "
            f"free disk space or repair the folder, then run the same command to resume"
        ) from None


class HashedFile(io.RawIOBase):
    """A file whose name contains a checksum of its content.

    Parameters
    ----------
    path : Path
        Its path without the checksum.

    Attributes
    ----------
    file : BinaryIO
        File that receives the content.
    """

    file: BinaryIO

    def __init__(self, path: Path):
        self._path = path
        self._hashed = _hash()

    @property
    def path(self) -> Path:
        """The path with the checksum of the content so far."""
        return self._path.with_name(f"{self._path.stem}-{self._hashed.hexdigest()}.parquet")

    def writable(self) -> bool:
        """Return True, as for any file that is open for writing."""
        return True

    def write(self, content: Any) -> int:
        """Write bytes and return their number.

        Parameters
        ----------
        content : bytes-like
            Bytes to append to the file.

        Returns
        -------
        int
            Number of bytes.
        """
        self._hashed.update(content)
        return self.file.write(content)

    def tell(self) -> int:
        """Return the number of bytes that were written."""
        return self.file.tell()


def remove_temporaries(folder: Path) -> list[Path]:
    """Remove half-written files of writers that were killed. The caller holds the lock of the study.

    Parameters
    ----------
    folder : Path
        Folder of the study.

    Returns
    -------
    list of Path
        Removed files.
    """
    removed = []
    for parent in (folder, folder / "trials", folder / "provenance", folder / "searches"):
        for path in parent.glob(".*.tmp"):
            with suppress(OSError):
                path.unlink()
                removed.append(path)
    return removed


def _sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk.

    Parameters
    ----------
    folder : Path
        Existing folder whose files were created, renamed or removed.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
