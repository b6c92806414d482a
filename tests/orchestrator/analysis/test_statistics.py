import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import friedmanchisquare

from orchestrator.analysis import statistics
from orchestrator.analysis.pairwise import LOWER, NO_EVIDENCE, pairwise
from orchestrator.analysis.statistics import (
    friedman,
    holm,
    ranks,
)
from orchestrator.analysis.summaries import corrected_standard_error, standard_error
from tests.messages import raises
from tests.orchestrator.analysis.golden import DEMSAR, table


def frame(rows):
    return pd.DataFrame(rows, index=[f"d{i}" for i in range(len(rows))], dtype=float)


def test_standard_error_uses_the_population_deviation():
    # Deviations of 1 2 3 4 5 from 3: variance 2, SE = sqrt(2/5).
    assert standard_error(np.array([1.0, 2, 3, 4, 5])) == pytest.approx(np.sqrt(2 / 5))
    assert np.isnan(standard_error(np.array([0.9])))


def test_corrected_standard_error_is_half_as_large_again_over_five_folds():
    scores = np.array([0.90, 0.93, 0.91, 0.96, 0.92])
    naive = scores.std(ddof=1) / np.sqrt(5)
    assert corrected_standard_error(scores, 0.25) == pytest.approx(1.5 * naive)
    assert np.isnan(corrected_standard_error(scores[:1], 0.25))


@pytest.mark.parametrize(
    ("scores", "descriptive", "corrected"),
    [
        ([0.90, 0.93, 0.91, 0.96, 0.92], 0.00920869, 0.01544345),
        ([0.012, 0.004, 0.019, -0.003, 0.008], None, 0.005552027),
    ],
)
def test_standard_errors_of_five_folds(scores, descriptive, corrected):
    assert corrected_standard_error(np.array(scores), 0.25) == pytest.approx(corrected, abs=5e-9)
    if descriptive is not None:
        assert standard_error(np.array(scores)) == pytest.approx(descriptive, abs=5e-9)


def test_all_pairs_of_demsar_s_table():
    tests = pairwise(table(DEMSAR))
    raw = [0.007324, 0.877930, 0.012451, 0.057129, 0.353516, 0.021973]
    adjusted = [0.043945, 0.877930, 0.062256, 0.171387, 0.707031, 0.087891]
    assert tests["p"].tolist() == pytest.approx(raw, abs=5e-7)
    assert tests["p_adjusted"].tolist() == pytest.approx(adjusted, abs=5e-7)
    # The first pair is C4.5 − m.
    first = tests.iloc[0]
    assert (first["w_minus"], first["w_plus"], first["n_zero"]) == (71.5, 6.5, 2)
    assert [-first["high"], -first["estimate"], -first["low"]] == pytest.approx([0.003, 0.013, 0.0275])
    assert first["confidence"] == pytest.approx(0.9505615, abs=5e-8)
    assert tests["verdict"].tolist() == [LOWER, *[NO_EVIDENCE] * 5]


def test_holm_is_monotone_and_clipped():
    assert holm(np.array([0.01, 0.04, 0.03, 0.5])) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm(np.array([0.9, 0.6, 0.7])) == pytest.approx([1, 1, 1])
    assert holm(np.array([])).size == 0


def test_ranks_share_ties_and_ignore_round_off():
    table = ranks(frame([[0.9, 0.8, 0.9], [0.1 + 0.2, 0.3, 0.2]]))
    assert table.to_numpy().tolist() == [[1.5, 3, 1.5], [1.5, 1.5, 3]]


def test_friedman_by_hand_and_against_scipy():
    # Ranks 1 2 3 / 1 2 3 / 1 3 2 / 2 1 3: mean ranks 1.25 2 2.75, χ² = 4·12/12·(2·0.75²) = 4.5, F = 27/7.
    scores = frame([[3, 2, 1], [9, 5, 1], [7, 1, 2], [2, 3, 1]])
    result = friedman(scores)
    assert result.chi2 == pytest.approx(4.5)
    assert result.chi2 == pytest.approx(friedmanchisquare(*scores.to_numpy().T).statistic)
    assert result.statistic == pytest.approx(3 * 4.5 / 3.5)
    assert result.df == (2, 6)


def test_friedman_corrects_for_ties():
    scores = frame([[3, 3, 1, 2], [1, 2, 2, 2], [4, 4, 2, 1], [3, 1, 1, 2], [5, 4, 4, 3]])
    assert friedman(scores).chi2 == pytest.approx(friedmanchisquare(*scores.to_numpy().T).statistic)


@pytest.mark.parametrize(
    ("text", "chi2", "statistic", "p"),
    [
        ("3 2 1 | 3 2 1 | 3 1 2", 14 / 3, 7.0, 42 / 216),
        (".91 .90 .93 .89 | .85 .80 .88 .82 | .97 .95 .99 .96", 8.2, 20.5, 240 / 13824),
        (DEMSAR, 10.952, 4.586, 0.0093),
    ],
)
def test_friedman_s_p_is_that_of_permutations(text, chi2, statistic, p):
    result = friedman(table(text))
    assert result.chi2 == pytest.approx(chi2, abs=5e-4)
    assert result.statistic == pytest.approx(statistic, abs=5e-4)
    # The p of Demšar's table is known from random permutations alone.
    assert result.p == pytest.approx(p, abs=4e-4 if text == DEMSAR else 1e-12)
    assert result.n_permutations is None


def test_friedman_s_exact_p_is_that_of_all_permutations_one_by_one():
    generator = np.random.default_rng(4)
    for n, k, levels in [(2, 3, 9), (4, 3, 3), (3, 4, 3), (3, 4, 99), (2, 5, 4), (5, 3, 2)]:
        scores = frame(generator.integers(0, levels, size=(n, k)))
        rank = ranks(scores).to_numpy()
        orders = [list(itertools.permutations(row)) for row in rank]
        spread = np.array([(np.sum(rows, axis=0) ** 2).sum() for rows in itertools.product(*orders)])
        expected = np.mean(spread >= (rank.sum(axis=0) ** 2).sum() - 1e-9)
        assert friedman(scores).p == pytest.approx(expected, abs=1e-12)


def test_friedman_s_sampled_p_agrees_with_the_exact_one_whatever_the_order(monkeypatch):
    scores = table(DEMSAR)
    exact = friedman(scores).p
    monkeypatch.setattr(statistics, "_LARGEST_STEP", 1)
    sampled = friedman(scores)
    assert sampled.n_permutations == statistics.PERMUTATIONS == 99_999
    assert sampled.p == pytest.approx(exact, abs=5 * np.sqrt(exact / 99_999))
    assert sampled.p * 100_000 == pytest.approx(round(sampled.p * 100_000))
    assert friedman(scores.iloc[::-1, [2, 0, 3, 1]]).p == sampled.p


def test_friedman_samples_what_it_cannot_count():
    scores = frame(np.random.default_rng(0).normal(size=(40, 12)) + np.arange(12))
    result = friedman(scores)
    assert (result.p, result.n_permutations) == (1e-5, 99_999)


def test_friedman_never_promises_more_than_permutations_can():
    result = friedman(frame([[3, 2, 1]] * 3))
    assert result.statistic == np.inf
    assert result.p == pytest.approx(1 / 36)
    assert friedman(frame([[1, 1, 1], [2, 2, 2]])).p == 1


def test_friedman_needs_three_arms():
    with raises(ValueError, "3 arms"):
        friedman(frame([[1, 2], [2, 3]]))
