"""Find equal samples by a hash of their rows."""

import numpy as np
from scipy import sparse

from solvers.common.compile import inner, njit
from solvers.common.pair_selection import float_bits

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Odd number near 2⁶⁴ over the golden ratio, by which hashes are mixed."""


def first_copies(X, rows):
    """Return for each sample the first sample that equals it.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples. A CSR matrix is canonical. Rows of a Gram matrix are equal only for samples that are equal in
        the
        space of the kernel.
    rows : int64 ndarray of shape (m,)
        Rows to compare.

    Returns
    -------
    int64 ndarray of shape (m,)
        Index in `rows` of the first equal sample. Two groups of equal samples with the same hash, of 64 bits,
        may stay apart in part; they are never mixed.
    """
    hashes = np.empty(rows.size, np.uint64)
    if sparse.issparse(X):
        arrays = X.indptr, X.indices, X.data
        _hash_sparse(*arrays, rows, hashes)
    else:
        _hash_dense(X, rows, hashes)
    order = np.argsort(hashes, kind="stable")
    first = np.arange(rows.size)
    if sparse.issparse(X):
        _match_sparse(*arrays, rows, hashes, order, first)
    else:
        _match_dense(X, rows, hashes, order, first)
    return first


@inner
def _mixed(state, value):
    """Return a hash state after one more number.

    Parameters
    ----------
    state : uint64
        State before.
    value : float
        Number to add. Both zeros count as the same number.

    Returns
    -------
    uint64
        State after.
    """
    state = (state ^ np.uint64(float_bits(np.float64(value) + 0.0))) * MULTIPLIER
    return state ^ (state >> np.uint64(29))


@njit(allocates=False)
def _hash_dense(X, rows, out):
    """Hash rows of an array.

    Parameters
    ----------
    X : float array (n, d)
        Samples.
    rows : int64 array (m,)
        Rows to hash.
    out : uint64 array (m,)
        Receives the hashes.
    """
    for k in range(rows.size):
        state = np.uint64(1)
        for f in range(X.shape[1]):
            state = _mixed(state, X[rows[k], f])
        out[k] = state


@njit(allocates=False)
def _hash_sparse(indptr, indices, data, rows, out):
    """Hash rows of a CSR matrix by their values that are not zero.

    Parameters
    ----------
    indptr, indices, data : array
        Arrays of the matrix, with ascending indices.
    rows : int64 array (m,)
        Rows to hash.
    out : uint64 array (m,)
        Receives the hashes.
    """
    for k in range(rows.size):
        state = np.uint64(1)
        for t in range(indptr[rows[k]], indptr[rows[k] + 1]):
            if data[t] != 0.0:
                state = _mixed(_mixed(state, np.float64(indices[t])), data[t])
        out[k] = state


@njit(allocates=False)
def _match_dense(X, rows, hashes, order, first):
    """Compare neighbours in the order of their hashes.

    Parameters
    ----------
    X : float array (n, d)
        Samples.
    rows : int64 array (m,)
        Rows of the samples.
    hashes : uint64 array (m,)
        Hashes of the rows.
    order : int64 array (m,)
        Stable order of the hashes.
    first : int64 array (m,)
        Receives the index of the first equal sample.
    """
    for k in range(1, order.size):
        if hashes[order[k]] == hashes[order[k - 1]]:
            leader = first[order[k - 1]]
            equal = True
            for f in range(X.shape[1]):
                equal &= X[rows[order[k]], f] == X[rows[leader], f]
            if equal:
                first[order[k]] = leader


@njit(allocates=False)
def _match_sparse(indptr, indices, data, rows, hashes, order, first):
    """Compare neighbours in the order of their hashes.

    Parameters
    ----------
    indptr, indices, data : array
        Arrays of the matrix, with ascending indices.
    rows, hashes, order, first
        As in `_match_dense`.
    """
    for k in range(1, order.size):
        if hashes[order[k]] == hashes[order[k - 1]]:
            leader = first[order[k - 1]]
            p, end_p = indptr[rows[order[k]]], indptr[rows[order[k]] + 1]
            q, end_q = indptr[rows[leader]], indptr[rows[leader] + 1]
            equal = True
            while equal:
                while p < end_p and data[p] == 0.0:
                    p += 1
                while q < end_q and data[q] == 0.0:
                    q += 1
                if p == end_p or q == end_q:
                    equal = p == end_p and q == end_q
                    break
                equal = indices[p] == indices[q] and data[p] == data[q]
                p += 1
                q += 1
            if equal:
                first[order[k]] = leader
