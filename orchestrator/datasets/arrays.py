"""Datasets from files of NumPy arrays: features and labels in an archive, or a table of numbers."""

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.datasets.dataset import DatasetError
from orchestrator.datasets.files import existing_file, unreadable
from orchestrator.datasets.labels import as_integers
from orchestrator.datasets.memory import require_room
from orchestrator.study.names import did_you_mean
from orchestrator.study.text import shown


def npz_file(path: str, features: str = "X", label: str = "y") -> tuple[NDArray[Any], NDArray[Any]]:
    """Read features and labels from an archive that `numpy.savez` or `numpy.savez_compressed` has written.

    Parameters
    ----------
    path : str
        The file; in a configuration, `${paths.data}/NAME.npz` is in the data folder.
    features, label : str
        Names of the two arrays.

    Returns
    -------
    X : array, shape (n, d)
    y : array, shape (n,)

    Raises
    ------
    DatasetError
        If there is no such file or array, it is damaged or too large, or it holds Python objects.
    """
    place = existing_file(path)
    try:
        with zipfile.ZipFile(place) as archive:
            return _member(archive, place, features), _member(archive, place, label)
    except DatasetError:
        raise
    except Exception as error:  # numpy parses a damaged header as Python, and fails as Python does
        raise _unreadable(place, error) from error


def npy_file(path: str, label: int = -1) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read a table of numbers, one column of which holds the labels, as `numpy.save` has written it.

    Parameters
    ----------
    path : str
        The file; in a configuration, `${paths.data}/NAME.npy` is in the data folder.
    label : int
        Position of the column of labels, from 0; below 0 from the end.

    Returns
    -------
    X : array, shape (n, d - 1)
    y : array, shape (n,)

    Raises
    ------
    DatasetError
        If there is no such file or column, it is damaged or too large, or it holds Python objects.
    """
    place = existing_file(path)
    with place.open("rb") as file:
        if (head := file.read(6)) and not head.startswith((b"\x93NUMPY", b"PK")):  # a pickle, to numpy
            raise DatasetError(f"{place} is no file of numpy.save; correct `path`, or read it as what it is")
    try:
        table = np.load(place, mmap_mode="r", allow_pickle=False)  # which compares shape and size
    except Exception as error:  # numpy parses a damaged header as Python, and fails as Python does
        raise _unreadable(place, error) from error
    if not isinstance(table, np.ndarray):
        raise DatasetError(f"{place} is an archive of arrays; read it with npz_file")
    if table.ndim != 2 or table.shape[1] < 2:
        raise DatasetError(
            f"expected a table of features and a column of labels in {place}, found shape {table.shape}; "
            "save the labels as one of its columns, or both arrays with numpy.savez and use npz_file"
        )
    if type(label) is not int or not -table.shape[1] <= label < table.shape[1]:
        raise DatasetError(
            f"{place} has {table.shape[1]} columns, found label={shown(label)}; "
            f"expected a position from 0 to {table.shape[1] - 1}, or below 0 from the end"
        )
    require_room(2.0 * table.nbytes, f"a table of shape {table.shape} in {place}")
    return np.delete(table, label, axis=1), as_integers(np.array(table[:, label]))


def _member(archive: zipfile.ZipFile, place: Path, name: str) -> NDArray[Any]:
    names = [entry.removesuffix(".npy") for entry in archive.namelist()]
    if name not in names:
        which = did_you_mean(str(name), names) or f"; it has {', '.join(names[:20])}"
        raise DatasetError(f"{place} has no array {name!r}{which}; set `features` and `label`")
    entry = archive.getinfo(archive.namelist()[names.index(name)])
    require_room(entry.file_size, f"an array {name!r} in {place}")
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        shape, _, dtype = read[min(version[0], 2) - 1](file)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > entry.file_size:
        raise ValueError(f"array {name!r} of shape {shape} in {entry.file_size:,} bytes")
    with archive.open(entry) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _unreadable(place: Path, error: Exception) -> DatasetError:
    if "allow_pickle" in str(error) or "Python objects" in str(error):  # in an archive, or on its own
        return DatasetError(
            f"{place} holds Python objects, which are code to run; "
            "save arrays of numbers, or of text with a fixed length"
        )
    return unreadable(place, error)
