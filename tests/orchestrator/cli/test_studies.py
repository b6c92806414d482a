"""The verbs that keep the folder of studies: list, rename, delete; and `--multirun` and `--cfg`."""

import shutil
import subprocess
import sys

import pytest
import yaml

from orchestrator import load_study
from orchestrator.cli.main import EXIT_BAD, EXIT_OK, main
from orchestrator.store.store import Store
from tests.messages import assert_says

pytestmark = pytest.mark.usefixtures("no_pages")

TINY = (
    "datasets=[iris]",
    "solvers=[libsvm_l1]",
    "protocol.outer=2",
    "protocol.inner=2",
    "search.space.C=[1]",
    "search.space.gamma=[0.1]",
    "cluster=serial",
)
TRIALS = 2
"""One refit in each outer fold: an arm with one candidate needs no inner trainings."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished study."""
    folder = tmp_path_factory.mktemp("finished")
    assert main(["run", "study=first", *TINY, f"paths.results={folder}"]) == EXIT_OK
    return folder / "first"


@pytest.fixture
def verb(finished, tmp_path, capsys, monkeypatch):
    """Run a verb beside a finished study called `first`; return exit code, output and errors."""
    monkeypatch.setenv("COLUMNS", "200")
    shutil.copytree(finished, tmp_path / "first")

    def verb(*arguments):
        capsys.readouterr()
        code = main([*arguments, f"paths.results={tmp_path}"])
        return code, *capsys.readouterr()

    return verb


def test_studies_are_listed_with_state_size_and_age(verb, tmp_path):
    other = Store(tmp_path / "other")
    other.lock().release()
    (tmp_path / "no-study").mkdir()
    broken = tmp_path / "broken" / "trials"
    broken.mkdir(parents=True)
    (broken / "part-1-0000000000000000.parquet").write_bytes(b"PAR1")
    code, output, _ = verb("studies")
    lines = {line.split()[1]: line for line in output.splitlines() if line.startswith("│")}
    assert (code, sorted(lines)) == (EXIT_OK, ["broken", "first", "other"])
    assert f"complete, {TRIALS} trials" in lines["first"]
    assert "kB" in lines["first"]
    assert "s ago" in lines["first"]
    assert_says(lines["other"], "no run")
    assert "damaged" in lines["broken"]


def test_a_renamed_study_is_the_study_under_another_name(verb, tmp_path):
    before = load_study(tmp_path / "first")
    assert verb("rename", "first", "second")[0] == EXIT_OK
    assert not (tmp_path / "first").exists()
    after = load_study("second", tmp_path)
    assert set(after.trials["study"]) == set(after.outer["study"]) == {"second"}
    assert after.trials.drop(columns="study").equals(before.trials.drop(columns="study"))
    _, output, _ = verb("run", "study=second", *TINY)
    assert_says(output, "0 trials run", f"{TRIALS} found")


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("first",), ("two names",)),
        (("none", "second"), ("study 'none'",)),
        (("first", "../second"), ("folder",)),
        (("first", "taken"), ("exists",)),
    ],
)
def test_a_study_is_not_renamed_to_what_cannot_be(verb, tmp_path, names, problem):
    (tmp_path / "taken").mkdir()
    code, _, errors = verb("rename", *names)
    assert (code, len(errors.splitlines())) == (EXIT_BAD, 1)
    assert_says(errors, *problem)
    assert load_study("first", tmp_path).name == "first"


def test_what_is_being_run_is_neither_renamed_nor_deleted(verb, tmp_path):
    with Store(tmp_path / "first").lock():
        for arguments in (("rename", "first", "second"), ("delete", "first", "--yes")):
            code, _, errors = verb(*arguments)
            assert code == EXIT_BAD
            assert_says(errors, "process")
    assert len(load_study("first", tmp_path).trials) == TRIALS


def test_a_study_is_deleted_only_when_that_is_confirmed(verb, tmp_path, monkeypatch):
    code, output, errors = verb("delete", "first")
    assert code == EXIT_BAD
    assert f"complete, {TRIALS} trials" in output
    assert "add --yes" in errors
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda self: True})())
    for answer, left in (("n", True), ("", True), ("y", False)):
        monkeypatch.setattr("rich.console.Console.input", lambda *_, answer=answer, **__: answer)
        assert verb("delete", "first")[0] == EXIT_OK
        assert (tmp_path / "first").exists() == left


def test_a_study_that_is_named_twice_is_deleted_once(verb, tmp_path):
    code, output, errors = verb("delete", "first", "first", "--yes")
    assert (code, errors) == (EXIT_OK, "")
    assert output.count("first is deleted") == 1
    assert not (tmp_path / "first").exists()


def test_what_a_killed_deletion_left_is_no_study_and_goes_with_the_next(verb, tmp_path):
    (tmp_path / "first").rename(tmp_path / ".deleted-first-0")
    assert "No study in" in verb("studies")[1]
    assert verb("run", "study=second", *TINY)[0] == EXIT_OK
    assert verb("delete", "second", "--yes")[0] == EXIT_OK
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_deleted_and_what_it_names_neither(verb, tmp_path):
    (tmp_path / "link").symlink_to("first")
    code, _, errors = verb("delete", "link", "--yes")
    assert code == EXIT_BAD
    assert "is a link" in errors
    assert len(load_study("first", tmp_path).trials) == TRIALS


def test_multirun_makes_axes_of_one_study(verb):
    code, output, _ = verb(
        *("plan", "--multirun", "study=swept", *TINY[2:], "search.space.C=[1]"),
        *("datasets=iris,wine", "solvers=mnsvm,libsvm_l1", "sweep.eta=1,1.5", "protocol.seed=3,4"),
    )
    assert_says(" ".join(output.split()), "seeds 3", "4")
    assert code == EXIT_OK
    rows = [line.split("│")[1:3] for line in output.splitlines() if line.startswith("│")]
    arms = ["mnsvm[eta=1]", "mnsvm[eta=1.5]", "libsvm_l1"]
    assert [[cell.strip() for cell in row] for row in rows] == [
        [d, a] for d in ("iris", "wine") for a in arms
    ]


def test_what_is_no_axis_is_refused_before_anything_runs(verb, tmp_path):
    code, _, errors = verb(
        "run", "-m", "study=swept", *TINY[:5], "solver.libsvm_l1.C=1,2", "search=grid,pattern"
    )
    first, second = errors.splitlines()
    assert code == EXIT_BAD
    assert_says(first, "solver.libsvm_l1.C", "axis")
    assert "write sweep.C=[1,2]" in first
    assert_says(second, "search", "axis")
    assert not (tmp_path / "swept").exists()


def test_the_composed_configuration_is_printed_and_nothing_runs(tmp_path):
    command = [sys.executable, "-m", "orchestrator", "run", "--cfg", "job", "study=shown", *TINY]
    text = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    config = yaml.safe_load(text)
    assert config["study"] == "shown"
    assert config["search"]["space"]["C"] == [1]
    assert config["solver"]["libsvm_l1"]["_target_"] == "sklearn.svm.SVC"
    assert list(tmp_path.iterdir()) == []
