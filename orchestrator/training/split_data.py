"""Open a split: gather its rows and prepare them.

The preparation of features, such as scaling, is fitted on the training rows of a split, once in a process.
All candidates share the result, and so do all arms with the same preparation.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import Dataset, Features
from orchestrator.datasets.frames import number_columns
from orchestrator.datasets.prepared import DamagedCopyError
from orchestrator.resampling.splits import take_rows
from orchestrator.study.preparation import NONE, OF_DATASET, Preparation
from orchestrator.study.study import Protocol
from orchestrator.study.trials import DataSource
from orchestrator.study.values import digest
from orchestrator.training.open_data import open_data
from orchestrator.training.preparation import PreparationError, prepared_rows
from orchestrator.training.shared_arrays import bytes_of, checksum, read_only


@dataclass(frozen=True, eq=False)
class Split:
    """Prepared rows of one train/test split.

    Attributes
    ----------
    X_train : array, CSR matrix or DataFrame, shape (n_train, d)
        Features of the training rows.
    y_train : ndarray, shape (n_train,)
        Labels of the training rows.
    X_test : array, CSR matrix or DataFrame, shape (n_test, d)
        Features of the test rows.
    y_test : ndarray, shape (n_test,)
        Labels of the test rows.
    """

    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray

    def read_only(self) -> "Split":
        """Return the split in read-only memory, so that many trainings can share it."""
        return Split(*map(read_only, self._arrays))

    @cached_property
    def classes(self) -> NDArray[Any]:
        """The labels of the training rows, each once, ascending."""
        return np.unique(self.y_train)

    def checksum(self) -> tuple[Any, ...]:
        """Return a checksum that changes with any value of the split."""
        return tuple(map(checksum, self._arrays))

    @cached_property
    def n_bytes(self) -> int:
        """Memory of the features, in bytes. Texts of a data frame count only as references."""
        return sum(map(bytes_of, (self.X_train, self.X_test)))

    @property
    def _arrays(self) -> tuple[Any, ...]:
        """The four arrays of the split."""
        return self.X_train, self.y_train, self.X_test, self.y_test


LATEST = 2
"""Number of splits that a process keeps in any case."""

MAX_BYTES = 1 << 28
"""Memory of all splits that a process keeps whose preparation takes long, in bytes."""


class _Splits:
    """The splits that this process keeps: the latest ones, and others whose preparation takes long.

    A preparation that failed is kept as its error, so that it is not tried again for every candidate.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, Split | PreparationError] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any) -> Split | PreparationError | None:
        """Return a kept split and mark it as the latest; None if it is not kept.

        Parameters
        ----------
        key : hashable
            Data, preparation, seed and indices of the split.
        """
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: Any, split: Split | PreparationError) -> None:
        """Keep a split, and forget older ones.

        Parameters
        ----------
        key : hashable
            Data, preparation, seed and indices of the split. Its second part is the preparation.
        split : Split or PreparationError
            The rows, or the reason why there are none.
        """
        with self._lock:
            self._kept[key] = split
            free = MAX_BYTES
            for older in list(reversed(self._kept))[LATEST:]:
                kept = self._kept[older]
                free -= kept.n_bytes if isinstance(kept, Split) else 0
                if older[1].scaling or free < 0:
                    del self._kept[older]

    def clear(self) -> None:
        """Forget all splits."""
        with self._lock:
            self._kept.clear()


_splits = _Splits()
_run_id = ""
"""Identifier of the run to which the kept splits belong."""

_local = threading.local()


def open_split(source: DataSource, protocol: Protocol, outer: int, inner: int) -> Split:
    """Gather the rows of a split and prepare them.

    The preparation is fitted on the training rows, or with `scaling="dataset"` on all rows, as in the papers.
    The split is read-only. If rows were damaged after the dataset was opened, they are gathered again from a
    new copy.

    Parameters
    ----------
    source : DataSource
        The dataset that the client prepared.
    protocol : Protocol
        Resampling and preparation.
    outer : int
        Index of the outer split.
    inner : int
        Index of the inner split; −1 for the refit.

    Returns
    -------
    Split
        Prepared rows.

    Raises
    ------
    PreparationError
        If the preparation fails on these rows.
    """
    key = source, protocol.preparation, protocol.seed, outer, inner
    split = _splits.get(key)

    def gather() -> Split:
        dataset, folds = open_data(source, protocol)
        seed = preparation_seed(source, protocol, outer, inner)
        return prepared_split(dataset, *folds.train_test(outer, inner), protocol.preparation, seed)

    if split is None:
        try:
            try:
                split = gather()
            except DamagedCopyError:
                open_data.cache_clear()
                split = gather()
        except PreparationError as error:
            split = error
        _splits.put(key, split)
    if isinstance(split, PreparationError):
        raise split
    return split


def start_run(run_id: str) -> None:
    """Forget the splits of another run in this process, so that each run measures its own preparations.

    Parameters
    ----------
    run_id : str
        Identifier of the run whose batch starts.
    """
    global _run_id
    if run_id != _run_id:
        forget_splits()
        _run_id = run_id


def forget_splits() -> None:
    """Forget the splits that this process keeps, so that they are gathered and prepared again."""
    _splits.clear()


def take_prepare_seconds() -> float:
    """Return how long this thread has prepared splits since the last call, in seconds."""
    seconds = getattr(_local, "prepare_seconds", 0.0)
    _local.prepare_seconds = 0.0
    return seconds


def preparation_seed(source: DataSource, protocol: Protocol, outer: int, inner: int) -> int:
    """Return the random state of the preparation of a split, from 0 to 2³² − 1.

    It does not depend on the arm or on the order of the trials.

    Parameters
    ----------
    source : DataSource
        Fingerprint of the dataset, and hash of its splits.
    protocol : Protocol
        Protocol, with the seed.
    outer : int
        Index of the outer split.
    inner : int
        Index of the inner split; −1 for the refit.
    """
    axes = [source.fingerprint, source.split_hash, protocol.seed, "prepare", outer, inner]
    return int(np.random.SeedSequence(int(digest(axes), 16)).generate_state(1)[0])


def prepared_split(
    dataset: Dataset,
    train: NDArray[np.integer],
    test: NDArray[np.integer],
    preparation: Preparation,
    seed: int = 0,
) -> Split:
    """Gather rows by index and prepare them.

    Parameters
    ----------
    dataset : Dataset
        Dataset from which rows are taken.
    train : int array, shape (n_train,)
        Indices of the training rows.
    test : int array, shape (n_test,)
        Indices of the test rows.
    preparation : Preparation
        Preparation, which is fitted on the training rows, or for `OF_DATASET` on all rows.
    seed : int
        Random state of the preparation. 0 by default.

    Returns
    -------
    Split
        Prepared rows, read-only.

    Raises
    ------
    DatasetError
        If the rows differ from those that were stored.
    PreparationError
        If the preparation fails on these rows.
    """
    whole = preparation.name == OF_DATASET
    X_train, X_test = take_rows(dataset.X, train), take_rows(dataset.X, test)
    for rows in (None,) if whole else (train, test):
        dataset.require_intact(rows)
    split = Split(X_train, dataset.y[train], X_test, dataset.y[test])
    if preparation.name == NONE:
        return split.read_only()
    started = perf_counter()
    try:
        if preparation.scaling:
            scaling = fit_scaling(dataset.X if whole else X_train)
            if whole:  # the scaling has read all rows
                dataset.require_intact()
            X_train, X_test = scaling.apply(X_train), scaling.apply(X_test)
        else:
            X_train, X_test = prepared_rows(preparation, X_train, split.y_train, X_test, seed)
    finally:
        _local.prepare_seconds = getattr(_local, "prepare_seconds", 0.0) + perf_counter() - started
    return replace(split, X_train=X_train, X_test=X_test).read_only()


@dataclass(frozen=True, slots=True)
class Scaling:
    """A fitted scaling: `(x - shift) / span` for each feature.

    Attributes
    ----------
    shift : float64 array, shape (d,), or None
        Smallest value of each feature; None for CSR, whose zeros must stay zeros.
    span : float64 array, shape (d,)
        Largest minus smallest value, or for CSR the largest absolute value. Infinite for a constant feature,
        which is scaled to 0.
    """

    shift: NDArray[np.float64] | None
    span: NDArray[np.float64]

    def apply(self, X: Features) -> Features:
        """Return scaled rows. Rows to which the scaling was not fitted may leave [0, 1].

        Parameters
        ----------
        X : float64 array, CSR matrix or DataFrame, shape (n, d)
            Rows of the same type as those of the fit.

        Returns
        -------
        array, CSR matrix or DataFrame
            A scaled copy.
        """
        if isinstance(X, pd.DataFrame):
            names, scaled = number_columns(X), X.copy()
            for name, values in zip(names, self.apply(X[names].to_numpy()).T, strict=True):
                scaled[name] = values
            return scaled
        if self.shift is None:
            parts = X.data / self.span[X.indices], X.indices, X.indptr
            return scipy.sparse.csr_matrix(parts, shape=X.shape)
        scaled = X - self.shift
        scaled /= self.span
        return scaled


def fit_scaling(X: Features) -> Scaling:
    """Return the scaling that maps these rows to [0, 1], or CSR rows to [-1, 1] without a change of sign.

    Both maps are the same for a non-negative feature that is zero in some row. In a data frame, the numeric
    columns are scaled.

    Parameters
    ----------
    X : float64 array, CSR matrix or DataFrame, shape (n, d)
        Rows to fit.

    Returns
    -------
    Scaling
        The fitted scaling.
    """
    if isinstance(X, pd.DataFrame):
        return fit_scaling(X[number_columns(X)].to_numpy())
    if scipy.sparse.issparse(X):
        shift = None
        span = np.zeros(X.shape[1])
        np.maximum.at(span, X.indices, np.abs(X.data))
    else:
        shift, largest = X.min(axis=0), X.max(axis=0)
        if np.isnan(shift).any():
            shift, largest = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        span = largest - shift
    span[span == 0] = np.inf
    return Scaling(shift, span)
