import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from orchestrator.analysis import bayesian
from orchestrator.analysis.bayesian import bayesian_signed_rank, compare
from orchestrator.analysis.signed_rank import FoldsAreNotIndependent
from tests.orchestrator.analysis.golden import M_MINUS_C45, by_dataset


def probabilities(values, rope):
    found = bayesian_signed_rank(by_dataset(values), rope)
    return [found.worse, found.equal, found.better]


def mean_shares(values, rope):
    shares = bayesian._shares(np.sort(np.array(values, dtype=float)), rope)
    return (shares / shares.sum(axis=0)).mean(axis=1)


DEMSAR = np.array(M_MINUS_C45) / 100
MIXED = [0.03, 0.01, 0.01, -0.01, 0.02]


@pytest.mark.parametrize(
    ("values", "expected", "means"),
    [
        (DEMSAR, [0, 0.329, 0.671], [0, 0.43493, 0.56507]),
        (MIXED, [0, 0.642, 0.358], [0, 0.58042, 0.41958]),
    ],
)
def test_golden_probabilities_and_mean_shares(values, expected, means):
    assert probabilities(values, 0.01) == pytest.approx(expected, abs=0.005)
    assert mean_shares(values, 0.01) == pytest.approx(means, abs=0.003)


@pytest.mark.parametrize(("n", "expected"), [(3, 0.8340), (5, 0.9308), (6, 0.9543), (10, 0.9907)])
def test_equal_differences_of_twice_the_rope_have_a_closed_form(n, expected):
    # A pair with the prior's zero averages r, the end of the region, which belongs to it: A is better if the
    # squared weight of all differences is above a half.
    closed_form = beta(0.5, n).cdf(1 - np.sqrt(0.5))
    assert closed_form == pytest.approx(expected, abs=5e-5)
    assert probabilities([0.02] * n, 0.01) == pytest.approx([0, 1 - closed_form, closed_form], abs=0.005)


def test_shares_are_those_of_all_ordered_pairs():
    # Against the definition, with the weights that the cached draws give.
    values, rope = np.sort(np.random.default_rng(4).normal(0.01, 0.02, size=8)), 0.01
    prior, sums = bayesian._weights(len(values))
    weights = np.vstack([prior, np.diff(sums, axis=0)])[:, :50]
    with_zero = np.array([0, *values])
    pairs = with_zero[:, None] + with_zero
    for share, mask in zip(
        bayesian._shares(values, rope)[:, :50],
        (pairs < -2 * rope, abs(pairs) <= 2 * rope, pairs > 2 * rope),
        strict=True,
    ):
        assert share == pytest.approx(np.einsum("id,ij,jd->d", weights, mask, weights), abs=1e-9)


def test_neither_the_order_of_datasets_nor_which_arm_comes_first_changes_anything():
    generator = np.random.default_rng(6)
    for _ in range(5):
        values = generator.normal(0.002, 0.02, size=9)
        found = probabilities(values, 0.01)
        assert sum(found) == pytest.approx(1)
        assert probabilities(-values, 0.01) == found[::-1]
        assert probabilities(generator.permutation(values), 0.01) == found


def test_no_difference_anywhere_is_practically_equal():
    assert probabilities([0] * 6, 0.01) == [0, 1, 0]


def test_the_ends_of_the_region_belong_to_it_in_spite_of_round_off():
    assert probabilities([0.3 - 0.1 - 0.1, 0.8 - 0.7, 0.1], 0.1) == [0, 1, 0]


def test_folds_are_refused():
    with pytest.raises(FoldsAreNotIndependent):
        bayesian_signed_rank(pd.Series([0.1, 0.2], index=["iris"] * 2), 0.01)


def test_few_datasets_have_no_probability():
    means = pd.DataFrame({"a": [0.93] * 6, "b": [0.90] * 6, "c": [0.9, *[np.nan] * 5]}, index=list("uvwxyz"))
    frame = compare(means, 0.01, pd.Series([99, 100], index=["u", "v"])).set_index(["first", "second"])
    assert frame["n"].tolist() == [6, 1, 1]
    assert frame["equal"].notna().tolist() == [True, False, False]
    assert frame["coarse"].tolist() == ["u"] * 3
    assert not frame["practically_equal"].any()
    assert compare(means[:5], 0.01).empty


def test_practically_equal_takes_a_probability_of_95_per_cent():
    means = pd.DataFrame({"a": [0.9] * 8, "b": [0.901] * 8}, index=list("abcdefgh"))
    assert compare(means, 0.01)["practically_equal"].tolist() == [True]
    assert compare(means, 0.0001)["practically_equal"].tolist() == [False]


def test_equal_arms_differ_on_single_datasets_and_the_table_counts_them():
    """Differences of ±3 points average out: typically equal, and within 1 point on 4 of 12 datasets."""
    differences = [0.03, -0.03] * 4 + [0.0, 0.01, -0.01, 0.005]
    means = pd.DataFrame({"a": 0.5 + np.array(differences), "b": np.full(12, 0.5)})
    means.index = [f"d{number}" for number in range(12)]
    (row,) = compare(means, 0.01).to_dict("records")
    assert (row["n_within"], row["n"]) == (4, 12)  # both ends belong to the region
    assert row["equal"] > 0.5
