"""Datasets from files of NumPy arrays: features and labels in an archive, or one numeric table."""

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.files import existing_file, unreadable
from orchestrator.datasets.labels import as_integers
from orchestrator.datasets.memory import require_memory
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import shown


def npz_file(path: str, features: str = "X", label: str = "y") -> tuple[Any, NDArray[Any]]:
    """Read features and labels from an archive that `numpy.savez` or `numpy.savez_compressed` has written.

    The arrays of a sparse matrix in CSR format, named as by `scipy.sparse.save_npz`, are features as well.

    Parameters
    ----------
    path : str
        Path of the file; in a configuration, `${paths.data}/NAME.npz` is in the data folder.
    features, label : str
        Names of the two arrays in the archive.

    Returns
    -------
    X : array or CSR matrix, shape (n, d)
        Features, one row for each sample.
    y : array, shape (n,)
        Class label of each row.

    Raises
    ------
    DatasetError
        If the file or array does not exist, is damaged or too large, or contains Python objects.
    """
    source = existing_file(path)
    try:
        with zipfile.ZipFile(source) as archive:
            names = {entry.removesuffix(".npy") for entry in archive.namelist()}
            is_sparse = features not in names and names >= {"data", "indices", "indptr", "shape", "format"}
            X = _csr(archive, source) if is_sparse else _member(archive, source, features)
            return X, _member(archive, source, label)
    except DatasetError:
        raise
    except Exception as error:  # numpy may raise any exception for a damaged header
        raise _unreadable(source, error) from error


def npy_file(path: str, label: int = -1) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read a numeric table that `numpy.save` has written; one column contains the labels.

    Parameters
    ----------
    path : str
        Path of the file; in a configuration, `${paths.data}/NAME.npy` is in the data folder.
    label : int
        Index of the column of labels, from 0; negative indices count from the end.

    Returns
    -------
    X : array, shape (n, d - 1)
        Features.
    y : array, shape (n,)
        Class label of each row.

    Raises
    ------
    DatasetError
        If the file or column does not exist, is damaged or too large, or contains Python objects.
    """
    source = existing_file(path)
    with source.open("rb") as file:
        if (head := file.read(6)) and not head.startswith((b"\x93NUMPY", b"PK")):  # numpy expects a pickle
            raise DatasetError(f"{source} is not a file of numpy.save; correct `path`, or use another loader")
    try:
        table = np.load(source, mmap_mode="r", allow_pickle=False)  # numpy compares shape and size
    except Exception as error:  # numpy may raise any exception for a damaged header
        raise _unreadable(source, error) from error
    if not isinstance(table, np.ndarray):
        raise DatasetError(f"{source} is an archive of arrays; read it with npz_file")
    if table.ndim != 2 or table.shape[1] < 2:
        raise DatasetError(
            f"expected a table of features and a column of labels in {source}, found shape {table.shape}; "
            "save the labels as one of its columns, or both arrays with numpy.savez and use npz_file"
        )
    if type(label) is not int or not -table.shape[1] <= label < table.shape[1]:
        raise DatasetError(
            f"{source} has {table.shape[1]} columns, found label={shown(label)}; "
            f"expected an index from 0 to {table.shape[1] - 1}, or below 0 from the end"
        )
    require_memory(2.0 * table.nbytes, f"a table of shape {table.shape} in {source}")
    return np.delete(table, label, axis=1), as_integers(np.array(table[:, label]))


def _csr(archive: zipfile.ZipFile, source: Path) -> Any:
    """Read the sparse matrix of an archive.

    Parameters
    ----------
    archive : ZipFile
        Open archive with the arrays of a matrix in CSR format.
    source : Path
        Its path, for messages.
    """
    kind = _member(archive, source, "format").item().decode()
    if kind != "csr":
        raise DatasetError(
            f"expected a matrix in CSR format in {source}, found {kind}; convert it with tocsr()"
        )
    data, indices, indptr, shape = (
        _member(archive, source, name) for name in ("data", "indices", "indptr", "shape")
    )
    return scipy.sparse.csr_matrix((data, indices, indptr), shape=tuple(shape.tolist()))


def _member(archive: zipfile.ZipFile, source: Path, name: str) -> NDArray[Any]:
    """Read one array of an archive, after checking its size.

    Parameters
    ----------
    archive : ZipFile
        Archive that is open for reading.
    source : Path
        Its path, for messages.
    name : str
        Name of the array.
    """
    names = [entry.removesuffix(".npy") for entry in archive.namelist()]
    if name not in names:
        which = did_you_mean(str(name), names) or f"; it has {', '.join(names[:20])}"
        raise DatasetError(f"{source} has no array {name!r}{which}; set `features` and `label`")
    entry = archive.getinfo(archive.namelist()[names.index(name)])
    require_memory(entry.file_size, f"an array {name!r} in {source}")
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        shape, _, dtype = read[min(version[0], 2) - 1](file)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > entry.file_size:
        raise ValueError(f"array {name!r} of shape {shape} in {entry.file_size:,} bytes")
    with archive.open(entry) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _unreadable(source: Path, error: Exception) -> DatasetError:
    """Return the error for a file that numpy cannot read.

    Parameters
    ----------
    source : Path
        File that cannot be read, for the message.
    error : Exception
        Exception that numpy raised.
    """
    # The first text is in numpy's message for an array in an archive, the second for a single array.
    if "allow_pickle" in str(error) or "Python objects" in str(error):
        return DatasetError(
            f"{source} holds Python objects, which can run code when they are loaded; "
            "save arrays of numbers, or of text with a fixed length"
        )
    return unreadable(source, error)
