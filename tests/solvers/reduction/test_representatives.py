"""The representative set satisfies the identities and inequalities of Nandan et al. (2014)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from solvers.common.status import LIMIT
from solvers.kernels.functions import GRAM, IMQ, RBF, Kernel, for_samples
from solvers.reduction import extreme_points
from solvers.reduction.representatives import Representatives, derive_rs
from tests.messages import raises
from tests.solvers.reduction.reduced_problems import (
    broken_identities,
    optimum,
    random_problem,
    random_sample,
    squared_errors,
)


def derived(problem, seed, **options):
    """Return the representatives of a random problem in several blocks, and their ε."""
    rng = np.random.default_rng(seed)
    epsilon = 10.0 ** rng.uniform(-5, -1) * np.diagonal(problem.K).max()
    V = int(rng.integers(2, 80))
    options = {"V": V, "P": int(rng.integers(V, 160)), "first_level": f"fls{1 + seed % 3 % 2}"} | options
    weight = problem.weight
    return derive_rs(problem.X, problem.y, problem.kernel, epsilon, sample_weight=weight, **options), epsilon


def test_identities_hold_on_random_problems(full_size):
    for seed in range(300 if full_size else 24):
        problem = random_problem(seed, 501 if full_size else 160)
        found, epsilon = derived(problem, seed)
        assert broken_identities(problem, found, epsilon) == [], seed


def test_a_random_sample_fails_them():
    for seed in range(8):
        problem = random_problem(seed)
        rows, beta, gamma = random_sample(problem, 0.4, seed)
        errors = squared_errors(problem.K, gamma, rows)
        sample = Representatives(rows, beta, gamma, errors, 0, 0.0)
        broken = broken_identities(problem, sample, 1e-2)
        assert {"epsilon", "sum of beta"} <= set(broken)


def test_the_steps_of_the_paper_exceed_epsilon():
    """Step 4 as printed keeps candidates for the later checks, so two of them may represent each other."""
    largest = []
    for seed in range(1, 41, 4):
        problem = random_problem(seed, kinds=(RBF,))
        found, epsilon = derived(problem, seed, repair=False, V=80, P=160)
        assert_allclose(
            np.maximum(squared_errors(problem.K, found.gamma, found.rows), 0.0), found.errors, atol=1e-12
        )
        largest.append(found.errors.max() / epsilon)
    assert max(largest) > 1.0 + 1e-6


def test_corollary_3(full_size):
    """F1* − F2* ≤ C √(C ε) with C = C' Σs and the largest error as ε, where that is less than C."""
    n_tested = 0
    for seed in range(300 if full_size else 40):
        problem = random_problem(seed)
        found, _ = derived(problem, seed)
        total, worst = problem.weight.sum(), found.errors.max()
        if worst < 1e-6:  # C would be so large that the reference does not converge
            continue
        for C in (0.5 / (worst * total), 0.01 / (worst * total)):
            F1, _ = optimum(problem.K, problem.y, C * problem.weight)
            K = problem.K[np.ix_(found.rows, found.rows)]
            F2, _ = optimum(K, problem.y[found.rows], C * found.beta)
            C_total = C * total
            assert C_total * np.sqrt(C_total * worst) + 1e-9 * F1 >= F1 - F2
            n_tested += 1
    assert n_tested > 10


@pytest.mark.parametrize("kind", [RBF, IMQ])
def test_a_small_epsilon_keeps_the_distinct_samples(kind):
    for seed in range(4):
        problem = random_problem(seed, kinds=(kind,))
        found = derive_rs(
            problem.X, problem.y, problem.kernel, 1e-13, sample_weight=problem.weight, V=40, P=80
        )
        is_used = problem.weight > 0.0
        distinct = np.unique(np.column_stack((problem.X, problem.y))[is_used], axis=0)
        assert found.rows.size == distinct.shape[0]


def test_weights_are_copies():
    """A weight and that many copies give the same set."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.where(X[:, 0] > 0.0, 1, -1)
    weight = rng.integers(0, 4, 90)
    kernel, X = for_samples(Kernel(RBF, 0.3), X)
    by_weight = derive_rs(X, y, kernel, 1e-2, sample_weight=weight.astype(float), V=30, P=50)
    rows = np.repeat(np.arange(90), weight)
    by_copies = derive_rs(X[rows], y[rows], kernel, 1e-2, V=30, P=50)
    assert_array_equal(X[by_weight.rows], X[rows[by_copies.rows]])
    assert_allclose(by_weight.beta, by_copies.beta, rtol=1e-12)
    assert_allclose(by_weight.errors[rows], by_copies.errors, atol=1e-15)
    assert_allclose(by_weight.gamma[rows].toarray(), by_copies.gamma.toarray(), atol=1e-15)


def test_sparse_gram_and_threads_agree_with_dense():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 12)) * (rng.random((150, 12)) < 0.4)
    X[140:] = X[:10]
    y = np.where(X[:, 0] + X[:, 1] > 0.0, 1, 0)
    kernel, Z = for_samples(Kernel(RBF, 0.2), X)
    dense = derive_rs(Z, y, kernel, 1e-2, V=40, P=80)
    same = derive_rs(Z, y, kernel, 1e-2, V=40, P=80, n_jobs=3)
    assert_array_equal(dense.beta, same.beta)
    assert_array_equal(dense.gamma.toarray(), same.gamma.toarray())
    sparse_kernel, S = for_samples(Kernel(RBF, 0.2), sparse.csr_matrix(X))
    csr = derive_rs(S, y, sparse_kernel, 1e-2, V=40, P=80)
    # Pivots of a Gram matrix are those of its diagonal, which is constant here: compare one block a class.
    K = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=2))
    gram, whole = derive_rs(K, y, Kernel(GRAM), 1e-2), derive_rs(Z, y, kernel, 1e-2)
    for a, b in ((dense, csr), (gram, whole)):
        assert_array_equal(a.rows, b.rows)
        assert_allclose(a.beta, b.beta, atol=1e-6)


def test_what_bad_input_gets():
    X, y, kernel = np.eye(4), np.array([0, 0, 1, 1]), Kernel(RBF, 1.0)
    for epsilon in (0.0, -1.0, np.inf, np.nan):
        with raises(ValueError, "epsilon"):
            derive_rs(X, y, kernel, epsilon)
    for V, P in ((1, 10), (20, 10)):
        with raises(ValueError, "V", "P"):
            derive_rs(X, y, kernel, 1e-3, V=V, P=P)
    for weight in ([1, 1, np.nan, 1], [1, 1, np.inf, 1], [1, -1, 1, 1], [1, 1]):
        with raises(ValueError, "sample_weight"):
            derive_rs(X, y, kernel, 1e-3, sample_weight=np.array(weight))
    with raises(ValueError, "first_level"):
        derive_rs(X, y, kernel, 1e-3, first_level="fls3")
    indefinite = np.array([[1.0, 3.0], [3.0, 1.0]])
    with raises(ValueError, "positive semidefinite"):
        derive_rs(indefinite, np.zeros(2), Kernel(GRAM), 1e-3)


def test_a_ball_that_does_not_converge_is_refused(monkeypatch):
    monkeypatch.setattr(extreme_points, "enclosing_ball", lambda *arguments: LIMIT)
    X = np.random.default_rng(0).normal(size=(30, 2))
    with raises(ValueError, "ball", "15 samples", "converge", "V"):
        derive_rs(X, np.arange(30) % 2, Kernel(RBF, 1.0), 1e-3)


def test_a_large_epsilon_keeps_the_ball():
    X = np.random.default_rng(2).normal(size=(60, 2))
    kernel, X = for_samples(Kernel(RBF, 1.0), X)
    found = derive_rs(X, np.arange(60) % 2, kernel, 100.0)
    assert 4 <= found.rows.size < 60
    single = derive_rs(X, np.arange(60) == 7, kernel, 100.0)
    assert 7 in single.rows
    assert single.beta[single.rows == 7] == 1.0
