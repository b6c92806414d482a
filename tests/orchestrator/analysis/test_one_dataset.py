from math import nan

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from orchestrator.analysis.one_dataset import (
    NOT_COMPLETE,
    compare_on_dataset,
    compare_with_baseline,
    declared_pairs,
    mean_difference,
    paired_differences,
    relative_width,
    training_seconds,
)
from orchestrator.analysis.pairwise import NO_EVIDENCE

GOLDEN = [0.012, 0.004, 0.019, -0.003, 0.008]


def refits(scores, n_train=400, n_test=100):
    return pd.DataFrame(
        [
            {"dataset": "iris", "solver": arm, "outer": fold, "score": score}
            for arm, folds in scores.items()
            for fold, score in enumerate(folds)
        ]
    ).assign(n_train=n_train, n_test=n_test)


def means(**values):
    return pd.DataFrame(values, index=["iris"])


def only(frame):
    (found,) = frame.to_dict("records")
    return found


def test_the_golden_interval_of_five_folds():
    base = np.array([0.9, 0.8, 0.85, 0.95, 0.7])
    # The folds of an arm need not be stored in order.
    outer = refits({"control": base, "arm": base + GOLDEN}).iloc[::-1]
    found = only(paired_differences(outer, means(control=[0.84], arm=[0.848])))
    assert (found["solver"], found["reference"], found["n_folds"]) == ("arm", "control", 5)
    assert found["difference"] == pytest.approx(0.008)
    assert found["corrected_se"] == pytest.approx(0.005552027, abs=5e-10)
    assert [found["low"], found["high"]] == pytest.approx([-0.007415, 0.023415], abs=5e-7)


def test_a_higher_level_makes_a_wider_interval_and_larger_test_sets_too():
    outer = {"control": np.zeros(5), "arm": GOLDEN}
    both = means(control=[0.0], arm=[0.008])

    def width(frame):
        return only(frame)["high"] - only(frame)["low"]

    usual = width(paired_differences(refits(outer), both))
    assert width(paired_differences(refits(outer), both, 0.01)) > usual
    assert width(paired_differences(refits(outer, n_test=200), both)) > usual


def test_what_an_arm_has_not_completed_is_left_out():
    outer = refits({"control": [0.9] * 5, "arm": [0.9] * 4})
    assert paired_differences(outer, means(control=[0.9], arm=[np.nan])).empty
    assert paired_differences(outer, means(control=[np.nan], arm=[0.9])).empty


def test_a_single_fold_has_no_interval():
    found = only(
        paired_differences(refits({"control": [0.8], "arm": [0.9]}), means(control=[0.8], arm=[0.9]))
    )
    assert found["difference"] == pytest.approx(0.1)
    assert np.isnan([found["low"], found["high"]]).all()


def table(**scores):
    return pd.DataFrame(scores)


def test_the_corrected_t_of_the_golden_folds():
    found = mean_difference(np.array(GOLDEN), 0.25)
    # t = 0.008 / 0.005552027 with 4 degrees of freedom, by scipy.stats.
    assert found.p == pytest.approx(2 * stats.t.sf(0.008 / 0.005552027, 4), abs=1e-7)


def test_repeats_enter_as_splits():
    repeats = [0.90, 0.93, 0.91, 0.96, 0.92, 0.91, 0.92, 0.94, 0.93, 0.93, 0.92, 0.90, 0.94, 0.95, 0.91]
    found = mean_difference(np.array(repeats), 0.25)
    assert (found.n_splits, found.difference) == (15, pytest.approx(0.9246667, abs=5e-8))
    assert found.corrected_se == pytest.approx(0.00994589, abs=5e-9)
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.975, 14) * found.corrected_se)


@pytest.mark.parametrize(("difference", "p"), [(0.0, 1.0), (0.5, nan), (0.1, nan)])
def test_equal_differences_have_no_width_and_no_verdict(difference, p):
    found = mean_difference(np.full(5, difference), 0.25)
    assert (found.low, found.high) == (pytest.approx(difference), pytest.approx(difference))
    assert found.p == pytest.approx(p, nan_ok=True)
    scores = pd.DataFrame({"a": np.linspace(0.7, 0.9, 5) + difference, "b": np.linspace(0.7, 0.9, 5)})
    (row,) = compare_on_dataset(scores, 0.25, [("a", "b")]).to_dict("records")
    assert row["verdict"] == NO_EVIDENCE
    assert (row["holm_low"], row["holm_high"]) == (pytest.approx(difference), pytest.approx(difference))


def test_all_pairs_are_compared_without_a_control_and_each_arm_with_a_declared_one():
    assert declared_pairs(["a", "b", "c"], None) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert declared_pairs(["a", "b", "c"], "b") == [("a", "b"), ("c", "b")]


def test_holm_counts_the_planned_pairs_also_those_that_are_not_complete():
    rng = np.random.default_rng(0)
    base = rng.normal(0.8, 0.01, 5)
    scores = table(a=base, b=base - 0.1 + rng.normal(0, 0.005, 5), c=[*base[:4], np.nan])
    found = compare_on_dataset(scores, 0.25, declared_pairs(["a", "b", "c"], None)).set_index(
        ["first", "second"]
    )
    assert found.loc[("a", "b"), "verdict"] == "higher"
    assert found.loc[("a", "b"), "p_holm"] == pytest.approx(3 * found.loc[("a", "b"), "p"])
    assert set(found["verdict"].drop(("a", "b"))) == {NOT_COMPLETE}
    assert found["p_holm"].notna().sum() == 1


def test_an_adjusted_interval_excludes_zero_exactly_if_the_pair_is_told_apart():
    rng, told = np.random.default_rng(1), []
    for _ in range(40):
        means = rng.choice([0.7, 0.72, 0.76], (4, 1))
        scores = table(**dict(zip("abcd", means + rng.normal(0, 0.01, (4, 6)), strict=True)))
        found = compare_on_dataset(scores, 0.25, declared_pairs([*"abcd"], None))
        apart = found["p_holm"] <= 0.05
        assert ((found["holm_low"] > 0) | (found["holm_high"] < 0)).tolist() == apart.tolist()
        assert (found["holm_high"] - found["holm_low"] >= found["high"] - found["low"] - 1e-12).all()
        assert found.loc[~apart, "level"].nunique() <= 1
        told += [*apart, *((found["low"] > 0) & ~apart)]
    assert any(told)
    assert not all(told)


def test_the_interval_of_a_single_comparison_is_not_adjusted():
    found = only(compare_on_dataset(table(a=[0.9, 0.8, 0.9], b=[0.8, 0.8, 0.7]), 0.25, [("a", "b")]))
    assert (found["holm_low"], found["holm_high"]) == (found["low"], found["high"])
    assert found["level"] == 0.05


def test_a_single_split_is_compared_without_a_test():
    found = only(compare_on_dataset(table(a=[0.9], b=[0.8]), 0.25, [("a", "b")]))
    assert found["difference"] == pytest.approx(0.1)
    assert np.isnan([found["low"], found["high"], found["p"], found["p_holm"]]).all()
    assert found["verdict"] == "no evidence of a difference"


def test_the_gain_over_the_baseline_is_paired_on_the_splits():
    baseline = [0.6, 0.61, 0.6, 0.59, 0.6]
    scores = table(arm=np.add(baseline, GOLDEN), open=[0.9, np.nan, 0.9, 0.9, 0.9])
    found = only(compare_with_baseline(scores, baseline, 0.25))
    assert found["solver"] == "arm"
    assert [found["difference"], found["low"], found["high"]] == pytest.approx(
        [0.008, -0.007415, 0.023415], abs=5e-7
    )
    assert compare_with_baseline(scores, baseline[:4], 0.25).empty


def test_repeats_narrow_an_interval_down_to_what_the_shared_rows_leave():
    # 5 folds: t(4) √(1/5 + 1/4) = 1.8625; 25 splits: t(24) √(1/25 + 1/4) = 1.1114; no end: 1.96 / 2 = 0.98.
    assert relative_width(5, 25, 0.25) == pytest.approx(1.1114 / 1.8625, abs=1e-4)
    assert relative_width(5, np.inf, 0.25) == pytest.approx(0.97998 / 1.8625, abs=1e-4)
    assert np.isnan(relative_width(1, 5, 0.25))


def test_a_trial_without_a_time_costs_as_much_as_the_others():
    trials = pd.DataFrame({"fit_seconds": [1.0, 2.0, None], "predict_seconds": [0.5, 0.5, None]})
    assert training_seconds(trials) == pytest.approx(3 * 2.0)
