"""The enclosing ellipsoid reaches its optimum, and the machine in its metric learns what theory says."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from solvers import SMOSVC, EllipsoidalKernelSVC
from solvers.kernels.functions import LINEAR
from solvers.version_space.ellipsoidal_kernel import EllipsoidalKernel
from solvers.version_space.enclosing_ellipsoid import Samples, enclose, mean_diagonal
from tests.messages import raises
from tests.solvers.version_space.small_sets import random_problem, signed_weights

NONE = np.empty((0, 0))


def dense_optimum(K, eta, limit):
    """Return the largest log|I + S/η| − Σ λ, by L-BFGS."""
    n = limit.size

    def parts(weights):
        p = weights / weights.sum()
        means = K @ p
        K_c = K - means[:, None] - means + p @ means
        M = np.eye(n) + (K_c / eta) * weights
        K_E = np.linalg.solve(M, K_c / eta)
        return np.linalg.slogdet(M)[1] - weights.sum(), np.diag(K_E) - 1.0

    def negative(weights):
        value, slope = parts(np.maximum(weights, 1e-12))
        return -value, -slope

    start = np.minimum(limit, 0.5)
    bounds = [(1e-12, None if np.isinf(e) else e) for e in limit]
    found = minimize(negative, start, jac=True, bounds=bounds, method="L-BFGS-B",
                     options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000})  # fmt: skip
    return -found.fun


def objective(K, eta, weights):
    p = weights / weights.sum()
    means = K @ p
    K_c = K - means[:, None] - means + p @ means
    return np.linalg.slogdet(np.eye(p.size) + K_c * weights / eta)[1] - weights.sum()


def values_in_features(X, eta, limit, weights):
    """Return both objectives of the ellipsoid from matrices of the samples' space: primal and dual."""
    p = weights / weights.sum()
    centred = X - p @ X
    M = eta * np.eye(X.shape[1]) + (centred.T * weights) @ centred
    P = np.linalg.inv(M)
    distances = np.einsum("ij,jk,ik->i", centred, P, centred)
    if np.isinf(limit).any():  # no sample may be outside
        factor = max(1.0, distances.max())
        P, distances = P / factor, distances / factor
    outside = np.maximum(distances - 1.0, 0.0) if np.isfinite(limit).all() else np.zeros(len(X))
    loss = float((np.where(np.isfinite(limit), limit, 0.0) * outside).sum())
    primal = -np.linalg.slogdet(P)[1] + eta * np.trace(P) + loss
    return primal, np.linalg.slogdet(M)[1] - weights.sum() + X.shape[1]


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(54))
def test_the_optimum_is_that_of_a_dense_method(seed):
    problem, K, y = random_problem(seed, n_max=20)
    n, ridge = y.size, [1e-3, 1e-2, 0.1][seed % 3]
    limit = np.full(n, [np.inf, 0.5, 0.2][seed // 3 % 3])
    sets = [Samples(K, NONE)]
    if problem.kernel.kind == LINEAR:
        sets.append(Samples(NONE, problem.X))
    eta = ridge * mean_diagonal(sets[0], np.full(n, 1.0 / n))
    optimum = dense_optimum(K, eta, limit)
    for samples in sets:
        ellipsoid, gap, _, _ = enclose(samples, eta, limit, 1e-8, 10**6, np.inf)
        value = objective(K, eta, ellipsoid.weights)
        assert gap <= 1e-8
        if samples.X.size:
            primal, dual = values_in_features(samples.X, eta, limit, ellipsoid.weights)
            assert dual <= primal + 1e-9 * abs(primal)
            assert primal == pytest.approx(dual, rel=1e-6, abs=1e-6 * y.size)
        assert value == pytest.approx(optimum, rel=1e-6, abs=1e-6)
        assert gap * samples.dimension >= optimum - value - 1e-7
        distances = ellipsoid.distances()
        inside = ellipsoid.weights < limit * (1 - 1e-9)
        assert (distances[inside] <= 1.0 + 1e-4).all()
        assert_allclose(distances[inside & (ellipsoid.weights > 1e-6)], 1.0, atol=1e-2)
        # tr(SP) = dimension − η tr P in the span.
        assert ellipsoid.weights @ distances <= samples.dimension


def metric_of(seed, n_max, tol):
    """Return a subproblem, and its kernel in the metric of an ellipsoid to a tolerance."""
    rng = np.random.default_rng(seed)
    problem, _, y = random_problem(seed, n_max, C=10.0 ** rng.uniform(-2, 6))
    slack = np.inf if seed % 3 else 10.0 ** rng.uniform(-1.0, 0.5)
    weights = problem.C / problem.C.max() * np.ones(y.size)
    options = slack, 10.0 ** rng.uniform(-4, -1), tol, 1e9
    return replace(problem, max_iter=500_000), y, EllipsoidalKernel(problem, weights, *options)


def test_gaps_are_bounds(full_size):
    """Gaps of the ellipsoid and of the machine, against the best ellipsoid and machine that are known."""
    converged = []
    for seed in range(500 if full_size else 12):
        n_max = 300 if full_size else 40
        best = metric_of(3000 + seed, n_max, 1e-6)[2].ellipsoid
        for tol in (0.1, 1e-3):
            problem, y, metric = metric_of(3000 + seed, n_max, tol)
            samples, weights = metric.ellipsoid.samples, metric.ellipsoid.weights
            K = samples.X @ samples.X.T if samples.X.size else samples.K
            optimum, value = (objective(K, best.eta, found) for found in (best.weights, weights))
            rounding = 1e-9 * (abs(optimum) + weights.sum())
            assert metric.gap * max(samples.dimension, 1) >= optimum - value - rounding
            K_E, C = metric.ellipsoid.kernel(), np.broadcast_to(problem.C, y.shape)
            exact, found = (metric.solve(problem, precision) for precision in (1e-9, tol))
            values = []
            for solution in (exact.inner, found.inner):
                theta = signed_weights(solution, y)
                f = K_E @ theta + solution.bias[0]
                values.append(0.5 * theta @ K_E @ theta + C @ np.maximum(0.0, 1.0 - y * f))
            assert found.gap >= (values[1] - values[0]) / values[1]
            assert found.gap >= metric.gap
            assert found.gap <= tol or not found.converged
            converged.append(found.converged)
    assert np.mean(converged) > 0.75  # rounding limits the largest values of C


def test_without_a_ridge_a_nonsingular_matrix_teaches_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 6))
    K = np.exp(-2.0 * ((X[:, None] - X[None]) ** 2).sum(-1))
    ellipsoid, _, _, _ = enclose(Samples(K, NONE), 1e-7, np.full(14, np.inf), 1e-6, 10**6, np.inf)
    assert_allclose(ellipsoid.weights, 13 / 14, atol=1e-5)
    assert_allclose(ellipsoid.kernel(), 14 / 13 * (np.eye(14) - 1 / 14), atol=1e-5)


@pytest.mark.parametrize("cache_size", [1000, 0.2])
def test_a_linear_kernel_without_a_ridge_does_not_see_affine_maps(two_classes, cache_size):
    X, y = two_classes
    A = np.array([[3.0, 0.2, 0, 1], [0, 0.5, 0.3, 0], [1, 0, 20.0, 0], [0, 0, 0, 0.7]])
    options = {"kernel": "linear", "C": 2.0, "ridge": 1e-9, "tol": 1e-6, "cache_size": cache_size}
    first = EllipsoidalKernelSVC(**options).fit(X, y)
    second = EllipsoidalKernelSVC(**options).fit(X @ A + 5.0, y)
    assert_allclose(second.decision_function(X @ A + 5.0), first.decision_function(X), atol=2e-3)
    svm = [SMOSVC(C=2.0, kernel="linear").fit(Z, y).decision_function(Z) for Z in (X, X @ A + 5.0)]
    assert np.abs(svm[0] - svm[1]).max() > 0.1


def test_features_and_kernel_values_give_the_same_machine(two_classes):
    X, y = two_classes
    linear = EllipsoidalKernelSVC(kernel="linear", C=3.0, tol=1e-6).fit(X, y)
    table = EllipsoidalKernelSVC(kernel="precomputed", C=3.0, tol=1e-6).fit(X @ X.T, y)
    assert_allclose(table.decision_function(X @ X.T), linear.decision_function(X), atol=1e-3)
    assert table.objective_ == pytest.approx(linear.objective_, rel=1e-4)
    # A decision is w·x + b with the w of the metric: the machine of SMOSVC on the whitened features.
    assert_allclose(linear.coef_ @ X.T + linear.intercept_, linear.decision_function(X)[None], atol=1e-8)
    assert linear.ellipsoid_gap_ <= 1e-6


def test_what_is_refused(two_classes):
    X, y = two_classes
    with raises(ValueError, "EllipsoidalKernelSVC", "all samples of a subproblem are equal", "gamma"):
        EllipsoidalKernelSVC().fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 1])
    for shift in (1e-6, 0.5, 50.0):  # the last makes the trace of the kernel matrix negative
        K = X @ X.T - shift * np.eye(y.size)
        with raises(ValueError, "positive semidefinite", f"eigenvalue {-shift:.3g}", "kernel='rbf'"):
            EllipsoidalKernelSVC(kernel="precomputed").fit(K, y)
    for K in (X @ X.T, (X @ X.T).astype(np.float32), X @ X.T - 1e-14 * np.eye(y.size)):
        EllipsoidalKernelSVC(kernel="precomputed").fit(K, y)
    for name, value in {"slack": 0.0, "ridge": 0.0, "C": -1.0}.items():
        with raises(ValueError, name, "EllipsoidalKernelSVC", f"Got {value}"):
            EllipsoidalKernelSVC(**{name: value}).fit(X, y)
    with pytest.raises(MemoryError, match=r"cache_size=0\.1 MB allows 55 samples"):
        EllipsoidalKernelSVC(cache_size=0.1).fit(X, y)
