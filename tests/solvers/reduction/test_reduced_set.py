"""Reduced sets reduce the residual as their methods promise, and the bound on decisions holds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from solvers.kernels.functions import IMQ, LINEAR, POLY, RBF, Kernel, for_samples, kernel_block
from solvers.reduction.reduced_set.bound import bounds_at, error_bound
from solvers.reduction.reduced_set.choice import METHODS, reduce_expansion
from solvers.reduction.reduced_set.decisions import SquaredChange, decisions_at
from solvers.reduction.reduced_set.expansion import Expansion, best_coefficients
from solvers.reduction.reduced_set.greedy import pursue
from solvers.reduction.reduced_set.refine import Residual

KERNELS = [
    Kernel(RBF, 0.1),
    Kernel(IMQ, 0.1, 1.0),
    Kernel(POLY, 0.1, 1.0, 3.0),
    Kernel(LINEAR),
    Kernel(POLY, 0.2, 0.0, 2.0),
]


def expansion_of(kernel=KERNELS[0], n=80, P=3, seed=0, copies=0):
    """Random sums on digits, the last `copies` vectors being copies of the first."""
    rng = np.random.default_rng(seed)
    X = load_digits().data[rng.permutation(1797)[:n]] / 16.0
    X[n - copies :] = X[:copies]
    kernel, X = for_samples(kernel, X)
    labels = np.sort(rng.integers(0, 3, n))
    return Expansion(X, kernel, rng.normal(size=(n, P)), labels)


def decisions(X, vectors, coefficients, kernel):
    return kernel_block(X, vectors, kernel) @ coefficients


@pytest.mark.parametrize("method", METHODS)
def test_coefficients_are_the_best_ones(method):
    e = expansion_of()
    reduced = reduce_expansion(e, 20, method, 0)
    assert reduced.coefficients.shape == (20, 3)
    K_zz = kernel_block(reduced.vectors, reduced.vectors, e.kernel)
    K_zx = kernel_block(reduced.vectors, e.vectors, e.kernel)
    assert_allclose(K_zz @ reduced.coefficients, K_zx @ e.coefficients, atol=1e-8)


@pytest.mark.parametrize("method", ["greedy", "fixed_point"])
def test_more_vectors_never_raise_the_residual(method):
    e = expansion_of()
    residual = Residual(e)
    values = [residual.of(reduce_expansion(e, m, method, 0)) for m in (1, 2, 3, 5, 8, 12, 17)]
    assert (np.diff(values) <= 1e-10).all()


def test_greedy_takes_the_vector_of_the_largest_gain():
    """Each next residual is the least one over all vectors, by brute force."""
    e, pursuit = expansion_of(n=25), None
    residual = Residual(e)
    pursuit = pursue(e, 6)
    for k in range(6):
        chosen = pursuit.rows[:k]
        tried = []
        for row in set(range(25)) - set(chosen):
            Z = e.vectors[[*chosen, row]]
            B = best_coefficients(
                kernel_block(Z, Z, e.kernel), kernel_block(Z, e.vectors, e.kernel) @ e.coefficients
            )
            tried.append(
                (residual.of(reduce_expansion(e, 1, "greedy", 0)._replace(vectors=Z, coefficients=B)), row)
            )
        assert min(tried)[1] == pursuit.rows[k]


def test_backward_removes_the_vector_of_the_least_loss():
    e = expansion_of(n=20)
    kept = np.arange(20)
    while kept.size > 12:
        losses = []
        for row in kept:
            left = kept[kept != row]
            K = kernel_block(e.vectors[left], e.vectors[left], e.kernel)
            t = kernel_block(e.vectors[left], e.vectors, e.kernel) @ e.coefficients
            norms = (e.coefficients * (kernel_block(e.vectors, e.vectors, e.kernel) @ e.coefficients)).sum(
                axis=0
            )
            losses.append((-((t * np.linalg.solve(K, t)).sum(axis=0) / norms).sum(), row))
        kept = kept[kept != min(losses)[1]]
        assert_array_equal(reduce_expansion(e, kept.size, "backward", 0).rows, kept)


@pytest.mark.parametrize("method", METHODS)
def test_refining_never_raises_the_residual(method):
    e = expansion_of()
    residual = Residual(e)
    before, after = (residual.of(reduce_expansion(e, 10, method, steps)) for steps in (0, 30))
    assert after < before


@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "imq", "poly", "linear", "square"])
def test_gradient_is_that_of_differences(kernel):
    e = expansion_of(kernel, n=40)
    z = e.vectors[:4].ravel() + 0.1
    of_decisions = SquaredChange(kernel, decisions_at(e, e.vectors, e.labels, True), e.vectors[:4])
    for objective in (Residual(e), of_decisions):
        _, gradient = objective.with_gradient(z)
        rng = np.random.default_rng(0)
        for _ in range(20):
            u = rng.normal(size=z.size) * 1e-5
            difference = objective.with_gradient(z + u)[0] - objective.with_gradient(z - u)[0]
            assert difference == pytest.approx(2.0 * gradient @ u, abs=1e-6 * np.abs(gradient).max() * 1e-4)


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=["rbf", "imq", "poly"])
@pytest.mark.parametrize("is_voted", [False, True])
def test_fitting_to_decisions_lowers_their_change_on_the_samples_that_count(kernel, is_voted):
    """A pair of classes is compared at the samples of both; its coefficients are those of least squares."""
    e = expansion_of(kernel)
    X, y = e.vectors[::2], e.labels[::2]
    wanted = decisions_at(e, X, y, is_voted)
    counts = np.ones((len(X), 3), dtype=bool)
    if is_voted:
        counts = np.stack([y != 2, y != 1, y != 0], axis=1)
    assert_array_equal(wanted.counts, counts)
    before, fitted, moved = (
        reduce_expansion(e, 10, "greedy", *options) for options in ((0,), (0, wanted), (20, wanted))
    )
    change = SquaredChange(kernel, wanted, before.vectors)
    assert change.of(moved) < change.of(fitted) < change.of(before)
    K = kernel_block(X, before.vectors, kernel)
    for p in range(3):
        rows = counts[:, p]
        best = np.linalg.lstsq(K[rows], wanted.values[rows, p], rcond=None)[0]
        assert_allclose(
            K[rows] @ fitted.coefficients[:, p], K[rows] @ best, atol=1e-3 * np.abs(wanted.values).max()
        )


def test_many_samples_are_drawn_and_all_vectors_stay(monkeypatch):
    e = expansion_of()
    monkeypatch.setattr("solvers.reduction.reduced_set.decisions.MOST_SAMPLES", 20)
    found = decisions_at(e, e.vectors + 1.0, e.labels, False)
    assert_array_equal(found.samples[:80], e.vectors)
    assert len(np.unique(found.samples[80:], axis=0)) == 20
    assert (found.samples[80:, None] == e.vectors + 1.0).all(axis=2).any(axis=1).all()


@pytest.mark.parametrize("method", METHODS)
def test_all_vectors_are_the_same_sums(method):
    e = expansion_of()
    reduced = reduce_expansion(e, 80, method, 10)
    assert_array_equal(reduced.coefficients, e.coefficients)
    assert_array_equal(error_bound(e, reduced).norms, 0.0)


@pytest.mark.parametrize(("kernel", "most"), [(KERNELS[3], 3), (KERNELS[4], 3 * 64), (KERNELS[0], 60)])
def test_exact_sets_change_no_decision(kernel, most):
    """One vector a machine for linear, at most d for (x·z)², and one for all copies of a vector."""
    e = expansion_of(kernel, n=80 if kernel.kind != POLY else 700, copies=20 if kernel.kind == RBF else 0)
    reduced = reduce_expansion(e, None, "exact", 0)
    assert reduced.coefficients.shape[0] <= most
    X = load_digits().data[:300] / 16.0
    expected = decisions(X, e.vectors, e.coefficients, e.kernel)
    found = decisions(X, reduced.vectors, reduced.coefficients, e.kernel)
    assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_copies_collapse():
    e = expansion_of(n=60, copies=25)
    for method in ("greedy", "backward", "fixed_point"):
        reduced = reduce_expansion(e, 50, method, 0)
        assert len(np.unique(reduced.vectors.round(9), axis=0)) == reduced.coefficients.shape[0] <= 50
        if method != "fixed_point":
            assert reduced.coefficients.shape[0] == 35
            assert Residual(e).of(reduced) < 1e-12


def test_merged_vectors_stay_within_their_class():
    """A vector of one class at each end of a line: none may land between them."""
    X = np.concatenate([np.linspace(0.0, 1.0, 10), np.linspace(9.0, 10.0, 10)])[:, None]
    kernel, X = for_samples(Kernel(RBF, 0.5), X)
    e = Expansion(X, kernel, np.ones((20, 1)), np.repeat([0, 1], 10))
    for m in (1, 2, 5):
        reduced = reduce_expansion(e, m, "merge", 0)
        assert reduced.coefficients.shape[0] == max(m, 2)
        assert ((reduced.vectors <= 1.0) | (reduced.vectors >= 9.0)).all()
        assert_array_equal((reduced.vectors[:, 0] > 5.0).astype(int), reduced.labels)


def test_two_equal_vectors_merge_in_the_middle():
    """By hand: with equal coefficients and C = k(x, z) > exp(−2), h = ½ is the only maximum."""
    kernel, X = for_samples(Kernel(RBF, 1.0), np.array([[0.0], [0.8]]))
    reduced = reduce_expansion(Expansion(X, kernel, np.ones((2, 1)), np.zeros(2, int)), 1, "merge", 0)
    assert_allclose(reduced.vectors, [[0.4]], atol=1e-4)
    assert_allclose(reduced.coefficients, [[2.0 * np.exp(-0.16)]], rtol=1e-8)


def test_the_bound_holds_on_random_points(full_size):
    """On 10⁶ points of each of ten machines in full, and of the one that the bound is tight for."""
    n = 10**6 if full_size else 5_000
    methods = [*METHODS, "exact"]
    for seed in range(10):
        kernel = KERNELS[seed % 3] if methods[seed % 6] in ("greedy", "backward", "l1") else KERNELS[0]
        e = expansion_of(kernel, n=50, seed=seed)
        reduced = reduce_expansion(e, 10, methods[seed % 6], 5 * (seed % 2))
        bound, rng = error_bound(e, reduced), np.random.default_rng(seed)
        for _ in range(0, n, 5_000):
            X = e.vectors[rng.integers(0, 50, 5_000)] + rng.normal(size=(5_000, 64)) * rng.choice([0.01, 0.3])
            f = decisions(X, e.vectors, e.coefficients, e.kernel)
            g = decisions(X, reduced.vectors, reduced.coefficients, e.kernel)
            assert (np.abs(f - g) <= bounds_at(X, e.kernel, bound)).all()


def test_the_bound_is_the_norm_of_the_difference():
    e = expansion_of()
    for method in METHODS:
        reduced = reduce_expansion(e, 10, method, 0)
        V, C = (
            np.concatenate([e.vectors, reduced.vectors]),
            np.concatenate([e.coefficients, -reduced.coefficients]),
        )
        squares = (C * (kernel_block(V, V, e.kernel) @ C)).sum(axis=0)
        assert_allclose(error_bound(e, reduced).norms, np.sqrt(squares), rtol=1e-6)
