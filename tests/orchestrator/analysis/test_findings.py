from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.analysis.pairwise import HIGHER, LOWER, NO_DATA, NO_EVIDENCE, cliques
from orchestrator.store.results import PairState, StudyResults
from tests.messages import assert_says
from tests.orchestrator.report.frames import QUICKSTART, arm, drop, edit, empty, make_results, many


def row(frame, **values):
    mask = np.logical_and.reduce([frame[name] == value for name, value in values.items()])
    (found,) = frame[mask].to_dict("records")
    return found


def with_provenance(results, *provenance):
    return StudyResults(
        results.name, results.folder, results.trials, results.selections, results.outer, list(provenance)
    )


@pytest.fixture
def quickstart(tmp_path):
    return make_results(tmp_path, QUICKSTART)


def test_plan_of_a_grid_is_outer_times_inner_times_points_plus_refit(quickstart):
    # 5 · (2 · 6 + 1)
    findings = analyse(quickstart)
    assert (frames.coverage(findings)["planned"] == 65).all()
    assert (frames.coverage(findings)["ok"] == 65).all()
    assert (frames.coverage(findings)["refits"] == 5).all()


def test_a_race_omits_nothing_of_an_arm_with_one_candidate(tmp_path):
    """A race of mnsvm has stored all 5 · 2 · 6 inner trainings; the arm without a space needs none."""
    results = drop(
        make_results(tmp_path, {"iris": {"mnsvm": 0.9, "lda": 0.8}}),
        lambda f: (f.solver == "lda") & (f.inner >= 0),
    )
    declared = results.provenance[0]["study"]
    declared["search"], declared["arms"][1]["space"] = "race", {}
    sizes = {"mnsvm": 65, "lda": 5}
    states = {
        ("iris", name): PairState(n, ["key"] * n, refits=dict.fromkeys("abcde", ""))
        for name, n in sizes.items()
    }
    assert analyse(results).design.left_out(states) == (0, 60)


def test_plan_of_another_search_is_unknown(quickstart):
    provenance = quickstart.provenance[0]
    study = {**provenance["study"], "search": "pattern"}
    findings = analyse(with_provenance(quickstart, {**provenance, "study": study}))
    assert frames.coverage(findings)["planned"].isna().all()
    assert (frames.coverage(findings)["stored"] == 65).all()


def test_means_and_errors_by_hand(quickstart):
    # Folds at mean −0.01 −0.005 0 0.005 0.01: population variance 5·10⁻⁵, SE = sqrt(10⁻⁵).
    scores = row(frames.scores(analyse(quickstart)), dataset="iris", solver="mnsvm")
    assert scores["mean"] == pytest.approx(0.96)
    assert scores["se"] == pytest.approx(np.sqrt(1e-5))
    assert scores["corrected_se"] == pytest.approx(np.sqrt(6.25e-5 * 0.45))
    assert scores["complete"]


def test_errors_follow_the_sizes_of_the_splits_by_hand(quickstart):
    # 150 rows are tested on after trainings on 500, all in all: 0.3.
    sizes = {"n_test": [10, 20, 30, 40, 50], "n_train": [50, 100, 100, 150, 100]}
    outer = quickstart.outer.copy()
    mask = (outer["dataset"] == "iris") & (outer["solver"] == "mnsvm")
    for name, values in sizes.items():
        outer.loc[mask, name] = values
    unequal = replace(quickstart, outer=outer)
    scores = row(frames.scores(analyse(unequal)), dataset="iris", solver="mnsvm")
    assert scores["corrected_se"] == pytest.approx(np.sqrt(6.25e-5 * (1 / 5 + 0.3)))
    others = row(frames.scores(analyse(unequal)), dataset="wine", solver="mnsvm")
    assert (
        others["corrected_se"]
        == row(frames.scores(analyse(quickstart)), dataset="wine", solver="mnsvm")["corrected_se"]
    )


def test_repeats_count_as_splits_and_their_means_vary_by_hand(tmp_path):
    # The golden numbers of three seeds of five folds.
    values = [0.90, 0.93, 0.91, 0.96, 0.92, 0.91, 0.92, 0.93, 0.94, 0.93, 0.92, 0.90, 0.94, 0.95, 0.91]
    results = make_results(tmp_path, QUICKSTART, outer=15)
    mask = (results.outer["dataset"] == "iris") & (results.outer["solver"] == "mnsvm")
    outer = results.outer.assign(n_train=4 * results.outer["n_test"])  # as of five folds
    outer.loc[mask, "score"] = values
    provenance = results.provenance[0]
    study = provenance["study"]
    protocol = {**study["protocol"], "outer": 5, "seed": [0, 1, 2]}
    datasets = [{**facts, "n_inner": [2] * 15} for facts in study["datasets"]]
    recorded = {**provenance, "study": {**study, "protocol": protocol, "datasets": datasets}}
    found = row(
        frames.scores(analyse(with_provenance(replace(results, outer=outer), recorded))),
        dataset="iris",
        solver="mnsvm",
    )
    assert found["mean"] == pytest.approx(0.9246667, abs=5e-8)
    assert found["corrected_se"] == pytest.approx(0.00994589, abs=5e-9)
    assert found["repeat_sd"] == pytest.approx(0.00115470, abs=5e-9)


def test_the_highest_mean_of_a_dataset_is_marked(quickstart):
    scores = frames.scores(analyse(quickstart))
    assert row(scores, dataset="wine", solver="mnsvm")["best"]
    assert not row(scores, dataset="wine", solver="libsvm_l1")["best"]


def test_three_datasets_cannot_show_a_difference(quickstart):
    (test,) = frames.tests(analyse(quickstart)).to_dict("records")
    assert (test["n"], test["wins"], test["losses"]) == (3, 1, 2)
    assert (test["p"], test["smallest_p"], test["datasets_needed"]) == (0.75, 0.25, 6)
    assert_says(test["verdict"], "cannot be decided")
    assert (test["loo_p_low"], test["loo_p_high"]) == (0.5, 1.0)


def test_six_agreeing_datasets_show_one(tmp_path):
    means = {f"d{i}": {"a": 0.9 + i / 100, "b": 0.9 + i / 120 - 0.002} for i in range(6)}
    (test,) = frames.tests(analyse(make_results(tmp_path, means))).to_dict("records")
    assert (test["p"], test["verdict"]) == (0.03125, HIGHER)
    flipped = {name: {"a": means[name]["b"], "b": means[name]["a"]} for name in means}
    assert frames.tests(analyse(make_results(tmp_path, flipped)))["verdict"].tolist() == [LOWER]


def test_family_is_all_pairs_for_few_arms_and_the_first_against_the_rest_for_many(tmp_path):
    assert len(frames.tests(analyse(make_results(tmp_path, many(3, 4))))) == 6
    tests = frames.tests(analyse(make_results(tmp_path, many(3, 5))))
    assert len(tests) == 4
    assert set(tests["second"]) == {"solver0"}


def test_holm_is_applied_over_the_family(tmp_path):
    means = {f"d{i}": {"a": 0.9, "b": 0.91 + i / 1000, "c": 0.92 + i / 500} for i in range(7)}
    tests = frames.tests(analyse(make_results(tmp_path, means)))
    assert tests["p"].tolist() == [0.015625] * 3
    assert tests["p_adjusted"].tolist() == [0.046875] * 3


def test_a_missing_fold_takes_the_dataset_out_of_the_tests_by_name(quickstart):
    results = drop(quickstart, lambda f: (f.dataset == "wine") & (f.solver == "mnsvm") & (f.outer == 4))
    findings = analyse(results)
    scores = row(frames.scores(findings), dataset="wine", solver="mnsvm")
    assert (scores["n_folds"], scores["complete"], scores["best"]) == (4, False, False)
    (test,) = frames.tests(findings).to_dict("records")
    assert (test["n"], test["excluded"]) == (2, "wine")


def test_a_failed_refit_counts_as_missing_but_a_scored_timeout_does_not(quickstart):
    def at(dataset):
        return lambda f: (f.dataset == dataset) & (f.solver == "mnsvm") & (f.inner == -1) & (f.outer == 0)

    results = edit(quickstart, at("wine"), status="error", score=np.nan, message="boom")
    results = edit(results, at("iris"), status="timeout", message="stopped")
    findings = analyse(results)
    assert row(frames.scores(findings), dataset="wine", solver="mnsvm")["n_folds"] == 4
    assert row(frames.scores(findings), dataset="iris", solver="mnsvm")["n_folds"] == 5
    assert row(frames.coverage(findings), dataset="iris", solver="mnsvm")["timeout"] == 1
    assert row(frames.coverage(findings), dataset="iris", solver="mnsvm")["scored"] == 65
    assert row(frames.coverage(findings), dataset="wine", solver="mnsvm")["scored"] == 64


def test_a_study_without_provenance_is_read_from_its_rows(quickstart):
    findings = analyse(with_provenance(quickstart))
    assert list(findings.design.datasets) == list(QUICKSTART)
    assert {findings.design.n_outer(name) for name in QUICKSTART} == {5}
    assert frames.coverage(findings)["planned"].isna().all()


def test_an_empty_study_has_nothing_to_compare(tmp_path):
    findings = analyse(empty(tmp_path))
    assert frames.is_empty(findings)
    assert frames.tests(findings)["verdict"].tolist() == [NO_DATA]
    assert frames.coverage(findings)["stored"].tolist() == [0, 0]


def test_times_come_from_the_timing_profile_only(tmp_path, quickstart):
    assert frames.timing(analyse(quickstart)).empty
    findings = analyse(
        make_results(tmp_path, QUICKSTART, profile="timing", seconds={"mnsvm": 2, "libsvm_l1": 1})
    )
    # Seconds grow with the dataset's number, so ratios are 1/2 everywhere.
    assert row(frames.timing(findings), dataset="wine", solver="mnsvm")["fit_seconds"] == 4
    assert row(frames.timing(findings), dataset="iris", solver="mnsvm")["study_seconds"] == pytest.approx(
        65 * 2.2
    )
    (ratio,) = frames.time_ratios(findings).to_dict("records")
    assert ratio["fit_seconds_ratio"] == pytest.approx(0.5)
    assert ratio["fit_seconds_n"] == 3


def test_numbers_a_solver_does_not_publish_stay_missing(quickstart):
    effort = frames.effort(analyse(quickstart))
    assert np.isnan(row(effort, dataset="iris", solver="libsvm_l1")["n_kernel_evals"])
    assert row(effort, dataset="iris", solver="mnsvm")["n_iter"] == 500


def test_choices_on_the_border_are_counted(quickstart):
    # C cycles over three values and gamma over two, both its ends: every choice lies on the border.
    findings = analyse(quickstart)
    chosen = row(frames.selections(findings), dataset="iris", solver="mnsvm")
    assert (chosen["at_edge"], chosen["low_C"], chosen["high_C"]) == (5, 2, 1)
    assert chosen["n_tied"] == pytest.approx(1.4)
    assert chosen["chosen"].count("×") == 5
    assert frames.choices(findings)["count"].sum() == len(quickstart.selections)


def test_failures_of_one_kind_are_one_row_with_the_first_message(quickstart):
    results = edit(
        quickstart,
        lambda f: (f.dataset == "wine") & (f.param_C == 4),
        status="error",
        score=np.nan,
        message="matrix has 3 NaN in row 12",
    )
    results = edit(
        results,
        lambda f: (f.dataset == "wine") & (f.param_C == 4) & (f.outer == 4),
        message="matrix has 17 NaN in row 2",
    )
    failures = frames.failures(analyse(results))
    assert len(failures) == 1
    assert failures["message"][0] == "matrix has 3 NaN in row 12"
    assert failures["datasets"][0] == "wine"
    assert failures["count"][0] == (results.trials["status"] == "error").sum()


def test_friedman_and_ranks_use_complete_blocks(tmp_path):
    results = make_results(tmp_path, {f"d{i}": {"a": 0.9, "b": 0.8, "c": 0.7} for i in range(4)})
    results = drop(results, lambda f: (f.dataset == "d3") & (f.solver == "c") & (f.outer == 0))
    findings = analyse(results)
    assert frames.friedman_test(findings).n == 3
    assert frames.arm_ranks(findings)["mean_rank"].tolist() == [1, 2, 3]
    # The pair that completed it keeps the fourth dataset.
    assert row(frames.tests(findings), first="a", second="b")["n"] == 4


def test_cliques_join_what_no_test_tells_apart():
    def test(first, second, verdict):
        return {"first": first, "second": second, "verdict": verdict}

    tests = pd.DataFrame(
        [
            test("a", "b", NO_EVIDENCE),
            test("a", "c", HIGHER),
            test("b", "c", NO_EVIDENCE),
            test("c", "d", LOWER),
            test("a", "d", HIGHER),
            test("b", "d", HIGHER),
        ]
    )
    assert cliques(["a", "b", "c", "d"], tests) == [(0, 1), (1, 2)]


def test_sweeps_compare_with_the_setting_declared_first(tmp_path):
    etas = (1.0, 1.3, 1.6)
    means = {
        "iris": {"mnsvm[eta=1.0]": 0.90, "mnsvm[eta=1.3]": 0.92, "mnsvm[eta=1.6]": 0.89},
        "wine": {"mnsvm[eta=1.0]": 0.95, "mnsvm[eta=1.3]": 0.95, "mnsvm[eta=1.6]": 0.92},
    }
    arms = [arm(f"mnsvm[eta={eta}]", "mnsvm", eta=eta) for eta in etas]
    findings = analyse(make_results(tmp_path, means, arms=arms))
    assert frames.sweep_summary(findings)["setting"].tolist() == list(etas)
    middle = row(frames.sweep_summary(findings), setting=1.3)
    assert (middle["higher"], middle["equal"], middle["lower"]) == (1, 1, 0)
    assert middle["median_difference"] == pytest.approx(0.01)
    # Arms do 500, 1000 and 1500 iterations.
    assert middle["n_iter_ratio"] == pytest.approx(2)
    assert np.isnan(middle["fit_seconds_ratio"])


def test_two_swept_values_are_followed_one_at_a_time(tmp_path):
    arms = [arm(f"m[a={a},b={b}]", "m", a=a, b=b) for a in (1, 2) for b in (10, 20)]
    means = {"iris": {each["name"]: 0.9 for each in arms}}
    summary = frames.sweep_summary(analyse(make_results(tmp_path, means, arms=arms)))
    assert set(zip(summary["sweep"], summary["axis"], strict=True)) == {
        ("m[b=10]", "a"),
        ("m[b=20]", "a"),
        ("m[a=1]", "b"),
        ("m[a=2]", "b"),
    }


def test_the_control_stands_first_if_the_first_dataset_lacks_it(tmp_path):
    """A first run without the control on d0, and a second run of all arms on the other datasets."""
    names = [f"s{i}" for i in range(6)]
    means = {f"d{d}": {name: 0.8 + i / 100 + d / 1000 for i, name in enumerate(names)} for d in range(3)}
    results = drop(make_results(tmp_path, means), lambda f: (f.dataset == "d0") & (f.solver == "s0"))
    first, second = deepcopy(results.provenance[0]), deepcopy(results.provenance[0])
    first["study"] |= {"datasets": first["study"]["datasets"][:1], "arms": first["study"]["arms"][1:]}
    second["study"]["datasets"] = second["study"]["datasets"][1:]
    study = analyse(with_provenance(results, first, {**second, "run_id": "r2"}))
    assert len(study.design.pairs) == 17
    assert list(frames.means(study).columns) == list(study.design.arms) == names
    assert frames.tests(study)["second"].tolist() == ["s0"] * 5
    assert frames.tests(study)["estimate"].tolist() == pytest.approx([0.01, 0.02, 0.03, 0.04, 0.05])
