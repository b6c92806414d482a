import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis.profiles import performance_profile, share_within


@pytest.fixture
def profile():
    costs = {"a": [1.0, 2.0, 4.0, 8.0], "b": [2.0, 2.0, 1.0, np.inf], "c": [10.0, np.inf, np.inf, 16.0]}
    return performance_profile(pd.DataFrame(costs))


@pytest.mark.parametrize(
    ("arm", "shares"),
    [("a", [0.75, 0.75, 1, 1]), ("b", [0.5, 0.75, 0.75, 0.75]), ("c", [0, 0.25, 0.25, 0.5])],
)
def test_shares_within_a_factor_of_the_fastest(profile, arm, shares):
    assert [share_within(profile, arm, factor) for factor in (1, 2, 4, 100)] == shares


def test_steps_ascend_and_what_did_not_finish_is_within_no_factor(profile):
    for _, steps in profile.groupby("solver"):
        assert steps["factor"].is_monotonic_increasing
        assert steps["share"].is_monotonic_increasing
        assert steps["factor"].iloc[0] == 1
    assert np.isfinite(profile["factor"]).all()
    assert set(profile["n"]) == {4}


def test_datasets_without_all_arms_or_without_a_finished_one_are_left_out():
    costs = pd.DataFrame({"a": [1.0, np.nan, np.inf], "b": [2.0, 1.0, np.inf]})
    assert set(performance_profile(costs)["n"]) == {1}
    assert performance_profile(costs.iloc[1:]).empty
