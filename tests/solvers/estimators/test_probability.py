"""Class probabilities are scikit-learn's calibration of the decisions."""

import pickle

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import minmax_scale

from solvers import MNSVC, SMOSVC, NewtonSVC
from tests.messages import raises


def scaled(load):
    X, y = load(return_X_y=True)
    return minmax_scale(X), y


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "model",
    [
        SMOSVC(C=4.0, gamma=0.1),
        NewtonSVC(C=4.0, gamma=0.1),
        NewtonSVC(C=4.0, gamma=0.1, multiclass="all_at_once"),
    ],
    ids=["smo_l1", "newton", "newton_all_at_once"],
)
@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
def test_probabilities_are_calibrated_on_new_samples(model, load):
    X, y = scaled(load)
    train, test = np.arange(0, 560, 2), np.arange(1, 560, 2)
    model.set_params(probability=True).fit(X[train], y[train])
    probabilities = model.predict_proba(X[test])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X[test])), probabilities)
    prior = np.bincount(y[train]) / train.size
    assert log_loss(y[test], probabilities) < 0.4 * log_loss(y[test], np.tile(prior, (test.size, 1)))
    if prior.size == 2:
        confidence = probabilities.max(axis=1).mean()
        assert abs(confidence - np.mean(probabilities.argmax(axis=1) == y[test])) < 0.03


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_they_are_those_of_the_calibration_by_hand(shape, full_size):
    X, y = scaled(load_digits)
    n_classes = 10 if full_size else 4
    X, y = X[y < n_classes][:200], y[y < n_classes][:200]
    plain = SMOSVC(C=4.0, gamma=0.1)
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    by_hand = CalibratedClassifierCV(plain, ensemble=False, cv=folds).fit(X, y)
    model = SMOSVC(C=4.0, gamma=0.1, probability=True, random_state=3, decision_function_shape=shape).fit(
        X, y
    )
    np.testing.assert_array_equal(model.predict_proba(X), by_hand.predict_proba(X))
    np.testing.assert_array_equal(model.dual_coef_, plain.fit(X, y).dual_coef_)
    assert model.decision_function(X).shape == (
        200,
        n_classes if shape == "ovr" else n_classes * (n_classes - 1) // 2,
    )
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(X), by_hand.predict_proba(X))


def test_precomputed_kernel_is_cut_for_the_inner_folds():
    X, y = scaled(load_iris)
    K = rbf_kernel(X, gamma=1.0)
    from_gram = NewtonSVC(kernel="precomputed", probability=True, tol=1e-8, random_state=0).fit(K, y)
    from_features = NewtonSVC(gamma=1.0, probability=True, tol=1e-8, random_state=0).fit(X, y)
    np.testing.assert_allclose(from_gram.predict_proba(K), from_features.predict_proba(X), atol=1e-5)


def test_samples_without_weight_do_not_count():
    X, y = scaled(load_iris)
    weights = np.ones(150)
    weights[::3], weights[1::3] = 0.0, -1.0
    model = SMOSVC(gamma=1.0, probability=True, random_state=0)
    probabilities = model.fit(X, np.where(weights > 0, y, 2), weights).predict_proba(X)
    assert not np.isin(model.support_, np.flatnonzero(weights <= 0)).any()
    assert log_loss(y, probabilities) < 0.4


@pytest.mark.parametrize("weights", [{"a": 1.0, "b": 5.0, "c": 0.5}, {"b": 5.0}])
def test_weights_of_classes_have_the_labels_as_keys(weights):
    X, y = scaled(load_iris)
    labels = np.array(["a", "b", "c"])[y]
    model = SMOSVC(gamma=1.0, probability=True, class_weight=weights, random_state=0).fit(X, labels)
    of_codes = {"abc".index(label): weight for label, weight in weights.items()}
    reference = SMOSVC(gamma=1.0, probability=True, class_weight=of_codes, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), reference.predict_proba(X))
    np.testing.assert_array_equal(model.class_weight_, reference.class_weight_)
    np.testing.assert_array_equal(model.predict(X), np.array(["a", "b", "c"])[reference.predict(X)])


def test_probability_is_there_if_asked_for_before_fit():
    X, y = scaled(load_iris)
    model = NewtonSVC(gamma=1.0).fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)
    with pytest.raises(ValueError, match="probability=False"):
        model.set_params(probability=True).predict_proba(X)
    assert model.fit(X, y).predict_proba(X).shape == (150, 3)
    model.set_params(probability=False).fit(X, y).set_params(probability=True)
    with pytest.raises(ValueError, match="probability=False"):
        model.predict_proba(X)


def test_a_class_of_one_sample_is_refused():
    X = np.arange(6.0)[:, None]
    with raises(ValueError, "at least", "2", "class"):
        NewtonSVC(gamma=1.0, probability=True).fit(X, [0, 0, 0, 0, 0, 1])


def test_the_same_random_state_gives_the_same_probabilities():
    X, y = scaled(load_iris)
    first, second = (MNSVC(gamma=1.0, probability=True, random_state=2**40).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def test_samples_without_weight_take_no_part_in_the_folds():
    X, y = load_iris(return_X_y=True)
    weights = np.where((y == 1) & (np.arange(y.size) > 52), 0.0, 1.0)  # three samples of class 1 are left
    for seed in range(4):
        model = SMOSVC(probability=True, random_state=seed).fit(X, y, weights)
        assert model.predict_proba(X).shape == (150, 3)
