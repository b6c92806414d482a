"""Class probabilities by Platt's method: a sigmoid of the decision, fitted to decisions on samples held out.

Platt (1999) with the numerically safe Newton method of Lin, Lin & Weng (2007); the sigmoids of pair machines
are coupled by the second method of Wu, Lin & Weng (2004), as in LIBSVM.
"""

import numpy as np
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold

from solvers.common.seeds import machine_seeds
from solvers.multiclass import pairs_of

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


def class_probabilities(model, decisions):
    """Turn the decisions of a fitted `KernelSVC` on a block of samples into class probabilities."""
    n_classes = model.classes_.size
    z = for_first_class(model, decisions) * model.sigmoids_[:, 0] + model.sigmoids_[:, 1]
    probabilities = expit(-z)
    if n_classes == 2:
        return np.column_stack((probabilities[:, 0], 1.0 - probabilities[:, 0]))
    if model.multiclass == "pairwise":
        return couple_pairs(probabilities, n_classes)
    return probabilities / probabilities.sum(axis=1, keepdims=True)


def fit_sigmoids(model, X, y, samples, folds, seed, budget):
    """Fit the sigmoids of a `KernelSVC` to decisions of machines trained without the sample at hand.

    Returns
    -------
    sigmoids : ndarray of shape (n_machines, 2), or (n_classes, 2) for all at once
    statuses : list of int
        Of the machines of all folds.
    """
    codes = np.searchsorted(model.classes_, y)
    decisions, statuses = _held_out_decisions(model, X, codes, samples, folds, seed, budget)
    known = np.zeros(y.size, dtype=bool)
    known[samples.rows] = True
    n_classes = model.classes_.size
    if n_classes > 2 and model.multiclass == "all_at_once":
        sigmoids = [fit_sigmoid(decisions[known, t], codes[known] == t) for t in range(n_classes)]
    else:
        sigmoids = []
        for i, j in pairs_of(n_classes):
            first, second = known & (codes == i), known & (codes == j)
            d = np.concatenate((decisions[first, j - 1], decisions[second, i]))
            sigmoids.append(fit_sigmoid(d, np.arange(d.size) < np.count_nonzero(first)))
    return np.array(sigmoids), statuses


def _held_out_decisions(model, X, codes, samples, folds, seed, budget):
    """Return for every sample the decisions that concern its class, by machines that do not know it.

    Returns
    -------
    decisions : ndarray of shape (n, n_classes - 1), or (n, n_classes) for all at once
        A sample of class t has the decision against class s in column s if s < t, else in column s - 1.
    statuses : list of int
    """
    n_classes = model.classes_.size
    at_once = n_classes > 2 and model.multiclass == "all_at_once"
    decisions = np.zeros((codes.size, n_classes if at_once else n_classes - 1))
    n_machines = len(model._groups())
    statuses = []
    for k, test in enumerate(folds):
        held_out = np.zeros(codes.size, dtype=bool)
        held_out[test] = True
        seeds = machine_seeds(seed, n_machines, k)
        trained, of_fold = model._train_without(X, samples, held_out, seeds, budget)
        statuses += of_fold
        for block in trained._blocks(test.size, X.shape[1]):
            part = test[block]
            values = machine_decisions(trained, X[part])
            if not at_once:
                values = decisions_of_own_class(values, codes[part], n_classes)
            decisions[part] = values
    return decisions, statuses


def folds_of(y, rows):
    """Split samples into the folds of the calibration; a class must have two samples.

    Parameters
    ----------
    y : ndarray of shape (n,)
    rows : ndarray
        The samples to split, those with weight.

    Returns
    -------
    list of ndarray
        Samples of each fold.
    """
    kept = np.sort(rows)
    smallest = int(np.unique_counts(y[kept]).counts.min())
    if smallest < 2:
        raise ValueError(
            "probability=True holds samples out, which needs at least 2 of every class; "
            "one class has a single sample: add samples of it, or set probability=False"
        )
    folds = StratifiedKFold(min(FOLDS, smallest), shuffle=True, random_state=0)
    return [kept[test] for _, test in folds.split(kept, y[kept])]


def decisions_of_own_class(decisions, codes, n_classes):
    """Pick the decisions of the machines that a sample's class is one of.

    Parameters
    ----------
    decisions : ndarray of shape (m, n_pairs)
    codes : ndarray of shape (m,)
        Class of every sample.

    Returns
    -------
    ndarray of shape (m, n_classes - 1)
        The one against class s in column s if s < t, else in column s - 1.
    """
    machine = np.zeros((n_classes, n_classes - 1), dtype=np.intp)
    for k, (i, j) in enumerate(pairs_of(n_classes)):
        machine[i, j - 1] = machine[j, i] = k
    return np.take_along_axis(decisions, machine[codes], axis=1)


def machine_decisions(model, X):
    """Evaluate every machine of a fitted `KernelSVC`.

    Returns
    -------
    ndarray of shape (m, n_pairs), positive for the first class of a pair, or (m, n_classes) for all at once
    """
    return for_first_class(model, np.concatenate(list(model._decision_blocks(X))))


def for_first_class(model, decisions):
    """Return decisions that are positive for the first class of a pair: of two classes only, they are not."""
    return -decisions if model.classes_.size == 2 else decisions
