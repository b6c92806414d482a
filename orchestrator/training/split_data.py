"""How a process gets at the rows of a split: prepared once, memory-mapped, sliced and scaled on demand."""

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.datasets.dataset import Dataset, DatasetError
from orchestrator.datasets.loader_process import load_and_prepare
from orchestrator.datasets.prepared import META, open_prepared
from orchestrator.resampling.nested import Samples, nested_splits
from orchestrator.resampling.splits import Splits, take_rows
from orchestrator.study.batch import DataSource
from orchestrator.study.study import DatasetSpec, Protocol
from orchestrator.training.environment import cache_folder
from orchestrator.training.scaling import fit_scaling
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
def open_data(source: DataSource) -> tuple[Dataset, Splits]:
    """Open a dataset and its splits as memory maps, from the client's folder or from this host's cache.

    Raises
    ------
    DataNotHere
        When this host has neither.
    """
    client = Path(source.folder)
    for folder in (client, cache_folder() / client.name):
        if holds(folder, source):
            return open_prepared(folder), Splits.load(folder, source.split_hash)
    raise DataNotHere(source.spec.name)


def holds(folder: Path, source: DataSource, folds: bool = True) -> bool:
    """Return whether a folder holds a dataset and, if `folds`, its table of folds."""
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    same = meta.get("fingerprint") == source.fingerprint
    return same and (not folds or (folder / f"splits-{source.split_hash}.npy").is_file())


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

    `scaling="dataset"` fits the scaling on all rows instead, as the papers did. The split is read-only.
    """
    dataset, folds = open_data(source)
    return scaled_split(dataset, *folds.train_test(outer, inner), protocol.scaling)


def scaled_split(
    dataset: Dataset, train: NDArray[np.integer], test: NDArray[np.integer], scale: str
) -> Split:
    """Slice the rows of these indices and scale them as `Protocol.scaling` says."""
    X_train, X_test = take_rows(dataset.X, train), take_rows(dataset.X, test)
    if scale != "none":
        scaling = fit_scaling(dataset.X if scale == "dataset" else X_train)
        X_train, X_test = scaling.apply(X_train), scaling.apply(X_test)
    return Split(X_train, dataset.y[train], X_test, dataset.y[test]).read_only()
