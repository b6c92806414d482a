"""Datasets of a given split: training rows in one file, and test rows in another."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.metadata import TEST_FOLD
from orchestrator.datasets.table import noted, notes_of
from orchestrator.study.targets import TARGET, resolve
from orchestrator.study.text import shown

_MAX_LABELS = 5
"""Largest number of labels of a file that a message lists."""


def two_files(train: Mapping[str, Any], test: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Read the rows of two files, of which the second one holds the test rows.

    Use it with `PredefinedSplit` as the outer splitter, which then makes one fold.

    Parameters
    ----------
    train, test : mapping
        `_target_` of a loader and its arguments, for the training rows and for the test rows.

    Returns
    -------
    X : array, CSR matrix or DataFrame, shape (n, d)
        Features of the training rows, then of the test rows.
    y : array, shape (n,)
        Class label of each row.
    metadata : dict
        `test_fold`: -1 for training rows and 0 for test rows.

    Raises
    ------
    DatasetError
        If a file cannot be used, or the two have different columns or types of columns.
    """
    (X_train, y_train), (X_test, y_test) = _rows("train", train), _rows("test", test)
    y_train, y_test = _same_kind(np.asarray(y_train), np.asarray(y_test), train, test)
    sizes = len(y_train), len(y_test)
    X = _joined(X_train, X_test, (_origin(train), _origin(test)))
    folds = {TEST_FOLD: np.repeat([-1, 0], sizes)}
    return X, np.concatenate([y_train, y_test]), folds


def _rows(key: str, node: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the features and labels of one of the files.

    Parameters
    ----------
    key : str
        Name of the argument, for messages.
    node : mapping
        Loader and its arguments.
    """
    if not isinstance(node, Mapping) or not isinstance(node.get(TARGET), str):
        raise DatasetError(f"expected {key} with the _target_ of a loader, found {shown(node)}")
    arguments = {name: value for name, value in node.items() if name != TARGET}
    X, y, *_ = resolve(node[TARGET])(**arguments)
    return X, y


def _origin(node: Mapping[str, Any]) -> str:
    """Return the file of a part, for messages.

    Parameters
    ----------
    node : mapping
        Loader and its arguments.
    """
    return str(node.get("path") or node.get("name") or node[TARGET])


def _same_kind(
    y_train: Any, y_test: Any, train: Mapping[str, Any], test: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Return the labels of both files, as text if their kinds differ: numbers, truth values or text.

    Parameters
    ----------
    y_train, y_test : array, shape (n,)
        Labels of the files.
    train, test : mapping
        Loaders and their arguments.

    Raises
    ------
    DatasetError
        If the files have no label in common.
    """
    if _kind(y_train) != _kind(y_test):
        y_train, y_test = (
            np.asarray(_rows("", {**node, "label_type": "text"})[1], dtype=object) for node in (train, test)
        )
    known, found = ([*dict.fromkeys(y.tolist())] for y in (y_train, y_test))
    if known and found and not {*known} & {*found}:
        listed = (", ".join(map(shown, labels[:_MAX_LABELS])) for labels in (known, found))
        raise DatasetError(
            f"{_origin(train)} has the labels {next(listed)}, and {_origin(test)} has none of them, but "
            f"{next(listed)}; write the labels of both files in the same way"
        )
    return y_train, y_test


def _kind(y: np.ndarray) -> str:
    """Return the kind of labels: "number", "truth" or "text".

    Parameters
    ----------
    y : array, shape (n,)
        Labels of a file.
    """
    return "number" if y.dtype.kind in "iuf" else "truth" if y.dtype.kind == "b" else "text"


def _joined(X_train: Any, X_test: Any, files: tuple[str, str]) -> Any:
    """Return the features of both files, one below the other.

    Parameters
    ----------
    X_train, X_test : array, CSR matrix or DataFrame
        Features of the training file and of the test file.
    files : tuple of (str, str)
        Names of the files, for messages.
    """
    if isinstance(X_train, pd.DataFrame):
        return _joined_frames(X_train, X_test, files)
    d = X_train.shape[1], X_test.shape[1]
    if scipy.sparse.issparse(X_train) or scipy.sparse.issparse(X_test):
        parts = [scipy.sparse.csr_matrix(X) for X in (X_train, X_test)]
        for X in parts:  # a file without the last features does not show how many there are
            X.resize(X.shape[0], max(d))
        return scipy.sparse.vstack(parts, format="csr")
    if d[0] != d[1]:
        raise DatasetError(
            f"{files[0]} has {d[0]:,} features and {files[1]} has {d[1]:,}; expected equal numbers"
        )
    return np.concatenate([X_train, X_test])


def _joined_frames(train: pd.DataFrame, test: pd.DataFrame, files: tuple[str, str]) -> pd.DataFrame:
    """Return two frames with the same columns, one below the other.

    Parameters
    ----------
    train, test : DataFrame
        Features of the training file and of the test file.
    files : tuple of (str, str)
        Names of the files, for messages.
    """
    if odd := [name for name in [*train.columns, *test.columns] if (name in train) != (name in test)]:
        lacks, has = (files[1], files[0]) if odd[0] in train else files
        raise DatasetError(f"{has} has a column {odd[0]!r}, which {lacks} has not; expected equal columns")
    for name in train.columns:
        values = [X[name].dropna().astype(object) for X in (train, test)]
        kinds = [any(isinstance(value, str) for value in each) for each in values]
        if kinds[0] != kinds[1] and train[name].notna().any() and test[name].notna().any():
            text, number = files if kinds[0] else files[::-1]
            raise DatasetError(
                f"column {name!r} holds text in {text} and numbers in {number}; write both in the same way"
            )
    notes = [f"{file}: {note}" for file, X in zip(files, (train, test), strict=True) for note in notes_of(X)]
    for X in (train, test):
        X.attrs.clear()
    X = pd.concat([train, test[train.columns]], ignore_index=True)
    for name in train.columns:
        if all(isinstance(part[name].dtype, pd.CategoricalDtype) for part in (train, test)):
            X[name] = _joined_categories(train[name], test[name], X[name])
    return noted(X, *notes)


def _joined_categories(train: pd.Series, test: pd.Series, joined: pd.Series) -> pd.Series:
    """Return a categorical column of both files, whose categories may differ.

    Parameters
    ----------
    train, test : Series
        Column of each file.
    joined : Series, shape (n,)
        Values of both. They are no categories if those of the files differ.
    """
    if isinstance(joined.dtype, pd.CategoricalDtype):
        return joined
    values = dict.fromkeys([*train.cat.categories, *test.cat.categories])
    return joined.astype(pd.CategoricalDtype(list(values)))
