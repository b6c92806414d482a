"""What goes wrong on a cluster's side: workers that hang or leave, schedulers that die."""

import asyncio
import re
import signal
import time
from contextlib import ExitStack
from dataclasses import replace

import dask
import psutil
import pytest
from dask.utils import parse_timedelta
from distributed import Nanny

from orchestrator.execution.clusters import deployment
from orchestrator.execution.dask.client import cluster_executor
from orchestrator.execution.worker_pool import Requirements
from orchestrator.study.errors import ExecutionError, StudyStopped
from orchestrator.study.settings import Cluster
from tests.integration.clusters import (
    command,
    end,
    free_port,
    running,
    sleepy_solver,
    trainings,
    wait_for,
)
from tests.integration.processes import in_process, slowness, wait_until
from tests.messages import assert_says, raises
from tests.orchestrator.classifiers import order_for

pytestmark = pytest.mark.usefixtures("no_pages")

HANGING = "tests.integration.clusters.Hanging"
QUICK = "tests.orchestrator.classifiers.Constant"


def collect(executor, number, seconds=300):
    """Wait for so many outcomes."""
    outcomes = []
    deadline = time.monotonic() + seconds
    while len(outcomes) < number:
        assert time.monotonic() < deadline, f"{len(outcomes)} of {number} outcomes"
        outcomes += executor.wait(0.5)
    return outcomes


def worker_processes():
    """The processes of the workers that this one started."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def numbered(order, number):
    """The same order under another number."""
    return replace(order, batch=replace(order.batch, number=number))


def test_a_training_that_never_ends_is_stopped_and_costs_nobody_else_anything(tmp_path):
    limit = {"max_seconds": 1.0}
    hanging = numbered(order_for(HANGING, tmp_path, C=(1, 2), params={"seconds": 3600.0}, **limit), 1)
    quick = order_for(QUICK, tmp_path, C=(1,), **limit)
    with cluster_executor(Cluster(workers=2)) as executor:
        workers = {worker.pid for worker in worker_processes()}
        executor.submit(hanging)
        executor.submit(numbered(quick, 2))
        first, second = collect(executor, 2)
        assert first.order.batch.number == 2
        assert list(first.result.records.outcomes()) == [("ok", pytest.approx(0.33, abs=0.1))]
        assert list(second.result.records.outcomes()) == [("timeout", None)] * 2
        assert all(1 <= seconds < 300 for seconds in second.result.records.columns["fit_seconds"])
        assert {worker.pid for worker in worker_processes()} == workers


def test_what_a_training_warns_of_in_a_worker_is_told_by_the_client(tmp_path, caplog):
    order = order_for("tests.integration.clusters.Complaining", tmp_path, C=(1, 2))
    with cluster_executor(Cluster(workers=1)) as executor:
        executor.submit(order)
        (outcome,) = collect(executor, 1)
    assert len(outcome.result.records) == 2
    (told,) = [record.message for record in caplog.records if "odd" in record.message]
    assert_says(told, "iris × arm", "UserWarning: the data are odd")
    assert re.search(r"clusters\.py:\d+", told)


def test_a_worker_without_heartbeat_is_given_up(tmp_path):
    order = order_for(HANGING, tmp_path, C=(1,), params={"seconds": 3600.0})
    with cluster_executor(Cluster(workers=1, worker_ttl=1.0)) as executor:
        executor.submit(order)
        executor.wait(1.0)
        (worker,) = worker_processes()
        worker.send_signal(signal.SIGSTOP)
        (outcome,) = collect(executor, 1)
        assert "died" in outcome.lost


@pytest.fixture
def study(tmp_path):
    """A scheduler, a worker, and the command of a study that keeps it busy for ten seconds."""
    config = sleepy_solver(tmp_path / "config")
    address = f"tls://127.0.0.1:{(port := free_port())}"
    line = command(
        *("run", "--config-dir", config, "study=s", "datasets=[iris]", "solvers=[sleepy]"),
        *("solver.sleepy.space.C=[1,2]", "protocol.outer=4", "protocol.inner=4"),
        *("cluster=address", f"cluster.address={address}", f"paths.results={tmp_path}"),
    )
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            running(command("cluster", "scheduler", "--port", port), tmp_path / "scheduler.log")
        )
        wait_for(tmp_path / "scheduler.log", "Scheduler at")  # and so its certificates are made
        worker = stack.enter_context(
            running(command("cluster", "worker", address), tmp_path / "worker.log", PYTHONPATH=config)
        )
        wait_for(tmp_path / "scheduler.log", "Register worker")
        yield tmp_path, line, scheduler, worker


def wait_for_rows(folder):
    """Wait until something of the study is stored."""
    parts = folder / "s" / "trials"
    wait_until(lambda: list(parts.glob("part-*")), "rows to be stored", 300)


def test_a_client_ends_at_once_when_its_scheduler_dies_and_goes_on_later(study):
    folder, line, scheduler, _ = study
    with running([*line, "solver.sleepy.seconds=0.3"], log := folder / "run.log") as client:
        wait_for_rows(folder)
        end(scheduler)
        killed = time.monotonic()
        assert client.wait(timeout=300) == 4, log.read_text()
        seconds = time.monotonic() - killed
    assert seconds < 10 or seconds < 10 * slowness()
    assert_says(log.read_text(), "same command", "resume")
    before = len(trainings(folder, "s"))
    assert 0 < before < 4 * (4 * 2 + 1)
    again = [*line[line.index("run") :], "solver.sleepy.seconds=0.3", "cluster=serial"]
    done = in_process(folder, *again)
    assert done.returncode == 0, done.stderr
    assert f"{before} found stored" in " ".join(done.stdout.split())


def test_how_a_run_ended_is_told_even_if_its_connection_cannot_be_closed(caplog):
    def run():
        with cluster_executor(Cluster(workers=1)) as executor:
            executor._transport._client.loop.add_callback(time.sleep, 7)  # closing waits 5 s for the loop
            raise StudyStopped

    with pytest.raises(StudyStopped):
        run()
    assert_says(caplog.text, "not", "closed")


def test_a_connection_that_was_closed_is_a_lost_scheduler(tmp_path):
    with cluster_executor(Cluster(workers=1)) as executor:
        executor._transport._client.close()
        for attempt in (
            lambda: executor.submit(order_for(QUICK, tmp_path, C=(1,))),
            lambda: executor.wait(1),
        ):
            with raises(ExecutionError, "Dask scheduler", "lost"):
                attempt()
        assert executor._transport.workers() is None


def test_a_client_without_workers_waits_and_then_says_so(study):
    folder, line, _, worker = study
    line = [*line, "solver.sleepy.seconds=0.3", "cluster.no_workers_timeout=5"]
    with running(line, log := folder / "run.log") as client:
        wait_for_rows(folder)
        end(worker)
        assert client.wait(timeout=300) == 4, log.read_text()
    told = " ".join(log.read_text().split())
    assert_says(told, "no worker", "5 s")
    assert_says(told, "cluster.no_workers_timeout=5", "5 s")


def test_an_order_whose_worker_retires_goes_to_another(tmp_path):
    order = order_for(HANGING, tmp_path, C=(1,), params={"seconds": 6.0})
    with cluster_executor(Cluster(workers=2)) as executor:
        executor.submit(order)
        executor.wait(1.0)
        (busy,) = (running.worker.address for running in executor._running.values())
        executor._transport._client.retire_workers([busy])
        (outcome,) = collect(executor, 1)
        assert outcome.result is not None
        assert outcome.order.batch.attempt == 1


def test_timings_take_a_core_for_each_worker(tmp_path):
    order = order_for(QUICK, tmp_path, C=(1,), profile="timing")
    with cluster_executor(Cluster(workers=1), Requirements(timing=True)) as executor:
        (core,) = executor.describe()["cores"]
        executor.submit(order)
        assert collect(executor, 1)[0].result is not None
        (worker,) = worker_processes()
        assert worker.cpu_affinity() == [core]


def test_a_cluster_grows_with_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(deployment, "SCALE_SECONDS", 0.5)
    order = order_for(HANGING, tmp_path, C=(1,), params={"seconds": 4.0})
    with cluster_executor(Cluster(workers=1, minimum=1, maximum=2)) as executor:
        assert (executor.slots, executor.describe()["workers"]) == (2, 1)
        for number in (1, 2):
            executor.submit(numbered(order, number))
        assert all(outcome.result for outcome in collect(executor, 2))
        assert executor.describe()["workers"] == 2


@pytest.mark.parametrize("away", [1.0, pytest.param(20.0, marks=pytest.mark.full)])
def test_a_local_worker_is_replaced_however_long_its_start_takes(away, monkeypatch):
    """Dask's own patience with a lost worker is 15 seconds."""
    assert parse_timedelta(dask.config.get("distributed.deploy.lost-worker-timeout")) == 15
    start = Nanny.instantiate

    async def start_late(nanny):
        if nanny.process is not None:
            await asyncio.sleep(away)
        return await start(nanny)

    monkeypatch.setattr(Nanny, "instantiate", start_late)
    with cluster_executor(Cluster(workers=1)) as executor:
        (worker,) = worker_processes()
        worker.kill()
        deadline = time.monotonic() + 120
        while executor.slots:  # until the death is known
            assert time.monotonic() < deadline
            executor.wait(0.1)
        while not executor.slots:
            assert time.monotonic() < deadline
            executor.wait(0.1)
        assert worker.pid not in {other.pid for other in worker_processes()}
