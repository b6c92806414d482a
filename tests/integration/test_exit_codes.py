"""How a run ends, and what it says of it: real commands."""

import os
import signal
import subprocess
import sys

import pytest

from orchestrator.training.environment import git_state
from tests.integration.processes import (
    command,
    in_process,
    plain,
    started,
    store_of,
    wait_until,
    write_config_dir,
)
from tests.messages import assert_says

pytestmark = pytest.mark.usefixtures("no_pages")

FOLDS = ("study=small", "protocol.outer=2", "protocol.inner=2", "cluster=serial")

FAILING = '''
import time

from sklearn.base import BaseEstimator, ClassifierMixin


class Failing(ClassifierMixin, BaseEstimator):
    """Refuses to be fitted: on every dataset, or on those with more than two features only."""

    def __init__(self, C=1.0, always=True):
        self.C, self.always = C, always

    def fit(self, X, y):
        if self.always or X.shape[1] > 2:
            raise ArithmeticError(f"cannot divide by {self.C * len(X)}\\x1b[2J")
        self.classes_ = sorted(set(y))
        return self

    def predict(self, X):
        return [self.classes_[0]] * len(X)


class Endless(Failing):
    """Takes long for more rows than a check before the run has."""

    def fit(self, X, y):
        time.sleep(600 if len(X) > 20 else 0)
        return super().fit(X, y)
'''


@pytest.fixture
def mine(tmp_path):
    """Arguments that choose a folder with a solver that fails, one that sleeps and a small dataset."""
    folder = write_config_dir(tmp_path / "mine", seconds=0.02)
    (folder / "failing_module.py").write_text(FAILING)
    text = "_target_: failing_module.Failing\nspace: {C: [1, 2, 4]}\n"
    (folder / "solver" / "failing.yaml").write_text(text)
    text = text.replace("Failing", "Endless") + "always: false\n"
    (folder / "solver" / "endless.yaml").write_text(text)
    return ["--config-dir", str(folder), *FOLDS]


def test_a_study_whose_every_training_fails_ends_with_3_and_its_reason(mine, tmp_path):
    choice = ["datasets=[stripes]", "solvers=[failing,sleepy]", "solver.sleepy.space={C: [1]}"]
    run = in_process(tmp_path, "run", *mine, *choice)
    assert run.returncode == 3, run.stderr
    text = plain(run.stdout)
    kind = "on stripes: ArithmeticError: cannot divide by"
    assert text.count(kind) == 2, "once when it first failed, once in the summary"
    assert_says(text, f"12 × failing {kind}")
    assert_says(text, "No training of failing")
    assert "\x1b[2J" not in run.stdout + run.stderr
    again = in_process(tmp_path, "run", *mine, *choice)
    assert again.returncode == 3
    assert_says(plain(again.stdout), f"12 × failing {kind}")
    status = in_process(tmp_path, "status", "study=small")
    assert status.returncode == 0
    assert_says(plain(status.stdout), f"12 × failing {kind}")


def test_an_arm_that_fails_on_one_dataset_is_named_and_the_run_has_succeeded(mine, tmp_path):
    choice = ["datasets=[stripes,iris]", "solvers=[failing]", "+solver.failing.always=false"]
    run = in_process(tmp_path, "run", *mine, *choice)
    assert run.returncode == 0, run.stderr
    assert_says(plain(run.stdout), "failing on iris")
    assert "No training of failing succeeded" not in plain(run.stdout)


def test_the_first_failure_ends_a_run_that_asks_for_it_with_4(mine, tmp_path):
    run = in_process(tmp_path, "run", *mine, "datasets=[stripes]", "solvers=[failing]", "on_error=fail_fast")
    assert run.returncode == 4
    sentence, advice = run.stderr.splitlines()
    assert_says(sentence, "stripes × failing", "C")
    assert_says(advice, "svmbench run")
    assert len(store_of(tmp_path).trials()) > 0


@pytest.mark.new_interpreters
def test_sigterm_ends_a_run_as_ctrl_c_does_but_with_4(mine, tmp_path):
    arguments = [*mine, "datasets=[stripes,iris]", "solvers=[sleepy]", "solver.sleepy.seconds=0.2"]
    spaced = [*arguments, "search.space={C: [1, 2, 4, 8]}"]
    with started(tmp_path, "run", *spaced) as process:
        wait_until(lambda: list(store_of(tmp_path).trials_folder.glob("part-*")), "rows")
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == 4
    stopped, advice = (line for line in stderr.splitlines() if line)
    assert_says(stopped, "stopped", "SIGTERM")
    assert_says(advice, "svmbench run")
    before = len(store_of(tmp_path).trials())
    quick = [argument for argument in spaced if "seconds" not in argument]
    assert 0 < before < 2 * 2 * (2 * 4 + 1)
    status = in_process(tmp_path, "status", "study=small")
    assert "complete" not in plain(status.stdout)
    assert in_process(tmp_path, "run", *quick).returncode == 0


@pytest.mark.full
def test_sigterm_ends_a_run_that_was_started_without_ctrl_c(mine, tmp_path):
    def deaf():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for `svmbench run … &`

    arguments = ["run", *mine, "datasets=[stripes]", "solvers=[sleepy]", "solver.sleepy.seconds=0.2"]
    spaced = [*arguments, "search.space={C: [1, 2, 4, 8]}"]
    with started(tmp_path, *spaced, preexec_fn=deaf) as process:
        wait_until(lambda: list(store_of(tmp_path).trials_folder.glob("part-*")), "rows")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)
    assert process.returncode == 4


def test_a_full_disk_ends_a_run_with_4_and_one_sentence(mine, tmp_path):
    (full := tmp_path / "results").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", full]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system takes root")
    try:
        space = f"search.space={{C: [{','.join(map(str, range(1, 200)))}]}}"
        choice = ["datasets=[stripes]", "solvers=[sleepy]", "solver.sleepy.seconds=0.005", space]
        run = in_process(tmp_path, "run", *mine, *choice)
        assert run.returncode == 4, run.stderr
        sentence, advice = run.stderr.splitlines()
        assert_says(sentence, "No space left on device")
        assert advice.startswith("Resume with: ")
    finally:
        subprocess.run(["umount", "-l", full], check=True)


def test_a_study_that_was_stopped_before_its_first_row_is_not_complete(mine, tmp_path):
    arguments = [*mine, "datasets=[stripes]", "solvers=[endless]"]
    with started(tmp_path, "run", *arguments) as process:
        folder = store_of(tmp_path).folder / "provenance"
        wait_until(lambda: list(folder.glob("*.json")), "the run to begin")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    assert process.returncode == 130
    text = plain(in_process(tmp_path, "status", "study=small").stdout)
    assert_says(text, "0 of 14 trials", "unknown")
    assert "complete" not in text


@pytest.mark.parametrize("cluster", [pytest.param("cluster=serial", marks=pytest.mark.full), "cluster=local"])
def test_a_finished_study_starts_no_worker(cluster, mine, tmp_path):
    choice = ["run", *mine, "datasets=[stripes]", "solvers=[sleepy]", "search.space={C: [1, 2]}"]
    assert in_process(tmp_path, *choice).returncode == 0
    (store_of(tmp_path).folder / "outer.parquet").unlink()
    code = "import sys\nfrom orchestrator.cli.main import main\ncode = main(sys.argv[1:])\n"
    code += "assert 'distributed' not in sys.modules\nsys.exit(code)"
    line = [sys.executable, "-c", code, *command(tmp_path, *choice, cluster)[3:]]
    run = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert_says(plain(run.stdout), "no worker")
    assert_says(plain(run.stdout), "0 trials run", "10 found")
    assert (store_of(tmp_path).folder / "outer.parquet").exists()


@pytest.mark.full
def test_the_commits_of_a_run_are_those_of_its_code_and_not_of_the_current_folder(mine, tmp_path):
    for folder in (tmp_path, tmp_path / "mine"):
        line = ["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x@x"]
        for step in (["init", "-q"], ["add", "."], ["commit", "-qm", str(folder)]):
            subprocess.run([*line, *step], check=True, capture_output=True, timeout=30)
    line = ["git", "-C", tmp_path / "mine", "rev-parse", "HEAD"]
    head = subprocess.run(line, check=True, capture_output=True, text=True, timeout=30).stdout.strip()
    choice = ["run", *mine, "datasets=[stripes]", "solvers=[sleepy,libsvm_l1]"]
    spaces = ["solver.sleepy.space={C: [1]}", "solver.libsvm_l1.space={C: [1], gamma: [1]}"]
    assert in_process(tmp_path, *choice, *spaces).returncode == 0
    (run,) = store_of(tmp_path).provenance()
    assert run["git"] == git_state("orchestrator")
    assert run["git_of"] == {"sklearn": None, "sleepy_module": {"commit": head, "dirty": False}}


@pytest.mark.parametrize("verb", [["--help"], ["list"], ["run"], ["list", "nonsense"]])
def test_a_reader_that_leaves_costs_no_traceback_and_no_result(verb, mine, tmp_path):
    choice = ["datasets=[stripes]", "solvers=[sleepy]", "search.space={C: [1, 2]}"]
    line = command(tmp_path, *verb, *(choice + mine if verb == ["run"] else []))
    line = line if len(verb) == 1 and verb != ["--help"] else [*line[:3], *verb]
    errors = tmp_path / "errors"
    pipe, end = os.pipe()
    os.close(pipe)  # nobody will read
    with errors.open("w") as file:
        process = subprocess.run(line, stdout=end, stderr=end if "nonsense" in verb else file, timeout=120)
    os.close(end)
    assert errors.read_text() == ""
    assert process.returncode == (1 if "nonsense" in verb else 0)
    if verb == ["run"]:
        assert len(store_of(tmp_path).trials()) == 10


@pytest.mark.full
def test_a_run_that_lacks_one_row_starts_its_workers(mine, tmp_path):
    choice = ["run", *mine, "datasets=[stripes]", "solvers=[sleepy]"]
    assert in_process(tmp_path, *choice, "search.space={C: [1, 2]}").returncode == 0
    run = in_process(tmp_path, *choice, "search.space={C: [1, 2, 4]}")
    assert "no worker" not in plain(run.stdout)
    assert "found stored" in plain(run.stdout)
