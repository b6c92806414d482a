"""Class probabilities by Platt's method: a sigmoid of the decision, fitted to decisions on samples held out.

Platt (1999) with the numerically safe Newton method of Lin, Lin & Weng (2007); the sigmoids of pair machines
are coupled by the second method of Wu, Lin & Weng (2004), as in LIBSVM.
"""

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from solvers.multiclass import pairs_of, pairwise_decisions

FOLDS = 5
MAX_NEWTON_STEPS = 100
SMALLEST_STEP = 1e-10
HESSIAN_RIDGE = 1e-12
GRADIENT_TOLERANCE = 1e-5
SUFFICIENT_DECREASE = 1e-4
# Pair probabilities stay this far from 0 and 1, so that the coupling has one solution.
SMALLEST_PROBABILITY = 1e-7


def fit_sigmoid(decisions, positive):
    """Fit ``P(positive | d) = 1 / (1 + exp(A d + B))`` by regularised maximum likelihood.

    Parameters
    ----------
    decisions : ndarray of shape (n,)
        Decisions on samples that the machine was not trained on.
    positive : bool ndarray of shape (n,)

    Returns
    -------
    A, B : float
    """
    n_positive = np.count_nonzero(positive)
    n_negative = positive.size - n_positive
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    design = np.column_stack((decisions, np.ones_like(decisions)))
    point = np.array([0.0, np.log((n_negative + 1.0) / (n_positive + 1.0))])
    value = _negative_log_likelihood(design @ point, target)
    for _ in range(MAX_NEWTON_STEPS):
        probability = expit(-design @ point)
        gradient = design.T @ (target - probability)
        if np.abs(gradient).max() < GRADIENT_TOLERANCE:
            break
        curvature = design.T @ (design * (probability * (1.0 - probability))[:, None])
        direction = -np.linalg.solve(curvature + HESSIAN_RIDGE * np.eye(2), gradient)
        step = 1.0
        while step >= SMALLEST_STEP:
            trial = point + step * direction
            trial_value = _negative_log_likelihood(design @ trial, target)
            if trial_value < value + SUFFICIENT_DECREASE * step * (gradient @ direction):
                point, value = trial, trial_value
                break
            step *= 0.5
        else:
            break
    return float(point[0]), float(point[1])


def _negative_log_likelihood(z, target):
    """``-Σ t log p + (1 - t) log(1 - p)`` with ``p = 1 / (1 + e^z)``."""
    return float(np.sum(np.logaddexp(0.0, -z) + target * z))


def couple_pairs(probabilities, n_classes):
    """Combine pair probabilities into class probabilities (Wu, Lin & Weng 2004, eq. 21).

    Parameters
    ----------
    probabilities : ndarray of shape (m, n_pairs)
        ``P(first class | first or second)`` in the order of `multiclass.pairs_of`.
    n_classes : int

    Returns
    -------
    ndarray of shape (m, n_classes)
    """
    m = probabilities.shape[0]
    r = np.zeros((m, n_classes, n_classes))
    first, second = np.array(pairs_of(n_classes)).T
    clipped = np.clip(probabilities, SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)
    r[:, first, second] = clipped
    r[:, second, first] = 1.0 - clipped
    system = np.zeros((m, n_classes + 1, n_classes + 1))
    system[:, :n_classes, :n_classes] = -r * r.transpose(0, 2, 1)
    diagonal = np.arange(n_classes)
    system[:, diagonal, diagonal] = (r**2).sum(axis=1)
    system[:, :n_classes, n_classes] = 1.0
    system[:, n_classes, :n_classes] = 1.0
    right = np.zeros((m, n_classes + 1, 1))
    right[:, n_classes] = 1.0
    coupled = np.maximum(np.linalg.solve(system, right)[:, :n_classes, 0], 0.0)
    return coupled / coupled.sum(axis=1, keepdims=True)


def _gives_probabilities(estimator):
    if not getattr(estimator, "probability", False):
        raise AttributeError(
            f"predict_proba needs {type(estimator).__name__}(probability=True); set it before fit"
        )
    return True


class PlattMixin:
    """Give a `KernelSVC` the parameter `probability`: `fit` then ends with `_fit_probability`.

    Attributes
    ----------
    sigmoids_ : ndarray of shape (n_machines, 2), or (n_classes, 2) for all at once
        A and B of every machine, whose decision is positive for its first class; for its own class for all at
        once.
    """

    classes_: np.ndarray
    _accepted_types: Any
    intercept_: np.ndarray
    kernel: Any
    multiclass: str
    _gamma: float

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
        check_is_fitted(self, "sigmoids_")
        X = validate_data(self, X, accept_sparse="csr", dtype=self._accepted_types(), order="C", reset=False)
        n_classes = self.classes_.size
        z = machine_decisions(self, X) * self.sigmoids_[:, 0] + self.sigmoids_[:, 1]
        probabilities = expit(-z)
        if n_classes == 2:
            return np.column_stack((probabilities[:, 0], 1.0 - probabilities[:, 0]))
        if self.multiclass == "pairwise":
            return couple_pairs(probabilities, n_classes)
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def _fit_probability(self, X, y, sample_weight=None):
        """Fit the sigmoids to the decisions of machines trained without the sample at hand."""
        decisions, known = self._held_out_decisions(X, y, sample_weight)
        codes = np.searchsorted(self.classes_, y)
        n_classes = self.classes_.size
        if n_classes > 2 and self.multiclass == "all_at_once":
            self.sigmoids_ = np.array(
                [fit_sigmoid(decisions[known, t], codes[known] == t) for t in range(n_classes)]
            )
            return
        sigmoids = []
        for k, (i, j) in enumerate(pairs_of(n_classes)):
            member = known & ((codes == i) | (codes == j))
            sigmoids.append(fit_sigmoid(decisions[member, k], codes[member] == i))
        self.sigmoids_ = np.array(sigmoids)

    def _held_out_decisions(self, X, y, sample_weight):
        weights = None if sample_weight is None else np.broadcast_to(sample_weight, y.shape)
        known = np.ones(y.size, dtype=bool) if weights is None else weights > 0
        kept = np.flatnonzero(known)
        smallest = int(np.unique_counts(y[kept]).counts.min())
        if smallest < 2:
            raise ValueError(
                "probability=True holds samples out, which needs at least 2 of every class; "
                "one class has a single sample: add samples of it, or set probability=False"
            )
        model = clone(self).set_params(probability=False)
        if model.kernel not in ("linear", "precomputed") and not callable(model.kernel):
            model.set_params(gamma=self._gamma)
        decisions = np.zeros((y.size, self.intercept_.size))
        folds = StratifiedKFold(min(FOLDS, smallest), shuffle=True, random_state=0)
        for train, test in folds.split(kept, y[kept]):
            train, test = kept[train], kept[test]
            pairwise = self.kernel == "precomputed"
            model.fit(
                X[np.ix_(train, train)] if pairwise else X[train],
                y[train],
                None if weights is None else weights[train],
            )
            decisions[test] = machine_decisions(model, X[np.ix_(test, train)] if pairwise else X[test])
        return decisions, known


def machine_decisions(estimator, X):
    """Evaluate every machine of a fitted `KernelSVC`.

    Returns
    -------
    ndarray of shape (m, n_pairs), positive for the first class of a pair, or (m, n_classes) for all at once
    """
    n_classes = estimator.classes_.size
    if n_classes == 2:
        return -estimator.decision_function(X)[:, None]
    if estimator.multiclass == "all_at_once":
        return estimator.decision_function(X)
    class_start = np.concatenate(([0], np.cumsum(estimator.n_support_)))
    K = estimator._kernel_to_support(X)
    return pairwise_decisions(K, estimator.dual_coef_, estimator.intercept_, class_start)
