"""The relative margin machine reaches the optimum of its problem, and its gap bounds the distance from it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from solvers import SMOSVC, RelativeMarginSVC
from solvers.version_space.relative_margin import RelativeMarginState, train_relative_margin
from tests.solvers.version_space.dense_convex import quadratic_program
from tests.solvers.version_space.small_sets import random_problem, signed_weights


def bound_of(seed):
    return [1.0, 1.2, 2.0, 5.0, np.inf][seed % 5]


def primal(K, y, C, bound, theta, b):
    """Return the primal objective, or infinity if a decision exceeds the bound."""
    f = K @ theta + b
    if np.abs(f).max() > bound * (1 + 1e-9):
        return np.inf
    return 0.5 * theta @ K @ theta + (C * np.maximum(0.0, 1.0 - y * f)).sum()


def value_of(solution, K, y, C, bound):
    """Return the primal objective of a solution that is scaled down to the bound."""
    theta, b = signed_weights(solution, y), solution.bias[0]
    scale = min(1.0, bound / np.abs(K @ theta + b).max())
    return primal(K, y, C, bound, scale * theta, scale * b)


def dense_optimum(K, y, C, bound):
    """Return the optimum of the dual with its 3n multipliers."""
    n, is_finite = y.size, np.isfinite(bound)
    S = np.hstack([np.diag(y), -np.eye(n), np.eye(n)]) if is_finite else np.diag(y)
    cost = np.concatenate([-np.ones(n), np.full(2 * n, bound)]) if is_finite else -np.ones(n)
    m = cost.size
    G = np.vstack([-np.eye(m), np.eye(n, m)])
    h = np.concatenate([np.zeros(m), C])
    A = (np.ones(n) @ S)[None]
    return -quadratic_program(S.T @ K @ S, cost, A, np.zeros(1), G, h)[1]


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(60))
def test_the_optimum_is_that_of_a_dense_method(seed):
    problem, K, y = random_problem(seed)
    C = np.broadcast_to(problem.C, y.shape)
    solution = train_relative_margin(problem, bound_of(seed), 1e-7, 1e8)
    optimum = dense_optimum(K, y, C, bound_of(seed))
    assert solution.converged, solution.stopping
    assert -solution.objective == pytest.approx(optimum, rel=1e-6)
    assert value_of(solution, K, y, C, bound_of(seed)) == pytest.approx(optimum, rel=1e-6)


def test_the_gap_is_at_least_the_true_one(full_size):
    converged = []
    for seed in range(500 if full_size else 25):
        C = 10.0 ** np.random.default_rng(seed).uniform(-2, 6)
        problem, K, y = random_problem(
            1000 + seed, n_max=(100 if seed % 10 else 300) if full_size else 40, C=C
        )
        problem = replace(problem, max_iter=5_000_000 if full_size else 100_000)
        bound, C = bound_of(seed), np.broadcast_to(problem.C, y.shape)
        # The reference is the best point known: where it is not the optimum, the test is weaker, not wrong.
        exact = value_of(train_relative_margin(problem, bound, 1e-9, 1e8), K, y, C, bound)
        for tol in (0.3, 1e-3):
            found = train_relative_margin(problem, bound, tol, 1e8)
            value = value_of(found, K, y, C, bound)
            assert found.gap >= (value - exact) / value
            assert found.gap <= tol or not found.converged
            converged.append(found.converged)
    share = np.mean(converged)  # rounding, or max_iter in the sample, limits the steps at large values of C
    assert share > (0.85 if full_size else 0.7)


@pytest.mark.parametrize("seed", range(12))
def test_conditions_of_optimality(seed):
    problem, K, y = random_problem(seed, C=5.0)
    bound, C = [1.1, 1.5, 3.0][seed % 3], np.broadcast_to(problem.C, y.shape)
    solution = train_relative_margin(problem, bound, 1e-6, 1e8)
    theta = signed_weights(solution, y)
    f = K @ theta + solution.bias[0]
    weight = y * theta  # of the margin within 0 … C, of the bounds outside
    assert (f[weight > 1e-9] * y[weight > 1e-9] <= bound + 1e-5).all()
    inside = (weight > 1e-9) & (weight < C - 1e-9)
    assert_allclose(y[inside] * f[inside], 1.0, atol=1e-5)
    assert_allclose((y * f)[weight < -1e-9], bound, atol=1e-5)  # the bound on the side of the label
    assert_allclose((y * f)[weight > C + 1e-9], -bound, atol=1e-5)
    assert ((y * f)[np.abs(weight) < 1e-12] >= 1.0 - 1e-5).all()
    assert (np.abs(f) <= bound + 1e-5).all()


def test_a_large_bound_is_the_hinge_loss_and_a_smaller_one_bounds_decisions(two_classes):
    X, y = two_classes
    exact = SMOSVC(C=4.0, gamma=0.5, tol=1e-6).fit(X, y)
    reference = SVC(C=4.0, gamma=0.5, tol=1e-6).fit(X, y).decision_function(X)
    largest = np.abs(exact.decision_function(X)).max()
    for bound in (np.inf, 1.01 * largest):
        model = RelativeMarginSVC(C=4.0, gamma=0.5, bound=bound, tol=1e-6).fit(X, y)
        assert_allclose(model.decision_function(X), reference, atol=1e-3)
        assert model.objective_ == pytest.approx(exact.objective_, rel=1e-6)
        assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-3)
    last = exact.objective_
    for bound in (2.0, 1.3, 1.0):  # the optimum grows as the bound falls
        model = RelativeMarginSVC(C=4.0, gamma=0.5, bound=bound, tol=1e-5).fit(X, y)
        assert np.abs(model.decision_function(X)).max() <= bound + 1e-4
        assert model.objective_ <= last + 1e-6
        last = model.objective_
    assert (model.dual_coef_[0] * np.where(y[model.support_] == 1, 1, -1) < 0).any()


@pytest.mark.parametrize("bound", [2.0, np.inf])
def test_a_weight_within_roundings_of_its_bound_does_not_decide_on_the_bias(bound):
    problem, _, _ = random_problem(1, C=0.01)
    problem = replace(problem, rows=problem.rows[:6], class_start=np.array([0, 3, 6]), C=np.array([0.01]))
    state = RelativeMarginState(problem, bound, 1e6)
    state.theta = 0.01 * state.y
    state.recompute()
    expected = state.bias()
    for t in range(6):
        state.theta = 0.01 * state.y
        state.theta[t] = np.nextafter(state.theta[t], 0.0)
        state.recompute()
        assert state.bias() == pytest.approx(expected, abs=1e-12)


def test_rows_that_do_not_fit_give_the_same_optimum(two_classes):
    X, y = two_classes
    whole, rows = (RelativeMarginSVC(bound=1.2, gamma=0.5, cache_size=c).fit(X, y) for c in (200, 0.01))
    assert rows.objective_ == pytest.approx(whole.objective_, rel=1e-9)
    assert rows.n_kernel_evals_ > 0


def test_an_indefinite_kernel_has_no_gap(two_classes):
    X, y = two_classes
    with pytest.warns(ConvergenceWarning, match="not positive definite"):
        model = RelativeMarginSVC(kernel="precomputed").fit(X @ X.T - 5.0 * np.eye(y.size), y)
    assert (model.fit_status_, model.converged_) == (3, False)
    assert np.isnan(model.gap_)
