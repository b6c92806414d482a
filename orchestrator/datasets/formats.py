"""Formats of data files, recognised by the end of a file's name, and their configurations as datasets."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
"""Suffixes of compressed files that the readers of text files decompress."""

TRAIN, TEST = "train", "test"
"""Keys of the two files of a given split."""


@dataclass(frozen=True)
class Format:
    """Format of data files.

    Attributes
    ----------
    loader : str
        Name of the function of `orchestrator.datasets` that reads it.
    has_columns : bool
        Whether its files are tables with named columns, of which one holds the labels. Default True.
    is_text : bool
        Whether its files may be compressed. Default False.
    """

    loader: str
    has_columns: bool = True
    is_text: bool = False

    @property
    def target(self) -> str:
        """Dotted path of the loader."""
        return f"orchestrator.datasets.{self.loader}"


FORMATS: Mapping[str, Format] = {
    ".csv": Format("csv_file", is_text=True),
    ".tsv": Format("csv_file", is_text=True),
    ".tab": Format("csv_file", is_text=True),
    ".parquet": Format("parquet_file"),
    ".feather": Format("feather_file"),
    ".xlsx": Format("excel_file"),
    ".arff": Format("arff_file", is_text=True),
    ".libsvm": Format("libsvm_file", has_columns=False, is_text=True),
    ".svm": Format("libsvm_file", has_columns=False, is_text=True),
    ".npz": Format("npz_file", has_columns=False),
}
"""Formats by suffix, in lower case."""

TABLE_LOADERS = frozenset(each.target for each in FORMATS.values() if each.has_columns)
"""Dotted paths of the loaders of tables with named columns."""

_SEPARATED = "if it is a table with a line for each row, rename it to {stem}.csv"
_PACKED = "unpack it, and name a file in it"
_AS_LINES = "convert it: pandas.read_json({path!r}, lines=True).to_csv('{stem}.csv', index=False)"
_PICKLED = "load it in Python, and pass its data to svmbench.compare"
_OF_SPREADSHEET = "save it as {stem}.xlsx or {stem}.csv"

_REMEDIES: Mapping[str, str] = {
    **dict.fromkeys((".txt", ".dat", ".data", ".asc", ".names"), _SEPARATED),
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z", ".rar"), _PACKED),
    ".json": "convert it: pandas.read_json({path!r}).to_csv('{stem}.csv', index=False)",
    **dict.fromkeys((".jsonl", ".ndjson"), _AS_LINES),
    ".npy": (
        "if the last column holds the labels: table = numpy.load({path!r}), then "
        "numpy.savez('{stem}.npz', X=table[:, :-1], y=table[:, -1])"
    ),
    **dict.fromkeys((".pkl", ".pickle", ".joblib"), _PICKLED),
    **dict.fromkeys((".xls", ".xlsm", ".xlsb", ".ods"), _OF_SPREADSHEET),
    ".arrow": "if it is a Feather file, rename it to {stem}.feather",
    "": "add the suffix of its format to its name, such as {stem}.csv",
}
"""Remedies for files that no loader reads, by suffix, in lower case."""

_OTHER_REMEDY = "convert it to .csv or .parquet"

_UNSAFE = re.compile(r"[^\w-]+")
"""Characters that a dataset's name does not keep, because overrides such as `dataset.NAME.sep` could not name
it."""


def is_path(name: str) -> bool:
    """Return whether a dataset's name is the path of a file.

    It is if it names a folder, ends like a data file, or has a suffix and is an existing file.

    Parameters
    ----------
    name : str
        Name as typed.
    """
    named = name in (".", "..") or "/" in name or os.sep in name or _suffixes(name)[0] in FORMATS
    return named or (bool(Path(name).suffix) and os.path.isfile(name))


def _suffixes(path: str) -> tuple[str, str]:
    """Return the suffix of a file's format and that of its compression, in lower case; empty if absent.

    Parameters
    ----------
    path : str
        Path of the file.
    """
    found = Path(path)
    compression = found.suffix.lower()
    if compression not in COMPRESSIONS:
        return compression, ""
    return Path(found.stem).suffix.lower(), compression


def dataset_name(path: str) -> str:
    """Return the name of the dataset in a file: the file's name without suffixes.

    Characters other than letters, digits, `-` and `_` are replaced by `_`.

    Parameters
    ----------
    path : str
        Path of the file.
    """
    name = Path(path).name
    for suffix in reversed(_suffixes(path)):
        name = name[: len(name) - len(suffix)]
    return _UNSAFE.sub("_", name).strip("_") or "table"


def format_problem(path: str) -> str:
    """Return why no loader reads a file of this name, in one sentence; empty if one does.

    Parameters
    ----------
    path : str
        Path of the file.
    """
    suffix, compression = _suffixes(path)
    found = FORMATS.get(suffix)
    if found is None:
        expected = f"{path}: expected a data file, {' '.join(FORMATS)}, found"
        if Path(path).expanduser().is_dir():
            return f"{expected} a folder; name a file in it"
        name = Path(path).name
        stem = name[: len(name) - len(suffix + compression)]
        remedy = _REMEDIES.get(suffix, _OTHER_REMEDY).format(path=path, stem=stem)
        return f"{expected} {f'the suffix {suffix}' if suffix else 'no suffix'}; {remedy}"
    if compression and not found.is_text:
        return f"{path}: a {suffix} file cannot be read compressed; decompress it"
    return ""


def has_columns(path: str) -> bool:
    """Return whether a file is a table with named columns.

    Parameters
    ----------
    path : str
        Path of a file without `format_problem`.
    """
    return FORMATS[_suffixes(path)[0]].has_columns


def file_node(
    path: str, label: str | int | None = None, drop: Sequence[str | int] = (), groups: Any = None
) -> dict[str, Any]:
    """Return the configuration of the dataset in a file, as a YAML file would have it.

    Parameters
    ----------
    path : str
        Path of a file without `format_problem`.
    label : str or int, optional
        Column of labels. None if the format has none, or the user has named none.
    drop : sequence of str or int
        Columns that are not features. Default: none.
    groups : object, optional
        Column, file or values of the groups of rows.
    """
    found = FORMATS[_suffixes(path)[0]]
    node: dict[str, Any] = {"_target_": found.target, "path": path}
    if found.loader == "libsvm_file":
        folder, name = os.path.split(path)
        node = {"_target_": found.target, "name": name, "folder": folder or "."}
    elif label is not None:
        node["label"] = label
    if found.has_columns:
        node |= {"drop": [*drop], "unlabelled": "drop"}
    if found.loader == "csv_file":
        node["sep"] = "auto"
    return node if groups is None else {**node, "groups": groups}


def split_node(
    train: str, test: str, label: str | int | None = None, drop: Sequence[str | int] = (), groups: Any = None
) -> dict[str, Any]:
    """Return the configuration of a dataset whose training and test rows are in two files.

    Parameters
    ----------
    train, test : str
        Paths of files of the same kind without `format_problem`.
    label : str or int, optional
        Column of labels, as in `file_node`.
    drop : sequence of str or int
        Columns that are not features. Default: none.
    groups : object, optional
        Column of the groups of rows.
    """
    parts = {key: file_node(path, label, drop) for key, path in ((TRAIN, train), (TEST, test))}
    node = {"_target_": "orchestrator.datasets.two_files", **parts}
    return node if groups is None else {**node, "groups": groups}
