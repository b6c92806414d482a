"""Pruning of a decision list: planes whose removal adds no training errors go, from the last to the first."""

import numpy as np

from solvers.common.compile import njit
from solvers.tree.scoring import PRODUCTS_AT_A_TIME, products_of


def exit_matrix(X, directions, thresholds):
    """Return which planes each sample would leave at.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples.
    directions : ndarray of shape (k, d)
        Unit normals.
    thresholds : ndarray of shape (k,)
        Thresholds.

    Returns
    -------
    bool ndarray of shape (n, k)
        Whether w·x < r.
    """
    leaves = np.empty((X.shape[0], thresholds.size), np.bool_)
    step = max(1, PRODUCTS_AT_A_TIME // max(1, thresholds.size))
    for first in range(0, X.shape[0], step):
        part = slice(first, first + step)
        leaves[part] = products_of(X[part], directions) < thresholds
    return leaves


@njit
def kept_nodes(leaves, labels, default, codes, weights, allowed):
    """Return the planes that pruning keeps.

    Parameters
    ----------
    leaves : bool array (n, k)
        Whether a sample would leave at a plane.
    labels : int64 array (k,)
        Labels of the planes.
    default : int
        Label of the samples that leave nowhere.
    codes : int64 array (n,)
        Labels of the samples.
    weights : array (n,)
        Weights of the samples.
    allowed : float
        Weight of the training errors that may be added.

    Returns
    -------
    bool array (k,)
        Whether a plane is kept. At least one is.
    """
    n, k = leaves.shape
    kept = np.ones(k, np.bool_)
    exits = np.empty(n, np.int64)
    for i in range(n):
        t = 0
        while t < k and not leaves[i, t]:
            t += 1
        exits[i] = t
    added, left = 0.0, k
    for t in range(k - 1, -1, -1):
        if left == 1:
            break
        change = 0.0
        for i in range(n):
            if exits[i] == t:
                label = default
                for later in range(t + 1, k):
                    if kept[later] and leaves[i, later]:
                        label = labels[later]
                        break
                was_wrong, is_wrong = labels[t] != codes[i], label != codes[i]
                change += weights[i] * (int(is_wrong) - int(was_wrong))
        if added + change > allowed:
            continue
        added += change
        kept[t] = False
        left -= 1
        for i in range(n):
            if exits[i] == t:
                later = t + 1
                while later < k and not (kept[later] and leaves[i, later]):
                    later += 1
                exits[i] = later
    return kept
