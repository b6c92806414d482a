"""What a dataset says of its rows besides features and labels: groups, and the test fold of each row.

`groups` and `test_fold` are keys of any dataset's configuration: the name of a column of the frame that its
loader returns, which is then no feature; a file with a value for each row (.npy, or text with a line each);
or a list of values. A loader may return groups itself, after X and y.
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
from orchestrator.study.names import did_you_mean
from orchestrator.study.text import one_line, shown

GROUPS, TEST_FOLD = "groups", "test_fold"
NAMES = (GROUPS, TEST_FOLD)
DEDUPLICATE = "deduplicate"

_LABEL_TYPES = {GROUPS: AUTO, TEST_FOLD: NUMBER}
"""How values that a file holds as text are read."""


def own_arguments(loader: Callable[..., Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a loader, which may take a name of ours as an argument of its own."""
    try:
        names = set(inspect.signature(loader).parameters)
    except (ValueError, TypeError):  # of a compiled function
        names = set()
    return {
        name: value for name, value in params.items() if name not in (*NAMES, DEDUPLICATE) or name in names
    }


def require_arguments(loader: Callable[..., Any], params: Mapping[str, Any]) -> None:
    """Raise a DatasetError if a loader needs an argument that its configuration does not give.

    Parameters
    ----------
    loader : callable
    params : mapping
        The arguments that the configuration gives, by name.
    """
    try:
        known = inspect.signature(loader).parameters.values()
    except (ValueError, TypeError):  # of a compiled function
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
    """Read metadata from where a configuration says; return it, and the features without its columns.

    Parameters
    ----------
    X : object
        What the loader returned.
    sources : mapping
        A column of X, a file or the values themselves, by name.
    folders : list of Path
        Where files are looked for.

    Raises
    ------
    DatasetError
        If there is no such column or file, or the file cannot be read.
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
    """Return a value for each of n rows: booleans, integers, floats or strings.

    Raises
    ------
    DatasetError
        If a row has none, all have the same, or values are of another kind.
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
            raise DatasetError(f"{name}, read as labels are: {error}") from error
        if len(classes) == 1:
            raise DatasetError(
                f"expected two values or more as {name}, so that rows can be held out by them; found "
                f"{shown(classes[0].item())} in all {n} rows; correct what it names, or take it off"
            )
        if name == TEST_FOLD and (classes.dtype.kind != "i" or classes[0] < -1):
            raise DatasetError(
                "expected whole numbers from 0 as test_fold, and -1 for rows that are always trained on, "
                f"found {shown(classes[0].item())}"
            )
        checked[name] = classes[codes]
    return checked


def _read(name: str, source: str, X: Any, folders: list[Path]) -> Any:
    path = next((folder / source for folder in folders if (folder / source).is_file()), None)
    if path is None:
        columns = f"a column ({', '.join(map(str, X.columns[:20]))}) or " if hasattr(X, "columns") else ""
        raise DatasetError(f"{name}={shown(source)} names neither {columns}a file; correct it")
    if problem := file_problem(path):
        raise DatasetError(f"{name}: {problem}")
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"cannot read {name} from {path}: {one_line(error)}; expected .npy or text"
        ) from error
    texts = pd.Series([line.removesuffix("\r") for line in (lines[:-1] if not lines[-1].strip() else lines)])
    return typed_labels(texts, _LABEL_TYPES[name], lambda row: f"{path}, line {row + 1}").tolist()


def folders_of(params: Mapping[str, Any]) -> Iterator[Path]:
    """Yield where a file beside the data of a loader with these arguments may be."""
    yield Path()
    for name, value in params.items():
        if name in ("folder", "path") and isinstance(value, str):
            place = Path(value).expanduser()
            yield place if name == "folder" else place.parent
