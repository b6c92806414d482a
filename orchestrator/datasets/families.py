"""Detection of datasets that are not independent evidence: they share rows, or declare one family."""

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

MIN_SHARED = 0.1
"""Smallest share of common rows for which two datasets are related, relative to the distinct rows of the
smaller one. With few or coarse features, single rows are equal by chance."""

MIN_DISTINCT = 0.9
"""Smallest share of distinct rows that must stay distinct if the order of columns is ignored. For binary
features, for example, only the number of ones remains."""


class Relation(NamedTuple):
    """Two related datasets.

    Attributes
    ----------
    first, second : str
        Their names.
    why : str
        Predicate of a sentence whose subject is both names.
    """

    first: str
    second: str
    why: str


def relations(
    features: Mapping[str, Features],
    families: Mapping[str, str],
    folders: Mapping[str, Path] = MappingProxyType({}),
) -> list[Relation]:
    """Return the pairs of related datasets.

    Parameters
    ----------
    features : mapping of str to array, CSR matrix or frame
        Features, by name of the dataset.
    families : mapping of str to str
        Declared families. A dataset without one may be missing, or have an empty text.
    folders : mapping of str to Path
        Folders of prepared datasets, where hashes of rows are cached; none by default.
    """
    widths = Counter(X.shape[1] for X in features.values())
    rows = {
        name: _RowSets.cached(X, folders.get(name)) for name, X in features.items() if widths[X.shape[1]] > 1
    }
    return list(_relations(rows, features, families))


_HASHES: dict[str, Callable[[Features], Hashes]] = {
    "exact": row_hashes,
    "scaled": scaled_row_hashes,
    "reordered": partial(row_hashes, ordered=False),
    "unordered": partial(scaled_row_hashes, ordered=False),
}


class _RowSets(NamedTuple):
    """Distinct rows of a dataset as sorted hashes.

    Attributes
    ----------
    d : int
        Number of features.
    exact, scaled : uint64 arrays
        Hashes of the rows, and of the rows after scaling.
    reordered, unordered : uint64 arrays
        The same, ignoring the order of columns; empty if too many rows become equal.
    """

    d: int
    exact: Hashes
    scaled: Hashes
    reordered: Hashes
    unordered: Hashes

    @classmethod
    def cached(cls, X: Features, folder: Path | None) -> "_RowSets":
        """Return the hashes of a dataset, from the cache in its folder if they are there.

        Parameters
        ----------
        X : array, CSR matrix or frame, shape (n, d)
            Features, one row for each sample.
        folder : Path or None
            Folder of the prepared dataset; None for no cache.
        """
        if folder is None:
            return cls.of(X)
        path = folder / f".rows-{code_digest()[:16]}.npz"
        # `zipfile` raises exceptions of many types for a damaged file.
        with suppress(Exception), np.load(path, allow_pickle=False) as arrays:
            return cls(X.shape[1], *(arrays[name] for name in _HASHES))
        found = cls.of(X)
        with suppress(OSError), atomic_write(path) as file:
            np.savez(file, **{name: getattr(found, name) for name in _HASHES})
        return found

    @classmethod
    def of(cls, X: Features) -> "_RowSets":
        """Compute the hashes of a dataset.

        Parameters
        ----------
        X : array, CSR matrix or frame, shape (n, d)
            Features, one row for each sample.
        """
        exact, scaled, *without_order = (np.unique(hashes(X)) for hashes in _HASHES.values())
        reordered, unordered = (
            one if len(one) >= MIN_DISTINCT * len(other) else one[:0]
            for one, other in zip(without_order, (exact, scaled), strict=True)
        )
        return cls(X.shape[1], exact, scaled, reordered, unordered)


def _relations(
    rows: Mapping[str, _RowSets], features: Mapping[str, Features], families: Mapping[str, str]
) -> Iterator[Relation]:
    """Yield the related pairs.

    Parameters
    ----------
    rows : mapping of str to _RowSets
        Hashes of the datasets whose number of features is not unique.
    features : mapping of str to array, CSR matrix or frame
        Features, by name of the dataset.
    families : mapping of str to str
        Family that the configuration of each dataset declares.

    Yields
    ------
    Relation
        Related pair.
    """
    for first, second in itertools.combinations(features, 2):
        family = families.get(first)
        if family and family == families.get(second):
            yield Relation(first, second, f"declare the family {family!r}")
        elif first in rows and second in rows and rows[first].d == rows[second].d:
            fewer, more = sorted((first, second), key=lambda name: len(rows[name].exact))
            if shared := _shared(rows[fewer], rows[more], features[fewer]):
                yield Relation(first, second, shared)


def _shared(fewer: _RowSets, more: _RowSets, features: Features) -> str:
    """Return the number of rows that two datasets share, as a text; empty if it is small, or due to chance.

    Parameters
    ----------
    fewer, more : _RowSets
        Hashes of the dataset with fewer distinct rows, and of the other.
    features : array, CSR matrix or frame, shape (n, d)
        Features of the first.
    """
    hows = "", " after scaling", " in other columns", " after scaling, in other columns"
    for kind, how in zip(_HASHES, hows, strict=True):
        one, other = getattr(fewer, kind), getattr(more, kind)
        fewest = min(len(one), len(other))
        number = len(np.intersect1d(one, other, assume_unique=True))
        least = max(2, MIN_SHARED * fewest)
        if fewest and number >= least and number - _by_chance(features, kind, other) * fewest >= least:
            return f"share {number:,} of {fewest:,} different rows{how}"
    return ""


def _by_chance(features: Features, kind: str, other: Hashes) -> float:
    """Estimate the share of common rows that chance explains, by shuffling each column independently.

    If columns have few values, any combination of values may be a row of both datasets.

    Parameters
    ----------
    features : array, CSR matrix or frame, shape (n, d)
        Features of one dataset.
    kind : str
        Key of `_HASHES`.
    other : uint64 array
        Sorted hashes of the other dataset.
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
