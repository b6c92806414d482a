import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import PermutationMethod, rankdata, wilcoxon

from orchestrator.analysis.signed_rank import (
    FoldsAreNotIndependent,
    datasets_needed,
    hodges_lehmann,
    pratt_p,
    signed_rank,
    smallest_p,
)
from tests.messages import raises
from tests.orchestrator.analysis.golden import M_MINUS_C45, by_dataset


@pytest.mark.parametrize(
    ("n", "floor", "largest_family"),
    [
        (4, 0.125, 0),
        (5, 0.0625, 0),
        (6, 0.03125, 1),
        (7, 0.015625, 3),
        (8, 0.0078125, 6),
        (9, 0.00390625, 12),
        (10, 0.001953125, 25),
        (12, 0.00048828125, 102),
    ],
)
def test_the_smallest_p_is_reached_when_all_differences_agree(n, floor, largest_family):
    result = signed_rank(by_dataset(np.arange(1, n + 1)))
    assert result.p == result.smallest_p == smallest_p(n) == floor
    assert datasets_needed(largest_family + 1) > n
    if largest_family:
        assert datasets_needed(largest_family) <= n


def test_hand_computed_ranks_and_effect():
    # |d| = 1 2 3 4, signs + - + +: W+ = 8, W- = 2; sums ≤ 2 are {}, {1}, {2}: p = 2·3/16.
    result = signed_rank(by_dataset([1, -2, 3, 4]))
    assert (result.w_plus, result.w_minus, result.wins, result.losses) == (8, 2, 3, 1)
    assert result.p == 0.375
    assert result.rank_biserial == 0.6


def test_zeros_are_dropped_and_cannot_create_significance():
    result = signed_rank(by_dataset([0.1, 0.2, 0.3, 0.4, 0.5, 0, 0]))
    assert (result.n, result.n_zero, result.p, result.smallest_p) == (7, 2, 0.0625, 0.0625)


def test_pratt_s_p_of_demsar_s_table():
    result = signed_rank(by_dataset(M_MINUS_C45))
    assert (result.w_plus, result.w_minus, result.p) == (71.5, 6.5, 15 / 2048)
    assert pratt_p(by_dataset(M_MINUS_C45)) == 1 / 128


def test_pratt_s_p_is_that_of_all_signs_of_the_ranks_that_are_left():
    # The ranks 3 … 7 are left of five agreeing differences and two zeros: only one pattern of 32 is as far.
    assert pratt_p(by_dataset([0, 0, 1, 2, 3, 4, 5])) == 2 / 32
    # −1 has rank 2, beside 3 and 4: of 8 patterns, the sums of {} and {2} are at most 2.
    assert pratt_p(by_dataset([0, -1, 2, 3])) == 2 * 2 / 8
    assert pratt_p(by_dataset([0, 0])) == 1


def test_pratt_s_p_agrees_with_a_count_of_all_signs():
    generator = np.random.default_rng(8)
    patterns = np.array(list(itertools.product([0, 1], repeat=9)))
    for _ in range(20):
        values = generator.integers(-3, 4, size=9).astype(float)
        ranks = np.where(values != 0, rankdata(np.abs(values)), 0)
        smaller = min(ranks[values > 0].sum(), ranks[values < 0].sum())
        expected = min(1, 2 * np.mean(patterns @ ranks <= smaller))
        assert pratt_p(by_dataset(values)) == pytest.approx(expected, abs=1e-12)


def test_without_zeros_pratt_s_p_is_the_p_of_the_test():
    generator = np.random.default_rng(9)
    for _ in range(20):
        values = by_dataset(generator.normal(0.3, 1, size=8).round(1))
        if (values != 0).all():
            assert pratt_p(values) == signed_rank(values).p


def test_no_difference_anywhere_is_no_evidence():
    result = signed_rank(by_dataset([0, 0, 0]))
    assert (result.p, result.smallest_p, result.rank_biserial, result.n_zero) == (1, 1, 0, 3)
    assert signed_rank(by_dataset([])).p == 1


def test_round_off_does_not_break_ties():
    a = np.array([0.9, 0.8, 0.7, 0.6, 0.55, 0.62])
    b = np.array([0.8, 0.9, 0.6, 0.5, 0.45, 0.82])
    exact_ties = by_dataset([1, -1, 1, 1, 1, -2])
    assert len(np.unique(np.abs(a - b))) > 2, "the example must contain round-off"
    assert signed_rank(by_dataset(a - b)) == signed_rank(exact_ties)


def test_agrees_with_scipys_full_permutation_on_tied_data():
    generator = np.random.default_rng(7)
    method = PermutationMethod(n_resamples=np.inf)
    for _ in range(40):
        n = int(generator.integers(2, 10))
        values = generator.integers(-4, 5, size=n).astype(float)
        values[values == 0] = 1
        expected = wilcoxon(values, method=method).pvalue
        assert signed_rank(by_dataset(values)).p == pytest.approx(expected, abs=1e-12)


def test_agrees_with_scipys_exact_distribution_without_ties():
    generator = np.random.default_rng(3)
    for n in (5, 12, 30, 50):
        values = generator.permutation(np.arange(1, n + 1)) * generator.choice([-1, 1], size=n)
        assert signed_rank(by_dataset(values)).p == pytest.approx(wilcoxon(values, method="exact").pvalue)


def test_a_hundred_datasets_are_no_burden():
    generator = np.random.default_rng(5)
    result = signed_rank(by_dataset(generator.normal(size=100)))
    assert 0 < result.p <= 1
    assert result.w_plus + result.w_minus == 5050


def test_folds_of_one_dataset_are_refused_with_the_reason():
    folds = pd.Series([0.01, 0.02, 0.01, 0.03, 0.02], index=["iris"] * 5)
    for function in (signed_rank, hodges_lehmann):
        with raises(FoldsAreNotIndependent, "folds"):
            function(folds)


def test_a_missing_difference_is_named():
    with pytest.raises(ValueError, match="'dataset1'"):
        signed_rank(by_dataset([0.1, np.nan]))


def test_pooled_folds_reject_too_often_where_dataset_means_do_not():
    # Two equal arms, differences correlated within a dataset: the reason for the refusal above.
    generator = np.random.default_rng(11)
    pooled = means = 0
    repeats = 300
    for _ in range(repeats):
        dataset = generator.normal(size=(10, 1))
        folds = dataset + generator.normal(size=(10, 5))
        pooled += signed_rank(by_dataset(folds.ravel())).p <= 0.05
        means += signed_rank(by_dataset(folds.mean(axis=1))).p <= 0.05
    assert means / repeats < 0.09
    assert pooled / repeats > 0.18


def test_hodges_lehmann_by_hand():
    # Walsh averages of 1, 2, 6: 1 1.5 2 3.5 4 6, median 2.75; three datasets allow no 95 % interval.
    shift = hodges_lehmann(by_dataset([6, 1, 2]))
    assert shift.estimate == 2.75
    assert (shift.low, shift.high, shift.confidence) == (None, None, None)


def test_interval_has_the_textbook_levels():
    six = hodges_lehmann(by_dataset([1, 2, 3, 4, 5, 6]))
    assert (six.low, six.high, six.confidence) == (1, 6, 1 - 2 / 64)
    assert hodges_lehmann(by_dataset([1, 2, 3, 4, 5])).confidence is None
    # n = 10: P(W+ <= 8) = 25/1024, so eight Walsh averages are cut at each end.
    ten = hodges_lehmann(by_dataset(np.arange(10.0) ** 2))
    assert ten.confidence == pytest.approx(1 - 50 / 1024)


def test_interval_and_test_agree():
    # Zero lies inside the interval exactly when the test keeps the hypothesis at the interval's level.
    generator = np.random.default_rng(2)
    for _ in range(100):
        differences = by_dataset(generator.normal(0.5, 1, size=9))
        shift = hodges_lehmann(differences)
        assert shift.low is not None
        assert shift.confidence is not None
        rejected = signed_rank(differences).p <= 1 - shift.confidence + 1e-12
        assert rejected == (shift.low > 0 or shift.high < 0)


def test_no_observation_no_estimate():
    assert np.isnan(hodges_lehmann(by_dataset([])).estimate)
