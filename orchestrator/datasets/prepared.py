"""Datasets on disk in a form that every process maps into memory, one folder for each content."""

import json
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import scipy.sparse
from filelock import FileLock

from orchestrator.datasets.dataset import Dataset, DatasetError, Features, fingerprint
from orchestrator.datasets.frames import EncodedFrame, decode, encode

META, COLUMNS = "meta.json", "columns.json"


def prepare(dataset: Dataset, cache_dir: str | Path) -> Path:
    """Write a dataset to its folder in a cache, unless it is there and intact, and return the folder.

    The folder appears whole or not at all, whoever else prepares the same dataset at the time. Its content
    is read back against the fingerprint, so a damaged folder is replaced.

    Raises
    ------
    DatasetError
        If the cache cannot be written.
    """
    try:
        return _prepare(dataset, Path(cache_dir))
    except OSError as error:
        raise DatasetError(
            f"cannot prepare dataset {dataset.name!r} in {cache_dir}: {error}; "
            "make room there, or set paths.cache to another folder"
        ) from error


def open_prepared(folder: str | Path) -> Dataset:
    """Open a prepared dataset; its arrays are read-only views of the files, read as they are used.

    A frame is read into memory.

    Raises
    ------
    DatasetError
        If the folder is not there or is damaged.
    """
    folder = Path(folder)
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        X = _open_features(folder, meta)
        codes = _map(folder, "codes")
        classes = np.array(meta["classes"])
        if len(codes) != X.shape[0]:
            raise ValueError(f"{len(codes)} labels for {X.shape[0]} rows")
        columns = tuple(meta.get("columns", ()))
        metadata = {name: _read(folder, name) for name in meta.get("metadata", [])}
        n_dropped, notes = meta.get("n_dropped", 0), tuple(meta.get("notes", ()))
        return Dataset(
            meta["name"], X, classes, codes, meta["fingerprint"], metadata, columns, n_dropped, notes
        )
    except Exception as error:  # numpy parses a damaged header as Python, and fails as Python does
        raise DatasetError(
            f"the prepared dataset in {folder} is missing or damaged ({error}); run the command again"
        ) from error


def find_prepared(cache_dir: str | Path, name: str, fingerprint: str) -> Path:
    """Return the folder of a dataset that was prepared in a cache before.

    Raises
    ------
    DatasetError
        If it is not there.
    """
    folder = _folder(Path(cache_dir), name, fingerprint)
    if not folder.is_dir():
        raise DatasetError(
            f"dataset {name!r} is not in {cache_dir}; name the cache that the study was run with, or run the "
            "study's command again here"
        )
    return folder


def _folder(cache_dir: Path, name: str, fingerprint: str) -> Path:
    safe_name = re.sub(r"[^\w.-]", "_", name)
    return cache_dir / f"{safe_name}-{fingerprint[:16]}"


def _prepare(dataset: Dataset, cache_dir: Path) -> Path:
    cache_dir.mkdir(parents=True, exist_ok=True)
    folder = _folder(cache_dir, dataset.name, dataset.fingerprint)
    with FileLock(cache_dir / f".{folder.name}.lock"):
        if not _holds(folder, dataset):
            temporary = cache_dir / f".{folder.name}.{uuid4().hex}"
            temporary.mkdir()
            try:
                _write(dataset, temporary)
                shutil.rmtree(folder, ignore_errors=True)
                temporary.replace(folder)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _holds(folder: Path, dataset: Dataset) -> bool:
    with suppress(DatasetError):
        found = open_prepared(folder)
        content = fingerprint(found.X, found.classes, found.codes, found.metadata)
        names = [(each.name, each.columns, each.n_dropped, each.notes) for each in (found, dataset)]
        return names[0] == names[1] and found.fingerprint == content == dataset.fingerprint
    return False


def _write(dataset: Dataset, folder: Path) -> None:
    X, kind = dataset.X, _kind(dataset.X)
    if kind == "sparse":
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    elif kind == "mixed":
        frame = encode(X)
        parts = {"numbers": frame.numbers, "values": frame.codes}
        (folder / COLUMNS).write_text(json.dumps(frame.columns), encoding="utf-8")
    else:
        parts = {"X": X}
    for name, array in {**parts, "codes": dataset.codes, **dataset.metadata}.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    meta = {
        "name": dataset.name,
        "fingerprint": dataset.fingerprint,
        "shape": list(X.shape),
        "sparse": kind == "sparse",
        "mixed": kind == "mixed",
        "classes": dataset.classes.tolist(),
        "metadata": sorted(dataset.metadata),
        "columns": dataset.columns,
        "n_dropped": dataset.n_dropped,
        "notes": dataset.notes,
    }
    (folder / META).write_text(json.dumps(meta, indent=1), encoding="utf-8")


def _kind(X: Features) -> str:
    if isinstance(X, pd.DataFrame):
        return "mixed"
    return "sparse" if scipy.sparse.issparse(X) else "dense"


def _open_features(folder: Path, meta: dict[str, Any]) -> Features:
    shape = tuple(meta["shape"])
    if meta["sparse"]:
        parts = _map(folder, "data", np.float64), _map(folder, "indices"), _map(folder, "indptr")
        return scipy.sparse.csr_matrix(parts, shape=shape, copy=False)
    if meta.get("mixed"):
        columns = json.loads((folder / COLUMNS).read_text(encoding="utf-8"))
        arrays = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("numbers", "values"))
        X = decode(EncodedFrame(columns, *arrays))
    else:
        X = _map(folder, "X", np.float64)
    if X.shape != shape:
        raise ValueError(f"expected features of shape {shape}, found {X.shape}")
    return X


def _map(folder: Path, name: str, dtype: type = np.int32) -> Any:
    array = _read(folder, name)
    if array.dtype != dtype:
        raise ValueError(f"expected {name} of type {np.dtype(dtype)}, found {array.dtype}")
    return array


def _read(folder: Path, name: str) -> Any:
    # A plain array over the map: slices of numpy's memmap class are slower and carry the class along.
    return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
