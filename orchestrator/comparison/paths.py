"""Data files that a path names, until the command line takes them as well."""

from pathlib import Path
from typing import Any

_LOADERS = {
    ".csv": "csv_file",
    ".tsv": "csv_file",
    ".parquet": "parquet_file",
    ".arff": "arff_file",
    ".npz": "npz_file",
}


def is_path(given: str) -> bool:
    """Return whether a text is the path of a data file.

    Parameters
    ----------
    given : str
        Path or name.
    """
    return "/" in given or Path(given).suffix in _LOADERS


def dataset_name(path: str) -> str:
    """Return the name of the dataset in a file.

    Parameters
    ----------
    path : str
        Path of the file.
    """
    return Path(path).stem


def file_node(path: str, label: Any, drop: Any = (), groups: Any = None) -> dict[str, Any]:
    """Return the configuration of a file.

    Parameters
    ----------
    path : str
        Path of the file.
    label : object
        Column of labels.
    drop : sequence of str
        Columns that are not features.
    groups : object
        Column of groups.
    """
    node = {"_target_": f"orchestrator.datasets.{_LOADERS[Path(path).suffix]}", "path": path}
    if label is not None:
        node["label"] = label
    return node if groups is None else {**node, "groups": groups}
