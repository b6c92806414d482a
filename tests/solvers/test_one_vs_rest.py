"""One subproblem for each class against the rest, by `fit` and on paths."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC

pytestmark = pytest.mark.sample(3)

CS = [0.25, 4.0, 64.0]
SOLVERS = [
    SMOSVC(tol=1e-6),
    SMOSVC(loss="l2", tol=1e-6),
    NewtonSVC(tol=1e-6),
    MNSVC(tol=1e-6, random_state=0),
]
BALLS = [SphereSVC(tol=1e-3), BallSVC(tol=1e-3), CoreSVC(tol=1e-3)]
CACHES = {"one gram": 200, "a gram each": 0.2, "rows": 1e-4}
"""Name of each source of kernel values, and a `cache_size` in MB that leads to it for 150 samples."""


def shuffled(load, n=150):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)[:n]
    return minmax_scale(X[order]), y[order]


def against_rest(model, **params):
    return model._copy().set_params(multiclass="one_vs_rest", gamma=2.0, **params)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
@pytest.mark.parametrize("C", [0.25, 4.0])
def test_decisions_are_those_of_scikit_learn(load, C):
    X, y = shuffled(load)
    peer = OneVsRestClassifier(SVC(C=C, gamma=2.0, tol=1e-6)).fit(X, y)
    model = against_rest(SMOSVC(tol=1e-6), C=C).fit(X, y)
    decisions = model.decision_function(X)
    assert decisions.shape == (y.size, np.unique(y).size)
    assert_allclose(decisions, peer.decision_function(X), atol=1e-4)
    assert_array_equal(model.predict(X), model.classes_[decisions.argmax(axis=1)])
    assert_array_equal(model.predict(X), peer.predict(X))
    assert_array_equal(model.fit_path(X, y, [C, 64.0]).predict_path(X)[0], peer.predict(X))


@pytest.mark.parametrize("model", SOLVERS, ids=str)
def test_each_subproblem_is_the_binary_problem_of_its_class(model):
    X, y = shuffled(load_wine)
    together = against_rest(model, C=4.0).fit(X, y)
    assert together.converged_
    assert together.n_iter_.shape == together.intercept_.shape == (3,)
    decisions, objective = together.decision_function(X), 0.0
    for t in range(3):
        binary = model._copy().set_params(gamma=2.0, C=4.0).fit(X, y == t)
        assert_allclose(decisions[:, t], binary.decision_function(X), atol=2e-3)
        objective += binary.objective_
    assert together.objective_ == pytest.approx(objective, rel=1e-5)


@pytest.mark.parametrize("cache_size", CACHES.values(), ids=CACHES)
@pytest.mark.parametrize("model", SOLVERS, ids=str)
def test_a_path_has_the_subproblems_of_its_fits(model, cache_size, trained):
    X, y = shuffled(load_iris)
    weight = np.random.default_rng(1).uniform(0.3, 3.0, y.size)
    weight[::11] = 0.0
    for params, of_rows in (({}, None), ({"class_weight": {0: 0.5, 1: 2.0, 2: 5.0}}, weight)):
        path = against_rest(model, cache_size=cache_size, **params).fit_path(X, y, CS, of_rows)
        assert path.converged_.all()
        for k, C in enumerate(CS):
            cold = against_rest(model, C=C, **params).fit(X, y, of_rows)
            assert path.objective_[k] == pytest.approx(cold.objective_, rel=1e-5)
            assert_allclose(trained[-1].intercepts[k], cold.intercept_, atol=2e-3 * max(1.0, C / 4.0))
            assert np.mean(path.predict_path(X)[k] == cold.predict(X)) > 0.98


def test_a_small_tolerance_is_certified_without_a_gram_matrix():
    """The gap is that of a recomputed g, to which the steps add no rounding errors."""
    X, y = shuffled(load_iris)
    path = against_rest(NewtonSVC(tol=1e-8), cache_size=CACHES["rows"]).fit_path(X, y, CS)
    assert path.converged_.all()
    assert path.duality_gap_.max() <= 1e-8


@pytest.mark.parametrize("model", [*SOLVERS, *BALLS], ids=str)
def test_a_grid_is_its_paths(model):
    X, y = shuffled(load_iris)
    Ks = np.stack([rbf_kernel(X, gamma=gamma).astype(np.float32) for gamma in (0.5, 4.0)])
    seeded = {"random_state": 0} if hasattr(model, "draws") else {}
    model = against_rest(model, kernel="precomputed", gram_error=1e-7, **seeded)
    grid = model.path_grid([model, model], y, CS)
    grid.fit(Ks)
    paths = [model.fit_path(K, y, CS) for K in Ks]
    assert_array_equal(grid.predict(Ks), [path.predict_path(K) for path, K in zip(paths, Ks, strict=True)])
    assert_array_equal(grid.fitted().objective_, np.concatenate([path.objective_ for path in paths]))


@pytest.mark.parametrize("model", BALLS, ids=str)
def test_balls_are_certified_for_each_class(model):
    X, y = shuffled(load_iris)
    model = against_rest(model, random_state=0)
    fitted, path = model.fit(X, y), model.fit_path(X, y, CS)
    assert fitted.converged_
    assert path.converged_.all()
    assert fitted.dual_coef_.shape[0] == 3
    assert (path.predict_path(X)[1] == y).mean() > 0.9


@pytest.mark.parametrize("model", [*SOLVERS, *BALLS], ids=str)
def test_two_classes_are_one_pair(model):
    X, y = make_blobs(80, centers=2, cluster_std=4.0, random_state=0)
    seeded = {"random_state": 0} if hasattr(model, "draws") else {}
    of_pair, of_class = (
        model._copy().set_params(multiclass=multiclass, **seeded).fit(X, y)
        for multiclass in ("pairwise", "one_vs_rest")
    )
    assert_array_equal(of_class.dual_coef_, of_pair.dual_coef_)
    assert_array_equal(of_class.decision_function(X), of_pair.decision_function(X))
    assert of_class.decision_function(X).shape == (80,)


@pytest.mark.parametrize("model", SOLVERS, ids=str)
def test_weights_of_classes_are_weights_of_their_rows(model):
    X, y = shuffled(load_iris)
    of_classes = against_rest(model, class_weight={0: 0.5, 1: 2.0, 2: 5.0}).fit(X, y)
    of_rows = against_rest(model).fit(X, y, np.array([0.5, 2.0, 5.0])[y])
    assert_array_equal(of_classes.dual_coef_, of_rows.dual_coef_)


def test_features_of_a_linear_kernel_have_a_weight_for_each_class():
    X, y = shuffled(load_iris)
    model = against_rest(SMOSVC(), kernel="linear").fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert_allclose(X @ model.coef_.T + model.intercept_, model.decision_function(X), atol=1e-9)


def test_there_are_no_decisions_of_pairs():
    with pytest.raises(ValueError, match="'one_vs_rest'"):
        against_rest(SMOSVC(), decision_function_shape="ovo").fit(*load_iris(return_X_y=True))
