"""Open the rows of a split: datasets are stored once and memory-mapped, rows are gathered and prepared.

The preparation of features, such as scaling, is fitted on the training rows of a split, once in a process.
All candidates share the result, and so do all arms with the same preparation: read-only memory, with a new
view for each training and a checksum. Every training gets a copy of a data frame.
"""

import copy
import threading
import warnings
import zlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import Dataset, DatasetError, Features
from orchestrator.datasets.frames import number_columns
from orchestrator.datasets.loader_process import load_and_prepare
from orchestrator.datasets.prepared import DamagedCopyError, open_prepared
from orchestrator.resampling.nested import Samples, nested_splits
from orchestrator.resampling.splits import DamagedSplitsError, Splits, take_rows
from orchestrator.study.preparation import NONE, OF_DATASET, SCALINGS, Preparation
from orchestrator.study.study import DatasetSpec, Protocol
from orchestrator.study.trials import DataSource
from orchestrator.study.values import digest
from orchestrator.training.environment import cache_folder
from orchestrator.training.preparation import PreparationError, prepared_rows


class DataNotHere(LookupError):
    """The client's prepared dataset and copies of it are missing on this host."""


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
        return sum(map(_bytes_of, (self.X_train, self.X_test)))

    @property
    def _arrays(self) -> tuple[Any, ...]:
        """The four arrays of the split."""
        return self.X_train, self.y_train, self.X_test, self.y_test


def prepare_data(
    spec: DatasetSpec, protocol: Protocol, cache: Path, memory: float | None = None
) -> tuple[DataSource, Dataset, Splits]:
    """Load and check a dataset, split it, and save both where workers can memory-map them.

    Parameters
    ----------
    spec : DatasetSpec
        Loader of the dataset and its parameters.
    protocol : Protocol
        Resampling, outer and inner.
    cache : Path
        Folder of prepared datasets.
    memory : float or None
        Memory for loading and checking, in bytes; None by default, for the limit of the loader process.

    Returns
    -------
    source : DataSource
        Fingerprint, hash of the splits, and folder, for workers.
    dataset : Dataset
        The prepared dataset.
    splits : Splits
        Outer and inner splits of the dataset's rows.

    Raises
    ------
    DatasetError
        If the data cannot be loaded, or cannot be split as the protocol asks.
    """
    folder = load_and_prepare(spec, cache, memory)
    dataset = open_prepared(folder)
    try:
        splits = nested_splits(Samples(dataset.X, dataset.y, dataset.metadata), protocol)
    except ValueError as error:
        raise DatasetError(f"dataset {spec.name!r}: {error}") from error
    splits.save(folder)
    return DataSource(spec, dataset.fingerprint, splits.hash, str(folder)), dataset, splits


@lru_cache(maxsize=4)
def open_data(source: DataSource, protocol: Protocol) -> tuple[Dataset, Splits]:
    """Open a dataset and its splits in the client's folder or in this host's cache, and check both.

    A damaged copy in the client's folder is prepared again from its source, with a warning.

    Parameters
    ----------
    source : DataSource
        The dataset that the client prepared.
    protocol : Protocol
        Resampling, outer and inner.

    Returns
    -------
    dataset : Dataset
        The prepared dataset.
    splits : Splits
        Outer and inner splits of the dataset's rows.

    Raises
    ------
    DataNotHere
        If this host has no copy, or a damaged one that the client can send again.
    DatasetError
        If the client's copy is damaged and cannot be prepared again here.
    """
    client = Path(source.folder)
    if client.is_dir():
        try:
            return restore(source, protocol)
        except DatasetError:
            if client.parent != cache_folder():
                raise
            raise DataNotHere(source.spec.name) from None  # the client may have sent this copy
    try:
        return open_copy(cache_folder() / client.name, source)
    except (DamagedCopyError, DamagedSplitsError):
        raise DataNotHere(source.spec.name) from None


def open_copy(folder: Path, source: DataSource) -> tuple[Dataset, Splits]:
    """Open a prepared dataset and its splits in a folder, and check both.

    Parameters
    ----------
    folder : Path
        Folder of the prepared dataset.
    source : DataSource
        Expected fingerprint and hash of the splits.

    Returns
    -------
    dataset : Dataset
        The prepared dataset.
    splits : Splits
        Outer and inner splits of the dataset's rows.

    Raises
    ------
    DamagedCopyError, DamagedSplitsError
        If one of them is missing or damaged, or the folder holds another dataset.
    """
    return open_content(folder, source), Splits.load(folder, source.split_hash)


def open_content(folder: Path, source: DataSource) -> Dataset:
    """Open a prepared dataset and check its fingerprint.

    Parameters
    ----------
    folder : Path
        Folder of the prepared dataset.
    source : DataSource
        Expected fingerprint.

    Returns
    -------
    Dataset
        The prepared dataset.

    Raises
    ------
    DamagedCopyError
        If it is missing or damaged, or has another fingerprint.
    """
    dataset = open_prepared(folder)
    if dataset.fingerprint != source.fingerprint:
        raise DamagedCopyError(folder, ValueError(f"its fingerprint is {dataset.fingerprint[:12]}"))
    return dataset


def prepare_again(source: DataSource, protocol: Protocol, damage: str) -> None:
    """Prepare the client's copy of a dataset and its splits again from the source.

    Parameters
    ----------
    source : DataSource
        The dataset that the client prepared.
    protocol : Protocol
        Resampling, outer and inner.
    damage : str
        Description of the damage of the copy.

    Raises
    ------
    DatasetError
        If the source cannot be read here, or its data have changed.
    """
    folder = Path(source.folder)
    was_there = folder.is_dir()
    try:
        found, *_ = prepare_data(source.spec, protocol, folder.parent)
        if (found.fingerprint, found.split_hash) != (source.fingerprint, source.split_hash):
            raise DatasetError("the data of its source or its splits have changed")
    except DatasetError as error:
        problem = str(error).removeprefix(f"dataset {source.spec.name!r}: ")
        raise DatasetError(
            f"dataset {source.spec.name!r}: its prepared copy in {folder} is damaged ({damage}) and cannot "
            f"be prepared again here: {problem}; run the study's command again"
        ) from error
    if not was_there:
        warnings.warn(
            f"dataset {source.spec.name!r}: its prepared copy in {folder} was removed; it was prepared again "
            "from its source",
            stacklevel=1,
        )


def restore(source: DataSource, protocol: Protocol) -> tuple[Dataset, Splits]:
    """Open the client's copy of a dataset and its splits, and prepare them again if missing or damaged.

    Parameters
    ----------
    source : DataSource
        The dataset that the client prepared.
    protocol : Protocol
        Resampling, outer and inner.

    Returns
    -------
    dataset : Dataset
        The prepared dataset.
    splits : Splits
        Outer and inner splits of the dataset's rows.

    Raises
    ------
    DatasetError
        If they cannot be prepared again.
    """
    folder = Path(source.folder)
    try:
        return open_copy(folder, source)
    except (DamagedCopyError, DamagedSplitsError) as error:
        prepare_again(source, protocol, str(error.__cause__))
        return open_copy(folder, source)


def load_from_origin(source: DataSource, protocol: Protocol) -> None:
    """Prepare a dataset in this host's cache, from the same source as the client.

    Parameters
    ----------
    source : DataSource
        The dataset that the client prepared.
    protocol : Protocol
        Resampling, outer and inner.

    Raises
    ------
    DatasetError
        If this host cannot load it, or the data or splits differ from the client's.
    """
    found, *_ = prepare_data(source.spec, protocol, cache_folder())
    if (found.fingerprint, found.split_hash) != (source.fingerprint, source.split_hash):
        raise DatasetError(
            f"dataset {source.spec.name!r} on this host differs from the client's "
            f"(fingerprint {found.fingerprint[:12]}, expected {source.fingerprint[:12]}); "
            f"share the folder paths.cache between the hosts, or install the same versions on both"
        )


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
            Data, preparation and indices of the split.
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
            Data, preparation and indices of the split. Its second part is the preparation.
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
    key = source, protocol.preparation, outer, inner
    split = _splits.get(key)
    if split is None:
        try:
            split = _open_split(source, protocol, outer, inner)
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


def _open_split(source: DataSource, protocol: Protocol, outer: int, inner: int) -> Split:
    """Gather the rows of a split and prepare them; see `open_split`.

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
    """
    seed = preparation_seed(source, protocol, outer, inner)

    def gather() -> Split:
        dataset, folds = open_data(source, protocol)
        return prepared_split(dataset, *folds.train_test(outer, inner), protocol.preparation, seed)

    try:
        return gather()
    except DamagedCopyError:
        open_data.cache_clear()
        return gather()


def scaled_split(
    dataset: Dataset, train: NDArray[np.integer], test: NDArray[np.integer], scale: str
) -> Split:
    """Gather rows by index and scale them.

    Parameters
    ----------
    dataset : Dataset
        The prepared dataset.
    train : int array, shape (n_train,)
        Indices of the training rows.
    test : int array, shape (n_test,)
        Indices of the test rows.
    scale : str
        Rows to which the scaling is fitted, as in `Protocol.scaling`: "dataset" for all, "none" for no
        scaling.

    Returns
    -------
    Split
        Scaled rows, read-only.

    Raises
    ------
    DatasetError
        If the rows differ from those that were prepared.
    """
    return prepared_split(dataset, train, test, Preparation(SCALINGS[scale]))


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


def _bytes_of(X: Any) -> int:
    """Return the memory of features, in bytes.

    Parameters
    ----------
    X : ndarray, CSR matrix or DataFrame
        Features whose size is wanted.
    """
    if isinstance(X, pd.DataFrame):
        return int(X.memory_usage(index=False).sum())
    parts = [getattr(X, name) for name in _SPARSE_PARTS] if scipy.sparse.issparse(X) else [X]
    return sum(part.nbytes for part in parts)


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


_SPARSE_PARTS = ("data", "indices", "indptr")
"""Arrays of a CSR matrix."""

_BLOCK = 512
"""Length of a row of the table whose sums are the checksum, in words of 8 bytes."""


def read_only(X: Any) -> Any:
    """Return an array or CSR matrix with the same values in memory that Python code cannot change.

    The memory belongs to a `bytes` object. So `X.flags.writeable = True`, `X.base` and memoryviews do not
    make it writeable, as they do for an array that owns its memory.

    Parameters
    ----------
    X : ndarray, CSR matrix or DataFrame
        Values to copy.

    Returns
    -------
    ndarray, CSR matrix or DataFrame
        A read-only copy; a plain copy of a data frame.
    """
    if isinstance(X, pd.DataFrame):
        return X.copy()
    if scipy.sparse.issparse(X):
        return _with_parts(X, [read_only(getattr(X, name)) for name in _SPARSE_PARTS])
    return read_only_view(np.ndarray(X.shape, X.dtype, buffer=X.tobytes()))


def read_only_view(X: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array, to which its owner can still write.

    Parameters
    ----------
    X : ndarray
        Array to protect.

    Returns
    -------
    ndarray
        A view, without a copy.
    """
    # `np.ndarray(buffer=...)` would replace the memoryview by its base, which may be writeable.
    return np.asarray(X.data.toreadonly())


def fresh_view(X: Any) -> Any:
    """Return a new object over the memory of a read-only one.

    A training can set its shape and parts without an effect on other trainings. `X.view()` does not suffice,
    because its `base` is the shared object.

    Parameters
    ----------
    X : ndarray, CSR matrix or DataFrame
        Result of `read_only` or `read_only_view`.

    Returns
    -------
    ndarray, CSR matrix or DataFrame
        A view; a copy of a data frame.
    """
    if isinstance(X, pd.DataFrame):
        return private_copy(X)
    if scipy.sparse.issparse(X):
        return _with_parts(X, [fresh_view(getattr(X, name)) for name in _SPARSE_PARTS])
    return np.asarray(X.base)


def private_copy(X: Any) -> Any:
    """Return a copy that can be written to.

    Parameters
    ----------
    X : ndarray, CSR matrix or DataFrame
        Values to copy.

    Returns
    -------
    ndarray, CSR matrix or DataFrame
        Copy that shares no memory with the original.
    """
    if not isinstance(X, pd.DataFrame):
        return X.copy()
    # pandas copies are lazy, and some ways of writing reach the shared values.
    columns = {name: X[name].array.copy() for name in X.columns}
    return pd.DataFrame(
        {name: pd.Series(values, X.index, values.dtype) for name, values in columns.items()}, X.index
    )


def checksum(X: Any) -> tuple[Any, ...]:
    """Return a checksum that changes with any value of an array or CSR matrix, except for contrived changes.

    Sums along both axes of a table of words run at the speed of memory. They also detect values that were
    exchanged, which a plain sum does not.

    Parameters
    ----------
    X : ndarray, CSR matrix or DataFrame
        Features whose change is to be detected.

    Returns
    -------
    tuple
        The checksum; empty for a data frame, because each training has a copy of it.
    """
    if isinstance(X, pd.DataFrame):
        return ()
    if scipy.sparse.issparse(X):
        return tuple(checksum(getattr(X, name)) for name in _SPARSE_PARTS)
    if X.nbytes < 8 * _BLOCK:
        return (zlib.crc32(X.data),)
    content = np.ndarray(X.nbytes, np.uint8, buffer=X)
    words = content[: X.nbytes // (8 * _BLOCK) * 8 * _BLOCK].view(np.uint64).reshape(-1, _BLOCK)
    sums = [words.sum(axis=axis, dtype=np.uint64).tobytes() for axis in (0, 1)]
    return (*sums, zlib.crc32(content[words.nbytes :].data))


def _with_parts(X: Any, parts: list[NDArray[Any]]) -> Any:
    """Return a CSR matrix with other arrays.

    Parameters
    ----------
    X : CSR matrix
        Its shape, and the known order of its entries, are kept.
    parts : list of ndarray
        `data`, `indices` and `indptr`.

    Returns
    -------
    CSR matrix
        A new object.
    """
    shared = copy.copy(X)
    for name, part in zip(_SPARSE_PARTS, parts, strict=True):
        setattr(shared, name, part)
    return shared
