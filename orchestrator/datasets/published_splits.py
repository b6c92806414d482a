"""LIBSVM files with the split, the scaling and the test rows of a publication."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from orchestrator.datasets.dataset import DatasetError, Features
from orchestrator.datasets.libsvm import libsvm_file
from orchestrator.datasets.metadata import TEST_FOLD
from orchestrator.study.text import shown

TRAINING = -1
"""Test fold of a row that is always a training row."""


def libsvm_split(
    name: str,
    folder: str | Path,
    n_features: int | None = None,
    positive: float | None = None,
    *,
    n_train: int | None = None,
    test_from: int | None = None,
    n_folds: int | None = None,
    n_copies: int = 0,
    divide: float = 1.0,
    unit: bool = False,
    reverse: bool = False,
    order: int = 0,
) -> tuple[Features, NDArray[Any], dict[str, NDArray[np.int64]]]:
    """Read a LIBSVM file with the test fold of each row. Use it with `PredefinedSplit` as the outer splitter.

    Parameters
    ----------
    name, folder, n_features, positive
        As in `libsvm_file`.
    n_train : int, optional
        Number of first rows that are training rows. The split has one fold.
    test_from : int, optional
        Index of the first test row, from 0; by default `n_train`. Rows between are left out.
    n_folds : int, optional
        Number of consecutive folds of almost equal size, as `KFold` without shuffling makes them. It replaces
        `n_train`.
    n_copies : int
        Number of first rows whose copies follow the rows of the file. It serves files without test rows: with
        `n_train` at the end of the file, the copies are the test rows, and scores are those of training rows.
    divide : float
        Number by which all features are divided.
    unit : bool
        Whether features are scaled to [0, 1] by the training rows, or by all rows with `n_folds`. Features of
        one value become 0.
    reverse : bool
        Whether the rows of `n_train` test, and the others train.
    order : int
        0 for the order of the file. Other numbers are seeds of a random order: of the training rows, or of
        all rows with `n_folds`, before they are divided.

    Returns
    -------
    X : float64 array or CSR matrix, shape (n, d)
        Features.
    y : array, shape (n,)
        Class label of each row.
    metadata : dict of str to array
        `test_fold`: the fold that tests each row, and -1 for training rows.

    Raises
    ------
    DatasetError
        If the file cannot be read, or the split does not fit its rows.
    """
    X, y = libsvm_file(name, folder, n_features, positive)
    if n_copies:
        copies = np.append(np.arange(len(y)), np.arange(min(n_copies, len(y))))
        X, y = X[copies], y[copies]
    if (n_train is None) == (n_folds is None):
        raise DatasetError(
            f"expected either n_train or n_folds, found n_train={shown(n_train)} and n_folds={shown(n_folds)}"
        )
    if order != 0:
        rows = shuffled_rows(len(y), len(y) if n_train is None else n_train, order)
        X, y = X[rows], y[rows]
    if n_folds is not None:
        folds = consecutive_folds(len(y), n_folds)
    else:
        X, y, folds = _two_parts(X, y, n_train, n_train if test_from is None else test_from)
        folds = -1 - folds if reverse else folds
    if divide != 1:
        X = X / divide
    if unit:
        X = to_unit(X, folds)
    return X, y, {TEST_FOLD: folds}


def shuffled_rows(n: int, n_train: int, order: int) -> NDArray[np.int64]:
    """Return indices of rows of which the first ones are in a random order.

    Parameters
    ----------
    n : int
        Number of rows.
    n_train : int
        Number of first rows that are shuffled.
    order : int
        Seed of the order, from 1; 0 keeps the order.

    Raises
    ------
    DatasetError
        If the seed is not a whole number of at least 0.
    """
    if type(order) is not int or order < 0:
        raise DatasetError(f"expected a whole number from 0 as order, found {shown(order)}")
    rows = np.arange(n)
    if order:
        np.random.default_rng(order).shuffle(rows[:n_train])
    return rows


def consecutive_folds(n: int, n_folds: int) -> NDArray[np.int64]:
    """Return the test fold of each row for folds of consecutive rows.

    Parameters
    ----------
    n : int
        Number of rows.
    n_folds : int
        Number of folds, from 2 to n.

    Raises
    ------
    DatasetError
        If there cannot be so many folds.
    """
    if type(n_folds) is not int or not 2 <= n_folds <= n:
        raise DatasetError(f"expected n_folds from 2 to {n:,}, the number of rows, found {shown(n_folds)}")
    folds = np.empty(n, dtype=np.int64)
    for fold, (_, test) in enumerate(KFold(n_folds).split(folds)):
        folds[test] = fold
    return folds


def _two_parts(
    X: Features, y: NDArray[Any], n_train: Any, test_from: Any
) -> tuple[Features, NDArray[Any], NDArray[np.int64]]:
    """Return the first rows and the last rows of a file, with their test folds.

    Parameters
    ----------
    X : float64 array or CSR matrix, shape (n, d)
        Features.
    y : array, shape (n,)
        Class label of each row.
    n_train : int
        Number of training rows.
    test_from : int
        Index of the first test row.
    """
    n = len(y)
    if type(n_train) is not int or type(test_from) is not int or not 1 <= n_train <= test_from < n:
        raise DatasetError(
            f"expected 1 ≤ n_train ≤ test_from < {n:,}, the number of rows, found n_train={shown(n_train)} "
            f"and test_from={shown(test_from)}; is the file complete, test rows included?"
        )
    if n_train < test_from:
        rows = np.append(np.arange(n_train), np.arange(test_from, n))
        X, y = X[rows], y[rows]
    return X, y, np.repeat([TRAINING, 0], [n_train, n - test_from])


def to_unit(X: Features, folds: NDArray[np.int64]) -> Features:
    """Return features scaled to [0, 1] by the rows that are always training rows, or else by all rows.

    Other rows may lie outside [0, 1].

    Parameters
    ----------
    X : float64 array, shape (n, d)
        Features, which are overwritten.
    folds : int64 array, shape (n,)
        Test fold of each row.

    Raises
    ------
    DatasetError
        If the features are sparse.
    """
    if scipy.sparse.issparse(X):
        raise DatasetError("unit: true scales dense features only, and these are sparse; set divide instead")
    rows = folds == TRAINING
    seen = X[rows] if rows.any() else X
    low, high = seen.min(axis=0), seen.max(axis=0)
    X -= low
    X /= np.where(high > low, high - low, 1.0)
    return X


def joined_folds(sizes: Iterable[int]) -> NDArray[np.int64]:
    """Return the test folds of training rows that are followed by test rows.

    Parameters
    ----------
    sizes : iterable of int
        Number of training rows and number of test rows.
    """
    return np.repeat([TRAINING, 0], list(sizes))
