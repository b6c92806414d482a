"""The paragraph on methods and the checklist, filled in from the store."""

from dataclasses import replace

import pytest

from orchestrator.analysis.findings import analyse, time_ratios
from orchestrator.report.sections.methods import checklist, methods
from orchestrator.report.verdict import incomplete_note
from tests.messages import assert_says, assert_sentence
from tests.orchestrator.report.frames import edit, empty, make_results, thirteen

FEW = ("d0", "d1", "d2")


@pytest.fixture(scope="module")
def results():
    return make_results("x", thirteen(), profile="timing", outer=5)


def answers_of(findings):
    return {row[0].text: row[1].text for row in checklist(findings).rows}


def test_the_paragraph_says_how_everything_was_done(results):
    text = methods(analyse(results))
    assert_sentence(text, "13 arms", "13 datasets", "nested cross-validation", "5 outer folds")
    assert_sentence(text, "13 datasets", "control", "exact", "two-sided", "Wilcoxon")
    assert_sentence(text, "24 tests", "12 of accuracy", "12 of training times", "control")
    assert_sentence(text, "equivalence", "1 percentage point")
    assert_sentence(text, "svmbench 0.1.0", "numpy 2.4.6", "scikit-learn 1.9.1")
    assert_sentence(text, "Example CPU", "2 cores", "7.8 GiB")


def test_the_checklist_answers_from_the_store(results):
    found = answers_of(analyse(results))
    assert_says(found["Data: versions"], "13 of 13", "fingerprint")
    assert_says(found["Data: sample size"], "1,000 to 13,000 rows")
    assert_says(found["Trainings"], "10,985 of 10,985")
    assert found["Copies of training rows among test rows"] == "not recorded"
    assert found["Code"] == "commit 0123456789"
    assert found["Commands"] == "svmbench run experiment=example"
    assert_says(found["Trained to the optimum"], "yes")
    assert_says(found["Separation of training and test rows"], "fitted", "training rows")
    results.provenance[0]["study"]["datasets"][3]["tested_copies"] = 0.125
    loose = edit(results, lambda f: (f.solver == "better") & (f.inner == -1), gap=0.5)
    found = answers_of(analyse(loose))
    assert_says(found["Copies of training rows among test rows"], "12.5 %", "test rows")
    assert_says(found["Trained to the optimum"], "not known", "13 dataset × arm")


def test_one_dataset_has_one_size(tmp_path):
    found = answers_of(analyse(make_results(tmp_path, {"d": {"a": 0.9, "b": 0.8}})))
    assert found["Data: sample size"] == "1,000 rows"


@pytest.mark.parametrize(
    ("search", "is_fixed"),
    [
        ("grid", False),
        ({"target": "grid", "options": {"by_dataset": {"d0": {"C": 1, "gamma": 0.1}}}}, False),
        ({"target": "grid", "options": {"by_dataset": {name: {"C": 1, "gamma": 0.1} for name in FEW}}}, True),
        ({"target": "selected", "options": {"study": "s"}}, True),
    ],
    ids=["searched", "fixed on one dataset", "fixed on all", "selected by another study"],
)
def test_inner_splits_select_only_where_there_is_a_search(tmp_path, search, is_fixed):
    """A protocol declares its inner splits for any search, and a splitter is described with them."""
    results = make_results(tmp_path, {name: {"a": 0.9, "b": 0.8} for name in FEW})
    study = results.provenance[0]["study"]
    study["search"] = search
    study["protocol"]["outer"] = {"_target_": "sklearn.model_selection.ShuffleSplit", "n_splits": 5}
    for each in study["datasets"]:
        each["n_inner"] = [2] * 5
    text = methods(analyse(results))
    assert ("at fixed hyper-parameters" in text) == is_fixed
    assert ("inner splits" in text) != is_fixed


def test_what_is_not_recorded_is_said_to_be(results, tmp_path):
    lost = replace(results, provenance=[])
    assert methods(analyse(lost)) == ""
    found = answers_of(analyse(lost))
    assert (found["Code"], found["Commands"]) == ("not recorded", "not recorded")
    assert methods(analyse(empty(tmp_path))) == ""
    assert answers_of(analyse(empty(tmp_path)))["Significance"] == "none"


def test_a_combination_without_a_score_may_take_part_in_tests_of_times(results):
    """A refit that was killed at the time limit has no score, and bounds the ratio of times."""
    stopped = {"status": "timeout", "score": float("nan"), "fit_seconds": 100.0}
    killed = edit(
        results,
        lambda f: (f.dataset == "data0") & (f.solver == "better") & (f.inner == -1) & (f.outer == 2),
        **stopped,
    )
    study = analyse(killed)
    ratios = time_ratios(study).set_index("solver")
    assert ratios.loc["better", ["fit_seconds_n", "fit_seconds_n_censored"]].tolist() == [13, 1]
    assert_sentence(methods(study), "1 of 169 combinations", "no test of accuracy")
    assert_sentence(incomplete_note(study), "left out", "tests of scores")
