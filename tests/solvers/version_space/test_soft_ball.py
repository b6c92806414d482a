"""The soft ball of (2.134): its optimum, its radius, and its shares of samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from solvers import SoftBallSVC
from solvers.kernels.functions import RBF
from solvers.version_space.soft_ball import train_soft_ball
from solvers.version_space.soft_ball_interior import minimise_inside
from tests.solvers.version_space.dense_convex import quadratic_program
from tests.solvers.version_space.small_sets import random_problem


def ball_of(seed, n_max=30):
    problem, K, y = random_problem(seed, n_max, kind=RBF)
    nu = float(np.random.default_rng(seed).uniform(0.2, 1.0)) if seed % 7 else 1.0
    s = np.broadcast_to(problem.C, y.shape)
    box = s / (nu * s.sum())
    return problem, y * (K + 1.0) * y[:, None], nu, box


def dense_optimum(K, box):
    """Return the smallest αᵀK̃α."""
    n = box.size
    G, h = np.vstack([-np.eye(n), np.eye(n)]), np.concatenate([np.zeros(n), box])
    return 2.0 * quadratic_program(K, np.zeros(n), np.ones((1, n)), np.ones(1), G, h)[1]


def weights_of(solution, n):
    alpha = np.zeros(n)
    alpha[solution.support] = solution.alpha
    return alpha / alpha.sum()


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(54))
def test_the_optimum_is_that_of_a_dense_method(seed):
    problem, K, nu, box = ball_of(seed)
    solution = train_soft_ball(problem, nu, 1e-7, 1e8)
    square_norm = dense_optimum(K, box * (1 + 1e-13))
    assert solution.objective == pytest.approx(2.0 - square_norm, rel=1e-6)
    if square_norm < 1e-7:  # the hulls touch, or nearly so: 3 of the 54 problems
        assert solution.gap == 1.0 or not solution.converged
        return
    assert solution.converged, solution.stopping
    assert 2.0 - solution.objective == pytest.approx(square_norm, rel=1e-6)
    alpha = weights_of(solution, box.size)
    centre = K @ alpha
    distances = alpha @ centre - 2.0 * centre + 2.0  # ‖c − x̃_i‖²
    R2 = solution.square_radius
    primal = R2 + (box * np.maximum(0.0, distances - R2)).sum()
    assert primal == pytest.approx(2.0 - square_norm, rel=1e-6)
    free = (alpha > 1e-7 * box) & (alpha < (1 - 1e-7) * box)
    if free.any():
        assert_allclose(distances[free], R2, atol=1e-4 * R2)
    assert (alpha <= box * (1 + 1e-9)).all()


def test_the_gap_is_at_least_the_true_one(full_size):
    for seed in range(500 if full_size else 8):
        problem, _, nu, _ = ball_of(1000 + seed, n_max=(100 if seed % 10 else 300) if full_size else 40)
        found = {tol: train_soft_ball(problem, nu, tol, 1e8) for tol in (0.2, 1e-3)}
        if all(solution.gap == 1.0 for solution in found.values()):  # the hulls touch, or nearly so
            assert all(2.0 - solution.objective < 1e-6 for solution in found.values())
            continue
        exact = 2.0 - train_soft_ball(problem, nu, 1e-9, 1e8).objective
        for tol, solution in found.items():
            square_norm = 2.0 - solution.objective
            assert solution.gap >= 1.0 - exact / square_norm - 1e-15 / square_norm
            assert solution.gap <= tol or not solution.converged
            assert solution.converged or square_norm < 1e-6


def test_nu_bounds_the_shares(two_classes):
    X, y = two_classes
    for nu in (0.2, 0.4, 0.7, 1.0):
        model = SoftBallSVC(nu, gamma=0.5, tol=1e-6).fit(X, y)
        assert model.n_outside_[0] <= nu * y.size + 1e-9
        assert model.support_.size >= nu * y.size - 1e-9
    path = SoftBallSVC(gamma=0.5, tol=1e-6).fit_path(X, y, nus=[0.2, 0.7, 1.0])
    assert path.objective_[1] == pytest.approx(SoftBallSVC(0.7, gamma=0.5, tol=1e-6).fit(X, y).objective_)
    assert path.nus_.tolist() == [0.2, 0.7, 1.0]


def test_the_machine_is_that_of_nu_with_a_penalised_bias(two_classes):
    """(2.136) with ½‖w‖² + ½b² − ρ + Σ ζ_i/(m ν): C = 2/(m ν)² of the thesis's print, after scaling."""
    X, y = two_classes
    model = SoftBallSVC(0.5, gamma=0.5, tol=1e-8).fit(X, y)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1)) + 1.0
    label = np.where(y == 1, 1.0, -1.0)
    coefficients = np.zeros(y.size)
    coefficients[model.support_] = model.dual_coef_[0]
    assert model.intercept_[0] == pytest.approx(coefficients.sum())
    f, box = K @ coefficients, 1.0 / (0.5 * y.size)
    margins = label * f
    free = np.abs(margins - 1.0) < 1e-4  # the margin of free samples is 1
    assert free.sum() > 2
    alpha = label * coefficients / (label * coefficients).sum()
    assert_allclose(alpha[margins < 1 - 1e-3], box)
    assert (alpha[margins > 1 + 1e-3] == 0.0).all()


def test_touching_hulls_are_named():
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    with pytest.warns(UserWarning, match="raise nu"):
        model = SoftBallSVC(0.5, gamma=1.0).fit(X, [0, 0, 1, 1])
    assert (model.fit_status_, model.converged_) == (3, False)
    with pytest.warns(UserWarning, match="No nu separates"):
        SoftBallSVC(1.0, gamma=1.0).fit(np.ones((4, 1)), [0, 0, 1, 1])


def test_what_is_refused(two_classes):
    X, y = two_classes
    for nu in (0.0, 1.2, -1.0):
        with pytest.raises(ValueError, match="nu"):
            SoftBallSVC(nu).fit(X, y)
    with pytest.raises(ValueError, match="at most 1"):
        SoftBallSVC().fit_path(X, y, nus=[0.5, 1.5])
    with pytest.raises(TypeError, match="C"):
        SoftBallSVC(C=1.0)


def near_touching(n, seed):
    """Two wide clouds of many samples under a flat kernel: ‖c‖² is some 10⁻⁸ of the diagonal."""
    generator = np.random.default_rng(seed)
    y = np.repeat([-1.0, 1.0], n // 2)
    X = generator.standard_normal((n, 6)) + 0.2 * y[:, None]
    return X, y


def test_hulls_that_nearly_touch_are_certified():
    """Steps of pairs alone need millions of steps here, and stall before the certificate holds."""
    X, y = near_touching(200, 0)
    for nu in (0.1, 0.5):
        model = SoftBallSVC(nu, gamma=0.01).fit(X, y)
        assert model.converged_
        assert model.gap_ <= model.tol
        assert model.n_iter_[0] <= 2 * 50 * y.size
        assert 2.0 - model.objective_ < 1e-4


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(30))
def test_the_interior_point_method_finds_the_optimum_of_a_dense_method(seed):
    _, K, nu, box = ball_of(seed)
    if nu == 1.0:
        return  # all weights are at their bounds
    alpha = minimise_inside(K, box, 1e-9, 1e-14, lambda: None)
    assert (alpha >= 0.0).all()
    assert (alpha <= box).all()
    assert alpha.sum() == pytest.approx(1.0, abs=1e-12)
    assert alpha @ K @ alpha == pytest.approx(dense_optimum(K, box), rel=1e-6, abs=1e-12)


def test_the_interior_point_method_ends_at_its_deadline():
    def late():
        raise TimeoutError

    X, y = near_touching(20, 1)
    with pytest.raises(TimeoutError):
        minimise_inside(y * (X @ X.T + 1.0) * y[:, None], np.full(20, 0.1), 1e-9, 0.0, late)
