"""Tests of sweeps: published values, all flips of signs one by one, and the best of equal settings."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis import sign_flips
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.signed_rank import hodges_lehmann, pratt_p, signed_rank
from orchestrator.analysis.sweep_tests import max_t, selected_scores
from tests.messages import assert_says
from tests.orchestrator.report.frames import arm, make_results

COLUMNS = np.array(
    [
        [0.4, 0.3, 0.1, 0.5, 0.2, -0.1, 0.6, 0.2],
        [0.6, 0.5, 0.7, 0.2, 0.9, 0.4, 0.3, 0.8],
        [0.2, -0.2, 0.3, 0.1, -0.4, 0.5, 0, 0.1],
        [-0.1, 0.2, -0.3, 0.4, 0.1, -0.2, 0.3, -0.4],
    ]
).T


def test_golden_curve():
    found = max_t(COLUMNS)
    assert found.t == pytest.approx([2.3161, 2.5205, 0.8443, 0], abs=5e-5)
    assert found.single_step == pytest.approx([0.0703125, 0.0234375, 0.8359375, 1])
    assert found.p == pytest.approx([0.0625, 0.0234375, 0.65625, 1])
    bands = [hodges_lehmann(pd.Series(column), 1 - 0.05 / 4) for column in COLUMNS.T]
    ends = [(band.low, band.high) for band in bands]
    assert np.array(ends) == pytest.approx(np.array([(-0.1, 0.6), (0.2, 0.9), (-0.4, 0.5), (-0.4, 0.4)]))
    assert {band.confidence for band in bands} == {0.9921875}


def test_p_values_are_those_of_all_flips_one_by_one():
    generator = np.random.default_rng(2)
    for n, m in [(3, 2), (5, 4), (6, 1)]:
        values = generator.integers(-3, 4, size=(n, m)) / 10
        ranks = np.array([pd.Series(abs(column)).rank() * np.sign(column) for column in values.T]).T
        norms = np.sqrt((ranks**2).sum(axis=0))
        t = [
            abs((np.array(signs)[:, None] * ranks).sum(axis=0)) / np.where(norms > 0, norms, 1)
            for signs in product([-1, 1], repeat=n)
        ]
        expected = [np.mean([max(each) >= own - 1e-9 for each in t]) for own in t[-1]]
        assert max_t(values).single_step == pytest.approx(expected)


def test_one_setting_has_the_p_of_pratt_s_test_and_copies_cost_nothing():
    column = COLUMNS[:, [2]]
    assert max_t(column).p == pytest.approx([pratt_p(pd.Series(column[:, 0]))])
    five = max_t(np.repeat(COLUMNS[:, [0]], 5, axis=1))
    assert five.p == pytest.approx([signed_rank(pd.Series(COLUMNS[:, 0])).p] * 5)


def test_the_smallest_p_is_that_of_one_test_for_any_number_of_settings():
    values = 1 + np.random.default_rng(0).random((6, 9))
    assert max_t(values).p == pytest.approx([2.0**-5] * 9)


def test_many_datasets_take_random_flips_that_agree_with_all(monkeypatch):
    exact = max_t(COLUMNS).p
    monkeypatch.setattr(sign_flips, "ALL_FLIPS_UP_TO", 2)
    monkeypatch.setattr(sign_flips, "_LARGEST_BLOCK", 50_000)
    found = max_t(COLUMNS)
    assert found.p == pytest.approx(exact, abs=0.006)
    assert np.array_equal(max_t(COLUMNS[::-1]).p, found.p)


def test_golden_selected_arm():
    inner = np.array([[0.90, 0.91, 0.89, 0.92, 0.90], [0.91, 0.91, 0.88, 0.93, 0.89]])
    outer = np.array([[0.88, 0.90, 0.91, 0.89, 0.90], [0.89, 0.92, 0.90, 0.88, 0.93]])
    found = selected_scores(inner, outer)
    assert found.tolist() == [0.89, 0.90, 0.91, 0.88, 0.90]
    assert found.mean() == pytest.approx(0.896)
    assert outer.mean(axis=1).max() == pytest.approx(0.904)


ETAS = (1.0, 1.3, 1.6)


def study(folder, n_datasets=8, gain=0.004):
    means = {
        f"d{d}": {
            f"m[eta={eta}]": 0.8 + d / 100 + gain * i + (d % 3) / 1000 * i for i, eta in enumerate(ETAS)
        }
        for d in range(n_datasets)
    }
    results = make_results(folder, means, arms=[arm(f"m[eta={eta}]", "m", eta=eta) for eta in ETAS])
    best = results.selections["solver"] == "m[eta=1.3]"
    results.selections["inner_score"] = np.where(best, 0.95, 0.9)
    return results


def test_a_study_s_sweep_is_tested_as_a_whole_and_its_selected_arm_as_one(tmp_path):
    found = analyse(study(tmp_path))
    curves = frames.sweep_curves(found)
    assert curves["setting"].tolist() == [1.3, 1.6]
    assert curves["p"].tolist() == [2.0**-7] * 2
    assert (curves["low"] > 0).all()
    (row,) = frames.sweep_selected(found).to_dict("records")
    assert (row["solver"], row["reference"], row["n"]) == ("m[eta=selected]", "m[eta=1.0]", 8)
    assert (row["p"], row["verdict"]) == (2.0**-7, "higher")
    assert row["mean"] == pytest.approx(frames.means(found)["m[eta=1.3]"].mean())


def test_a_family_of_datasets_counts_once_in_the_tests_of_a_sweep(tmp_path):
    results = study(tmp_path)
    for facts in results.provenance[0]["study"]["datasets"]:
        facts["family"] = "" if facts["name"] in ("d6", "d7") else "parent"
    found = analyse(results)
    assert set(frames.sweep_curves(found)["n"]) == {3}
    (row,) = frames.sweep_selected(found).to_dict("records")
    assert (row["n"], row["p"]) == (3, 0.25)
    assert "with 3 families" in row["verdict"]


def test_too_few_datasets_have_no_band_and_no_verdict(tmp_path):
    found = analyse(study(tmp_path, n_datasets=3))
    assert frames.sweep_curves(found)["low"].isna().all()
    assert frames.sweep_curves(found)["p"].tolist() == [0.25, 0.25]
    assert_says(frames.sweep_selected(found)["verdict"].item(), "cannot be decided")


@pytest.mark.parametrize("n_studies", [400, pytest.param(10_000, marks=pytest.mark.full)])
def test_the_best_of_eight_equal_settings_is_called_better_in_at_most_five_per_cent(n_studies):
    generator = np.random.default_rng(8)
    called = naive = 0
    for _ in range(n_studies):
        scores = np.round(generator.normal(size=(10, 8)), 1)  # ties among them
        differences = scores[:, 1:] - scores[:, :1]
        called += max_t(differences).p.min() <= 0.05
        best = np.argmax(differences.mean(axis=0))
        naive += signed_rank(pd.Series(differences[:, best])).p <= 0.05
    print(f"best of 8 equal settings: max-T {called / n_studies:.3f}, naive {naive / n_studies:.3f}")
    assert called / n_studies <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_studies)
    assert naive > called


def test_the_band_of_a_sweep_has_the_level_divided_by_the_settings(tmp_path):
    results = study(tmp_path, n_datasets=9)
    found = analyse(results)
    curves, means = frames.sweep_curves(found).set_index("setting"), frames.means(found)
    for eta in (1.3, 1.6):
        differences = means[f"m[eta={eta}]"] - means["m[eta=1.0]"]
        expected = hodges_lehmann(differences, 1 - 0.05 / 2)
        assert curves.loc[eta, ["low", "high", "confidence"]].tolist() == pytest.approx(
            [expected.low, expected.high, expected.confidence]
        )
        assert expected.confidence > hodges_lehmann(differences, 0.95).confidence


def test_the_selected_arms_of_all_sweeps_are_one_family(tmp_path):
    names = [f"{solver}[eta={eta}]" for solver in ("k", "m") for eta in ETAS]
    means = {
        f"d{d}": {name: 0.8 + d / 100 + (0.004 + d / 1000) * (i % 3) for i, name in enumerate(names)}
        for d in range(7)
    }
    means["d0"] |= dict.fromkeys(names, 0.8)
    arms = [arm(name, name[0], eta=float(name[6:-1])) for name in names]
    results = make_results(tmp_path, means, arms=arms)
    best = results.selections["solver"].isin(["m[eta=1.3]", "k[eta=1.6]"])
    results.selections["inner_score"] = np.where(best, 0.95, 0.9)
    found = frames.sweep_selected(analyse(results))
    assert found["family"].tolist() == [2, 2]
    assert found["p"].tolist() == [2.0**-5] * 2
    assert found["p_holm"].tolist() == [2.0**-4] * 2
    assert set(found["verdict"]) != {"higher"}
