"""The paragraph on methods and the checklist, filled in from the store."""

from dataclasses import replace

import pytest

from orchestrator.analysis.findings import analyse
from orchestrator.report.sections.methods import checklist, methods
from tests.orchestrator.report.frames import edit, empty, make_results, thirteen


@pytest.fixture(scope="module")
def results():
    return make_results("x", thirteen(), profile="timing", outer=5)


def answers_of(findings):
    return {row[0].text: row[1].text for row in checklist(findings).rows}


def test_the_paragraph_says_how_everything_was_done(results):
    text = methods(analyse(results))
    assert text.startswith("We compared 13 arms on 13 datasets by nested cross-validation: 5 outer folds")
    assert "13 datasets, every other arm was compared with control by the exact two-sided Wilcoxon" in text
    assert "for 24 tests, 12 of accuracy and 12 of training times relative to those of control." in text
    assert "Practical equivalence within 1 percentage point" in text
    assert "svmbench 0.1.0, numpy 2.4.6, scikit-learn 1.9.1." in text
    assert text.endswith("Example CPU, 2 cores, 7.8 GB.")


def test_the_checklist_answers_from_the_store(results):
    found = answers_of(analyse(results))
    assert found["Data: versions"] == "13 of 13 datasets with a fingerprint of the content"
    assert found["Data: sample size"] == "1,000 to 13,000 rows"
    assert found["Trainings"] == "10,985 of 10,985 planned trainings have a score."
    assert found["Copies of training rows among test rows"] == "not recorded"
    assert found["Code"] == "commit 0123456789"
    assert found["Commands"] == "svmbench run experiment=example"
    assert found["Trained to the optimum"].startswith("yes")
    assert "fitted on the training rows" in found["Separation of training and test rows"]
    results.provenance[0]["study"]["datasets"][3]["tested_copies"] = 0.125
    loose = edit(results, lambda f: (f.solver == "better") & (f.inner == -1), gap=0.5)
    found = answers_of(analyse(loose))
    assert found["Copies of training rows among test rows"] == "at most 12.5 % of a dataset's test rows"
    assert found["Trained to the optimum"].startswith("no for 13 dataset × arm")


def test_what_is_not_recorded_is_said_to_be(results, tmp_path):
    lost = replace(results, provenance=[])
    assert methods(analyse(lost)) == ""
    found = answers_of(analyse(lost))
    assert (found["Code"], found["Commands"]) == ("not recorded", "not recorded")
    assert methods(analyse(empty(tmp_path))) == ""
    assert answers_of(analyse(empty(tmp_path)))["Significance"] == "none"
