"""Trained machines for every C of a path, and the labels that they give.

The predictions of a whole path are one matrix product for each class.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from solvers.common.compile import inner, njit
from solvers.common.input_checks import require_real_numbers, sound_csr
from solvers.common.resources import NO_LIMIT
from solvers.gram.outcomes import Outcomes, method_names
from solvers.gram.subproblems import class_sizes, groups_of, is_sorted
from solvers.kernels.functions import (
    GRAM,
    as_array,
    is_table,
    kernel_block,
    normalise_rows,
    require_finite,
    values_of,
)
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


BLOCK_VALUES = 1 << 22  # of a block of predictions, at most (32 MB)


class FittedTrainings:
    """What is known of trainings that were fitted together, by attributes with a value for each.

    Parameters
    ----------
    solution : solvers.path.result.PathSolution
        Of the same problem by the same solver.
    outcomes : solvers.gram.outcomes.Outcomes
        Arrays of shape (n_trainings, n_subproblems).
    totals : solvers.gram.outcomes.Totals
    stopping : list of str
    seconds : ndarray of shape (n_trainings,)
    """

    def __init__(self, solution, outcomes, totals, stopping, seconds):
        problem = solution.problem
        groups = groups_of(problem.classes.size, problem.at_once)
        sizes = class_sizes(problem.class_start)[groups].sum(axis=1)
        self.classes_ = problem.classes
        self.n_iter_ = totals.iterations
        self.n_kernel_evals_ = totals.evaluations
        self.n_support_ = totals.n_support
        self.sv_share_ = (outcomes.supports / sizes).sum(axis=1) / len(groups)
        self.objective_ = outcomes.objectives.sum(axis=1)
        self.duality_gap_ = totals.gaps
        self.converged_ = totals.converged
        self.fit_status_ = totals.fit_status
        self.stopping_ = stopping
        self.fit_seconds_ = seconds
        if solution.has_clipped:
            self.n_clipped_ = outcomes.clipped.sum(axis=1)
        if solution.has_methods:
            self.method_ = [method_names(bits) for bits in np.bitwise_or.reduce(outcomes.methods, axis=1)]


class FittedPath(FittedTrainings):
    """The machines of a `fit_path` for every C.

    Parameters
    ----------
    estimator : KernelSVC
        That `fit_path` was called on.
    solution : PathSolution
    totals : solvers.gram.outcomes.Totals
    stopping : list of str
    kernel : solvers.kernels.functions.Kernel
    X : {ndarray, CSR}
        Training samples, as the kernel takes them; as they are for a callable or precomputed kernel.
    normalised : bool
        Whether the kernel is normalised to k(x, x) = 1.

    Attributes
    ----------
    Cs_ : ndarray of shape (n_C,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_, n_kernel_evals_, n_support_ : int ndarrays of shape (n_C,)
        As a fitted estimator has them; `n_support_` is the number of support vectors of any machine.
    sv_share_ : ndarray of shape (n_C,)
        Mean over the machines of support vectors / samples.
    converged_ : bool ndarray of shape (n_C,)
    objective_ : ndarray of shape (n_C,)
        ``||c||²`` summed over the machines.
    duality_gap_ : ndarray of shape (n_C,)
        The largest certified gap of a machine.
    fit_status_ : int ndarray of shape (n_C,)
        As a fitted estimator has it.
    stopping_ : list of str
        As a fitted estimator has it.
    n_clipped_ : int ndarray of shape (n_C,)
        As the solvers have it that move a point of the hull; absent for others.
    method_ : list of str
        As `NewtonSVC` has it; absent for other solvers.
    fit_seconds_ : ndarray of shape (n_C,)
        Wall seconds of the whole path, shared out by counted work.
    """

    def __init__(self, estimator, solution, totals, stopping, kernel, X, normalised):
        super().__init__(solution, solution.outcomes, totals, stopping, solution.seconds)
        self.Cs_ = solution.problem.Cs
        self._kernel, self._normalised = kernel, normalised
        self._name, self._width = type(estimator).__name__, X.shape[-1]
        self._workspace = values_of_predictions(estimator)
        self._callable = estimator.kernel if callable(estimator.kernel) else None
        if kernel.kind == GRAM and (self._callable is None or not is_table(X)):
            self._solution, self._vectors = solution, None if self._callable is None else X
        else:
            self._solution, kept = solution.on_used_rows()
            self._vectors = X[kept]

    def predict_path(self, X):
        """Predict labels for every C.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_test, n_features), or (n_test, n_train) if precomputed

        Returns
        -------
        labels : ndarray of shape (n_C, n_test)
        """
        X = self._check_samples(X)
        width = X.shape[1] if sparse.issparse(X) and not sparse.issparse(self._vectors) else 0  # of a copy
        blocks = blocks_of(X.shape[0], self._solution.weights, self.classes_.size, self._workspace, width)
        labels = np.empty((self.Cs_.size, X.shape[0]), self.classes_.dtype)
        for block in blocks:
            K = X[block] if self._vectors is None else self._kernel_to(X[block])
            labels[:, block] = self._solution.predict_path(K)
        return labels

    def _check_samples(self, X):
        if self._callable is not None and not is_table(X):
            return as_array(X)
        X = sound_csr(X)
        require_real_numbers(X)
        if self._vectors is None:
            X = np.asarray(X.toarray() if sparse.issparse(X) else X)
            if X.dtype.kind not in "iufb":
                raise ValueError(f"kernel values must be real numbers; got {X.dtype}")
            require_finite(X)
        else:
            X = check_array(X, accept_sparse="csr", dtype=np.float64, order="C")
        if X.ndim != 2 or X.shape[1] != self._width:
            raise ValueError(
                f"X has {X.shape[-1] if X.ndim else 0} features, but {self._name} is expecting "
                f"{self._width} features as input"
            )
        return X

    def _kernel_to(self, X):
        if self._callable is not None:
            return values_of(self._callable, X, self._vectors)
        X = self._kernel.prepare(X)
        K = kernel_block(X, self._vectors, self._kernel)
        return normalise_rows(K, X, self._kernel) if self._normalised else K


def values_of_predictions(estimator):
    """Return how many values a block of predictions may have."""
    return min(BLOCK_VALUES, 1e6 * estimator.cache_size / 24)


def blocks_of(n_samples, weights, n_classes, room, width=0):
    """Cut samples into blocks whose predictions, and `width` more values for each, have room."""
    n_C, depth, n = weights.shape
    step = max(1, int(room // max(1, n + width + 2 * n_C * depth * n_classes)))
    return [slice(start, start + step) for start in range(0, n_samples, step)]
