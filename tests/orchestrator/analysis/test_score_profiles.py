"""Profiles of scores, scores against the control, and cliques of ranks, on tables counted by hand."""

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis.comparison_matrix import compare_all_pairs
from orchestrator.analysis.paired_means import paired
from orchestrator.analysis.power import spread_between
from orchestrator.analysis.score_profiles import (
    rank_cliques,
    score_profile,
    scores_against_control,
    share_near_best,
)

MEANS = pd.DataFrame(
    {"a": [0.90, 0.80, 0.70, 0.60], "b": [0.91, 0.80, 0.68, 0.60], "c": [0.89, 0.75, np.nan, 0.61]},
    index=["d0", "d1", "d2", "d3"],
)


def test_the_share_of_datasets_within_a_distance_of_the_best():
    """On d0, d1 and d3, which all completed, a is 1, 0 and 1 points below the best, c 2, 5 and 0."""
    profile = score_profile(paired(MEANS))
    assert set(profile["n"]) == {3}
    shares = {arm: [share_near_best(profile, arm, below) for below in (0, 0.01, 0.02, 0.05)] for arm in "abc"}
    assert shares == {
        "a": pytest.approx([1 / 3, 1, 1, 1]),
        "b": pytest.approx([2 / 3, 1, 1, 1]),
        "c": pytest.approx([1 / 3, 1 / 3, 2 / 3, 1]),
    }


def test_scores_stand_beside_those_of_the_control_with_win_tie_and_loss():
    frame = scores_against_control(paired(MEANS)).set_index(["solver", "unit"])
    assert frame.loc["b", "outcome"].tolist() == ["win", "tie", "loss", "tie"]
    assert frame.loc["c", "outcome"].tolist() == ["loss", "loss", "win"]
    assert frame.loc[("c", "d3"), ["score", "reference_score"]].tolist() == [0.61, 0.60]


def test_cliques_join_arms_between_which_no_adjusted_test_finds_a_difference():
    """Over 10 datasets a and b differ by chance; c is below both on all: p = 2/2¹⁰, times at most 3."""
    base, noise = np.linspace(0.7, 0.9, 10), np.array([1, -1] * 5) / 1000 * np.arange(1, 11)
    means = pd.DataFrame({"a": base, "b": base + noise, "c": base - 0.1})
    means.index = [f"d{number}" for number in range(10)]
    pairs = compare_all_pairs(paired(means))
    frame = rank_cliques(paired(means), pairs, 0.05).set_index("solver")
    assert frame["mean_rank"].to_dict() == {"a": 1.5, "b": 1.5, "c": 3.0}
    assert frame["cliques"].to_dict() == {"a": "1", "b": "1", "c": ""}


def test_the_spread_between_datasets_is_that_of_the_common_pairs():
    found = spread_between(paired(MEANS), ["a", "b"], "earlier")
    differences = [0.01, 0.0, -0.02, 0.0]
    assert (found.n_pairs, found.typical) == (1, pytest.approx(np.std(differences, ddof=1)))
    every = spread_between(paired(MEANS), ["unknown"], "earlier")
    assert every.n_pairs == 3
    assert every.low < every.typical < every.high
    assert spread_between(paired(MEANS.iloc[:2]), ["a", "b"], "earlier") is None
