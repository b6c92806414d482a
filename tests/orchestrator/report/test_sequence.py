"""A study that is tested after each dataset, and ends when every pair is decided."""

import json
import re

import pandas as pd
import pytest

from orchestrator import load_study
from orchestrator.analysis import findings as frames
from orchestrator.analysis.findings import analyse, is_decided
from orchestrator.cli.main import EXIT_OK, main
from orchestrator.report.contents import all_tables
from orchestrator.report.sections import sequence
from orchestrator.report.verdict import answers
from tests.orchestrator.analysis.golden import TEN
from tests.orchestrator.report.frames import make_results


def study(differences, declared=True):
    results = make_results("x", {f"d{i}": {"a": 0.8 + d, "b": 0.8} for i, d in enumerate(differences)})
    results.provenance[0]["report"] = {"sequential": declared}
    return results


def said(findings):
    return {answer.question: answer.text for answer in answers(findings)}["May the study stop here?"]


def test_a_decided_study_says_after_how_many_datasets_and_by_what():
    found = analyse(study(TEN))
    assert "valid under any stopping rule" in said(found)
    assert "a higher than b after 10 datasets: E = 30.7 ≥ 20." in said(found)
    assert "not adjusted for early stopping" in said(found)
    (row,) = sequence.table(found).rows
    assert [cell.text for cell in row[1:4]] == ["10", "30.7", "30.7"]
    assert [cell.text for cell in row[6:]] == ["10", "A is higher"]


def test_an_open_study_may_go_on():
    found = analyse(study(TEN[:9]))
    assert re.match(r"Undecided.*: a − b \(E = 18\.8\)\.", said(found))
    assert not is_decided(study(TEN[:9]))
    assert is_decided(study(TEN))


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
    output = " ".join(capsys.readouterr().out.split())
    assert f"stopped after {len(begun)} of 12 datasets, because every pair is decided" in output
    assert "No training of" not in output
    records = sorted((tmp_path / "s" / "provenance").glob("*.json"))
    assert json.loads(records[-1].read_text())["not_begun"] == SETS[len(begun) :]
    trials, place = len(results.trials), ["study=s", f"paths.results={tmp_path}"]
    assert main(["status", *place]) == EXIT_OK
    output = " ".join(capsys.readouterr().out.split())
    assert f"Ended early after {len(begun)} of 12 datasets" in output
    assert "every declared pair is decided at level 0.05" in output
    assert f"Not started: {', '.join(SETS[len(begun) :])};" in output
    assert f"{trials} of {trials} trials, 0 failed, complete" in output
    assert main(["studies", place[1]]) == EXIT_OK
    assert "ended early" in " ".join(capsys.readouterr().out.split())
    workers = [*arguments, "report.sequential=true", "cluster=local"]
    assert main(workers) == EXIT_OK
    output = " ".join(capsys.readouterr().out.split())
    assert "no worker is started" in output
    records = sorted((tmp_path / "s" / "provenance").glob("*.json"))
    assert f"The study ends after {len(begun)} datasets" in output
    refits = pd.read_parquet(tmp_path / "s" / "outer.parquet")
    assert len(refits) == 2 * 2 * len(begun), "those of datasets that were stored before are among them"
    assert json.loads(records[-1].read_text())["cluster"]["kind"] == "none"
    assert json.loads(records[-1].read_text())["not_begun"] == SETS[len(begun) :]
    assert main([*arguments, "report.sequential=true"]) == EXIT_OK
    assert len(load_study("s", tmp_path).trials) == trials, "it ends at the same place again"
    assert main(arguments) == EXIT_OK
    results = load_study("s", tmp_path)
    assert set(results.trials["dataset"]) == set(SETS)
    assert analyse(results).design.not_begun == ()
    capsys.readouterr()
    assert main(["status", *place]) == EXIT_OK
    assert "Ended early" not in capsys.readouterr().out
