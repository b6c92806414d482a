"""Prepared copies of datasets on disk, one folder per content, which processes map into memory.

The function `open_prepared` opens a copy and checks every block of its files. Values are read from the maps
much later, so `Dataset.check` checks the blocks of some rows again after reading.
"""

import json
import re
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import scipy.sparse
from filelock import FileLock
from numpy.typing import NDArray

from orchestrator.datasets.checked_files import (
    MappedArray,
    Sums,
    array_of,
    read_bytes,
    write_array,
    write_bytes,
)
from orchestrator.datasets.dataset import Dataset, DatasetError, Features
from orchestrator.datasets.frames import EncodedFrame, decode, encode
from orchestrator.study.values import digest

META, COLUMNS = "meta.json", "columns.json"

_CHECKSUM, _FILES = "checksum", "files"

Check = Callable[[NDArray[np.integer] | None], None]


class DamagedCopyError(DatasetError):
    """Error of a prepared copy that is missing or differs from the prepared content.

    Parameters
    ----------
    folder : Path
        Folder of the copy.
    error : Exception
        Exception that revealed the damage.
    """

    def __init__(self, folder: Path, error: Exception):
        super().__init__(
            f"the prepared dataset in {folder} is missing or damaged ({error}); run the command again"
        )


def prepare(dataset: Dataset, cache_dir: str | Path) -> Path:
    """Write a dataset to its folder in a cache unless an intact copy is there, and return the folder.

    The folder appears only when it is complete, even if other processes prepare the same dataset at the same
    time. A damaged folder is replaced, and the user is warned.

    Parameters
    ----------
    dataset : Dataset
        Loaded dataset.
    cache_dir : path
        Folder of prepared datasets.

    Raises
    ------
    DatasetError
        If the cache cannot be written.
    """
    folder, damage = replaced(dataset, cache_dir)
    warn_of_damage(damage)
    return folder


def warn_of_damage(damage: str) -> None:
    """Warn the user that a damaged copy was replaced.

    Parameters
    ----------
    damage : str
        Description that `replaced` returned; nothing happens if it is empty.
    """
    if damage:
        warnings.warn(damage, stacklevel=1)


def replaced(dataset: Dataset, cache_dir: str | Path) -> tuple[Path, str]:
    """Prepare a dataset like `prepare`, and return a description of damage instead of a warning.

    Parameters
    ----------
    dataset : Dataset
        Loaded dataset.
    cache_dir : path
        Folder of prepared datasets.

    Returns
    -------
    folder : Path
        Folder of the copy.
    damage : str
        Sentence about a damaged copy that was replaced; empty if there was none.

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
            "free disk space there, or set paths.cache to another folder"
        ) from error


def open_prepared(folder: str | Path) -> Dataset:
    """Open a prepared dataset and check every byte of it.

    Features are read-only views of the files. A frame is read into memory.

    Parameters
    ----------
    folder : path
        Folder of the copy.

    Raises
    ------
    DamagedCopyError
        If the folder does not exist or is damaged.
    """
    folder = Path(folder)
    try:
        meta = read_meta(folder)
        files = _Files(folder, meta[_FILES])
        X, check = _open_features(files, meta)
        codes = files.array("codes", np.int32)
        classes = np.array(meta["classes"])
        if len(codes) != X.shape[0]:
            raise ValueError(f"{len(codes)} labels for {X.shape[0]} rows")
        return Dataset(
            meta["name"],
            X,
            classes,
            codes,
            meta["fingerprint"],
            {name: files.array(name) for name in meta["metadata"]},
            tuple(meta["columns"]),
            meta["n_dropped"],
            tuple(meta["notes"]),
            check,
        )
    except Exception as error:  # numpy may raise any exception for a damaged header
        raise DamagedCopyError(folder, error) from error


def read_meta(folder: Path) -> dict[str, Any]:
    """Return the metadata of a prepared copy.

    Parameters
    ----------
    folder : Path
        Folder of the copy.

    Raises
    ------
    OSError, ValueError
        If the metadata cannot be read or are damaged.
    """
    meta = json.loads((folder / META).read_text(encoding="utf-8"))
    if not isinstance(meta, dict) or meta.pop(_CHECKSUM, None) != digest(meta):
        raise ValueError(f"{META} does not have its checksum")
    return meta


def find_prepared(cache_dir: str | Path, name: str, fingerprint: str) -> Path:
    """Return the folder of a dataset in a cache.

    Parameters
    ----------
    cache_dir : path
        Folder of prepared datasets.
    name : str
        Name of the dataset.
    fingerprint : str
        Fingerprint of its content.

    Raises
    ------
    DatasetError
        If the folder does not exist.
    """
    folder = _folder(Path(cache_dir), name, fingerprint)
    if not folder.is_dir():
        raise DatasetError(
            f"dataset {name!r} is not in {cache_dir}; name the cache that the study was run with, or run the "
            "study's command again here"
        )
    return folder


def _folder(cache_dir: Path, name: str, fingerprint: str) -> Path:
    """Return the path of a dataset's folder in a cache.

    Parameters
    ----------
    cache_dir : Path
        Folder of prepared datasets.
    name : str
        Name of the dataset.
    fingerprint : str
        Fingerprint of its content.
    """
    safe_name = re.sub(r"[^\w.-]", "_", name)
    return cache_dir / f"{safe_name}-{fingerprint[:16]}"


def _prepare(dataset: Dataset, cache_dir: Path) -> tuple[Path, str]:
    """Write a dataset to its folder if necessary; return the folder and a description of damage.

    Parameters
    ----------
    dataset : Dataset
        Loaded dataset.
    cache_dir : Path
        Folder of prepared datasets.
    """
    cache_dir.mkdir(parents=True, exist_ok=True)
    folder = _folder(cache_dir, dataset.name, dataset.fingerprint)
    with FileLock(cache_dir / f".{folder.name}.lock"):
        damage, is_current = _state(folder, dataset)
        if not is_current:
            temporary = cache_dir / f".{folder.name}.{uuid4().hex}"
            temporary.mkdir()
            try:
                _write(dataset, temporary)
                shutil.rmtree(folder, ignore_errors=True)
                temporary.replace(folder)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    if damage:
        damage = (
            f"dataset {dataset.name!r}: its prepared copy in {folder} was damaged ({damage}); it was "
            "prepared again from its source"
        )
    return folder, damage


def _state(folder: Path, dataset: Dataset) -> tuple[str, bool]:
    """Return a description of a folder's damage, and whether the folder contains the dataset.

    Parameters
    ----------
    folder : Path
        Folder of a copy; may not exist.
    dataset : Dataset
        Expected content.
    """
    try:
        found = open_prepared(folder)
    except DamagedCopyError as error:
        return str(error.__cause__) if _had_checksums(folder) else "", False
    names = [
        (each.name, each.columns, each.n_dropped, each.notes, each.fingerprint) for each in (found, dataset)
    ]
    return "", names[0] == names[1]


def _had_checksums(folder: Path) -> bool:
    """Return whether a folder exists and its format has checksums, which older versions did not write.

    Parameters
    ----------
    folder : Path
        Folder of a copy.
    """
    if not folder.is_dir():
        return False
    try:
        return _CHECKSUM in json.loads((folder / META).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return True


def _write(dataset: Dataset, folder: Path) -> None:
    """Write a dataset to an empty folder.

    Parameters
    ----------
    dataset : Dataset
        Loaded dataset.
    folder : Path
        Folder that exists and is empty.
    """
    X, kind = dataset.X, _kind(dataset.X)
    files: dict[str, Sums] = {}
    if kind == "sparse":
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    elif kind == "mixed":
        frame = encode(X)
        parts = {"numbers": frame.numbers, "values": frame.codes}
        files[COLUMNS] = write_bytes(folder / COLUMNS, json.dumps(frame.columns).encode())
    else:
        parts = {"X": X}
    for name, array in {**parts, "codes": dataset.codes, **dataset.metadata}.items():
        files[f"{name}.npy"] = write_array(folder / f"{name}.npy", array)
    meta = {
        "name": dataset.name,
        "fingerprint": dataset.fingerprint,
        "shape": list(X.shape),
        "kind": kind,
        "classes": dataset.classes.tolist(),
        "metadata": sorted(dataset.metadata),
        "columns": list(dataset.columns),
        "n_dropped": dataset.n_dropped,
        "notes": list(dataset.notes),
        _FILES: {name: [sums.size, list(sums.blocks)] for name, sums in files.items()},
    }
    (folder / META).write_text(json.dumps(meta | {_CHECKSUM: digest(meta)}), encoding="utf-8")


def _kind(X: Features) -> str:
    """Return the form of features: "dense", "sparse" or "mixed".

    Parameters
    ----------
    X : array, CSR matrix or frame, shape (n, d)
        Features, one row for each sample.
    """
    if isinstance(X, pd.DataFrame):
        return "mixed"
    return "sparse" if scipy.sparse.issparse(X) else "dense"


class _Files:
    """Files of a prepared copy.

    Parameters
    ----------
    folder : Path
        Folder of the copy.
    files : mapping of str to (size, checksums)
        Expected size in bytes, and checksums of the blocks, of each file.
    """

    def __init__(self, folder: Path, files: Mapping[str, Any]):
        self.folder = folder
        self._sums = {name: Sums(size, tuple(blocks)) for name, (size, blocks) in files.items()}

    def content(self, name: str) -> bytes:
        """Return the checked content of a file.

        Parameters
        ----------
        name : str
            Name of a file in the folder of the copy.
        """
        return read_bytes(self.folder / name, self._sums[name])

    def array(self, name: str, dtype: type | None = None) -> NDArray[Any]:
        """Read an array into memory.

        Parameters
        ----------
        name : str
            File name without `.npy`.
        dtype : type, optional
            Expected type; any by default.
        """
        return _of_type(name, array_of(self.content(f"{name}.npy")), dtype)

    def mapped(self, name: str, dtype: type) -> MappedArray:
        """Map an array into memory.

        Parameters
        ----------
        name : str
            File name without `.npy`.
        dtype : type
            Type that the array must have.
        """
        array = MappedArray(self.folder / f"{name}.npy", self._sums[f"{name}.npy"])
        _of_type(name, array.values, dtype)
        return array


def _of_type(name: str, array: NDArray[Any], dtype: type | None) -> NDArray[Any]:
    """Return an array unchanged if it has the expected type, else raise a ValueError.

    Parameters
    ----------
    name : str
        Name for the message.
    array : array
        Array to check.
    dtype : type or None
        Expected type; None for any.
    """
    if dtype is not None and array.dtype != dtype:
        raise ValueError(f"expected {name} of type {np.dtype(dtype)}, found {array.dtype}")
    return array


def _open_features(files: _Files, meta: Mapping[str, Any]) -> tuple[Features, Check | None]:
    """Return features and a function that checks some of their rows; None for features in memory.

    Parameters
    ----------
    files : _Files
        Files of the copy.
    meta : mapping
        Metadata of the copy.
    """
    shape, check = tuple(meta["shape"]), None
    X: Features
    if meta["kind"] == "sparse":
        parts = [files.mapped(*part) for part in (("data", np.float64), ("indices", np.int32))]
        ends = files.array("indptr", np.int32)  # in memory: after damage, scipy would read out of bounds
        values = (*(part.values for part in parts), ends)
        X = scipy.sparse.csr_matrix(values, shape=shape, copy=False)
        check = _checking(files.folder, _check_of_sparse(parts, ends))
    elif meta["kind"] == "mixed":
        columns = json.loads(files.content(COLUMNS))
        X = decode(EncodedFrame(columns, files.array("numbers"), files.array("values")))
    else:
        array = files.mapped("X", np.float64)
        X, check = array.values, _checking(files.folder, _check_of_dense(array))
    if X.shape != shape:
        raise ValueError(f"expected features of shape {shape}, found {X.shape}")
    return X, check


def _check_of_dense(array: MappedArray) -> Check:
    """Return the check of a dense array.

    Parameters
    ----------
    array : MappedArray
        Features, mapped from the file.
    """

    def check(rows: NDArray[np.integer] | None) -> None:
        if rows is None:
            array.require_intact()
        else:
            array.require_intact(rows, rows + 1)

    return check


def _check_of_sparse(parts: Sequence[MappedArray], ends: NDArray[np.int32]) -> Check:
    """Return the check of a CSR matrix.

    Parameters
    ----------
    parts : sequence of MappedArray
        Values and column indices.
    ends : int32 array, shape (n + 1,)
        Row pointers.
    """

    def check(rows: NDArray[np.integer] | None) -> None:
        bounds = () if rows is None else (ends[rows], ends[rows + 1])
        for part in parts:
            part.require_intact(*bounds)

    return check


def _checking(folder: Path, check: Check) -> Check:
    """Return a check that raises `DamagedCopyError`.

    Parameters
    ----------
    folder : Path
        Folder of the copy, for the message.
    check : callable
        Check that raises a ValueError.
    """

    def checked(rows: NDArray[np.integer] | None) -> None:
        try:
            check(rows)
        except ValueError as error:
            raise DamagedCopyError(folder, error) from error

    return checked
