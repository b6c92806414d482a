"""Rules, draws and biases of the hull solvers, each against a plain computation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import pairwise

from solvers.hull.bias import class_biases
from solvers.hull.block_descent import starts_among
from solvers.hull.draws import draw, draw_first, first_below, random_below
from solvers.hull.stopping import ADJMN, CORE, MEB, MN, VIOLATION, default_tolerance, violation_threshold


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
