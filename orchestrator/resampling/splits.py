"""Nested stratified folds: computed once, stored as data, shared by every arm of a study."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from orchestrator.study.trials import REFIT

OUTSIDE = -1
"""The inner fold of a row that belongs to the outer test set."""


@dataclass(frozen=True, eq=False)
class Folds:
    """The fold of every row, at both levels.

    Attributes
    ----------
    outer_fold : int16 array, shape (n,)
        The outer fold in which a row is tested.
    inner_fold : int16 array, shape (n_outer, n)
        The inner fold of a row within the training set of each outer fold; -1 on its test rows.
    """

    outer_fold: NDArray[np.int16]
    inner_fold: NDArray[np.int16]

    @property
    def n_outer(self) -> int:
        """Number of outer folds."""
        return len(self.inner_fold)

    @cached_property
    def n_inner(self) -> int:
        """Number of inner folds."""
        return int(self.inner_fold.max()) + 1

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the table, in hexadecimal."""
        table = self._table().astype("<i2")
        return hashlib.sha256(repr(table.shape).encode() + table.tobytes()).hexdigest()

    def train_test(self, outer: int, inner: int = REFIT) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the sorted row indices to train and to evaluate on.

        Parameters
        ----------
        outer : int
            Outer fold, from 0.
        inner : int
            Inner fold, from 0; -1 for the refit, which trains on the outer fold's whole training set
            and is evaluated on its test set.
        """
        if not 0 <= outer < self.n_outer:
            raise ValueError(f"expected an outer fold from 0 to {self.n_outer - 1}, found {outer}")
        if inner == REFIT:
            test = self.outer_fold == outer
            train = ~test
        elif 0 <= inner < self.n_inner:
            fold = self.inner_fold[outer]
            test = fold == inner
            train = (fold != inner) & (fold != OUTSIDE)
        else:
            raise ValueError(
                f"expected an inner fold from 0 to {self.n_inner - 1}, or {REFIT} (refit), found {inner}"
            )
        return _rows(train), _rows(test)

    def save(self, folder: Path) -> Path:
        """Write the table to `splits-<hash>.npy` in a folder, unless it is there intact; return its path."""
        path = _table_path(folder, self.hash)
        try:
            Folds.load(folder, self.hash)
        except ValueError:
            temporary = path.with_name(f".{path.name}.{uuid4().hex}")
            with open(temporary, "wb") as file:
                np.save(file, self._table())
            temporary.replace(path)
        return path

    @classmethod
    def load(cls, folder: Path, split_hash: str) -> "Folds":
        """Read the folds of a hash that `save` left in a folder.

        Raises
        ------
        ValueError
            If there is no such file, or its content does not have that hash.
        """
        path = _table_path(folder, split_hash)
        try:
            table = np.load(path, allow_pickle=False)
            folds = cls(table[0], table[1:])
            if folds.hash != split_hash:
                raise ValueError(f"its content has hash {folds.hash}")
        except Exception as error:  # numpy parses a damaged header as Python, and fails as Python does
            raise ValueError(
                f"the folds in {path} are missing or damaged ({error}); run the command again"
            ) from error
        return folds

    def _table(self) -> NDArray[np.int16]:
        return np.vstack([self.outer_fold, self.inner_fold])


def nested_folds(y: NDArray[Any], outer: int, inner: int, seed: int) -> Folds:
    """Return stratified, shuffled folds of folds.

    scikit-learn makes them, so anyone can rebuild them::

        seeds = np.random.SeedSequence(seed).generate_state(outer + 1).tolist()
        splitter = StratifiedKFold(outer, shuffle=True, random_state=seeds[0])
        for k, (train, test) in enumerate(splitter.split(X, y)):
            inner_splitter = StratifiedKFold(inner, shuffle=True, random_state=seeds[k + 1])
            for inner_train, inner_test in inner_splitter.split(X[train], y[train]): ...

    Parameters
    ----------
    y : array, shape (n,)
        The class of each row, as labels or codes; what the labels are called does not move a fold.
    outer, inner : int
        Numbers of folds, each at least 2.
    seed : int
        Root of the shuffles.

    Raises
    ------
    ValueError
        If there are fewer than 2 folds, or a class has fewer members than folds at either level.
    """
    for level, number in (("outer", outer), ("inner", inner)):
        if number < 2:
            raise ValueError(
                f"expected at least 2 {level} folds, found {number}; set protocol.{level} to 2 or more"
            )
    seeds = np.random.SeedSequence(seed).generate_state(outer + 1).tolist()
    classes, codes = np.unique(y, return_inverse=True)
    _require_members(codes, classes, outer, "outer")
    outer_fold = _stratify(codes, outer, seeds[0])
    inner_fold = np.full((outer, len(codes)), OUTSIDE, dtype=np.int16)
    for k in range(outer):
        train = outer_fold != k
        _require_members(codes[train], classes, inner, "inner", f" in the training set of outer fold {k}")
        inner_fold[k, train] = _stratify(codes[train], inner, seeds[k + 1])
    return Folds(outer_fold, inner_fold)


def _stratify(codes: NDArray[Any], n_folds: int, seed: int) -> NDArray[np.int16]:
    fold = np.empty(len(codes), dtype=np.int16)
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for k, (_, test) in enumerate(splitter.split(np.empty((len(codes), 0)), codes)):
        fold[test] = k
    return fold


def _require_members(
    codes: NDArray[Any], classes: NDArray[Any], n_folds: int, level: str, where: str = ""
) -> None:
    counts = np.bincount(codes, minlength=len(classes))
    rarest = int(counts.argmin())
    if counts[rarest] < n_folds:
        raise ValueError(
            f"class {classes[rarest].item()!r} has {counts[rarest]} members{where}, fewer than the {n_folds} "
            f"{level} folds; lower protocol.{level}, or merge or leave out the class"
        )


def _table_path(folder: Path, split_hash: str) -> Path:
    return Path(folder) / f"splits-{split_hash}.npy"


def _rows(mask: NDArray[np.bool_]) -> NDArray[np.int32]:
    return np.flatnonzero(mask).astype(np.int32)
