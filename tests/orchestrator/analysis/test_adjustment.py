"""The family of tests of a study that is adjusted by max-t."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis.adjustment import max_t_family
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.pairwise import HIGHER, LOWER, of_different_solvers
from orchestrator.analysis.power import detectable_effect
from orchestrator.analysis.sign_flips import max_t_means, simultaneous_intervals
from orchestrator.analysis.signed_rank import signed_rank
from orchestrator.analysis.statistics import holm
from orchestrator.study.report_choices import MAX_T, ReportChoices
from tests.orchestrator.report.frames import make_results

BIAS_EVALUATION = Path(__file__).with_name("bias_evaluation.csv")
"""Differences of 17 arms from their control on 8 datasets, of scores and then of the logarithms of times: the
study `bias_evaluation` as it was first published."""


def frame(values):
    return pd.DataFrame(values, index=[f"d{i}" for i in range(len(values))])


def test_scores_and_times_are_one_family():
    values = np.random.default_rng(4).normal(0.6, 1, size=(8, 5))
    scores, times = frame(values[:, :3]), frame(values[:, 3:])
    found, expected = max_t_family(scores, (times, times), 0.05), max_t_means(values)
    assert found.p_adjusted == pytest.approx(expected.p_adjusted[:3])
    assert found.times_at_worst == pytest.approx(expected.p_adjusted[3:])
    assert (found.times_at_best == found.times_at_worst).all()
    assert found.times_sign.tolist() == np.sign(values[:, 3:].mean(axis=0)).tolist()
    assert (found.p_adjusted < expected.single_step[:3]).any()
    assert np.array([found.low, found.high]) == pytest.approx(simultaneous_intervals(values[:, :3], 0.05))


def test_a_bound_counts_at_its_worse_end():
    scores = frame(np.zeros((8, 1)))
    lower = frame(np.array([[0.5, 1, 1, 1, 1, 1, 1, 1]]).T)
    upper, opposite = lower.copy(), lower.copy()
    upper.iloc[0] = np.inf
    opposite.iloc[:, 0] = [-30.0, *[1.0] * 7]
    found = max_t_family(scores, (lower, upper), 0.05)
    assert found.times_at_worst.tolist() == [2.0**-7]
    assert found.times_sign.tolist() == [1]
    # Between an end that is below and one that is above, nothing is known.
    found = max_t_family(scores, (opposite, upper), 0.05)
    assert (found.times_at_worst.tolist(), found.times_sign.tolist()) == ([1], [0])


def test_the_first_bias_evaluation_has_differences_that_holm_s_method_cannot_find():
    """Of 34 tests on 8 datasets, max-t finds 15, and the smallest p times 34 is above the level."""
    with BIAS_EVALUATION.open(encoding="utf-8") as file:
        values = np.array([[float(value) for value in row] for row in csv.reader(file)])
    assert values.shape == (8, 34)
    found = max_t_family(frame(values[:, :17]), (frame(values[:, 17:]),) * 2, 0.05)
    assert (found.p_adjusted <= 0.05).sum() == 0
    assert (found.times_at_worst <= 0.05).sum() == 15
    by_holm = holm(np.array([signed_rank(pd.Series(column)).p for column in values.T]))
    assert by_holm.min() == 34 * 2.0**-7


def test_eight_datasets_and_twelve_arms_can_decide():
    generator = np.random.default_rng(1)
    means = {
        f"d{d}": {f"a{i}": 0.8 + 0.002 * generator.normal() + 0.01 * (i in (1, 2)) for i in range(13)}
        for d in range(8)
    }
    results = make_results("x", means)
    found = analyse(results, ReportChoices(adjust=MAX_T))
    tests = frames.tests(found).set_index("first")
    assert tests.loc[["a1", "a2"], "verdict"].tolist() == [HIGHER, HIGHER]
    assert tests["datasets_needed"].unique().tolist() == [6]
    assert (tests.loc["a1", "mean_low"] > 0) == (tests.loc["a1", "mean_difference"] > 0)
    assert not frames.tests(analyse(results))["verdict"].isin([HIGHER, LOWER]).any()
    assert np.isinf(detectable_effect(8, 12))
    assert detectable_effect(8, 12, adjustment=MAX_T) == pytest.approx(1.9, abs=0.15)
    assert detectable_effect(5, 1, adjustment=MAX_T) == np.inf


def test_eight_arms_are_compared_in_all_pairs_and_nine_with_the_first():
    for n_arms, number in ((8, 28), (9, 8)):
        means = {f"d{d}": {f"a{i}": 0.8 + 0.001 * ((d * i) % 7) for i in range(n_arms)} for d in range(6)}
        found = analyse(make_results("x", means), ReportChoices(adjust=MAX_T))
        assert len(frames.tests(found)) == number


def test_settings_of_one_solver_have_a_joint_test_in_place_of_friedman_s():
    assert of_different_solvers({"a": {}, "b": {"solver": "b", "target": "x.B"}})
    assert not of_different_solvers({"a[c=1]": {"solver": "a"}, "a[c=2]": {"solver": "a"}})
    assert not of_different_solvers({"a": {"target": "x.A"}, "b": {"target": "x.A"}})
    pipeline = "sklearn.pipeline.Pipeline"
    assert of_different_solvers({"a": {"target": pipeline}, "b": {"target": pipeline}})
