"""Which datasets of a study are no independent evidence: they share rows, or declare one family."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse

from orchestrator.datasets.converted import code_digest
from orchestrator.datasets.dataset import Features
from orchestrator.datasets.row_hashes import Hashes, row_hashes, scaled_row_hashes
from orchestrator.study.atomic import atomic_write

SHARED = 0.1
"""Share of the smaller dataset's different rows from which two datasets are related: with few features or
coarse ones, single rows are equal by chance."""

TELLS_APART = 0.9
"""Share of its different rows that a dataset's hashes must still tell apart once columns are in no order: of
yes and no alone, the number of each is left."""


class Relation(NamedTuple):
    """Two datasets of one family.

    Attributes
    ----------
    first, second : str
        Their names.
    why : str
        Goes on with both names.
    """

    first: str
    second: str
    why: str


def relations(
    features: Mapping[str, Features],
    families: Mapping[str, str],
    folders: Mapping[str, Path] = MappingProxyType({}),
) -> list[Relation]:
    """Return the pairs of datasets that are related.

    Parameters
    ----------
    features : mapping of str to array, CSR matrix or frame
        By name of the dataset.
    families : mapping of str to str
        What datasets declare as their family; those without one may be left out, or have an empty one.
    folders : mapping of str to Path
        Of prepared datasets; hashes of their rows are kept there.
    """
    widths = Counter(X.shape[1] for X in features.values())
    rows = {
        name: _RowSets.kept(X, folders.get(name)) for name, X in features.items() if widths[X.shape[1]] > 1
    }
    return list(_relations(rows, features, families))


_HASHES: dict[str, Callable[[Features], Hashes]] = {
    "exact": row_hashes,
    "scaled": scaled_row_hashes,
    "reordered": partial(row_hashes, ordered=False),
    "unordered": partial(scaled_row_hashes, ordered=False),
}


class _RowSets(NamedTuple):
    """The different rows of a dataset as sorted hashes: as they are and scaled, in order and in no order."""

    d: int
    exact: Hashes
    scaled: Hashes
    reordered: Hashes
    unordered: Hashes

    @classmethod
    def kept(cls, X: Features, folder: Path | None) -> "_RowSets":
        """Return those of a dataset's features, computed unless a folder holds them."""
        if folder is None:
            return cls.of(X)
        path = folder / f".rows-{code_digest()[:16]}.npz"
        # A damaged file has a wrong CRC, or `zipfile` fails as it likes.
        with suppress(Exception), np.load(path, allow_pickle=False) as arrays:
            return cls(X.shape[1], *(arrays[name] for name in _HASHES))
        found = cls.of(X)
        with suppress(OSError), atomic_write(path) as file:
            np.savez(file, **{name: getattr(found, name) for name in _HASHES})
        return found

    @classmethod
    def of(cls, X: Features) -> "_RowSets":
        """Return those of a dataset's features."""
        exact, scaled, *mingled = (np.unique(hashes(X)) for hashes in _HASHES.values())
        reordered, unordered = (
            one if len(one) >= TELLS_APART * len(other) else one[:0]
            for one, other in zip(mingled, (exact, scaled), strict=True)
        )
        return cls(X.shape[1], exact, scaled, reordered, unordered)


def _relations(
    rows: Mapping[str, _RowSets], features: Mapping[str, Features], families: Mapping[str, str]
) -> Iterator[Relation]:
    for first, second in itertools.combinations(features, 2):
        family = families.get(first)
        if family and family == families.get(second):
            yield Relation(first, second, f"declare the family {family!r}")
        elif first in rows and second in rows and rows[first].d == rows[second].d:
            fewer, more = sorted((first, second), key=lambda name: len(rows[name].exact))
            if shared := _shared(rows[fewer], rows[more], features[fewer]):
                yield Relation(first, second, shared)


def _shared(fewer: _RowSets, more: _RowSets, features: Features) -> str:
    """Say how many rows two datasets share; empty if they are few, or as many as there are by chance."""
    hows = "", " after scaling", " in other columns", " after scaling, in other columns"
    for kind, how in zip(_HASHES, hows, strict=True):
        one, other = getattr(fewer, kind), getattr(more, kind)
        fewest = min(len(one), len(other))
        number = len(np.intersect1d(one, other, assume_unique=True))
        least = max(2, SHARED * fewest)
        if fewest and number >= least and number - _by_chance(features, kind, other) * fewest >= least:
            return f"share {number:,} of {fewest:,} different rows{how}"
    return ""


def _by_chance(features: Features, kind: str, other: Hashes) -> float:
    """Return the share of rows that another dataset has, too, once each column is shuffled by itself.

    Of columns with few values any combination is a row of either dataset.
    """
    if scipy.sparse.issparse(features):
        return 0.0
    generator = np.random.default_rng(0)
    shuffled: Features
    if isinstance(features, pd.DataFrame):
        orders = {name: generator.permutation(len(features)) for name in features}
        shuffled = pd.DataFrame({name: features[name].array[order] for name, order in orders.items()})
    else:
        shuffled = generator.permuted(features, axis=0)
    hashes = np.unique(_HASHES[kind](shuffled))
    return len(np.intersect1d(hashes, other, assume_unique=True)) / len(hashes)
