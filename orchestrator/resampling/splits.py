"""Stored splits of rows: written once, read by every process, shared by every arm of a study."""

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.study.atomic import atomic_write
from orchestrator.study.trials import REFIT

OUTSIDE = -1
"""Inner fold of a row in the outer test set."""

Rows = NDArray[np.int32]
"""Indices of rows."""


class DamagedSplitsError(ValueError):
    """Error of stored splits that are missing or do not have their hash."""


def take_rows(X: Any, rows: NDArray[np.integer]) -> Any:
    """Return rows of an array, a CSR matrix or a frame, in the given order.

    Parameters
    ----------
    X : array, CSR matrix or frame, shape (n, d)
        Features, one row for each sample.
    rows : int array
        Indices of the rows.
    """
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


class Splits(ABC):
    """Training and test rows of every outer split and its inner splits."""

    @property
    @abstractmethod
    def n_inner(self) -> tuple[int, ...]:
        """Number of inner splits of each outer split."""

    @abstractmethod
    def _rows(self, outer: int, inner: int) -> tuple[Rows, Rows]:
        """Return the training and test rows of an existing split.

        Parameters
        ----------
        outer : int
            Outer split, from 0.
        inner : int
            Inner split, from 0; -1 for the refit.
        """

    @abstractmethod
    def _array(self) -> NDArray[np.integer]:
        """Return the splits as one little-endian array for storage."""

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
        """Return the indices of the training and test rows, in the order of the splitter.

        Parameters
        ----------
        outer : int
            Outer split, from 0.
        inner : int
            Inner split, from 0; -1 for the refit, which trains on all training rows of the outer split and is
            evaluated on its test rows.

        Raises
        ------
        ValueError
            If the split does not exist.
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
        """Yield the indices of the outer splits, or of all inner splits.

        Parameters
        ----------
        refits : bool
            Whether to yield the outer splits.

        Yields
        ------
        tuple of (int, int)
            Outer and inner index; the inner index of an outer split is -1.
        """
        for outer, n_inner in enumerate(self.n_inner):
            yield from ((outer, inner) for inner in ([REFIT] if refits else range(n_inner)))

    def save(self, folder: Path) -> Path:
        """Write the splits to `splits-<hash>.npy` unless an intact file is there, and return its path.

        A damaged file is replaced, and the user is warned.

        Parameters
        ----------
        folder : Path
            Folder of the file.
        """
        path = _file_path(folder, self.hash)
        try:
            Splits.load(folder, self.hash)
        except DamagedSplitsError as error:
            if path.exists():
                warnings.warn(f"{path} was damaged ({error.__cause__}); it was written again", stacklevel=1)
            with atomic_write(path) as file:
                np.save(file, self._array())
        return path

    @staticmethod
    def load(folder: Path, split_hash: str) -> "Splits":
        """Read splits that `save` has written.

        Parameters
        ----------
        folder : Path
            Folder of the file.
        split_hash : str
            SHA-256 of the splits, in hexadecimal. It is part of the file's name.

        Raises
        ------
        DamagedSplitsError
            If the file does not exist, or its content does not have the hash.
        """
        path = _file_path(folder, split_hash)
        try:
            array = np.load(path, allow_pickle=False)
            splits = Folds(array[0], array[1:]) if array.ndim == 2 else IndexSplits.of_array(array)
            if splits.hash != split_hash:
                raise ValueError(f"its content has hash {splits.hash}")
        except Exception as error:  # numpy may raise any exception for a damaged header
            raise DamagedSplitsError(
                f"the folds in {path} are missing or damaged ({error}); run the command again"
            ) from error
        return splits


@dataclass(frozen=True, eq=False)
class Folds(Splits):
    """Nested folds, stored as the fold of every row at both levels.

    Attributes
    ----------
    outer_fold : int16 array, shape (n,)
        Outer fold in which a row is tested.
    inner_fold : int16 array, shape (n_outer, n)
        Inner fold of a row within the training set of each outer fold; -1 for its test rows.
    """

    outer_fold: NDArray[np.int16]
    inner_fold: NDArray[np.int16]

    @cached_property
    def n_inner(self) -> tuple[int, ...]:
        """Number of inner folds of each outer fold."""
        return (int(self.inner_fold.max()) + 1,) * len(self.inner_fold)

    def _rows(self, outer: int, inner: int) -> tuple[Rows, Rows]:
        """Return the training and test rows of an existing split, ascending.

        Parameters
        ----------
        outer : int
            Outer fold, from 0.
        inner : int
            Inner fold, from 0; -1 for the refit.
        """
        if inner == REFIT:
            test = self.outer_fold == outer
            return _indices(~test), _indices(test)
        fold = self.inner_fold[outer]
        test = fold == inner
        return _indices(~test & (fold != OUTSIDE)), _indices(test)

    def _array(self) -> NDArray[np.integer]:
        """Return the folds at both levels as one array, shape (1 + n_outer, n)."""
        return np.vstack([self.outer_fold, self.inner_fold]).astype("<i2")


@dataclass(frozen=True, eq=False)
class IndexSplits(Splits):
    """Splits of any kind, stored as arrays of indices.

    Test sets may overlap, omit rows and differ in size.

    Attributes
    ----------
    splits : sequence of sequence of (int32 array, int32 array)
        For each outer split, its training and test rows, followed by those of its inner splits.
    """

    splits: Sequence[Sequence[tuple[Rows, Rows]]]

    @cached_property
    def n_inner(self) -> tuple[int, ...]:
        """Number of inner splits of each outer split."""
        return tuple(len(splits) - 1 for splits in self.splits)

    def _rows(self, outer: int, inner: int) -> tuple[Rows, Rows]:
        """Return the training and test rows of an existing split, in the order of the splitter.

        Parameters
        ----------
        outer : int
            Outer split, from 0.
        inner : int
            Inner split, from 0; -1 for the refit.
        """
        return self.splits[outer][inner + 1]  # index -1, the refit, is the first entry

    def _array(self) -> NDArray[np.integer]:
        """Return the splits as one array.

        It contains the number of outer splits, the number of inner splits of each, the sizes of all arrays of
        indices, and these arrays.
        """
        arrays = [rows for splits in self.splits for split in splits for rows in split]
        head = [self.n_outer, *self.n_inner, *map(len, arrays)]
        return np.concatenate([np.array(head, dtype="<i4"), *arrays]).astype("<i4", copy=False)

    @classmethod
    def of_array(cls, array: NDArray[Any]) -> "IndexSplits":
        """Return the splits in a stored array.

        Parameters
        ----------
        array : int32 array
            Array as `_array` returns it.
        """
        n_outer = int(array[0])
        n_splits = [1 + int(n_inner) for n_inner in array[1 : 1 + n_outer]]
        start = 1 + n_outer + 2 * sum(n_splits)
        arrays = np.split(array[start:], np.cumsum(array[1 + n_outer : start])[:-1])
        pairs = zip(arrays[::2], arrays[1::2], strict=True)
        return cls([[next(pairs) for _ in range(number)] for number in n_splits])


def _file_path(folder: Path, split_hash: str) -> Path:
    """Return the path of the file of splits.

    Parameters
    ----------
    folder : Path
        Folder of the file.
    split_hash : str
        SHA-256 of the splits, in hexadecimal. It is part of the file's name.
    """
    return Path(folder) / f"splits-{split_hash}.npy"


def _indices(mask: NDArray[np.bool_]) -> Rows:
    """Return the indices of the true values.

    Parameters
    ----------
    mask : bool array, shape (n,)
        Mask of rows.
    """
    return np.flatnonzero(mask).astype(np.int32)
