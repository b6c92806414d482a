"""Base class of all estimators: `fit`, which trains the subproblems and sets the fitted attributes.

An estimator is a subclass of `KernelSVC`, decorated by `solvers.estimators.parameters.with_parameters`, with
one method::

    def _solve(self, problem: Problem) -> Solution

It trains one subproblem: two classes, or all classes if ``multiclass="all_at_once"``. The samples of a
problem are numbered 0 … n − 1 class by class (`class_start`), and sample i is row `rows[i]` of `X`. In a
binary subproblem the first class has y = +1. `X` is dense or CSR float64, as `Kernel.prepare` returns it. For
a precomputed or callable kernel (`kernel.kind == GRAM`) it is the full Gram matrix, float32 or float64. A
solution contains the weights for which d(x) = Σ α_i y_i k(x_i, x) + bias has margin 1. `_solve` returns its
best solution after `problem.max_iter` iterations or at `problem.deadline` (`solvers.common.clock.clock`). A
parameter that only some estimators have is a class attribute of the others (`bias`, `multiclass`).

`fit` trains a copy of the estimator and adopts the attributes of the copy in its last statement. A fit that
fails at any line leaves the estimator unchanged.
"""

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from solvers.common.clock import clock
from solvers.common.input_checks import sound_csr
from solvers.common.resources import Budget, in_threads
from solvers.common.status import ADVICE
from solvers.estimators.calibration import fit_calibrated
from solvers.estimators.common_parameters import ClassWeight
from solvers.estimators.parameters import Samples, declares_parameters
from solvers.estimators.prediction import PredictionMixin
from solvers.estimators.trained import trained_one_by_one
from solvers.estimators.training_input import TrainingInputMixin
from solvers.kernels.functions import Kernel, is_table
from solvers.multiclass import (
    groups_of,
    label_start_of,
    sort_by_class,
    strategy_of,
    subproblem_seeds,
    without,
)
from solvers.problem import Problem, Solution

# Names that modules of estimators import from here.
__all__ = ["ClassWeight", "KernelSVC"]


class TrainingSet(NamedTuple):
    """Samples of a fit, class by class."""

    X: np.ndarray | sparse.csr_matrix  # features, or the Gram matrix
    kernel: Kernel
    rows: np.ndarray  # (n,) int32: rows of X, class by class
    class_start: np.ndarray  # (n_classes + 1,): boundaries of the classes among `rows`
    C: np.ndarray  # (1,), or (n_samples of X,): penalties
    scale: np.ndarray  # (n_samples of X,): 1/√k(x, x) if the kernel is to be normalised, else (0,)


class Subproblems(NamedTuple):
    """Trained subproblems of a `TrainingSet`."""

    solutions: list[Solution]
    members: list[np.ndarray]  # rows of X that each subproblem was trained on


@declares_parameters
class KernelSVC(PredictionMixin, TrainingInputMixin):  # numpydoc ignore=PR02
    """Base of the support vector classifiers.

    `solvers.estimators.common_parameters` describes its parameters and fitted attributes.

    Notes
    -----
    `max_iter` and `max_seconds` limit a whole `fit`, that is, all its subproblems together. Each subproblem
    gets an equal share of the remaining budget. With `probability`, each of the trainings, usually six, gets
    an equal share.

    Predictions and probabilities are computed in blocks that stay within `cache_size`. `fit` refuses kernel
    values that would not fit into memory before the training starts. These are the values that `cache_size`
    allows, and those of a callable kernel, which is evaluated for all pairs of samples at once.

    If k(x, x) has to be constant and is not, samples are normalised to k(x, x) = 1. `fit` refuses a
    precomputed or callable kernel that would have to be normalised, and a sample whose k(x, x) is not
    positive, such as a row of zeros. At prediction the kernel values of such a sample are 0, and its decision
    is the bias.
    """

    def fit(self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on samples X with labels y.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            Training samples, or their Gram matrix.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples. Sample i has the penalty C · sample_weight[i]. A sample with a weight of 0
            or less is left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = clock()
        model = self._copy()
        model._validate_params()
        if model.probability:
            model._fit_with_probabilities(X, y, sample_weight)
        else:
            model._fit(X, y, sample_weight, started)
            if not model.converged_:
                model._warn()
        self.__dict__ = model.__dict__
        return self

    def _fit_with_probabilities(self, X, y, sample_weight):
        """Train on all samples and once more for each fold of the calibration.

        Parameters
        ----------
        X : {array-like, CSR}
            Training samples.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of C, one for each sample. None means 1.
        """
        X = sound_csr(X)
        _, labels = self._check_training_samples(X, y)
        _, rows, _ = sort_by_class(labels)
        if sample_weight is not None:
            sample_weight = self._check_sample_weight(sample_weight, rows.size)
        self._calibrated = fit_calibrated(self, X, labels, sample_weight)

    def _fit(self, X, y, sample_weight, started):
        """Train on all samples.

        Parameters
        ----------
        X : {array-like, CSR}
            Training samples.
        y : array-like of shape (n_samples,)
            Class label of each sample.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of C, one for each sample. None means 1.
        started : float
            Time on `solvers.common.clock.clock` from which `max_seconds` counts.
        """
        X, y = self._check_training_samples(X, y)
        classes, rows, class_start = sort_by_class(y)
        self.classes_: np.ndarray = classes
        self.class_weight_: np.ndarray = self._weights_of_classes(self.classes_, y)
        weights = self._weights_of_samples(sample_weight, rows, class_start)
        if weights is not None and not (weights > 0.0).all():
            rows, class_start = without(rows, class_start, weights <= 0.0, self.classes_)
        self._require_cache(rows.size)
        C = np.array([float(self.C)])
        if weights is not None:
            self._check_weights(weights[rows], C, sample_weight)
            is_equal = (weights[rows] == weights[rows[0]]).all()
            C = self.C * (weights[rows[:1]] if is_equal else np.where(weights > 0.0, weights, 1.0))
        kernel, X_or_gram = self._resolve_kernel(X, None if weights is None else weights > 0.0)
        self._kernel, self._gamma = kernel, kernel.gamma
        self._callable = self.kernel if callable(self.kernel) else None
        self._check_diagonal(X_or_gram, kernel, rows, C)
        scale = self._normalisation(X_or_gram, kernel)

        samples = TrainingSet(X_or_gram, kernel, rows, class_start, C, scale)
        trained = self._train_together(samples, started) or self._train_one_by_one(samples, started)
        self._publish(X, samples, trained)
        if self.verbose:
            print(f"[{type(self).__name__}] {self.n_iter_.sum()} iterations; {self.stopping_}")

    def _train_together(self, samples, started):
        """Train all subproblems together, if that is faster.

        Parameters
        ----------
        samples : TrainingSet
            Samples sorted by class.
        started : float
            Time on `solvers.common.clock.clock` from which `max_seconds` counts.

        Returns
        -------
        Trained or None
            Results; None for estimators without `fit_path`.
        """
        return None

    def _train_one_by_one(self, samples, started):
        """Train the subproblems in turn, from the last solutions if there is a warm start.

        Parameters
        ----------
        samples : TrainingSet
            Samples sorted by class.
        started : float
            Time on `solvers.common.clock.clock` from which `max_seconds` counts.

        Returns
        -------
        Trained
            Results.
        """
        rows, class_start = samples.rows, samples.class_start
        n_subproblems = len(self._groups())
        budget = Budget(self.max_iter, self.max_seconds, n_subproblems, started)
        starts = self._starts(rows, class_start, n_subproblems)
        solutions, members = self._train(
            samples, starts, subproblem_seeds(self._seed(), n_subproblems), budget
        )
        if self.warm_start:
            self._last = (rows, class_start, solutions, self._strategy())
        return trained_one_by_one(samples, solutions, members, samples.X.shape[0], self._strategy())

    def _groups(self):
        """Return the class indices of each subproblem.

        Returns
        -------
        int64 ndarray of shape (n_subproblems, classes of a subproblem)
            Classes of each subproblem, in the order of its samples.
        """
        return groups_of(self.classes_.size, self._strategy())

    def _strategy(self):
        """Return the strategy for several classes.

        Returns
        -------
        {"pairwise", "one_vs_rest", "all_at_once"}
            The parameter `multiclass`; "pairwise" for two classes.
        """
        return strategy_of(self.multiclass, self.classes_.size)

    def _train(self, samples, starts, seeds, budget):
        """Train every subproblem within a budget.

        Parameters
        ----------
        samples : TrainingSet
            Samples sorted by class.
        starts : list of Solution or None
            Solution to start from, for each subproblem.
        seeds : uint64 ndarray of shape (n_subproblems,)
            Seeds of the random draws, one for each subproblem.
        budget : Budget
            Remaining iterations and time.

        Returns
        -------
        Subproblems
            Trained subproblems.
        """
        rows, class_start, C, scale = samples.rows, samples.class_start, samples.C, samples.scale
        strategy = self._strategy()
        shared: dict[str, Any] = {}

        def train(subproblem):
            group, start, seed = subproblem
            member = rows
            if strategy != "all_at_once" and self.classes_.size > 2:
                member = np.concatenate([rows[class_start[t] : class_start[t + 1]] for t in group])
            max_iter, deadline = budget.share()
            solution = self._solve(
                Problem(
                    X=samples.X,
                    rows=member,
                    class_start=label_start_of(class_start, group, strategy),
                    C=C if C.size == 1 else C[member],
                    kernel=samples.kernel,
                    bias=0.0 if self.bias == "none" else 1.0,
                    scale=scale if scale.size == 0 else scale[member],
                    seed=int(seed),
                    deadline=deadline,
                    max_iter=max_iter,
                    start=start,
                    shared=shared,
                )
            )
            budget.subtract(solution.n_iter)
            return solution, member

        one_by_one = self.max_iter != -1 or self.max_seconds is not None
        subproblems = zip(self._groups(), starts, seeds, strict=True)
        solutions, members = zip(
            *in_threads(train, subproblems, 1 if one_by_one else self.n_jobs), strict=True
        )
        return Subproblems(list(solutions), list(members))

    def _solve(self, problem):
        """Train one subproblem.

        Parameters
        ----------
        problem : Problem
            Subproblem to train.

        Returns
        -------
        Solution
            Trained subproblem.
        """
        raise NotImplementedError

    def _seed(self):
        """Return the seed of the draws of a fit.

        Returns
        -------
        int
            Always 0: estimators that draw samples override it.
        """
        return 0

    def _starts(self, rows, class_start, n_subproblems):
        """Return the solutions of the last fit, if it had the same samples, labels and strategy.

        Parameters
        ----------
        rows : int32 ndarray of shape (n,)
            Row numbers, class by class.
        class_start : int ndarray of shape (n_classes + 1,)
            Boundaries of the classes among `rows`.
        n_subproblems : int
            Number of binary problems of the training.

        Returns
        -------
        list of Solution or None
            Solution to start from, for each subproblem; None without one.
        """
        last = getattr(self, "_last", None) if self.warm_start else None
        # Three classes have as many pairs as subproblems of one class against the rest, with other samples.
        if last is None or len(last[2]) != n_subproblems or last[3] != self._strategy():
            return [None] * n_subproblems
        same = np.array_equal(last[0], rows) and np.array_equal(last[1], class_start)
        return [s if same and np.isfinite(s.objective) else None for s in last[2]]

    def _publish(self, X, samples, trained):
        """Set the fitted attributes.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Training samples, one a row, with finite float64 features.
        samples : TrainingSet
            Samples sorted by class.
        trained : Trained
            Results of the subproblems.
        """
        self.support_: np.ndarray = samples.rows[trained.used]
        self.n_support_: np.ndarray = np.add.reduceat(trained.used, samples.class_start[:-1], dtype=np.int32)
        self.dual_coef_: np.ndarray = trained.dual_coef
        self.intercept_: np.ndarray = trained.intercept
        # X[:0] would be a view, which keeps the whole Gram matrix in memory.
        is_gram = self.kernel == "precomputed"
        vectors = np.empty((0, X.shape[1]), X.dtype) if is_gram else X[self.support_]
        self.support_vectors_: np.ndarray | sparse.csr_matrix = vectors
        self._calibrated = None
        self._samples = X if callable(self.kernel) and not is_table(X) else None
        self.n_iter_: np.ndarray = trained.n_iter
        self.n_kernel_evals_: int = trained.n_kernel_evals
        self.objective_: float = trained.objective
        self.gap_: float = trained.gap
        self.duality_gap_: float = self.gap_
        self.fit_status_: int = trained.fit_status
        self.converged_: bool = trained.converged
        self.stopping_: str = trained.stopping

    def _warn(self):
        """Warn that a subproblem did not converge, with the reason and what to do."""
        warnings.warn(
            f"{type(self).__name__} stopped before its tolerance was met: {ADVICE[self.fit_status_]} "
            f"(stopping_: {self.stopping_})",
            ConvergenceWarning,
            stacklevel=3,
        )
