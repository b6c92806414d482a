"""Weights of classes, of samples, and infinite penalties."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from solvers import AESVC, MNSVC, SMOSVC, NewtonSVC, SphereSVC
from tests.messages import raises

WEIGHTS = {0: 0.5, 1: 2.0, 2: 5.0}
ALL = [AESVC(), MNSVC(random_state=0), NewtonSVC(), SMOSVC(), SMOSVC(loss="l2")]


def fitted(model, class_weight, **params):
    return type(model)(**{**model.get_params(), "class_weight": class_weight, "gamma": 1.0, **params})


@pytest.mark.parametrize("model", ALL, ids=str)
def test_weights_of_classes_are_weights_of_their_samples(iris, model):
    X, y = iris
    of_samples = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    together = of_samples * np.array([0.5, 2.0, 5.0])[y]
    by_class = fitted(model, WEIGHTS).fit(X, y, of_samples)
    by_sample = fitted(model, None).fit(X, y, together)
    assert_array_equal(by_class.dual_coef_, by_sample.dual_coef_)
    assert_array_equal(by_class.class_weight_, [0.5, 2.0, 5.0])
    assert_array_equal(by_sample.class_weight_, 1.0)


def test_balanced_weights_are_those_of_svc(iris):
    X, y = iris[0][30:], iris[1][30:]
    ours, theirs = (cls(class_weight="balanced", gamma=1.0, tol=1e-6).fit(X, y) for cls in (SMOSVC, SVC))
    assert_array_equal(ours.class_weight_, theirs.class_weight_)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(
    "cache_size", [200, *(pytest.param(size, marks=pytest.mark.full) for size in (0.06, 1e-4))]
)
@pytest.mark.parametrize("multiclass", ["pairwise", "all_at_once"])
@pytest.mark.parametrize("model", [MNSVC(random_state=0), NewtonSVC()], ids=str)
def test_a_path_has_the_machines_of_its_fits(iris, model, multiclass, cache_size):
    X, y = iris
    Cs = [0.1, 4.0, 50.0]
    model = fitted(model, WEIGHTS, multiclass=multiclass, tol=1e-5, cache_size=cache_size)
    unweighted = fitted(model, None).fit_path(X, y, Cs)
    of_gram = fitted(model, WEIGHTS, kernel="precomputed")
    K = rbf_kernel(X, gamma=1.0)
    for path, samples in ((model.fit_path(X, y, Cs), X), (of_gram.fit_path(K, y, Cs), K)):
        labels = path.predict_path(samples)
        assert (np.abs(path.objective_ - unweighted.objective_) > 1e-4).all()
        for j, C in enumerate(Cs):
            cold = fitted(model, WEIGHTS, C=C).fit(X, y)
            assert path.objective_[j] == pytest.approx(cold.objective_, rel=1e-4)
            assert np.mean(labels[j] == cold.predict(X)) > 0.98


@pytest.mark.parametrize("C", [2.0**-10, 2.0**-5, 1.0])
def test_rounding_decides_no_bias_where_all_weights_are_at_bounds(C):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = SMOSVC(C=C, gamma=0.5, class_weight="balanced", tol=1e-6)
    cold = model.fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = clone(model).fit(X[order], y[order])
    assert_allclose(shuffled.intercept_, cold.intercept_, atol=1e-5)
    for Cs in ([C], [C / 8, C]):
        path = model.fit_path(X, y, Cs)
        assert_array_equal(path.predict_path(X)[-1], cold.predict(X))
    assert cold.score(X, y) > 0.99


def test_a_warm_start_goes_on_where_weights_change(iris):
    X, y = iris
    model = fitted(MNSVC(random_state=0), WEIGHTS, warm_start=True, tol=1e-5).fit(X, y)
    model.set_params(class_weight={0: 1.0, 1: 2.0, 2: 5.0}).fit(X, y)
    cold = fitted(model, model.class_weight, warm_start=False).fit(X, y)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-4)
    assert model.n_iter_.sum() < cold.n_iter_.sum()


def test_balls_have_no_weights_of_classes():
    assert "class_weight" not in SphereSVC().get_params()
    X, y = load_iris(return_X_y=True)
    with raises(ValueError, "same", "C"):
        SphereSVC().fit(X, y, sample_weight=1.0 + y)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (slice(0, 150), "all samples have"),
        (slice(0, 100), "same class, 2"),
        (slice(0, 50), "class 0 has none"),
    ],
)
def test_what_weights_must_leave(iris, rows, message):
    X, y = iris
    weights = np.ones(150)
    weights[rows] = -1.0
    with pytest.raises(ValueError, match=message):
        SMOSVC().fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("class_weight", [{0: 0.0, 1: 1.0, 2: 1.0}, {0: -1.0, 1: 1.0, 2: 1.0}])
def test_a_class_needs_a_positive_weight(iris, class_weight):
    model = fitted(NewtonSVC(), class_weight)
    for train in (lambda: model.fit(*iris), lambda: model.fit_path(*iris, [1.0])):
        with raises(ValueError, "0"):
            train()
    with pytest.raises(ValueError, match="finite"):
        fitted(NewtonSVC(), {0: np.nan, 1: 1.0, 2: 1.0}).fit(*iris)


@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_an_infinite_penalty_is_a_hard_margin(loss):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    model = SMOSVC(C=np.inf, kernel="linear", loss=loss, tol=1e-6).fit(X, y)
    assert model.converged_
    margins = np.where(y == 1, 1.0, -1.0) * (X @ model.coef_[0] + model.intercept_[0])
    assert margins.min() == pytest.approx(1.0, abs=1e-5)
    reference = SVC(C=1e10, kernel="linear", tol=1e-8).fit(X, y)
    assert_allclose(model.coef_, reference.coef_, atol=1e-4)
    primal = 0.5 * float(np.sum(model.coef_**2)) / margins.min() ** 2
    assert -model.objective_ <= primal
    assert (primal + model.objective_) / primal <= model.gap_ + 1e-12


def test_an_infinite_penalty_is_refused_where_there_is_no_hard_margin(iris):
    with raises(ValueError, "'C'", "NewtonSVC"):
        NewtonSVC(C=np.inf).fit(*iris)
