"""Where files of OpenML lie."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

SERVER = "https://www.openml.org"

_LOADERS = ("orchestrator.datasets.openml_file", "orchestrator.datasets.openml.openml_file")


class OpenML(NamedTuple):
    """A dataset of OpenML: its number, the folder of its files, and where it is fetched."""

    id: int
    folder: Path
    server: str

    @property
    def path(self) -> Path:
        """Its ARFF file."""
        return openml_path(self.id, self.folder)

    @property
    def is_whole(self) -> bool:
        """Whether its ARFF file is there, and what OpenML says of it."""
        return self.path.is_file() and self.path.with_suffix(".json").is_file()


def openml_path(id: int, folder: str | Path) -> Path:
    """Return the path of the ARFF file of a dataset in a folder."""
    return Path(folder).expanduser() / f"openml-{id}.arff"


def openml_of(node: Mapping[str, Any]) -> OpenML | None:
    """Return which dataset of OpenML a configuration reads; None for others."""
    number, folder = node.get("id"), node.get("folder")
    if node.get("_target_") in _LOADERS and type(number) is int and isinstance(folder, str):
        return OpenML(number, Path(folder).expanduser(), str(node.get("server") or SERVER).rstrip("/"))
    return None
