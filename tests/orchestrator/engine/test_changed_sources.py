"""A dataset whose file changes after trials on it were stored: every command says so."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from orchestrator import load_study
from orchestrator.cli import status
from orchestrator.cli.main import main
from orchestrator.datasets import loading
from orchestrator.datasets.about import given_file
from orchestrator.datasets.packages import package_folder
from orchestrator.engine.changed_sources import file_stamp
from tests.messages import assert_says

pytestmark = pytest.mark.usefixtures("no_pages")

STUDY = (
    "study=customers",
    "datasets=[churn,iris]",
    "cluster=serial",
    "protocol.outer=2",
    "protocol.inner=2",
    "search.space.C=[1,4]",
    "search.space.gamma=[0.5]",
)
TRIALS = 2 * 2 * (2 * 2 + 1)
"""Of churn: arms, outer folds, candidates by inner folds, and a refit."""


ONE = "[libsvm_l1]"


class Study:
    """A study of a file of one's own, and what commands print."""

    def __init__(self, folder, capfd):
        self.folder, self.capfd, self.file = folder, capfd, folder / "churn.csv"
        self.paths = [f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}"]

    def __call__(self, verb, solvers="[libsvm_l1,mnsvm_nobias]"):
        """Give a command; return its output in one line."""
        self.give(verb, solvers)
        return " ".join("".join(self.capfd.readouterr()).split())

    def give(self, verb, solvers="[libsvm_l1,mnsvm_nobias]"):
        """Give a command."""
        own = [*STUDY, f"solvers={solvers}", f"--config-dir={self.folder}"]
        more = own if verb in ("run", "plan") else ["study=customers"]
        assert main([verb, *more, *self.paths]) == 0

    def write(self):
        """Write the file and its configuration."""
        self.file.write_text(table(80))
        os.utime(self.file, (1, 1))
        (self.folder / "dataset").mkdir()
        (self.folder / "dataset/churn.yaml").write_text(
            f"_target_: orchestrator.datasets.csv_file\npath: {self.file}\nlabel: y\n"
        )

    def pages(self):
        """The report's page."""
        return (self.folder / "results/customers/report/index.html").read_text()


def table(n, first="0.25"):
    X = np.random.default_rng(0).random((n, 2)).round(3).astype(str)
    X[0, 0] = first
    return "a,b,y\n" + "".join(f"{a},{b},{'yn'[row % 2]}\n" for row, (a, b) in enumerate(X))


@pytest.fixture
def new(tmp_path, capfd):
    """A study that has not run."""
    study = Study(tmp_path, capfd)
    study.write()
    return study


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a study that has run, and a copy of this folder."""
    folder = tmp_path_factory.mktemp("finished")
    study = Study(folder, None)
    study.write()
    study.give("run")
    return folder, shutil.copytree(folder, tmp_path_factory.mktemp("copy"), dirs_exist_ok=True)


@pytest.fixture
def study(finished, capfd):
    """A study that has run, as if no other test had used it."""
    folder, copy = finished
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    capfd.readouterr()
    return Study(folder, capfd)


def test_nothing_is_said_of_a_file_that_is_as_it_was(study):
    for verb in ("status", "report", "plan", "run", "status"):
        assert "churn.csv" not in study(verb)
    study.file.unlink()  # as on another computer
    for verb in ("status", "report"):
        assert "churn.csv" not in study(verb)


def test_plan_and_run_say_that_a_file_has_changed_and_how(study):
    study.file.write_text(table(80, first="0.75"))
    for verb in ("plan", "run"):
        said = study(verb, "[libsvm_l1]")
        assert_says(said, "churn.csv", "changed", f"{TRIALS} trials", "rows 80 → 80")
        assert "iris has changed" not in said
    assert "has changed" not in study("plan", "[libsvm_l1]"), "its trials are stored now"
    assert set(load_study(study.folder / "results/customers").excluded["why"]) == {"another dataset"}


@pytest.mark.full
def test_plan_tells_the_numbers_of_rows_and_features(study):
    study.file.write_text(table(70).replace("\n", ",1\n").replace("y,1\n", "y,c\n", 1))
    assert_says(study("plan"), "rows 80 → 70", "features 2 → 3", "content")


def test_status_and_report_say_it_from_the_stamp_and_call_no_loader(study, monkeypatch):
    monkeypatch.setattr(loading, "_call", None)
    monkeypatch.setattr(status, "read_results", None)
    before = study.file.stat().st_size
    study.file.write_text(table(81))
    after = study.file.stat().st_size
    sentence = (
        f"churn.csv has changed since its {TRIALS} trials of churn were stored ({before:,} → {after:,} bytes)"
    )
    assert sentence in study("status")
    assert sentence in study("report")
    assert sentence in study.pages()


@pytest.mark.full
def test_a_file_that_was_written_again_with_as_many_bytes_may_have_changed(study):
    study.file.write_text(table(80))
    for verb in ("status", "report"):
        said = study(verb)
        assert_says(said, "churn.csv", "written again")
        assert "svmbench plan" in said
    assert "churn.csv" not in study("plan"), "its content is the same"
    study("run")
    assert "churn.csv" not in study("status"), "a run has read it since"


def test_a_file_under_a_link_or_in_place_of_a_folder_is_not_waited_for(study):
    study.file.unlink()
    os.mkfifo(study.file)
    assert "churn.csv" not in study("status")


@pytest.mark.full
def test_a_folder_of_parquet_files_changes_as_a_file_does(new, tmp_path):
    folder = tmp_path / "parts/of"
    folder.mkdir(parents=True)
    X = np.random.default_rng(0).random((80, 2)).round(3)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": ["yes", "no"] * 40})
    frame.to_parquet(folder / "0.parquet")
    (tmp_path / "dataset/churn.yaml").write_text(
        f"_target_: orchestrator.datasets.parquet_file\npath: {folder.parent}\nlabel: y\n"
    )
    new("run")
    assert "parts" not in new("status")
    (folder / "1.parquet").symlink_to(folder / "0.parquet")
    assert_says(new("status"), "parts", "changed", f"{TRIALS} trials")
    assert_says(new("report"), "parts", "changed", f"{TRIALS} trials")
    (folder / "1.parquet").unlink()
    assert "parts" not in new("status")
    os.utime(folder / "0.parquet")
    assert_says(new("status"), "parts", "written again")


def record(study, **stamp):
    """Change what provenance records of the file."""
    (path,) = (study.folder / "results/customers/provenance").glob("*.json")
    run = json.loads(path.read_text())
    run["files"]["churn"] |= stamp
    path.write_text(json.dumps(run))
    return run["files"]["churn"]


@pytest.mark.full
def test_provenance_records_the_path_as_the_user_gave_it(new, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dataset/churn.yaml").write_text(
        "_target_: orchestrator.datasets.csv_file\npath: churn.csv\nlabel: y\n"
    )
    new("run", ONE)
    assert record(new)["path"] == "churn.csv"
    assert "churn.csv" not in new("status"), "nothing has changed"
    assert "0 trials run" in new("run", ONE)
    new.file.write_text(table(81))
    assert_says(new("status"), "churn.csv has changed", f"{TRIALS // 2} trials")
    monkeypatch.chdir(tmp_path / "dataset")
    assert "churn.csv" not in new("status"), "a file that is not found has not changed"


@pytest.mark.sample(2)
@pytest.mark.parametrize("drop", ["[]", "[a]"])
def test_a_store_with_an_absolute_path_is_compared_with_a_relative_one(new, tmp_path, monkeypatch, drop):
    new("run", ONE)
    monkeypatch.chdir(tmp_path)
    assert record(new)["path"] == str(new.file)
    (new.folder / "dataset/churn.yaml").write_text(
        f"_target_: orchestrator.datasets.csv_file\npath: churn.csv\nlabel: y\ndrop: {drop}\n"
    )
    said = new("plan", ONE)
    assert ("is read in another way" in said) == (drop == "[a]")
    assert "has changed since" not in said
    assert "churn.csv" not in new("status"), "nothing has changed"
    new.file.write_text(table(81))
    assert_says(new("status"), "churn.csv has changed", f"{TRIALS // 2} trials")


def test_a_path_in_the_home_folder_and_one_in_a_package_are_as_given(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    (tmp_path / "data/t.csv").write_text("a,y\n1,2\n")
    (tmp_path / "data/mini.libsvm").write_text("1 1:1\n")
    csv, libsvm = "orchestrator.datasets.csv_file", "orchestrator.datasets.libsvm_file"
    assert given_file({"_target_": csv, "path": "~/data/t.csv"}) == ("~/data/t.csv", "")
    of_libsvm = {"_target_": libsvm, "name": "mini", "folder": "~/data"}
    assert given_file(of_libsvm) == ("~/data/mini.libsvm", "")
    assert file_stamp("~/data/t.csv")["size"] == (tmp_path / "data/t.csv").stat().st_size
    inside = Path("datasets/data/iris.csv")
    packaged = {"_target_": csv, "path": str(inside), "package": "sklearn"}
    assert given_file(packaged) == (str(inside), "sklearn")
    stamp = file_stamp(*given_file(packaged))
    assert (stamp["path"], stamp["package"]) == (str(inside), "sklearn")
    assert stamp["size"] == (package_folder("sklearn") / inside).stat().st_size
    assert given_file(packaged | {"path": "datasets/none.csv"}) == ("", "")


@pytest.mark.full
def test_a_dataset_without_a_file_is_named_by_its_name(new, tmp_path):
    config = tmp_path / "dataset/churn.yaml"
    config.write_text("_target_: orchestrator.datasets.checkers\nn: 60\n")
    new("run")
    config.write_text("_target_: orchestrator.datasets.checkers\nn: 62\n")
    said = new("plan")
    assert_says(said, "dataset churn", "changed", f"{TRIALS} trials", "rows 60 → 62")
