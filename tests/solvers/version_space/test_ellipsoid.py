"""The ellipsoidal machine solves problem (7) of Momma (2011), with a certificate and the right limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from solvers import SMOSVC
from solvers.common.status import CONVERGED, TIMEOUT
from solvers.version_space import ellipsoid_newton
from solvers.version_space.ellipsoid_dual import (
    Block,
    SpanFactor,
    certify,
    factor_of,
    is_positive_semidefinite,
    new_block,
    penalties_of,
    residual_target,
)
from solvers.version_space.ellipsoid_newton import (
    AT_ZERO,
    FAR_AWAY,
    Limits,
    balanced,
    largest_margin,
    linearised_again,
    train,
)
from solvers.version_space.ellipsoid_smo import best_step, minimise_by_pairs, slope_at


def samples(rng, n, d=2, sep=1.0):
    y = np.where(np.arange(n) < n // 2, 1.0, -1.0)
    X = rng.normal(size=(n, d))
    X[:, 0] += sep * y
    return X, y


def block_of(X, y, gamma=None, target=None):
    if gamma is None:
        return Block(np.ascontiguousarray(X @ X.T), y, np.ascontiguousarray(X.T), np.zeros(y.size), 0.0, True)
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))
    return new_block(K, y, target)


def solve(block, C, r, tol=1e-3, **options):
    penalties = penalties_of(np.array([C]), block.K.diagonal())
    outcome, used_r, used_C = train(block, penalties, r, Limits(tol), **options)
    return outcome, used_r, used_C


def dual_value(Z, y, alpha, r):
    """Objective from matrices of the samples' space, with no factor of ours."""
    M = ((1 - r) * np.eye(len(Z)) + (Z * alpha) @ Z.T) / r
    return r * np.linalg.slogdet(M)[1] - np.linalg.norm(Z @ (alpha * y)) + r * len(Z)


def primal_by_slsqp(X, y, C, r):
    """Optimum of (7) in two dimensions, with B = LLᵀ, by a general solver."""
    n, is_soft = y.size, np.isfinite(C[0])

    def parts(x):
        L = np.array([[np.exp(x[0]), 0.0], [x[1], np.exp(x[2])]])
        return L @ L.T, x[3:5], x[5], x[6:] if is_soft else np.zeros(n)

    def objective(x):
        B, _, _, xi = parts(x)
        return -r * np.linalg.slogdet(B)[1] + (1 - r) * np.trace(B) + (C @ xi if is_soft else 0.0)

    def slack(x):
        B, w, b, xi = parts(x)
        return y * (X @ w + b) + xi - np.einsum("ij,jk,ik->i", X, B, X)

    constraints = [
        {"type": "ineq", "fun": slack},
        {"type": "ineq", "fun": lambda x: 1.0 - x[3:5] @ x[3:5]},
    ]
    start = np.concatenate(([-1.0, 0.0, -1.0, 0.9, 0.0, 0.0], np.full(n if is_soft else 0, 3.0)))
    bounds = [(None, None)] * 6 + [(0.0, None)] * (n if is_soft else 0)
    found = minimize(
        objective,
        start,
        method="SLSQP",
        bounds=bounds,
        constraints=constraints,
        options={"ftol": 1e-13, "maxiter": 500},
    )
    return found.fun, found.success and slack(found.x).min() > -1e-8


@pytest.mark.parametrize("margin", ["soft", "hard"])
def test_objectives_are_those_of_a_general_solver(margin, full_size):
    rng, checked = np.random.default_rng(1), 0
    while checked < (50 if full_size else 3):
        n = int(rng.integers(6, 31 if full_size else 11))
        X, y = samples(rng, n, sep=4.0 if margin == "hard" else 1.0)
        C = np.inf if margin == "hard" else 10.0 ** rng.uniform(-2, 0)
        r = rng.uniform(0.6 if margin == "soft" else 0.9, 0.99)
        block = block_of(X, y)
        outcome, used_r, used_C = solve(block, C, r, 1e-8)
        if used_r != r or np.isfinite(used_C[0]) != (margin == "soft") or outcome.certificate.is_collapsed:
            continue
        expected, is_solved = primal_by_slsqp(X, y, used_C, r)
        if not is_solved:
            continue
        assert outcome.status == CONVERGED
        assert outcome.certificate.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert outcome.certificate.objective == pytest.approx(dual_value(X.T, y, outcome.alpha, r), rel=1e-9)
        checked += 1


def test_optimality_conditions():
    rng = np.random.default_rng(2)
    X, y = samples(rng, 60, d=3)
    for C in (2.0, 8.0):
        block = block_of(X, y, gamma=0.5)
        outcome, r, used_C = solve(block, C, 0.9, 1e-8)
        found, alpha = outcome.certificate, outcome.alpha
        slack = y * (found.decisions + found.bias) - found.omega
        free = (alpha > 1e-5 * used_C) & (alpha < (1 - 1e-5) * used_C)
        assert free.sum() > 3
        assert_allclose(slack[free], 0.0, atol=1e-4)
        assert slack[alpha < 1e-9].min(initial=0.0) > -1e-4
        assert slack[alpha > (1 - 1e-9) * used_C].max(initial=0.0) < 1e-4
        assert abs(alpha @ y) < 1e-9 * alpha.sum()
        # Σ α ω = r dim − (1−r) tr B
        B = r * np.linalg.inv((1 - r) * np.eye(block.rank) + (block.Z * alpha) @ block.Z.T)
        assert alpha @ found.omega == pytest.approx(r * block.rank - (1 - r) * np.trace(B), rel=1e-9)


def test_gradient_and_pair_steps_agree_with_differences():
    rng = np.random.default_rng(3)
    X, y = samples(rng, 20, d=3)
    r, alpha = 0.7, balanced(rng.uniform(0.2, 1.0, 20), y)
    block = block_of(X, y)
    found = certify(block, SpanFactor(block, r), alpha, np.full(20, 2.0))
    gradient = found.omega - y * found.decisions
    h = 1e-6
    for i in range(20):
        step = h * np.eye(20)[i]
        plus, minus = (dual_value(X.T, y, alpha + s, r) for s in (step, -step))
        assert gradient[i] == pytest.approx((plus - minus) / (2 * h), abs=1e-7)
    # With γ as printed in (11), or B without 1/r before the sum, the gradient is another one.
    of_gamma = found.omega - y * found.decisions / np.sqrt(2.0)
    B = np.linalg.inv((1 - r) / r * np.eye(3) + (X.T * alpha) @ X)
    of_matrix = np.einsum("ij,jk,ik->i", X, B, X) - y * found.decisions
    assert min(np.abs(wrong - gradient).max() for wrong in (of_gamma, of_matrix)) > 1e-2
    B = r * np.linalg.inv((1 - r) * np.eye(3) + (X.T * alpha) @ X)
    Omega, K, norm = X @ B @ X.T, X @ X.T, found.norm
    for i, j in ((0, 1), (0, 15), (12, 3)):
        t = y[i] * y[j]
        a1 = (Omega[i, i] - t * Omega[j, j]) / r
        a2 = t * (Omega[i, j] ** 2 - Omega[i, i] * Omega[j, j]) / r**2
        a3 = y[i] * (K[i] - K[j]) @ (y * alpha) / norm
        a4 = (K[i, i] + K[j, j] - 2 * K[i, j]) / norm
        e = np.eye(20)[i] - t * np.eye(20)[j]

        def along(s, e=e):
            """Objective with the norm to second order, as γ is fixed during a step."""
            M = ((1 - r) * np.eye(3) + (X.T * (alpha + s * e)) @ X) / r
            v = X.T @ (y * (alpha + s * e))
            return r * np.linalg.slogdet(M)[1] - v @ v / (2 * norm) - norm / 2

        for s in (0.0, 0.05, -0.05):
            expected = (along(s + h) - along(s - h)) / (2 * h)
            assert slope_at(s, r, a1, a2, a3, a4) == pytest.approx(expected, abs=1e-7)
        s = best_step(r, a1, a2, a3, a4, -0.1, 0.1)
        cubic = [-a2 * a4, -(a2 * a3 + a1 * a4), 2 * r * a2 - a1 * a3 - a4, r * a1 - a3]
        if abs(s) < 0.1:
            assert abs(np.polyval(cubic, s)) < 1e-9
        # With a₁ or a₂ as printed, r and r² times what they are, the slope is another one.
        for wrong, least in (((a1 * r**2, a2), 1e-3), ((a1, a2 * r**2), 1e-5)):
            assert abs(slope_at(0.05, r, *wrong, a3, a4) - slope_at(0.05, r, a1, a2, a3, a4)) > least


@pytest.mark.parametrize("margin", ["soft", "hard"])
def test_gaps_are_bounds(margin, full_size):
    rng = np.random.default_rng(4)
    n_converged, n_compared, n_all = 0, 0, 500 if full_size else 8
    for k in range(n_all):
        most = 40 if not full_size else (301 if k % 10 == 0 else 101)  # large ones take seconds each
        n = int(rng.integers(4, most))
        X, y = samples(rng, n, d=int(rng.integers(1, 5)), sep=rng.uniform(0, 3))
        if rng.random() < 0.3:  # duplicates, some of them in both classes
            X[rng.integers(0, n, n // 4)] = X[rng.integers(0, n, n // 4)]
        C = np.inf if margin == "hard" else 10.0 ** rng.uniform(-2, 6)
        r = 1.0 - 10.0 ** rng.uniform(-6, -0.05)
        gamma = None if rng.random() < 0.4 else 10.0 ** rng.uniform(-2, 0.5)
        target = None
        if gamma is not None and rng.random() < 0.5:
            target = residual_target(penalties_of(np.array([C]), np.ones(n)), np.ones(n), r, 1e-3)
        block = block_of(X, y, gamma, target)
        outcome, used_r, used_C = solve(block, C, r)
        found = outcome.certificate
        is_converged = outcome.status == CONVERGED
        n_converged += is_converged
        assert found.gap <= 1e-3 if is_converged else found.gap > 0.0
        exact = block_of(X, y, gamma)
        best, reference_r, reference_C = solve(exact, C, used_r, 1e-9)
        if not np.isfinite(found.gap) or reference_r != used_r or (reference_C != used_C).any():
            continue
        n_compared += 1
        value = certify(exact, SpanFactor(exact, used_r), outcome.alpha, used_C).objective
        # At a gap of 1e-9 yᵀα may not be 0 to all digits; then the objective may exceed the optimum.
        reference = certify(exact, SpanFactor(exact, used_r), balanced(best.alpha, y), used_C)
        optimum = reference.objective
        size = max(abs(optimum), 1.0)
        loss = found.norm
        if np.isfinite(used_C[0]):
            loss += used_C @ np.maximum(0.0, found.omega - y * (found.decisions + found.bias))
        # The dual objective is at most the optimum, and the gap bounds the difference.
        if best.certificate.gap < 1e-4:
            assert value <= optimum + (1e-6 + best.certificate.gap) * size
        assert optimum - value <= found.gap * loss + 1e-9 * size
    assert n_compared > 0.6 * n_all
    assert n_converged > 0.6 * n_all


@pytest.mark.parametrize("C", [0.3, 3.0, np.inf])
def test_pairs_reach_the_objective_of_newton(C):
    X, y = samples(np.random.default_rng(5), 60, d=3, sep=1.5)
    block = block_of(X, y, gamma=0.5)
    for r in (0.9, 1 - 1e-6):
        penalties = penalties_of(np.array([C]), np.ones(60))
        newton, _, _ = train(block, penalties, r, Limits(1e-7))
        pairs = minimise_by_pairs(block, penalties, r, Limits(1e-4))
        assert pairs.status == CONVERGED
        assert pairs.certificate.objective == pytest.approx(newton.certificate.objective, abs=1e-3, rel=1e-4)


def test_r_of_one_is_the_analytic_centre():
    """With K nonsingular and r → 1 the machine maximises Σ log y_i f_i for ‖w‖ ≤ 1."""
    rng = np.random.default_rng(6)
    X, y = samples(rng, 25, d=2)
    block = block_of(X, y, gamma=2.0)
    outcome, _, used_C = solve(block, np.inf, 1 - 1e-8, 1e-7)
    assert not np.isfinite(used_C[0])
    found = outcome.certificate
    f = y * (found.decisions + found.bias)
    # Stationary: Σ y_i z_i / f_i ∝ w and Σ y_i / f_i = 0, that is, α_i = 1/f_i.
    assert_allclose(outcome.alpha * f, 1.0, atol=1e-4)
    inverse = y / f
    assert abs(inverse.sum()) < 1e-5 * np.abs(inverse).sum()
    v = block.Z @ inverse
    w = block.Z @ found.coefficients
    assert v @ w / np.linalg.norm(v) / np.linalg.norm(w) > 1 - 1e-9


def test_small_r_is_raised_to_the_hard_svm():
    rng = np.random.default_rng(7)
    X, y = samples(rng, 40, d=2, sep=3.0)
    block = block_of(X, y, gamma=0.3)
    svm = SMOSVC(C=1e5, kernel="precomputed", tol=1e-4).fit(block.K, y)
    beta = np.zeros(40)
    beta[svm.support_] = svm.dual_coef_[0]
    margin = 1.0 / np.sqrt(beta @ block.K @ beta)
    assert largest_margin(block) == pytest.approx(margin, rel=1e-4)
    r = 0.5 * margin / (1 + 0.5 * margin)
    outcome, used_r, _ = solve(block, np.inf, r, 1e-5)
    assert outcome.status == CONVERGED
    assert used_r / (1 - used_r) == pytest.approx(1.001 * margin, rel=1e-4)
    c = outcome.certificate.coefficients
    cosine = c @ block.K @ beta / np.sqrt(c @ block.K @ c) * margin
    assert cosine > 1 - 1e-4


def test_collapse_is_solved():
    X, y = samples(np.random.default_rng(8), 60, sep=0.3)
    outcome, _, _ = solve(block_of(X, y), 100.0, 0.9)
    assert (outcome.status, outcome.certificate.is_collapsed) == (CONVERGED, True)
    assert outcome.certificate.norm < 1e-3
    errors = np.mean(y * (outcome.certificate.decisions + outcome.certificate.bias) <= 0)
    assert errors < 0.5


@pytest.mark.parametrize("C", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("sep", [0.3, 1.0])
def test_a_collapse_is_solved_for_each_large_C(sep, C):
    X, y = samples(np.random.default_rng(8), 60, sep=sep)
    large, usual = solve(block_of(X, y), C, 0.9)[0], solve(block_of(X, y), 100.0, 0.9, tol=1e-4)[0]
    found = large.certificate
    assert (large.status, found.is_collapsed) == (CONVERGED, True)
    values, of_usual = found.decisions + found.bias, usual.certificate.decisions + usual.certificate.bias
    assert np.corrcoef(values, of_usual)[0, 1] > 1 - 1e-3
    # Weak duality, with both values from matrices of the samples' space.
    dual = dual_value(X.T, y, large.alpha, 0.9)
    assert found.objective == pytest.approx(dual, rel=1e-6)
    M = (0.1 * np.eye(2) + (X.T * large.alpha) @ X) / 0.9
    B = np.linalg.inv(M)
    xi = np.maximum(np.einsum("ij,jk,ik->i", X, B, X) - y * values, 0.0)
    penalties = penalties_of(np.array([C]), (X**2).sum(1))
    primal = -0.9 * np.linalg.slogdet(B)[1] + 0.1 * np.trace(B) + penalties @ xi
    assert 0.0 <= primal - dual <= 1e-3 * (penalties @ xi + found.norm) * (1 + 1e-9)


def trainings_until_late(monkeypatch, n_in_time, block, C, r):
    """Train under a deadline that passes during a training, and return the outcome and all statuses."""
    now, statuses, minimise_once = [0.0], [], ellipsoid_newton.minimise

    def minimise(*arguments, **options):
        outcome = minimise_once(*arguments, **options)
        statuses.append(outcome.status)
        now[0] = float(len(statuses) >= n_in_time)
        return outcome

    monkeypatch.setattr(ellipsoid_newton, "clock", lambda: now[0])
    monkeypatch.setattr(ellipsoid_newton, "minimise", minimise)
    penalties = penalties_of(np.array([C]), block.K.diagonal())
    outcome, _, _ = train(block, penalties, r, Limits(1e-3, deadline=0.5))
    return outcome, statuses


def test_no_training_for_a_smaller_C_starts_after_the_deadline(monkeypatch):
    block = block_of(*samples(np.random.default_rng(8), 60, sep=0.3))
    with monkeypatch.context() as patch:
        outcome, in_time = trainings_until_late(patch, 99, block, 1e8, 0.9)
    assert (outcome.status, len(in_time) > 2) == (CONVERGED, True)
    assert FAR_AWAY in in_time  # after it, a training from the middle of the box would follow
    for n_in_time in range(1, len(in_time)):
        with monkeypatch.context() as patch:
            outcome, statuses = trainings_until_late(patch, n_in_time, block, 1e8, 0.9)
        assert (outcome.status, len(statuses)) == (TIMEOUT, n_in_time)


def test_the_largest_margin_ends_at_the_deadline(monkeypatch):
    block = block_of(*samples(np.random.default_rng(7), 40, sep=3.0), gamma=0.3)
    exact = largest_margin(block)
    outcome, statuses = trainings_until_late(monkeypatch, 1, block, np.inf, 1e-3)
    assert (outcome.status, statuses) == (TIMEOUT, [AT_ZERO, TIMEOUT])
    assert exact <= largest_margin(block, deadline=0.5) < np.inf


def test_factor_of_low_rank():
    X, y = samples(np.random.default_rng(9), 120)
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(-1))
    Z, residual = factor_of(K, 1e-6)
    assert Z.shape[0] < 40
    assert 0.0 <= residual.max() <= 1e-6
    assert np.abs(K - Z.T @ Z).max() <= residual.max() + 1e-12
    assert is_positive_semidefinite(new_block(K, y, 1e-6))
    assert not is_positive_semidefinite(new_block(K - 0.2 * np.eye(120), y, None))
    exact, low = (
        new_block(K, y, None),
        new_block(K, y, residual_target(np.full(120, 1.0), np.ones(120), 0.9, 1e-3)),
    )
    assert low.rank < exact.rank
    values = [solve(block, 1.0, 0.9)[0].certificate for block in (exact, low)]
    assert_allclose(values[0].decisions, values[1].decisions, atol=2e-2)
    assert max(value.gap for value in values) <= 1e-3


def largest_ellipsoid(X, y):
    """Centre of the largest ellipsoid (5) with r → 1 in the cone ‖w‖ ≤ 1, by a general solver."""
    d = X.shape[1]
    lower = np.tril_indices(d)

    def parts(x):
        E = np.zeros((d, d))
        E[lower] = x[: lower[0].size]
        E = E + E.T - np.diag(E.diagonal())
        return E, x[lower[0].size : -1], x[-1]

    def volume(x):
        sign, value = np.linalg.slogdet(parts(x)[0])
        return -value if sign > 0 else 1e3

    def slack(x):
        E, w, b = parts(x)
        return y * (X @ w + b) - np.linalg.norm(X @ E, axis=1)

    start = np.concatenate(((0.01 * np.eye(d))[lower], np.eye(d)[0] * 0.99, [0.0]))
    found = minimize(
        volume,
        start,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": slack},
            {"type": "ineq", "fun": lambda x: 1 - parts(x)[1] @ parts(x)[1]},
        ],
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    return parts(found.x)[1]


@pytest.mark.parametrize("d", [2, 3, pytest.param(5, marks=pytest.mark.full)])
def test_centres_are_near_that_of_the_largest_ellipsoid(d):
    """Over 12 sets for each d = 2 … 5, (7) is at most 0.09 rad off, and six rounds at most 0.21 rad."""
    rng = np.random.default_rng(10 + d)
    X, y = samples(rng, 16, d=d, sep=3.0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)  # ‖z‖ = 1, where (7) is the first linearisation of (5)
    block, r = block_of(X, y), 1 - 1e-6
    outcome, used_r, used_C = solve(block, np.inf, r, 1e-6)
    truth = largest_ellipsoid(X, y)

    def angle(result):
        w = block.Z @ result.certificate.coefficients
        return np.arccos(min(1.0, w @ truth / np.linalg.norm(w) / np.linalg.norm(truth)))

    again, _ = linearised_again(block, outcome, used_C, used_r, Limits(1e-6), 6)
    assert angle(outcome) < 0.1
    assert angle(again) < (0.02 if d == 2 else 0.25)  # six rounds hardly change it in the plane


def test_a_bias_that_is_not_unique_is_in_the_middle():
    """With a small C all samples are within their margins; an end of the interval gives one label to all."""
    rng = np.random.default_rng(11)
    X, y = samples(rng, 60, sep=1.0)
    for C in (1e-3, 1e-2):
        outcome, _, used_C = solve(block_of(X, y, gamma=0.5), C, 0.9)
        assert_allclose(outcome.alpha, used_C, rtol=1e-2)
        found = outcome.certificate
        points = found.omega * y - found.decisions
        middle = 0.5 * (points[y < 0].max() + points[y > 0].min())
        assert found.bias == pytest.approx(middle, rel=1e-6, abs=1e-9)
        assert (y * (found.decisions + found.bias) > 0).mean() > 0.8
