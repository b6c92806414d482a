import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import minmax_scale

from solvers import SMOSVC, NewtonSVC
from solvers.estimators.platt import couple_pairs, fit_sigmoid, machine_decisions


def scaled(load):
    X, y = load(return_X_y=True)
    return minmax_scale(X), y


def test_sigmoid_recovers_the_law_that_made_the_labels():
    rng = np.random.default_rng(0)
    decisions = rng.normal(size=200_000)
    positive = rng.random(decisions.size) < expit(-(-2.0 * decisions + 0.5))
    A, B = fit_sigmoid(decisions, positive)
    assert pytest.approx(-2.0, abs=0.03) == A
    assert pytest.approx(0.5, abs=0.03) == B


def test_sigmoid_is_stationary_for_the_regularised_likelihood():
    rng = np.random.default_rng(1)
    decisions = rng.normal(size=60)
    positive = decisions + rng.normal(size=60) > 0
    A, B = fit_sigmoid(decisions, positive)
    target = np.where(positive, (positive.sum() + 1) / (positive.sum() + 2), 1 / ((~positive).sum() + 2))
    residual = target - expit(-(A * decisions + B))
    assert abs(residual.sum()) < 1e-4
    assert abs(residual @ decisions) < 1e-4


def test_separable_decisions_give_finite_slopes():
    A, B = fit_sigmoid(np.array([-1e4, -1.0, 1.0, 1e4]), np.array([False, False, True, True]))
    assert np.isfinite([A, B]).all()
    assert A < 0


def test_coupling_recovers_consistent_probabilities():
    p = np.array([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]])
    pairs = np.column_stack([p[:, i] / (p[:, i] + p[:, j]) for i, j in ((0, 1), (0, 2), (1, 2))])
    np.testing.assert_allclose(couple_pairs(pairs, 3), p, atol=1e-12)


def test_machine_decisions_are_positive_for_the_first_class():
    X, y = scaled(load_iris)
    model = NewtonSVC(gamma=1.0).fit(X, y)
    decisions = machine_decisions(model, X)
    assert decisions.shape == (150, 3)
    assert np.mean(decisions[y == 0, 0] > 0) > 0.9
    assert np.mean(decisions[y == 2, 2] < 0) > 0.9


@pytest.mark.parametrize(
    "model",
    [
        SMOSVC(C=4.0, gamma=0.1, probability=True),
        SMOSVC(C=4.0, gamma=0.1, loss="l2", probability=True),
        NewtonSVC(C=4.0, gamma=0.1, probability=True),
        NewtonSVC(C=4.0, gamma=0.1, multiclass="all_at_once", probability=True),
    ],
    ids=["smo_l1", "smo_l2", "newton", "newton_all_at_once"],
)
@pytest.mark.parametrize("load", [load_breast_cancer, load_digits])
def test_probabilities_are_calibrated_on_new_samples(model, load):
    X, y = scaled(load)
    X, y = X[:900], y[:900]
    train, test = np.arange(0, y.size, 2), np.arange(1, y.size, 2)
    probabilities = model.fit(X[train], y[train]).predict_proba(X[test])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert probabilities.min() >= 0.0
    prior = np.bincount(y[train]) / train.size
    floor = log_loss(y[test], np.tile(prior, (test.size, 1)))
    assert log_loss(y[test], probabilities) < 0.3 * floor
    if prior.size == 2:
        confidence = probabilities.max(axis=1).mean()
        assert abs(confidence - np.mean(probabilities.argmax(axis=1) == y[test])) < 0.02


def test_precomputed_kernel_is_cut_for_the_inner_folds():
    X, y = scaled(load_iris)
    K = rbf_kernel(X, gamma=1.0)
    from_gram = NewtonSVC(kernel="precomputed", probability=True, tol=1e-8).fit(K, y)
    from_features = NewtonSVC(gamma=1.0, probability=True, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(from_gram.predict_proba(K), from_features.predict_proba(X), atol=1e-5)


def test_weightless_samples_do_not_count():
    X, y = scaled(load_iris)
    kept = np.arange(0, 150, 2)
    weights = np.zeros(150)
    weights[kept] = 1.0
    masked = NewtonSVC(gamma=1.0, probability=True, tol=1e-9).fit(X, y, weights)
    alone = NewtonSVC(gamma=1.0, probability=True, tol=1e-9).fit(X[kept], y[kept])
    np.testing.assert_allclose(masked.predict_proba(X), alone.predict_proba(X), atol=1e-6)


def test_without_probability_there_is_no_predict_proba():
    model = NewtonSVC(gamma=1.0).fit(*scaled(load_iris))
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError):
        model.predict_proba(load_iris().data)


def test_a_class_of_one_sample_is_refused():
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match="at least 2 of every class"):
        NewtonSVC(gamma=1.0, probability=True).fit(X, [0, 0, 0, 0, 0, 1])
