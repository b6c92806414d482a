import itertools

import numpy as np
import pytest
from scipy.stats import binomtest

from orchestrator.analysis import aggregates
from orchestrator.analysis.aggregates import (
    bootstrap_aggregates,
    probability_of_improvement,
    seed_of,
)


def best_set_p(means):
    pairs = itertools.combinations(range(means.shape[1]), 2)
    differences = [means[:, i] - means[:, j] for i, j in pairs]
    return aggregates.best_set_p(np.array(differences).reshape(-1, len(means)).T, means.shape[1])


def test_the_share_of_improvements_has_the_exact_binomial_interval():
    for wins, n in [(0, 5), (5, 5), (7, 10), (1, 1)]:
        expected = binomtest(wins, n).proportion_ci(0.95, "exact")
        assert probability_of_improvement(wins, n, 0.05) == pytest.approx((wins / n, *expected), nan_ok=True)
    # All of five: the lower end is the fifth root of 0.025.
    assert probability_of_improvement(5, 5, 0.05)[1] == pytest.approx(0.025**0.2)
    assert np.isnan(probability_of_improvement(0, 0, 0.05)).all()


def test_equal_folds_give_the_bootstrap_over_units_alone():
    # Two arms on three units with one value in all folds: a mean of 1 0 0 takes 0, 1/3, 2/3 or 1.
    folds = {f"d{i}": np.array([[value, 0.5]] * 4) for i, value in enumerate([1.0, 0, 0])}
    found = bootstrap_aggregates(folds, {name: [name] for name in folds}, 0.5, 1)
    assert found["wins"].tolist() == pytest.approx([1 / 3, 2 / 3])
    # P(none of three draws is the first unit) = 8/27 > 1/4, and P(two or three are) = 7/27 > 1/4.
    assert found.loc[0, ["mean_low", "mean_high"]].tolist() == pytest.approx([0, 2 / 3])
    assert found.loc[1, ["mean_low", "mean_high"]].tolist() == [0.5, 0.5]
    assert found.loc[0, ["rank_low", "rank_high"]].tolist() == pytest.approx([2 - 2 / 3, 2])
    assert found.loc[0, ["wins_low", "wins_high"]].tolist() == pytest.approx([0, 2 / 3])


def test_folds_add_to_the_error_and_families_count_once():
    generator = np.random.default_rng(2)
    folds = {f"d{i}": generator.normal(size=(5, 1)) for i in range(6)}
    apart = bootstrap_aggregates(folds, {name: [name] for name in folds}, 0.05, 0)
    steady = {name: np.full((5, 1), scores.mean()) for name, scores in folds.items()}
    alone = bootstrap_aggregates(steady, {name: [name] for name in folds}, 0.05, 0)
    width = [float((each["mean_high"] - each["mean_low"]).iloc[0]) for each in (apart, alone)]
    assert width[0] > width[1]
    # One fold a dataset, and all six in one family: nothing can be resampled.
    together = bootstrap_aggregates(folds, {"family": list(folds)}, 0.05, 0)
    assert np.isnan(together["mean_low"]).all()
    assert seed_of({"a": 1}) == seed_of({"a": 1}) != seed_of({"a": 2})


def test_the_first_arm_that_is_removed_has_the_p_of_the_largest_pair():
    means = np.random.default_rng(8).normal(size=(7, 3)).round(2)
    means[:, 2] -= 2
    pairs = list(itertools.combinations(range(3), 2))
    differences = np.column_stack([means[:, i] - means[:, j] for i, j in pairs])
    patterns = np.array(list(itertools.product([1, -1], repeat=7)))
    reached = np.abs(patterns @ differences) / np.sqrt((differences**2).sum(axis=0))
    p = best_set_p(means)
    assert int(np.argmin(p)) == 2
    assert p[2] == pytest.approx((reached.max(axis=1) >= reached[0].max() - 1e-6).mean())
    # Then two arms remain, and the test is that of their difference.
    alone = (reached[:, 0] >= reached[0, 0] - 1e-6).mean()
    assert sorted(p) == pytest.approx([p[2], max(p[2], alone), 1.0])


def test_a_better_arm_is_alone_in_its_set_from_six_units_on():
    means = np.column_stack(
        [np.arange(6.0) + 3, np.arange(6.0), np.arange(6.0) + np.array([0, 1, 0, 1, 0, 1])]
    )
    assert (best_set_p(means) <= 0.05).tolist() == [False, True, True]
    assert (best_set_p(means[:5]) > 0.05).all()
    assert best_set_p(np.ones((8, 4))).tolist() == [1, 1, 1, 1]
    assert best_set_p(np.ones((8, 1))).tolist() == [1]
