"""The linear machine without errors on one class, H1-SVM."""

import warnings
from numbers import Integral, Real
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, Options
from sklearn.utils.validation import check_is_fitted

from solvers.common.blas import one_blas_thread
from solvers.common.input_checks import checked_table
from solvers.common.plain import plain
from solvers.common.resources import NO_LIMIT
from solvers.common.status import ADVICE, CONVERGED, STOPPING_TEXTS, uncertified_text
from solvers.estimators.parameters import Samples
from solvers.estimators.sample_weights import checked_sample_weight
from solvers.multiclass import require_labels_of_one_type, sort_by_class, without
from solvers.tree.h1 import Direction, Threshold, h1_direction, hull_of, threshold_of, unit
from solvers.tree.scoring import products_of, rounding_of


class _Plane(NamedTuple):
    """Solution for one hard class."""

    hard: int  # index of the hard class
    found: Direction  # direction from the mean of the soft class to the hull of the hard one
    threshold: Threshold  # threshold of the unit direction
    lowest: float  # smallest product of a hard sample with the unit direction
    n_hard_support: int  # hard samples with weight in the nearest point


class H1SVC(ClassifierMixin, BaseEstimator):
    """Linear machine for two classes that makes no training error on one of them, the hard class (H1-SVM).

    With labels y = ±1, it minimises ½ ‖w‖² − Σ y_j (w·x_j + b) over the soft class, subject to
    y_i (w·x_i + b) ≥ 1 on the hard class. Its direction is that from the mean of the soft class to the
    nearest point of the hull of the hard class. It has no C. If the mean is in the hull, the solution is 0.
    Then the hull is reduced until the mean is outside of it.

    Parameters
    ----------
    hard : label or None, default=None
        Label of the hard class. None takes the class for which more soft samples are on their side of the
        threshold.
    tol : float, default=1e-10
        Difference of ‖z‖² and the smallest (x_i − s)·z at which the training ends, as a share of the largest
        squared distance of a hard sample from the mean s of the soft class, and of ‖z‖². z is the nearest
        point less s.
    max_iter : int, default=-1
        Limit of the cycles of Wolfe's method for each hull; −1 for no limit.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Class labels, ascending.
    n_features_in_ : int
        Number of features of the training samples.
    hard_class_ : label
        Label of the hard class.
    coef_ : ndarray of shape (1, n_features)
        Weights w, which point to ``classes_[1]``.
    intercept_ : ndarray of shape (1,)
        Constant b of the problem. `decision_function` uses the threshold instead.
    threshold_ : float
        Value of σ w·x below which a sample has the label of the soft class, where σ is 1 if the hard class is
        ``classes_[1]``, else −1. It is halfway between the hard class and the soft sample next below it.
    mu_ : float
        Bound of the weights of the hard samples in the reduced hull; 1 for the whole hull.
    n_support_ : ndarray of shape (2,), int32
        Number of samples with weight: those of the nearest point, and all soft ones, in the order of
        `classes_`.
    n_iter_ : ndarray of shape (1,)
        Cycles of Wolfe's method over all hulls.
    objective_ : float
        m − ½ ‖w‖², where m is the weight of the soft class: the value of the primal and of the dual problem.
    gap_, duality_gap_ : float
        Certified bound on the relative error of ‖w‖², for all rounding errors.
    converged_ : bool
        Whether the training ended by `tol`.
    fit_status_ : int
        0: converged; 1: `max_iter`; 4: rounding ended the progress.
    stopping_ : str
        `fit_status_` in words, with the gap.

    Raises
    ------
    ValueError
        By `fit`: a parameter, a sample, a label or a weight is not valid, or there are more than two classes.
    MemoryError
        By `fit`: the vertices of the nearest point would not fit into memory.

    References
    ----------
    K. Zapién, J. Fehr and H. Burkhardt (2007), Fast support vector machine classification of very large
    datasets, technical report 2/07, University of Freiburg: problem 1. P. Wolfe (1976), Finding the nearest
    point in a polytope, Mathematical Programming 11.

    Examples
    --------
    >>> from solvers import H1SVC
    >>> model = H1SVC(hard=1).fit([[0, 0], [2, 0], [1, 1]], [1, 1, 0])
    >>> model.coef_.round(9), model.objective_, model.threshold_
    (array([[ 0., -1.]]), 0.5, -0.5)
    """

    has_no_side_effects = True

    _parameter_constraints: ClassVar[dict] = {
        "hard": "no_validation",
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1})],
    }

    def __init__(self, hard=None, *, tol=1e-10, max_iter=-1):
        self.hard = hard
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Samples, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on samples X with labels y.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, nonnegative. They count in the mean and in the sum of the soft class.
            Samples of weight 0 are left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        model = object.__new__(type(self))  # a fit that fails leaves the estimator unchanged
        model.__dict__.update(self.__dict__)
        model._validate_params()
        with one_blas_thread():
            model._fit(X, y, sample_weight)
        if not model.converged_:
            warnings.warn(
                f"H1SVC stopped before its tolerance was met: {ADVICE[model.fit_status_]} "
                f"(stopping_: {model.stopping_})",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.__dict__ = model.__dict__
        return self

    def _fit(self, X, y, sample_weight):
        """Train for one or both hard classes, and set the fitted attributes.

        Parameters
        ----------
        X : {array-like, CSR}
            Training samples as the user passed them.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the samples; None means 1.
        """
        require_labels_of_one_type(y)
        X, y = checked_table(self, X, False, y=y)
        self.classes_, rows, class_start = sort_by_class(y)
        if self.classes_.size > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: y has "
                f"{self.classes_.size} classes, expected 2. Use SVMTreeClassifier, or OneVsRestClassifier"
            )
        weights = checked_sample_weight(sample_weight, y.size)
        rows, _ = without(rows, class_start, weights == 0.0, self.classes_)
        rows = np.sort(rows)
        if rows.size < y.size:
            X, y, weights = X[rows], y[rows], weights[rows]
        planes = [self._plane(X, y, weights, hard) for hard in self._hard_classes()]
        best = max(planes, key=lambda plane: (plane.threshold.cut, plane.threshold.gap))
        self._publish(best, X, y, weights)

    def _hard_classes(self):
        """Return the indices of the classes to try as the hard one.

        Returns
        -------
        list of int
            One index, or both.
        """
        if self.hard is None:
            return [0, 1]
        found = np.flatnonzero(self.classes_ == self.hard)
        if found.size != 1:
            raise ValueError(
                f"hard={self.hard!r}: expected None or one of the labels {plain(self.classes_.tolist())}. "
                "Set hard to the label of a class"
            )
        return [int(found[0])]

    def _plane(self, X, y, weights, hard):
        """Train for a hard class.

        Parameters
        ----------
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Samples with weight.
        y : ndarray of shape (n_samples,)
            Labels.
        weights : ndarray of shape (n_samples,)
            Weights, positive.
        hard : int
            Index of the hard class.

        Returns
        -------
        _Plane
            Solution.
        """
        is_soft = y != self.classes_[hard]
        max_iter = NO_LIMIT if self.max_iter == -1 else int(self.max_iter)
        found = h1_direction(hull_of(X, is_soft, weights), max_iter, tol=float(self.tol))
        direction = unit(found.z)
        scores = products_of(X, np.zeros((1, X.shape[1])) if direction is None else direction[None, :])[:, 0]
        rounding, lowest = rounding_of(X), float(scores[~is_soft].min())
        threshold = threshold_of(scores, is_soft, weights, rounding)
        if not threshold.cut > 0.0:  # rounding must not move a hard sample beyond the threshold
            threshold = threshold._replace(value=lowest - 2.0 * rounding)
        return _Plane(hard, found, threshold, lowest, found.samples.size)

    def _publish(self, plane, X, y, weights):
        """Set the fitted attributes.

        Parameters
        ----------
        plane : _Plane
            Solution.
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Samples with weight.
        y : ndarray of shape (n_samples,)
            Labels.
        weights : ndarray of shape (n_samples,)
            Weights, positive.
        """
        hard, found = plane.hard, plane.found
        is_soft = y != self.classes_[hard]
        total, sigma = float(weights[is_soft].sum()), 1.0 if hard == 1 else -1.0
        length = total * float(np.linalg.norm(found.z))
        self.hard_class_ = self.classes_[hard]
        self.coef_ = sigma * total * found.z[None, :]
        self.intercept_ = np.array([sigma * (1.0 - length * plane.lowest)])
        self.threshold_ = length * plane.threshold.value
        self.mu_ = float(found.mu)
        counts = [plane.n_hard_support, int(np.count_nonzero(is_soft))]
        self.n_support_ = np.array(counts if hard == 0 else counts[::-1], dtype=np.int32)
        self.n_iter_ = np.array([found.n_iter], dtype=np.int64)
        self.objective_ = total - 0.5 * length**2
        self.gap_ = self.duality_gap_ = float(found.gap)
        self.fit_status_ = int(found.status)
        self.converged_ = self.fit_status_ == CONVERGED
        text = f"certified: relative error of the squared length at most {self.gap_:.2g}"
        if not self.converged_:
            text = uncertified_text(STOPPING_TEXTS[self.fit_status_], self.gap_)
        if not plane.threshold.cut > 0.0:
            text += "; no soft sample is beyond the hard class"
        self.stopping_ = text

    def decision_function(self, X: Samples) -> np.ndarray:
        """Evaluate w·x less the threshold.

        Parameters
        ----------
        X : {array-like, CSR} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Decisions, positive for ``classes_[1]``. A decision of 0 belongs to the hard class.
        """
        check_is_fitted(self)
        X = checked_table(self, X, False, reset=False)
        products = X @ self.coef_[0]
        sigma = 1.0 if self.hard_class_ == self.classes_[1] else -1.0
        decisions = np.asarray(products).ravel() - sigma * self.threshold_
        decisions[decisions == 0.0] = sigma * np.finfo(np.float64).tiny
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
        decisions = self.decision_function(X)
        return self.classes_[(decisions > 0.0).astype(np.intp)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags
