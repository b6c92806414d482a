"""Prepare a dataset and its splits on the client, and open both on a worker, where they are memory-mapped."""

import warnings
from functools import lru_cache
from pathlib import Path

from orchestrator.datasets.dataset import Dataset, DatasetError
from orchestrator.datasets.loader_process import load_and_prepare
from orchestrator.datasets.prepared import DamagedCopyError, open_prepared
from orchestrator.resampling.nested import Samples, nested_splits
from orchestrator.resampling.splits import DamagedSplitsError, Splits
from orchestrator.study.study import DatasetSpec, Protocol
from orchestrator.study.trials import DataSource
from orchestrator.training.environment import cache_folder


class DataNotHere(LookupError):
    """The client's prepared dataset and copies of it are missing on this host."""


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
