"""Files that are written whole or not at all."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: Path, name: Callable[[], str] | None = None) -> Iterator[BinaryIO]:
    """Open a temporary file that takes its place when it is whole and on disk, or is removed.

    Parameters
    ----------
    path : Path
        The file to write or replace. A link in its place is replaced, never followed.
    name : callable, optional
        Returns the final name, if it depends on what was written.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with temporary.open("xb") as file:  # exclusive, so that no link is followed
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path if name is None else path.with_name(name()))
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
