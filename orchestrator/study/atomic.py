"""Atomic writing of files: a file is written completely or not at all."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: Path, name: Callable[[], str] | None = None) -> Iterator[BinaryIO]:
    """Open a temporary file, and move it to `path` once it is complete and on disk.

    If the block raises, the temporary file is removed.

    Parameters
    ----------
    path : Path
        File to write or replace. A symbolic link is replaced, never followed.
    name : callable, optional
        Called without arguments after writing; returns the final file name in the same folder. By default
        the name is that of `path`.

    Yields
    ------
    BinaryIO
        The temporary file, open for writing.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with temporary.open("xb") as file:  # exclusive creation does not follow links
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path if name is None else path.with_name(name()))
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
