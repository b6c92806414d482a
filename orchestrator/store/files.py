"""The files of a study: written whole or not at all, read without waiting, damage named.

The name of a part of the trials ends in a checksum of its bytes. No file is written through a link, and a
pipe, a folder or a link to nothing in the place of a file is damage like any other.
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
_DAMAGE = {errno.EIO, errno.ELOOP, errno.EISDIR, errno.ENOTDIR, errno.ENXIO, errno.ENODEV}
_LARGE, _LARGEST = 1 << 26, 1 << 34

FOLDERS = ("trials", "provenance", "logs", "searches")
"""The folders of a study that a run writes to."""


class StoreError(RuntimeError):
    """A study's folder cannot be read or written; the message says which and what to do."""


class DamageError(StoreError):
    """A file of a study is not what svmbench wrote, or is gone.

    Attributes
    ----------
    path : Path
    reason : str
    """

    def __init__(self, study: Path, path: Path, reason: str):
        super().__init__(
            f"{path} is damaged ({reason}); nothing is reported or run until it is restored or set aside, "
            f"by: {repair_command(study)}"
        )
        self.path = path
        self.reason = reason


def repair_command(study: Path) -> str:
    """Return the command that repairs the study of a folder."""
    elsewhere = study.parent != Path("results").absolute()
    place = [f"paths.results={study.parent}"] if elsewhere else []
    return shlex.join(["svmbench", "repair", f"study={study.name}", *place])


# -- reading -------------------------------------------------------------------------------------


def read_whole(study: Path, path: Path) -> bytes:
    """Return the bytes of a regular file.

    Raises
    ------
    FileNotFoundError
        When the file is gone.
    DamageError
        When something else is in its place, or the disk cannot give it back.
    StoreError
        When this user or process may not read it.
    """
    with _regular_file(study, path) as file:
        return file.read()


@contextmanager
def opened_part(study: Path, path: Path) -> Iterator[bytes | BinaryIO]:
    """Give the bytes of a Parquet file, or the open file if it is large, whose checksum is that in its name.

    Raises
    ------
    FileNotFoundError, DamageError, StoreError
        See `read_whole`.
    """
    with _regular_file(study, path) as file:
        content: bytes | BinaryIO = file
        if os.fstat(file.fileno()).st_size > _LARGE:  # of which a reader may need few columns
            found = hashlib.file_digest(file, _hash).hexdigest()
            file.seek(0)
        else:
            content = file.read()
            found = checksum(content)
        expected = _PART.fullmatch(path.name)
        if expected is not None and found != expected["checksum"]:
            raise DamageError(study, path, "its bytes do not have the checksum in its name")
        yield content


@contextmanager
def _regular_file(study: Path, path: Path) -> Iterator[io.BufferedReader]:
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
            raise DamageError(study, path, "it is a link to nothing") from None
        raise
    except OSError as error:
        if error.errno in _DAMAGE:
            raise DamageError(study, path, f"{error.strerror}") from None
        raise StoreError(f"cannot read {path}: {error.strerror}") from None


def require_folder(study: Path, path: Path) -> None:
    """Refuse what is in the place of a folder of a study; a link would be followed to files of others.

    Raises
    ------
    DamageError
        When it is neither a folder nor a link to one, and repair can set it aside.
    StoreError
        When it is a link to a folder, which may hold all that was stored.
    """
    if not os.path.lexists(path) or is_folder(path):
        return
    if os.path.isdir(path):
        raise StoreError(
            f"{path} is a link to a folder, which svmbench does not follow; put the folder itself there, or "
            "remove the link"
        )
    raise DamageError(study, path, "it is not a folder")


def listed(study: Path, folder: Path, start: str, end: str) -> list[Path]:
    """Return what is in a folder under names that start and end so, in order.

    Raises
    ------
    DamageError, StoreError
        When it is no folder, or cannot be read; one that is not there is empty.
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
    """Whether a file's name holds a checksum of its bytes."""
    return _PART.fullmatch(path.name) is not None


def checksum(content: bytes) -> str:
    """Return the checksum of bytes, as the names of parts hold it."""
    return _hash(content).hexdigest()


def is_plain_file(path: Path) -> bool:
    """Whether a path is a regular file itself, not a link to one."""
    return stat.S_ISREG(path.lstat().st_mode)


def is_folder(path: Path) -> bool:
    """Whether a path is a folder itself, not a link to one."""
    return stat.S_ISDIR(path.lstat().st_mode)


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what stays the same while a file or folder is there, whatever its name; None if it is not."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _hash(content: bytes = b"") -> "hashlib.blake2b":
    return hashlib.blake2b(content, digest_size=8)


# -- writing -------------------------------------------------------------------------------------


@contextmanager
def replacing(study: Path, target: Path) -> Iterator[BinaryIO]:
    """Open a file that takes its name when it is whole, or leaves everything as it was.

    Raises
    ------
    DamageError
        When something that is no file has the name.
    StoreError
        When it cannot be written.
    """
    with naming_errors(study, target):
        with atomic_write(target) as file:
            yield file
        _sync_folder(target.parent)


@contextmanager
def new_part(study: Path) -> Iterator["HashedFile"]:
    """Open a new part, which takes a name with the checksum of its bytes when it is whole."""
    path = study / "trials" / f"part-{datetime.now():%Y%m%d%H%M%S%f}.parquet"
    hashed = HashedFile(path)
    with naming_errors(study, path):
        with atomic_write(path, lambda: hashed.path.name) as file:
            hashed.file = file
            yield hashed
        _sync_folder(path.parent)


@contextmanager
def naming_errors(study: Path, path: Path) -> Iterator[None]:
    """Name the file of a study that cannot be written."""
    try:
        yield
    except OSError as error:
        if error.errno in _DAMAGE:
            raise DamageError(study, path, f"{error.strerror}") from None
        raise StoreError(
            f"cannot write {path}: {error.strerror}; "
            f"make room or mend the folder, then run the same command to resume"
        ) from None


class HashedFile(io.RawIOBase):
    """A file whose name gets a checksum of what is written to it.

    Parameters
    ----------
    path : Path
        Its path without the checksum.

    Attributes
    ----------
    file : BinaryIO
        Where the content goes.
    """

    file: BinaryIO

    def __init__(self, path: Path):
        self._path = path
        self._hashed = _hash()

    @property
    def path(self) -> Path:
        """The path with the checksum of all that was written so far."""
        return self._path.with_name(f"{self._path.stem}-{self._hashed.hexdigest()}.parquet")

    def writable(self) -> bool:
        """Return true."""
        return True

    def write(self, content: Any) -> int:
        """Write content and return its number of bytes."""
        self._hashed.update(content)
        return self.file.write(content)

    def tell(self) -> int:
        """Return the number of bytes that were written."""
        return self.file.tell()


def remove_temporaries(folder: Path) -> list[Path]:
    """Remove what writers that are dead left half-written; the caller holds the study's lock."""
    removed = []
    for place in (folder, folder / "trials", folder / "provenance", folder / "searches"):
        for path in place.glob(".*.tmp"):
            with suppress(OSError):
                path.unlink()
                removed.append(path)
    return removed


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
