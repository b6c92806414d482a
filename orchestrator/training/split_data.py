"""How a process gets at the rows of a split: prepared once, memory-mapped, sliced and scaled on demand."""

import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
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
from orchestrator.study.batch import DataSource
from orchestrator.study.study import DatasetSpec, Protocol
from orchestrator.training.environment import cache_folder
from orchestrator.training.shared_arrays import checksum, read_only


class DataNotHere(LookupError):
    """Neither the client's prepared dataset nor a copy of it can be found on this host."""


@dataclass(frozen=True, eq=False)
class Split:
    """The scaled rows of one train/test split: `X` (n, d) dense, CSR or frame, `y` (n,) labels."""

    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray

    def read_only(self) -> "Split":
        """Return the split in memory that cannot be written to, so that many trainings can share it."""
        return Split(*map(read_only, self._arrays))

    @cached_property
    def classes(self) -> NDArray[Any]:
        """The labels of the training rows, ascending."""
        return np.unique(self.y_train)

    def checksum(self) -> tuple[Any, ...]:
        """Return what differs once a value of the split does."""
        return tuple(map(checksum, self._arrays))

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return self.X_train, self.y_train, self.X_test, self.y_test


def prepare_data(
    spec: DatasetSpec, protocol: Protocol, cache: Path, memory: float | None = None
) -> tuple[DataSource, Dataset, Splits]:
    """Load and check a dataset, split it, and leave both where workers can map them into memory.

    Parameters
    ----------
    spec : DatasetSpec
    protocol : Protocol
    cache : Path
        Where prepared datasets are kept.
    memory : float or None
        Bytes that loading and checking may take; None for the default.

    Raises
    ------
    DatasetError
        When the data cannot be loaded or split as the protocol asks.
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
    """Open a dataset and its splits, from the client's folder or from this host's cache, and check both.

    A damaged copy in the client's folder is prepared again from its source, and the user is warned.

    Raises
    ------
    DataNotHere
        When this host has neither, or a damaged copy of its own, which the client can send again.
    DatasetError
        When the client's copy is damaged and cannot be prepared again here.
    """
    client = Path(source.folder)
    if client.is_dir():
        try:
            return restore(source, protocol)
        except DatasetError:
            if client.parent != cache_folder():
                raise
            raise DataNotHere(source.spec.name) from None  # it may be a copy that was sent to this host
    try:
        return open_copy(cache_folder() / client.name, source)
    except (DamagedCopyError, DamagedSplitsError):
        raise DataNotHere(source.spec.name) from None


def open_copy(folder: Path, source: DataSource) -> tuple[Dataset, Splits]:
    """Open a prepared dataset and its splits in a folder, and check both.

    Raises
    ------
    DamagedCopyError, DamagedSplitsError
        If one of them is missing or damaged, or the folder holds another dataset.
    """
    return open_content(folder, source), Splits.load(folder, source.split_hash)


def open_content(folder: Path, source: DataSource) -> Dataset:
    """Open a prepared dataset, which must have the fingerprint of its source; see `open_copy`."""
    dataset = open_prepared(folder)
    if dataset.fingerprint != source.fingerprint:
        raise DamagedCopyError(folder, ValueError(f"its fingerprint is {dataset.fingerprint[:12]}"))
    return dataset


def prepare_again(source: DataSource, protocol: Protocol, damage: str) -> None:
    """Prepare the client's copy of a dataset again from its source, and its splits.

    Parameters
    ----------
    source : DataSource
    protocol : Protocol
    damage : str
        What is wrong with the copy.

    Raises
    ------
    DatasetError
        When the source cannot be read here, or holds other data now.
    """
    folder = Path(source.folder)
    was_there = folder.is_dir()
    try:
        own, *_ = prepare_data(source.spec, protocol, folder.parent)
        if (own.fingerprint, own.split_hash) != (source.fingerprint, source.split_hash):
            raise DatasetError("its source holds other data now, or makes other splits")
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
    """Open the client's copy of a dataset and its splits, prepared again unless they are there and intact.

    Raises
    ------
    DatasetError
        When they cannot be prepared again.
    """
    folder = Path(source.folder)
    try:
        return open_copy(folder, source)
    except (DamagedCopyError, DamagedSplitsError) as error:
        prepare_again(source, protocol, str(error.__cause__))
        return open_copy(folder, source)


def load_from_origin(source: DataSource, protocol: Protocol) -> None:
    """Prepare a dataset in this host's own cache, from where the client had it from.

    Raises
    ------
    DatasetError
        If this host cannot, or it or its folds come out different from the client's.
    """
    own, *_ = prepare_data(source.spec, protocol, cache_folder())
    if (own.fingerprint, own.split_hash) != (source.fingerprint, source.split_hash):
        raise DatasetError(
            f"dataset {source.spec.name!r} on this host differs from the client's "
            f"(fingerprint {own.fingerprint[:12]}, expected {source.fingerprint[:12]}); "
            f"share the folder paths.cache between the hosts, or install the same versions on both"
        )


@lru_cache(maxsize=2)
def open_split(source: DataSource, protocol: Protocol, outer: int, inner: int) -> Split:
    """Slice a split's rows and scale them; what is fitted is fitted on the training rows alone.

    `scaling="dataset"` fits the scaling on all rows instead, as the papers did. The split is read-only. Rows
    that were damaged since the dataset was opened are found, and are sliced again from a new copy.
    """
    try:
        return _open_split(source, protocol, outer, inner)
    except DamagedCopyError:
        open_data.cache_clear()
        return _open_split(source, protocol, outer, inner)


def _open_split(source: DataSource, protocol: Protocol, outer: int, inner: int) -> Split:
    dataset, folds = open_data(source, protocol)
    return scaled_split(dataset, *folds.train_test(outer, inner), protocol.scaling)


def scaled_split(
    dataset: Dataset, train: NDArray[np.integer], test: NDArray[np.integer], scale: str
) -> Split:
    """Slice the rows of these indices and scale them as `Protocol.scaling` says.

    Raises
    ------
    DatasetError
        When the rows are not what was prepared.
    """
    X_train, X_test = take_rows(dataset.X, train), take_rows(dataset.X, test)
    for rows in (train, test) if scale != "dataset" else (None,):
        dataset.require_intact(rows)
    if scale != "none":
        scaling = fit_scaling(dataset.X if scale == "dataset" else X_train)
        if scale == "dataset":  # while all rows were read
            dataset.require_intact()
        X_train, X_test = scaling.apply(X_train), scaling.apply(X_test)
    return Split(X_train, dataset.y[train], X_test, dataset.y[test]).read_only()


@dataclass(frozen=True, slots=True)
class Scaling:
    """A fitted scaling: `(x - shift) / span` for each feature.

    Attributes
    ----------
    shift : float64 array, shape (d,), or None
        The smallest value; None for CSR, whose zeros have to stay zeros.
    span : float64 array, shape (d,)
        Largest minus smallest value, or for CSR the largest absolute value; infinite for a feature that
        does not vary, which sends it to 0.
    """

    shift: NDArray[np.float64] | None
    span: NDArray[np.float64]

    def apply(self, X: Features) -> Features:
        """Return scaled rows, of the kind the scaling was fitted on; rows not fitted on may leave [0, 1]."""
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
    """Return the scaling that takes these rows to [0, 1], or CSR rows to [-1, 1] with all signs kept.

    For a non-negative feature that is zero in some row both are the same map. Of a frame, the columns of
    numbers are scaled.

    Parameters
    ----------
    X : float64 array, CSR matrix or frame, shape (n, d)
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
