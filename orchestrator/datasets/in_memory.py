"""Datasets in memory, written to a file once, so that workers and later runs of a study can read them."""

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse
from pandas.api.types import is_numeric_dtype

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.formats import file_node
from orchestrator.datasets.likely_labels import MAX_NAMES, likely_labels
from orchestrator.study.atomic import atomic_write
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import one_line, shown

LABEL = "label"
"""Name of the column of labels of a table whose labels were given apart."""


def written_dataset(folder: Path, name: str, X: Any, y: Any, groups: str | None = None) -> dict[str, Any]:
    """Write features and labels to a file of a folder, and return the configuration that reads it.

    The file's name contains a hash of its content. A file that exists is not written again.

    Parameters
    ----------
    folder : Path
        Folder of the file, which is created if necessary.
    name : str
        Name of the dataset.
    X : DataFrame, array or sparse matrix, shape (n, d)
        Features; with a column of labels if `y` is its name.
    y : str or array-like, shape (n,)
        Labels, or the name of their column.
    groups : str, optional
        Column of a frame that names the group of each row.

    Raises
    ------
    DatasetError
        If the data cannot be written.
    """
    if scipy.sparse.issparse(X):
        matrix = scipy.sparse.csr_matrix(X)
        arrays = {key: getattr(matrix, key) for key in ("data", "indices", "indptr", "shape")}
        return _archive(
            folder, name, {**arrays, "format": np.array(b"csr"), "y": _labels(y, matrix.shape[0])}
        )
    frame = _frame(X)
    if frame is None and groups is None:
        features = np.asarray(X)
        return _archive(folder, name, {"X": features, "y": _labels(y, len(features))})
    if frame is None:
        raise DatasetError(
            f"groups={shown(groups)}: expected the name of a column of a frame; make the data a frame "
            "with the groups as a column"
        )
    table, label = _with_labels(frame, y)
    if groups is not None and groups not in table.columns:
        raise DatasetError(_no_column(table, groups, "groups"))
    node = file_node(_parquet(folder, name, table), label, groups=groups)
    categories = [
        each for each in table.columns if each not in (label, groups) and _has_number_categories(table[each])
    ]
    return {**node, "categories": categories} if categories else node


def has_float_labels(X: Any, y: Any) -> bool:
    """Return whether labels are floats, which a dataset holds as integers.

    Parameters
    ----------
    X : DataFrame, array or sparse matrix, shape (n, d)
        Features; with a column of labels if `y` is its name.
    y : str or array-like, shape (n,)
        Labels, or the name of their column, which `written_dataset` has accepted.
    """
    frame = None if scipy.sparse.issparse(X) else _frame(X)
    if frame is None:
        return bool(np.asarray(y).dtype.kind == "f")
    table, name = _with_labels(frame, y)
    dtype = table[name].dtype
    return bool(getattr(getattr(dtype, "categories", None), "dtype", dtype).kind == "f")


def _has_number_categories(column: pd.Series) -> bool:
    """Return whether a column has categories of numbers, which Parquet stores as numbers.

    Parameters
    ----------
    column : Series
        Column of a frame.
    """
    return isinstance(column.dtype, pd.CategoricalDtype) and is_numeric_dtype(column.dtype.categories)


def _frame(X: Any) -> pd.DataFrame | None:
    """Return features as a frame with texts as names of columns; None for an array of numbers.

    Parameters
    ----------
    X : DataFrame, object with `to_pandas`, or array-like, shape (n, d)
        Features as the caller passed them.
    """
    if not isinstance(X, pd.DataFrame) and callable(getattr(X, "to_pandas", None)):
        X = X.to_pandas()
    if not isinstance(X, pd.DataFrame):
        try:
            array = np.asarray(X)
        except ValueError as error:  # rows of different lengths
            raise DatasetError(f"expected a table with rows of one length, but {one_line(error)}") from error
        if array.ndim != 2:
            raise DatasetError(
                f"expected X with two dimensions (rows, features), found shape {array.shape}; reshape it"
            )
        if array.dtype.kind in "biuf":
            return None
        X = pd.DataFrame(array, columns=[f"x{at}" for at in range(array.shape[1])]).infer_objects()
    return X.set_axis(list(map(str, X.columns)), axis=1).reset_index(drop=True)


def _with_labels(frame: pd.DataFrame, y: Any) -> tuple[pd.DataFrame, str]:
    """Return a table with a column of labels, and the name of this column.

    Parameters
    ----------
    frame : DataFrame, shape (n, d)
        Features, with a column of labels if `y` is its name.
    y : str, scalar, tuple or array-like, shape (n,)
        Labels, or the name of their column.
    """
    # A name may also be a NumPy scalar, or a tuple, as `columns[-1]` returns it for some indices.
    if np.ndim(y) == 0 or (isinstance(y, tuple) and str(y) in frame.columns):
        if str(y) not in frame.columns:
            raise DatasetError(_no_column(frame, y, "label"))
        return frame, str(y)
    labels = _labels(y, len(frame))
    name = str(getattr(y, "name", None) or LABEL)
    while name in frame.columns:
        name += "_"
    return frame.assign(**{name: labels}), name


def _labels(y: Any, n: int) -> np.ndarray:
    """Return labels as an array without Python objects.

    Parameters
    ----------
    y : array-like, shape (n,)
        Labels as the caller passed them.
    n : int
        Number of rows of the features.
    """
    labels = np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n,):
        raise DatasetError(f"expected {n:,} labels, one for each row, found shape {labels.shape}")
    if labels.dtype.kind != "O":
        return labels
    if missing := int(np.asarray(pd.isna(labels)).sum()):
        raise DatasetError(f"expected a label in each row, found {missing:,} without one; leave these out")
    kinds = {type(label) for label in labels.tolist()}
    if len(kinds) > 1 and not kinds <= {int, float, bool}:
        named = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DatasetError(f"expected labels of one type, found {named}; convert them")
    return np.array(labels.tolist())


def _no_column(frame: pd.DataFrame, name: Any, key: str) -> str:
    """Return the message about a column that a frame lacks.

    Parameters
    ----------
    frame : DataFrame
        Table of the caller, whose columns the message lists.
    name : object
        Column as the caller named it.
    key : str
        Argument that names it.
    """
    names = list(map(str, frame.columns))
    columns = did_you_mean(str(name), names) or f"; it has {', '.join(names[:MAX_NAMES])}"
    return f"{key}={shown(name)}: the frame has no such column{columns}"


def _parquet(folder: Path, name: str, table: pd.DataFrame) -> str:
    """Write a table as Parquet and return the path of the file.

    Parameters
    ----------
    folder : Path
        Folder of the file.
    name : str
        Name of the dataset.
    table : DataFrame
        Table with labels.
    """
    if twice := next((each for each in table.columns if list(table.columns).count(each) > 1), None):
        raise DatasetError(f"expected different names of columns, found {shown(twice)} twice; rename one")
    try:
        content = pa.Table.from_pandas(table, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DatasetError(_column_problem(table) or one_line(error)) from error
    try:
        return _named_by_content(folder, name, ".parquet", lambda file: _write_table(content, file))
    except pa.ArrowException as error:  # a type that Arrow has and Parquet does not
        raise DatasetError(_column_problem(table) or one_line(error)) from error


def _column_problem(table: pd.DataFrame) -> str:
    """Return a sentence about each column that Parquet cannot hold, with the conversion it needs.

    Parameters
    ----------
    table : DataFrame
        Table with labels.
    """
    problems = []
    for name in table.columns:
        column = table[name]
        try:
            _write_table(pa.Table.from_pandas(table[[name]], preserve_index=False), io.BytesIO())
        except (pa.ArrowException, TypeError, ValueError):
            kinds = sorted({type(value).__name__ for value in column.dropna()})
            is_sparse = isinstance(column.dtype, pd.SparseDtype)
            found = "sparse values" if is_sparse else f"values of type {' and '.join(kinds)}"
            problems.append(
                f"column {shown(name)}: expected numbers, texts, dates or categories of one type, "
                f"found {found}; convert it, for example by "
                f"frame[{shown(name)}]{'.sparse.to_dense()' if is_sparse else '.astype(str)'}"
            )
    return "; ".join(problems)


def _write_table(content: pa.Table, file: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(content, file, write_page_checksum=True)


def _archive(folder: Path, name: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Write arrays to an archive and return the configuration that reads it.

    Parameters
    ----------
    folder : Path
        Folder of the file.
    name : str
        Name of the dataset.
    arrays : mapping of str to array
        Features and labels.
    """
    path = _named_by_content(folder, name, ".npz", lambda file: np.savez(file, **arrays))
    return file_node(path)


def _named_by_content(folder: Path, name: str, suffix: str, write: Any) -> str:
    """Write a file whose name contains a hash of its content, and return its path.

    Parameters
    ----------
    folder : Path
        Folder of the file.
    name : str
        Start of the file's name.
    suffix : str
        End of the file's name.
    write : callable
        Writes the content to an open file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []

    def final_name() -> str:
        with written[0].open("rb") as file:
            digest = hashlib.file_digest(file, "blake2b").hexdigest()
        written.append(folder / f"{name}-{digest[:12]}{suffix}")
        return written[-1].name

    with atomic_write(folder / f"{name}{suffix}", final_name) as file:
        written.append(Path(file.name))
        write(file)
    return str(written[-1])


def label_hint_of(frame: Any) -> str:
    """Return a sentence that asks for the column of labels of a frame, with its columns and likely ones.

    Parameters
    ----------
    frame : DataFrame or object with `to_pandas`
        Table with labels.
    """
    table = _frame(frame)
    assert table is not None
    names = list(map(str, table.columns))
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    likely = likely_labels(table)
    perhaps = f"; likely: {', '.join(map(repr, likely))}" if likely else ""
    return (
        "expected the column to predict, as in compare(frame, label, solvers), found none; the frame has "
        f"{', '.join(names[:MAX_NAMES])}{more}{perhaps}"
    )
