"""Batches in a child process, what a serial run leaves for the next, and exits in this process."""

import json
import os
import pickle
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from orchestrator.execution.cluster_executor import run_on_worker
from orchestrator.execution.serial import Journal, SerialExecutor
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.exits import recorded_interrupts
from orchestrator.isolation.process_state import kept_process_state
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.study.errors import ExecutionError
from orchestrator.training import batch_process
from orchestrator.training.batch_process import end_child, run_in_child
from orchestrator.training.run_batch import run_batch
from orchestrator.training.unfinished_rows import paths_after
from orchestrator.training.watchdog import overtime_raised
from tests import preloaded
from tests.messages import assert_says, raises
from tests.orchestrator.classifiers import Constant, here, order_for

SVC = "sklearn.svm.SVC"
HERE = "tests.orchestrator.training.test_batch_process"


class Slow(Constant):
    """Takes the seconds that it is given, for one value of C."""

    def __init__(self, C=1.0, slow=None, seconds=0.0, warm_start=False):
        super().__init__(C)
        self.slow, self.seconds, self.warm_start = slow, seconds, warm_start

    def fit(self, X, y):
        self.n_iter_ = getattr(self, "n_iter_", 0) + 1
        if self.slow == self.C and len(X) > 60:  # not when compiling
            time.sleep(self.seconds)
        return super().fit(X, y)


class EndlessPath(Slow):
    """Never returns from training a path."""

    def fit_path(self, X, y, Cs):
        while len(X) > 60:  # not when compiling
            time.sleep(3600)
        raise FloatingPointError("no path here")


class Limited(Constant):
    """Keeps to a time limit of its own, a little late."""

    def __init__(self, C=1.0, max_seconds=None):
        super().__init__(C)
        self.max_seconds = max_seconds

    def fit(self, X, y):
        time.sleep(2 * self.max_seconds)
        self.converged_ = False
        return super().fit(X, y)


class Killer(Constant):
    """Ends its process with one value of C, as often as a file says."""

    def __init__(self, C=1.0, lives=""):
        super().__init__(C)
        self.lives = lives

    def fit(self, X, y):
        if self.C == 2 and len(X) > 60:
            with open(self.lives, "r+") as file:
                left = int(file.read())
                if left:
                    file.seek(0)
                    file.write(str(left - 1))
                    file.flush()
                    os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)


class Orphaning(Constant):
    """Leaves a process behind, and kills its own."""

    def __init__(self, C=1.0, file=""):
        self.C, self.file = C, file

    def fit(self, X, y):
        if len(X) > 60:
            child = os.fork()
            if not child:
                time.sleep(600)
            Path(self.file).write_text(str(child))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)


class Interrupting(Constant):
    """Presses Ctrl-C, and takes it for an error of its own."""

    def fit(self, X, y):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        except KeyboardInterrupt:
            raise ValueError("bad data") from None


class Forking(Constant):
    """Leaves a copy of its process behind, which returns from fit as well."""

    def fit(self, X, y):
        if len(X) > 60:
            os.fork()
        return super().fit(X, y)


@pytest.fixture(autouse=True, scope="module")
def _no_child_left():
    preloaded.start_server()  # otherwise it would be one of the processes that are left
    before = processes()  # of tests in other files
    yield
    end_child()
    assert processes() <= before


@pytest.fixture(autouse=True)
def _no_process_left_beside_the_child():
    """A child is kept for the next batch, as runs keep it: starting one takes longer than most tests."""
    before = processes()
    yield
    child = batch_process._child
    family = set() if child is None else {psutil.Process(child.process.pid), *processes(child.process.pid)}
    assert processes() <= before | family


def processes(parent=None):
    """The processes that a process, by default this one, has started."""
    return set(psutil.Process(parent).children(recursive=True))


def kept(records):
    rows = [records.row(index) for index in range(len(records))]
    return [{name: value for name, value in row.items() if name not in RUN_COLUMNS} for row in rows]


# -- in a child ----------------------------------------------------------------------------------


def test_a_child_finds_what_this_process_finds(tmp_path):
    order = order_for(SVC, tmp_path, C=(1, 2))
    result, warned = run_in_child(order)
    assert kept(result.records) == kept(run_batch(order).records)
    assert warned == ()
    assert result.training_seconds > 0


@pytest.mark.parametrize("warm", [pytest.param(False, marks=pytest.mark.full), True])
def test_only_the_training_that_takes_too_long_is_stopped(warm, tmp_path):
    params = {"slow": 2, "seconds": 3600.0, "warm_start": warm}
    order = order_for(f"{HERE}.Slow", tmp_path, C=(1, 2, 4), params=params, max_seconds=1.0)
    result, _ = run_in_child(order)
    columns = result.records.columns
    assert columns["status"] == ["ok", "timeout", "ok"]
    first, stopped, last = columns["message"]
    assert first == last == ""
    assert_says(stopped, "1 s", "time limit")
    assert columns["score"][1] is None
    assert columns["fit_seconds"][1] >= 1
    assert columns["n_train"] == [columns["n_train"][0]] * 3
    assert columns["n_iter"] == [1, None, 1]  # nothing starts from what was stopped


def test_whether_the_training_or_its_limit_ends_first_the_row_is_the_same(tmp_path):
    params = {"slow": 2, "seconds": 0.6}
    order = order_for(f"{HERE}.Slow", tmp_path, C=(1, 2), params=params, max_seconds=0.5)
    here = kept(run_batch(order).records)
    assert [row["status"] for row in here] == ["ok", "timeout"]
    assert here == kept(run_in_child(order)[0].records)


def test_a_path_that_never_returns_is_stopped_by_the_default_limit(tmp_path):
    order = replace(order_for(f"{HERE}.EndlessPath", tmp_path, C=(1, 2)), default_seconds=0.5)
    assert order.batch.paths[0].warm_starts
    with overtime_raised() as monitor:
        here = run_batch(order, monitor=monitor)
    child, _ = run_in_child(order)
    for found in (here.records.columns, child.records.columns):
        assert found["status"] == ["timeout", "timeout"]
        assert found["n_train"] == [found["n_train"][0]] * 2
        assert all(seconds >= 0.5 for seconds in found["fit_seconds"])
        for message in found["message"]:
            assert_says(message, "1 s", "time limit", "protocol.max_seconds")


def test_an_arm_with_a_limit_of_its_own_stops_itself_and_keeps_its_score(tmp_path):
    order = order_for(f"{HERE}.Limited", tmp_path, C=(1,), max_seconds=0.1)
    here, child = run_batch(order), run_in_child(order)[0]
    assert kept(here.records) == kept(child.records)
    assert list(child.records.outcomes()) == [("timeout", pytest.approx(0.33, abs=0.1))]


def test_the_end_of_a_child_is_told_with_its_signal_and_the_next_order_runs(tmp_path):
    lives = tmp_path / "lives"
    lives.write_text("1")
    order = order_for(f"{HERE}.Killer", tmp_path, C=(1, 2), params={"lives": str(lives)})
    died, _ = run_in_child(order)
    assert isinstance(died, ProcessEnded)
    assert_says(died.reason, "ended", "SIGKILL")
    result, _ = run_in_child(order)
    assert result.records.columns["status"] == ["ok", "ok"]


def test_a_child_that_leaves_a_process_with_its_pipe_has_ended_all_the_same(tmp_path):
    died, _ = run_in_child(
        order_for(f"{HERE}.Orphaning", tmp_path, C=(1,), params={"file": str(tmp_path / "pid")})
    )
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert_says(died.reason, "ended", "SIGKILL")


def test_an_error_of_the_system_in_a_child_is_raised_here(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path / "file" / "cache"))  # no room for kernel values there
    end_child()  # the next one has this environment
    order = order_for(SVC, tmp_path, params={"gamma": 1.0}, max_seconds=60.0)
    with pytest.raises(OSError, match="file"):
        run_in_child(replace(order, shared_gram=True, gram_memory=1.0))
    end_child()


def test_what_is_left_of_paths_is_what_was_not_done(tmp_path):
    order = order_for(SVC, tmp_path, C=(1, 2, 4), folds=((0, 0), (0, 1)))
    keys = [key for path in order.batch.paths for key in path.keys]
    for done in range(len(keys) + 1):
        left = paths_after(order.batch.paths, done)
        assert [key for path in left for key in path.keys] == keys[done:]


# -- what the next run knows ---------------------------------------------------------------------


def journal_left_at(order, done, path):
    """A journal as a process leaves it that ends in the training after so many of an order."""
    journal = Journal(path)
    journal.start(order)
    for _ in range(done):
        journal.finished({"key": ["a"]})
    os.close(journal._file)
    return order.batch.paths[0].keys[done]


def test_the_training_that_a_process_ended_with_is_known_to_the_next(tmp_path):
    order = order_for(SVC, tmp_path, C=(1, 2, 4))
    key = journal_left_at(order, 1, tmp_path / "journal")
    assert Journal(tmp_path / "journal").ended_with == {("iris", "arm"): key}


@pytest.mark.parametrize("content", ["", "x", "000000000000", '000000000000{"known": 3}', '9{"keys": []}'])
def test_a_file_that_is_no_journal_suspects_nobody(content, tmp_path):
    (tmp_path / "journal").write_text(content)
    assert Journal(tmp_path / "journal").ended_with == {}


@pytest.mark.parametrize("lives", [1, 0])
def test_a_training_that_ended_its_process_is_run_in_a_child_and_what_ends_that_is_lost(lives, tmp_path):
    file = tmp_path / "lives"
    file.write_text(str(lives))
    order = order_for(f"{HERE}.Killer", tmp_path, C=(1, 2), params={"lives": str(file)})
    journal_left_at(order, 1, tmp_path / "journal")
    executor = SerialExecutor(tmp_path / "journal")
    executor.submit(order)
    (outcome,) = executor.wait(1)
    if lives:
        assert_says(outcome.lost, "ended", "SIGKILL")
    else:
        assert kept(outcome.result.records) == kept(run_batch(order).records)
    executor.close()
    known = {("iris", "arm"): ""} if lives else {}
    assert Journal(tmp_path / "journal").ended_with == known


def test_an_interrupted_run_leaves_the_suspected_training_to_the_next(tmp_path, monkeypatch):
    def interrupted(order, pair):
        raise KeyboardInterrupt

    order = order_for(SVC, tmp_path, C=(1, 2))
    key = journal_left_at(order, 1, tmp_path / "journal")
    executor = SerialExecutor(tmp_path / "journal")
    monkeypatch.setattr(executor, "_run", interrupted)
    executor.submit(order)
    with pytest.raises(KeyboardInterrupt):
        executor.wait(1)
    executor.close()
    assert Journal(tmp_path / "journal").ended_with == {("iris", "arm"): key}


def test_a_run_that_ends_by_itself_leaves_no_journal(tmp_path):
    order = order_for(SVC, tmp_path, C=(1,))
    executor = SerialExecutor(tmp_path / "journal")
    executor.submit(order)
    executor.wait(1)
    executor.close()
    assert not (tmp_path / "journal").exists()


def test_a_journal_is_small_whatever_it_names(tmp_path):
    order = order_for(SVC, tmp_path, C=(1, 2))
    journal = Journal(tmp_path / "journal")
    journal.start(order)
    journal.finished({"key": ["a"]})
    text = (tmp_path / "journal").read_text()
    assert int(text[:12]) == 1
    assert json.loads(text[12:])["keys"] == list(order.batch.paths[0].keys)
    journal.idle()
    assert json.loads((tmp_path / "journal").read_text()[12:]) == {"known": [], "ends": 1}
    journal.close({})


def test_after_two_ends_of_processes_all_trainings_run_in_children(tmp_path):
    (tmp_path / "lives").write_text("1")
    params = {"lives": str(tmp_path / "lives")}
    order = order_for(f"{HERE}.Killer", tmp_path, C=(1, 2), params=params)
    for ends in range(2):
        journal = Journal(tmp_path / "journal")
        assert (journal.ends, journal.ended_with) == (ends, {})
        journal.start(order)
        journal.idle()  # a thread that a training has left ends the process here
        os.close(journal._file)
    executor = SerialExecutor(tmp_path / "journal")
    executor.submit(order)
    (outcome,) = executor.wait(1)
    assert_says(outcome.lost, "ended", "SIGKILL")
    executor.close()
    assert Journal(tmp_path / "journal").ends == 0  # this run has ended as it should


def test_a_training_that_closes_files_here_ends_the_run_and_is_the_suspect_of_the_next(tmp_path):
    order = order_for(here("ClosesFiles"), tmp_path, C=(1, 2))
    executor = SerialExecutor(tmp_path / "journal")
    executor.submit(order)
    with raises(ExecutionError, "ClosesFiles", "closed"):
        executor.wait(1)
    executor.close()
    assert Journal(tmp_path / "journal").ended_with == {("iris", "arm"): order.batch.paths[0].keys[0]}


def test_a_training_that_closes_the_files_of_its_child_has_ended_it(tmp_path):
    order = order_for(here("ClosesFiles"), tmp_path, C=(1,), params={"every": True})
    died, _ = run_in_child(order)
    assert_says(died.reason, "ended", "exit status 1")


def test_a_worker_outlives_a_training_that_closes_its_files(tmp_path):
    order = pickle.dumps(order_for(here("ClosesFiles"), tmp_path, C=(1,)))
    end, _ = run_on_worker(order, "worker", None)
    assert_says(end.reason, "ended", "exit status 1")


# -- exits here ----------------------------------------------------------------------------------


def test_ctrl_c_ends_a_run_whatever_an_estimator_makes_of_it(tmp_path):
    executor = SerialExecutor()
    executor.submit(order_for(f"{HERE}.Interrupting", tmp_path, C=(1,)))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        executor.wait(1)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_that_is_caught_is_raised_in_the_end():
    def catch():
        with recorded_interrupts(), suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        catch()


def test_a_copy_of_the_process_that_a_training_makes_ends_with_it(tmp_path):
    result = run_batch(order_for(f"{HERE}.Forking", tmp_path, C=(1, 2)))
    assert result.records.columns["status"] == ["ok", "ok"]
    for _ in range(2):  # and none of them has come so far as to run the test
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 1


def test_os_exit_raises_in_a_training_and_works_in_its_children():
    with kept_process_state(Constant) as state:
        with pytest.raises(SystemExit, match=r"os._exit\(3\)"):
            state.run(0, os._exit, 3)
        if (process := os.fork()) == 0:
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 3
    assert os._exit.__module__ == "posix"
