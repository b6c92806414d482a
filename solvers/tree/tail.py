"""The nonlinear tail of a decision list: how many planes precede it.

The tail is trained on all samples of its subproblem. It gives the labels of the samples that pass the first T
planes. The paper leaves T open. Here a list and a tail are trained on three quarters of the samples, and the
largest T is chosen whose accuracy on the other quarter is within `TOLERANCE` of the best one. The share of
samples that then reach the tail determines T for the list of all samples.
"""

import numpy as np

HELD_OUT = 0.25
"""Share of the samples of each label that are held out."""
TOLERANCE = 0.002
"""Largest loss of accuracy for a smaller share of samples that reach the tail."""


def held_out(codes, generator):
    """Choose samples of each label at random.

    Parameters
    ----------
    codes : int64 ndarray of shape (n,)
        Labels from 0.
    generator : numpy.random.Generator
        Source of the choice.

    Returns
    -------
    bool ndarray of shape (n,)
        Whether a sample is held out. Labels with fewer than four samples have none.
    """
    is_held = np.zeros(codes.size, np.bool_)
    for label in range(codes.max() + 1):
        rows = np.flatnonzero(codes == label)
        is_held[generator.permutation(rows)[: int(HELD_OUT * rows.size)]] = True
    return is_held


def share_by_accuracy(exits, list_is_right, tail_is_right, weights, n_nodes):
    """Return the share of samples that reach the tail after the chosen number of planes.

    Parameters
    ----------
    exits : int64 ndarray of shape (n,)
        Index of the plane where a sample leaves; `n_nodes` if it leaves nowhere.
    list_is_right, tail_is_right : bool ndarray of shape (n,)
        Whether the label of that plane is right, and that of the tail.
    weights : ndarray of shape (n,)
        Weights of the samples, positive.
    n_nodes : int
        Number of planes.

    Returns
    -------
    float
        Share from 0 to 1.
    """
    share = weights / weights.sum()
    gain = np.bincount(exits, share * (list_is_right.astype(float) - tail_is_right), n_nodes + 1)
    accuracy = share @ tail_is_right + np.concatenate(([0.0], np.cumsum(gain[:n_nodes])))
    n_kept = int(np.flatnonzero(accuracy >= accuracy.max() - TOLERANCE)[-1])
    return float(share[exits >= n_kept].sum())


def n_nodes_before(exits, weights, n_nodes, tail_share):
    """Return the smallest number of planes that leave at most a share of the samples to the tail.

    Parameters
    ----------
    exits : int64 ndarray of shape (n,)
        Index of the plane where a sample leaves; `n_nodes` if it leaves nowhere.
    weights : ndarray of shape (n,)
        Weights of the samples, positive.
    n_nodes : int
        Number of planes.
    tail_share : float
        Largest share, from 0 to 1.

    Returns
    -------
    int
        Number of planes; `n_nodes` if even that leaves more.
    """
    of_plane = np.bincount(exits, weights / weights.sum(), n_nodes + 1)
    reaching = np.concatenate(([1.0], 1.0 - np.cumsum(of_plane)))[: n_nodes + 1]
    small = np.flatnonzero(reaching <= tail_share + 1e-12)
    return int(small[0]) if small.size else n_nodes
