"""Trained machines for every C of a path, and the labels that they give.

The predictions of a whole path are one matrix product for each class.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from solvers.common.compile import inner, njit
from solvers.common.limits import NO_LIMIT
from solvers.gram.gather import is_sorted
from solvers.gram.outcomes import Outcomes
from solvers.multiclass import pairs_of

BLOCK_VALUES = 1 << 16  # kernel values that are widened to float64 at a time, so that they stay in the cache
MIN_ROWS = 128  # but at least so many rows: a product prepares all coefficients anew
WORKSPACE_VALUES = 1 << 18  # that the blocks of several matrices may take together


class PathProblem(NamedTuple):
    """What the machines of a path have in common."""

    Cs: np.ndarray  # (n_C,), ascending, so that each solution is a good start for the next
    classes: np.ndarray  # (n_classes,)
    rows: np.ndarray  # (n,) row numbers sorted by class; a Gram matrix in that order is read twice as fast
    class_start: np.ndarray  # (n_classes + 1,)
    inverse_weights: np.ndarray  # (n_classes,): 1/C of the samples of a class is this over C
    at_once: bool  # one machine for all classes, with labels on a simplex, instead of one for every pair
    bias: float  # added to the kernel: 1, or 0
    max_iter: int = NO_LIMIT  # of all machines together, for each C
    breaks_ties: bool = True  # of votes, by the summed evidence; if not, the first class wins


@dataclass
class PathSolution:
    """Trained machines for every C of a path.

    Attributes
    ----------
    problem : PathProblem
    weights : ndarray of shape (n_C, n_classes - 1, n), or (n_C, 1, n) for all at once
        Weights ≥ 0, in the layout of `sklearn.svm.SVC.dual_coef_`: a row of class t has its weight against
        class s in row s if s < t, else in row s - 1.
    intercepts : ndarray of shape (n_C, n_pairs), or (n_C, n_classes)
        Positive for the first class of a pair.
    outcomes : Outcomes
        Transposed: arrays of shape (n_C, n_subproblems).
    has_methods, has_clipped : bool
        Whether `outcomes.methods` and `outcomes.clipped` say anything.
    used : bool ndarray of shape (n_C, n)
        The rows that any machine uses.
    seconds : ndarray of shape (n_C,)
        Wall time, shared out by counted work.
    """

    problem: PathProblem
    weights: np.ndarray
    intercepts: np.ndarray
    outcomes: Outcomes
    has_methods: bool
    has_clipped: bool
    used: np.ndarray
    seconds: np.ndarray

    def predict_path(self, K):
        """Predict labels for every C.

        Parameters
        ----------
        K : ndarray of shape (n_test, n_train)
            Kernel between the samples and all training rows, in their original order.

        Returns
        -------
        labels : ndarray of shape (n_C, n_test)
        """
        return labels_of(self.problem, self.weights[None], self.intercepts[None], K[None])[0]

    def on_used_rows(self):
        """Leave out the rows that no machine uses; return the rest, and its row numbers."""
        kept = self.weights.any(axis=(0, 1))
        sizes = np.add.reduceat(kept, self.problem.class_start[:-1], dtype=np.int64)
        rows, class_start = np.arange(sizes.sum(), dtype=np.int32), np.concatenate(([0], np.cumsum(sizes)))
        problem = self.problem._replace(rows=rows, class_start=class_start)
        solution = replace(self, problem=problem, weights=np.ascontiguousarray(self.weights[:, :, kept]))
        return solution, self.problem.rows[kept]


def labels_of(problem, weights, intercepts, Ks):
    """Predict labels for every C, by machines that were trained on several Gram matrices.

    Parameters
    ----------
    problem : PathProblem
    weights : ndarray of shape (n_matrices, n_C, n_classes - 1, n), or (n_matrices, n_C, 1, n)
    intercepts : ndarray of shape (n_matrices, n_C, n_pairs), or (n_matrices, n_C, n_classes)
    Ks : ndarray of shape (n_matrices, n_test, n)
        Kernel between the samples and all training rows, in their original order.

    Returns
    -------
    labels : ndarray of shape (n_matrices, n_C, n_test)
    """
    n_matrices, n_C, depth, n = weights.shape
    n_test, n_classes = Ks.shape[1], problem.class_start.size - 1
    # Not by the number of matrices: sums round by the rows that are multiplied together.
    step = max(1, min(n_test, max(MIN_ROWS, BLOCK_VALUES // max(1, n))))
    together = max(1, WORKSPACE_VALUES // (step * (n + n_classes * n_C * depth)))
    winners = np.empty((n_matrices, n_C, n_test), np.int64)
    for start in range(0, n_matrices, together):
        some = slice(start, start + together)
        _elect(problem, weights[some], intercepts[some], Ks[some], step, winners[some])
    return problem.classes[winners]


def _elect(problem, weights, intercepts, Ks, step, winners):
    """Fill `winners` with the numbers of the classes that `labels_of` tells, so many rows at a time."""
    n_matrices, n_C, depth, _ = weights.shape
    segments, in_order = [*pairwise(problem.class_start.tolist())], is_sorted(problem.rows)
    coefficients = [weights[..., a:b].reshape(n_matrices, n_C * depth, b - a) for a, b in segments]
    shape = len(segments), n_matrices, n_C * depth
    room = np.empty(math.prod(shape) * step)
    for first in range(0, Ks.shape[1], step):
        values = Ks[:, first : first + step]
        if not in_order:
            values = values[:, :, problem.rows]
        # Sums in float64: weights grow with 1/||c||², and so would the rounding of float32 sums.
        values = values.astype(np.float64, copy=False).swapaxes(1, 2)
        size = values.shape[2]
        parts = room[: math.prod(shape) * size].reshape(*shape, size)
        for t, (a, b) in enumerate(segments):
            np.matmul(coefficients[t], values[:, a:b], out=parts[t])
        if problem.at_once:
            winners[:, :, first : first + size] = elect_all_at_once(parts, intercepts)
        else:
            subproblems = parts.reshape(*shape[:2], n_C, depth, size)
            elect_pairwise(subproblems, intercepts, problem.breaks_ties, first, winners)


@njit
def elect_pairwise(parts, intercepts, breaks_ties, first, winners):
    """Elect the class with most votes of the pair machines, as `solvers.multiclass.votes` counts them.

    Parameters
    ----------
    parts : float64 array (n_classes, n_matrices, n_C, n_classes - 1, m)
        What the training samples of each class contribute to each machine, for m samples.
    intercepts : array (n_matrices, n_C, n_pairs)
    breaks_ties : bool
        Whether the summed evidence decides between classes with as many votes; if not, the first wins.
    first : int
        Number of the first of the m samples.
    winners : int64 array (n_matrices, n_C, n_test)
        Receives the numbers of the classes.
    """
    n_classes, n_matrices, n_C, _, m = parts.shape
    votes, evidence = np.empty((n_classes, m)), np.empty((n_classes, m))
    of_both = 1.0 if n_classes == 2 else 0.0
    for matrix in range(n_matrices):
        for k in range(n_C):
            votes[:] = 0.0
            evidence[:] = 0.0
            subproblem = 0
            for i in range(n_classes):
                for j in range(i + 1, n_classes):
                    ahead, behind = parts[i, matrix, k, j - 1], parts[j, matrix, k, i]
                    intercept = intercepts[matrix, k, subproblem]
                    subproblem += 1
                    for x in range(m):
                        d = ahead[x] - behind[x] + intercept
                        won = 1.0 if d > 0.0 else (of_both if d == 0.0 else 0.0)
                        votes[i, x] += won
                        votes[j, x] += 1.0 - won
                        evidence[i, x] += d
                        evidence[j, x] -= d
            for x in range(m):
                winners[matrix, k, first + x] = _elected(votes[:, x], evidence[:, x], breaks_ties)


@inner
def _elected(votes, evidence, breaks_ties):
    """Return the class with most votes."""
    best, best_score = 0, -1.0
    for t in range(votes.size):
        score = votes[t]
        if breaks_ties:
            score += evidence[t] / (3.0 * (abs(evidence[t]) + 1.0))
        if score > best_score:
            best, best_score = t, score
    return best


def elect_all_at_once(parts, intercepts):
    """Return the class t with the largest score y_t · (W x + b) of each sample, (n_matrices, n_C, m).

    Parameters
    ----------
    parts : ndarray of shape (n_classes, n_matrices, n_C, m)
    intercepts : ndarray of shape (n_matrices, n_C, n_classes)
    """
    scores = parts - (sum(parts) - parts) / (len(parts) - 1) + np.moveaxis(intercepts, 2, 0)[..., None]
    return scores.argmax(axis=0)


def intercepts(weights, class_start, bias, at_once):
    """Return the theoretic bias Σ α_i (y_t·y_i) of every machine (Strack 2013, 2.98).

    Parameters
    ----------
    weights, class_start, at_once
        As in `PathSolution`.
    bias : {0.0, 1.0}

    Returns
    -------
    ndarray of shape (n_C, n_pairs), for the first class of the pair, or (n_C, n_classes)
    """
    sums = np.add.reduceat(weights, class_start[:-1], axis=2) * bias
    n_classes = class_start.size - 1
    if at_once:
        own = sums[:, 0, :]
        return own - (own.sum(axis=1, keepdims=True) - own) / (n_classes - 1)
    first, second = np.array(pairs_of(n_classes)).T
    return sums[:, second - 1, first] - sums[:, first, second]
