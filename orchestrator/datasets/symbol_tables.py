"""Tables of the literature whose symbols become numbers, with their published rows and splits."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.files import existing_file
from orchestrator.datasets.libsvm import libsvm_file
from orchestrator.datasets.metadata import TEST_FOLD
from orchestrator.datasets.published_splits import (
    TRAINING,
    consecutive_folds,
    joined_folds,
    shuffled_rows,
    to_unit,
)
from orchestrator.study.text import error_line

Table = tuple[NDArray[np.float64], NDArray[np.int64], dict[str, NDArray[np.int64]]]
"""Features, labels and metadata, as loaders return them."""

NORMAL, ATTACK = 1, -1
"""Labels of a connection of KDD Cup 1999."""

_N_NUMBERS = 38
"""Number of first columns of `kdd99-10pct` that are numbers."""

_SYMBOLS = ((38, 41), (41, 108), (108, 119))
"""First and last + 1 of the one-hot columns of protocol, service and flag."""

_N_TRAIN = 494_021
"""Number of rows of the ten-percent training file; those of the corrected test file follow."""


def kdd99_distinct(name: str, folder: str | Path, n_train: int = _N_TRAIN, order: int = 0) -> Table:
    """Read the distinct connections of the ten-percent training file and of the corrected test file.

    Protocol, service and flag become numbers: the positions of their one-hot columns. Rows with equal
    features become one row within each part. It has the label of most of them, and is an attack in a tie.
    Features are scaled to [0, 1] by the training rows.

    Parameters
    ----------
    name : str
        Name of the LIBSVM file of 119 columns, in which one-hot columns follow 38 numbers.
    folder : path
        Folder of the file.
    n_train : int
        Number of its training rows, which come first.
    order : int
        0 for the order of the file. Other numbers are seeds of a random order of the distinct training rows.

    Returns
    -------
    X : float64 array, shape (n, 41)
        Features.
    y : int64 array, shape (n,)
        1 for a normal connection, -1 for an attack.
    metadata : dict of str to array
        `test_fold`: -1 for training rows and 0 for test rows.

    Raises
    ------
    DatasetError
        If the file cannot be read or has no test rows.
    """
    X, y = libsvm_file(name, folder, _SYMBOLS[-1][1], NORMAL)
    if len(y) <= n_train:
        raise DatasetError(
            f"{name} has {len(y):,} rows; expected more than the {n_train:,} training rows. Append the "
            "corrected test file"
        )
    X = X if isinstance(X, np.ndarray) else X.toarray()
    codes = [X[:, first:last].argmax(axis=1) for first, last in _SYMBOLS]
    numbers = np.column_stack([X[:, :_N_NUMBERS], *codes])
    X, y, metadata = _distinct_parts((numbers[:n_train], y[:n_train]), (numbers[n_train:], y[n_train:]))
    rows = shuffled_rows(len(y), int((metadata[TEST_FOLD] == TRAINING).sum()), order)
    return X[rows], y[rows], metadata


def kdd99_full_distinct(path: str | Path, test: str | Path) -> Table:
    """Read the distinct connections of the complete training file and of the corrected test file.

    Symbols become numbers in alphabetical order. All else is as in `kdd99_distinct`.

    Parameters
    ----------
    path : path
        Training file of comma-separated values with 41 features and a label: `kddcup.data.gz`.
    test : path
        Test file of the same columns: `corrected.gz`.

    Returns
    -------
    X : float64 array, shape (n, 41)
        Features.
    y : int64 array, shape (n,)
        1 for a normal connection, -1 for an attack.
    metadata : dict of str to array
        `test_fold`: -1 for training rows and 0 for test rows.

    Raises
    ------
    DatasetError
        If a file cannot be read, or does not have 42 columns.
    """
    parts = [_read(file, 42) for file in (path, test)]
    X = _numbers(pd.concat([part.iloc[:, :41] for part in parts], ignore_index=True))
    labels = pd.concat([part.iloc[:, 41] for part in parts]).str.rstrip(".").to_numpy()
    y, n_train = np.where(labels == "normal", NORMAL, ATTACK), len(parts[0])
    return _distinct_parts((X[:n_train], y[:n_train]), (X[n_train:], y[n_train:]))


def localization(path: str | Path, n_folds: int = 5) -> Table:
    """Read the localization data for person activity: lying or lying down against the other activities.

    The columns of time and date are left out. Sequence and tag become numbers in alphabetical order. Features
    are scaled to [0, 1] by all rows.

    Parameters
    ----------
    path : path
        File of comma-separated values with the columns sequence, tag, time, date, x, y, z and activity.
    n_folds : int
        Number of folds of consecutive rows.

    Returns
    -------
    X : float64 array, shape (n, 5)
        Features.
    y : int64 array, shape (n,)
        1 for lying and lying down, else -1.
    metadata : dict of str to array
        `test_fold`: the fold that tests each row.

    Raises
    ------
    DatasetError
        If the file cannot be read, or does not have eight columns.
    """
    table = _read(path, 8)
    X, folds = _numbers(table.iloc[:, [0, 1, 4, 5, 6]]), consecutive_folds(len(table), n_folds)
    y = np.where(table.iloc[:, 7].isin(["lying", "lying down"]), 1, -1)
    return to_unit(X, folds), y, {TEST_FOLD: folds}


def _read(path: str | Path, n_columns: int) -> pd.DataFrame:
    """Read comma-separated values without a line of names.

    Parameters
    ----------
    path : path
        File, plain or compressed.
    n_columns : int
        Expected number of columns.
    """
    file = existing_file(path)
    try:
        table = pd.read_csv(file, header=None, skipinitialspace=True, keep_default_na=False)
    except (OSError, ValueError, EOFError) as error:
        raise DatasetError(f"cannot read {file} ({error_line(error)}); copy the file again") from error
    if table.shape[1] != n_columns:
        raise DatasetError(
            f"{file} has {table.shape[1]} columns; expected {n_columns}. Use the original file"
        )
    return table


def _numbers(table: pd.DataFrame) -> NDArray[np.float64]:
    """Return a table as numbers. The symbols of a column of text are numbered from 0, in alphabetical order.

    Parameters
    ----------
    table : DataFrame, shape (n, d)
        Table of numbers and symbols.
    """
    columns = [table[name] for name in table]
    coded: list[Any] = [
        column if column.dtype.kind in "iuf" else np.unique(column.astype(str), return_inverse=True)[1]
        for column in columns
    ]
    return np.column_stack(coded).astype(np.float64)


def _distinct_parts(*parts: tuple[NDArray[np.float64], NDArray[Any]]) -> Table:
    """Return the distinct rows of training rows and of test rows, scaled by the training rows.

    Parameters
    ----------
    *parts : tuple of (float64 array, array)
        Features and labels of the training rows, and of the test rows.
    """
    kept = [_distinct(*part) for part in parts]
    X, y = (np.concatenate([part[at] for part in kept]) for at in (0, 1))
    folds = joined_folds(len(part[1]) for part in kept)
    return to_unit(X, folds), y, {TEST_FOLD: folds}


def _distinct(X: NDArray[np.float64], y: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the first of equal rows, in their order, each with the label of most of them.

    Parameters
    ----------
    X : float64 array, shape (n, d)
        Features.
    y : int array, shape (n,)
        1 or -1. A tie becomes -1.
    """
    rows = np.ascontiguousarray(X + 0.0)  # one sign of zero
    bytes_of_rows = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    _, first, group = np.unique(bytes_of_rows, return_index=True, return_inverse=True)
    labels = np.where(np.bincount(group, weights=y) > 0, NORMAL, ATTACK)
    order = np.argsort(first)
    return X[first[order]], labels[order]
