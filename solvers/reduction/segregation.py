"""Split the samples of a class into blocks of neighbours, in two levels (Nandan et al. 2014, 4.1 and 4.2).

All splits are by rank: the k nearest samples are split off, and equal distances are taken in the order of the
samples. The rule of the paper, ``d < d_k``, never ends on equal samples. For a radial kernel the distance is
‖x − z‖², of which the kernel distance is an increasing function. One partition therefore serves every γ, and
kernel values that round to the same number do not decide.
"""

import numpy as np
from scipy import sparse

from solvers.common.compile import njit
from solvers.common.reductions import dot
from solvers.kernels.functions import GRAM, LINEAR, RADIAL, kernel_diagonal


class Distances:
    """Squared distances between samples: kernel distances, or ‖x − z‖² for radial kernels.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d), or ndarray of shape (n, n)
        Samples as `Kernel.prepare` returns them, or the Gram matrix.
    kernel : solvers.kernels.functions.Kernel
        Kernel of the samples.
    """

    def __init__(self, X, kernel):
        self._X, self._kernel = X, kernel
        is_sparse = sparse.issparse(X)
        self._by_rows = not is_sparse and kernel.kind != GRAM
        self._is_plain = kernel.kind == LINEAR or kernel.kind in RADIAL
        if kernel.kind == GRAM:
            self._norms = self._diagonal = kernel_diagonal(X, kernel)
        else:
            square = X.multiply(X).sum(axis=1) if is_sparse else np.einsum("ij,ij->i", X, X)
            self._norms = np.asarray(square, dtype=np.float64).ravel()
            self._diagonal = self._norms if self._is_plain else kernel_diagonal(X, kernel)

    def norms(self, rows):
        """Return ‖x‖², or k(x, x) for a Gram matrix.

        Parameters
        ----------
        rows : int64 ndarray
            Rows of the samples.

        Returns
        -------
        ndarray
            One number for each row.
        """
        return self._norms[rows]

    def to(self, rows, pivot):
        """Return the squared distances of samples from one sample.

        Parameters
        ----------
        rows : int64 ndarray of shape (m,)
            Rows of the samples.
        pivot : int
            Row of the one sample.

        Returns
        -------
        ndarray of shape (m,), float64
            Distances. A value does not depend on the other rows.
        """
        if self._kernel.kind == GRAM:
            products = self._X[pivot].astype(np.float64)[rows]
        elif self._by_rows:
            out = np.empty(rows.size)
            if self._is_plain:
                _square_distances(self._X, rows, self._X[pivot], out)
                return out
            _products(self._X, rows, self._X[pivot], out)
            products = out
        else:
            X = self._X
            point = np.zeros(X.shape[1])
            start, end = X.indptr[pivot], X.indptr[pivot + 1]
            point[X.indices[start:end]] = X.data[start:end]
            products = np.empty(rows.size)
            _sparse_products(X.indptr, X.indices, X.data, rows, point, products)
        if self._kernel.kind != GRAM and not self._is_plain:
            products = (self._kernel.gamma * products + self._kernel.coef0) ** self._kernel.degree
        return (self._diagonal[rows] + self._diagonal[pivot]) - 2.0 * products


@njit(allocates=False)
def _square_distances(X, rows, point, out):
    """Compute ‖x − z‖² between some rows and one point.

    Parameters
    ----------
    X : float64 array (n, d), C-contiguous
        Samples.
    rows : int64 array (m,)
        Rows of X.
    point : float64 array (d,)
        The point z.
    out : float64 array (m,)
        Receives the squared distances.
    """
    d = X.shape[1]
    whole = d - d % 4
    for k in range(rows.size):
        x = X[rows[k]]
        a = b = c = e = 0.0
        for f in range(0, whole, 4):
            p, q, r, s = (
                x[f] - point[f],
                x[f + 1] - point[f + 1],
                x[f + 2] - point[f + 2],
                x[f + 3] - point[f + 3],
            )
            a += p * p
            b += q * q
            c += r * r
            e += s * s
        for f in range(whole, d):
            p = x[f] - point[f]
            a += p * p
        out[k] = (a + b) + (c + e)


@njit(allocates=False)
def _products(X, rows, point, out):
    """Compute x·z between some rows and one point.

    Parameters
    ----------
    X : float64 array (n, d), C-contiguous
        Samples.
    rows : int64 array (m,)
        Rows of X.
    point : float64 array (d,)
        The point z.
    out : float64 array (m,)
        Receives the products.
    """
    for k in range(rows.size):
        out[k] = dot(X[rows[k]], point)


@njit(allocates=False)
def _sparse_products(indptr, indices, data, rows, point, out):
    """Compute x·z between some rows of a CSR matrix and one dense point.

    Parameters
    ----------
    indptr, indices, data : array
        Arrays of the matrix.
    rows : int64 array (m,)
        Rows of the matrix.
    point : float64 array (d,)
        The point z.
    out : float64 array (m,)
        Receives the products.
    """
    for k in range(rows.size):
        total = 0.0
        for t in range(indptr[rows[k]], indptr[rows[k] + 1]):
            total += data[t] * point[indices[t]]
        out[k] = total


def nearest(distances, count):
    """Return which samples are the nearest, with ties in the order of the samples.

    Parameters
    ----------
    distances : ndarray of shape (m,)
        Distances of the samples.
    count : int
        Number of samples to choose, from 1 to m.

    Returns
    -------
    bool ndarray of shape (m,)
        The chosen samples.
    """
    last = np.partition(distances, count - 1)[count - 1]
    chosen = distances < last
    ties = np.flatnonzero(distances == last)
    chosen[ties[: count - np.count_nonzero(chosen)]] = True
    return chosen


def fls1(rows, P):
    """Split samples into consecutive parts (FLS1, section 4.1).

    Parameters
    ----------
    rows : int64 ndarray of shape (n,)
        Rows of the samples, in the order in which they are split.
    P : int
        Largest size of a part.

    Returns
    -------
    list of int64 ndarray
        Parts.
    """
    return [rows[start : start + P] for start in range(0, rows.size, P)]


def fls2(rows, P, distances):
    """Split samples into halves until no part is too large (FLS2, section 4.1).

    The half that is nearest to the first sample becomes one part, the rest the other one. As printed, the
    algorithm always splits once; here a set of at most P samples stays whole.

    Parameters
    ----------
    rows : int64 ndarray of shape (n,)
        Rows of the samples.
    P : int
        Largest size of a part.
    distances : Distances
        Distances between the samples.

    Returns
    -------
    list of int64 ndarray
        Parts. Samples keep their order within a part.
    """
    parts, waiting = [], [rows]
    while waiting:
        part = waiting.pop()
        if part.size <= P:
            parts.append(part)
            continue
        near = nearest(distances.to(part, part[0]), part.size // 2)
        waiting += [part[~near], part[near]]
    return parts


def sls(rows, V, distances):
    """Split a part into blocks around pivots (SLS, section 4.2).

    The first pivot is the sample with the largest norm. A block consists of the V samples nearest to the
    pivot,
    and the next nearest sample is the next pivot.

    Parameters
    ----------
    rows : int64 ndarray of shape (n,)
        Rows of the samples.
    V : int
        Largest size of a block.
    distances : Distances
        Distances between the samples.

    Returns
    -------
    list of int64 ndarray
        Blocks. Samples keep their order within a block.
    """
    blocks, pivot = [], rows[distances.norms(rows).argmax()]
    while rows.size > V:
        from_pivot = distances.to(rows, pivot)
        near = nearest(from_pivot, V)
        blocks.append(rows[near])
        rows, from_pivot = rows[~near], from_pivot[~near]
        pivot = rows[from_pivot.argmin()]
    blocks.append(rows)
    return blocks
