"""The sentences of a report on a study that changed after its first scores."""

from dataclasses import replace

import pytest

from orchestrator import load_study
from orchestrator.analysis import findings
from orchestrator.analysis.findings import analyse
from orchestrator.cli.main import EXIT_OK, main
from orchestrator.report.answer import answer_text
from orchestrator.report.growth import growth_sentences
from orchestrator.report.sections.methods import methods
from orchestrator.report.verdict import answers
from orchestrator.study.growth import DATASETS, SETTINGS, LateChange
from tests.messages import assert_says

QUICK = ("protocol.outer=2", "protocol.inner=2", "cluster=serial", "solvers=[naive_bayes,lda]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Studies that grew from one dataset to two: one without a plan, one with."""
    folder = tmp_path_factory.mktemp("growth")
    for study, *choices in (("grown",), ("planned", "report.plan.datasets=[iris,wine]")):
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


def test_what_was_there_before_is_listed_once(folder):
    study = analyse(load_study("planned", folder))
    before = tuple("abc")
    study.computed.clear()
    changes = [
        LateChange(DATASETS, "2026-11-23", added=("d", "e"), before=before),
        LateChange(DATASETS, "2026-11-24", removed=("a",), before=before),
        LateChange(SETTINGS, "2026-11-25", text="protocol: outer was 3, now 5"),
    ]
    study.computed[findings.growth.__wrapped__] = {"": changes}
    text, caution = growth_sentences(study)
    assert text == (
        "Chosen after results were seen: 2 datasets were added on 2026-11-23 (d and e), before there were 3 "
        "(a, b and c); 1 dataset was removed (a, declared last on 2026-11-24); protocol: outer was 3, now 5 "
        "on 2026-11-25."
    )
    assert "p-value" in caution
    repeats = replace(changes[2], is_repeats=True)
    study.computed[findings.growth.__wrapped__] = {"": [repeats]}
    assert growth_sentences(study, with_repeats=False) == []
