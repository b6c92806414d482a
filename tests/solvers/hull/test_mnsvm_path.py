"""Paths of MNSVM have the same solutions as fits, for every source of kernel values."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import minmax_scale

from solvers import MNSVC, NewtonSVC
from solvers.estimators.geometric import MinimalNormSolver
from solvers.hull.bias import class_biases
from solvers.multiclass import sort_by_class, strategy_of
from solvers.path.driver import path_from_gram
from solvers.path.result import PathProblem
from tests.messages import raises
from tests.solvers.hull_reference import exact_square_norm, hull_kernel
from tests.solvers.small_problems import checkers

CS = 4.0 ** np.arange(-2, 6)
GAP = 1 - (1 - 1e-3) ** 4 + 1e-9  # largest certified gap under the stopping rule with ε = 10⁻³
EXACT = [
    MNSVC(),
    MNSVC(pair="mdm"),
    MNSVC(pair="gmdm"),
    MNSVC(eta=1.5),
    MNSVC(subset=59),
    MNSVC(sampling="simple"),
]


def digits():
    X, y = load_digits(return_X_y=True)
    X = minmax_scale(X)
    return X[:600], y[:600], X[600:1000], y[600:1000]


def solve_gram(model, K, y, Cs=CS):
    """Return the solution of a path on a Gram matrix, with the weights of every subproblem."""
    bias = 0.0 if model.bias == "none" else 1.0
    strategy = strategy_of(model.multiclass, len(set(y)))
    problem = PathProblem(np.asarray(Cs), *sort_by_class(y), np.ones(y.size), strategy, bias)
    return path_from_gram(K, 0.0, problem, MinimalNormSolver(model._rules(), model.tol, seed=1))


@pytest.mark.sample(5)
@pytest.mark.parametrize("bias", ["theoretic", "average", "none"])
@pytest.mark.parametrize("solver", EXACT, ids=str)
def test_minimal_norm_is_reached_within_epsilon(two_classes, solver, bias):
    X, y = two_classes
    K = rbf_kernel(X, gamma=0.5)
    model = solver.__class__(**solver.get_params()).set_params(bias=bias)
    path = solve_gram(model, K, y)
    codes = y[path.problem.rows]
    for k, C in enumerate(CS):
        H = hull_kernel(K[np.ix_(path.problem.rows, path.problem.rows)], codes, C, bias != "none")
        weights = path.weights[k, 0]
        alpha = weights / weights.sum()
        g = H @ alpha
        square_norm = alpha @ g
        assert path.outcomes.objectives[k, 0] == pytest.approx(square_norm, rel=1e-8)
        assert path.outcomes.gaps[k, 0] == pytest.approx(max(0.0, 1 - (g.min() / square_norm) ** 2), abs=1e-7)
        assert weights.sum() == pytest.approx(1 / square_norm, rel=1e-8)
        assert g.min() >= (1 - 1e-3) ** 2 * square_norm * (1 - 1e-9)
        exact = exact_square_norm(H)
        assert exact * (1 - 1e-9) <= square_norm <= exact / (1 - path.outcomes.gaps[k, 0]) * (1 + 1e-9)
        s = alpha > 0
        expected = class_biases(bias, codes[s], alpha[s], g[s], square_norm, 2)[0] / square_norm
        assert path.intercepts[k, 0] == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert (path.outcomes.statuses == 0).all()


@pytest.mark.parametrize("stopping", ["adjmn", "meb"])
def test_other_stopping_rules_hold_for_every_sample(two_classes, stopping):
    X, y = two_classes
    K = rbf_kernel(X, gamma=0.5)
    path = solve_gram(MNSVC(stopping=stopping), K, y)
    for k, C in enumerate(CS):
        H = hull_kernel(K[np.ix_(path.problem.rows, path.problem.rows)], y[path.problem.rows], C)
        g = H @ (path.weights[k, 0] * path.outcomes.objectives[k, 0])
        square_norm, square_radius = path.outcomes.objectives[k, 0], H[0, 0]
        if stopping == "adjmn":
            assert g.min() >= square_norm - 1e-3 * np.sqrt(square_norm * square_radius) * (1 + 1e-9)
        else:  # (7.3)
            epsilon = (2e-6 / (square_radius - 1 / C) + 1 / (15000 * C)) / square_radius
            threshold = (square_norm + square_radius * (1 - (1 + epsilon) ** 2)) / 2
            assert g.min() >= threshold - 1e-9 * square_norm


@pytest.mark.parametrize("bias", ["theoretic", "average", "none"])
def test_all_at_once_path_is_certified(iris, bias):
    X, y = iris
    K = rbf_kernel(X, gamma=2.0)
    path = solve_gram(MNSVC(multiclass="all_at_once", bias=bias), K, y)
    for k, C in enumerate(CS):
        H = hull_kernel(K, y, C, bias != "none")
        weights = path.weights[k, 0]
        g = H @ weights / weights.sum()
        exact = exact_square_norm(H)
        assert (
            exact * (1 - 1e-9)
            <= path.outcomes.objectives[k, 0]
            <= exact / (1 - path.outcomes.gaps[k, 0]) * (1 + 1e-9)
        )
        s = weights > 0
        alpha = weights[s] / weights.sum()
        expected = (
            class_biases(bias, y[s], alpha, g[s], path.outcomes.objectives[k, 0], 3)
            / path.outcomes.objectives[k, 0]
        )
        np.testing.assert_allclose(path.intercepts[k], expected, rtol=1e-6, atol=1e-9)
    assert path.outcomes.gaps.max() <= GAP


@pytest.mark.parametrize("multiclass", ["pairwise", "all_at_once"])
def test_path_equals_warm_started_fits(multiclass):
    X, y, X_test, _ = digits()
    kwargs = {"gamma": 0.05, "multiclass": multiclass, "tol": 1e-4, "random_state": 0}
    path = MNSVC(**kwargs).fit_path(X, y, CS)
    labels = path.predict_path(X_test)
    model = MNSVC(**kwargs, warm_start=True)
    for k, C in enumerate(CS):
        model.set_params(C=C).fit(X, y)
        bound = max(path.duality_gap_[k], model.duality_gap_)
        assert bound <= 1 - (1 - 1e-4) ** 4 + 1e-9
        assert path.objective_[k] == pytest.approx(model.objective_, rel=bound)
        # A decision may move by the square root of the gap; few lie that close to zero.
        assert np.mean(labels[k] != model.predict(X_test)) <= 0.01
    assert path.fit_status_.tolist() == [0] * 8
    assert path.converged_.all()
    assert (path.fit_seconds_ > 0).all()


def test_read_only_float32_gram_predicts_what_the_features_do():
    X, y, X_test, _ = digits()
    K = rbf_kernel(X, gamma=0.05).astype(np.float32)
    K_test = rbf_kernel(X_test, X, gamma=0.05).astype(np.float32)
    K.flags.writeable = K_test.flags.writeable = False
    before = K.copy()
    gram = MNSVC(kernel="precomputed", random_state=0).fit_path(K, y, CS)
    features = MNSVC(gamma=0.05, random_state=0).fit_path(X, y, CS)
    np.testing.assert_array_equal(K, before)
    np.testing.assert_allclose(gram.objective_, features.objective_, rtol=GAP)
    assert gram.duality_gap_.max() <= GAP
    assert np.mean(gram.predict_path(K_test) != features.predict_path(X_test)) < 0.01


def test_same_seed_same_numbers_however_the_rows_are_sorted():
    X, y, X_test, _ = digits()
    K, K_test = rbf_kernel(X, gamma=0.05), rbf_kernel(X_test, X, gamma=0.05)
    order = np.argsort(y, kind="stable")
    model = MNSVC(kernel="precomputed", random_state=5)
    mixed = model.fit_path(K, y, CS)
    again = model.fit_path(K, y, CS)
    ordered = model.fit_path(K[np.ix_(order, order)], y[order], CS)
    other = MNSVC(kernel="precomputed", random_state=6).fit_path(K, y, CS)
    for path in (again, ordered):
        np.testing.assert_array_equal(mixed.objective_, path.objective_)
        np.testing.assert_array_equal(mixed.n_iter_, path.n_iter_)
    np.testing.assert_array_equal(mixed.predict_path(K_test), ordered.predict_path(K_test[:, order]))
    assert (mixed.n_iter_ != other.n_iter_).any()


@pytest.mark.sample(3)
@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("rows_that_fit", [250, 10], ids=["a_block_each", "no_block"])
@pytest.mark.parametrize("bias", ["theoretic", "average"])
def test_without_room_for_a_gram_matrix(rows_that_fit, bias, as_sparse):
    X, y, X_test, _ = digits()
    kwargs = {"gamma": 0.05, "bias": bias, "random_state": 0}
    gram = MNSVC(**kwargs).fit_path(X, y, CS)
    labels = gram.predict_path(X_test)
    if as_sparse:
        X, X_test = sparse.csr_matrix(X), sparse.csr_matrix(X_test)
    small = MNSVC(**kwargs, cache_size=8e-6 * rows_that_fit**2).fit_path(X, y, CS)
    assert small.duality_gap_.max() <= GAP
    np.testing.assert_allclose(small.objective_, gram.objective_, rtol=GAP)
    assert np.mean(small.predict_path(X_test) != labels) < 0.01
    np.testing.assert_allclose(small.sv_share_, gram.sv_share_, atol=0.02)


def test_samples_left_out_of_a_long_descent_are_examined_in_the_end():
    X, y = checkers(1200)
    K = rbf_kernel(X, gamma=16.0)
    # With as many draws as samples, the last search examines all of them.
    path = MNSVC(kernel="precomputed", draws=1200, random_state=0).fit_path(K, y, CS)
    exact = NewtonSVC(kernel="precomputed", tol=1e-8).fit_path(K, y, CS)
    assert path.n_iter_[-1] > 5 * 1200  # enough steps for samples to be left out
    assert path.n_support_[-1] < 0.5 * 1200  # enough samples to leave out
    assert path.duality_gap_.max() <= GAP
    assert (path.objective_ >= exact.objective_ * (1 - 1e-7)).all()
    assert (path.objective_ <= exact.objective_ / (1 - path.duality_gap_)).all()


def test_limit_of_the_iterations_holds_for_each_training(two_classes):
    X, y = two_classes
    path = MNSVC(gamma=0.5, max_iter=7, random_state=0).fit_path(X, y, CS)
    assert path.n_iter_.max() == 7
    assert path.fit_status_[0] == 1
    assert not path.converged_[0]
    assert np.isfinite(path.duality_gap_).all()


def test_indefinite_kernel_is_reported():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(40, 40))
    path = MNSVC(kernel="precomputed", random_state=0).fit_path(K + K.T, np.arange(40) % 2, CS)
    assert path.fit_status_[-1] == 3
    assert not path.converged_[-1]
    assert path.duality_gap_[-1] == 1.0
    assert np.isin(path.predict_path(K), [0, 1]).all()


def test_refuses_what_is_not_an_ascending_path():
    with raises(ValueError, "Cs", "ascending", "finite", "> 0"):
        MNSVC().fit_path(*load_iris(return_X_y=True), [4.0, 1.0])
