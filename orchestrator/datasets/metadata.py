"""Metadata of the rows for splitters: groups, and the test fold of each row.

`groups` and `test_fold` are keys of any dataset's configuration. A value is one of three: the name of a
column of the loader's frame, which is then not a feature; a file with a value for each row (`.npy`, or text
with one value per line); or a list of values. A loader may also return groups after `X` and `y`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.files import file_problem
from orchestrator.datasets.labels import values_and_codes
from orchestrator.datasets.spellings import AUTO, NUMBER, typed_labels
from orchestrator.datasets.table import typed_column
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import one_line, shown

GROUPS, TEST_FOLD = "groups", "test_fold"
NAMES = (GROUPS, TEST_FOLD)
"""Keys of metadata in a dataset's configuration."""
DEDUPLICATE = "deduplicate"

_LABEL_TYPES = {GROUPS: AUTO, TEST_FOLD: NUMBER}
"""Label type with which text values of a file are converted, by name."""


def loader_arguments(loader: Callable[..., Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configured arguments for a loader.

    Keys of metadata are passed only to a loader that has a parameter of the same name.

    Parameters
    ----------
    loader : callable
        Loader of the dataset.
    params : mapping
        Configured keys and values.
    """
    try:
        names = set(inspect.signature(loader).parameters)
    except (ValueError, TypeError):  # a compiled function may have no signature
        names = set()
    return {
        name: value for name, value in params.items() if name not in (*NAMES, DEDUPLICATE) or name in names
    }


def require_arguments(loader: Callable[..., Any], params: Mapping[str, Any]) -> None:
    """Raise a DatasetError if the configuration lacks a required argument of a loader.

    Parameters
    ----------
    loader : callable
        Loader of the dataset.
    params : mapping
        Configured arguments, by name.
    """
    try:
        known = inspect.signature(loader).parameters.values()
    except (ValueError, TypeError):  # a compiled function may have no signature
        return
    by_name = [each for each in known if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    lacking = [each.name for each in by_name if each.default is each.empty and each.name not in params]
    if not lacking:
        return
    further = [name for name in params if name not in {each.name for each in by_name}]
    near = next((name for name in further if did_you_mean(name, lacking)), None)
    instead = f"rename {near!r} to {lacking[0]!r}" if near else f"add a line `{lacking[0]}: …`"
    what = "the column of labels" if lacking[0] == "label" else f"a value for {lacking[0]!r}"
    raise DatasetError(
        f"its configuration lacks {lacking[0]!r}, {what}; found {', '.join(params) or 'no argument'}; "
        f"{instead}"
    )


def take_metadata(X: Any, sources: Mapping[str, Any], folders: list[Path]) -> tuple[Any, dict[str, Any]]:
    """Read metadata from the configured sources; return the remaining features and the metadata.

    Parameters
    ----------
    X : object
        Features of the loader.
    sources : mapping
        Source of each value: a column of `X`, a file, or the values, by name.
    folders : list of Path
        Folders in which files are searched.

    Returns
    -------
    X : object
        Features without columns of metadata.
    metadata : dict of str to object
        Values of each row, by name.

    Raises
    ------
    DatasetError
        If a column or file does not exist, or the file cannot be read.
    """
    found, columns = {}, []
    for name, source in sources.items():
        if isinstance(X, pd.DataFrame) and isinstance(source, str) and source in X.columns:
            found[name] = typed_column(X, source, _LABEL_TYPES[name])
            columns.append(source)
        elif isinstance(source, str):
            found[name] = _read(name, source, X, folders)
        else:
            found[name] = source
    return (X.drop(columns=columns) if columns else X), found


def checked_metadata(found: Mapping[str, Any], n: int) -> dict[str, NDArray[Any]]:
    """Return metadata as arrays of shape (n,): booleans, integers, floats or strings.

    Parameters
    ----------
    found : mapping
        Values of each row, by name.
    n : int
        Number of rows.

    Raises
    ------
    DatasetError
        If a row has no value, all values are equal, or values have another type.
    """
    checked = {}
    for name, values in found.items():
        if np.shape(values) not in ((n,), (n, 1)):
            raise DatasetError(
                f"expected {name} with a value for each of {n} rows, found shape {np.shape(values)}; "
                "correct what it names"
            )
        try:
            classes, codes = values_and_codes(values, n)
        except DatasetError as error:
            raise DatasetError(f"{name}, read like labels: {error}") from error
        if len(classes) == 1:
            raise DatasetError(
                f"expected at least two values as {name}, found {shown(classes[0].item())} in all {n} rows; "
                f"correct or remove `{name}`"
            )
        if name == TEST_FOLD and (classes.dtype.kind != "i" or classes[0] < -1):
            raise DatasetError(
                "expected whole numbers from 0 as test_fold, and -1 for rows that are always training rows, "
                f"found {shown(classes[0].item())}"
            )
        checked[name] = classes[codes]
    return checked


def _read(name: str, source: str, X: Any, folders: list[Path]) -> Any:
    """Read the values of a file; text values are converted like labels.

    Parameters
    ----------
    name : str
        Name of the metadata.
    source : str
        Configured path.
    X : object
        Features of the loader, whose columns are listed in messages.
    folders : list of Path
        Folders in which the file is searched.
    """
    path = next((folder / source for folder in folders if (folder / source).is_file()), None)
    if path is None:
        columns = (
            f"neither a column of the features ({', '.join(map(str, X.columns[:20]))}) nor "
            if hasattr(X, "columns")
            else "not "
        )
        raise DatasetError(f"{name}={shown(source)} is {columns}a file; correct it")
    if problem := file_problem(path):
        raise DatasetError(f"{name}: {problem}")
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # Windows may write a byte-order mark
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"cannot read {name} from {path}: {one_line(error)}; expected .npy or text"
        ) from error
    texts = pd.Series([line.removesuffix("\r") for line in (lines[:-1] if not lines[-1].strip() else lines)])
    return typed_labels(texts, _LABEL_TYPES[name], lambda row: f"{path}, line {row + 1}").tolist()


def folders_of(params: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the folders in which a file of metadata may be: the working folder, and the folder of the data.

    Parameters
    ----------
    params : mapping
        Arguments of the loader.

    Yields
    ------
    Path
        Folder.
    """
    yield Path()
    for name, value in params.items():
        if name in ("folder", "path") and isinstance(value, str):
            path = Path(value).expanduser()
            yield path if name == "folder" else path.parent
