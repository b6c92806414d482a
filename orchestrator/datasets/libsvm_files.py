"""The datasets of a folder: LIBSVM files by their names."""

from pathlib import Path

SUFFIXES = (".libsvm.xz", ".libsvm.bz2", ".libsvm.gz", ".libsvm", "")


def libsvm_names(folder: str | Path) -> list[str]:
    """Return the sorted names of the datasets whose files lie in a folder; none if it does not exist."""
    endings = SUFFIXES[:-1]  # a file without any ending could be anything
    files = (path.name for path in Path(folder).glob("*.libsvm*") if path.is_file())
    return sorted(
        {name.removesuffix(ending) for name in files for ending in endings if name.endswith(ending)}
    )


def libsvm_path(name: str, folder: Path) -> Path | None:
    """Return the path of a dataset's file in a folder, if it is there."""
    return next((path for suffix in SUFFIXES if (path := folder / f"{name}{suffix}").is_file()), None)
