"""Sentences of a report that would be false of some studies: what they count, ties, what has ended."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse
from orchestrator.report import answer_text
from orchestrator.report.contents import all_tables
from orchestrator.report.sections.coverage import coverage_note
from orchestrator.report.sections.methods import checklist, methods
from orchestrator.report.sections.protocol import protocol
from orchestrator.report.sections.standings import brief_table
from orchestrator.report.verdict import answers, incomplete_note, verdict
from orchestrator.store.results import PairState
from orchestrator.study.report_choices import ReportChoices
from tests.messages import assert_says, assert_sentence, has_sentence
from tests.orchestrator.report.frames import arm, drop, edit, make_results

SEVEN = {f"d{i}": {"a": 0.9, "b": 0.91 + i / 1000, "c": 0.92 + i / 500} for i in range(7)}


def in_families(results, **family):
    for facts in results.provenance[0]["study"]["datasets"]:
        facts["family"] = family.get(facts["name"])
    return results


def refit_of(dataset, arm, *folds):
    return lambda f: (f.dataset == dataset) & (f.solver == arm) & (f.inner == -1) & f.outer.isin(folds)


# -- what is rounded ------------------------------------------------------------------------------


def test_a_small_difference_that_decides_is_not_printed_as_none(tmp_path):
    """Of 70,000 rows, differences of 0.04 points are significant on one dataset."""
    results = make_results(tmp_path, {"big": {"a": 0.98, "b": 0.98}}, spread=0.0003)
    losses = np.where(results.outer["solver"] == "b", [4, 5, 4, 3, 4] * 2, 0) / 10_000
    text = answer_text(replace(results, outer=results.outer.assign(score=results.outer["score"] - losses)))
    assert re.search(r"\nb .*worse than a \(−0\.04: −0\.05 to −0\.03\)", text)
    assert re.search(r"\na +98\.00 % ± 0\.02", text)


def test_a_few_of_many_folds_are_not_none(tmp_path, monkeypatch):
    row = {"solver": "a", "n_border": 1, "n_unmatched": 1, "ends": "largest C (1×)"}
    for n, share in ((300, "less than 1 %"), (4, "25 %")):
        frame = pd.DataFrame([{**row, "n": n}])
        monkeypatch.setattr(frames, "borders", lambda study, frame=frame: frame)
        assert_says(verdict(analyse(make_results(tmp_path, SEVEN))), f"On {share} of outer folds (1 of {n})")


# -- what is counted -----------------------------------------------------------------------------


def test_the_methods_count_families_where_they_are_the_unit(tmp_path):
    findings = analyse(in_families(make_results(tmp_path, SEVEN), d0="f", d1="f"))
    text = methods(findings)
    assert_sentence(text, "3 arms", "7 datasets", "6 families")
    assert_sentence(text, "means", "6 families")
    assert "6 datasets" not in text


def test_the_methods_give_the_range_of_datasets_of_the_pairs(tmp_path):
    results = drop(make_results(tmp_path, SEVEN), refit_of("d3", "c", 4))
    text = methods(analyse(results))
    assert_sentence(text, "means", "6 to 7 datasets")
    assert_sentence(text, "1 of 21", "outer fold")
    none = drop(make_results(tmp_path, SEVEN), lambda f: (f.solver == "c") & (f.outer == 0))
    assert_sentence(methods(analyse(none)), "1 of 3 pairs", "no dataset")


def test_one_training_with_a_score_has_one(tmp_path):
    one = analyse(drop(make_results(tmp_path, {"d": {"a": 0.9}}), lambda f: f.index > 0))
    assert_says(coverage_note(one), "1 of", "planned trainings has a score")


def test_nothing_is_said_to_be_tested_where_no_pair_has_a_dataset(tmp_path):
    results = drop(make_results(tmp_path, SEVEN), lambda f: (f.outer == 0) & (f.solver != "a"))
    assert "Wilcoxon" not in methods(analyse(results))


def test_the_methods_tell_tests_of_times_from_those_of_scores(tmp_path):
    timed = make_results(tmp_path, SEVEN, profile="timing")
    assert_sentence(methods(analyse(timed)), "5 tests", "3 of accuracy", "2 of training times", "a")
    scored = methods(analyse(make_results(tmp_path, SEVEN)))
    assert_sentence(scored, "3 tests")
    assert not has_sentence(scored, "3 tests", "training times")


def test_stopping_counts_families(tmp_path):
    means = {f"d{i}": {"a": 0.8, "b": 0.82 + i / 100} for i in range(14)}
    results = in_families(make_results(tmp_path, means), d0="f", d1="f")
    findings = analyse(results, ReportChoices(sequential=True))
    (said,) = [answer.text for answer in answers(findings) if "stop" in answer.question]
    assert_says(said, "b higher than a", "families", "E")
    assert "Families" in all_tables(findings)["sequence"].header


@pytest.mark.parametrize(("repeats", "coarse"), [(1, False), (4, True)])
def test_rows_that_are_tested_again_resolve_no_smaller_difference(tmp_path, repeats, coarse):
    results = make_results(tmp_path, SEVEN, n_test=20 if repeats == 1 else 5, outer=5 * repeats)
    study = results.provenance[0]["study"]
    study["protocol"] |= {"outer": 5, "seed": list(range(repeats))}
    for facts in study["datasets"]:
        facts["n_inner"] = [2] * 5 * repeats
    practical = frames.practical(analyse(results))
    assert practical["n"].tolist() == [7] * 3
    assert practical["coarse"].ne("").tolist() == [coarse] * 3


def test_random_splits_test_no_more_rows_than_a_dataset_has(tmp_path):
    """Of 60 rows, 100 splits test 20 each: one row is 1.7 points, and 2,000 tested rows resolve no less."""
    results = make_results(tmp_path, {f"d{i}": {"a": 0.9, "b": 0.8} for i in range(6)}, outer=100, n_test=20)
    for facts in results.provenance[0]["study"]["datasets"]:
        facts["n"] = 60 if facts["name"] == "d3" else 1000
    assert frames.practical(analyse(results))["coarse"].tolist() == ["d3"]


def test_captions_count_families_where_they_are_the_unit(tmp_path):
    findings = analyse(in_families(make_results(tmp_path, SEVEN), d0="f", d1="f"))
    tables = all_tables(findings)
    for name in ("tests", "sensitivity", "comparison_matrix", "test_details", "ranks", "practical"):
        assert re.search(r"famil(y|ies)\b", tables[name].caption), name
    assert "one family out" in tables["sensitivity"].title


def test_the_methods_name_the_software_of_every_run_that_trained(tmp_path):
    results = make_results(tmp_path, SEVEN)
    (run,) = results.provenance
    later = run | {"run_id": "r2", "versions": {"numpy": "3.0.0"}}
    idle = run | {"run_id": "r3", "versions": {"numpy": "4.0.0"}, "hosts": [{"cpu": "Idle CPU"}]}
    trials = results.trials.copy()
    trials.loc[trials["dataset"] == "d6", "run_id"] = "r2"
    text = methods(analyse(replace(results, trials=trials, provenance=[run, later, idle])))
    assert_sentence(text, "svmbench 0.1.0", "numpy 2.4.6", "scikit-learn 1.9.1", "later numpy 3.0.0")
    assert_sentence(text, "Machines", "Example CPU")
    assert "4.0.0" not in text
    assert "Idle CPU" not in text


def test_one_of_several_datasets_differs(tmp_path):
    means = {name: {"a": 0.9, "b": 0.9 + 0.1 * (name == "d0")} for name in SEVEN}
    assert_sentence(verdict(analyse(make_results(tmp_path, means))), "1 of 7 datasets")


# -- ties ----------------------------------------------------------------------------------------


def sharing(n=7):
    each = [{"a": 0.9, "b": 0.92, "c": 0.91}, {"a": 0.9, "b": 0.91, "c": 0.92}]
    means = {f"d{i}": dict(each[i % 2]) for i in range(n + n % 2)}
    return means


def test_all_arms_that_share_the_highest_mean_are_named(tmp_path):
    findings = analyse(make_results(tmp_path, sharing()))
    assert_sentence(verdict(findings), "b and c", "highest", "91.50 %", "a", "lowest", "90.00 %")
    assert frames.standings(findings)["may_be_best"].tolist() == [True, True, False]
    assert set(frames.standings(findings)["best"]) == {"b and c"}
    assert_sentence(verdict(findings), "highest expected mean of all 3", "among these 2", "b, c")
    assert_sentence(verdict(findings), "Excluded", "worse than the best of the others: a")
    table = all_tables(findings)["standings"]
    assert_sentence(table.caption, "All such arms", "“yes”", "95 %")
    assert_says(brief_table(findings).caption, "may be the best")


def test_of_equal_arms_none_is_called_worse_than_the_best(tmp_path):
    generator = np.random.default_rng(11)
    means = {f"d{i}": dict(zip("abcdefgh", generator.normal(0.8, 0.02, 8), strict=True)) for i in range(9)}
    said = verdict(analyse(make_results(tmp_path, means)))
    assert_sentence(said, "none of the 8 arms", "excluded", "worse than the best of the others")


def test_arms_of_one_mean_have_no_highest(tmp_path):
    same = {name: dict.fromkeys("abc", 0.9) for name in SEVEN}
    said = verdict(analyse(make_results(tmp_path, same)))
    assert_sentence(said, "3 arms", "same mean", "7 datasets", "90.00 %")
    assert "highest" not in said


def test_an_arm_that_ties_with_the_highest_and_the_lowest_is_named_once(tmp_path):
    means = {f"d{i}": {"a": 0.9, "b": 0.9004, "c": 0.9006} for i in range(8)}  # 1,000 predictions each
    said = verdict(analyse(make_results(tmp_path, means)))
    assert_sentence(said, "b and c", "highest", "90.04 to 90.06 %", "a", "lowest", "90.00 %")


# -- what has ended ------------------------------------------------------------------------------


def test_failures_that_are_final_are_counted_and_not_lacking(tmp_path):
    results = make_results(tmp_path, SEVEN)
    results = edit(results, refit_of("d1", "b", 0, 1), status="error", score=np.nan)
    results = edit(results, refit_of("d1", "b", 2), status="timeout", score=np.nan)
    results = edit(results, refit_of("d1", "b", 3), status="timeout")  # with a score
    results = drop(results, refit_of("d2", "c", 4))
    states = {(dataset, arm): PairState(65) for dataset in SEVEN for arm in "abc"}
    note = incomplete_note(analyse(replace(results, states=states)))
    assert not has_sentence(note, "not complete")
    assert not has_sentence(note, "still", "lack")
    assert_sentence(note, "b on d1", "5 refits", "2 failed", "1 stopped", "time limit")
    assert_sentence(note, "c on d2", "5 refits", "1 not run", "no candidate")
    states["d2", "c"] = PairState(65, complete=False)
    note = incomplete_note(analyse(replace(results, states=states)))
    assert_says(note, "not complete", "2 failed")
    assert_sentence(note, "lack", "c on d2", "4 of 5")


def test_a_study_without_a_score_does_not_name_a_cause_that_is_not_known(tmp_path):
    results = make_results(tmp_path, SEVEN)
    states = {(dataset, arm): PairState(65) for dataset in SEVEN for arm in "abc"}
    none = replace(drop(results, lambda f: f.inner == -1), states=states)
    said = verdict(analyse(none))
    assert "refit failed" not in said, "no refit was made"
    assert_says(said, "ended")


def test_a_refit_that_no_candidate_could_have_is_not_called_to_be_run_yet(tmp_path):
    results = drop(make_results(tmp_path, SEVEN), refit_of("d2", "c", 4))
    states = {(dataset, arm): PairState(65) for dataset in SEVEN for arm in "abc"}
    said = coverage_note(analyse(replace(results, states=states)))
    assert_sentence(said, "1", "never run", "no candidate")
    assert "yet" not in said
    states["d2", "c"] = PairState(65, complete=False)
    assert_sentence(coverage_note(analyse(replace(results, states=states))), "1 not run yet")


def test_a_single_fold_has_no_error_to_speak_of(tmp_path):
    results = make_results(tmp_path, SEVEN, outer=1)
    findings = analyse(results)
    assert "Standard errors" not in methods(findings)
    assert ("Error bars", "none") in [(row[0].text, row[1].text) for row in checklist(findings).rows]


# -- probabilities -------------------------------------------------------------------------------


def test_a_plurality_is_no_majority(tmp_path):
    findings = analyse(make_results(tmp_path, SEVEN))
    caption = all_tables(findings)["practical"].caption
    assert "majority" not in caption
    assert_sentence(caption, "most frequent", "all pairs")


# -- sentences of sections that speak of what a study does not have ---------------------------------


def captions(findings):
    return {name: table.caption for name, table in all_tables(findings).items()}


def test_hyper_parameters_that_were_fixed_are_not_called_searched(tmp_path):
    results = make_results(tmp_path, SEVEN)
    fixed = replace(results, selections=results.selections.assign(inner_score=np.nan))
    assert "inner search selects" in captions(analyse(results))["selections"]
    found = all_tables(analyse(fixed))["selections"]
    assert "inner search selects" not in found.caption
    assert_sentence(found.caption, "No inner search")
    assert not {"On the border", "Outer − inner"} & {*found.header}


def test_a_single_candidate_is_not_selected_by_inner_folds(tmp_path):
    one = [arm(name) | {"space": {"C": [1.0], "gamma": [0.1]}} for name in "abc"]
    text = methods(analyse(make_results(tmp_path, SEVEN, arms=one)))
    assert "select the hyper-parameters" not in text
    assert_says(text, "configured hyper-parameters")
    assert "select the hyper-parameters" in methods(analyse(make_results(tmp_path, SEVEN)))


@pytest.mark.parametrize(
    "search",
    [
        {"target": "selected", "options": {"study": "small"}},
        {"target": "grid", "options": {"by_dataset": {name: {"C": 1.0, "gamma": 0.1} for name in SEVEN}}},
    ],
)
@pytest.mark.parametrize("outer", [5, {"_target_": "sklearn.model_selection.ShuffleSplit", "n_splits": 5}])
def test_fixed_candidates_are_not_selected_on_inner_splits(tmp_path, search, outer):
    results = make_results(tmp_path, SEVEN)
    declared = results.provenance[0]["study"]
    declared["protocol"]["outer"] = outer
    assert_says(protocol(analyse(results))["Evaluation"], "nested", "inner", "select the hyper-parameters")
    declared["search"] = search
    text = protocol(analyse(results))["Evaluation"]
    assert not any(word in text for word in ("nested", "inner", "select"))
    assert_says(text, "at fixed hyper-parameters", "5 splits" if isinstance(outer, dict) else "5 folds")


def test_a_timed_sample_on_random_splits_says_where_its_candidates_were_selected(tmp_path):
    results = make_results(tmp_path, SEVEN)
    declared = results.provenance[0]["study"]
    declared["protocol"]["outer"] = {"_target_": "sklearn.model_selection.ShuffleSplit", "n_splits": 5}
    declared["search"] = {"target": "sample", "options": {"study": "small", "strata": {}, "refits": {}}}
    text = protocol(analyse(results))["Evaluation"]
    assert "select the hyper-parameters" not in text
    assert_says(text, "splits of study small", "selected there", "ShuffleSplit, 5 splits", "inner splits: 2")


def test_medians_of_another_study_are_not_called_the_most_frequent_selection(tmp_path):
    results = make_results(tmp_path, SEVEN)
    options = {"study": "small", "rule": "median"}
    results.provenance[0]["study"]["search"] = {"target": "selected", "options": options}
    text = methods(analyse(results))
    assert_says(text, "medians of the hyper-parameters", "study small")
    assert "on most outer folds" not in text


def test_the_table_of_one_solver_explains_no_comparison(tmp_path):
    alone = captions(analyse(make_results(tmp_path, {"iris": {"a": 0.9}})))["answer"]
    assert "Paired difference" not in alone
    assert "conservative for differences" not in alone
    both = captions(analyse(make_results(tmp_path, {"iris": {"a": 0.9, "b": 0.8}})))["answer"]
    assert_says(both, "Paired difference", "conservative for differences")


def test_bootstrap_intervals_over_few_datasets_are_called_too_narrow(tmp_path):
    """At 8 datasets they cover the mean in 90 % of studies; see the manual."""
    assert_says(captions(analyse(make_results(tmp_path, SEVEN)))["standings"], "too narrow")
    twelve = {f"d{i}": {"a": 0.9, "b": 0.91 + i / 1000, "c": 0.92 + i / 500} for i in range(12)}
    assert "too narrow" not in captions(analyse(make_results(tmp_path, twelve)))["standings"]
