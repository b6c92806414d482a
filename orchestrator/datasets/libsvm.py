"""LIBSVM text files. Each line is `label index:value …`, with ascending indices from 1; zeros are omitted."""

import io
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from orchestrator.datasets.dataset import DatasetError, Features
from orchestrator.datasets.files import existing_file, read_text
from orchestrator.datasets.labels import as_integers
from orchestrator.datasets.libsvm_files import SUFFIXES, libsvm_names, libsvm_path
from orchestrator.datasets.libsvm_pieces import Rows, plain_rows
from orchestrator.datasets.memory import require_memory
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import shown

DENSE_FROM = 0.1
"""Smallest share of non-zero values for which features are returned as a dense array.

Measured on one core with 3,000 rows. At a share of 0.11 to 0.22 (a9a, mnist, covtype), a dense Gram matrix
takes a fifth of the time of a CSR one; LIBSVM takes up to a quarter. At 0.03 (w3a), the times are equal.
"""

MAX_FEATURES = 2**31 - 1
"""Largest number of features, because indices of sparse matrices have 32 bits."""

MEMORY_PER_BYTE = 5
"""Memory needed to parse one byte of text, in bytes: a value of four characters becomes 20 bytes."""

_INDEX = re.compile(rb"\+?\d+")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def libsvm_file(
    name: str,
    folder: str | Path,
    n_features: int | None = None,
    positive: float | None = None,
    n_rows: int | None = None,
) -> tuple[Features, NDArray[Any]]:
    """Read a LIBSVM file found by name: `NAME.libsvm`, with `.xz`, `.bz2` or `.gz`, or plain `NAME`.

    Parameters
    ----------
    name : str
        Name of the dataset.
    folder : path
        Folder of the file.
    n_features : int, optional
        Number of features, if the last ones may be zero in every row; by default the largest index.
    positive : float, optional
        Class that becomes 1; all others become -1. By default labels are unchanged.
    n_rows : int, optional
        Number of rows to keep. They are drawn with the seed 0, and keep their order. By default all rows.

    Returns
    -------
    X : float64 array or CSR matrix, shape (n, d)
        Features; see `read_libsvm`.
    y : array, shape (n,)
        Class label of each row.

    Raises
    ------
    DatasetError
        If the file or class does not exist, the file is malformed, or it has fewer than `n_rows` rows.
    """
    path = find_libsvm_file(name, folder)
    X, y = read_libsvm(path, n_features)
    if n_rows is not None:
        if not 1 <= n_rows <= y.size:
            raise DatasetError(f"{path}: expected n_rows from 1 to {y.size:,}, found {shown(n_rows)}")
        drawn = np.sort(np.random.default_rng(0).permutation(y.size)[:n_rows])
        X, y = X[drawn], y[drawn]
    if positive is None:
        return X, y
    if positive not in y:
        raise DatasetError(f"{path} has no class {shown(positive)}; correct `positive`")
    return X, np.where(y == positive, 1, -1)


def find_libsvm_file(name: str, folder: str | Path) -> Path:
    """Return the path of a dataset's file in a folder.

    Parameters
    ----------
    name : str
        Name of the dataset.
    folder : path
        Folder of the file.

    Raises
    ------
    DatasetError
        If there is no such file.
    """
    folder = Path(folder).expanduser()
    if (path := libsvm_path(name, folder)) is not None:
        return path
    if not folder.is_dir():
        raise DatasetError(
            f"expected {name}.libsvm.xz (or with .bz2, .gz or no suffix) in {folder}, but there is no such "
            f"folder; set paths.data to the folder with your datasets, or get it: {_command(name, folder)}"
        )
    for suffix in SUFFIXES[:-1]:  # raises if a pipe or a folder has the name
        if (odd := folder / f"{name}{suffix}").exists():
            return existing_file(odd)
    raise DatasetError(
        f"expected {name}.libsvm.xz (or with .bz2, .gz or no suffix) in {folder}, found no such file"
        f"{did_you_mean(name, libsvm_names(folder))}; get it with {_command(name, folder)}, put it there, or "
        "set paths.data to its folder"
    )


def _command(name: str, folder: Path) -> str:
    """Return the command that downloads a dataset into a folder.

    Parameters
    ----------
    name : str
        Name of the dataset.
    folder : Path
        Data folder.
    """
    where = [] if folder.absolute() == Path("data").absolute() else [f"paths.data={folder}"]
    return f"`{shlex.join(['svmbench', 'data', 'fetch', name, *where])}`"


def read_libsvm(path: str | Path, n_features: int | None = None) -> tuple[Features, NDArray[Any]]:
    """Read a LIBSVM file; its suffix determines the compression.

    Parameters
    ----------
    path : path
        File to read, plain or compressed.
    n_features : int, optional
        Number of features; by default the largest index.

    Returns
    -------
    X : float64 array or CSR matrix, shape (n, d)
        Features; CSR if less than a tenth of the values is non-zero (`DENSE_FROM`).
    y : array, shape (n,)
        Labels: integers if all are whole numbers, else floats.

    Raises
    ------
    DatasetError
        If the file cannot be read or decompressed, is empty, exceeds `memory_limit`, or has a malformed line
        (the message gives its number).
    """
    path = existing_file(path)
    if n_features is not None and (type(n_features) is not int or not 1 <= n_features <= MAX_FEATURES):
        raise DatasetError(f"n_features must be a whole number from 1 to 2³¹ - 1, found {shown(n_features)}")
    rows = plain_rows(path)
    if rows is not None and (n_features is None or _width(rows) <= n_features):
        return _assembled(rows, n_features or _width(rows))
    return _read_line_by_line(path, n_features)


def _width(rows: list[Rows]) -> int:
    """Return the largest index of a feature, from 1; at least 1.

    Parameters
    ----------
    rows : list of Rows
        Parsed parts of a file.
    """
    return max((int(part.indices.max()) + 1 for part in rows if len(part.indices)), default=1)


def _assembled(rows: list[Rows], d: int) -> tuple[Features, NDArray[Any]]:
    """Return features and labels of parsed rows; the list is emptied to release memory.

    Parameters
    ----------
    rows : list of Rows
        Parsed parts of a file.
    d : int
        Number of features.
    """
    n, nnz = sum(len(part.labels) for part in rows), sum(len(part.data) for part in rows)
    y = as_integers(np.concatenate([part.labels for part in rows]))
    lengths = np.concatenate([part.lengths for part in rows])
    if nnz < DENSE_FROM * n * d:
        indptr = np.append(0, np.cumsum(lengths, dtype=np.int64))
        data, indices = (np.concatenate([part[at] for part in rows]) for at in (0, 1))
        return scipy.sparse.csr_matrix((data, indices, indptr), shape=(n, d)), y
    require_memory(9.0 * n * d, f"{n:,} rows × {d:,} features")
    X = np.zeros((n, d))
    start = 0
    while rows:  # each part is released as soon as its values are copied
        part = rows.pop(0)
        stop = start + len(part.labels)
        indptr = np.append(0, np.cumsum(part.lengths))
        scipy.sparse.csr_matrix((part.data, part.indices, indptr), (stop - start, d)).toarray(
            out=X[start:stop]
        )
        start = stop
    return X, y


def _read_line_by_line(path: Path, n_features: int | None) -> tuple[Features, NDArray[Any]]:
    """Read a file with unusual syntax, or raise an error that names the first malformed line.

    Parameters
    ----------
    path : Path
        LIBSVM file, plain or compressed.
    n_features : int or None
        Number of features; None for the largest index.
    """
    text = read_text(path, MEMORY_PER_BYTE)
    # scikit-learn accepts input that LIBSVM rejects: 1_000 and query ids (checked here), nan and inf (below).
    problem = _first_broken_line(text, n_features) if b"_" in text or b"qid" in text else None
    if problem is None:
        try:
            X, y = load_svmlight_file(io.BytesIO(text), n_features=n_features, zero_based=False)
            if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
                problem = _first_broken_line(text, n_features)
        except (ValueError, OverflowError) as error:
            problem = _first_broken_line(text, n_features) or f": {error}"
    if problem is None and X.shape[1] > MAX_FEATURES:
        problem = _first_broken_line(text, n_features)
    if problem is not None:
        raise DatasetError(f"{path}{problem}; correct the file, or fetch it again")
    if not len(y):
        raise DatasetError(f"{path} is empty; expected lines such as '1 1:0.5 3:2'; fetch it again")
    return _compact(X), as_integers(y)


def _first_broken_line(text: bytes, n_features: int | None) -> str | None:
    """Return `, line 7: expected …, found …` for the first malformed line; None if there is none.

    Parameters
    ----------
    text : bytes
        Content of the file.
    n_features : int or None
        Largest number of features; None for no limit.
    """
    for number, line in enumerate(text.split(b"\n"), start=1):
        if problem := _broken(line.partition(b"#")[0].split(), n_features):
            return f", line {number}: {problem}"
    return None


def _broken(tokens: list[bytes], n_features: int | None) -> str | None:
    """Return why a line is malformed; None if it is valid.

    Parameters
    ----------
    tokens : list of bytes
        Label and pairs of the line.
    n_features : int or None
        Largest number of features; None for no limit.
    """
    if not tokens:
        return None
    label, *pairs = tokens
    if not _is_number(label):
        return f"expected a number as the label, found {_show(label)}"
    previous = 0
    for pair in pairs:
        index, colon, value = pair.partition(b":")
        if not colon or not _INDEX.fullmatch(index):
            return f"expected index:value, found {_show(pair)}"
        if len(index.lstrip(b"+0")) > 10 or int(index) > MAX_FEATURES:
            return f"expected feature indices up to {MAX_FEATURES:,}, found {_show(pair)}"
        if int(index) < 1:
            return (
                f"expected feature indices from 1, found {_show(pair)} (dump_svmlight_file writes these "
                "with zero_based=False)"
            )
        if int(index) <= previous:
            return f"expected ascending feature indices, found {_show(pair)} after index {previous}"
        if n_features is not None and int(index) > n_features:
            return f"expected at most {n_features} features (n_features), found {_show(pair)}"
        if not _is_number(value):
            return f"expected a number after the colon, found {_show(pair)}"
        previous = int(index)
    return None


def _is_number(token: bytes) -> bool:
    """Return whether a token is a finite number.

    Parameters
    ----------
    token : bytes
        Token of a line.
    """
    return _NUMBER.fullmatch(token) is not None and np.isfinite(float(token))


def _show(token: bytes) -> str:
    """Return a token for a message, in quotes and at most 40 bytes long.

    Parameters
    ----------
    token : bytes
        Token of a line.
    """
    return repr(token[:40])[1:] + ("…" if len(token) > 40 else "")


def _compact(X: Any) -> Features:
    """Return features as a CSR matrix or, if enough values are non-zero, as a dense array.

    Parameters
    ----------
    X : CSR matrix, shape (n, d)
        Features as read from the file.
    """
    n_values = X.shape[0] * X.shape[1]
    if X.nnz < DENSE_FROM * n_values:
        return X
    require_memory(9.0 * n_values, f"{X.shape[0]:,} rows × {X.shape[1]:,} features")
    return X.toarray()
