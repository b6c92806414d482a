"""Splits of rows as data: stored once, read by every process, shared by every arm of a study."""

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from orchestrator.study.trials import REFIT

OUTSIDE = -1
"""The inner fold of a row that belongs to the outer test set."""

Rows = NDArray[np.int32]
"""Indices of rows."""


class DamagedSplitsError(ValueError):
    """Stored splits that are missing or are not what was stored."""


def take_rows(X: Any, rows: NDArray[np.integer]) -> Any:
    """Return the rows of an array, a CSR matrix or a frame that indices name, in their order."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


class Splits(ABC):
    """The rows to train and to evaluate on: of every outer split, and of the inner splits of each."""

    @property
    @abstractmethod
    def n_inner(self) -> tuple[int, ...]:
        """Number of inner splits of each outer split."""

    @abstractmethod
    def _rows(self, outer: int, inner: int) -> tuple[Rows, Rows]:
        """Return the rows of a split that exists."""

    @abstractmethod
    def _array(self) -> NDArray[np.integer]:
        """Return all there is to store, as one little-endian array."""

    @property
    def n_outer(self) -> int:
        """Number of outer splits."""
        return len(self.n_inner)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the stored array, in hexadecimal."""
        array = self._array()
        return hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()

    def train_test(self, outer: int, inner: int = REFIT) -> tuple[Rows, Rows]:
        """Return the row indices to train and to evaluate on, in the order in which the splitter gave them.

        Parameters
        ----------
        outer : int
            Outer split, from 0.
        inner : int
            Inner split, from 0; -1 for the refit, which trains on the outer split's whole training set
            and is evaluated on its test set.
        """
        if not 0 <= outer < self.n_outer:
            raise ValueError(f"expected an outer fold from 0 to {self.n_outer - 1}, found {outer}")
        if not REFIT <= inner < self.n_inner[outer]:
            raise ValueError(
                f"expected an inner fold from 0 to {self.n_inner[outer] - 1}, or {REFIT} (refit), "
                f"found {inner}"
            )
        return self._rows(outer, inner)

    def of_level(self, refits: bool) -> Iterator[tuple[int, int]]:
        """Yield the indices (outer, inner) of the outer splits, or of all inner ones."""
        for outer, n_inner in enumerate(self.n_inner):
            yield from ((outer, inner) for inner in ([REFIT] if refits else range(n_inner)))

    def save(self, folder: Path) -> Path:
        """Write the splits to `splits-<hash>.npy` in a folder, unless there intact; return its path.

        A damaged file is replaced, and the user is warned.
        """
        path = _file_path(folder, self.hash)
        try:
            Splits.load(folder, self.hash)
        except DamagedSplitsError as error:
            if path.exists():
                warnings.warn(f"{path} was damaged ({error.__cause__}); it was written again", stacklevel=1)
            temporary = path.with_name(f".{path.name}.{uuid4().hex}")
            with open(temporary, "wb") as file:
                np.save(file, self._array())
            temporary.replace(path)
        return path

    @staticmethod
    def load(folder: Path, split_hash: str) -> "Splits":
        """Read the splits of a hash that `save` left in a folder.

        Raises
        ------
        DamagedSplitsError
            If there is no such file, or its content does not have that hash.
        """
        path = _file_path(folder, split_hash)
        try:
            array = np.load(path, allow_pickle=False)
            splits = Folds(array[0], array[1:]) if array.ndim == 2 else IndexSplits.of_array(array)
            if splits.hash != split_hash:
                raise ValueError(f"its content has hash {splits.hash}")
        except Exception as error:  # numpy parses a damaged header as Python, and fails as Python does
            raise DamagedSplitsError(
                f"the folds in {path} are missing or damaged ({error}); run the command again"
            ) from error
        return splits


@dataclass(frozen=True, eq=False)
class Folds(Splits):
    """Folds of folds, as the fold of every row at both levels.

    Attributes
    ----------
    outer_fold : int16 array, shape (n,)
        The outer fold in which a row is tested.
    inner_fold : int16 array, shape (n_outer, n)
        The inner fold of a row within the training set of each outer fold; -1 on its test rows.
    """

    outer_fold: NDArray[np.int16]
    inner_fold: NDArray[np.int16]

    @cached_property
    def n_inner(self) -> tuple[int, ...]:
        """Number of inner folds of each outer fold."""
        return (int(self.inner_fold.max()) + 1,) * len(self.inner_fold)

    def _rows(self, outer: int, inner: int) -> tuple[Rows, Rows]:
        if inner == REFIT:
            test = self.outer_fold == outer
            return _indices(~test), _indices(test)
        fold = self.inner_fold[outer]
        test = fold == inner
        return _indices(~test & (fold != OUTSIDE)), _indices(test)

    def _array(self) -> NDArray[np.integer]:
        return np.vstack([self.outer_fold, self.inner_fold]).astype("<i2")


@dataclass(frozen=True, eq=False)
class IndexSplits(Splits):
    """Splits of any kind, as arrays of indices: tests may overlap, leave rows out and differ in size.

    Attributes
    ----------
    splits : sequence of sequence of (int32 array, int32 array)
        For each outer split its own rows (train, test), then those of its inner splits.
    """

    splits: Sequence[Sequence[tuple[Rows, Rows]]]

    @cached_property
    def n_inner(self) -> tuple[int, ...]:
        """Number of inner splits of each outer split."""
        return tuple(len(splits) - 1 for splits in self.splits)

    def _rows(self, outer: int, inner: int) -> tuple[Rows, Rows]:
        return self.splits[outer][inner + 1]  # the refit, -1, is the first

    def _array(self) -> NDArray[np.integer]:
        """Return the number of outer splits, of inner ones of each, all arrays' sizes, and the arrays."""
        arrays = [rows for splits in self.splits for split in splits for rows in split]
        head = [self.n_outer, *self.n_inner, *map(len, arrays)]
        return np.concatenate([np.array(head, dtype="<i4"), *arrays]).astype("<i4", copy=False)

    @classmethod
    def of_array(cls, array: NDArray[Any]) -> "IndexSplits":
        """Return the splits of a stored array."""
        n_outer = int(array[0])
        n_splits = [1 + int(n_inner) for n_inner in array[1 : 1 + n_outer]]
        start = 1 + n_outer + 2 * sum(n_splits)
        arrays = np.split(array[start:], np.cumsum(array[1 + n_outer : start])[:-1])
        pairs = zip(arrays[::2], arrays[1::2], strict=True)
        return cls([[next(pairs) for _ in range(number)] for number in n_splits])


def _file_path(folder: Path, split_hash: str) -> Path:
    return Path(folder) / f"splits-{split_hash}.npy"


def _indices(mask: NDArray[np.bool_]) -> Rows:
    return np.flatnonzero(mask).astype(np.int32)
