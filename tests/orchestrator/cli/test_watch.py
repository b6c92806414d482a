"""`svmbench report --watch`: written again when something was stored, and not otherwise."""

import re
import shutil
import time

import pytest

from orchestrator.cli import report as report_verb
from orchestrator.cli.main import EXIT_INTERRUPTED, EXIT_OK, main

RELOAD = '<meta http-equiv="refresh"'


@pytest.fixture
def study(tmp_path):
    """A study of 8 trials in the folder `whole`, and in `results` its declaration alone."""
    (tmp_path / "solver").mkdir()
    for name, target in (("a", "dummy.DummyClassifier"), ("b", "naive_bayes.GaussianNB")):
        (tmp_path / "solver" / f"{name}.yaml").write_text(f"_target_: sklearn.{target}\nspace: {{}}\n")
    paths = [f"paths.results={tmp_path / 'results'}", "--config-dir", str(tmp_path)]
    settings = ["solvers=[a,b]", "datasets=[iris]", "protocol.outer=2", "protocol.inner=2", "cluster=serial"]
    assert main(["run", "study=s", *paths, *settings]) == EXIT_OK
    shutil.copytree(tmp_path / "results", tmp_path / "whole")
    shutil.rmtree(tmp_path / "results" / "s" / "trials")
    return ["report", "study=s", *paths, "--watch"]


def test_it_is_written_again_when_trials_were_stored_and_ends_with_the_study(
    study, tmp_path, monkeypatch, capsys
):
    page, clock, analysed = tmp_path / "results/s/report/index.html", [0.0], []
    analyse = report_verb.analyse

    def slowly(*given):
        analysed.append(clock[0])
        clock[0] += 10
        return analyse(*given)

    def sleep(seconds):
        clock[0] += seconds
        assert RELOAD in page.read_text()
        if 20 < clock[0] <= 22:
            record.touch()
        if clock[0] > 40 and not (tmp_path / "results/s/trials").exists():
            shutil.copytree(tmp_path / "whole/s/trials", tmp_path / "results/s/trials")

    (record,) = (tmp_path / "results/s/provenance").glob("*.json")
    monkeypatch.setattr(report_verb, "analyse", slowly)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    capsys.readouterr()
    monkeypatch.setattr(time, "sleep", sleep)
    assert main(study) == EXIT_OK
    # At once when a run has begun or ended; for trials alone, nine times as long after a report as it took.
    assert analysed == [0.0, 22.0, 122.0]
    assert RELOAD not in page.read_text()
    output = capsys.readouterr().out
    assert len(re.findall(r"^\d\d:\d\d:\d\d ", output, re.MULTILINE)) == 3
    assert "Report: " in output


def test_an_interrupted_watch_leaves_a_page_that_does_not_reload_itself(study, tmp_path, monkeypatch):
    def sleep(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    assert main(study) == EXIT_INTERRUPTED
    assert RELOAD not in (tmp_path / "results/s/report/index.html").read_text()
