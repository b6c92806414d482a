"""The hinge-loss support vector machine without a free bias, by one-slack cutting planes."""

import warnings
from numbers import Integral, Real
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from solvers.common.clock import clock
from solvers.common.input_checks import checked_table
from solvers.common.resources import Budget
from solvers.common.status import (
    ADVICE,
    STOPPING_TEXTS,
    fit_status_of,
    most_severe,
    stopping_of,
    uncertified_text,
)
from solvers.estimators.parameters import Samples
from solvers.estimators.sample_weights import checked_sample_weight
from solvers.kernels.functions import RBF, Kernel, for_samples, kernel_block, variance_of
from solvers.linear.basis_training import Basis, train_on_basis
from solvers.linear.cutting_plane import HingeProblem, Limits, Outcome, train
from solvers.linear.features import LinearFeatures
from solvers.multiclass import (
    groups_of,
    label_start_of,
    random_seed,
    require_labels_of_one_type,
    sort_by_class,
    strategy_of,
    subproblem_seeds,
    votes,
    without,
)

PREDICTED_VALUES = 1 << 20
"""Largest number of kernel values that a prediction computes at a time (8 MB)."""


class _Subproblem(NamedTuple):
    """Samples of a binary subproblem, in the order of the rows of X."""

    rows: np.ndarray | slice  # rows of X; all of them by a slice, which copies nothing
    labels: np.ndarray  # (n,): −1.0 or 1.0
    weights: np.ndarray  # (n,): weights of the samples, positive


class _Trained(NamedTuple):
    """Result of a subproblem."""

    outcome: Outcome
    coefficients: np.ndarray  # weights of the features, or coefficients of the basis vectors
    constant: float  # constant of the decisions
    gap: float  # certified gap over all w
    vectors: np.ndarray | sparse.csr_matrix | None = None  # prepared basis vectors
    n_distinct: int = 0  # number of distinct samples, if they are the basis


class PerfSVC(ClassifierMixin, BaseEstimator):
    """Support vector machine by one-slack cutting planes: SVMperf, and CPSP for the Gaussian kernel.

    It minimises F1(w) = ½ ‖w‖² + C Σ s_i max(0, 1 − y_i w·φ(x_i)) for weights s_i of the samples. The linear
    kernel has a weight for each feature, and the Gaussian kernel one for each of `n_basis` basis vectors. A
    round takes two products with all samples. It adds the mean loss of a subset of the samples as a cut, and
    solves a quadratic program over the cuts.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the slack of a sample.
    kernel : {"linear", "rbf"}, default="linear"
        Kernel function: x·z, or exp(−γ ‖x − z‖²).
    gamma : {"scale", "auto"} or float, default="scale"
        Width γ of the Gaussian kernel, as in `sklearn.svm.SVC`.
    n_basis : int, default=1000
        Number of basis vectors of each subproblem with the Gaussian kernel. If it is at least the number of
        distinct samples, these are the basis, and `stopping_` says so. Vectors that depend linearly on the
        others are left out.
    basis : {"preimage", "random"}, default="preimage"
        "preimage": each new cut adds the vector that reduces the error of its projection, which a fixed-point
        iteration finds. "random": basis vectors are random samples.
    tol : float, default=1e-3
        Largest difference of F1 and its lower bound, as a share of C Σ s_i: the tolerance ε of Joachims
        (2006). With the Gaussian kernel the bound is that over the basis.
    bias : bool, default=False
        Whether to add a constant feature of 1, whose weight is penalised. Without it decisions have no
        constant.
    line_search : bool, default=True
        Whether to search the best point between solutions of the quadratic program, which saves rounds.
    multiclass : {"pairwise", "one_vs_rest"}, default="pairwise"
        One subproblem for every pair of classes, or for every class against all others.
    class_weight : dict, "balanced" or None, default=None
        Class t has the penalty C · class_weight[t], multiplied by `sample_weight` if given. "balanced" is
        n_samples / (n_classes · n_t), as in `sklearn.svm.SVC`.
    max_iter : int, default=-1
        Limit of the rounds of a whole `fit`; −1 for no limit.
    max_seconds : float or None, default=None
        Limit of the wall time of `fit`, in seconds; None for no limit.
    random_state : int, RandomState or None, default=None
        Source of the random basis, or of the starts of the pre-images.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, ascending.
    n_features_in_ : int
        Number of features of the training samples.
    coef_ : ndarray of shape (n_subproblems, n_features)
        Weights of the features. The Gaussian kernel has none.
    intercept_ : ndarray of shape (n_subproblems,)
        Constants of the decisions; 0 without `bias`.
    basis_vectors_ : list of {ndarray, CSR} of shape (k, n_features)
        Basis vectors of each subproblem. The linear kernel has none.
    basis_coef_ : list of ndarray of shape (k,)
        Coefficients of their kernel functions.
    n_support_ : ndarray of shape (n_subproblems,)
        Number of basis vectors of each subproblem. The linear kernel has none.
    n_iter_ : ndarray of shape (n_subproblems,)
        Rounds of each subproblem.
    objective_ : float
        F1 at the solution, summed over the subproblems.
    gap_, duality_gap_ : float
        Certified bound on (F1(w) − F1*)/F1(w), with an allowance for rounding errors: the largest of the
        subproblems. F1* is the minimum over all w, also with the Gaussian kernel. There its computation takes
        kernel values between all samples with a positive weight in the dual problem. It is NaN where these
        are more than the training took.
    gap_basis_ : float
        The same for the minimum over the span of the basis; `gap_` for the linear kernel.
    converged_ : bool
        Whether F1(w) is within `tol` · C Σ s_i of the minimum over the span of the basis, in all subproblems.
    fit_status_ : int
        0: converged; 1: `max_iter`; 2: `max_seconds`; 4: rounding or a singular quadratic program ended the
        progress. The most severe of the subproblems.
    stopping_ : str
        `fit_status_` in words, with the gap where it is not certified.
    class_weight_ : ndarray of shape (n_classes,)
        Factor of C for each class, in the order of `classes_`.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample, a label or a weight is not valid.
    MemoryError
        By `fit`: the cuts, or the kernel values of the basis, would not fit into memory.

    References
    ----------
    T. Joachims (2006), Training linear SVMs in linear time, KDD: algorithm 1. T. Joachims and C.-N. Yu
    (2009), Sparse kernel SVMs via cutting-plane training, Machine Learning 76: CPSP and its pre-images. V.
    Franc and S. Sonnenburg (2009), Optimized cutting plane algorithm for large-scale risk minimization,
    Journal of Machine Learning Research 10: the line search.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from solvers import PerfSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PerfSVC(C=4.0, kernel="rbf", gamma=0.5, n_basis=20, random_state=0).fit(X, y)
    >>> model.predict(X[::50])
    array([0, 1, 2])
    """

    has_no_side_effects = True

    _parameter_constraints: ClassVar[dict] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions({"linear", "rbf"})],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "n_basis": [Interval(Integral, 1, None, closed="left")],
        "basis": [StrOptions({"preimage", "random"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "bias": ["boolean"],
        "line_search": ["boolean"],
        "multiclass": [StrOptions({"pairwise", "one_vs_rest"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1})],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        C=1.0,
        *,
        kernel="linear",
        gamma="scale",
        n_basis=1000,
        basis="preimage",
        tol=1e-3,
        bias=False,
        line_search=True,
        multiclass="pairwise",
        class_weight=None,
        max_iter=-1,
        max_seconds=None,
        random_state=None,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.n_basis = n_basis
        self.basis = basis
        self.tol = tol
        self.bias = bias
        self.line_search = line_search
        self.multiclass = multiclass
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.random_state = random_state

    def fit(self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on samples X with labels y.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, nonnegative. Sample i has the penalty C · sample_weight[i].

        Returns
        -------
        self
            The fitted estimator.
        """
        started = clock()
        model = object.__new__(type(self))  # a fit that fails leaves the estimator unchanged
        model.__dict__.update(self.__dict__)
        model._validate_params()
        model._fit(X, y, sample_weight, started)
        if not model.converged_:
            warnings.warn(
                f"PerfSVC stopped before its tolerance was met: {ADVICE[model.fit_status_]} "
                f"(stopping_: {model.stopping_})",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.__dict__ = model.__dict__
        return self

    def _fit(self, X, y, sample_weight, started):
        """Train all subproblems, and set the fitted attributes.

        Parameters
        ----------
        X : {array-like, CSR}
            Training samples as the user passed them.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the samples; None means 1.
        started : float
            Time on `solvers.common.clock.clock` from which `max_seconds` counts.
        """
        require_labels_of_one_type(y)
        X, y = checked_table(self, X, False, y=y)
        self.classes_, rows, class_start = sort_by_class(y)
        self._is_pairwise = self.multiclass == "pairwise"
        self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        weights = checked_sample_weight(sample_weight, y.size)
        weights = weights * self.class_weight_[np.searchsorted(self.classes_, y)]
        if not (np.isfinite(weights).all() and (weights >= 0.0).all()):
            raise ValueError(
                "class_weight: expected numbers of at least 0 whose products with sample_weight are finite, "
                f"found {self.class_weight_.tolist()}. Correct the weights"
            )
        rows, class_start = without(rows, class_start, weights == 0.0, self.classes_)
        with np.errstate(over="ignore"):
            total = weights.sum()
            penalty = float(self.C) * total
        if not np.finfo(np.float64).tiny <= penalty < np.inf:
            raise ValueError(
                f"C={self.C:g} times the sum of the weights, {total:g}, exceeds the range of float64. "
                "Change C or the weights"
            )
        kernel, prepared = self._prepared(X, weights > 0.0)

        strategy = strategy_of(self.multiclass, self.classes_.size)
        groups = groups_of(self.classes_.size, strategy)
        seeds = subproblem_seeds(random_seed(self.random_state), len(groups))
        budget = Budget(self.max_iter, self.max_seconds, len(groups), started)
        trained = []
        for group, seed in zip(groups, seeds, strict=True):
            subproblem = _subproblem(rows, class_start, group, strategy, weights, y.size)
            limits = Limits(float(self.tol), *budget.share())
            trained.append(self._train(prepared, kernel, subproblem, limits, int(seed)))
            budget.subtract(trained[-1].outcome.n_iter)
        self._publish(kernel, trained)

    def _prepared(self, X, used):
        """Return the kernel with its numbers, and the samples that it is evaluated on.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Validated samples.
        used : bool ndarray of shape (n_samples,)
            Samples that have weight.

        Returns
        -------
        kernel : Kernel or None
            Gaussian kernel; None for the linear kernel.
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Prepared samples.
        """
        if self.kernel == "linear":
            return None, X
        if self.gamma == "auto":
            gamma = 1.0 / X.shape[1]
        elif self.gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                variance = variance_of(X)
                gamma = 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
            if not (0.0 < gamma < np.inf and np.isfinite(variance)):
                raise ValueError(
                    f"gamma='scale': expected samples with a finite variance, found {variance:g}. "
                    "Scale the samples, or set gamma to a number"
                )
        else:
            gamma = float(self.gamma)
        return for_samples(Kernel(RBF, gamma), X, used)

    def _train(self, X, kernel, subproblem, limits, seed):
        """Train one subproblem.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Prepared samples of all classes.
        kernel : Kernel or None
            Gaussian kernel; None for the linear kernel.
        subproblem : _Subproblem
            Samples to separate.
        limits : Limits
            Tolerance and budget.
        seed : int
            Seed of the draws.

        Returns
        -------
        _Trained
            Result.
        """
        X, total = X[subproblem.rows], subproblem.weights.sum()
        shares, C = subproblem.weights / total, float(self.C) * total
        if kernel is not None:
            trained = train_on_basis(
                (X, kernel),
                (subproblem.labels, shares, C),
                Basis(int(self.n_basis), self.basis == "preimage", bool(self.bias)),
                bool(self.line_search),
                limits,
                np.random.default_rng(seed),
            )
            outcome, vectors, coefficients, constant, gap, n_distinct = trained
            return _Trained(outcome, coefficients, constant, gap, vectors, n_distinct)
        features = LinearFeatures(X, self.bias)
        outcome = train(HingeProblem(features, subproblem.labels, shares, C), limits, bool(self.line_search))
        w, constant = (outcome.w[:-1], outcome.w[-1]) if self.bias else (outcome.w, 0.0)
        return _Trained(outcome, w, float(constant), outcome.gap)

    def _publish(self, kernel, trained):
        """Set the fitted attributes.

        Parameters
        ----------
        kernel : Kernel or None
            Gaussian kernel; None for the linear kernel.
        trained : list of _Trained
            Results of the subproblems.
        """
        self._kernel = kernel
        self.intercept_ = np.array([each.constant for each in trained])
        if kernel is None:
            self.coef_ = np.array([each.coefficients for each in trained])
        else:
            shift = 0.0 if kernel.center is None else kernel.center
            self.basis_vectors_ = [
                each.vectors + shift if np.any(shift) else each.vectors for each in trained
            ]
            self.basis_coef_ = [each.coefficients for each in trained]
            self.n_support_ = np.array([each.coefficients.size for each in trained], dtype=np.int32)
        outcomes = [each.outcome for each in trained]
        gaps = np.array([outcome.gap for outcome in outcomes])
        converged = np.array([outcome.status == 0 for outcome in outcomes])
        self.n_iter_ = np.array([outcome.n_iter for outcome in outcomes], dtype=np.int64)
        self.objective_ = float(sum(outcome.primal for outcome in outcomes))
        self.gap_ = float(np.max([each.gap for each in trained]))
        self.duality_gap_ = self.gap_
        self.gap_basis_ = float(gaps.max())
        self.converged_ = bool(converged.all())
        statuses = [outcome.status for outcome in outcomes]
        self.fit_status_ = most_severe(
            [fit_status_of(status, ok, False) for status, ok in zip(statuses, converged, strict=True)]
        )
        self.stopping_ = stopping_of(
            converged,
            gaps,
            lambda k: self._text_of(trained[k], converged[k]),
        )

    def _text_of(self, trained, converged):
        """Return the text for `stopping_` of a subproblem.

        Parameters
        ----------
        trained : _Trained
            Result of the subproblem.
        converged : bool
            Whether the tolerance is certified.

        Returns
        -------
        str
            Certified bound or the reason why training ended, and whether all distinct samples are the basis.
        """
        outcome = trained.outcome
        text = f"certified: F1 within {self.tol:g} of C times the sum of the weights"
        if not converged:
            text = uncertified_text(STOPPING_TEXTS[outcome.status], outcome.gap)
        if 0 < trained.n_distinct < self.n_basis:
            text += f"; the basis is the {trained.n_distinct:,} distinct samples, n_basis={self.n_basis}"
        return text

    def decision_function(self, X: Samples) -> np.ndarray:
        """Evaluate the decisions of the subproblems.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive for `classes_[1]`. Pairwise: votes, with ties broken by the sum of
            decisions. One against the rest: the decision of each class.
        """
        check_is_fitted(self)
        X = checked_table(self, X, False, reset=False)
        if self._kernel is None:
            decisions = np.asarray(X @ self.coef_.T) + self.intercept_
        else:
            X = self._kernel.prepare(X)
            decisions = np.column_stack([self._basis_decisions(X, k) for k in range(self.intercept_.size)])
        n_classes = self.classes_.size
        if n_classes == 2:
            return decisions[:, 0]
        return votes(decisions, n_classes) if self._is_pairwise else decisions

    def _basis_decisions(self, X, k):
        """Evaluate the decisions of a subproblem with the Gaussian kernel.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (m, n_features)
            Prepared samples.
        k : int
            Index of the subproblem.

        Returns
        -------
        ndarray of shape (m,)
            Decisions.
        """
        Z, coefficients = self._kernel.prepare(self.basis_vectors_[k]), self.basis_coef_[k]
        decisions = np.full(X.shape[0], self.intercept_[k])
        step = max(1, PREDICTED_VALUES // max(1, coefficients.size))
        for start in range(0, X.shape[0], step) if coefficients.size else ():
            block = slice(start, start + step)
            decisions[block] += kernel_block(X[block], Z, self._kernel) @ coefficients
        return decisions

    def predict(self, X: Samples) -> np.ndarray:
        """Predict the label of every sample.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from `classes_`.
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _subproblem(rows, class_start, group, strategy, weights, n):
    """Return the samples of a subproblem in the order of the rows of X.

    Parameters
    ----------
    rows : int32 ndarray
        Rows of X with positive weights, class by class.
    class_start : int ndarray of shape (n_classes + 1,)
        Boundaries of the classes among `rows`.
    group : int ndarray
        Classes of the subproblem.
    strategy : {"pairwise", "one_vs_rest"}
        Strategy for several classes.
    weights : ndarray of shape (n,)
        Weight of each row of X.
    n : int
        Number of rows of X.

    Returns
    -------
    _Subproblem
        Rows, labels and weights. The first class has the label 1, but the second one of two classes.
    """
    members = np.concatenate([rows[class_start[t] : class_start[t + 1]] for t in group])
    n_first = label_start_of(class_start, group, strategy)[1]
    first = -1.0 if class_start.size == 3 else 1.0
    labels = np.zeros(n)
    labels[members[:n_first]], labels[members[n_first:]] = first, -first
    if members.size == n:
        return _Subproblem(slice(None), labels, weights)
    members = np.flatnonzero(labels)
    return _Subproblem(members, labels[members], weights[members])
