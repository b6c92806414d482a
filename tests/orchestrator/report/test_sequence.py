"""A study that is tested after each dataset, and ends when every pair is decided."""

import json

import pandas as pd
import pytest

from orchestrator import load_study
from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse, is_decided
from orchestrator.cli.main import EXIT_OK, main
from orchestrator.report.brief import brief
from orchestrator.report.contents import all_tables
from orchestrator.report.sections import sequence
from orchestrator.report.verdict import answers, verdict
from tests.messages import assert_says, assert_sentence
from tests.orchestrator.analysis.golden import TEN
from tests.orchestrator.report.frames import make_results


def study(differences, declared=True):
    results = make_results("x", {f"d{i}": {"a": 0.8 + d, "b": 0.8} for i, d in enumerate(differences)})
    results.provenance[0]["report"] = {"sequential": declared}
    return results


def said(findings):
    (answer,) = (answer.text for answer in answers(findings) if "stop" in answer.question)
    return answer


def test_a_decided_study_says_after_how_many_datasets_and_by_what():
    found = analyse(study(TEN))
    assert_says(said(found), "any stopping rule")
    assert_sentence(said(found), "a higher than b", "10 datasets", "E = 30.7 ≥ 20")
    assert_sentence(said(found), "not adjusted", "stopping")
    (row,) = sequence.table(found).rows
    assert [cell.text for cell in row[1:4]] == ["10", "30.7", "30.7"]
    assert [cell.text for cell in row[6:]] == ["10", "A is higher"]


def test_an_open_study_may_go_on():
    found = analyse(study(TEN[:9]))
    assert_sentence(said(found), "Undecided", "a − b", "E = 18.8")
    assert not is_decided(study(TEN[:9]))
    assert is_decided(study(TEN))


def test_the_short_answer_follows_the_tests_after_each_dataset():
    """On all of seven datasets a is ahead of b, and b of c: enough for max-t, but not after each dataset."""
    means = {f"d{i}": {"c": 0.5 + 0.001 * i, "b": 0.6 + 0.01 * i, "a": 0.9 + 0.011 * i} for i in range(7)}
    results = make_results("x", means)
    results.provenance[0]["report"] = {"sequential": True, "adjust": "maxt"}
    found = analyse(results)
    assert set(frames.tests(found)["verdict"]) == {"lower"}
    assert set(frames.sequence(found)["verdict"]) == {"open"}
    assert_says(
        brief(found)[1], "no difference in accuracy of the 3 declared pairs", "by the tests after each"
    )
    (pairs,) = (each.text for each in answers(found) if each.question == "Do the arms differ?")
    assert_sentence(pairs, "3 differ significantly", "if the number of datasets had been fixed in advance")
    for table in (all_tables(found)["tests"], all_tables(found)["standings"]):
        assert_says(table.caption, "fixed in advance")
    results.provenance[0]["report"] = {"sequential": False, "adjust": "maxt"}
    fixed = analyse(results)
    assert_says(brief(fixed)[1], "3 of 3 declared pairs differ significantly in accuracy; the lead over")
    for text in (verdict(fixed), all_tables(fixed)["tests"].caption, all_tables(fixed)["standings"].caption):
        assert "fixed in advance" not in text


def test_the_short_answer_counts_pairs_that_are_decided():
    means = {f"d{i}": {"c": 0.5, "b": 0.5 + 0.01 * (-1) ** i, "a": 0.6 + 0.01 * i} for i in range(14)}
    results = make_results("x", means)
    results.provenance[0]["report"] = {"sequential": True}
    found = analyse(results)
    assert brief(found)[1] == (
        "Real: 2 of 3 declared pairs differ significantly in accuracy by the tests after each dataset; the "
        "lead over c is significant."
    )


def test_nothing_is_tested_after_each_dataset_unless_it_is_asked_for():
    found = analyse(study(TEN, declared=False))
    assert frames.sequence(found).empty
    assert "sequence" not in all_tables(found)
    assert not is_decided(study(TEN, declared=False))


SETS = [f"d{i:02}" for i in range(12)]


@pytest.fixture
def arguments(tmp_path):
    """Twelve small datasets, on which one of two arms is always right and the other hardly ever."""
    for group, texts in {
        "solver": {
            "good": "_target_: sklearn.neighbors.KNeighborsClassifier\nspace: {}\nn_neighbors: 1\n",
            "bad": "_target_: sklearn.dummy.DummyClassifier\nspace: {}\nstrategy: most_frequent\n",
        },
        "dataset": {
            name: f"_target_: sklearn.datasets.make_blobs\nn_samples: {30 + 3 * i}\nrandom_state: {i}\n"
            "centers: 3\ncluster_std: 0.1\n"
            for i, name in enumerate(SETS)
        },
    }.items():
        (tmp_path / group).mkdir()
        for name, text in texts.items():
            (tmp_path / group / f"{name}.yaml").write_text(text)
    return [
        *(
            "run",
            "study=s",
            "--config-dir",
            str(tmp_path),
            "solvers=[good,bad]",
            f"datasets=[{','.join(SETS)}]",
        ),
        *("protocol.outer=2", "protocol.inner=2", "cluster=serial", f"paths.results={tmp_path}"),
    ]


def test_a_run_ends_before_the_next_dataset_when_every_pair_is_decided(arguments, tmp_path, capsys):
    assert main([*arguments, "report.sequential=true"]) == EXIT_OK
    results = load_study("s", tmp_path)
    begun = list(dict.fromkeys(results.trials["dataset"]))
    assert 7 <= len(begun) < 12
    assert sorted(begun) == SETS[: len(begun)], "in declared order, and not by cost"
    found = analyse(results)
    assert frames.sequence(found)["decided_after"].item() == len(begun)
    assert frames.is_complete(found)
    output = capsys.readouterr().out
    assert_sentence(output, f"stopped after {len(begun)} of 12 datasets", "every pair", "decided")
    assert "No training of" not in output
    records = sorted((tmp_path / "s" / "provenance").glob("*.json"))
    assert json.loads(records[-1].read_text())["not_begun"] == SETS[len(begun) :]
    trials, place = len(results.trials), ["study=s", f"paths.results={tmp_path}"]
    assert main(["status", *place]) == EXIT_OK
    output = capsys.readouterr().out
    assert_sentence(output, f"{len(begun)} of 12 datasets", "every declared pair", "0.05")
    assert_says(output, f"Not started: {', '.join(SETS[len(begun) :])}")
    assert_says(output, f"{trials} of {trials} trials", "0 failed", "complete")
    assert main(["studies", place[1]]) == EXIT_OK
    assert "ended early" in " ".join(capsys.readouterr().out.split())
    workers = [*arguments, "report.sequential=true", "cluster=local"]
    assert main(workers) == EXIT_OK
    output = capsys.readouterr().out
    records = sorted((tmp_path / "s" / "provenance").glob("*.json"))
    assert_says(output, "no worker", f"{len(begun)} datasets")
    refits = pd.read_parquet(tmp_path / "s" / "outer.parquet")
    assert len(refits) == 2 * 2 * len(begun), "those of datasets that were stored before are among them"
    assert json.loads(records[-1].read_text())["cluster"]["kind"] == "none"
    assert json.loads(records[-1].read_text())["not_begun"] == SETS[len(begun) :]
    assert main([*arguments, "report.sequential=true"]) == EXIT_OK
    assert len(load_study("s", tmp_path).trials) == trials, "it ends at the same place again"
    assert main(arguments) == EXIT_OK
    results = load_study("s", tmp_path)
    assert set(results.trials["dataset"]) == set(SETS)
    assert analyse(results).design.not_started == ()
    capsys.readouterr()
    assert main(["status", *place]) == EXIT_OK
    assert "Ended early" not in capsys.readouterr().out
