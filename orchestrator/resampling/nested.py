"""Nested splits: outer splits of all rows, and inner splits of the training rows of each."""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from orchestrator.resampling.sized import LEFT_OUT, TESTED, TRAINS
from orchestrator.resampling.splits import OUTSIDE, Folds, IndexSplits, Rows, Splits, take_rows
from orchestrator.resampling.splitters import OUTER_PART, make_splitter, needs_groups, takes_all_rows
from orchestrator.study.study import Protocol
from orchestrator.study.targets import TARGET
from orchestrator.study.text import error_line, one_line, plural, represented

MAX_SPLITS = 1000
"""Largest number of splits that a splitter may yield, outer or inner."""

MAX_INDICES = 250_000_000
"""Largest number of row indices in all splits of a dataset; each takes four bytes."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows as arguments of a splitter.

    Attributes
    ----------
    X : array-like, shape (n, d)
        Features.
    y : array, shape (n,)
        Class label of each row.
    metadata : mapping of str to array, shape (n,)
        Other values of the rows: `groups`, `test_fold`.
    """

    X: Any
    y: NDArray[Any]
    metadata: Mapping[str, NDArray[Any]]

    def take(self, rows: Rows) -> "Samples":
        """Return a subset of the rows, in the given order.

        Parameters
        ----------
        rows : int array
            Indices of the rows.
        """
        chosen = {name: values[rows] for name, values in self.metadata.items()}
        return Samples(take_rows(self.X, rows), self.y[rows], chosen)

    @cached_property
    def coded(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The classes, ascending, and the class of each row as an index into them."""
        return np.unique(self.y, return_inverse=True)


def nested_splits(samples: Samples, protocol: Protocol) -> Splits:
    """Return the outer splits of a dataset and the inner splits of each, if the protocol has inner ones.

    A number of folds means stratified, shuffled folds. If the dataset has groups, folds do not split a group.
    Each seed of the protocol makes its own splits; they follow one another in the order of the seeds. A
    splitter without a configured random state receives one, so that anyone can rebuild the splits::

        seeds = np.random.SeedSequence(seed).generate_state(n_outer + 1).tolist()
        outer = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=seeds[0])
        for k, (train, test) in enumerate(outer.split(X, y)):
            inner = StratifiedKFold(5, shuffle=True, random_state=seeds[k + 1])
            for inner_train, inner_test in inner.split(X[train], y[train]): ...

    An inner splitter with a parameter `outer_part`, such as `LeftOutRows`, splits all rows instead.

    Parameters
    ----------
    samples : Samples
        All rows of the dataset.
    protocol : Protocol
        Outer and inner resampling, and seeds.

    Raises
    ------
    ValueError
        If a splitter fails, several seeds make the same split, or a split is not valid. A valid split has
        rows in both parts, no row and no group in both, and training rows of every class.
    """
    groups, outer, inner = samples.metadata.get("groups"), protocol.outer, protocol.inner
    if isinstance(outer, int) and isinstance(inner, int) and len(protocol.seeds) == 1 and groups is None:
        return nested_folds(samples.y, outer, inner, protocol.seeds[0])
    found, size = [], 0
    seen: set[tuple[bytes, ...]] = set()
    for seed in protocol.seeds:
        for each in _splits_of_seed(samples, protocol, seed):
            rows = tuple(part.tobytes() for part in each[0])
            if len(protocol.seeds) > 1 and rows in seen:
                raise ValueError(
                    "protocol.outer makes the same split for several seeds, so that it would count more than "
                    "once; give protocol.seed one value, set protocol.outer.random_state=null, or choose a "
                    "splitter that uses its random_state"
                )
            seen.add(rows)
            found.append(each)
            size += sum(len(rows) for split in each for rows in split)
            if size > MAX_INDICES:
                raise ValueError(
                    f"its splits hold more than {MAX_INDICES:,} row numbers; make fewer splits with "
                    "protocol.outer and protocol.inner"
                )
    splits = IndexSplits(found)
    _require_groups_apart(splits, groups)
    return splits


def splits_of_all_rows(samples: Samples, protocol: Protocol) -> Splits:
    """Return inner splits of all rows, below one outer split that trains and tests on all of them.

    Parameters
    ----------
    samples : Samples
        All rows of the dataset.
    protocol : Protocol
        Inner resampling, and seeds.

    Raises
    ------
    ValueError
        If the splitter fails or a split is not valid; see `nested_splits`.
    """
    assert protocol.inner is not None
    seed = np.random.SeedSequence(protocol.seeds[0]).generate_state(1).tolist()[0]
    rows = np.arange(len(samples.y), dtype=np.int32)
    splits = IndexSplits([[(rows, rows), *_splits(protocol.inner, samples, seed, "inner")]])
    groups = samples.metadata.get("groups")
    _require_groups_apart(splits, groups, levels=("inner",))
    return splits


def _splits_of_seed(samples: Samples, protocol: Protocol, seed: int) -> Iterator[list[tuple[Rows, Rows]]]:
    """Yield each outer split, followed by its inner splits.

    Parameters
    ----------
    samples : Samples
        All rows of the dataset.
    protocol : Protocol
        Outer and inner resampling.
    seed : int
        Root of the random states.

    Yields
    ------
    list of (train, test)
        The outer split and its inner splits, as indices of all rows.
    """
    seeds = np.random.SeedSequence(seed)
    outer = _splits(protocol.outer, samples, seeds.generate_state(1).tolist()[0], "outer")
    inner_seeds = seeds.generate_state(len(outer) + 1).tolist()[1:]
    for k, ((train, test), inner_seed) in enumerate(zip(outer, inner_seeds, strict=True)):
        inner = _inner_splits(protocol.inner, samples, (train, test), inner_seed, f" of outer split {k}")
        yield [(train, test), *inner]


def _inner_splits(
    scheme: int | Mapping[str, Any] | None, samples: Samples, outer: tuple[Rows, Rows], seed: int, where: str
) -> list[tuple[Rows, Rows]]:
    """Return the inner splits of an outer split, as indices of all rows; none without a scheme.

    Parameters
    ----------
    scheme : int, mapping or None
        Number of folds, or configuration of a splitter.
    samples : Samples
        All rows of the dataset.
    outer : (train, test)
        The outer split.
    seed : int
        Random state.
    where : str
        Outer split, for messages.
    """
    if scheme is None:
        return []
    train, test = outer
    if isinstance(scheme, int) or not takes_all_rows(scheme):
        found = _splits(scheme, samples.take(train), seed, "inner", where)
        return [(train[a], train[b]) for a, b in found]
    part = np.full(len(samples.y), LEFT_OUT)
    part[train], part[test] = TRAINS, TESTED
    whole = replace(samples, metadata={**samples.metadata, OUTER_PART: part})
    return _splits(scheme, whole, seed, "inner", where)


def _splits(
    scheme: int | Mapping[str, Any], samples: Samples, seed: int, level: str, where: str = ""
) -> list[tuple[Rows, Rows]]:
    """Return the checked splits of rows by a number of folds or a splitter.

    Parameters
    ----------
    scheme : int or mapping
        Number of folds, or configuration of a splitter.
    samples : Samples
        Rows to split.
    seed : int
        Random state.
    level : {"outer", "inner"}
        Level, for messages.
    where : str
        Outer split, for messages; empty for all rows.
    """
    classes, codes = samples.coded
    if isinstance(scheme, int):
        _require_members(codes, classes, scheme, level, f" in the training rows{where}" if where else "")
        name = f"protocol.{level}"
        groups = samples.metadata.get("groups")
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(scheme, shuffle=True, random_state=seed)
        found = list(splitter.split(np.empty((len(codes), 0)), codes, groups))
    else:
        name = f"{scheme[TARGET].rpartition('.')[2]} (protocol.{level})"
        found = _splits_of_splitter(name, scheme, samples, seed, where)
    if not 0 < len(found) <= MAX_SPLITS:
        number = "no split" if not found else f"more than {MAX_SPLITS} splits"
        raise ValueError(f"{name} makes {number}{where}; expected 1 to {MAX_SPLITS}")
    checked = []
    for k, split in enumerate(found):
        try:
            checked.append(_checked(split, len(codes)))
            _require_classes(codes[checked[-1][0]], classes)
        except ValueError as error:
            raise ValueError(f"{name}: {level} split {k}{where} {error}") from error
    return checked


def _splits_of_splitter(
    name: str, scheme: Mapping[str, Any], samples: Samples, seed: int, where: str
) -> list[tuple[Any, Any]]:
    """Return the unchecked splits of a configured splitter.

    Parameters
    ----------
    name : str
        Name of the splitter, for messages.
    scheme : mapping
        Configuration of the splitter, with its `_target_`.
    samples : Samples
        Rows to split.
    seed : int
        Random state.
    where : str
        Outer split, for messages; empty for all rows.
    """
    groups = samples.metadata.get("groups")
    try:
        splitter = make_splitter(scheme, seed, samples.metadata)
        if groups is None and needs_groups(splitter):
            raise ValueError(
                "the dataset has no groups; name a column of its table, or a file with the group of each "
                "row, as `groups` of the dataset, or choose a splitter that does not need groups"
            )
        found = list(islice(splitter.split(samples.X, samples.y, groups), MAX_SPLITS + 1))
        if not str(scheme[TARGET]).startswith("sklearn."):
            again = make_splitter(scheme, seed, samples.metadata).split(samples.X, samples.y, groups)
            if pickle.dumps(found) != pickle.dumps(list(islice(again, MAX_SPLITS + 1))):
                raise ValueError(
                    "it makes different splits at each call; let it use the random_state that it receives"
                )
        return found
    except (Exception, SystemExit, GeneratorExit) as error:  # raised by a user-defined splitter
        text = one_line(error) if isinstance(error, ValueError) else error_line(error)
        raise ValueError(
            f"{name} cannot split the {'training ' if where else ''}rows{where}: {text}"
        ) from error


def _checked(split: Any, n: int) -> tuple[Rows, Rows]:
    """Return the two parts of a split as int32 indices, or raise a ValueError.

    Parameters
    ----------
    split : object
        Object that a splitter yielded.
    n : int
        Number of rows.
    """
    if not isinstance(split, (tuple, list)) or len(split) != 2:
        raise ValueError(f"is {represented(split)}; expected a pair of index arrays (train, test)")
    taken = np.zeros(n, dtype=bool)
    parts = []
    for part, rows in zip(("training", "test"), map(np.asarray, split), strict=True):
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise ValueError(f"has {part} rows of type {rows.dtype}, shape {rows.shape}; expected indices")
        if not rows.size:
            raise ValueError(f"has no {part} rows; make fewer splits, or larger ones")
        if rows.min() < 0 or rows.max() >= n:
            raise ValueError(f"has {part} rows outside the {n} rows; expected indices from 0 to {n - 1}")
        if len(np.unique(rows)) < len(rows):
            raise ValueError(f"has a row twice among its {part} rows; expected each once")
        if taken[rows].any():
            raise ValueError(
                f"trains on row {rows[taken[rows]][0]}, which it also tests on; expected disjoint rows"
            )
        taken[rows] = True
        parts.append(rows.astype(np.int32))
    return parts[0], parts[1]


def _require_classes(codes: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise a ValueError if a class has no training row.

    Parameters
    ----------
    codes : int array
        Classes of the training rows.
    classes : array
        Labels of the classes.
    """
    missing = np.flatnonzero(np.bincount(codes, minlength=len(classes)) == 0)
    if len(missing):
        raise ValueError(
            f"has no training row of class {classes[missing[0]].item()!r}; make fewer splits, choose a "
            "stratified splitter, or merge or leave out the class"
        )


def _require_groups_apart(
    splits: Splits, groups: NDArray[Any] | None, levels: Sequence[str] = ("outer", "inner")
) -> None:
    """Raise a ValueError if a split trains and tests on rows of one group.

    Parameters
    ----------
    splits : Splits
        Outer and inner splits of the dataset.
    groups : array, shape (n,), or None
        Group of each row; None for no check.
    levels : sequence of str
        Levels to check.
    """
    if groups is None:
        return
    names, codes = np.unique(groups, return_inverse=True)
    for level in levels:
        refits = level == "outer"
        for outer, inner in splits.of_level(refits):
            train, test = splits.train_test(outer, inner)
            trained = np.zeros(len(names), dtype=bool)
            trained[codes[train]] = True
            both = names[np.unique(codes[test][trained[codes[test]]])]
            if len(both):
                where = f"outer split {outer}" if refits else f"inner split {inner} of outer split {outer}"
                raise ValueError(
                    f"{where} trains and tests on rows of group {both[0].item()!r}; set protocol.{level} to "
                    "a splitter that keeps groups together, such as StratifiedGroupKFold, or remove `groups` "
                    "from the dataset"
                )


def nested_folds(y: NDArray[Any], outer: int, inner: int, seed: int) -> Folds:
    """Return nested stratified, shuffled folds.

    scikit-learn makes the folds, so anyone can rebuild them::

        seeds = np.random.SeedSequence(seed).generate_state(outer + 1).tolist()
        splitter = StratifiedKFold(outer, shuffle=True, random_state=seeds[0])
        for k, (train, test) in enumerate(splitter.split(X, y)):
            inner_splitter = StratifiedKFold(inner, shuffle=True, random_state=seeds[k + 1])
            for inner_train, inner_test in inner_splitter.split(X[train], y[train]): ...

    Parameters
    ----------
    y : array, shape (n,)
        Class of each row, as labels or codes. The folds do not depend on the names of the classes.
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
    """Return the fold of each row, from 0.

    Parameters
    ----------
    codes : int array, shape (n,)
        Class of each row.
    n_folds : int
        Number of folds to which the rows are assigned.
    seed : int
        Random state of the shuffle.
    """
    fold = np.empty(len(codes), dtype=np.int16)
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for k, (_, test) in enumerate(splitter.split(np.empty((len(codes), 0)), codes)):
        fold[test] = k
    return fold


def _require_members(
    codes: NDArray[Any], classes: NDArray[Any], n_folds: int, level: str, where: str = ""
) -> None:
    """Raise a ValueError if a class has fewer members than there are folds.

    Parameters
    ----------
    codes : int array
        Classes of the rows.
    classes : array
        Labels of the classes.
    n_folds : int
        Number of folds that each class must reach.
    level : {"outer", "inner"}
        Level of the folds, for the message.
    where : str
        Description of the rows, for the message; empty for all rows.
    """
    counts = np.bincount(codes, minlength=len(classes))
    rarest = int(counts.argmin())
    if counts[rarest] < n_folds:
        members = plural(int(counts[rarest]), "member")
        fewer = f"lower protocol.{level}, or " if counts[rarest] > 1 else ""  # two folds need two members
        raise ValueError(
            f"class {classes[rarest].item()!r} has {members}{where}, fewer than the {n_folds} {level} folds; "
            f"{fewer}merge or leave out the class"
        )
