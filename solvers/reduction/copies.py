"""Find equal samples by a hash of their rows."""

import numpy as np
from scipy import sparse

MULTIPLIERS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Odd numbers of 64 bits by which columns and values are mixed."""
VALUES_AT_A_TIME = 1 << 20
"""Number of values that are hashed or compared together."""


def first_copies(X, rows):
    """Return for each sample the first sample that equals it.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples. A CSR matrix is canonical. Rows of a Gram matrix are equal only for samples that are equal in
        the space of the kernel.
    rows : int64 ndarray of shape (m,)
        Rows to compare.

    Returns
    -------
    int64 ndarray of shape (m,)
        Index in `rows` of the first equal sample. Two groups of equal samples with the same hash, of 64 bits,
        may stay apart in part; they are never mixed.
    """
    parts = _parts(X, rows.size)
    hashes = np.concatenate([_hashes(X[rows[part]]) for part in parts])
    order = np.argsort(hashes, kind="stable")
    is_new = np.ones(rows.size, dtype=bool)
    is_new[1:] = hashes[order[1:]] != hashes[order[:-1]]
    same_hash = np.flatnonzero(~is_new)
    for part in _parts(X, same_hash.size):
        later = same_hash[part]
        is_new[later] = ~_are_equal(X[rows[order[later]]], X[rows[order[later - 1]]])
    first = np.empty(rows.size, np.int64)
    first[order] = order[np.flatnonzero(is_new)][np.cumsum(is_new) - 1]
    return first


def _parts(X, m):
    """Split rows into parts of at most `VALUES_AT_A_TIME` values.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples.
    m : int
        Number of rows.

    Returns
    -------
    list of slice
        Parts, at least one.
    """
    step = max(1, VALUES_AT_A_TIME // max(1, X.shape[1]))
    return [slice(start, start + step) for start in range(0, max(m, 1), step)]


def _hashes(part):
    """Hash rows by their values that are not zero.

    Parameters
    ----------
    part : {ndarray, CSR} of shape (m, d)
        Samples.

    Returns
    -------
    uint64 ndarray of shape (m,)
        Hashes, which do not depend on the storage.
    """
    if sparse.issparse(part):
        sample = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        columns, values = part.indices, part.data
    else:
        sample, columns = np.nonzero(part)
        values = part[sample, columns]
    bits = values.astype(np.float64).view(np.uint64)
    mixed = (bits ^ (bits >> np.uint64(31))) * MULTIPLIERS[0]
    mixed = (mixed ^ ((columns.astype(np.uint64) + np.uint64(1)) * MULTIPLIERS[1])) * MULTIPLIERS[0]
    mixed ^= mixed >> np.uint64(29)
    hashes = np.zeros(part.shape[0], np.uint64)
    np.add.at(hashes, sample, np.where(values != 0.0, mixed, np.uint64(0)))
    return hashes


def _are_equal(a, b):
    """Compare the rows of two blocks.

    Parameters
    ----------
    a, b : {ndarray, CSR} of shape (m, d)
        Samples.

    Returns
    -------
    bool ndarray of shape (m,)
        Whether two rows are equal.
    """
    if sparse.issparse(a):
        different = a != b
        return np.diff(sparse.csr_matrix(different).indptr) == 0
    return (a == b).all(axis=1)
