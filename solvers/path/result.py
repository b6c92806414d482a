"""Trained subproblems for every C of a path, and the labels that they predict.

The predictions of a whole path are one matrix product for each class.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_array

from solvers.common.compile import inner, njit
from solvers.common.input_checks import require_real_numbers, sound_csr
from solvers.common.resources import NO_LIMIT
from solvers.gram.outcomes import Outcomes, method_names
from solvers.gram.subproblems import class_sizes, is_sorted
from solvers.kernels.functions import (
    GRAM,
    as_array,
    is_table,
    kernel_block,
    normalise_rows,
    require_finite,
    values_of,
)
from solvers.multiclass import groups_of, n_labels_of, n_layers_of, one_vs_rest_labels

CONVERTED_VALUES = 1 << 16
"""Number of kernel values that are converted to float64 at a time, so that they stay in the cache."""
MIN_ROWS = 128
"""Least number of samples of a product, because each product prepares all coefficients again."""
WORKSPACE_VALUES = 1 << 18
"""Largest number of values of the blocks of several matrices together."""


class PathProblem(NamedTuple):
    """Samples, weights and settings that all subproblems of a path share."""

    Cs: np.ndarray  # (n_C,), ascending, so that each solution is a good start for the next
    classes: np.ndarray  # (n_classes,): labels
    rows: np.ndarray  # (n,): row numbers, class by class; a Gram matrix in that order is read twice as fast
    class_start: np.ndarray  # (n_classes + 1,): boundaries of the classes among `rows`
    inverse_weights: np.ndarray  # (n,): 1/C of each sample is this over C, in the order of `rows`
    multiclass: str  # strategy, which `solvers.multiclass.strategy_of` returns
    bias: float  # constant that is added to the kernel: 1, or 0
    max_iter: int = NO_LIMIT  # limit of the iterations of all subproblems together, for each C
    breaks_ties: bool = True  # whether sums of decisions break ties of votes; if not, the first class wins
    zero_for_first: bool = False  # whether decisions of exactly 0 vote for the first class of a pair

    @property
    def at_once(self):
        """Whether one subproblem has all classes, with labels on a simplex."""
        return self.multiclass == "all_at_once"

    @property
    def groups(self):
        """Class indices of each subproblem: int64 array (n_subproblems, classes of a subproblem)."""
        return groups_of(self.class_start.size - 1, self.multiclass)

    @property
    def n_labels(self):
        """Number of different labels in a subproblem."""
        return n_labels_of(self.class_start.size - 1, self.multiclass)

    @property
    def n_layers(self):
        """Number of subproblems that a sample belongs to."""
        return n_layers_of(self.class_start.size - 1, self.multiclass)


@dataclass
class PathSolution:
    """Trained subproblems for every C of a path.

    Attributes
    ----------
    problem : PathProblem
        Sorted samples, weights and values of C that the path trains on.
    weights : ndarray of shape (n_C, n_layers, n)
        Weights of either sign. The coefficient of a sample in a subproblem is its weight times its label. For
        pairs of classes, the layout is that of `sklearn.svm.SVC.dual_coef_`: a row of class t has its weight
        against class s in layer s if s < t, else in layer s - 1. For one class against the rest, layer t has
        the weights of the subproblem of class t. For all classes at once, there is one layer.
    intercepts : ndarray of shape (n_C, n_pairs), or (n_C, n_classes)
        Intercepts, positive for the first class of a subproblem.
    outcomes : Outcomes
        Transposed outcomes: arrays of shape (n_C, n_subproblems).
    has_methods, has_clipped : bool
        Whether the solver fills `outcomes.methods`; `outcomes.clipped` and `outcomes.full_updates`.
    used : bool ndarray of shape (n_C, n)
        Rows that any subproblem uses.
    seconds : ndarray of shape (n_C,)
        Wall time of the path, shared out by counted work.
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
            Kernel values between the samples and all training rows, in their original order.

        Returns
        -------
        labels : ndarray of shape (n_C, n_test)
            Predicted label of each sample for each C.
        """
        return labels_of(self.problem, self.weights[None], self.intercepts[None], K[None])[0]

    def on_used_rows(self):
        """Remove the rows that no subproblem uses.

        Returns
        -------
        solution : PathSolution
            Solution on the remaining rows, which are numbered from 0.
        kept : int32 ndarray
            Original row numbers of the remaining rows.
        """
        kept = self.weights.any(axis=(0, 1))
        sizes = np.add.reduceat(kept, self.problem.class_start[:-1], dtype=np.int64)
        rows, class_start = np.arange(sizes.sum(), dtype=np.int32), np.concatenate(([0], np.cumsum(sizes)))
        problem = self.problem._replace(rows=rows, class_start=class_start)
        solution = replace(self, problem=problem, weights=np.ascontiguousarray(self.weights[:, :, kept]))
        return solution, self.problem.rows[kept]


def labels_of(problem, weights, intercepts, Ks):
    """Predict labels for every C, from subproblems of several Gram matrices.

    Parameters
    ----------
    problem : PathProblem
        Problem that all matrices share.
    weights : ndarray of shape (n_matrices, n_C, n_layers, n)
        Weights in the layout of `PathSolution.weights`.
    intercepts : ndarray of shape (n_matrices, n_C, n_pairs), or (n_matrices, n_C, n_classes)
        Intercepts, positive for the first class of a pair.
    Ks : ndarray of shape (n_matrices, n_test, n)
        Kernel values between the samples and all training rows, in their original order.

    Returns
    -------
    labels : ndarray of shape (n_matrices, n_C, n_test)
        Predicted label of each sample for each Gram matrix and each C.
    """
    n_matrices, n_C, depth, n = weights.shape
    n_test, n_classes = Ks.shape[1], problem.class_start.size - 1
    # It does not depend on the number of matrices: the rounding of sums depends on the rows of a product.
    step = max(1, min(n_test, max(MIN_ROWS, CONVERTED_VALUES // max(1, n))))
    together = max(1, WORKSPACE_VALUES // (step * (n + n_classes * n_C * depth)))
    winners = np.empty((n_matrices, n_C, n_test), np.int64)
    for start in range(0, n_matrices, together):
        some = slice(start, start + together)
        _elect(problem, weights[some], intercepts[some], Ks[some], step, winners[some])
    return problem.classes[winners]


def _elect(problem, weights, intercepts, Ks, step, winners):
    """Compute the class indices of the predicted labels.

    Parameters
    ----------
    problem : PathProblem
        Problem that all matrices share.
    weights, intercepts, Ks : ndarray
        Arrays as in `labels_of`, of some of its matrices.
    step : int
        Number of samples that are multiplied together.
    winners : int64 ndarray of shape (n_matrices, n_C, n_test)
        Receives the class indices.
    """
    n_matrices, n_C, depth, _ = weights.shape
    segments, in_order = [*pairwise(problem.class_start.tolist())], is_sorted(problem.rows)
    is_against_rest = problem.multiclass == "one_vs_rest"
    if is_against_rest:
        weights, segments = weights * one_vs_rest_labels(problem.class_start), [(0, weights.shape[3])]
    coefficients = [weights[..., a:b].reshape(n_matrices, n_C * depth, b - a) for a, b in segments]
    shape = len(segments), n_matrices, n_C * depth
    workspace = np.empty(math.prod(shape) * step)
    for first in range(0, Ks.shape[1], step):
        values = Ks[:, first : first + step]
        if not in_order:
            values = values[:, :, problem.rows]
        # Sums are float64: weights grow with 1/‖c‖², and so would the rounding errors of float32 sums.
        values = values.astype(np.float64, copy=False).swapaxes(1, 2)
        size = values.shape[2]
        parts = workspace[: math.prod(shape) * size].reshape(*shape, size)
        for t, (a, b) in enumerate(segments):
            np.matmul(coefficients[t], values[:, a:b], out=parts[t])
        if is_against_rest:
            scores = parts.reshape(n_matrices, n_C, depth, size) + intercepts[..., None]
            winners[:, :, first : first + size] = scores.argmax(axis=2)
        elif problem.at_once:
            winners[:, :, first : first + size] = elect_all_at_once(parts, intercepts)
        else:
            subproblems = parts.reshape(*shape[:2], n_C, depth, size)
            zero_for_first = len(parts) == 2 or problem.zero_for_first
            elect_pairwise(subproblems, intercepts, problem.breaks_ties, zero_for_first, first, winners)


@njit
def elect_pairwise(parts, intercepts, breaks_ties, zero_for_first, first, winners):
    """Elect the class with most votes of the pairs, as `solvers.multiclass.votes` counts them.

    Parameters
    ----------
    parts : float64 array (n_classes, n_matrices, n_C, n_classes - 1, m)
        Sum over the training samples of each class, for each subproblem and each of m samples.
    intercepts : array (n_matrices, n_C, n_pairs)
        Intercepts, positive for the first class of a pair.
    breaks_ties : bool
        Whether the sum of decisions decides between classes with equally many votes; if not, the first wins.
    zero_for_first : bool
        Whether a decision of exactly 0 is a vote for the first class of its pair; if not, for the second.
    first : int
        Index of the first of the m samples.
    winners : int64 array (n_matrices, n_C, n_test)
        Receives the class indices.
    """
    n_classes, n_matrices, n_C, _, m = parts.shape
    votes, evidence = np.empty((n_classes, m)), np.empty((n_classes, m))
    vote_at_zero = 1.0 if zero_for_first else 0.0
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
                        won = 1.0 if d > 0.0 else (vote_at_zero if d == 0.0 else 0.0)
                        votes[i, x] += won
                        votes[j, x] += 1.0 - won
                        evidence[i, x] += d
                        evidence[j, x] -= d
            for x in range(m):
                winners[matrix, k, first + x] = _elected(votes[:, x], evidence[:, x], breaks_ties)


@inner
def _elected(votes, evidence, breaks_ties):
    """Return the class with most votes.

    Parameters
    ----------
    votes : array (n_classes,)
        Votes of one sample.
    evidence : array (n_classes,)
        Sums of the decisions for each class.
    breaks_ties : bool
        Whether the sums break ties; if not, the first class wins.

    Returns
    -------
    int
        Class index.
    """
    best, best_score = 0, -1.0
    for t in range(votes.size):
        score = votes[t]
        if breaks_ties:
            score += evidence[t] / (3.0 * (abs(evidence[t]) + 1.0))
        if score > best_score:
            best, best_score = t, score
    return best


def elect_all_at_once(parts, intercepts):
    """Return the class t with the largest score y_t · (W x + b) of each sample.

    Parameters
    ----------
    parts : ndarray of shape (n_classes, n_matrices, n_C, m)
        Sum over the training samples of each class, for each of m samples.
    intercepts : ndarray of shape (n_matrices, n_C, n_classes)
        Intercept of each class.

    Returns
    -------
    ndarray of shape (n_matrices, n_C, m)
        Class indices.
    """
    scores = parts - (sum(parts) - parts) / (len(parts) - 1) + np.moveaxis(intercepts, 2, 0)[..., None]
    return scores.argmax(axis=0)


def intercepts(weights, class_start, bias, multiclass):
    """Return the theoretic bias Σ α_i (y_t·y_i) of every subproblem (Strack 2013, 2.98).

    Parameters
    ----------
    weights : ndarray of shape (n_C, n_layers, n)
        Weights in the layout of `PathSolution.weights`.
    class_start : int ndarray of shape (n_classes + 1,)
        Index of the first sample of each class, and the number of samples.
    bias : {0.0, 1.0}
        Constant that is added to the kernel; without it the intercepts are 0.
    multiclass : {"pairwise", "one_vs_rest", "all_at_once"}
        Strategy, from `PathProblem.multiclass`.

    Returns
    -------
    ndarray of shape (n_C, n_pairs), or (n_C, n_classes)
        Intercepts, positive for the first class of a subproblem.
    """
    if multiclass == "one_vs_rest":
        return (weights * one_vs_rest_labels(class_start)).sum(axis=2) * bias
    sums = np.add.reduceat(weights, class_start[:-1], axis=2) * bias
    n_classes = class_start.size - 1
    if multiclass == "all_at_once":
        by_class = sums[:, 0, :]
        return by_class - (by_class.sum(axis=1, keepdims=True) - by_class) / (n_classes - 1)
    first, second = np.triu_indices(n_classes, 1)
    return sums[:, second - 1, first] - sums[:, first, second]


BLOCK_VALUES = 1 << 22
"""Largest number of values of a block of predictions (32 MB)."""


class FittedTrainings:
    """Results of trainings that were fitted together, as attributes with one value for each training.

    Parameters
    ----------
    solution : solvers.path.result.PathSolution
        Solution of the same problem by the same solver.
    outcomes : solvers.gram.outcomes.Outcomes
        Arrays of shape (n_trainings, n_subproblems).
    totals : solvers.gram.outcomes.Totals
        Totals over the subproblems.
    stopping : list of str
        Text for `stopping_` of each training.
    seconds : ndarray of shape (n_trainings,)
        Wall time of each training.
    """

    def __init__(self, solution, outcomes, totals, stopping, seconds):
        problem = solution.problem
        groups = problem.groups
        sizes = class_sizes(problem.class_start)[groups].sum(axis=1)
        self.classes_: np.ndarray = problem.classes
        self.n_iter_: np.ndarray = totals.iterations
        self.n_kernel_evals_: np.ndarray = totals.evaluations
        self.n_support_: np.ndarray = totals.n_support
        self.sv_share_: np.ndarray = (outcomes.supports / sizes).sum(axis=1) / len(groups)
        self.objective_: np.ndarray = outcomes.objectives.sum(axis=1)
        self.duality_gap_: np.ndarray = totals.gaps
        self.converged_: np.ndarray = totals.converged
        self.fit_status_: np.ndarray = totals.fit_status
        self.stopping_: list[str] = stopping
        self.fit_seconds_: np.ndarray = seconds
        if solution.has_clipped:
            self.n_clipped_: np.ndarray = outcomes.clipped.sum(axis=1)
            self.n_full_updates_: np.ndarray = outcomes.full_updates.sum(axis=1)
        if solution.has_methods:
            methods = np.bitwise_or.reduce(outcomes.methods, axis=1)
            self.method_: list[str] = [method_names(bits) for bits in methods]


class FittedPath(FittedTrainings):
    """Trained models of a `fit_path`, one for every C.

    Parameters
    ----------
    estimator : KernelSVC
        Estimator whose `fit_path` was called.
    solution : PathSolution
        Trained subproblems.
    totals : solvers.gram.outcomes.Totals
        Totals over the subproblems.
    stopping : list of str
        Text for `stopping_` of each C.
    kernel : solvers.kernels.functions.Kernel
        Kernel of the training samples.
    X : {ndarray, CSR}
        Training samples as `Kernel.prepare` returns them; unchanged for a callable or precomputed kernel.
    normalised : bool
        Whether the kernel is normalised to k(x, x) = 1.

    Attributes
    ----------
    Cs_ : ndarray of shape (n_C,)
        Values of C, ascending.
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    n_iter_ : int ndarray of shape (n_C,)
        Iterations, summed over the subproblems.
    n_kernel_evals_ : int ndarray of shape (n_C,)
        Kernel values that were computed, summed over the subproblems.
    n_support_ : int ndarray of shape (n_C,)
        Number of training samples that are support vectors of any subproblem.
    sv_share_ : ndarray of shape (n_C,)
        Share of support vectors among the samples of a subproblem, mean over the subproblems.
    converged_ : bool ndarray of shape (n_C,)
        Whether the tolerance is certified for every subproblem.
    objective_ : ndarray of shape (n_C,)
        Objective at the solution, summed over the subproblems; see the estimator's attribute. `SMOSVC` and
        `AESVC`: dual objective ½ αᵀQα − Σ α_i, which the training minimises and which is never positive.
        `NewtonSVC`, `MNSVC`, `SphereSVC`, `BallSVC` and `CoreSVC`: squared norm ‖c‖² of the point of the
        hull, which is positive for a positive definite kernel. Compare values of one estimator only.
    duality_gap_ : ndarray of shape (n_C,)
        Largest certified relative gap of a subproblem.
    fit_status_ : int ndarray of shape (n_C,)
        Status of the training, 0 exactly where `converged_`; see the estimator's attribute of this name.
    stopping_ : list of str
        Certified bounds, or the reason why the training ended; see the estimator's attribute.
    n_clipped_, n_full_updates_ : int ndarray of shape (n_C,)
        Steps that the weight of a sample shortened, and the other steps; see the estimator's attributes of
        these names. Only `MNSVC`, `SphereSVC`, `BallSVC` and `CoreSVC` have them.
    method_ : list of str
        Methods that were used; only `NewtonSVC` has it.
    fit_seconds_ : ndarray of shape (n_C,)
        Wall time of the whole path in seconds, shared out by counted work.
    """

    def __init__(self, estimator, solution, totals, stopping, kernel, X, normalised):
        super().__init__(solution, solution.outcomes, totals, stopping, solution.seconds)
        self.Cs_: np.ndarray = solution.problem.Cs
        self._kernel, self._normalised = kernel, normalised
        self._name, self._width = type(estimator).__name__, X.shape[-1]
        self._max_values = max_block_values(estimator)
        self._callable = estimator.kernel if callable(estimator.kernel) else None
        if kernel.kind == GRAM and (self._callable is None or not is_table(X)):
            self._solution, self._vectors = solution, None if self._callable is None else X
        else:
            self._solution, kept = solution.on_used_rows()
            self._vectors = X[kept]

    def predict_path(self, X: ArrayLike | sparse.spmatrix | sparse.sparray) -> np.ndarray:
        """Predict labels for every C.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_test, n_features), or (n_test, n_train) if precomputed
            Samples, or their kernel values with all training samples.

        Returns
        -------
        labels : ndarray of shape (n_C, n_test)
            Predicted label of each sample for each C.
        """
        X = self._check_samples(X)
        is_copied = sparse.issparse(X) and not sparse.issparse(self._vectors)
        width = X.shape[1] if is_copied else 0
        blocks = blocks_of(X.shape[0], self._solution.weights, self.classes_.size, self._max_values, width)
        labels = np.empty((self.Cs_.size, X.shape[0]), self.classes_.dtype)
        for block in blocks:
            K = X[block] if self._vectors is None else self._kernel_to(X[block])
            labels[:, block] = self._solution.predict_path(K)
        return labels

    def _check_samples(self, X):
        """Return validated samples to predict.

        Parameters
        ----------
        X : {array-like, CSR}
            Samples as the user passed them.

        Returns
        -------
        {ndarray, CSR} of shape (n_test, n_features)
            Samples, or kernel values.
        """
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
        """Evaluate the kernel between samples and the support vectors.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (m, n_features)
            Validated samples.

        Returns
        -------
        ndarray of shape (m, n_SV)
            Kernel values.
        """
        if self._callable is not None:
            return values_of(self._callable, X, self._vectors)
        X = self._kernel.prepare(X)
        K = kernel_block(X, self._vectors, self._kernel)
        return normalise_rows(K, X, self._kernel) if self._normalised else K


def max_block_values(estimator):
    """Return the largest number of values of a block of predictions.

    Parameters
    ----------
    estimator : KernelSVC
        Estimator, whose `cache_size` limits the block.

    Returns
    -------
    float
        Number of float64 values.
    """
    return min(BLOCK_VALUES, 1e6 * estimator.cache_size / 24)


def blocks_of(n_samples, weights, n_classes, max_values, width=0):
    """Split samples into blocks whose predictions stay within a number of values.

    Parameters
    ----------
    n_samples : int
        Number of samples to predict.
    weights : ndarray of shape (n_C, depth, n)
        Weights in the layout of `PathSolution.weights`.
    n_classes : int
        Number of distinct labels.
    max_values : float
        Largest number of values of a block.
    width : int, default=0
        Number of further values that a block holds for each sample.

    Returns
    -------
    list of slice
        Blocks of consecutive samples.
    """
    n_C, depth, n = weights.shape
    step = max(1, int(max_values // max(1, n + width + 2 * n_C * depth * n_classes)))
    return [slice(start, start + step) for start in range(0, n_samples, step)]
