"""Names of the files to which data in memory are written."""

import re
from pathlib import Path

MEMORY_FOLDER = "data_in_memory"
"""Name of a study's folder with the data that were given in memory."""

_NAME = re.compile(r".+-[0-9a-f]{12}\.(parquet|npz)")
"""Names of the files in that folder, which contain a hash of their content."""


def lost_copy(path: Path) -> str:
    """Return the message about a missing file if it is a copy of data in memory; empty for any other file.

    Parameters
    ----------
    path : Path
        File that does not exist.
    """
    if path.parent.name != MEMORY_FOLDER or not _NAME.fullmatch(path.name):
        return ""
    return f"there is no file {path}, the copy of data in memory; call compare with the data again"
