"""Base class of all estimators: checks of input, labels, classes, prediction and the fitted attributes.

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
from collections.abc import Callable
from functools import lru_cache, partial
from numbers import Integral, Real
from typing import Annotated, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import _safe_indexing, compute_class_weight
from sklearn.utils._param_validation import Interval, Options, StrOptions, validate_parameter_constraints
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from solvers.common.clock import clock
from solvers.common.input_checks import require_real_numbers, sound_csr
from solvers.common.penalties import require_penalties
from solvers.common.plain import plain
from solvers.common.resources import Budget, in_threads, n_threads, require_memory
from solvers.common.status import ADVICE
from solvers.estimators.calibration import fit_calibrated
from solvers.estimators.parameters import Positive, Samples, Switch, declares_parameters, parameter
from solvers.estimators.trained import trained_one_by_one
from solvers.kernels.functions import (
    GRAM,
    KINDS,
    LINEAR,
    Kernel,
    as_array,
    for_samples,
    is_table,
    kernel_block,
    kernel_diagonal,
    normalise_rows,
    require_finite,
    values_of,
    variance_of,
)
from solvers.multiclass import (
    groups_of,
    label_start_of,
    pairwise_decisions,
    require_labels_of_one_type,
    sort_by_class,
    strategy_of,
    subproblem_seeds,
    votes,
    without,
)
from solvers.problem import Problem, Solution

_PLAIN = (bool, int, float, str, type(None))
"""Types of values whose check is cached."""

BLOCK_VALUES = 1 << 20
"""Largest number of kernel values of a block of predictions (8 MB)."""
FEW_CLASSES = 10
"""Number of classes above which the decisions of pairs take more memory than kernel values."""
LARGE_BLOCK_VALUES = 1 << 21
"""Largest number of values of a block of predictions for more classes (16 MB), if it has `MIN_SAMPLES`."""
MIN_SAMPLES = 16
"""Least number of samples of a block of predictions for more classes, as far as `cache_size` allows it."""


def _check_parameter(estimator, name, kind, value):
    """Raise if the value of a parameter is not valid.

    Parameters
    ----------
    estimator : type
        Class whose `_parameter_constraints` the value must satisfy.
    name : str
        Name of the parameter, as in `get_params`.
    kind : type
        Type of the value, by which the cache distinguishes 1, 1.0 and True.
    value : object
        Value to check, as the user gave it.
    """
    constraints = {name: estimator._parameter_constraints[name]}
    validate_parameter_constraints(constraints, {name: value}, estimator.__name__)


_check_plain = lru_cache(maxsize=10_000)(_check_parameter)


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


# Integers of any size: scikit-learn's "random_state" refuses those of more than 32 bits.
RandomState = Annotated[
    int | np.integer | np.random.RandomState | None,
    Interval(Integral, 0, None, closed="left"),
    np.random.RandomState,
    None,
]
ClassWeight = Annotated[dict | str | None, StrOptions({"balanced"}), dict, None]


def _gives_probabilities(model):
    """Raise if an estimator was not asked for probabilities.

    Parameters
    ----------
    model : KernelSVC
        Estimator with its parameters.

    Returns
    -------
    bool
        Always True.

    Raises
    ------
    AttributeError
        `probability` is False.
    """
    if not model.probability:
        raise AttributeError(
            f"class probabilities need {type(model).__name__}(probability=True). Set it before fit"
        )
    return True


@declares_parameters
class KernelSVC(ClassifierMixin, BaseEstimator):  # numpydoc ignore=PR02
    """Base of the support vector classifiers.

    Parameters
    ----------
    C : float
        Penalty of the squared slacks; with ``SMOSVC(loss="l1")``, of the slacks.
    kernel : {"rbf", "linear", "poly", "sigmoid", "imq", "precomputed"} or callable
        Kernel function: ``rbf`` is exp(−γ ‖x − z‖²), ``linear`` x·z, ``poly`` (γ x·z + coef0)^degree,
        ``sigmoid`` tanh(γ x·z + coef0), ``imq`` 1/√(γ ‖x − z‖² + coef0). A callable takes two arrays of
        samples and returns their kernel matrix. At prediction its second argument is the support vectors. For
        samples that are not rows of numbers, such as strings, it is all training samples, as in
        `sklearn.svm.SVC`. A precomputed float32 Gram matrix is not converted; sums are float64.
    gamma : {"scale", "auto"} or float
        Width γ of the kernel, as in `sklearn.svm.SVC`.
    degree : float
        Degree of the poly kernel.
    coef0 : float
        Constant of the poly, sigmoid and imq kernels; positive for imq.
    gram_error : float
        Bound on the error of a value of a precomputed kernel matrix, which the certificate includes. 0: the
        values are exact, those of a float32 matrix as well.
    cache_size : float
        Megabytes for kernel rows.
    max_iter : int
        Limit of the iterations of a whole `fit`; −1 for no limit.
    max_seconds : float or None
        Limit of the wall time of `fit`, in seconds; None for no limit.
    probability : bool
        Provide `predict_proba` and `predict_log_proba`, by scikit-learn's
        ``CalibratedClassifierCV(self, method="sigmoid", ensemble=False)``. This takes five more trainings.
    class_weight : dict, "balanced" or None
        Class t has the penalty C · class_weight[t], multiplied by `sample_weight` if given. "balanced" is
        n_samples / (n_classes · n_t), as in `sklearn.svm.SVC`.
    decision_function_shape : {"ovr", "ovo"}
        Result of `decision_function` for more than two classes: a score of every class ("ovr"), or the
        decision of every pair ("ovo").
    break_ties : {"auto"} or bool
        Whether `predict` breaks ties of votes by the sum of decisions; if not, the first class wins. True and
        False behave as in `sklearn.svm.SVC`: True is refused for ``decision_function_shape="ovo"``. A
        decision of exactly 0 is a vote for the first class of its pair in `decision_function`, and for the
        second one in `predict` where ties are not broken. "auto" breaks ties for both shapes, and a decision
        of 0 is a vote for the second class.
    verbose : bool
        Print the number of iterations and `stopping_` after `fit`.
    n_jobs : int or None
        Number of threads that train the subproblems of pairs, and that predict; None is one, −1 one for each
        core. Each thread has a cache of `cache_size`. The model is the same for any number, bit for bit. One
        thread trains if `max_iter` or `max_seconds` is set, because the subproblems share them in turn.
        `fit_path` trains in one thread.
    random_state : int, RandomState or None
        Source of the folds for `probability`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    n_features_in_ : int
        Number of features of the training samples.
    support_ : ndarray of shape (n_SV,)
        Indices of the training samples that are support vectors of any subproblem, sorted by class.
    support_vectors_ : {ndarray, CSR} of shape (n_SV, n_features)
        Support vectors; empty for a precomputed kernel.
    class_weight_ : ndarray of shape (n_classes,)
        Factor of C for each class, in the order of `classes_`.
    coef_ : ndarray of shape (n_pairs, n_features), or (n_classes, n_features) unless pairwise
        Weights of the features; only with ``kernel="linear"``, unless that is normalised. Read-only.
    n_support_ : ndarray of shape (n_classes,), int32
        Number of support vectors of each class.
    dual_coef_ : ndarray of shape (n_classes − 1, n_SV), or (n_classes, n_SV) unless pairwise
        Coefficients of the support vectors: pairwise in the layout of `sklearn.svm.SVC`, else those of each
        class.
    intercept_ : ndarray of shape (n_pairs,), or (n_classes,)
        Constants of the decisions, in the layout of `sklearn.svm.SVC`.
    n_iter_ : int ndarray of shape (n_subproblems,)
        Iterations of each subproblem.
    n_kernel_evals_ : int
        Kernel values that were computed, summed over the subproblems. With ``track_margins=False``, a draw
        counts its values each time, also where they were kept.
    objective_ : float
        Squared norm ‖c‖² of the point of the hull, summed over the subproblems.
    gap_, duality_gap_ : float
        Largest relative gap of a subproblem over all its samples: an upper bound that allows for every
        rounding error (`solvers.common.certificate`). It holds for positive semidefinite kernels only. It is
        NaN if computing it would have taken longer than training.
    converged_ : bool
        Whether the tolerance `tol` is certified for every subproblem; the table in `solvers` says what that
        means.
    stopping_ : str
        ``"certified: ..."``, or the reason why the subproblem that is farthest from its tolerance ended, and
        its gap: ``"max_iter"``, ``"max_seconds"``, ``"cannot be told apart at this precision"`` (rounding
        hides the remaining violation), ``"stalled: its steps gain next to nothing"`` (the tolerance would
        take far too many steps), or another reason.
    fit_status_ : int
        0 exactly if `converged_`. Otherwise the reason: 1 `max_iter`; 2 `max_seconds`; 3 the kernel is not
        positive definite; 4 the steps made no more progress, or rounding is too large to certify `tol`; 5 the
        draws found no violator, but there may be one. With several subproblems it is the last of their
        statuses in the order 0, 5, 1, 2, 3, 4.

    Notes
    -----
    `max_iter` and `max_seconds` limit a whole `fit`, that is, all its subproblems together. Each subproblem
    gets an equal share of the remaining budget. With `probability`, each of the six trainings gets an equal
    share.

    Predictions and probabilities are computed in blocks that stay within `cache_size`. `fit` refuses kernel
    values that would not fit into memory before the training starts. These are the values that `cache_size`
    allows, and those of a callable kernel, which is evaluated for all pairs of samples at once.

    If k(x, x) has to be constant and is not, samples are normalised to k(x, x) = 1. A sample whose k(x, x) is
    not positive, such as a row of zeros, cannot be normalised. At prediction its kernel values are 0, and its
    decision is the bias.
    """

    C: Positive = parameter(default=1.0, kw_only=False)
    kernel: Annotated[str | Callable, StrOptions(set(KINDS)), callable] = "rbf"
    gamma: Annotated[
        str | float, StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")
    ] = "scale"
    degree: Annotated[float, Interval(Real, 0, None, closed="left")] = 3
    coef0: Annotated[float, Interval(Real, None, None, closed="neither")] = 1.0
    gram_error: Annotated[float, Interval(Real, 0, None, closed="left")] = 0.0
    cache_size: Annotated[float, Interval(Real, 0, None, closed="right")] = 200
    max_iter: Annotated[int, Options(Integral, {-1}), Interval(Integral, 1, None, closed="left")] = -1
    max_seconds: Annotated[float | None, Interval(Real, 0, None, closed="right"), None] = None
    probability: Switch = False
    decision_function_shape: Annotated[str, StrOptions({"ovr", "ovo"})] = "ovr"
    break_ties: Annotated[bool | str, "boolean", StrOptions({"auto"})] = "auto"
    verbose: Switch = False
    n_jobs: Annotated[
        int | None, Options(Integral, {-1}), Interval(Integral, 1, None, closed="left"), None
    ] = None
    random_state: RandomState = None

    # Values of the estimators that do not have the parameter.
    bias, multiclass, warm_start = "theoretic", "pairwise", False
    class_weight = cast(dict | str | None, None)
    normalises = False  # whether the method needs a constant k(x, x)

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
        model._check_parameters()
        if model.probability:
            model._fit_with_probabilities(X, y, sample_weight)
        else:
            model._fit(X, y, sample_weight, started)
            if not model.converged_:
                model._warn()
        self.__dict__ = model.__dict__
        return self

    def _copy(self):
        """Return a copy that shares parameters and fitted attributes.

        Returns
        -------
        KernelSVC
            Copy.
        """
        model = object.__new__(type(self))
        model.__dict__.update(self.__dict__)
        return model

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
        if self._trains_together(samples):
            trained = self._train_together(samples, started)
        else:
            trained = self._train_one_by_one(samples, started)
        self._publish(X, samples, trained)
        if self.verbose:
            print(f"[{type(self).__name__}] {self.n_iter_.sum()} iterations; {self.stopping_}")

    def _trains_together(self, samples):
        """Return whether `_train_together` trains all subproblems.

        Parameters
        ----------
        samples : TrainingSet
            Samples sorted by class.

        Returns
        -------
        bool
            False for estimators without `fit_path`.
        """
        return False

    def _train_together(self, samples, started):
        """Train all subproblems together.

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
        raise NotImplementedError

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
            self._last = (rows, class_start, solutions)
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

    @property
    def coef_(self) -> np.ndarray:
        """Feature weights of the linear kernel."""
        fitted = getattr(self, "_kernel", None)
        is_linear = self.kernel == "linear" if fitted is None else fitted.kind == LINEAR
        if not is_linear or getattr(self, "_normalised", False):
            raise AttributeError(
                f"coef_ holds the weights of features, which {type(self).__name__} has only with "
                "kernel='linear', where that is not normalised"
            )
        if not hasattr(self, "support_vectors_"):
            raise AttributeError(f"{type(self).__name__} has no coef_ before fit")
        coef = self._subproblems_on(self.support_vectors_.T, np.zeros_like(self.intercept_)).T
        coef.flags.writeable = False
        return coef

    def decision_function(self, X: Samples) -> np.ndarray:
        """Evaluate the decisions of the subproblems.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_train) if precomputed
            Samples, or their kernel values with all training samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            Two classes: positive for `classes_[1]`. Pairwise: votes, with ties broken by the sum of
            decisions; for ``decision_function_shape="ovo"`` the decisions of the pairs, positive for the
            first class of a pair. One against the rest: the decision of each class. All at once:
            y_t · (W x + b) of each class.
        """
        return self._scores(X, self._count_votes() if self.decision_function_shape == "ovr" else None)

    def _count_votes(self):
        """Return the function that counts votes for `decision_function`.

        Returns
        -------
        callable
            `votes`, with the rule of `sklearn.svm.SVC` for decisions of 0 unless `break_ties` is "auto".
        """
        return partial(votes, zero_for_first=self.break_ties != "auto")

    def _scores(self, X, count):
        """Evaluate the decisions of the subproblems, and count votes.

        Parameters
        ----------
        X : {array-like, CSR}
            Samples; for a precomputed kernel, their kernel values with the training samples.
        count : callable or None
            Function that counts the votes of pairs; None returns the decisions.

        Returns
        -------
        ndarray
            Scores, as `decision_function` returns them.
        """
        X = self._check_samples(X)
        n_classes = self.classes_.size
        is_voted = n_classes > 2 and self.dual_coef_.shape[0] < n_classes and count is not None

        def evaluate(block):
            decisions = self._subproblems_on(self._kernel_to_support(X[block]), self.intercept_)
            return count(decisions, n_classes) if is_voted else decisions

        scores = np.concatenate(in_threads(evaluate, self._decision_blocks(X), self.n_jobs))
        return scores[:, 0] if n_classes == 2 else scores

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Samples) -> np.ndarray:
        """Estimate the probability of every class.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_train) if precomputed
            Samples, or their kernel values with all training samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self, "classes_")
        if self._calibrated is None:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False. Call fit again"
            )
        X = sound_csr(X)
        blocks = self._blocks(_num_samples(X))
        return np.concatenate([self._calibrated.predict_proba(_safe_indexing(X, block)) for block in blocks])

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Samples) -> np.ndarray:
        """Estimate the logarithm of the probability of every class.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_train) if precomputed
            Samples, or their kernel values with all training samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of the probabilities, in the order of `classes_`.
        """
        return np.log(self.predict_proba(X))

    def _check_training_samples(self, X, y):
        """Return validated training samples and labels.

        Parameters
        ----------
        X : {array-like, CSR}
            Samples as the user passed them.
        y : array-like of shape (n_samples,)
            Labels as the user passed them.

        Returns
        -------
        X : {ndarray, CSR}
            Samples, or the Gram matrix.
        y : ndarray of shape (n_samples,)
            Class label of each sample.
        """
        require_labels_of_one_type(y)
        if self.kernel == "precomputed" and sparse.issparse(X):
            raise TypeError(
                "Sparse precomputed kernels are not supported: kernel='precomputed' needs a dense matrix. "
                "Convert it by toarray()"
            )
        if callable(self.kernel) and not is_table(X):
            check_consistent_length(X, y)
            return as_array(X), column_or_1d(y, warn=True)
        return self._check_table(X, self.kernel == "precomputed", y=y)

    def _check_table(self, X, is_precomputed, **others):
        """Return validated rows of numbers.

        Parameters
        ----------
        X : {array-like, CSR}
            Samples as the user passed them.
        is_precomputed : bool
            Whether X is a kernel matrix, which may stay float32.
        **others : dict
            Further arguments of scikit-learn's `validate_data`.

        Returns
        -------
        ndarray, CSR or tuple
            Result of `validate_data`.
        """
        X = sound_csr(X)
        require_real_numbers(X)
        accepted = [np.float64, np.float32] if is_precomputed else np.float64
        return validate_data(self, X, accept_sparse="csr", dtype=accepted, order="C", **others)

    def _check_samples(self, X):
        """Return validated samples to predict.

        Parameters
        ----------
        X : {array-like, CSR}
            Samples as the user passed them.

        Returns
        -------
        {ndarray, CSR}
            Samples, or kernel values.
        """
        check_is_fitted(self, "classes_")
        if self._callable is not None and not is_table(X):
            return as_array(X)
        if self._is_precomputed() and sparse.issparse(X):
            X = sound_csr(X).toarray()
        return self._check_table(X, self._is_precomputed(), reset=False)

    def _is_precomputed(self):
        """Return whether the fitted kernel is a matrix that the caller computes.

        Returns
        -------
        bool
            False for a callable kernel.
        """
        return self._kernel.kind == GRAM and self._callable is None

    def _decision_blocks(self, X):
        """Split samples into blocks for the decisions.

        Parameters
        ----------
        X : {ndarray, CSR}
            Validated samples.

        Returns
        -------
        list of slice
            Blocks of consecutive samples.
        """
        # `Kernel.prepare` copies sparse samples if the training samples are dense.
        is_copied = sparse.issparse(X) and not sparse.issparse(self.support_vectors_)
        width = X.shape[1] if is_copied else 0
        return self._blocks(X.shape[0], width if self._samples is None else self._samples.size)

    def _blocks(self, n, width=0):
        """Split samples into blocks whose kernel values and decisions stay within `cache_size`.

        Parameters
        ----------
        n : int
            Number of samples.
        width : int, default=0
            Number of further values that a block holds for each sample, such as those of a copy.

        Returns
        -------
        list of slice
            Blocks of consecutive samples.
        """
        n_classes, allowed = self.classes_.size, self.cache_size * 1e6 / 16
        if n_classes > FEW_CLASSES:
            n_values = width + self.support_.size + 2 * n_classes**2  # of one sample
            # A product with few samples reads all coefficients for them.
            step = min(max(LARGE_BLOCK_VALUES // n_values, MIN_SAMPLES), allowed // n_values)
        else:
            n_values = width + self.support_.size + 8 * (n_classes - 2) ** 2
            step = min(BLOCK_VALUES, allowed) // max(1, n_values)
        step = max(1, int(step))
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def _subproblems_on(self, K, intercept):
        """Evaluate the decisions of all subproblems, or of all classes for all at once.

        Parameters
        ----------
        K : ndarray of shape (m, n_SV)
            Kernel values to the support vectors.
        intercept : ndarray
            Constants of the decisions.

        Returns
        -------
        ndarray of shape (m, n_pairs), or (m, n_classes)
            Decisions.
        """
        if self.dual_coef_.shape[0] == self.classes_.size:
            return K @ self.dual_coef_.T + intercept
        class_start = np.concatenate(([0], np.cumsum(self.n_support_)))
        return pairwise_decisions(K, self.dual_coef_, intercept, class_start)

    def predict(self, X: Samples) -> np.ndarray:
        """Predict the label of every sample.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_train) if precomputed
            Samples, or their kernel values with all training samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from `classes_`.
        """
        check_is_fitted(self, "classes_")
        if self.decision_function_shape == "ovo" and self.break_ties not in ("auto", False):
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo', which has no scores of "
                f"classes; got {self.break_ties}. 'auto' breaks ties for both shapes"
            )
        scores = self._scores(X, self._count_votes() if self.break_ties else partial(votes, break_ties=False))
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

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

    def _check_parameters(self):
        """Raise if a parameter is not valid, or if parameters do not fit together."""
        # This replaces `_validate_params`, which reads the signature of `__init__` and checks every value
        # again. Here valid plain values are checked once in a process.
        for name, default in self._checked_defaults.items():
            value = getattr(self, name)
            if value is default:
                continue
            check: Callable = _check_plain if type(value) in _PLAIN else _check_parameter
            check(type(self), name, type(value), value)
        if self.decision_function_shape == "ovo" and self.multiclass != "pairwise":
            raise ValueError(
                f"decision_function_shape='ovo' needs multiclass='pairwise'; got {self.multiclass!r}, which "
                "has no decisions of pairs. Set decision_function_shape='ovr'"
            )
        if self.kernel == "imq" and self.coef0 <= 0:
            raise ValueError(
                f"coef0 must be > 0 for kernel='imq', which is 1/√(γ‖x − z‖² + coef0); got {self.coef0}"
            )

    def _seed(self):
        """Return the seed of the draws of a fit.

        Returns
        -------
        int
            Always 0: estimators that draw samples override it.
        """
        return 0

    def _weights_of_classes(self, classes, y):
        """Return `class_weight_`.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            Distinct labels.
        y : ndarray of shape (n_samples,)
            Class label of each sample.

        Returns
        -------
        ndarray of shape (n_classes,)
            Factor of C for each class, in the order of `classes`; 1 without a `class_weight`.
        """
        if self.class_weight is None:
            return np.ones(classes.size)
        given = self.class_weight if isinstance(self.class_weight, dict) else {}
        if not all(isinstance(weight, Real) and np.isfinite(float(weight)) for weight in given.values()):
            raise ValueError(f"class_weight: expected finite numbers, found {plain(given)}")
        return compute_class_weight(self.class_weight, classes=classes, y=y)

    def _weights_of_samples(self, sample_weight, rows, class_start):
        """Return the weights of samples, multiplied by those of their classes.

        Parameters
        ----------
        sample_weight : array-like of shape (n,) or None
            Factors of C, one for each sample. None means 1.
        rows : int32 ndarray of shape (n,)
            Row numbers, class by class.
        class_start : int ndarray of shape (n_classes + 1,)
            Boundaries of the classes among `rows`.

        Returns
        -------
        ndarray of shape (n,) or None
            Weights by row; None if all are 1.
        """
        if sample_weight is None and self.class_weight is None:
            return None
        weights = self._check_sample_weight(1.0 if sample_weight is None else sample_weight, rows.size)
        if self.class_weight is not None:
            of_classes = np.empty(rows.size)
            of_classes[rows] = np.repeat(self.class_weight_, np.diff(class_start))
            with np.errstate(over="ignore", under="ignore"):
                product = weights * of_classes
            is_lost = (product == 0.0) & (weights != 0.0) & (of_classes != 0.0)
            if is_lost.any() or not np.isfinite(product).all():
                raise ValueError(
                    "sample_weight times class_weight leaves the range of float64. Scale them: the model "
                    "depends on the product of C and both"
                )
            weights = product
        return None if (weights == 1.0).all() else weights

    def _check_sample_weight(self, sample_weight, n):
        """Return the weights of samples as an array, or raise.

        Parameters
        ----------
        sample_weight : array-like or float
            Weights as the user passed them.
        n : int
            Number of samples.

        Returns
        -------
        ndarray of shape (n,)
            Factor of C for each sample, in float64.
        """
        require_real_numbers(sample_weight, "sample_weight")
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.ndim == 0:
            weights = np.full(n, float(weights))
        if weights.shape != (n,):
            raise ValueError(
                f"sample_weight must have shape ({n},), one weight a sample; got {weights.shape}"
            )
        if not np.all(np.isfinite(weights)):
            raise ValueError(
                "sample_weight: expected finite numbers, found a NaN or an infinity. "
                "Correct these weights or drop their samples"
            )
        return weights

    def _check_weights(self, weights, Cs, sample_weight):
        """Raise if penalties leave the range of float64, or differ where they must be equal.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Positive weights of the samples, multiplied by those of their classes.
        Cs : ndarray of shape (n_C,)
            Values of C.
        sample_weight : array-like or None
            Weights as the user passed them, for messages.
        """
        given = {"sample_weight": sample_weight, "class_weight": self.class_weight}
        names = [name for name, value in given.items() if value is not None]
        require_penalties(Cs, weights, names)
        if self.normalises and (weights != weights[0]).any():
            raise ValueError(
                f"{type(self).__name__} needs the same C for all samples, which must lie on a sphere; "
                "sample_weight has different weights. Use MNSVC, or weights that are all equal (or zero)"
            )

    def _resolve_kernel(self, X, used=None):
        """Return the kernel with its numbers, and the data that it is evaluated on.

        Parameters
        ----------
        X : {ndarray, CSR}
            Validated samples, or the Gram matrix.
        used : bool ndarray of shape (n_samples,), optional
            Samples that have weight; by default all.

        Returns
        -------
        kernel : Kernel
            Kernel with all its parameters.
        X : {ndarray, CSR}
            Prepared samples, or the Gram matrix.
        """
        if callable(self.kernel):
            require_memory(
                8.0 * X.shape[0] ** 2,
                f"the matrix of a callable kernel for {X.shape[0]:,} samples",
                "use a named kernel, which is evaluated in parts, or use fewer samples",
            )
            gram = values_of(self.kernel, X, X)
            require_finite(gram)
            return Kernel(GRAM), gram
        kind = KINDS[self.kernel]
        if kind == GRAM and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"a precomputed kernel must be a square matrix, samples × samples; got shape {X.shape}. "
                "Pass the kernel between all training samples"
            )
        if kind == GRAM:
            return Kernel(GRAM, error=float(self.gram_error)), X
        gamma = 1.0 if kind == LINEAR else self._resolve_gamma(X)
        return for_samples(Kernel(kind, gamma, float(self.coef0), float(self.degree)), X, used)

    def _resolve_gamma(self, X):
        """Return the width γ of the kernel as a number.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Training samples, one a row, with finite float64 features.

        Returns
        -------
        float
            Width γ, positive.
        """
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        if self.gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                variance = variance_of(X)
                gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
            if not (0 < gamma < np.inf and np.isfinite(variance)):
                raise ValueError(
                    "gamma='scale' is not a finite number for these samples, whose variance is "
                    f"{variance:g}. Scale them, or set gamma"
                )
            return gamma
        return float(self.gamma)

    def _require_cache(self, n):
        """Raise if the cache of kernel values would not fit into memory.

        Parameters
        ----------
        n : int
            Number of training samples.
        """
        require_memory(
            n_threads(self.n_jobs) * min(1e6 * self.cache_size, 8.0 * n**2),
            f"a cache of kernel values for {n:,} samples with cache_size={self.cache_size}",
            "set a smaller cache_size",
        )

    def _check_diagonal(self, X, kernel, rows, C):
        """Raise if the stopping rule has no meaning for the kernel or the penalties.

        Parameters
        ----------
        X : {ndarray, CSR}
            Prepared samples, or the Gram matrix.
        kernel : Kernel
            Kernel function with its parameters, as chosen for the training samples.
        rows : int32 ndarray of shape (n,)
            Rows with a positive weight.
        C : ndarray
            Penalties, or weights of the classes.
        """

    def _normalisation(self, X, kernel):
        """Return 1/√k(x, x) if the method needs a constant diagonal and the kernel has none (2.47).

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features), or ndarray of shape (n_samples, n_samples)
            Prepared samples, or the Gram matrix.
        kernel : Kernel
            Kernel function with its parameters, as chosen for the training samples.

        Returns
        -------
        ndarray of shape (n_samples,), or (0,)
            Factors; empty if the kernel is not scaled.
        """
        self._normalised = False
        if not self.normalises or kernel.has_constant_diagonal:
            return np.empty(0)
        diagonal = kernel_diagonal(X, kernel)
        if kernel.kind == GRAM:
            if not np.allclose(diagonal, diagonal[0], rtol=1e-6, atol=0.0):
                raise ValueError(
                    f"{type(self).__name__} needs a kernel with constant k(x, x); found "
                    f"{diagonal.min():g} to {diagonal.max():g}. Divide the kernel by √(k(x, x) k(z, z)), "
                    "or use MNSVC"
                )
            return np.empty(0)
        self._normalised = True
        if not (diagonal > 0).all():
            raise ValueError(
                f"{type(self).__name__} normalises the {self.kernel} kernel, which needs k(x, x) > 0 for all "
                f"samples; the smallest is {diagonal.min():g}. Use kernel='rbf', or MNSVC"
            )
        return 1.0 / np.sqrt(diagonal)

    def _starts(self, rows, class_start, n_subproblems):
        """Return the solutions of the last fit, if it had the same samples and labels.

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
        if last is None or len(last[2]) != n_subproblems:
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

    def _kernel_to_support(self, X):
        """Evaluate the kernel between a block of samples and the support vectors.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (m, n_features)
            Validated samples, or kernel values.

        Returns
        -------
        ndarray of shape (m, n_SV), float64
            Kernel values.
        """
        if self._callable is not None:
            if self._samples is None:
                return values_of(self._callable, X, self.support_vectors_)
            return values_of(self._callable, X, self._samples)[:, self.support_]
        if self._kernel.kind == GRAM:
            return np.asarray(X[:, self.support_], dtype=np.float64)
        X = self._kernel.prepare(X)
        K = kernel_block(X, self._kernel.prepare(self.support_vectors_), self._kernel)
        return normalise_rows(K, X, self._kernel) if self._normalised else K
