"""Newton's method on many samples solves the modified L2 SVM, and stays within its limits."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from solvers import NewtonSVC
from solvers.newton.method_choice import _is_large
from tests.solvers.peak_memory import peak_bytes
from tests.solvers.small_problems import CACHE, CS, SLACK, overlapping, problem_of


def modified_l2(model, X, y, C):
    """Return ‖c‖² and the gap of the hull point of a model, in plain float64."""
    sign, alpha = np.where(y == 0, 1.0, -1.0), np.zeros(y.size)
    alpha[model.support_] = np.abs(model.dual_coef_[0]) / np.abs(model.dual_coef_[0]).sum()
    K = np.exp(-model.gamma * cdist(X, X, "sqeuclidean"))
    g = (np.outer(sign, sign) * (K + 1.0) + np.diag(np.broadcast_to(1.0 / C, y.size))) @ alpha
    return alpha @ g, 1.0 - (max(g.min(), 0.0) / (alpha @ g)) ** 2


@pytest.mark.parametrize(("gamma", "tol"), [(0.01, 1e-3), (0.5, 1e-6), (4.0, 1e-3)])
def test_newtons_solution_has_a_penalised_bias(gamma, tol):
    X, y = overlapping()
    path = NewtonSVC(gamma=gamma, tol=tol, cache_size=CACHE).fit_path(X, y, CS)
    assert path.converged_.all()
    assert "low_rank" not in "".join(path.method_)
    for k in (0, 3, 7):
        model = NewtonSVC(C=CS[k], gamma=gamma, tol=tol, cache_size=CACHE).fit(X, y)
        square_norm, gap = modified_l2(model, X, y, CS[k])
        assert gap <= model.gap_ <= tol
        assert model.objective_ == pytest.approx(square_norm, rel=1e-9)
        assert path.objective_[k] == pytest.approx(square_norm, rel=tol)
        assert np.abs(model.intercept_[0]) == pytest.approx(abs(model.dual_coef_.sum()), rel=1e-6)
    n_iter = model.n_iter_.sum()
    again = model.set_params(warm_start=True).fit(X, y).fit(X, y)
    assert again.converged_
    assert again.n_iter_.sum() <= 0.05 * n_iter


@pytest.mark.parametrize(("d", "gamma"), [(12, 0.5), (5, 0.1)], ids=["margin", "feature_space_first"])
def test_newton_counts_kernel_values_for_the_C_that_needs_them(d, gamma):
    X, y = overlapping(d=d)
    model = NewtonSVC(gamma=gamma, cache_size=CACHE)
    path = model.fit_path(X, y, CS)
    for n in (1, 4, 7):
        part = model.fit_path(X, y, CS[:n])
        np.testing.assert_array_equal(path.n_kernel_evals_[:n], part.n_kernel_evals_)


def test_newtons_penalties_of_samples_are_its_ridges():
    X, y = overlapping()
    weight = np.random.default_rng(1).random(y.size) + 0.1
    model = NewtonSVC(C=4.0, gamma=0.5, cache_size=CACHE).fit(X, y, weight)
    assert modified_l2(model, X, y, 4.0 * weight)[1] <= model.gap_ <= 1e-3


def test_newton_solves_other_subproblems_by_other_methods():
    X, _ = overlapping()
    problem = problem_of(X)
    assert not _is_large(problem, 1e8), "without a bias, no sum of weights is fixed"
    problem.bias = 1.0
    assert _is_large(problem, 1e8)
    problem.class_start = np.array([0, 200, 400, 600])
    assert not _is_large(problem, 1e8), "all classes at once"


@pytest.mark.parametrize(("gamma", "C", "method"), [(0.1, 4.0, "low_rank"), (40.0, 4.0, "pair_steps")])
def test_newton_tries_a_small_rank_before_the_large_path(gamma, C, method):
    X, y = overlapping(d=3)
    model = NewtonSVC(C=C, gamma=gamma, cache_size=CACHE).fit(X, y)
    assert method in model.method_
    assert ("low_rank" in model.method_) == (method == "low_rank")
    assert modified_l2(model, X, y, C)[1] <= model.gap_ <= 1e-3


def test_a_path_that_leaves_the_feature_space_goes_on_from_there():
    X, y = overlapping(d=5)
    path = NewtonSVC(gamma=0.1, cache_size=CACHE).fit_path(X, y, CS)
    assert path.converged_.all()
    assert "low_rank" in path.method_[0]
    assert "low_rank" not in path.method_[-1]
    for k in (0, len(CS) - 1):
        alone = NewtonSVC(C=CS[k], gamma=0.1, cache_size=CACHE).fit(X, y)
        assert path.objective_[k] == pytest.approx(alone.objective_, rel=2e-3)


@pytest.mark.parametrize("limit", [1, 3, 5])
def test_rounds_in_feature_space_count_as_iterations_of_the_large_path(limit):
    X, y = overlapping(d=3)
    with pytest.warns(UserWarning, match="max_iter"):
        model = NewtonSVC(C=64.0, gamma=0.1, cache_size=CACHE, max_iter=limit).fit(X, y)
    assert model.n_iter_ <= limit
    assert modified_l2(model, X, y, 64.0)[1] <= model.gap_
    assert not model.converged_


def test_the_feature_space_of_a_large_subproblem_stays_within_its_cache():
    rng = np.random.default_rng(0)
    X = rng.random((6000, 8))
    y = (X[:, 0] > 0.5).astype(int)
    X[:, 0] += 0.3 * y
    model = NewtonSVC(C=16.0, gamma=4.0, cache_size=CACHE)
    model.fit(X[::8], y[::8])  # compiled
    peak, _ = peak_bytes(lambda: model.fit(X, y))
    assert model.converged_
    assert peak <= 1e6 * CACHE + SLACK + 2 * 8 * X.size
