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
    page, pauses, analysed = tmp_path / "results/s/report/index.html", [], []
    analyse = report_verb.analyse
    monkeypatch.setattr(report_verb, "analyse", lambda *given: analysed.append(1) or analyse(*given))

    def sleep(seconds):
        pauses.append(seconds)
        assert RELOAD in page.read_text()
        assert len(analysed) == 1, "nothing is read again while nothing is stored"
        if len(pauses) == 5:
            shutil.copytree(tmp_path / "whole/s/trials", tmp_path / "results/s/trials")

    capsys.readouterr()
    monkeypatch.setattr(time, "sleep", sleep)
    assert main(study) == EXIT_OK
    assert len(pauses) == 5
    assert len(analysed) == 2
    assert RELOAD not in page.read_text()
    output = capsys.readouterr().out
    assert len(re.findall(r"^\d\d:\d\d:\d\d ", output, re.MULTILINE)) == 2
    assert "Report: " in output


def test_an_interrupted_watch_leaves_a_page_that_does_not_reload_itself(study, tmp_path, monkeypatch):
    def sleep(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    assert main(study) == EXIT_INTERRUPTED
    assert RELOAD not in (tmp_path / "results/s/report/index.html").read_text()
