"""Votes of the pairs of many small classes, counted without storing the decisions of the pairs."""

import numpy as np

from solvers.common.compile import njit
from solvers.multiclass import with_ties_broken

MANY_CLASSES = 50
"""Least number of classes for which `pair_votes` was found to be the faster way to vote."""
SMALL_CLASS = 64
"""Largest mean number of support vectors of a class for which it was. Above it matrix products are faster."""

_TILE = 32
"""Number of classes on each side of a tile. The kernel values of a tile stay in the processor's cache."""


def pair_votes(K, dual_coef, intercept, class_start, zero_for_first=False, break_ties=True):
    """Count the votes of the pairs for each class, from kernel values.

    The votes are those of `multiclass.votes` of `multiclass.pairwise_decisions`, whose decisions differ by
    rounding: here each is a sum in the order of the support vectors. A product for each class would write and
    read n_classes² values for every sample, which takes longer than the sums if classes are small.

    Parameters
    ----------
    K : ndarray of shape (m, n_SV)
        Kernel values between samples and the support vectors of the model, which are sorted by class.
    dual_coef : ndarray of shape (n_classes − 1, n_SV)
        Coefficients in the layout of `sklearn.svm.SVC`.
    intercept : ndarray of shape (n_pairs,)
        Constants of the decisions.
    class_start : int ndarray of shape (n_classes + 1,)
        Index of the first support vector of each class, and the number of support vectors.
    zero_for_first : bool, default=False
        Whether a decision of exactly 0 is a vote for the first class of its pair; if not, for the second.
    break_ties : bool, default=True
        Whether the scaled sum of a class's decisions is added to its votes.

    Returns
    -------
    scores : ndarray of shape (m, n_classes)
        Votes, with the scaled sums if `break_ties`.
    """
    values = np.ascontiguousarray(K.T)
    count = np.zeros((class_start.size - 1, K.shape[0]))
    evidence, decisions = np.zeros_like(count), np.empty(K.shape[0])
    constants = np.ascontiguousarray(intercept)
    _count_in_tiles(values, dual_coef, constants, class_start, zero_for_first, decisions, count, evidence)
    return with_ties_broken(count.T, evidence.T) if break_ties else count.T


@njit(allocates=False)
def _count_in_tiles(K, dual_coef, intercept, class_start, zero_for_first, decisions, count, evidence):
    """Add up the votes and the decisions of the pairs for each class, in tiles of pairs.

    Each class meets its pairs in ascending order, as in a loop over all pairs.

    Parameters
    ----------
    K : array (n_SV, m)
        Kernel values.
    dual_coef : array (n_classes - 1, n_SV)
        Coefficients of the support vectors of each class against each other class.
    intercept : array (n_pairs,)
        Constant of the decision function of each pair.
    class_start : array (n_classes + 1,)
        Boundaries of the classes.
    zero_for_first : bool
        Whether a decision of exactly 0 is a vote for the first class of its pair; if not, for the second.
    decisions : array (m,)
        Receives the decisions of one pair.
    count, evidence : array (n_classes, m)
        Receive the votes and the sums of the decisions; 0 at the start.
    """
    n_classes = count.shape[0]
    for top in range(0, n_classes, _TILE):
        for left in range(top, n_classes, _TILE):
            for i in range(top, min(top + _TILE, n_classes)):
                before = i * n_classes - i * (i + 1) // 2 - i - 1  # the pair (i, j) has index before + j
                for j in range(max(left, i + 1), min(left + _TILE, n_classes)):
                    decisions[:] = 0.0
                    _add_products(K, dual_coef[j - 1], class_start[i], class_start[i + 1], decisions)
                    _add_products(K, dual_coef[i], class_start[j], class_start[j + 1], decisions)
                    _vote(
                        decisions,
                        intercept[before + j],
                        zero_for_first,
                        count[i],
                        count[j],
                        evidence[i],
                        evidence[j],
                    )


@njit(allocates=False)
def _add_products(K, coefficients, start, stop, decisions):
    """Add the kernel values of some support vectors, times their coefficients, to the decisions.

    Four support vectors share one pass over the samples.

    Parameters
    ----------
    K : array (n_SV, m)
        Kernel values.
    coefficients : array (n_SV,)
        Coefficients.
    start, stop : int
        Range of the support vectors.
    decisions : array (m,)
        Decisions, which are changed in place.
    """
    s = start
    while s + 4 <= stop:
        c0, c1, c2, c3 = coefficients[s], coefficients[s + 1], coefficients[s + 2], coefficients[s + 3]
        k0, k1, k2, k3 = K[s], K[s + 1], K[s + 2], K[s + 3]
        for x in range(decisions.size):
            decisions[x] = (((decisions[x] + c0 * k0[x]) + c1 * k1[x]) + c2 * k2[x]) + c3 * k3[x]
        s += 4
    while s < stop:
        c0, k0 = coefficients[s], K[s]
        for x in range(decisions.size):
            decisions[x] += c0 * k0[x]
        s += 1


@njit(allocates=False)
def _vote(decisions, intercept, zero_for_first, count_i, count_j, evidence_i, evidence_j):
    """Add the decisions of a pair of classes and their votes.

    Parameters
    ----------
    decisions : array (m,)
        Decisions without their constant, positive for the first class.
    intercept : float
        Constant of the decisions.
    zero_for_first : bool
        Whether a decision of exactly 0 is a vote for the first class.
    count_i, count_j : array (m,)
        Votes for the first class and the second one, which are changed in place.
    evidence_i, evidence_j : array (m,)
        Sums of the decisions of both classes, which are changed in place.
    """
    for x in range(decisions.size):
        d = decisions[x] + intercept
        wins = 1.0 if d > 0.0 or (zero_for_first and d == 0.0) else 0.0
        count_i[x] += wins
        count_j[x] += 1.0 - wins
        evidence_i[x] += d
        evidence_j[x] -= d
