"""Paths of OpenML datasets in the data folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

SERVER = "https://www.openml.org"
"""Default address of the OpenML server."""

_LOADERS = ("orchestrator.datasets.openml_file", "orchestrator.datasets.openml.openml_file")


class OpenML(NamedTuple):
    """Dataset of OpenML.

    Attributes
    ----------
    id : int
        Number of the dataset.
    folder : Path
        Folder of its files.
    server : str
        Address of the OpenML server.
    """

    id: int
    folder: Path
    server: str

    @property
    def path(self) -> Path:
        """Path of the ARFF file."""
        return openml_path(self.id, self.folder)

    @property
    def is_whole(self) -> bool:
        """Whether both the ARFF file and OpenML's description exist."""
        return self.path.is_file() and self.path.with_suffix(".json").is_file()


def openml_path(id: int, folder: str | Path) -> Path:
    """Return the path of a dataset's ARFF file in a folder.

    Parameters
    ----------
    id : int
        Number of the dataset.
    folder : path
        Data folder.
    """
    return Path(folder).expanduser() / f"openml-{id}.arff"


def openml_of(node: Mapping[str, Any]) -> OpenML | None:
    """Return the OpenML dataset that a configuration reads; None for other loaders.

    Parameters
    ----------
    node : mapping
        Configuration of the dataset.
    """
    number, folder = node.get("id"), node.get("folder")
    if node.get("_target_") in _LOADERS and type(number) is int and isinstance(folder, str):
        return OpenML(number, Path(folder).expanduser(), str(node.get("server") or SERVER).rstrip("/"))
    return None
