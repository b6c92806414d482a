import numpy as np
import pandas as pd
import pytest
from scipy.stats import friedmanchisquare

from orchestrator.analysis.statistics import (
    corrected_standard_error,
    friedman,
    holm,
    ranks,
    standard_error,
    unseen_violators,
)


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


def test_friedman_never_promises_more_than_permutations_can():
    result = friedman(frame([[3, 2, 1]] * 3))
    assert result.statistic == np.inf
    assert result.p == pytest.approx(1 / 36)
    assert friedman(frame([[1, 1, 1], [2, 2, 2]])).p == 1


def test_friedman_needs_three_arms():
    with pytest.raises(ValueError, match="at least 3 arms"):
        friedman(frame([[1, 2], [2, 3]]))


@pytest.mark.parametrize(
    ("draws", "confidence", "printed", "unit"),
    [
        (100, 0.90, 0.031, 1e-3),
        (100, 0.95, 0.044, 1e-3),
        (100, 0.99, 0.075, 1e-3),
        (590, 0.90, 0.0055, 1e-4),
        (590, 0.95, 0.0078, 1e-4),
        (590, 0.99, 0.013, 1e-3),
    ],
)
def test_unseen_violators_reproduce_the_dissertations_table(draws, confidence, printed, unit):
    # Some of the printed values are cut rather than rounded, so one unit of the last digit is allowed.
    assert unseen_violators(draws, confidence) == pytest.approx(printed, abs=unit)


def test_unseen_violators_checks_its_input():
    with pytest.raises(ValueError, match="draws >= 1"):
        unseen_violators(0, 0.95)
