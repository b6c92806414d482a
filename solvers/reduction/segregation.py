"""Split the samples of a class into blocks of neighbours, in two levels (Nandan et al. 2014, 4.1 and 4.2).

All splits are by rank: the k nearest samples are split off, and equal distances are taken in the order of the
samples. The rule of the paper, ``d < d_k``, never ends on equal samples. For a radial kernel the distance is
‖x − z‖², of which the kernel distance is an increasing function. One partition therefore serves every γ, and
kernel values that round to the same number do not decide.
"""

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

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
        elif sparse.issparse(self._X):
            products = self._X[rows] @ self._X[[pivot]].toarray()[0]
        elif self._is_plain:
            return cdist(self._X[[pivot]], self._X[rows], "sqeuclidean")[0]
        else:
            products = np.einsum("ij,j->i", self._X[rows], self._X[pivot])
        if self._kernel.kind != GRAM and not self._is_plain:
            products = (self._kernel.gamma * products + self._kernel.coef0) ** self._kernel.degree
        return (self._diagonal[rows] + self._diagonal[pivot]) - 2.0 * products


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
    pivot, and the next nearest sample is the next pivot.

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
