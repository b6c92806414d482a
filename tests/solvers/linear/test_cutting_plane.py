"""The quadratic program, the line search and the bounds of one-slack cutting planes are exact."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from solvers import PerfSVC
from solvers.common.resources import NO_LIMIT
from solvers.linear.cutting_plane import HingeProblem, Limits, train
from solvers.linear.features import LinearFeatures
from solvers.linear.line_search import line_minimum
from solvers.linear.quadratic_program import maximise
from tests.messages import warns


def random_problem(seed):
    """Return samples, labels, weights and C of a random problem, some with ties, copies and zero rows."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 80)), int(rng.integers(1, 12))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1)
    if seed % 3 == 0:
        X = np.round(X)
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    weights = rng.uniform(0.1, 3.0, n) if seed % 2 else np.ones(n)
    return X, y, weights, 10.0 ** rng.uniform(-3, 2)


def objective(w, X, y, weights, C):
    return 0.5 * w @ w + C * weights @ np.maximum(1.0 - y * (X @ w), 0.0)


def exact_minimum(X, y, weights, C):
    """Return F1* by dual coordinate descent in float64, as the mean of two bounds that differ little."""
    theirs = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-10, max_iter=10**6)
    w = theirs.fit(X, y, sample_weight=weights).coef_[0]
    return objective(w, X, y, weights, C)


@pytest.mark.parametrize("seed", range(30))
def test_the_quadratic_program_satisfies_its_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    m, rank, C = int(rng.integers(1, 40)), int(rng.integers(1, 12)), 10.0 ** rng.uniform(-2, 4)
    psi = rng.standard_normal((m, rank))
    if m > 3:
        psi[3] = psi[0]  # equal cuts
    H, delta = psi @ psi.T, rng.uniform(-0.2, 1.0, m)
    alpha = np.zeros(m)
    if seed % 2:
        alpha[rng.integers(m)] = C  # a start at a corner
    maximise(H, delta, C, 1e-9, alpha)
    assert (alpha >= 0.0).all()
    assert alpha.sum() <= C * (1 + 1e-12)
    gradient = delta - H @ alpha
    # The distance from the maximum is at most that of the best corner along the gradient.
    assert C * max(gradient.max(), 0.0) - alpha @ gradient <= C * 1e-8 * (1 + np.abs(H).max())


@pytest.mark.parametrize("seed", range(40))
def test_the_line_search_finds_the_minimum(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    slack, change, penalty = rng.standard_normal(n), rng.standard_normal(n), rng.uniform(0.1, 2.0, n)
    if seed % 2:
        slack, change = np.round(slack), np.round(change)
    curvature, slope = rng.uniform(0.1, 5.0), rng.standard_normal() * 5.0

    def value(t):
        return slope * t + 0.5 * curvature * t * t + penalty @ np.maximum(slack + t * change, 0.0)

    t = line_minimum(slack, change, penalty, curvature, slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        points = -slack / change
    candidates = np.concatenate(([0.0, t], points[np.isfinite(points) & (points > 0)]))
    candidates = np.concatenate((candidates, np.linspace(0.0, 2.0 * candidates.max() + 10.0, 500)))
    assert t >= 0.0
    assert value(t) <= min(map(value, candidates)) + 1e-12


@pytest.mark.parametrize("line_search", [True, False])
def test_both_bounds_hold_and_meet(line_search):
    for seed in range(30):
        X, y, weights, C = random_problem(seed)
        total = weights.sum()
        problem = HingeProblem(LinearFeatures(X, bias=False), y, weights / total, C * total)
        exact = exact_minimum(X, y, weights, C)
        for rounds in (3, NO_LIMIT):
            found = train(problem, Limits(1e-4, rounds, np.inf), line_search, keeps_members=True)
            assert found.primal == pytest.approx(objective(found.w, X, y, weights, C), rel=1e-12)
            assert found.dual - found.error <= exact * (1 + 1e-9)
            assert exact <= found.primal + found.error + 1e-6 * exact
            # The weights of the samples are feasible for the dual problem, and have the same value there.
            a = found.dual_weights
            assert (a >= 0.0).all()
            assert (a <= C * weights * (1 + 1e-9)).all()
            w = X.T @ (a * y)
            assert a.sum() - 0.5 * w @ w <= exact * (1 + 1e-9)
        assert found.primal - found.dual <= 1e-4 * C * total


@pytest.mark.parametrize("line_search", [True, False])
def test_the_best_point_of_all_rounds_is_returned(line_search):
    """F1 of the solutions of the quadratic program rises in some rounds; that of the model never does."""
    for seed in range(10):
        X, y, weights, C = random_problem(seed)
        total = weights.sum()
        problem = HingeProblem(LinearFeatures(X, bias=False), y, weights / total, C * total)
        found = [train(problem, Limits(1e-6, rounds, np.inf), line_search) for rounds in range(1, 15)]
        assert (np.diff([each.primal for each in found]) <= 0.0).all()


def test_a_cut_is_below_the_loss():
    """R(w) ≥ δ_c − w·ψ_c for every subset c and every w, by which the dual bounds F1*."""
    rng = np.random.default_rng(0)
    X, y, weights, _ = random_problem(1)
    p = weights / weights.sum()
    for _ in range(200):
        c, w = rng.random(y.size) < rng.random(), rng.standard_normal(X.shape[1])
        cut = p[c].sum() - w @ ((p * y)[c] @ X[c])
        assert cut <= p @ np.maximum(1.0 - y * (X @ w), 0.0) + 1e-12


def test_one_feature_agrees_with_a_scalar_minimisation():
    X, y, weights, C = random_problem(5)
    X = X[:, :1]
    model = PerfSVC(C, tol=1e-8).fit(X, y, sample_weight=weights)
    scalar = minimize(lambda w: objective(w, X, y, weights, C), [0.0], method="Nelder-Mead", tol=1e-12)
    assert model.objective_ == pytest.approx(scalar.fun, rel=1e-6)


def test_separable_samples_at_a_large_C_have_the_largest_margin():
    """A linear program shows that the samples are separable."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 3))
    y = np.where(X @ [1.0, -2.0, 0.5] > 0, 1.0, -1.0)
    assert linprog(np.zeros(3), A_ub=-y[:, None] * X, b_ub=-np.ones(40), bounds=(None, None)).status == 0
    model = PerfSVC(1e4, tol=1e-9).fit(X, y)
    assert (y * model.decision_function(X)).min() >= 1.0 - 1e-3
    theirs = LinearSVC(loss="hinge", C=1e4, fit_intercept=False, tol=1e-8, max_iter=10**7).fit(X, y)
    assert_allclose(model.coef_, theirs.coef_, rtol=1e-2)


@pytest.mark.parametrize("C", [1 / 16, 1.0])
def test_objectives_are_within_C_times_tol_of_coordinate_descent(C):
    """As in the paper, on sparse samples of text, on dense ones and with copies."""
    rng = np.random.default_rng(0)
    text = sparse.random(1500, 4000, density=0.01, format="csr", random_state=0)
    words = np.where(text @ rng.standard_normal(4000) + 0.2 * rng.standard_normal(1500) > 0, 1, 0)
    flags = (rng.random((3000, 60)) < 0.15).astype(float)
    noisy = np.where(flags @ rng.standard_normal(60) + rng.standard_normal(3000) > 0.5, 1, 0)
    for X, y in ((text, words), (flags, noisy), (sparse.csr_matrix(flags), noisy)):
        model = PerfSVC(C).fit(X, y)
        exact = exact_minimum(X, 2.0 * y - 1.0, np.ones(y.size), C)
        assert exact * (1 - 1e-9) <= model.objective_ <= exact + 1e-3 * C * y.size
        assert (model.objective_ - exact) / model.objective_ <= model.gap_
        assert model.converged_
        assert objective(model.coef_[0], X, 2.0 * y - 1.0, np.ones(y.size), C) == pytest.approx(
            model.objective_, rel=1e-12
        )


def test_the_line_search_saves_rounds():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 20))
    y = np.where(X @ rng.standard_normal(20) + 2.0 * rng.standard_normal(2000) > 0, 1, 0)
    with_search = PerfSVC(1.0).fit(X, y)
    without = PerfSVC(1.0, line_search=False).fit(X, y)
    assert with_search.n_iter_[0] < without.n_iter_[0]
    assert with_search.objective_ == pytest.approx(without.objective_, rel=0.01)


def samples_far_away(offset):
    """Return separable samples whose features are all near a large number, and their labels."""
    features = np.random.default_rng(0).normal(size=(60, 5))
    return features + offset, features[:, 0] > 0.0


def test_samples_far_from_the_origin_take_few_rounds():
    """Cuts differ by 10⁻⁶ of their length. With the first proximity alone, 269 rounds were needed."""
    X, y = samples_far_away(1e6)
    model = PerfSVC(C=100.0).fit(X, y)
    assert model.converged_
    assert model.n_iter_[0] < 60


def test_a_training_ends_where_rounding_hides_the_tolerance():
    """With the first proximity alone, 1,000 rounds ended at a gap of 0.19."""
    X, y = samples_far_away(1e6)
    with warns(ConvergenceWarning, "rounding"):
        model = PerfSVC(C=1e4, max_iter=1000).fit(X, y)
    assert model.fit_status_ == 4
    assert model.gap_ < 0.15
