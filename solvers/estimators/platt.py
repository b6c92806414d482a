"""Platt's sigmoid of decisions, fitted by Newton's method with a line search (Lin, Lin and Weng 2007).

The probability of the positive class is 1/(1 + exp(A f + B)). A and B minimise the cross entropy to targets
that are (N₊ + 1)/(N₊ + 2) for the N₊ positive samples, and 1/(N₋ + 2) for the N₋ negative ones.
"""

import numpy as np
from scipy.special import expit

MAX_STEPS, MAX_HALVINGS = 100, 50
"""Largest number of Newton steps, and of halvings of a step."""
SMALLEST_GRADIENT = 1e-12
"""Largest derivative by A and B at the end, as a share of the sum of the weights, for f with |f| ≤ 1."""
SUFFICIENT_DECREASE = 1e-4
"""Share of the predicted decrease that a step reaches."""
RIDGE = 1e-12
"""Addition to the diagonal of the matrix of second derivatives, as a share of its trace."""


def fit_sigmoid(decisions, is_positive, sample_weight=None):
    """Fit the parameters of the sigmoid.

    Parameters
    ----------
    decisions : ndarray of shape (n,)
        Decisions f of the samples, finite.
    is_positive : bool ndarray of shape (n,)
        Whether a sample is of the positive class.
    sample_weight : ndarray of shape (n,), optional
        Weights of the samples, at least 0; by default 1.

    Returns
    -------
    A, B : float
        Parameters. A is negative if larger decisions mean larger probabilities.

    Raises
    ------
    ValueError
        There is no positive or no negative sample.
    """
    f = np.asarray(decisions, dtype=np.float64)
    weights = np.ones(f.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    positive, negative = float(weights[is_positive].sum()), float(weights[~is_positive].sum())
    if not (positive > 0.0 and negative > 0.0):
        raise ValueError(
            f"calibration: expected samples of both classes, found {positive:g} positive and {negative:g} "
            "negative ones. Pass samples of both"
        )
    targets = np.where(is_positive, (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0))
    scale = float(np.abs(f).max()) or 1.0  # decisions of any unit have the same steps
    f = f / scale
    A, B = 0.0, float(np.log((negative + 1.0) / (positive + 1.0)))
    value = _cross_entropy(A * f + B, targets, weights)
    for _ in range(MAX_STEPS):
        p = expit(-(A * f + B))
        first = weights * (targets - p)
        g = np.array([f @ first, first.sum()])
        if np.abs(g).max() <= SMALLEST_GRADIENT * weights.sum():
            break
        second = weights * p * (1.0 - p)
        H = np.array([[f @ (second * f), f @ second], [f @ second, second.sum()]])
        H[np.diag_indices(2)] += RIDGE * max(np.trace(H), RIDGE)
        direction = -np.linalg.solve(H, g)
        step = 1.0
        for _ in range(MAX_HALVINGS):
            new = A + step * direction[0], B + step * direction[1]
            new_value = _cross_entropy(new[0] * f + new[1], targets, weights)
            if new_value < value + SUFFICIENT_DECREASE * step * float(g @ direction):
                break
            step *= 0.5
        else:
            break
        (A, B), value = new, new_value
    return A / scale, B


def _cross_entropy(exponents, targets, weights):
    """Return the cross entropy of the targets and the probabilities 1/(1 + exp(z)).

    Parameters
    ----------
    exponents : ndarray of shape (n,)
        Exponents z = A f + B.
    targets : ndarray of shape (n,)
        Targets of the probabilities.
    weights : ndarray of shape (n,)
        Weights of the samples.

    Returns
    -------
    float
        Weighted sum.
    """
    # −t log p − (1 − t) log(1 − p) = t z + log(1 + exp(−z)), without overflow
    return float(weights @ (targets * exponents + np.logaddexp(0.0, -exponents)))


class SigmoidCalibration:
    """Probabilities of the classes from the decisions of a fitted estimator, by one sigmoid a class.

    Parameters
    ----------
    model : estimator
        Fitted classifier with `decision_function`: one column, or one for each class.
    X : {array-like, CSR}
        Samples that calibrate.
    y : array-like of shape (n,)
        Their labels, of all classes of the model.
    """

    def __init__(self, model, X, y):
        self._model, y = model, np.asarray(y)
        missing = np.setdiff1d(model.classes_, y)
        if missing.size or not np.isin(y, model.classes_).all():
            raise ValueError(
                f"y: expected labels of the classes {model.classes_.tolist()}, each at least once, found "
                f"{np.unique(y).tolist()}. Calibrate with samples of all classes and of no other"
            )
        scores = self._scores(X)
        classes = model.classes_[1:] if scores.shape[1] == 1 else model.classes_
        columns = zip(scores.T, classes, strict=True)
        self.parameters = np.array([fit_sigmoid(column, y == label) for column, label in columns])

    def _scores(self, X):
        """Return the decisions as a matrix.

        Parameters
        ----------
        X : {array-like, CSR}
            Samples.

        Returns
        -------
        ndarray of shape (n, 1) or (n, n_classes)
            Decisions.
        """
        scores = self._model.decision_function(X)
        return scores[:, None] if scores.ndim == 1 else scores

    def predict_proba(self, X):
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, CSR}
            Samples.

        Returns
        -------
        ndarray of shape (n, n_classes)
            Probabilities, which sum to 1. They are equal where all sigmoids are 0.
        """
        p = expit(-(self._scores(X) * self.parameters[:, 0] + self.parameters[:, 1]))
        if p.shape[1] == 1:
            return np.hstack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), 1.0 / p.shape[1])
