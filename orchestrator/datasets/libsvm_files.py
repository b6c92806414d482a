"""File names of the LIBSVM datasets in a folder."""

import os
from pathlib import Path

SUFFIXES = (".libsvm.xz", ".libsvm.bz2", ".libsvm.gz", ".libsvm", "")
"""Suffixes of LIBSVM files, in order of precedence."""


def libsvm_names(folder: str | Path) -> list[str]:
    """Return the sorted names of the datasets with a file in a folder; empty if the folder does not exist.

    Parameters
    ----------
    folder : path
        Data folder; `~` is the user's home.
    """
    folder = os.path.expanduser(folder)
    endings = SUFFIXES[:-1]  # a file without a suffix may have any format
    files = (path.name for path in Path(folder).glob("*.libsvm*") if path.is_file())
    return sorted(
        {name.removesuffix(ending) for name in files for ending in endings if name.endswith(ending)}
    )


def libsvm_path(name: str, folder: Path) -> Path | None:
    """Return the path of a dataset's file in a folder; None if it does not exist.

    Parameters
    ----------
    name : str
        Name of the dataset.
    folder : Path
        Data folder.
    """
    return next((path for suffix in SUFFIXES if (path := folder / f"{name}{suffix}").is_file()), None)
