import numpy as np
import pytest
from scipy.stats import t

from orchestrator.analysis.hierarchical import hierarchical, log_likelihood


def compare(means, deviation, rope=0.01, splits=5):
    n = len(means)
    return hierarchical(np.array(means), np.full(n, deviation), np.full(n, splits), np.full(n, 0.2), rope)


@pytest.mark.parametrize(("spread", "degree"), [(0.002, 3.0), (0.02, 6.0), (0.2, 25.0)])
def test_the_likelihood_is_the_integral_over_true_differences(spread, degree):
    means, scales, degrees = np.array([0.01, -0.03]), np.array([0.02, 0.005]), np.array([3.0, 8.0])

    x = np.linspace(-3, 3, 400_001)

    def integral(value, mean, scale, own):
        product = t.pdf((x - mean) / scale, own) / scale * t.pdf((x - value) / spread, degree) / spread
        return np.trapezoid(product, x)

    values = np.array([-0.01, 0.0, 0.02])
    expected = [
        sum(np.log(integral(v, *each)) for each in zip(means, scales, degrees, strict=True)) for v in values
    ]
    assert log_likelihood(values, spread, degree, means, scales, degrees) == pytest.approx(expected, abs=0.06)


def test_a_clear_difference_an_equality_and_too_little_data():
    assert compare([0.03, 0.028, 0.032, 0.029, 0.031, 0.03], 0.002).better > 0.99
    assert compare([0.001, -0.001, 0.0, 0.002, -0.002, 0.0], 0.002).equal > 0.99
    # Two datasets with noisy folds decide nothing.
    few = compare([0.02, -0.01], 0.05)
    assert max(few.better, few.equal, few.worse) < 0.9


def test_arms_that_change_places_mirror_the_result():
    means = [0.02, 0.011, -0.003, 0.03, 0.014, 0.0, 0.02]
    one, other = compare(means, 0.01), compare([-value for value in means], 0.01)
    assert (one.better, one.equal, one.worse) == pytest.approx(
        (other.worse, other.equal, other.better), abs=0.01
    )
    assert one.better + one.equal + one.worse == pytest.approx(1)


def test_noisy_folds_shrink_a_dataset_towards_the_others():
    # One dataset of seven is far above; its folds tell whether that is noise.
    means = np.array([0.0, 0.001, -0.001, 0.0, 0.001, -0.001, 0.08])
    deviations = np.full(7, 0.002)
    noisy = deviations.copy()
    noisy[-1] = 0.2
    sure = hierarchical(means, deviations, np.full(7, 5), np.full(7, 0.2), 0.01)
    shrunk = hierarchical(means, noisy, np.full(7, 5), np.full(7, 0.2), 0.01)
    assert shrunk.equal > sure.equal


def test_correlated_folds_say_less_than_independent_ones():
    means, deviations, splits = np.array([0.02, 0.015, 0.025, 0.018]), np.full(4, 0.02), np.full(4, 5)
    correlated = hierarchical(means, deviations, splits, np.full(4, 0.2), 0.01)
    independent = hierarchical(means, deviations, splits, np.full(4, 0.0), 0.01)
    assert correlated.better < independent.better - 0.01
    # The correction of Nadeau and Bengio: √((1 + 4·0.2)/(1 − 0.2)) = 1.5 times the deviation without it.
    wider = hierarchical(means, 1.5 * deviations, splits, np.full(4, 0.0), 0.01)
    assert wider.better == pytest.approx(correlated.better, abs=1e-9)
