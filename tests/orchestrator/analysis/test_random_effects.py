import numpy as np
import pytest
from scipy.special import digamma, polygamma
from scipy.stats import t

from orchestrator.analysis.random_effects import moderated_variances, paule_mandel, random_effects


def test_equal_errors_give_the_mean_with_student_s_interval():
    # Deviations −1 0 1 have variance 1; with errors of 0.25 τ² is 0.75, and all weights are equal.
    y, v = np.array([1.0, 2, 3]), np.full(3, 0.25)
    assert paule_mandel(y, v) == pytest.approx(0.75)
    found = random_effects(y, v, np.full(3, 4), 0.05)
    assert (found.n, found.estimate, found.tau) == pytest.approx((3, 2, np.sqrt(0.75)))
    reach = t.ppf(0.975, 2) / np.sqrt(3)
    assert (found.low, found.high) == pytest.approx((2 - reach, 2 + reach))
    assert found.p == pytest.approx(2 * t.sf(2 * np.sqrt(3), 2))
    assert found.interval(0.05) == (found.low, found.high)


def test_precise_datasets_count_more_and_errors_alone_need_no_spread():
    # Without spread beyond the errors τ² is 0: weights 4 and 1 give 0.8·1 + 0.2·2, error 1/√5.
    y, v = np.array([1.0, 2.0]), np.array([0.25, 1.0])
    assert paule_mandel(y, v * 100) == 0
    found = random_effects(y, v, np.array([1e9, 1e9]), 0.05)
    assert found.estimate == pytest.approx(1.2)
    assert found.error == pytest.approx(1 / np.sqrt(5))
    assert np.isnan([found.low, found.high, found.p]).all()


def test_paule_and_mandel_s_equation_holds():
    generator = np.random.default_rng(1)
    y, v = generator.normal(size=9), generator.uniform(0.01, 0.5, 9)
    weights = 1 / (v + paule_mandel(y, v))
    mean = (weights * y).sum() / weights.sum()
    assert (weights * (y - mean) ** 2).sum() == pytest.approx(8)


def test_variances_shrink_towards_their_common_value():
    degrees = np.full(4, 4.0)
    # No more spread than four degrees of freedom explain: all become the common variance.
    alike, prior = moderated_variances(np.array([1.0, 1.1, 0.9, 1.0]), degrees)
    assert (alike.tolist(), prior) == (pytest.approx([1.0] * 4), np.inf)
    spread = np.array([0.01, 1, 30, 200])
    found, prior = moderated_variances(spread, degrees)
    assert (np.diff(found) > 0).all()
    assert found[0] > spread[0]
    assert found[-1] < spread[-1]
    # The equations of Smyth (2004): trigamma of half the prior degrees is the spread beyond that of four.
    e = np.log(spread) - digamma(2) + np.log(2)
    weight = (found[0] - found[1]) / (spread[0] - spread[1])  # d / (d + d0)
    assert prior == pytest.approx(4 / weight - 4)
    assert polygamma(1, prior / 2) == pytest.approx(e.var(ddof=1) - polygamma(1, 2))
    # Equal differences in all folds say no more than that: their variance becomes the common one.
    for tied in (0.0, 1e-30):
        assert moderated_variances(np.array([tied, 2, 2]), np.full(3, 4.0))[0].tolist() == [2, 2, 2]


def test_a_dataset_that_is_equal_in_all_folds_does_not_decide_the_mean():
    y = np.array([0.01, 0.002, -0.003, 0.004, 0.001])
    found = random_effects(y, np.array([0.0, 1e-4, 1e-4, 1e-4, 1e-4]), np.full(5, 4.0), 0.05)
    assert found == random_effects(y, np.full(5, 1e-4), np.full(5, 4.0), 0.05)
    assert found.low < 0 < found.high


def test_nothing_that_varies_gives_an_exact_mean():
    found = random_effects(np.full(4, 0.01), np.zeros(4), np.full(4, 4), 0.05)
    assert (found.estimate, found.low, found.high, found.p) == (0.01, 0.01, 0.01, 0)
    assert np.isnan(random_effects(np.zeros(0), np.zeros(0), np.zeros(0), 0.05).estimate)
    assert random_effects(np.zeros(4), np.zeros(4), np.full(4, 4), 0.05).p == 1
