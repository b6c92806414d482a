from dataclasses import asdict
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis import findings as frames
from orchestrator.analysis import ratios
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.pairwise import HIGHER, NO_DATA
from orchestrator.analysis.ratios import summarise
from tests.orchestrator.report.frames import arm, drop, edit, make_results

A = (2, 5, 10, 40, 8, 3, 20, 60)
B = (4, 20, 25, 50, 12, 9, 160, 75)


def bounds(low, high=None):
    return np.array([low, low if high is None else high], dtype=float)


def timed(folder, a, b, **options):
    """Return a study of arms a and b whose refits take so many seconds."""
    names = [f"d{i}" for i in range(len(a))]
    results = make_results(
        folder, {name: {"b": 0.9, "a": 0.9} for name in names}, profile="timing", **options
    )
    for name, *seconds in zip(names, a, b, strict=True):
        for solver, value in zip("ab", seconds, strict=True):
            results = edit(results, refit(name, solver), fit_seconds=float(value))
    return results


def refit(dataset, solver, *folds):
    def mask(f):
        chosen = (f.dataset == dataset) & (f.solver == solver) & (f.inner == -1)
        return chosen & f.outer.isin(folds) if folds else chosen

    return mask


def stop(results, dataset, solver, *folds, **values):
    return edit(results, refit(dataset, solver, *folds), status="timeout", **values)


def only(frame):
    (found,) = frame.to_dict("records")
    return found


def test_complete_times_give_the_geometric_mean_and_both_intervals():
    summary = summarise(bounds(np.divide(A, B)))
    assert (summary.n, summary.bound, summary.n_censored) == (8, "=", 0)
    found = [summary.ratio, summary.ratio_low, summary.ratio_high]
    assert found == pytest.approx([0.4155, 0.2434, 0.7095], abs=5e-5)
    found = [summary.typical, summary.typical_low, summary.typical_high, summary.confidence]
    assert found == pytest.approx([0.4472, 0.2236, 0.7303, 0.960938], abs=5e-5)
    assert (summary.p_lower, summary.p_upper, summary.sign) == (1 / 128, 1 / 128, -1)


def test_a_stopped_reference_leaves_an_upper_bound():
    limit = np.minimum(B, 70)
    high = np.divide(A, limit)
    summary = summarise(bounds(np.where(np.array(B) > 70, 0, high), high))
    assert (summary.bound, summary.n_censored) == ("≤", 2)
    assert summary.ratio == pytest.approx(0.465, abs=5e-4)
    assert np.isnan(summary.ratio_high)
    assert summary.typical_high == pytest.approx(0.7559, abs=5e-5)
    assert (summary.p_lower, summary.p_upper) == (1 / 128, 1 / 128)


def test_stopped_trainings_on_both_sides_leave_a_median_or_its_ends():
    summary = summarise(bounds([0.5, 0.5, 0.5, 0, 3], [0.5, 0.5, 0.5, 0.9, inf]))
    assert (summary.bound, summary.median_low, summary.median_high) == (
        "between",
        pytest.approx(0.5),
        pytest.approx(0.5),
    )
    assert np.isnan(summary.ratio)
    open_ended = summarise(bounds([0.5, 0], [0.5, inf]))
    assert (open_ended.median_low, open_ended.median_high) == (0, inf)


positive = st.floats(0.01, 100)


@given(
    st.lists(st.tuples(positive, positive, st.booleans(), st.booleans()), min_size=1, max_size=9),
    st.floats(0.1, 50),
)
def test_what_is_said_of_stopped_trainings_holds_for_the_times_they_would_have_taken(cases, limit):
    a, b, stop_a, stop_b = (np.array(column) for column in zip(*cases, strict=True))
    stop_a, stop_b = stop_a & (a > limit), stop_b & (b > limit)
    low = np.where(stop_b, 0, np.where(stop_a, limit, a) / b)
    high = np.where(stop_a, inf, a / np.where(stop_b, limit, b))
    truth, found = summarise(bounds(a / b)), summarise(bounds(low, high))
    slack = 1 + 1e-9
    if found.bound in ("=", "≤"):
        assert truth.ratio <= found.ratio * slack
        assert truth.typical <= found.typical * slack
    if found.bound in ("=", "≥"):
        assert truth.ratio * slack >= found.ratio
        assert truth.typical * slack >= found.typical
    assert found.median_low <= truth.median_low * slack
    assert found.median_high * slack >= truth.median_low
    if len(cases) > 5:
        assert found.typical_low <= truth.typical_low * slack
        assert found.typical_high * slack >= truth.typical_high
    assert (found.bound == "=") == (found.n_censored == 0)


def test_the_times_of_a_study_are_compared_with_what_stopped_trainings_allow(tmp_path):
    results = timed(tmp_path, A, B)
    complete = only(frames.time_ratios(analyse(results)))
    assert complete["fit_seconds_ratio"] == pytest.approx(0.4155, abs=5e-5)
    assert (complete["p"], complete["verdict"]) == (1 / 128, "faster")
    for name in ("d6", "d7"):
        results = stop(results, name, "b", fit_seconds=70.0)
    censored = only(frames.time_ratios(analyse(results)))
    assert (censored["fit_seconds_bound"], censored["fit_seconds_n_censored"]) == ("≤", 2)
    assert censored["fit_seconds_ratio"] == pytest.approx(0.465, abs=5e-4)
    assert censored["verdict"] == "faster"
    assert censored["predict_seconds_bound"] == "between"


def test_a_stopped_training_is_no_time(tmp_path):
    results = timed(tmp_path, [2], [4])
    results = stop(results, "d0", "a", 3, 4, fit_seconds=10.0)
    findings = analyse(results)
    row = only(frames.timing(findings)[frames.timing(findings)["solver"] == "a"])
    assert (row["fit_seconds"], row["n_stopped"]) == (pytest.approx(5.2), 2)
    assert np.isnan(row["fit_se"])
    assert np.isnan(row["fit_corrected_se"])
    assert np.isnan(row["predict_seconds"])
    ratio = only(frames.time_ratios(findings))
    assert (ratio["fit_seconds_bound"], ratio["fit_seconds_ratio"]) == ("≥", pytest.approx(1.3))


def test_a_training_killed_at_the_limit_counts_with_the_limit(tmp_path):
    results = stop(timed(tmp_path, [2], [4]), "d0", "a", fit_seconds=np.nan)
    results.provenance[0]["study"]["protocol"]["max_seconds"] = 8.0
    assert only(frames.time_ratios(analyse(results)))["fit_seconds_ratio"] == pytest.approx(2)
    results.provenance[0]["study"]["protocol"]["max_seconds"] = "8 in one; 10 in other"  # merged studies
    assert only(frames.time_ratios(analyse(results)))["fit_seconds_bound"] == "between"


def test_means_over_different_splits_are_not_divided(tmp_path):
    # Fold 4 is slow for both; a failed on it, and its mean over the others would look ten times faster.
    results = timed(tmp_path, [2, 2], [2, 2])
    for solver in "ab":
        results = edit(results, refit("d0", solver, 4), fit_seconds=92.0, n_iter=9200)
    results = edit(results, refit("d0", "a", 4), status="error", score=np.nan, fit_seconds=np.nan)
    for frame in (results, drop(results, refit("d0", "a", 4))):
        ratio = only(frames.time_ratios(analyse(frame)))
        assert (ratio["fit_seconds_ratio"], ratio["fit_seconds_n"]) == (pytest.approx(1), 1)
        assert ratio["fit_seconds_excluded"] == "d0"


def test_a_verdict_needs_both_ends(tmp_path):
    results = timed(tmp_path, [1] * 8, [2, 3, 4, 5, 6, 7, 8, 9])
    assert only(frames.time_ratios(analyse(results)))["verdict"] == "faster"
    results = stop(stop(results, "d0", "a", fit_seconds=1.0), "d1", "a", fit_seconds=1.0)
    ratio = only(frames.time_ratios(analyse(results)))
    assert ratio["verdict"] == ratios.UNDECIDED
    assert ratio["fit_seconds_bound"] == "≥"


def test_scores_and_times_are_one_family_of_tests(tmp_path):
    means = {f"d{i}": {"b": 0.8, "a": 0.81 + i / 100} for i in range(6)}
    plain = only(frames.tests(analyse(make_results(tmp_path, means))))
    assert (plain["family"], plain["p_adjusted"]) == (1, 0.03125)
    both = analyse(make_results(tmp_path, means, profile="timing"))
    test, ratio = only(frames.tests(both)), only(frames.time_ratios(both))
    assert (test["family"], ratio["family"]) == (2, 2)
    assert test["p_adjusted"] == ratio["p_adjusted"] == 0.0625
    assert "times 2 comparisons" in test["verdict"]


@pytest.mark.parametrize(
    ("n", "n_same", "words"),
    [
        (3, 0, "cannot be decided: with 3 datasets the smallest attainable p is 2^(1−3) = 0.25"),
        (7, 3, "only 4 of 7 datasets differ; the smallest attainable p is 2^(1−4) = 0.125"),
        (6, 6, "none of 6 datasets differs"),
        (7, 0, HIGHER),
        (1, 0, "cannot be decided: with 1 dataset the smallest attainable p is 2^(1−1) = 1"),
    ],
)
def test_a_verdict_says_what_the_datasets_could_have_shown(n, n_same, words, tmp_path):
    means = {f"d{i}": {"a": 0.8 + (0.01 + i / 1000 if i >= n_same else 0), "b": 0.8} for i in range(n)}
    test = only(frames.tests(analyse(make_results(tmp_path, means))))
    assert test["verdict"] == words if words == HIGHER else words in test["verdict"]
    assert "times" not in test["verdict"]


def test_without_a_common_dataset_there_is_no_p_but_the_pair_counts(tmp_path):
    means = {f"d{i}": {"a": 0.8, "b": 0.81 + i / 100, "c": 0.8} for i in range(7)}
    results = make_results(tmp_path, means)
    findings = analyse(drop(results, lambda f: (f.solver == "c") & (f.outer == 0)))
    tests = frames.tests(findings).set_index(["first", "second"])
    assert tests.loc[("a", "c"), "verdict"] == NO_DATA
    assert tests.loc[("a", "c"), ["p", "p_adjusted", "smallest_p", "loo_p_low"]].isna().all()
    assert tests.loc[("a", "b"), "p_adjusted"] == 3 / 64


def test_sweeps_pair_the_costs_of_the_same_folds_and_mark_what_was_stopped(tmp_path):
    etas = (1.0, 1.3)
    arms = [arm(f"m[eta={eta}]", "m", eta=eta) for eta in etas]
    means = {name: {each["name"]: 0.9 for each in arms} for name in ("d0", "d1")}
    results = make_results(tmp_path, means, arms=arms)  # 500 and 1000 iterations
    late = edit(results, refit("d0", "m[eta=1.3]", 4), status="error", score=np.nan, n_iter=1_000_000)
    summary = only(frames.sweep_summary(analyse(late)).query("setting == 1.3"))
    assert (summary["n_iter_ratio"], summary["n_iter_n"], summary["n_iter_bound"]) == (2, 1, "=")
    stopped = stop(results, "d0", "m[eta=1.3]", 4)
    summary = only(frames.sweep_summary(analyse(stopped)).query("setting == 1.3"))
    assert (summary["n_iter_bound"], summary["n_iter_n"]) == ("≥", 2)
    effort = frames.effort(analyse(late)).set_index(["dataset", "solver"])
    assert effort.loc[("d0", "m[eta=1.3]"), ["n_fits", "n_iter"]].tolist() == [4, 1000]


def test_a_cost_of_nothing_has_no_ratio():
    assert summarise(bounds([])).n == 0
    assert np.isnan(asdict(summarise(bounds([])))["ratio"])
