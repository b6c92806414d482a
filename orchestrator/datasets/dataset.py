"""What a dataset is, and the fingerprint of its content."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Features = Any
"""Float64, shape (n, d): a C-contiguous array, or a CSR matrix in canonical format with int32 indices."""

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
    X : float64 array or CSR matrix, shape (n, d)
    classes : array, shape (n_classes,)
        The labels, ascending: integers, floats, booleans or strings.
    codes : int32 array, shape (n,)
        The class of each row, as an index into `classes`.
    fingerprint : str
        SHA-256 of the content, in hexadecimal; the name has no part in it.
    metadata : mapping of str to array, shape (n,)
        What else is known of each row, for splitters: `groups`, `test_fold`.
    """

    name: str
    X: Features
    classes: NDArray[Any]
    codes: NDArray[np.int32]
    fingerprint: str
    metadata: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @cached_property
    def y(self) -> NDArray[Any]:
        """The label of each row, shape (n,)."""
        return self.classes[self.codes]


def fingerprint(
    X: Features, classes: NDArray[Any], codes: NDArray[np.int32], metadata: Mapping[str, NDArray[Any]]
) -> str:
    """Return the SHA-256 of a dataset's shape, features and labels, and of its metadata if it has any.

    Equal values give equal fingerprints on every machine; a dense and a CSR copy of the same values do not.
    """
    dense = not scipy.sparse.issparse(X)
    head = {"dense": dense, "shape": list(X.shape), "classes": classes.tolist()}
    content = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    parts = [(X.reshape(-1), "<f8")] if dense else [(X.data, "<f8"), (X.indices, "<i8"), (X.indptr, "<i8")]
    for values, dtype in [*parts, (codes, "<i8")]:
        for start in range(0, len(values), CHUNK):
            # Adding zero turns -0.0, which equals 0.0, into it.
            content.update((values[start : start + CHUNK] + 0).astype(dtype, copy=False).data)
    for name, each in sorted(metadata.items()):
        known, places = np.unique(each, return_inverse=True)
        content.update(json.dumps([name, known.tolist()]).encode())
        content.update(places.astype("<i8").data)
    return content.hexdigest()
