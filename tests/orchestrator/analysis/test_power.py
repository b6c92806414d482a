from math import inf

import numpy as np
import pytest

from orchestrator.analysis.pairwise import family_size
from orchestrator.analysis.power import Spread, datasets_for, detectable_effect, found_from
from orchestrator.analysis.signed_rank import critical_value, signed_rank
from orchestrator.report.power import detectable_points
from tests.messages import assert_says
from tests.orchestrator.analysis.golden import by_dataset


@pytest.mark.parametrize(
    ("n", "effects"),
    [
        (5, [inf, inf, inf, inf]),
        (6, [1.793, inf, inf, inf]),
        (10, [1.020, 1.303, 1.533, 1.663]),
        (14, [0.827, 0.992, 1.130, 1.217]),
        (30, [0.541, 0.634, 0.689, 0.742]),
    ],
)
def test_golden_effects(n, effects):
    assert [detectable_effect(n, family) for family in (1, 3, 6, 12)] == pytest.approx(effects, abs=0.01)


@pytest.mark.parametrize(("n", "power"), [(6, 0.355), (10, 0.785), (14, 0.922), (30, 0.999)])
def test_golden_power_at_one_standard_deviation(n, power):
    assert np.mean(found_from(n, critical_value(n, 0.05)) < 1) == pytest.approx(power, abs=0.01)


@pytest.mark.parametrize(("effect", "family", "n"), [(1, 1, 11), (1, 6, 17), (1, 12, 19), (0.5, 1, 35)])
def test_golden_numbers_of_datasets(effect, family, n):
    assert datasets_for(effect, family) == pytest.approx(n, abs=1)


def test_a_draw_is_significant_from_its_shift_on():
    n, level = 9, 0.05
    draws = np.random.default_rng(0).standard_normal((20, n))
    shifts = found_from(n, critical_value(n, level))[:20]
    for values, shift in zip(draws, shifts, strict=True):
        tests = [signed_rank(by_dataset(values + shift + step)) for step in (-1e-4, 1e-4)]
        assert [test.p <= level and test.w_plus > test.w_minus for test in tests] == [False, True]


def test_fewest_datasets_bound_what_is_needed_for_any_effect():
    assert [datasets_for(100, family) for family in (1, 3, 6, 12)] == [6, 7, 8, 9]


def test_the_family_of_a_plan_is_that_of_its_report():
    assert [family_size(n, False) for n in (0, 1, 2, 4, 5, 500)] == [0, 0, 1, 6, 4, 499]
    assert family_size(3, True) == 5


def test_the_spread_of_an_earlier_study_gives_points():
    """10 datasets and 12 tests need 1.663 standard deviations; at 0.8 points each that is 1.33 points."""
    spread = Spread("earlier", 3, 0.008, 0.004, 0.016)
    text = detectable_points(10, 12, 0.05, spread, "accuracy")
    assert_says(text, "datasets of earlier", "1.33 percentage points", "3 pairs")
    assert detectable_points(4, 1, 0.05, spread, "accuracy") == ""
