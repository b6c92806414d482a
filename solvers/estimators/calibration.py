"""Class probabilities by scikit-learn's calibration of decisions (Platt 1999)."""

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import PredefinedSplit, StratifiedKFold

from solvers.multiclass import random_seed

FOLDS = 5
"""Largest number of folds of the calibration."""


def fit_calibrated(model, X, y, sample_weight):
    """Fit a calibrated classifier, which trains on all samples and once more for each fold.

    Parameters
    ----------
    model : KernelSVC
        Estimator; it receives the fitted attributes of the training on all samples.
    X : {array-like, CSR}
        Training samples as `fit` accepts them.
    y : ndarray of shape (n_samples,)
        Labels of at least two classes.
    sample_weight : ndarray of shape (n_samples,), or None
        Weight of each sample, finite.

    Returns
    -------
    CalibratedClassifierCV
        Fitted classifier.

    Raises
    ------
    ValueError
        A class has fewer than two samples with a positive weight.
    """
    kept = np.broadcast_to(True if sample_weight is None else sample_weight > 0.0, y.size)
    _, counts = np.unique(y[kept], return_counts=True)
    if counts.min() < 2:
        raise ValueError(
            "probability=True needs at least 2 of every class, because it holds samples out; "
            "one class has a single sample: add samples to it, or set probability=False"
        )
    n_folds = min(FOLDS, int(counts.min()))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_seed(model.random_state) % 2**32)
    if not kept.all():
        folds = folds_of_kept(folds, y, kept)
    limits = {}
    if model.max_iter != -1:
        limits["max_iter"] = max(1, model.max_iter // (n_folds + 1))
    if model.max_seconds is not None:
        limits["max_seconds"] = model.max_seconds / (n_folds + 1)
    plain = clone(model).set_params(probability=False, decision_function_shape="ovr", **limits)
    classes = np.unique(y)
    if has_weights := isinstance(model.class_weight, dict):
        y = codes_of(plain, model._weights_of_classes(classes, y), y, classes)
    calibrated = CalibratedClassifierCV(plain, method="sigmoid", cv=folds, ensemble=False)
    calibrated.fit(X, y, None if sample_weight is None else np.maximum(sample_weight, 0.0))
    trained = calibrated.calibrated_classifiers_[0].estimator
    parameters = trained.get_params(deep=False)
    vars(model).update({name: value for name, value in vars(trained).items() if name not in parameters})
    if has_weights:
        model.classes_ = classes
    return calibrated


def codes_of(estimator, weights, y, classes):
    """Return the index of the class of each sample, and make the indices the keys of `class_weight`.

    scikit-learn trains the folds of a calibration on these indices, among which a dict has no labels.

    Parameters
    ----------
    estimator : estimator
        Estimator to calibrate, whose `class_weight` is replaced.
    weights : ndarray of shape (n_classes,)
        Weight of each class.
    y : ndarray of shape (n_samples,)
        Label of each sample.
    classes : ndarray of shape (n_classes,)
        Distinct labels, ascending.

    Returns
    -------
    int64 ndarray of shape (n_samples,)
        Indices of the classes.
    """
    estimator.set_params(class_weight=dict(enumerate(weights.tolist())))
    return np.searchsorted(classes, y)


def folds_of_kept(folds, y, kept):
    """Return folds that are stratified for the kept samples. The first fold also has the other samples.

    Parameters
    ----------
    folds : StratifiedKFold
        Splitter of the kept samples.
    y : ndarray of shape (n_samples,)
        Class label of each sample.
    kept : bool ndarray of shape (n_samples,)
        Whether a sample has a positive weight.

    Returns
    -------
    PredefinedSplit
        Folds of all samples.
    """
    fold_of = np.zeros(y.size, dtype=int)
    rows = np.flatnonzero(kept)
    for k, (_, test) in enumerate(folds.split(rows, y[kept])):
        fold_of[rows[test]] = k
    return PredefinedSplit(fold_of)
