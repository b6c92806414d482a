"""Decisions of lists of planes: one product with all planes, and one pass that walks the lists.

A sample x walks a list from its first plane. It leaves at the first plane w with w·x < r, with the label of
that plane. A sample that leaves nowhere gets the default label of the list. `fit` and `predict` both call
these functions.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from solvers.common.compile import njit

PRODUCTS_AT_A_TIME = 1 << 18
"""Largest number of products of samples and planes that are kept at a time (2 MB)."""
TINY = float(np.finfo(np.float64).tiny)
"""Smallest size of a decision, so that its sign is that of its label."""


class Lists(NamedTuple):
    """Lists of planes of all subproblems, one after the other."""

    directions: np.ndarray  # (n_nodes, d): unit normals w
    thresholds: np.ndarray  # (n_nodes,): thresholds r
    labels: np.ndarray  # (n_nodes,) int64: labels of the samples with w·x < r
    start: np.ndarray  # (n_lists + 1,) int64: first plane of each list, and the number of planes
    defaults: np.ndarray  # (n_lists,) int64: labels of the other samples


class Walks(NamedTuple):
    """Result of samples in each list."""

    labels: np.ndarray  # (n, n_lists) int64: labels
    distances: np.ndarray  # (n, n_lists): positive distances to the threshold where the walk ended
    exits: np.ndarray  # (n, n_lists) int64: index of the plane in its list; the number of planes at the end


def products_of(X, directions):
    """Return the products of samples and planes.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples.
    directions : ndarray of shape (k, d)
        Normals.

    Returns
    -------
    ndarray of shape (n, k), C-contiguous
        Products.
    """
    # SciPy copies the right factor to C order in every product.
    right = np.ascontiguousarray(directions.T) if sparse.issparse(X) else directions.T
    return np.ascontiguousarray(X @ right)


def rounding_of(X):
    """Return a bound on the rounding error of a product of a sample and a unit normal.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples.

    Returns
    -------
    float
        Bound for any order of summation.
    """
    if sparse.issparse(X):
        terms = int(np.diff(X.indptr).max(initial=0))
        squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    else:
        terms, squares = X.shape[1], np.einsum("ij,ij->i", X, X)
    return float((terms + 2) * 0.5 * np.finfo(np.float64).eps * np.sqrt(np.max(squares, initial=0.0)))


def walk(X, lists):
    """Walk all lists with samples.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples.
    lists : Lists
        Lists of planes.

    Returns
    -------
    Walks
        Labels, distances and exits.
    """
    n, n_lists = X.shape[0], lists.defaults.size
    shape = n, n_lists
    walks = Walks(np.empty(shape, np.int64), np.empty(shape), np.empty(shape, np.int64))
    step = max(1, PRODUCTS_AT_A_TIME // max(1, lists.thresholds.size))
    if n <= step or sparse.issparse(X):
        walk_lists(products_of(X, lists.directions), *lists[1:], *walks)
        return walks
    for first in range(0, n, step):
        part = slice(first, first + step)
        products = products_of(X[part], lists.directions)
        walk_lists(products, *lists[1:], *(values[part] for values in walks))
    return walks


@njit(allocates=False)
def walk_lists(products, thresholds, labels, start, defaults, out, distances, exits):
    """Walk all lists with the products of samples and planes.

    Parameters
    ----------
    products : array (n, n_nodes)
        Products of samples and normals.
    thresholds : array (n_nodes,)
        Thresholds.
    labels : int64 array (n_nodes,)
        Labels of the planes.
    start : int64 array (n_lists + 1,)
        First plane of each list, and the number of planes.
    defaults : int64 array (n_lists,)
        Labels of samples that leave nowhere.
    out : int64 array (n, n_lists)
        Receives the labels.
    distances : array (n, n_lists)
        Receives the distances.
    exits : int64 array (n, n_lists)
        Receives the index of the plane where the walk ended.
    """
    for i in range(products.shape[0]):
        for k in range(defaults.size):
            first, end = start[k], start[k + 1]
            t = first
            while t < end and not products[i, t] < thresholds[t]:
                t += 1
            exits[i, k] = t - first
            if t < end:
                out[i, k] = labels[t]
                distances[i, k] = thresholds[t] - products[i, t]
            else:
                out[i, k] = defaults[k]
                size = 1.0 if first == end else products[i, end - 1] - thresholds[end - 1]
                distances[i, k] = max(size, TINY)
