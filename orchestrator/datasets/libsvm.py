"""LIBSVM text files: `label index:value …` on each line, indices from 1 and ascending, zeros left out."""

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
from orchestrator.datasets.memory import require_room
from orchestrator.study.names import did_you_mean
from orchestrator.study.text import shown

DENSE_FROM = 0.1
"""Share of non-zeros from which features are returned dense.

Measured on 3,000 rows, one core: at a share of 0.11 to 0.22 (a9a, mnist, covtype) a dense Gram matrix takes
a fifth of the time of a CSR one, and LIBSVM up to a quarter; at 0.03 (w3a) they are even.
"""

MOST_FEATURES = 2**31 - 1
"""The indices of sparse matrices have 32 bits."""

PARSED = 5
"""Bytes that a byte of text may take while it is read: a value of four characters becomes 20 bytes."""

_INDEX = re.compile(rb"\+?\d+")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def libsvm_file(
    name: str, folder: str | Path, n_features: int | None = None, positive: float | None = None
) -> tuple[Features, NDArray[Any]]:
    """Read a LIBSVM file found by name: `NAME.libsvm`, with `.xz`, `.bz2` or `.gz`, or plain `NAME`.

    Parameters
    ----------
    name : str
        Name of the dataset.
    folder : path
        Where its file is.
    n_features : int, optional
        Number of features, if trailing ones may be zero in every row; by default the largest index.
    positive : float, optional
        The class that becomes 1, and all others -1.

    Returns
    -------
    X, y
        As of `read_libsvm`.

    Raises
    ------
    DatasetError
        If there is no such file or class, or it is broken.
    """
    path = find_libsvm_file(name, folder)
    X, y = read_libsvm(path, n_features)
    if positive is None:
        return X, y
    if positive not in y:
        raise DatasetError(f"{path} has no class {shown(positive)}; correct `positive`")
    return X, np.where(y == positive, 1, -1)


def find_libsvm_file(name: str, folder: str | Path) -> Path:
    """Return the path of a dataset's file in a folder.

    Raises
    ------
    DatasetError
        If there is none.
    """
    folder = Path(folder)
    if (path := libsvm_path(name, folder)) is not None:
        return path
    if not folder.is_dir():
        raise DatasetError(
            f"expected {name}.libsvm.xz (or .bz2, .gz, or neither) in {folder}, but there is no such folder; "
            f"set paths.data to the folder with your datasets, or get it: {_command(name, folder)}"
        )
    for suffix in SUFFIXES[:-1]:  # a pipe or a folder of that name
        if (odd := folder / f"{name}{suffix}").exists():
            return existing_file(odd)
    raise DatasetError(
        f"expected {name}.libsvm.xz (or .bz2, .gz, or neither) in {folder}, found no such file"
        f"{did_you_mean(name, libsvm_names(folder))}; get it with {_command(name, folder)}, put it there, or "
        "set paths.data to its folder"
    )


def _command(name: str, folder: Path) -> str:
    """Return the command that fetches a dataset into a folder, or says where it is published."""
    where = [] if folder.absolute() == Path("data").absolute() else [f"paths.data={folder}"]
    return f"`{shlex.join(['svmbench', 'data', 'fetch', name, *where])}`"


def read_libsvm(path: str | Path, n_features: int | None = None) -> tuple[Features, NDArray[Any]]:
    """Read a LIBSVM file, compressed or not by its ending.

    Parameters
    ----------
    path : path
    n_features : int, optional
        Number of features; by default the largest index.

    Returns
    -------
    X : float64 array or CSR matrix, shape (n, d)
        CSR if fewer than a tenth of the values are non-zero (`DENSE_FROM`).
    y : array, shape (n,)
        The labels: integers if all are whole, else floats.

    Raises
    ------
    DatasetError
        If the file cannot be read or decompressed, is empty or too large for `memory_limit`, or has a broken
        line, which is named.
    """
    path = existing_file(path)
    if n_features is not None and (type(n_features) is not int or not 1 <= n_features <= MOST_FEATURES):
        raise DatasetError(f"n_features must be a whole number from 1 to 2³¹ - 1, found {shown(n_features)}")
    rows = plain_rows(path)
    if rows is not None and (n_features is None or _width(rows) <= n_features):
        return _assembled(rows, n_features or _width(rows))
    return _read_line_by_line(path, n_features)


def _width(rows: list[Rows]) -> int:
    return max((int(part.indices.max()) + 1 for part in rows if len(part.indices)), default=1)


def _assembled(rows: list[Rows], d: int) -> tuple[Features, NDArray[Any]]:
    n, nnz = sum(len(part.labels) for part in rows), sum(len(part.data) for part in rows)
    y = as_integers(np.concatenate([part.labels for part in rows]))
    lengths = np.concatenate([part.lengths for part in rows])
    if nnz < DENSE_FROM * n * d:
        indptr = np.append(0, np.cumsum(lengths, dtype=np.int64))
        data, indices = (np.concatenate([part[at] for part in rows]) for at in (0, 1))
        return scipy.sparse.csr_matrix((data, indices, indptr), shape=(n, d)), y
    require_room(9.0 * n * d, f"{n:,} rows × {d:,} features")
    X = np.zeros((n, d))
    start = 0
    while rows:  # each part is freed when its values are in place
        part = rows.pop(0)
        stop = start + len(part.labels)
        indptr = np.append(0, np.cumsum(part.lengths))
        scipy.sparse.csr_matrix((part.data, part.indices, indptr), (stop - start, d)).toarray(
            out=X[start:stop]
        )
        start = stop
    return X, y


def _read_line_by_line(path: Path, n_features: int | None) -> tuple[Features, NDArray[Any]]:
    """Read what is not plain, and name the first line that is wrong."""
    text = read_text(path, PARSED)
    # scikit-learn reads what LIBSVM does not: 1_000 and query ids (looked for here), nan and inf (below).
    problem = _first_broken_line(text, n_features) if b"_" in text or b"qid" in text else None
    if problem is None:
        try:
            X, y = load_svmlight_file(io.BytesIO(text), n_features=n_features, zero_based=False)
            if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
                problem = _first_broken_line(text, n_features)
        except (ValueError, OverflowError) as error:
            problem = _first_broken_line(text, n_features) or f": {error}"
    if problem is None and X.shape[1] > MOST_FEATURES:
        problem = _first_broken_line(text, n_features)
    if problem is not None:
        raise DatasetError(f"{path}{problem}; correct the file, or fetch it again")
    if not len(y):
        raise DatasetError(f"{path} is empty; expected lines such as '1 1:0.5 3:2'; fetch it again")
    return _compact(X), as_integers(y)


def _first_broken_line(text: bytes, n_features: int | None) -> str | None:
    """Return `, line 7: expected …, found …` for the first line that is not LIBSVM format."""
    for number, line in enumerate(text.split(b"\n"), start=1):
        if problem := _broken(line.partition(b"#")[0].split(), n_features):
            return f", line {number}: {problem}"
    return None


def _broken(tokens: list[bytes], n_features: int | None) -> str | None:
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
        if len(index.lstrip(b"+0")) > 10 or int(index) > MOST_FEATURES:
            return f"expected feature indices up to {MOST_FEATURES:,}, found {_show(pair)}"
        if int(index) < 1:
            return f"expected feature indices from 1, found {_show(pair)}"
        if int(index) <= previous:
            return f"expected ascending feature indices, found {_show(pair)} after index {previous}"
        if n_features is not None and int(index) > n_features:
            return f"expected at most {n_features} features (n_features), found {_show(pair)}"
        if not _is_number(value):
            return f"expected a number after the colon, found {_show(pair)}"
        previous = int(index)
    return None


def _is_number(token: bytes) -> bool:
    return _NUMBER.fullmatch(token) is not None and np.isfinite(float(token))


def _show(token: bytes) -> str:
    return repr(token[:40])[1:] + ("…" if len(token) > 40 else "")


def _compact(X: Any) -> Features:
    n_values = X.shape[0] * X.shape[1]
    if X.nnz < DENSE_FROM * n_values:
        return X
    require_room(9.0 * n_values, f"{X.shape[0]:,} rows × {X.shape[1]:,} features")
    return X.toarray()
