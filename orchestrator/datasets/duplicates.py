"""Treatment of rows that occur more than once, by `deduplicate` of a dataset's configuration."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from orchestrator.datasets.dataset import DatasetError, Features
from orchestrator.datasets.metadata import GROUPS
from orchestrator.datasets.row_hashes import mixed, row_hashes
from orchestrator.study.text import shown

KEEP, DROP, GROUP = "keep", "drop", "group"

Rows = tuple[Features, NDArray[np.int32], Mapping[str, NDArray[Any]]]
"""Features, class codes and metadata."""


def deduplicated(
    how: Any, X: Features, codes: NDArray[np.int32], metadata: Mapping[str, NDArray[Any]]
) -> Rows:
    """Return the rows of a dataset without copies, or with copies in one group.

    Parameters
    ----------
    how : {"keep", "drop", "group"}
        "keep" changes nothing. "drop" keeps the first of equal rows, label included. "group" puts rows with
        equal features into one group, which folds do not split, and merges it with existing groups.
    X : array, CSR matrix or frame, shape (n, d)
        Features, one row for each sample.
    codes : int32 array, shape (n,)
        Class of each row.
    metadata : mapping of str to array, shape (n,)
        Values of each row, by name.

    Raises
    ------
    DatasetError
        If `how` has another value, or all rows would be one group.
    """
    if how not in (KEEP, DROP, GROUP):
        raise DatasetError(f"deduplicate must be keep, drop or group, found {shown(how)}")
    if how == KEEP:
        return X, codes, metadata
    hashes = row_hashes(X)
    if how == DROP:
        labelled = hashes + mixed(codes.astype(np.uint64) + np.uint64(1))
        rows = np.sort(np.unique(labelled, return_index=True)[1])
        kept = X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]
        return kept, codes[rows], {name: values[rows] for name, values in metadata.items()}
    groups = np.unique(hashes, return_inverse=True)[1]
    if GROUPS in metadata:
        groups = _joined(groups, np.unique(metadata[GROUPS], return_inverse=True)[1])
    if not groups.any():
        raise DatasetError("deduplicate=group makes one group of all rows; set it to keep or drop")
    return X, codes, {**metadata, GROUPS: groups.astype(np.int64)}


def _joined(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return the groups of rows that share a group in either grouping, directly or through other rows.

    Parameters
    ----------
    first, second : int arrays, shape (n,)
        Group of each row, from 0.
    """
    n, offset = len(first), int(first.max()) + 1
    nodes = offset + int(second.max()) + 1
    links = scipy.sparse.coo_matrix((np.ones(n, bool), (first, second + offset)), (nodes, nodes))
    groups: NDArray[Any] = connected_components(links, directed=False)[1][first]
    return groups
