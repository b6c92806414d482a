"""The type of a checked dataset, and the fingerprint of its content."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.frames import encode

Features = Any
"""Features of shape (n, d), in one of three forms: a C-contiguous float64 array with NaN for missing values;
a float64 CSR matrix in canonical format with int32 indices and without NaN; a frame as in `frames`."""

CHUNK = 1 << 20
"""Count of numbers hashed at a time, so that hashing a memory-mapped dataset needs no second copy of it."""


class DatasetError(ValueError):
    """Error of a dataset that cannot be used; the message says how to correct it."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Checked features and labels.

    Attributes
    ----------
    name : str
        Name of the dataset.
    X : float64 array, CSR matrix or frame, shape (n, d)
        Features.
    classes : array, shape (n_classes,)
        Different labels, ascending: integers, floats, booleans or strings.
    codes : int32 array, shape (n,)
        Class of each row, as an index into `classes`.
    fingerprint : str
        SHA-256 of the content, in hexadecimal; it does not depend on the name.
    metadata : mapping of str to array, shape (n,)
        Values of each row for splitters: `groups`, `test_fold`.
    columns : tuple of str
        Names of the features if the loader returned a frame. For arrays, names are not part of the content.
    n_dropped : int
        Number of rows of the loader that were dropped as copies of others.
    notes : tuple of str
        Sentences about anything in the file that the loader has not used.
    check : callable or None
        Function that raises if the features of some rows differ from the prepared ones. Its argument is an
        array of row indices, or None for all rows. None for features in memory.
    """

    name: str
    X: Features
    classes: NDArray[Any]
    codes: NDArray[np.int32]
    fingerprint: str
    metadata: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    n_dropped: int = 0
    notes: tuple[str, ...] = ()
    check: Callable[[NDArray[np.integer] | None], None] | None = None

    def require_intact(self, rows: NDArray[np.integer] | None = None) -> None:
        """Raise if features that were read differ from the prepared ones.

        Call it after reading, because a prepared copy may be damaged at any time.

        Parameters
        ----------
        rows : array of int, optional
            Indices of the rows that were read, from 0; by default, all rows.

        Raises
        ------
        DatasetError
            If the copy is damaged; the message names its folder.
        """
        if self.check is not None:
            self.check(rows)

    @cached_property
    def y(self) -> NDArray[Any]:
        """Label of each row, shape (n,)."""
        return self.classes[self.codes]

    @cached_property
    def is_plain(self) -> bool:
        """Whether all features are finite numbers."""
        X = self.X
        return scipy.sparse.issparse(X) or not (isinstance(X, pd.DataFrame) or np.isnan(X.min()))

    @cached_property
    def odd_columns(self) -> dict[int, str]:
        """Content of columns that are not finite numbers, by index: "missing values", "text" or both."""
        if self.is_plain:
            return {}
        if not isinstance(self.X, pd.DataFrame):
            return dict.fromkeys(np.flatnonzero(np.isnan(self.X).any(axis=0)).tolist(), MISSING)
        text = [dtype != np.float64 for dtype in self.X.dtypes]
        found = zip(text, self.X.isna().any(), strict=True)
        kinds = [" and ".join([TEXT] * is_text + [MISSING] * missing) for is_text, missing in found]
        return {column: kind for column, kind in enumerate(kinds) if kind}

    def column_name(self, column: int) -> str:
        """Return the name of a feature in quotes, or its index if it has no name.

        Parameters
        ----------
        column : int
            Index of the feature.
        """
        return repr(self.columns[column]) if self.columns else f"{column} (from 0)"


MISSING, TEXT = "missing values", "text"


def fingerprint(
    X: Features, classes: NDArray[Any], codes: NDArray[np.int32], metadata: Mapping[str, NDArray[Any]]
) -> str:
    """Return the SHA-256 of a dataset's shape, features, labels, names, types and metadata.

    Equal values give equal fingerprints on every computer. A dense array and a CSR matrix of the same values
    have different fingerprints.

    Parameters
    ----------
    X : array, CSR matrix or frame, shape (n, d)
        Features, one row for each sample.
    classes : array, shape (n_classes,)
        Different labels, ascending.
    codes : int32 array, shape (n,)
        Class of each row, as an index into `classes`.
    metadata : mapping of str to array, shape (n,)
        Values of each row, by name.
    """
    head = {"shape": list(X.shape), "classes": classes.tolist()}
    parts: list[tuple[NDArray[Any], str]]
    if isinstance(X, pd.DataFrame):
        frame = encode(X)
        head["columns"] = frame.columns
        parts = [(frame.numbers.reshape(-1), "<f8"), (frame.codes.reshape(-1), "<i8")]
    elif scipy.sparse.issparse(X):
        head["dense"] = False
        parts = [(X.data, "<f8"), (X.indices, "<i8"), (X.indptr, "<i8")]
    else:
        head["dense"] = True
        parts = [(X.reshape(-1), "<f8")]
    content = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for values, dtype in [*parts, (codes, "<i8")]:
        for start in range(0, len(values), CHUNK):
            # Adding zero turns -0.0 into 0.0, because equal values must have equal hashes.
            piece = (values[start : start + CHUNK] + 0).astype(dtype, copy=False)
            if dtype == "<f8":
                piece[np.isnan(piece)] = np.nan  # NaN has several bit patterns
            content.update(piece.data)
    for name, each in sorted(metadata.items()):
        known, indices = np.unique(each, return_inverse=True)
        content.update(json.dumps([name, known.tolist()]).encode())
        content.update(indices.astype("<i8").data)
    return content.hexdigest()
