"""Classifiers with processes of their own, in this process and in a child: rows, limits and what is left."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from orchestrator.engine.load import read_results
from orchestrator.engine.queue import WorkQueue
from orchestrator.engine.work_orders import _default_seconds
from orchestrator.execution.dask.client import cluster_executor
from orchestrator.execution.serial import SerialExecutor
from orchestrator.isolation.class_checks import starts_processes
from orchestrator.study.settings import FOREIGN_SECONDS, MEMORY_DEATHS, Cluster
from orchestrator.training import batch_process
from orchestrator.training.batch_process import end_child, run_in_child
from tests.orchestrator.classifiers import order_for
from tests.orchestrator.studies import StudyRun

HERE = "tests.orchestrator.own_workers"
POOLS = ("ForkPool", "SpawnPool", "ForkServerPool")


@pytest.fixture(autouse=True)
def no_process_left():
    before = set(psutil.Process().children(recursive=True))
    yield
    end_child()
    # The tests' own server of interpreters stays: see tests/preloaded.py.
    ours = ("resource_tracker", "preloaded")
    started = set(psutil.Process().children(recursive=True)) - before
    others = [one for one in started if not any(name in command_of(one) for name in ours)]
    assert psutil.wait_procs(others, timeout=1)[1] == []  # killed processes take a moment to end


def command_of(process):
    """The command line of a process; empty if it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def is_running(pid):
    """Whether a process runs; one that was killed may wait for its new parent to collect it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def scores(result):
    return result.records.columns["status"], result.records.columns["n_correct"]


@pytest.mark.parametrize("kind", ["ForkPool", "Executor", "ForgottenPool"])
def test_rows_are_those_of_one_process_here_and_in_a_child(kind, tmp_path):
    alone = order_for(f"{HERE}.{kind}", tmp_path, C=(1,), params={"n_jobs": 1})
    order = order_for(f"{HERE}.{kind}", tmp_path, C=(1,), params={"n_jobs": 2})
    expected = scores(run_in_child(alone)[0])
    assert expected[0] == ["ok"]
    assert scores(run_in_child(order)[0]) == expected
    executor = SerialExecutor()
    executor.submit(order)
    (outcome,) = executor.wait(1)
    executor.close()
    assert scores(outcome.result) == expected


@pytest.fixture(scope="module")
def on_local_workers(tmp_path_factory):
    """The trials of one study on two local workers: each kind of pool with two processes, and one without."""
    folder = tmp_path_factory.mktemp("local")
    (folder / "conf" / "solver").mkdir(parents=True)
    solvers = ["ForkPool1", *(f"{kind}2" for kind in POOLS)]
    for name in solvers:
        text = f"_target_: {HERE}.{name[:-1]}\nn_jobs: {name[-1]}\nspace: {{C: [1, 2]}}\n"
        (folder / "conf" / "solver" / f"{name}.yaml").write_text(text)
    base = ("study=pools", "datasets=[iris]", "protocol.outer=2", "protocol.inner=2")
    with cluster_executor(Cluster(kind="local", workers=2)) as executor:
        choice = f"solvers=[{','.join(solvers)}]"
        run = StudyRun(folder, choice, base=base, executor=executor, config_dir=folder / "conf")
        run.go()
        assert executor.slots == 2  # no worker was lost
    trials = read_results(run.store).trials.sort_values(["outer", "inner", "param_C"])
    return dict(iter(trials.groupby("solver")))


@pytest.mark.full
@pytest.mark.parametrize("kind", POOLS)
def test_pools_of_each_start_method_end_on_local_workers_with_the_rows_of_one_process(kind, on_local_workers):
    alone, pool = on_local_workers["ForkPool1"], on_local_workers[f"{kind}2"]
    columns = ["outer", "inner", "param_C", "status", "message", "n_correct", "score"]
    assert len(pool) == 10  # two outer folds, each with four inner trainings and a refit
    assert set(pool["status"]) == {"ok"}
    assert pool[columns].to_numpy().tolist() == alone[columns].to_numpy().tolist()


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_boosting_with_two_threads_gives_the_rows_of_one(library, tmp_path):
    pytest.importorskip(library, reason=f"{library} is not installed; it is no dependency of the project")
    target = {"xgboost": "xgboost.XGBClassifier", "lightgbm": "lightgbm.LGBMClassifier"}[library]
    params = {"n_estimators": 5, "random_state": 0}
    rows = []
    for n_jobs in (1, 2):
        order = order_for(target, tmp_path, C=(1,), params={**params, "n_jobs": n_jobs})
        rows.append(scores(run_in_child(order)[0]))
    assert rows[0] == rows[1]
    assert rows[0][0] == ["ok"]


@pytest.mark.parametrize("in_child", [True, False])
def test_a_pool_that_never_answers_ends_by_the_default_limit(in_child, tmp_path):
    order = order_for(f"{HERE}.SilentPool", tmp_path, C=(1,), params={"file": str(tmp_path / "pids")})
    order = replace(order, default_seconds=3.0)
    if in_child:
        result, _ = run_in_child(order)
    else:
        executor = SerialExecutor()
        executor.submit(order)
        (outcome,) = executor.wait(1)
        executor.close()
        result = outcome.result
    assert result.records.columns["status"] == ["timeout"]
    assert "protocol.max_seconds" in result.records.columns["message"][0]
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    deadline = time.monotonic() + 30
    while any(map(is_running, pids)):  # a signal takes a moment to arrive
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_process_in_a_session_of_its_own_ends_with_the_worker_however_that_ends(tmp_path):
    file = tmp_path / "pids"
    order = order_for(f"{HERE}.Server", tmp_path, C=(1,), params={"file": str(file)})
    assert scores(run_in_child(order)[0])[0] == ["ok"]
    child = batch_process._child
    batch_process._child = None
    child.process.kill()  # as the system does where the worker is killed
    child.process.wait()
    os.close(child._guard)
    child._pipe.close()
    pids = [int(pid) for pid in file.read_text().split()]
    assert pids
    deadline = time.monotonic() + 30
    while any(map(is_running, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_child_that_takes_too_much_memory_is_ended_and_the_limit_named(tmp_path):
    order = order_for(f"{HERE}.Hungry", tmp_path, C=(4,))
    ended, _ = run_in_child(order, memory=600 * 2**20)
    assert ended.by_memory
    assert "600 MiB" in ended.reason


def test_the_default_limit_is_for_classes_that_are_not_ours(tmp_path):
    foreign = order_for("sklearn.svm.SVC", tmp_path, C=(1,)).arm
    ours = order_for("solvers.SMOSVC", tmp_path, C=(1,)).arm
    assert _default_seconds(foreign) == FOREIGN_SECONDS
    assert _default_seconds(ours) > FOREIGN_SECONDS
    assert not starts_processes(foreign)


def test_a_training_is_given_up_after_three_deaths_by_memory(tmp_path):
    order = order_for("sklearn.svm.SVC", tmp_path, C=(1,))

    class Costs:
        def base_units(self, path):
            return [1] * len(path)

        def __getattr__(self, name):
            return lambda *arguments: 1.0

    queue = WorkQueue(Costs())
    batch = order.batch
    for death in range(1, MEMORY_DEATHS + 1):
        given_up = queue.retry(batch, 1.0, by_memory=True)
        assert bool(given_up) == (death == MEMORY_DEATHS)
        batch = queue.next_batch(1) or batch


def test_a_script_without_a_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from orchestrator import run_study\n"
        "run_study('study=s', 'datasets=[iris]', 'solvers=[libsvm_l1]', 'search.space.C=[1]', "
        "'search.space.gamma=[1]', 'cluster.workers=1', 'paths.results=r', 'paths.cache=c')\n"
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert run.returncode == 1
    assert '__name__ == "__main__"' in run.stderr.splitlines()[-1]
    assert "Nanny" not in run.stderr
