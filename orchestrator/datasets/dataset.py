"""What a dataset is, and the fingerprint of its content."""

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
"""Shape (n, d): a C-contiguous float64 array, with NaN where values are missing, or a float64 CSR matrix in
canonical format with int32 indices and without NaN, or a frame as `frames` describes."""

CHUNK = 1 << 20
"""Numbers hashed at a time, so that hashing a memory-mapped dataset needs no second copy of it."""


class DatasetError(ValueError):
    """A dataset that cannot be used, and what to do about it."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and labels, checked.

    Attributes
    ----------
    name : str
    X : float64 array, CSR matrix or frame, shape (n, d)
    classes : array, shape (n_classes,)
        The labels, ascending: integers, floats, booleans or strings.
    codes : int32 array, shape (n,)
        The class of each row, as an index into `classes`.
    fingerprint : str
        SHA-256 of the content, in hexadecimal; the name has no part in it.
    metadata : mapping of str to array, shape (n,)
        What else is known of each row, for splitters: `groups`, `test_fold`.
    columns : tuple of str
        Names of the features, if the loader gave a frame; of arrays they are no content.
    n_dropped : int
        How many rows of the loader were left out as copies of others.
    notes : tuple of str
        Sentences about what the loader has left out of the file.
    check : callable or None
        Raises if features of rows, given by their indices, are not what was prepared; of all rows if it is
        given None. It is None itself for features in memory.
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
        """Raise if features that were read are not what was prepared.

        Call it after they were read: a prepared copy may be damaged at any time.

        Parameters
        ----------
        rows : array of int, optional
            Indices of the rows that were read, each from 0. By default all are checked.

        Raises
        ------
        DatasetError
            Naming the folder of the prepared copy.
        """
        if self.check is not None:
            self.check(rows)

    @cached_property
    def y(self) -> NDArray[Any]:
        """The label of each row, shape (n,)."""
        return self.classes[self.codes]

    @cached_property
    def is_plain(self) -> bool:
        """Whether all features are finite numbers."""
        X = self.X
        return scipy.sparse.issparse(X) or not (isinstance(X, pd.DataFrame) or np.isnan(X.min()))

    @cached_property
    def odd_columns(self) -> dict[int, str]:
        """What is in columns that are not finite numbers, by position: "missing values", "text" or both."""
        if self.is_plain:
            return {}
        if not isinstance(self.X, pd.DataFrame):
            return dict.fromkeys(np.flatnonzero(np.isnan(self.X).any(axis=0)).tolist(), MISSING)
        text = [dtype != np.float64 for dtype in self.X.dtypes]
        found = zip(text, self.X.isna().any(), strict=True)
        kinds = [" and ".join([TEXT] * is_text + [MISSING] * missing) for is_text, missing in found]
        return {column: kind for column, kind in enumerate(kinds) if kind}

    def column_name(self, column: int) -> str:
        """Return a feature's name in quotes, or its position where it has none."""
        return repr(self.columns[column]) if self.columns else f"{column} (from 0)"


MISSING, TEXT = "missing values", "text"


def fingerprint(
    X: Features, classes: NDArray[Any], codes: NDArray[np.int32], metadata: Mapping[str, NDArray[Any]]
) -> str:
    """Return the SHA-256 of a dataset's shape, features and labels, names and types, and metadata.

    Equal values give equal fingerprints on every machine; a dense and a CSR copy of the same values do not.
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
            # Adding zero turns -0.0, which equals 0.0, into it.
            piece = (values[start : start + CHUNK] + 0).astype(dtype, copy=False)
            if dtype == "<f8":
                piece[np.isnan(piece)] = np.nan  # of which there are several
            content.update(piece.data)
    for name, each in sorted(metadata.items()):
        known, places = np.unique(each, return_inverse=True)
        content.update(json.dumps([name, known.tolist()]).encode())
        content.update(places.astype("<i8").data)
    return content.hexdigest()
