"""Newton's method on the free weights of a block stays in the box and lowers the objective."""

import numpy as np
import pytest
from scipy.linalg import lapack
from sklearn.metrics.pairwise import rbf_kernel

from solvers.margin.newton_face import (
    FIRST_PROXIMITY,
    MAX_PROXIMITY,
    MIN_PROXIMITY,
    BlockPoint,
    _Planes,
    gather_packed,
    newton_on_face,
)


def face(box, ridge, seed=0):
    """Return a point in a box, many of whose weights are free, and values of the kernel less 1."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((120, 5)), np.arange(120) % 2 * 2.0 - 1.0
    K = rbf_kernel(X, gamma=2.0) + ridge * np.eye(120)
    beta = rng.permutation(np.repeat([-0.5, 0.5], 60)) * box
    low, high = np.full(120, -box), np.full(120, box)
    beta[:5], low[:5] = high[:5], 0.0
    values = np.zeros((120, 128), np.float32)
    values[:, :120] = rbf_kernel(X, gamma=2.0) - 1.0
    return K, values, y, beta, low, high, K @ beta - y


@pytest.mark.parametrize("proximity", [1e-9, 1e-4, 1e-2])
@pytest.mark.parametrize(("box", "ridge"), [(0.01, 0.0), (0.3, 0.0), (1e6, 0.0), (1e6, 0.5)])
def test_newton_across_bounds_is_feasible_and_lowers_the_objective(box, ridge, proximity):
    K, values, y, beta, low, high, F = face(box, ridge)
    total, before = beta.sum(), 0.5 * beta @ (F - y)
    point = BlockPoint(values, 1.0, np.full(120, ridge), F, beta, low, high)
    moved, _ = newton_on_face(point, 1e-3, proximity)
    assert moved
    assert (low <= beta).all()
    assert (beta <= high).all()
    assert beta.sum() == pytest.approx(total, abs=1e-9 * box)
    np.testing.assert_allclose(
        F - F.mean(), (K @ beta - y) - (K @ beta - y).mean(), atol=1e-4 * max(1.0, box)
    )
    assert 0.5 * beta @ (K @ beta - 2 * y) < before
    if box > 1.0 and proximity < 1e-8:  # no bound interferes with the minimum over the free weights
        free = (low < beta) & (beta < high)
        assert np.ptp((K @ beta - y)[free]) < 1e-6 * box


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize(("n_dropped", "n_new"), [(0, 0), (2, 0), (0, 3), (3, 2)])
def test_rows_that_are_nearly_those_of_a_factor_are_solved_by_it(shift, n_dropped, n_new):
    rng = np.random.default_rng(n_dropped)
    X = rng.random((160, 3))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1)).astype(np.float32)
    ridge = rng.uniform(1e-4, 1e-3, 160)
    planes, free = _Planes(K, shift, ridge), np.arange(160) % 4 != 0
    planes.minimum(free, rng.standard_normal(120), 0.0)
    free[np.flatnonzero(free)[7 : 7 + n_dropped]] = False
    free[4 * np.arange(n_new)] = True
    n = np.count_nonzero(free)
    pull, factor = rng.standard_normal(n), planes._factor
    x = planes.minimum(free, pull, 2.5)
    assert planes._factor is factor
    assert x.sum() == pytest.approx(2.5, abs=1e-6)
    left = (K.astype(float)[free][:, free] + shift) @ x + ridge[free] * x - pull
    assert np.ptp(left) < 1e-9 * np.abs(x).max()


@pytest.mark.parametrize("box", [0.01, 0.3, 7.0, 1e3])
def test_newton_across_bounds_ends_at_the_minimum_in_the_box(box):
    """Steps alone lead there: weights at bounds are released if their gradient requires it."""
    K, values, y, beta, low, high, F = face(box, ridge=1e-3, seed=1)
    point, proximity = BlockPoint(values, 1.0, np.full(120, 1e-3), F, beta, low, high), FIRST_PROXIMITY
    for _ in range(60):
        moved, proximity = newton_on_face(point, 1e-4, proximity)
        assert MIN_PROXIMITY <= proximity <= MAX_PROXIMITY
        assert ((low <= beta) & (beta <= high)).all()
        level = K @ beta - y
        violation = level[beta > low].max() - level[beta < high].min()
        if violation < 2e-4 or not moved:
            break
    assert violation < 1e-3


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7, 50])
def test_packed_matrices_are_those_of_lapack(n):
    rng = np.random.default_rng(n)
    K, rows, ridge = rng.random((60, 64)).astype(np.float32), rng.permutation(60)[:n], rng.random(n)
    K[:, :60] += K[:, :60].T
    packed = np.full(n * (n + 1) // 2, np.nan)
    gather_packed(K, rows, 0.5, ridge, packed)
    whole = K[np.ix_(rows, rows)].astype(float) + 0.5 + np.diag(ridge)
    expected, _ = lapack.dtrttf(whole, transr="N", uplo="L")
    np.testing.assert_array_equal(packed, expected)
