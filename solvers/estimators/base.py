"""What all the solvers share: checking of input, labels, classes, prediction and the fitted attributes.

A solver is a subclass of `KernelSVC`, decorated by `solvers.estimators.parameters.with_parameters`, with one
method::

    def _solve(self, problem: Problem) -> Solution

which trains one machine: two classes, or all of them where `multiclass="all_at_once"`. The samples of a
problem are numbered 0 … n − 1 class by class (`class_start`), and sample i is row `rows[i]` of `X`. In a
binary machine the first class has y = +1. `X` is dense or CSR float64, as `Kernel.prepare` returns it; for a
precomputed or callable kernel (`kernel.kind == GRAM`) it is the full Gram matrix, float32 or float64. A
solution holds the weights such that d(x) = Σ α_i y_i k(x_i, x) + bias has margin 1. `_solve` ends in order
after `problem.max_iter` iterations or at `problem.deadline` (`solvers.common.clock.clock`) with the best it
has. What is a parameter of some solvers only is an attribute of the class for all (`bias`, `multiclass`).

`fit` trains a copy of the estimator and takes over the copy's attributes in its last statement: a fit that
fails, at whatever line, leaves the estimator as it was.
"""

import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from numbers import Integral, Real
from typing import Annotated, NamedTuple, cast

import numpy as np
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
from solvers.common.status import ADVICE, most_severe, stopping_of
from solvers.estimators.calibration import fit_calibrated
from solvers.estimators.parameters import Positive, Switch
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
    all_at_once_coefficients,
    pairs_of,
    pairwise_coefficients,
    pairwise_decisions,
    require_labels_of_one_type,
    sort_by_class,
    subproblem_seeds,
    votes,
    without,
)
from solvers.problem import Problem, Solution

_PLAIN = (bool, int, float, str, type(None))

BLOCK_VALUES = 1 << 20  # kernel values of a block of predictions (8 MB)


def _check_parameter(estimator, name, kind, value):
    """Refuse a value of a parameter; `kind`, its type, tells 1, 1.0 and True apart for the cache."""
    constraints = {name: estimator._parameter_constraints[name]}
    validate_parameter_constraints(constraints, {name: value}, estimator.__name__)


_check_plain = lru_cache(maxsize=10_000)(_check_parameter)


class TrainingSet(NamedTuple):
    """Samples of a fit, class by class."""

    X: np.ndarray | sparse.csr_matrix  # features, or the Gram matrix
    kernel: Kernel
    rows: np.ndarray  # (n,) int32: rows of X sorted by class
    class_start: np.ndarray  # (n_classes + 1,)
    C: np.ndarray  # (1,), or (n_samples of X,)
    scale: np.ndarray  # (n_samples of X,) as in `Problem`, or (0,)


class Subproblems(NamedTuple):
    """What was trained on a `TrainingSet`."""

    solutions: list[Solution]
    members: list[np.ndarray]  # rows of X of each


# Whole numbers of any size: scikit-learn's "random_state" would refuse those of more than 32 bits.
RandomState = Annotated[object, Interval(Integral, 0, None, closed="left"), np.random.RandomState, None]
ClassWeight = Annotated[dict | str | None, StrOptions({"balanced"}), dict, None]


def _gives_probabilities(model):
    if not model.probability:
        raise AttributeError(
            f"class probabilities need {type(model).__name__}(probability=True); set it before fit"
        )
    return True


class KernelSVC(ClassifierMixin, BaseEstimator):
    """Base of the support vector classifiers.

    Parameters
    ----------
    C : float
        Penalty of the squared slacks; with ``SMOSVC(loss="l1")``, of the slacks.
    kernel : {"rbf", "linear", "poly", "sigmoid", "imq", "precomputed"} or callable
        ``rbf`` is exp(−γ ‖x − z‖²), ``linear`` x·z, ``poly`` (γ x·z + coef0)^degree, ``sigmoid`` tanh(γ x·z +
        coef0), ``imq`` 1/√(γ ‖x − z‖² + coef0). A callable gets two arrays of samples and returns their
        kernel matrix. To predict it gets the support vectors, of samples that are no table of numbers (of
        strings, say) all training samples as in `sklearn.svm.SVC`. A precomputed float32 Gram matrix is used
        as it is, with sums in float64.
    gamma : {"scale", "auto"} or float
        Width γ of the kernel, as in `sklearn.svm.SVC`.
    degree : float
        Degree of the poly kernel.
    coef0 : float
        Constant of the poly, sigmoid and imq kernels; > 0 for imq.
    gram_error : float
        Bound on the error of a value of a precomputed kernel matrix, for which the certificate allows. 0: the
        matrix is the kernel, and float32 values are taken as exact.
    cache_size : float
        Megabytes for kernel rows.
    max_iter : int
        Limit of the iterations of a whole `fit`; −1 for none.
    max_seconds : float or None
        Limit of the wall time of `fit`.
    probability : bool
        Provide `predict_proba` and `predict_log_proba`, at the cost of five more trainings: by
        ``CalibratedClassifierCV(self, method="sigmoid", ensemble=False)`` of scikit-learn.
    class_weight : dict, "balanced" or None
        Class t has the penalty C · class_weight[t], times those of `sample_weight`; "balanced" is n_samples /
        (n_classes · n_t), as in `sklearn.svm.SVC`.
    decision_function_shape : {"ovr", "ovo"}
        What `decision_function` returns for more than two classes: a score of every class, or the decision of
        every pair.
    break_ties : {"auto"} or bool
        Whether `predict` breaks ties of votes by the summed evidence; if not, the first class wins. True and
        False are those of `sklearn.svm.SVC`: True is refused for ``decision_function_shape="ovo"``, and a
        decision of exactly 0 is a vote for the first class of its pair in `decision_function`, for the second
        one in `predict` where ties are not broken. "auto" breaks ties for both shapes, and a decision of 0 is
        a vote for the second class.
    verbose : bool
        Print what `fit` came to.
    n_jobs : int or None
        Threads that train the machines of pairs, and that predict; None is one, −1 one for each core. Each
        has a cache of `cache_size`. The model is the same for any number, bit for bit; with `max_iter` or
        `max_seconds`, which the machines share in turn, one thread trains them all, as it does in `fit_path`.
    random_state : int, RandomState or None
        Of the folds for `probability`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    support_ : ndarray of shape (n_SV,)
        Rows of the training samples that are support vectors of any machine, sorted by class.
    support_vectors_ : {ndarray, CSR} of shape (n_SV, n_features)
        Empty for a precomputed kernel.
    class_weight_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_pairs, n_features), or (n_classes, n_features) for all at once
        Weights of the features; only with ``kernel="linear"``, unless that is normalised. Read-only.
    n_support_ : ndarray of shape (n_classes,), int32
    dual_coef_ : ndarray of shape (n_classes − 1, n_SV), or (n_classes, n_SV) for all at once
        As in `sklearn.svm.SVC`.
    intercept_ : ndarray of shape (n_pairs,), or (n_classes,)
    n_iter_ : int ndarray of shape (n_subproblems,)
    n_kernel_evals_ : int
        Summed over the machines.
    objective_ : float
        Summed over the machines; for the geometric solvers, ‖c‖².
    gap_, duality_gap_ : float
        The largest relative gap of a machine, over all of its samples: a bound that allows for every rounding
        (`solvers.common.certificate`). It holds for positive semidefinite kernels only. NaN if it would have
        cost more than training.
    converged_ : bool
        Whether what `tol` asks for is certified to hold for every machine; the table in `solvers` says what
        that is.
    stopping_ : str
        ``"certified: ..."``, or what ended the machine that is farthest from its tolerance, and its gap:
        ``"max_iter"``, ``"max_seconds"``, ``"cannot be told apart at this precision"`` (rounding hides what
        is left of the violation), ``"stalled: its steps gain next to nothing"`` (the tolerance would take far
        too many more of them), or another reason.
    fit_status_ : int
        0 exactly when `converged_`; else why: 1 `max_iter`, 2 `max_seconds`, 3 the kernel is not positive
        definite, 4 its steps made no more progress, or rounding is too large to certify `tol`, 5 its draws
        found no violator, and one is left, or may be. Of several machines the last in the order 0, 5, 1, 2,
        3, 4.

    Notes
    -----
    `max_iter` and `max_seconds` bound a whole `fit`: all of its machines together. Each gets an equal share
    of what those before it have left. With `probability`, each of the six trainings gets an equal share.

    Predictions and probabilities are computed in blocks that stay within `cache_size`. What would not fit
    into memory is refused before the training begins: kernel values that `cache_size` allows, and those of a
    callable kernel, which is evaluated for all pairs of samples at once.

    Where k(x, x) has to be constant and is not, samples are normalised to k(x, x) = 1. A sample to predict
    that cannot be, because its k(x, x) is not positive (a row of zeros, say), has k(x, z) = 0: the decision
    is the bias.
    """

    C: Positive = 1.0
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

    # What is no parameter of every solver.
    bias, multiclass, warm_start = "theoretic", "pairwise", False
    class_weight = cast(dict | str | None, None)
    normalises = False  # whether the method needs a constant k(x, x)

    def fit(self, X, y, sample_weight=None):
        """Train on samples X with labels y.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Sample i has penalty C · sample_weight[i]; with a weight of 0 or less it is left out.

        Returns
        -------
        self
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
        """Return a copy that shares parameters and fitted attributes."""
        model = object.__new__(type(self))
        model.__dict__.update(self.__dict__)
        return model

    def _fit_with_probabilities(self, X, y, sample_weight):
        """Train on all samples and once more for each fold of the calibration."""
        X = sound_csr(X)
        _, labels = self._check_training_samples(X, y)
        _, rows, _ = sort_by_class(labels)
        if sample_weight is not None:
            sample_weight = self._check_sample_weight(sample_weight, rows.size)
        self._calibrated = fit_calibrated(self, X, labels, sample_weight)

    def _fit(self, X, y, sample_weight, started):
        """Train on all samples, by a clock that started at some time."""
        X, y = self._check_training_samples(X, y)
        self.classes_, rows, class_start = sort_by_class(y)
        self.class_weight_ = self._weights_of_classes(self.classes_, y)
        weights = self._weights_of_samples(sample_weight, rows, class_start)
        if weights is not None and not (weights > 0.0).all():
            rows, class_start = without(rows, class_start, weights <= 0.0, self.classes_)
        self._require_cache(rows.size)
        C = np.array([float(self.C)])
        if weights is not None:
            C = self._penalties(weights, rows, sample_weight)
        kernel, X_or_gram = self._resolve_kernel(X, None if weights is None else weights > 0.0)
        self._kernel, self._gamma = kernel, kernel.gamma
        self._callable = self.kernel if callable(self.kernel) else None
        self._check_diagonal(X_or_gram, kernel, rows, C)
        scale = self._normalisation(X_or_gram, kernel)

        samples = TrainingSet(X_or_gram, kernel, rows, class_start, C, scale)
        n_subproblems = len(self._groups())
        budget = Budget(self.max_iter, self.max_seconds, n_subproblems, started)
        starts = self._starts(rows, class_start, n_subproblems)
        subproblems = self._train(samples, starts, subproblem_seeds(self._seed(), n_subproblems), budget)
        self._publish(X, samples, subproblems)
        if self.warm_start:
            self._last = (rows, class_start, subproblems.solutions)
        if self.verbose:
            print(f"[{type(self).__name__}] {self.n_iter_.sum()} iterations; {self.stopping_}")

    def _groups(self):
        """Return the classes of each machine."""
        n_classes = self.classes_.size
        at_once = self.multiclass == "all_at_once" and n_classes > 2
        return [range(n_classes)] if at_once else pairs_of(n_classes)

    def _train(self, samples, starts, seeds, budget):
        """Train every machine within a budget."""
        rows, class_start, C, scale = samples.rows, samples.class_start, samples.C, samples.scale

        def train(subproblem):
            group, start, seed = subproblem
            part = [rows[class_start[t] : class_start[t + 1]] for t in group]
            member = rows if len(part) == self.classes_.size else np.concatenate(part)
            max_iter, deadline = budget.share()
            solution = self._solve(
                Problem(
                    X=samples.X,
                    rows=member,
                    class_start=np.cumsum([0, *(p.size for p in part)]),
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
    def coef_(self):
        """Weights of the features."""
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

    def decision_function(self, X):
        """Evaluate the machines.

        Returns
        -------
        scores : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            Two classes: positive for `classes_[1]`. Pairwise: votes, with ties broken by the summed evidence;
            for ``decision_function_shape="ovo"`` the decisions of the pairs, positive for the first of a
            pair. All at once: y_t · (W x + b) of each class.
        """
        return self._scores(X, self._count_votes() if self.decision_function_shape == "ovr" else None)

    def _count_votes(self):
        """Return how `decision_function` counts votes: as `sklearn.svm.SVC` does, unless by default."""
        return partial(votes, zero_for_first=self.break_ties != "auto")

    def _scores(self, X, count):
        """Evaluate the machines, and count the votes of pairs by a function, or not at all."""
        X = self._check_samples(X)
        n_classes = self.classes_.size
        is_voted = n_classes > 2 and self.dual_coef_.shape[0] < n_classes and count is not None

        def evaluate(block):
            decisions = self._subproblems_on(self._kernel_to_support(X[block]), self.intercept_)
            return count(decisions, n_classes) if is_voted else decisions

        scores = np.concatenate(in_threads(evaluate, self._decision_blocks(X), self.n_jobs))
        return scores[:, 0] if n_classes == 2 else scores

    @available_if(_gives_probabilities)
    def predict_proba(self, X):
        """Estimate the probability of every class.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features), or (n_samples, n_train) if precomputed

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "classes_")
        if self._calibrated is None:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False: fit once more"
            )
        X = sound_csr(X)
        blocks = self._blocks(_num_samples(X))
        return np.concatenate([self._calibrated.predict_proba(_safe_indexing(X, block)) for block in blocks])

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X):
        """Return the logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def _check_training_samples(self, X, y):
        """Validate what a model is trained on."""
        require_labels_of_one_type(y)
        if self.kernel == "precomputed" and sparse.issparse(X):
            raise TypeError(
                "Sparse precomputed kernels are not read: kernel='precomputed' needs a dense matrix, as "
                "toarray() gives"
            )
        if callable(self.kernel) and not is_table(X):
            check_consistent_length(X, y)
            return as_array(X), column_or_1d(y, warn=True)
        return self._check_table(X, self.kernel == "precomputed", y=y)

    def _check_table(self, X, is_precomputed, **others):
        """Validate rows of numbers: float64 features, or a precomputed matrix as it is."""
        X = sound_csr(X)
        require_real_numbers(X)
        accepted = [np.float64, np.float32] if is_precomputed else np.float64
        return validate_data(self, X, accept_sparse="csr", dtype=accepted, order="C", **others)

    def _check_samples(self, X):
        """Validate samples to predict."""
        check_is_fitted(self, "classes_")
        if self._callable is not None and not is_table(X):
            return as_array(X)
        if self._is_precomputed() and sparse.issparse(X):
            X = sound_csr(X).toarray()
        return self._check_table(X, self._is_precomputed(), reset=False)

    def _is_precomputed(self):
        """Return whether the fitted kernel is a matrix that the caller computes."""
        return self._kernel.kind == GRAM and self._callable is None

    def _decision_blocks(self, X):
        """Cut samples into blocks that are evaluated one by one."""
        # Of sparse samples `Kernel.prepare` makes a copy for a dense machine.
        is_copied = sparse.issparse(X) and not sparse.issparse(self.support_vectors_)
        width = X.shape[1] if is_copied else 0
        return self._blocks(X.shape[0], width if self._samples is None else self._samples.size)

    def _blocks(self, n, width=0):
        """Cut n samples into blocks whose kernel values and decisions stay within `cache_size`.

        So does what else has `width` values for each sample of a block: a copy, say.
        """
        room = min(BLOCK_VALUES, self.cache_size * 1e6 / 16)
        step = max(1, int(room // max(1, width + self.support_.size + 8 * (self.classes_.size - 2) ** 2)))
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def _subproblems_on(self, K, intercept):
        """Evaluate every machine from kernel values to the support vectors; all at once: every class."""
        if self.dual_coef_.shape[0] == self.classes_.size:
            return K @ self.dual_coef_.T + intercept
        class_start = np.concatenate(([0], np.cumsum(self.n_support_)))
        return pairwise_decisions(K, self.dual_coef_, intercept, class_start)

    def predict(self, X):
        """Predict a label of `classes_` for every sample."""
        check_is_fitted(self, "classes_")
        if self.decision_function_shape == "ovo" and self.break_ties not in ("auto", False):
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo', whose scores are not of "
                "classes; 'auto' breaks ties for both shapes"
            )
        scores = self._scores(X, self._count_votes() if self.break_ties else partial(votes, break_ties=False))
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _solve(self, problem):
        raise NotImplementedError

    def _check_parameters(self):
        """Refuse parameters that are not valid, each by itself or together."""
        # What `_validate_params` does, without reading the signature of `__init__` and without checking plain
        # values again that were found valid before.
        for name, default in self._checked_defaults.items():
            value = getattr(self, name)
            if value is default:
                continue
            check: Callable = _check_plain if type(value) in _PLAIN else _check_parameter
            check(type(self), name, type(value), value)
        if self.decision_function_shape == "ovo" and self.multiclass == "all_at_once":
            raise ValueError(
                "decision_function_shape='ovo' needs multiclass='pairwise', for one machine for all classes "
                "has no decisions of pairs: set it to 'ovr'"
            )
        if self.kernel == "imq" and self.coef0 <= 0:
            raise ValueError(
                f"coef0 must be > 0 for kernel='imq', which is 1/√(γ‖x − z‖² + coef0); got {self.coef0}"
            )

    def _seed(self):
        """Return the source of the draws of a fit, as a number."""
        return 0

    def _weights_of_classes(self, classes, y):
        """Return `class_weight_`."""
        if self.class_weight is None:
            return np.ones(classes.size)
        given = self.class_weight if isinstance(self.class_weight, dict) else {}
        if not all(isinstance(weight, Real) and np.isfinite(float(weight)) for weight in given.values()):
            raise ValueError(f"class_weight must be finite numbers; got {plain(given)}")
        return compute_class_weight(self.class_weight, classes=classes, y=y)

    def _weights_of_samples(self, sample_weight, rows, class_start):
        """Return weights (n,), those of classes included, or None where all are equal to one."""
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
                    "sample_weight times class_weight leaves the range of float64: scale them, for the model "
                    "depends on C times both"
                )
            weights = product
        return None if (weights == 1.0).all() else weights

    def _check_sample_weight(self, sample_weight, n):
        """Return the weights of n samples as an array (n,), or raise."""
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
                "sample_weight must be finite; drop the samples or mend the weights that are not"
            )
        return weights

    def _penalties(self, weights, rows, sample_weight):
        """C_i of the samples; a single number where it is the same for all rows."""
        given = {"sample_weight": sample_weight, "class_weight": self.class_weight}
        names = [name for name, value in given.items() if value is not None]
        require_penalties(np.array([float(self.C)]), weights[rows], names)
        if (weights[rows] == weights[rows[0]]).all():
            return self.C * weights[rows[:1]]
        if self.normalises:
            raise ValueError(
                f"{type(self).__name__} needs the same C for all samples, which must lie on a sphere; "
                "sample_weight has different weights: use MNSVC, or weights that are all equal (or zero)"
            )
        return self.C * np.where(weights > 0.0, weights, 1.0)

    def _resolve_kernel(self, X, used=None):
        """Return the kernel with its numbers, and what it is evaluated on: samples, or a Gram matrix."""
        if callable(self.kernel):
            require_memory(
                8.0 * X.shape[0] ** 2,
                f"the matrix of a callable kernel for {X.shape[0]:,} samples",
                "use a named kernel, which is evaluated in parts, or fewer samples",
            )
            gram = values_of(self.kernel, X, X)
            require_finite(gram)
            return Kernel(GRAM), gram
        kind = KINDS[self.kernel]
        if kind == GRAM and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"a precomputed kernel must be a square matrix, samples × samples; got shape {X.shape}"
            )
        if kind == GRAM:
            return Kernel(GRAM, error=float(self.gram_error)), X
        gamma = 1.0 if kind == LINEAR else self._resolve_gamma(X)
        return for_samples(Kernel(kind, gamma, float(self.coef0), float(self.degree)), X, used)

    def _resolve_gamma(self, X):
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        if self.gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                variance = variance_of(X)
                gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
            if not (0 < gamma < np.inf and np.isfinite(variance)):
                raise ValueError(
                    f"gamma='scale' is no number here, the variance of the samples being {variance:g}: "
                    "scale them, or set gamma"
                )
            return gamma
        return float(self.gamma)

    def _require_cache(self, n):
        """Refuse a cache for the kernel values of n samples that would not fit into memory."""
        require_memory(
            n_threads(self.n_jobs) * min(1e6 * self.cache_size, 8.0 * n**2),
            f"a cache of kernel values for {n:,} samples with cache_size={self.cache_size}",
            "set a smaller cache_size",
        )

    def _check_diagonal(self, X, kernel, rows, C):
        """Refuse a kernel on which the stopping rule has no meaning."""

    def _normalisation(self, X, kernel):
        """Return 1/√k(x, x) where the method needs a constant diagonal and the kernel has none (2.47)."""
        self._normalised = False
        if not self.normalises or kernel.has_constant_diagonal:
            return np.empty(0)
        diagonal = kernel_diagonal(X, kernel)
        if kernel.kind == GRAM:
            if not np.allclose(diagonal, diagonal[0], rtol=1e-6, atol=0.0):
                raise ValueError(
                    f"{type(self).__name__} needs a kernel with constant k(x, x); this one lies between "
                    f"{diagonal.min():g} and {diagonal.max():g}: divide by √(k(x, x) k(z, z)), or use MNSVC"
                )
            return np.empty(0)
        self._normalised = True
        if not (diagonal > 0).all():
            raise ValueError(
                f"{type(self).__name__} normalises the {self.kernel} kernel, which needs k(x, x) > 0 for all "
                f"samples; the smallest is {diagonal.min():g}: use kernel='rbf', or MNSVC"
            )
        return 1.0 / np.sqrt(diagonal)

    def _starts(self, rows, class_start, n_subproblems):
        """Solutions of the last fit on the same samples and labels; None for a machine that has none."""
        last = getattr(self, "_last", None) if self.warm_start else None
        if last is None or len(last[2]) != n_subproblems:
            return [None] * n_subproblems
        same = np.array_equal(last[0], rows) and np.array_equal(last[1], class_start)
        return [s if same and np.isfinite(s.objective) else None for s in last[2]]

    def _publish(self, X, samples, subproblems):
        """Set the fitted attributes from the machines' solutions."""
        rows, class_start, scale = samples.rows, samples.class_start, samples.scale
        solutions, members = subproblems
        n_classes = self.classes_.size
        used = np.zeros(X.shape[0], dtype=bool)
        for solution, member in zip(solutions, members, strict=True):
            used[member[solution.support]] = True
        chosen = used[rows]
        self.support_ = rows[chosen]
        self.n_support_ = np.add.reduceat(chosen, class_start[:-1], dtype=np.int32)
        class_of_support = np.repeat(np.arange(n_classes), self.n_support_)
        place = np.empty(X.shape[0] if self.support_.size else 0, dtype=np.int32)
        place[self.support_] = np.arange(self.support_.size, dtype=np.int32)
        weights = [
            (place[member[s.support]], s.alpha if scale.size == 0 else s.alpha * scale[member[s.support]])
            for s, member in zip(solutions, members, strict=True)
        ]
        if self.multiclass == "all_at_once" and n_classes > 2:
            self.dual_coef_ = all_at_once_coefficients(class_of_support, weights[0][1], n_classes)
            self.intercept_ = solutions[0].bias
        else:
            self.dual_coef_ = pairwise_coefficients(n_classes, class_of_support, weights)
            self.intercept_ = np.concatenate([s.bias for s in solutions]) * (-1.0 if n_classes == 2 else 1.0)
        # Not X[:0], which is a view and would keep the whole Gram matrix in memory.
        is_gram = self.kernel == "precomputed"
        self.support_vectors_ = np.empty((0, X.shape[1]), X.dtype) if is_gram else X[self.support_]
        self._calibrated = None
        self._samples = X if callable(self.kernel) and not is_table(X) else None
        self.n_iter_ = np.array([s.n_iter for s in solutions], dtype=np.int64)
        self.n_kernel_evals_ = sum(s.n_kernel_evals for s in solutions)
        self.objective_ = float(sum(s.objective for s in solutions))
        gaps, certified = np.array([s.gap for s in solutions]), np.array([s.converged for s in solutions])
        self.gap_ = self.duality_gap_ = float(gaps.max())
        self.fit_status_ = most_severe([s.fit_status for s in solutions])
        self.converged_ = bool(certified.all())
        self.stopping_ = stopping_of(certified, gaps, lambda k: solutions[k].stopping)

    def _warn(self):
        """Say why a machine did not converge."""
        warnings.warn(
            f"{type(self).__name__} stopped before its tolerance was met: {ADVICE[self.fit_status_]} "
            f"(stopping_: {self.stopping_})",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _kernel_to_support(self, X):
        """Kernel between a block of samples and the support vectors."""
        if self._callable is not None:
            if self._samples is None:
                return values_of(self._callable, X, self.support_vectors_)
            return values_of(self._callable, X, self._samples)[:, self.support_]
        if self._kernel.kind == GRAM:
            return np.asarray(X[:, self.support_], dtype=np.float64)
        X = self._kernel.prepare(X)
        K = kernel_block(X, self._kernel.prepare(self.support_vectors_), self._kernel)
        return normalise_rows(K, X, self._kernel) if self._normalised else K
