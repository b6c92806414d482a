"""The sentences of a report on a study that changed after its first scores."""

from dataclasses import replace

import pytest

from orchestrator import load_study
from orchestrator.analysis import findings
from orchestrator.analysis.findings import analyse
from orchestrator.cli.main import EXIT_OK, main
from orchestrator.report.answer import answer_text
from orchestrator.report.brief import brief
from orchestrator.report.growth import growth_sentences, plan_sentences
from orchestrator.report.sections.methods import methods
from orchestrator.report.verdict import answers
from orchestrator.study.growth import DATASETS, SETTINGS, LateChange
from orchestrator.study.report_choices import ReportChoices
from tests.messages import assert_says
from tests.orchestrator.report.frames import make_results

pytestmark = pytest.mark.usefixtures("no_pages")

QUICK = ("protocol.outer=2", "protocol.inner=2", "cluster=serial", "solvers=[naive_bayes,lda]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Studies that grew from one dataset to two: one without a plan, one with."""
    folder = tmp_path_factory.mktemp("growth")
    plan = (
        "report.plan.datasets=[iris,wine,heart]",
        "report.plan.arms=[naive_bayes,lda,knn]",
        "report.plan.repeats=4",
    )
    for study, *choices in (("grown",), ("planned", *plan)):
        for datasets in ("iris", "iris,wine"):
            arguments = [f"study={study}", f"datasets=[{datasets}]", f"paths.results={folder}", *choices]
            assert main(["run", *arguments, *QUICK]) == EXIT_OK
    return folder


def test_growth_is_said_first_and_in_the_methods(folder):
    results = load_study("grown", folder)
    study, date = analyse(results), results.provenance[1]["started_at"][:10]
    said = f"1 dataset was added on {date} (wine), before there was 1 (iris)"
    first = answers(study)[0]
    assert_says(first.text, f"Chosen after results were seen: {said}")
    assert_says(methods(study), f"Chosen after results were seen: {said}")
    assert_says(answer_text(study), f"Chosen after results were seen: {said}".split(", before")[0])


def test_planned_growth_is_not_called_late(folder):
    study = analyse(load_study("planned", folder))
    assert growth_sentences(study) == []
    assert "Chosen after" not in methods(study)


def test_what_remains_of_the_plan_is_named(folder):
    study = analyse(load_study("planned", folder))
    said = (
        "The declared plan is not finished: no score yet of 1 dataset (heart) and of 1 arm (knn), and 1 of 4 "
        "repeats."
    )
    assert plan_sentences(study) == [
        said,
        "No p-value allows for ending the study before the plan is finished.",
    ]
    (answer,) = (each.text for each in answers(study) if "plan" in each.question)
    for text in (answer, methods(study), answer_text(study)):
        assert_says(text, said)
    assert plan_sentences(analyse(load_study("grown", folder))) == []
    # A later plan neither hides what remains nor adds to it.
    results = load_study("planned", folder)
    results.provenance[1]["report"] |= {"plan": {"datasets": ["iris", "wine"]}}
    assert plan_sentences(analyse(results))[0] == said
    omitted = ReportChoices(leave_out=("wine",))
    assert findings.remaining_plan(analyse(results, omitted))[""].datasets == ("heart",)


def test_a_plan_that_is_finished_or_ended_early_as_declared_remains_nowhere():
    means = {f"d{i}": {"a": 0.8 + 0.01 * i, "b": 0.8, "c": 0.7} for i in range(3)}
    results = make_results("x", means)
    results.provenance[0]["report"] = {"plan": {"datasets": [*means, "d3"], "arms": [*"abc"], "repeats": 1}}
    study = analyse(results)
    assert plan_sentences(study)[0] == "The declared plan is not finished: no score yet of 1 dataset (d3)."
    assert_says(brief(study)[3], "Problems: the declared plan is not finished")
    results.provenance[0]["not_begun"] = ["d3"]
    assert plan_sentences(analyse(results)) == []
    results.provenance[0]["report"] = {"sequential": True, "plan": {"repeats": 2}}
    assert plan_sentences(analyse(results)) == ["The declared plan is not finished: 1 of 2 repeats."]


def test_what_was_there_before_is_listed_once(folder):
    study = analyse(load_study("planned", folder))
    before = tuple("abc")
    study.computed.clear()
    changes = [
        LateChange(DATASETS, "2026-11-23", added=("d", "e"), before=before),
        LateChange(DATASETS, "2026-11-24", removed=("a",), before=before),
        LateChange(SETTINGS, "2026-11-25", text="protocol: outer was 3, now 5"),
    ]
    study.computed[findings.growth.__wrapped__, ()] = {"": changes}
    text, caution = growth_sentences(study)
    assert text == (
        "Chosen after results were seen: 2 datasets were added on 2026-11-23 (d and e), before there were 3 "
        "(a, b and c); 1 dataset was removed (a, declared last on 2026-11-24); protocol: outer was 3, now 5 "
        "on 2026-11-25."
    )
    assert "p-value" in caution
    repeats = replace(changes[2], is_repeats=True)
    study.computed[findings.growth.__wrapped__, ()] = {"": [repeats]}
    assert growth_sentences(study, with_repeats=False) == []
