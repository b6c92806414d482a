import importlib.util
import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pandas as pd
import pytest

from orchestrator.cli import main as cli
from orchestrator.cli.main import EXIT_BAD, EXIT_OK, main
from orchestrator.store.store import Store
from tests.integration.processes import plain
from tests.messages import assert_says
from tests.orchestrator.classifiers import Constant, here
from tests.orchestrator.studies import SMALL, write_solver

pytestmark = pytest.mark.usefixtures("no_pages")

PIPELINES = Path(__file__).parents[3] / "examples" / "pipelines"

TRIALS = 2 * 2 * 3 * (3 * 6 + 1)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a finished small study."""
    folder = tmp_path_factory.mktemp("finished")
    assert main(["run", *SMALL, "cluster=serial", *paths(folder)]) == EXIT_OK
    return folder


def paths(folder):
    return [f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}"]


@pytest.fixture
def svmbench(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder; return exit code, output in one line, and lines of errors."""
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()

    def svmbench(*arguments, folder=tmp_path):
        where = [] if not arguments or arguments[0].startswith("-") else paths(folder)
        code = main([*arguments, *where])
        output, errors = capsys.readouterr()
        return code, plain(output), errors.splitlines()

    return svmbench


def test_a_plan_counts_what_is_there_and_what_is_not(svmbench, finished):
    code, text, errors = svmbench("plan", *SMALL, folder=finished)
    assert (code, errors) == (EXIT_OK, [])
    assert_says(text, "0 trainings")
    found = "With 2 datasets and 1 comparison at level 0.05, no difference can be significant"
    assert found in " ".join(text.split())
    _, text, _ = svmbench("plan", *SMALL, "datasets=[iris,wine,checkers]", folder=finished)
    assert_says(text, f"{TRIALS // 2} trainings")
    _, text, _ = svmbench("plan", *SMALL, "search=pattern", folder=finished)
    assert_says(text, "at most")


def test_a_plan_promises_no_test_and_no_inner_splits_that_the_study_lacks(svmbench, finished):
    study = [text for text in SMALL if not text.startswith(("study=", "protocol.inner="))]
    _, text, _ = svmbench("plan", *study, "study=points", "search=every", folder=finished)
    assert "significant" not in text
    assert "comparison" not in text
    outer = "protocol.outer={_target_: sklearn.model_selection.StratifiedShuffleSplit, n_splits: 3}"
    _, text, _ = svmbench("plan", *study, "study=nested", outer, folder=finished)
    assert_says(text, "StratifiedShuffleSplit, 3 splits", "inner splits: 5")
    fixed = "study=fixed", "search=selected", "search.study=small", outer
    study = [text for text in study if not text.startswith("search.space")]
    _, text, _ = svmbench("plan", *study, *fixed, folder=finished)
    assert_says(text, "StratifiedShuffleSplit, 3 splits")
    assert "inner splits" not in text


def test_a_plan_runs_nothing_and_leaves_no_folder(svmbench, tmp_path):
    code, text, _ = svmbench("plan", *SMALL)
    assert code == EXIT_OK
    assert_says(text, f"{TRIALS} trainings")
    assert not (tmp_path / "results").exists()


def test_a_run_of_a_finished_study_runs_nothing(svmbench, finished):
    before = Store(finished / "results" / "small").trials()
    code, text, _ = svmbench("run", *SMALL, "cluster=serial", folder=finished)
    assert code == EXIT_OK
    assert_says(text, "0 trials run", f"{TRIALS} found")
    pd.testing.assert_frame_equal(Store(finished / "results" / "small").trials(), before)


def test_the_status_comes_from_the_store_alone(svmbench, finished):
    code, text, _ = svmbench("status", "study=small", folder=finished)
    assert code == EXIT_OK
    assert_says(text, f"{TRIALS} of {TRIALS} trials", "0 failed", "complete")


@pytest.mark.figures(sample=False)
def test_a_report_is_written_where_it_says(svmbench, finished):
    code, text, _ = svmbench("report", "study=small", folder=finished)
    assert code == EXIT_OK
    index = finished / "results" / "small" / "report" / "index.html"
    assert str(index) in text
    assert index.stat().st_size > 10_000


@pytest.mark.parametrize("verb", ["plan", "status", "run"])
def test_every_arm_is_shown_by_its_name(verb, svmbench, tmp_path):
    solver = tmp_path / "mine" / "solver" / "near.yaml"
    solver.parent.mkdir(parents=True)
    solver.write_text("_target_: sklearn.neighbors.KNeighborsClassifier\nspace: {n_neighbors: [3]}\n")
    mine = ["--config-dir", str(tmp_path / "mine"), "cluster=serial"]
    study = [*SMALL, *mine, "solvers=[near]", "sweep.p=[1,2,3,4]", "datasets=[iris]"]
    if verb == "status":
        svmbench("run", *study)
    _, text, errors = svmbench(verb, *(["study=small"] if verb == "status" else study))
    assert errors == []
    for p in (1, 2, 3, 4):
        assert f"near[p={p}]" in text


def test_messages_do_not_control_the_terminal(capsys, tmp_path):
    folder = tmp_path / "\x1b[2J\x1b]0;title\x07[red]"
    main(["status", "study=x", f"paths.results='{folder}'"])
    main(["list", "\x1b[31msolvers"])
    with pytest.raises(SystemExit):
        main(["run", "--\x1b[31mno-such-option"])
    output, errors = capsys.readouterr()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", output + errors)
    assert r"\x1b[2J\x1b]0;title\x07[red]" in errors
    assert r"unknown option --\x1b[31mno-such-option" in errors


def test_the_log_does_not_control_the_terminal():
    record = logging.LogRecord(
        "orchestrator", logging.INFO, "x.py", 1, "arm %s failed", ("\x1b[2J\x9bm",), None
    )
    formatter = cli._PrintableFormatter("%(levelname)s %(name)s: %(message)s")
    assert formatter.format(record) == r"INFO orchestrator: arm \x1b[2J\x9bm failed"


def test_lists_name_what_can_be_chosen(svmbench, tmp_path):
    (tmp_path / "mine.libsvm.gz").write_bytes(b"")
    code, text, _ = svmbench("list", f"paths.data={tmp_path}")
    assert code == EXIT_OK
    assert {"iris", "mine", "mnsvm", "quickstart", "grid"} <= set(text.replace(",", " ").split())
    assert "covtype" not in text  # one of the many datasets that only `list datasets` shows
    assert "covtype" in svmbench("list", "datasets")[1].split()


def test_a_list_for_programs_has_groups_descriptions_and_missing_packages(svmbench):
    code, text, _ = svmbench("list", "solvers", "--json", "--config-dir", str(PIPELINES))
    found = {each["name"]: each for each in json.loads(text)["solvers"]}
    assert code == EXIT_OK
    assert found["forest"]["group"] != found["mnsvm"]["group"] != found["piped_svm"]["group"]
    assert "forest" in found["forest"]["description"]
    installed = importlib.util.find_spec("catboost") is not None
    assert found["catboost"]["missing_packages"] == ([] if installed else ["catboost"])


def test_without_arguments_the_first_commands_are_shown(svmbench):
    code, text, errors = svmbench()
    assert (code, errors) == (EXIT_OK, [])
    assert text.count("svmbench run ") == 2
    assert "svmbench list" in text


def test_bad_input_is_told_in_sentences_and_nothing_runs(svmbench, tmp_path):
    bad = ["datasets=[iriss,wine]", "solvers=[mnsvm]", "sweep.eta=[2.5]"]
    code, text, (first, second) = svmbench("run", "study=x", *bad)
    assert (code, text) == (EXIT_BAD, "")
    assert_says(first, "unknown", "dataset 'iriss'", "'iris'", "svmbench list datasets")
    assert_says(second, "mnsvm[eta=2.5]", "'eta'", "MNSVC")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("1 1:0.5\n2 1:x\n", ("small.libsvm", "line 2", "number", "'1:x'")),
        ("1 1:0.5\n1 1:1\n", ("two classes", "1", "2 rows")),
        ("1 1:0.5\n1 1:1\n2 1:2\n", ("class 2", "has 1 member,", "3 outer folds", "merge or leave out")),
    ],
)
def test_bad_data_is_told_in_a_sentence_and_nothing_runs(content, sentence, svmbench, tmp_path):
    (tmp_path / "small.libsvm").write_text(content)
    code, _, (error,) = svmbench("run", *SMALL, "datasets=[small]", f"paths.data={tmp_path}")
    assert code == EXIT_BAD
    assert_says(error, *sentence)
    assert not (tmp_path / "results").exists()


def test_the_problems_of_all_datasets_are_told_at_once(svmbench, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.libsvm").write_text("1 1:nan\n2 1:1\n")
    code, _, errors = svmbench("run", *SMALL, "datasets=[a,iris,b,c]", f"paths.data={tmp_path}")
    assert code == EXIT_BAD
    assert len(errors) == 1  # the unknown name, before anything is loaded
    _, _, errors = svmbench("run", *SMALL, "datasets=[a,iris,b]", f"paths.data={tmp_path}")
    assert ["'a'" in errors[0], "'b'" in errors[1], len(errors)] == [True, True, 2]


def test_one_dataset_under_two_names_is_refused(svmbench, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.libsvm").write_text("1 1:1\n2 1:2\n" * 9)
    code, _, (error,) = svmbench("run", *SMALL, "datasets=[a,b]", f"paths.data={tmp_path}")
    assert code == EXIT_BAD
    assert_says(error, "a and b", "same content")


def test_a_plan_warns_of_copies_and_of_shared_rows(svmbench, tmp_path):
    rows = [f"{1 + row % 2} 1:{row / 7:.3f} 2:{row % 7}" for row in range(60)]
    (tmp_path / "copied.libsvm").write_text("\n".join([*rows, *rows]))
    (tmp_path / "part.libsvm").write_text("\n".join(rows[:40]))
    study = *SMALL, "datasets=[copied,part,iris]", f"paths.data={tmp_path}", "cluster=serial"
    _, text, _ = svmbench("plan", *study, "+dataset.iris.family=flowers")
    text = " ".join(text.split())
    assert_says(text, "dataset 'copied'", "53 %", "exact copy")
    assert_says(text, "40 of 40 different rows", "family")
    assert "'iris'" not in text
    code, _, (error,) = svmbench("plan", *study, "+dataset.iris.family=3")
    assert (code, error) == (
        EXIT_BAD,
        "svmbench: dataset iris: expected a name as family, found 3; put it in quotes",
    )


def test_what_many_datasets_lack_is_told_once(svmbench, tmp_path):
    (tmp_path / "conf" / "dataset").mkdir(parents=True)
    for name in "abcde":
        lack = "_target_: orchestrator.datasets.csv_file\npackage: absent\npath: a.csv\nlabel: 0\n"
        (tmp_path / "conf" / "dataset" / f"{name}.yaml").write_text(lack)
    code, _, (error,) = svmbench("plan", *SMALL, "datasets=[a,b,c,d,e]", "--config-dir", "conf")
    assert code == EXIT_BAD
    assert_says(error, "datasets 'a'", "'b'", "'c'", "2", "2 more", "absent", "not installed")


def test_many_families_are_told_in_one_line(svmbench, tmp_path):
    for number in range(8):
        rows = (f"{1 + row % 2} 1:{row ** (1 + number / 8):.4f} 2:{row % 7}" for row in range(30))
        (tmp_path / f"set{number}.libsvm").write_text("\n".join(rows))
    names = ",".join(f"set{number}" for number in range(8))
    given = (f"+dataset.set{number}.family=f{number // 2}" for number in range(8))
    study = *SMALL, f"datasets=[{names}]", f"paths.data={tmp_path}", "cluster=serial"
    _, text, _ = svmbench("plan", *study, *given)
    told = "4 families of several datasets, each counted once in a test unless report.families=apart: "
    assert told + "f0 (2), f1 (2), f2 (2), f3 (2)" in " ".join(text.split())


def test_results_that_cannot_be_written_are_told_before_anything_runs(svmbench, tmp_path):
    (tmp_path / "results").write_text("a file in the way")
    code, _, (error,) = svmbench("run", *SMALL, "cluster=serial")
    assert code == EXIT_BAD
    assert_says(error, "results", "folder")
    assert_says(error, "writable", "paths.results=DIR")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["status", "study=nothing"], ("study 'nothing'",)),
        (["report"], ("study=NAME",)),
        (["list", "solver"], ("'solver'", "'solvers'")),
        (["status", "studdy=x"], ("unknown", "key 'studdy'", "'study'")),
        (["run", "study=x", "experiment=quickstart", "seed=1"], ("'seed'", "'protocol.seed'")),
        (["claims", "A99"], ("'A99'",)),
    ],
)
def test_the_other_verbs_are_as_clear(arguments, sentence, svmbench):
    code, _, (error,) = svmbench(*arguments)
    assert code == EXIT_BAD
    assert_says(error, *sentence)


def test_a_study_with_a_similar_name_is_suggested(svmbench, finished):
    for verb in ("status", "report", "delete", "repair"):
        _, _, (error,) = svmbench(verb, "smal", folder=finished)
        assert_says(error, "'smal'", "'small'")
        assert "svmbench run" not in error
    _, _, (error,) = svmbench("report", folder=finished)
    assert_says(error, "report", "small")
    _, output, (error,) = svmbench("report", "small", "to=/proc/x", folder=finished)
    assert output == ""  # nothing was computed before
    assert_says(error, "to=/proc/x", "to=DIR")


def test_a_verb_that_does_not_exist_suggests_one(capsys):
    with pytest.raises(SystemExit):
        main(["rnu", "study=x"])
    assert_says(capsys.readouterr().err, "'rnu'", "'run'")


def test_a_name_that_is_repeated_counts_once_and_is_reported(svmbench):
    code, _, warned = svmbench("plan", *SMALL, "datasets=[iris,iris]")
    assert code == EXIT_OK
    assert any("iris" in line for line in warned)


def test_progress_for_programs(svmbench, finished):
    status = json.loads(svmbench("status", "small", "--json", folder=finished)[1], parse_constant=pytest.fail)
    assert (status["study"], status["complete"]) == ("small", True)
    assert sum(pair["stored"] for pair in status["pairs"]) == TRIALS
    (study,) = json.loads(svmbench("studies", "--json", folder=finished)[1])
    assert study["study"] == "small"


@pytest.mark.parametrize("arguments", ["rnu study=x", "run --confg-dir=x", "run --config-dir"])
def test_a_command_line_that_makes_no_sense_is_explained(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(shlex.split(arguments))
    assert end.value.code == 2
    assert "svmbench" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", ["--help", "run --help", "--version"])
def test_help_and_version_are_at_hand(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(shlex.split(arguments))
    assert end.value.code == 0
    assert "svmbench" in capsys.readouterr().out


def test_a_plan_counts_what_a_retry_would_train_again(svmbench, tmp_path):
    config = write_solver(tmp_path, "failing", here("Failing"), fails_at=1)
    study = ["datasets=[iris]", "solvers=[failing]", "search.space={C:[1,2,4]}", "cluster=serial"]
    arguments = ["--config-dir", str(config), "study=x", "protocol.outer=2", "protocol.inner=2", *study]
    svmbench("run", *arguments)
    assert_says(svmbench("plan", *arguments)[1], "0 trainings")
    # Two outer folds × two inner ones of the candidate that failed, and two refits that may change.
    assert_says(svmbench("plan", *arguments, "retry=failed")[1], "6 trainings")


class BreaksTheProgram(Constant):
    """Takes something away that the program needs after its trainings."""

    def __init__(self, C=1.0, what="", attribute=""):
        self.C, self.what, self.attribute = C, what, attribute

    def fit(self, X, y):
        if len(X) > 60:  # not when compiling
            setattr(resolve_name(self.what), self.attribute, None)
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("what", "name"),
    [("orchestrator.engine.cost_model:CostModel", "update"), ("orchestrator.cli.run", "answer_text")],
)
def test_a_run_that_has_trained_ends_with_4_and_a_sentence_whatever_ends_it(
    what, name, svmbench, tmp_path, monkeypatch
):
    monkeypatch.setattr(resolve_name(what), name, getattr(resolve_name(what), name))
    target = f"{BreaksTheProgram.__module__}.BreaksTheProgram"
    config = write_solver(tmp_path, "breaking", target, what=what, attribute=name)
    study = ["datasets=[iris]", "solvers=[breaking]", "search.space={C:[1]}", "cluster=serial"]
    arguments = ["--config-dir", str(config), "study=x", "protocol.outer=2", "protocol.inner=2", *study]
    code, _, (sentence, advice) = svmbench("run", *arguments)
    assert code == 4
    assert_says(sentence, "TypeError", "'NoneType'")
    assert_says(advice, "svmbench run")
    if name == "update":
        (log,) = (tmp_path / "results" / "x" / "logs").iterdir()
        assert str(log) in sentence
        assert "in _take" in log.read_text()


LINGERING = """
import atexit, threading, time
from orchestrator.cli import main
main._END_SECONDS, main.main = 0.2, lambda: 3
threading.Thread(target=time.sleep, args=(600,)).start()
atexit.register(time.sleep, 600)
main.console_main()
"""


DESTROYED_SLOWLY = """
import atexit, tempfile, time
from functools import partial
atexit.register(print, "what was registered before")
from orchestrator.cli import main

class InCycle:
    def __init__(self):
        self.me = self
    def __del__(self):
        time.sleep({seconds})

main._END_SECONDS = 0.2
held = tempfile.NamedTemporaryFile(dir={folder!r})

def work():
    atexit.register(partial(print, "what was registered", flush=True))
    InCycle()
    return 4

main.main = work
main.console_main()
"""


@pytest.mark.new_interpreters
def test_a_command_ends_whatever_trainings_have_left_in_its_process():
    assert subprocess.run([sys.executable, "-c", LINGERING], timeout=60).returncode == 3


@pytest.mark.new_interpreters
@pytest.mark.parametrize("seconds", [0, 600])
def test_destructors_are_called_but_no_longer_waited_for_than_all_else(seconds, tmp_path):
    script = DESTROYED_SLOWLY.format(seconds=seconds, folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], timeout=60, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (4, "")
    ended_by_itself = ["what was registered", "what was registered before"]
    assert done.stdout.splitlines() == ended_by_itself[: 1 if seconds else 2]
    assert bool([*tmp_path.iterdir()]) == bool(seconds)


# -- damaged and read-only studies ---------------------------------------------------------------


@pytest.fixture
def copy(finished, tmp_path):
    """A copy of the finished study, to be damaged."""
    shutil.copytree(finished / "results", tmp_path / "results")
    shutil.copytree(finished / "cache", tmp_path / "cache")
    return tmp_path / "results" / "small"


def test_a_damaged_study_is_named_by_every_verb_repaired_by_one_and_run_again(svmbench, copy):
    _, before, _ = svmbench("status", "study=small")
    (part,) = copy.glob("trials/part-*")
    content = bytearray(part.read_bytes())
    content[1000] ^= 1
    part.write_bytes(content)
    for verb in (["status", "study=small"], ["report", "study=small"], ["plan", *SMALL], ["run", *SMALL]):
        code, _, (error,) = svmbench(*verb, "cluster=serial")
        assert code == EXIT_BAD
        assert_says(error, f"{part}", "damaged")
        assert_says(error, "svmbench repair study=small")
    code, text, errors = svmbench("repair", "small")
    assert (code, errors) == (EXIT_OK, [])
    assert_says(text, f"{copy}/damaged/{part.name}")
    again = svmbench("repair", "study=small")[1]
    assert_says(again, "nothing", f"{TRIALS} of {TRIALS} trials", "missing")
    assert f"0 of {TRIALS} trials" in svmbench("status", "study=small")[1]
    assert_says(svmbench("plan", *SMALL)[1], f"{TRIALS} trainings")
    assert svmbench("run", *SMALL, "cluster=serial")[0] == EXIT_OK
    assert svmbench("status", "study=small")[1].split() == before.split()


def test_trials_that_were_deleted_are_named_until_they_are_stored_again(svmbench, copy):
    outer = (copy / "outer.parquet").read_bytes()
    shutil.rmtree(copy / "trials")
    run_id = Store(copy).provenance()[-1]["run_id"]
    named = f"{TRIALS} of {TRIALS} trials are missing from {copy}/trials: run {run_id} had stored them"
    for verb in ("status", "report", "repair", "repair"):
        code, text, errors = svmbench(verb, "study=small")
        assert (code, errors) == (EXIT_OK, [])
        assert named in text
    assert_says(text, "nothing", "damaged")
    assert (copy / "damaged/outer.parquet").read_bytes() == outer
    assert svmbench("run", *SMALL, "cluster=serial")[0] == EXIT_OK
    assert_says(svmbench("repair", "small")[1], "small", "nothing")
    assert "missing from" not in svmbench("status", "study=small")[1]


def test_a_study_whose_only_record_is_lost_is_named_repaired_and_declared_again(svmbench, copy):
    for record in copy.glob("provenance/*.json"):
        record.unlink()
    code, _, (error,) = svmbench("status", "study=small")
    assert code == EXIT_BAD
    assert_says(error, "damaged", "missing")
    assert_says(svmbench("repair", "small")[1], "declaration", "lost")
    assert_says(svmbench("repair", "small")[1], "small", "nothing")
    code, _, (error,) = svmbench("status", "study=small")
    assert code == EXIT_BAD
    assert_says(error, "command again")
    assert_says(svmbench("plan", *SMALL)[1], "0 trainings")
    assert svmbench("run", *SMALL, "cluster=serial")[0] == EXIT_OK
    assert_says(svmbench("status", "study=small")[1], f"{TRIALS} of {TRIALS} trials", "0 failed", "complete")


def test_repair_takes_one_study_at_a_time_and_none_that_is_being_run(svmbench, copy):
    code, _, (error,) = svmbench("repair", "small", "other")
    assert code == EXIT_BAD
    assert_says(error, "repair", "study", "'small'", "'other'")
    record = next(copy.glob("provenance/*.json"))
    record.write_text("[]")
    with Store(copy).lock():
        code, _, (error,) = svmbench("repair", "small")
        assert code == EXIT_BAD
        assert_says(error, "process")
    assert record.read_text() == "[]"


@pytest.fixture
def read_only(copy):
    """The folder of results, on a file system that is read-only."""
    folder = copy.parent
    for command in (["mount", "--bind"], ["mount", "-o", "remount,ro,bind"]):
        if os.geteuid() != 0 or subprocess.run([*command, folder, folder], capture_output=True).returncode:
            pytest.skip("mounting a folder read-only takes root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_read_only_study_is_read_and_reported_elsewhere(svmbench, read_only, tmp_path):
    assert svmbench("status", "study=small")[0] == EXIT_OK
    assert_says(svmbench("plan", *SMALL)[1], "0 trainings")
    code, _, (error,) = svmbench("report", "study=small")
    assert code == EXIT_BAD
    assert "Read-only file system; " in error
    assert error.endswith("with to=DIR")
    code, text, errors = svmbench("report", "study=small", f"to={tmp_path}/elsewhere")
    assert (code, errors) == (EXIT_OK, [])
    assert text.endswith(f"Report: {tmp_path}/elsewhere/index.html")
    assert (tmp_path / "elsewhere/report.json").exists()
    for verb in (["run", *SMALL, "cluster=serial"], ["repair", "small"]):
        code, _, (error,) = svmbench(*verb)
        assert code == EXIT_BAD
        assert_says(error, "Read-only file system", "paths.results=DIR")


def test_a_report_is_not_written_through_a_link_and_removes_no_tables_of_others(svmbench, copy, tmp_path):
    mine = tmp_path / "thesis"
    (mine / "tables").mkdir(parents=True)
    (mine / "tables/mine.csv").write_text("mine")
    shutil.rmtree(copy / "report", ignore_errors=True)
    (copy / "report").symlink_to(mine)
    code, _, (error,) = svmbench("report", "study=small")
    assert code == EXIT_BAD
    assert re.search(rf"{copy}/report: .*\blink\b.*to=DIR", error)
    code, _, (error,) = svmbench("report", "study=small", "to=")
    assert code == EXIT_BAD
    assert_says(error, "to=", "to=DIR")
    assert svmbench("report", "study=small", f"to={mine}")[0] == EXIT_OK
    assert (mine / "tables/mine.csv").read_text() == "mine"
    assert (mine / "index.html").exists()
