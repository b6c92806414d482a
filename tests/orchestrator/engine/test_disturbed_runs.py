"""What happens to a study's folder while a run writes there is said in a sentence, and costs no row."""

import io
import shutil
from types import SimpleNamespace

import pytest
from rich.console import Console

from orchestrator import load_study
from orchestrator.cli.display import display
from orchestrator.cli.main import main
from orchestrator.config.compose import load_settings
from orchestrator.engine import runner
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.run import run_session
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.store.store import Store, StoreError
from orchestrator.study.errors import StudyStopped
from tests.messages import assert_says, raises

pytestmark = pytest.mark.usefixtures("no_pages")

SMALL = (
    "study=small",
    "datasets=[iris]",
    "solvers=[libsvm_l1]",
    "cluster=serial",
    "protocol.outer=2",
    "protocol.inner=2",
    "search.space.C=[1,4]",
    "search.space.gamma=[0.5]",
)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study that is run while something happens after one of its appends."""
    monkeypatch.setattr(runner, "FLUSH_SECONDS", 0)
    paths = [f"paths.cache={tmp_path / 'cache'}", f"paths.results={tmp_path / 'results'}"]
    settings = load_settings([*SMALL, *paths])
    prepared = prepare_study(settings)
    output = io.StringIO()
    plain = Store.append

    def run(action=None, after=2):
        appends = []

        def append(store, batches):
            plain(store, batches)
            appends.append(store)
            if action is not None and (after is None or len(appends) == after):
                action(tmp_path / "results" / "small")

        monkeypatch.setattr(Store, "append", append)
        return run_session(settings, prepared, display(Console(file=output, width=500)), ["svmbench", "run"])

    return SimpleNamespace(run=run, output=output, folder=tmp_path / "results" / "small", paths=paths)


def rows(folder):
    trials = load_study(folder).trials
    return trials[[name for name in trials if name not in RUN_COLUMNS]]


@pytest.fixture
def whole(study, tmp_path):
    """The rows of the study when nothing happens."""
    study.run()
    found = rows(study.folder)
    study.folder.rename(tmp_path / "undisturbed")
    return found


def remove_newest_part(folder):
    sorted(folder.glob("trials/part-*"))[-1].unlink()


def remove_all_parts(folder):
    for part in folder.glob("trials/part-*"):
        part.unlink()


@pytest.mark.parametrize("vanishing", [remove_newest_part, remove_all_parts])
def test_trials_whose_part_vanishes_during_a_run_are_trained_again_and_that_is_said(vanishing, study, whole):
    summary = study.run(vanishing)
    assert rows(study.folder).equals(whole)
    assert str(study.folder / "trials") in study.output.getvalue()
    assert "vanished" in study.output.getvalue()
    assert (summary.trials_run, summary.trials_stored_before) == (len(whole), 0)
    found = load_study(study.folder)
    assert found.lost == []
    assert all(state.complete for state in found.states.values())
    assert len(found.outer) == len(found.selections) == 2


def test_a_run_that_finds_every_trial_stored_records_no_host(study):
    """The report would count its processor among those that trained."""
    for _ in range(2):
        study.run()
    assert [len(run["hosts"]) for run in load_study(study.folder).provenance] == [1, 0]


def test_a_run_whose_parts_vanish_again_and_again_ends_with_a_sentence(study):
    with raises(StudyStopped, "trials vanished", "same command"):
        study.run(remove_newest_part, after=None)
    assert len(load_study(study.folder).provenance) == 1
    study.run()
    assert all(state.complete for state in load_study(study.folder).states.values())


def replace_by_link(folder):
    elsewhere = folder.parent / "elsewhere"
    (folder / "trials").rename(elsewhere)
    (folder / "trials").symlink_to(elsewhere)


def rename_study(folder):
    folder.rename(folder.with_name("renamed"))


def remove_study(folder):
    shutil.rmtree(folder)


def replace_study(folder):
    folder.rename(folder.with_name("renamed"))
    shutil.copytree(folder.with_name("renamed"), folder)


@pytest.mark.parametrize("action", [replace_by_link, rename_study, remove_study, replace_study])
def test_a_folder_that_is_moved_or_replaced_under_a_run_ends_it_with_one_sentence(action, study):
    with pytest.raises(StudyStopped) as stopped:
        study.run(action)
    sentence = str(stopped.value)
    assert str(study.folder) in sentence
    assert "\n" not in sentence
    assert "defect" not in sentence
    parts = {path.name for path in study.folder.parent.glob("elsewhere/part-*")}
    assert len(parts) == (2 if action is replace_by_link else 0), "the run wrote through the link"
    assert study.folder.exists() == (action in (replace_by_link, replace_study)), "another study was begun"


def test_a_study_that_is_moved_back_is_resumed(study, whole):
    with pytest.raises(StudyStopped):
        study.run(rename_study)
    study.folder.with_name("renamed").rename(study.folder)
    summary = study.run()
    assert summary.trials_stored_before >= 2
    assert rows(study.folder).equals(whole)


def test_a_second_run_of_a_study_gets_one_sentence(study, capfd):
    def run_again(folder):
        with raises(StoreError, "'small'", "process"):
            Store(folder).lock()
        assert main(["run", *SMALL, *study.paths]) == 1
        errors = capfd.readouterr().err
        assert_says(errors, "study 'small'", "process")
        assert "Traceback" not in errors
        assert errors.count("\n") == 1

    study.run(run_again)
