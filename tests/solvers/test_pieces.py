"""The building blocks, each against a plain computation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from solvers.common.pair_selection import GMDM, IMDM, MDM, best_partner, choose_partner, lowest_support
from solvers.gram.block import largest_value, lowest_value
from solvers.hull.bias import class_biases
from solvers.hull.block_descent import starts_among
from solvers.hull.draws import draw, draw_first, first_below, random_below
from solvers.hull.stopping import ADJMN, CORE, MEB, MN, VIOLATION, default_tolerance, violation_threshold
from solvers.kernels.functions import (
    IMQ,
    KINDS,
    LINEAR,
    POLY,
    RBF,
    SIGMOID,
    Kernel,
    finish_kernel,
    kernel_block,
    kernel_diagonal,
    sum_terms,
)
from solvers.multiclass import pairwise_decisions, votes

SAMPLES = np.random.default_rng(0).standard_normal((30, 7))
OTHERS = np.random.default_rng(1).standard_normal((11, 7))
REFERENCE = {
    LINEAR: lambda A, B: A @ B.T,
    POLY: lambda A, B: pairwise.polynomial_kernel(A, B, degree=3, gamma=0.3, coef0=1.0),
    RBF: lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.3),
    SIGMOID: lambda A, B: pairwise.sigmoid_kernel(A, B, gamma=0.3, coef0=1.0),
    IMQ: lambda A, B: 1 / np.sqrt(0.3 * pairwise.euclidean_distances(A, B, squared=True) + 1.0),
}


@pytest.mark.parametrize("kind", REFERENCE)
def test_kernel_values(kind):
    kernel = Kernel(kind, 0.3, 1.0, 3.0)
    expected = REFERENCE[kind](SAMPLES, OTHERS)
    assert_allclose(kernel_block(SAMPLES, OTHERS, kernel), expected, rtol=1e-12)
    assert_allclose(
        kernel_block(sparse.csr_matrix(SAMPLES), sparse.csr_matrix(OTHERS), kernel), expected, rtol=1e-12
    )
    assert_allclose(kernel_diagonal(SAMPLES, kernel), np.diag(REFERENCE[kind](SAMPLES, SAMPLES)), rtol=1e-7)
    row = np.empty(25)
    sum_terms(np.ascontiguousarray(SAMPLES.T), 5, OTHERS[3], kind in (RBF, IMQ), row)
    finish_kernel(kind, 0.3, 1.0, 3.0, row)
    assert_allclose(row, expected[5:, 3], rtol=1e-12)


def test_exponential_is_right_to_the_last_place():
    x = -np.concatenate([np.linspace(0, 708, 100_001), np.geomspace(1e-300, 708, 100_001)])
    out = -x
    finish_kernel(RBF, 1.0, 0.0, 0.0, out)
    assert_allclose(out, np.exp(x), rtol=4.5e-16)
    far = np.array([1e4, 1e300, np.inf])
    finish_kernel(RBF, 1.0, 0.0, 0.0, far)
    assert_allclose(far, 0.0, atol=1e-300)


def test_equal_samples_are_at_no_distance():
    features = np.full((7, 3), 1e8)
    out = np.empty(3)
    sum_terms(features, 0, np.full(7, 1e8), True, out)
    assert_array_equal(out, 0.0)


def test_every_kernel_name_has_a_kind():
    assert set(REFERENCE) | {KINDS["precomputed"]} == set(KINDS.values())


def partner(pair, exponent, v, K, g, alpha, support):
    args = (K[v], g, alpha, np.diag(K).copy(), support.astype(np.uint32), support.size, np.empty(g.size))
    return choose_partner(pair, exponent, v, *args)


@pytest.mark.parametrize("seed", range(20))
def test_partner_is_the_best_by_its_definition(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 5))
    K = X @ X.T + np.eye(20)
    g = rng.standard_normal(20)
    support = rng.permutation(20)[:12]
    alpha = np.zeros(20)
    alpha[support] = rng.random(12) / 3
    v = 0
    ahead = g - g[v]
    D = np.diag(K) + K[v, v] - 2 * K[v]
    D[v] = 1.0
    beta = np.minimum(ahead / D, alpha)
    gains = {
        MDM: ahead,
        IMDM: beta * (2 * ahead - beta * D),
        GMDM: ahead / D**0.2,
    }
    for pair, gain in gains.items():
        allowed = [p for p in support if ahead[p] > 0]
        expected = max(allowed, key=lambda p: gain[p]) if allowed else -1
        assert partner(pair, 0.4, v, K, g, alpha, support) == expected
        assert best_partner(pair, 0.4, g, alpha, K[v], np.diag(K).copy(), v) == expected
    for exponent in (0.5, 1.0):
        expected = partner(GMDM, exponent, v, K, g, alpha, support)
        assert best_partner(GMDM, exponent, g, alpha, K[v], np.diag(K).copy(), v) == expected
    assert lowest_support(g, support.astype(np.uint32), 12, np.empty(20)) == support[g[support].argmin()]


def test_no_partner_where_nobody_lies_ahead():
    K, g = np.eye(3), np.array([1.0, 0.5, -2.0])
    assert partner(IMDM, 1.0, 0, K, g, np.full(3, 1 / 3), np.arange(3)) == -1


def test_thresholds():
    assert violation_threshold(MN, 0.1, 0.5, 3.0) == pytest.approx(0.5 * 0.81)
    assert violation_threshold(VIOLATION, 0.19, 0.5, 3.0) == pytest.approx(0.5 * 0.81)
    assert violation_threshold(ADJMN, 0.1, 0.75, 3.0) == pytest.approx(0.75 - 0.1 * 1.5)
    # At the threshold of a ball, the squared distance τ̃ − 2 g + w² is (1 + ε)² R².
    g = violation_threshold(MEB, 0.1, 0.5, 3.0)
    assert 3.0 - 2 * g + 0.5 == pytest.approx(1.21 * 3.0)
    g = violation_threshold(CORE, 0.1, 0.5, 3.0)
    assert 3.0 - 2 * g + 0.5 == pytest.approx(1.21 * 2.5)


def test_tolerance_of_the_papers():
    assert default_tolerance(MN, 3.0, 1.0) == default_tolerance(ADJMN, 3.0, 1.0) == 1e-3
    grid = [default_tolerance(MEB, 2.0 + 1 / C, C) for C in 4.0 ** np.arange(-2, 6)]
    assert max(grid) == pytest.approx(5.9e-5, rel=0.01)
    assert min(grid) == pytest.approx(5.3e-7, rel=0.01)


def test_random_numbers_are_even():
    state = np.array([12345], np.uint64)
    counts = np.bincount([random_below(state, 10) for _ in range(100_000)], minlength=10)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 27.9  # χ², 9 degrees of freedom, p = 0.001


@pytest.mark.parametrize(("fair", "share"), [(True, 0.5), (False, 0.1)])
def test_fair_draws_visit_classes_alike(fair, share):
    state, class_start = np.array([99], np.uint64), np.array([0, 100, 1000])
    drawn = np.array([draw(state, class_start, fair) for _ in range(20_000)])
    assert (drawn < 100).mean() == pytest.approx(share, abs=0.02)
    assert drawn.min() >= 0
    assert drawn.max() < 1000
    assert np.unique(drawn[drawn < 100]).size == 100


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_first_below(n):
    g = np.ones(n)
    assert first_below(g, 0.5) == -1
    g[n - 1] = 0.0
    assert first_below(g, 0.5) == n - 1
    g[n // 2] = 0.0
    assert first_below(g, 0.5) == n // 2


def test_pairwise_decisions_are_those_of_libsvm():
    X, y = load_iris(return_X_y=True)
    theirs = SVC(gamma=0.5, decision_function_shape="ovo").fit(X, y)
    K = pairwise.rbf_kernel(X, theirs.support_vectors_, gamma=0.5)
    start = np.concatenate(([0], np.cumsum(theirs.n_support_)))
    decisions = pairwise_decisions(K, theirs.dual_coef_, theirs.intercept_, start)
    assert_allclose(decisions, theirs.decision_function(X), atol=1e-12)
    assert_array_equal(votes(decisions, 3).argmax(axis=1), theirs.predict(X))
    theirs.set_params(decision_function_shape="ovr")
    assert_allclose(votes(decisions, 3), theirs.decision_function(X), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_average_bias_is_that_of_the_thesis(n_classes):
    """(5.24) and (5.28) written out."""
    rng = np.random.default_rng(0)
    label, alpha, C = np.arange(20) % n_classes, rng.random(20), 3.0
    alpha /= alpha.sum()
    products = np.where(label[:, None] == label[None], 1.0, -1 / (n_classes - 1))
    K = pairwise.rbf_kernel(rng.standard_normal((20, 3)))
    theoretic = np.where(np.arange(n_classes)[:, None] == label[None], 1.0, -1 / (n_classes - 1)) @ alpha
    g = (products * (K + 1)) @ alpha + alpha / C
    w2 = alpha @ g
    assert_allclose(class_biases("theoretic", label, alpha, g, w2, n_classes), theoretic)
    assert_array_equal(class_biases("none", label, alpha, g, w2, n_classes), 0.0)
    average = class_biases("average", label, alpha, g, w2, n_classes)
    if n_classes == 2:
        y = np.where(label == 0, 1.0, -1.0)
        expected = np.mean(y * (w2 - alpha / C) - K @ (alpha * y))
        assert_allclose(average, [expected, -expected])
    else:
        each = w2 - alpha / C - (products * K) @ alpha
        assert_allclose(average, [each[label == t].mean() for t in range(n_classes)])


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_first_samples_are_those_drawn_without_repetition(count):
    class_start, drawn = np.array([0, 4, 10, 12]), np.array([9], np.uint64)
    samples = draw_first(np.array([9], np.uint64), class_start, count)
    expected = [random_below(drawn, 12)] if count == 1 else []
    for k in range(count if count > 1 else 0):
        first, last = class_start[k % 3 : k % 3 + 2]
        expected.append(first + random_below(drawn, last - first))
    assert_array_equal(samples, np.unique(expected))


def test_where_classes_start_among_some_rows():
    class_start, rows = np.array([0, 4, 10, 12]), np.array([1, 3, 4, 8, 9, 11])
    assert_array_equal(starts_among(rows, class_start), np.searchsorted(rows, class_start))
    without_second = np.array([1, 3, 11])
    assert starts_among(without_second, class_start).size < class_start.size


def test_extreme_values_are_nan_where_one_is():
    values = np.array([2.0, -1.5, 7.0])
    assert (lowest_value(values), largest_value(values)) == (-1.5, 7.0)
    values[1] = np.nan
    assert np.isnan(lowest_value(values))
    assert np.isnan(largest_value(values))
