import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t as student
from scipy.stats import ttest_1samp

from orchestrator.analysis import sign_flips
from orchestrator.analysis.sign_flips import (
    critical_statistic,
    joint_p,
    max_t_means,
    simultaneous_intervals,
)


def brute_force(values):
    """Unadjusted, single-step and step-down p over all sign patterns, from Student's t itself."""
    n, m = values.shape
    patterns = [np.array(signs)[:, np.newaxis] for signs in itertools.product([1, -1], repeat=n)]
    with np.errstate(divide="ignore"):
        t = np.array([np.abs(ttest_1samp(signs * values, 0).statistic) for signs in patterns])
    observed = t[0]
    reached = t >= observed - 1e-6
    single = [(t.max(axis=1) >= each - 1e-6).mean() for each in observed]
    adjusted, largest = np.empty(m), 0.0
    for position, column in enumerate(order := np.argsort(-observed, kind="stable")):
        largest = max(largest, (t[:, order[position:]].max(axis=1) >= observed[column] - 1e-6).mean())
        adjusted[column] = largest
    return reached.mean(axis=0), np.array(single), adjusted


def test_comparisons_that_are_equal_on_all_units_leave_the_other_intervals_alone():
    d = np.random.default_rng(2).normal(0.5, 1.0, (6, 2))
    constant = np.tile([0.1, 0.3, 0.7], (6, 1))
    alone = simultaneous_intervals(d, 0.05)
    both = simultaneous_intervals(np.hstack([d, constant]), 0.05)
    assert_array_equal(both[:, :2], alone)
    assert_allclose(both[:, 2:], [[0.1, 0.3, 0.7]] * 2)


def test_three_differences_by_hand():
    # The sums of ±1 ±2 ±3 are 6, 4, 2 and 0 in size; 6 and its opposite are two of eight patterns.
    found = max_t_means(np.array([[1.0], [2], [3]]))
    assert (found.p, found.single_step, found.p_adjusted) == ([0.25], [0.25], [0.25])
    assert found.t[0] == pytest.approx(2 * np.sqrt(3))
    # A comparison that has the opposite differences is the same test, and costs nothing.
    both = max_t_means(np.array([[1.0, -1], [2, -2], [3, -3]]))
    assert both.p_adjusted.tolist() == [0.25, 0.25]
    assert both.t.tolist() == pytest.approx([2 * np.sqrt(3), -2 * np.sqrt(3)])


@pytest.mark.parametrize("seed", range(4))
def test_p_values_are_those_of_all_patterns_one_by_one(seed):
    values = np.random.default_rng(seed).normal(0.5, 1, size=(7, 4)).round(1)
    values[:, 2] += 1.5
    p, single, adjusted = brute_force(values)
    found = max_t_means(values)
    assert found.p == pytest.approx(p)
    assert found.single_step == pytest.approx(single)
    assert found.p_adjusted == pytest.approx(adjusted)
    assert (found.p_adjusted <= found.single_step).all()
    assert joint_p(values) == found.p_adjusted.min()
    assert found.t == pytest.approx(ttest_1samp(values, 0).statistic)


def by_p_of_t(values, idle):
    """Step-down p over all sign patterns of the smallest p of a t-test, without the idle comparisons."""
    patterns = [np.array(signs)[:, np.newaxis] for signs in itertools.product([1, -1], repeat=len(values))]
    p = np.array([ttest_1samp(signs * values, 0, nan_policy="omit").pvalue for signs in patterns])
    adjusted, largest = np.empty(values.shape[1]), 0.0
    order = sorted(range(values.shape[1]), key=lambda column: (column in idle, p[0, column]))
    for position, column in enumerate(order):
        rivals = [each for each in order[position:] if column in idle or each not in idle]
        largest = max(largest, (p[:, rivals].min(axis=1) <= p[0, column] + 1e-9).mean())
        adjusted[column] = largest
    return adjusted


@pytest.mark.parametrize("seed", range(3))
def test_comparisons_of_unequal_numbers_of_units_are_compared_by_p_of_a_t_test(seed):
    values = np.random.default_rng(seed).normal(0.8, 1, size=(8, 4)).round(1)
    values[:2, 1] = values[3:7, 2] = np.nan  # 8, 6, 4 and 8 units; 4 units cannot reach 5 %
    found = max_t_means(values)
    assert found.p_adjusted == pytest.approx(by_p_of_t(values, idle=[2]))
    # At a level that 4 units can reach, they are compared like the others.
    assert max_t_means(values, 0.2).p_adjusted == pytest.approx(by_p_of_t(values, idle=[]))
    without = max_t_means(np.delete(values, 2, axis=1))
    assert found.p_adjusted[[0, 1, 3]] == pytest.approx(without.p_adjusted)


def test_few_equal_differences_beside_many_units_have_the_smallest_p():
    values = np.random.default_rng(1).normal(0, 1, size=(10, 6))
    values[:, 0] = [0.3] * 6 + [np.nan] * 4
    found = max_t_means(values)
    assert found.p_adjusted[0] == 2**-5
    assert (found.p_adjusted[1:] > 2**-5).all()


def test_no_number_of_comparisons_raises_the_smallest_p():
    found = max_t_means(np.column_stack([np.arange(1.0, 7)] * 40))
    assert found.p_adjusted == pytest.approx([2**-5] * 40)


def test_missing_units_take_no_part_and_ties_differ_from_nothing():
    values = np.array([[1.0, np.nan, 0], [2, 5, 0], [3, 4, 0], [4, np.nan, 0]])
    found = max_t_means(values)
    assert found.p.tolist() == [1 / 8, 1 / 2, 1]
    assert found.t[2] == 0
    nothing = max_t_means(np.full((4, 1), np.nan))
    assert nothing.p_adjusted.tolist() == [1]
    assert np.isnan(nothing.t[0])


def test_bounds_are_compared_by_their_ranks():
    finite, bounds = np.array([[1.0], [2], [3], [9]]), np.array([[1.0], [2], [3], [np.inf]])
    assert max_t_means(bounds).p == max_t_means(finite).p == 1 / 8
    bounds[0] = -1  # ranks sum up to 8 and can reach 10; signs alone sum up to 2
    assert max_t_means(bounds).p == 1 / 4
    assert np.isnan(simultaneous_intervals(np.vstack([bounds, bounds]), 0.05)).all()


def test_random_patterns_agree_with_all_and_do_not_depend_on_the_order(monkeypatch):
    values = np.random.default_rng(3).normal(0.4, 1, size=(12, 5))
    exact = max_t_means(values)
    monkeypatch.setattr(sign_flips, "ALL_FLIPS_UP_TO", 2)
    sampled = max_t_means(values)
    error = 5 * np.sqrt(exact.p_adjusted / sign_flips.FLIPS)
    assert (np.abs(sampled.p_adjusted - exact.p_adjusted) < error).all()
    assert sampled.p_adjusted * 100_000 == pytest.approx(np.rint(sampled.p_adjusted * 100_000))
    assert (max_t_means(values[::-1]).p_adjusted == sampled.p_adjusted).all()


def test_an_interval_has_the_shifts_that_the_critical_value_allows():
    values = np.random.default_rng(1).normal(1, 2, size=(9, 3))
    values[0, 2] = np.nan
    low, high = simultaneous_intervals(values, 0.05)
    sizes = (~np.isnan(values)).sum(axis=0)
    limits = critical_statistic(values - np.nanmean(values, axis=0), 0.05, sizes)
    for column, end in itertools.product(range(3), (low, high)):
        shifted = values[:, column][~np.isnan(values[:, column])] - end[column]
        assert abs(shifted.sum()) / np.sqrt((shifted**2).sum()) == pytest.approx(limits[column])
    # Of 256 patterns, 12 may exceed the critical value: 12/256 is at most 5 %, 13/256 is more.
    centred = values - np.nanmean(values, axis=0)
    patterns = [np.array([1, *signs])[:, np.newaxis] for signs in itertools.product([1, -1], repeat=8)]
    p = np.array([ttest_1samp(signs * centred, 0, nan_policy="omit").pvalue.min() for signs in patterns])
    # The limits of 8 and of 9 units have the same p of a t-test.
    t = limits * np.sqrt((sizes - 1) / (sizes - limits**2))
    level = 2 * student.sf(t, sizes - 1)
    assert level == pytest.approx(level[0])
    assert np.sum(p < level[0] - 1e-9) == 12


def test_an_interval_needs_six_units_and_is_wider_for_more_comparisons():
    values = np.random.default_rng(5).normal(size=(8, 6))
    assert np.isnan(simultaneous_intervals(values[:5], 0.05)).all()
    alone, together = simultaneous_intervals(values[:, :1], 0.05), simultaneous_intervals(values, 0.05)
    assert together[0, 0] < alone[0, 0] < alone[1, 0] < together[1, 0]
    assert simultaneous_intervals(np.full((7, 1), 0.02), 0.05).ravel() == pytest.approx([0.02, 0.02])


def test_the_step_down_p_does_not_decrease():
    values = np.random.default_rng(0).normal(0.3, 1, (6, 3)).round(1)
    found = max_t_means(values)
    assert found.p_adjusted == pytest.approx(brute_force(values)[2])
    order = np.argsort(-np.abs(found.t), kind="stable")
    assert (np.diff(found.p_adjusted[order]) >= 0).all()
