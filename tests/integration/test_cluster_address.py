"""A scheduler that is already there, started by Dask's own commands, or that is not there at all."""

import json
import os
import queue
import subprocess
import sys
import time

import pandas as pd
import pytest
from distributed import Client

from orchestrator.execution.dask.client import DaskTransport
from orchestrator.execution.transport import CallStatus
from orchestrator.store.columns import RUN_COLUMNS
from tests.integration.clusters import free_port
from tests.integration.processes import SMALL, slowness, started, store_of, svmbench, wait_until

NARROW = (*SMALL, "search.space.gamma=[0.25]", "datasets=[iris]")
OPEN = ("cluster=address", "cluster.tls.insecure=true")


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and a worker; yields the address and the worker's process."""
    file = tmp_path / "scheduler.json"
    program = [sys.executable, "-m"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    scheduler = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    worker = ["distributed.cli.dask_worker", "--nthreads", "1", "--no-dashboard", "--no-nanny"]
    processes = [
        subprocess.Popen([*program, *command, "--scheduler-file", str(file)], **quiet)
        for command in (scheduler, worker)
    ]
    try:
        wait_until(lambda: file.exists() and file.stat().st_size > 0, "the scheduler to start")
        yield json.loads(file.read_text())["address"], processes[1]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.full
def test_a_cluster_started_by_dask_s_own_commands_gives_the_same_rows(cluster, tmp_path):
    address, worker = cluster
    run = svmbench(tmp_path, "run", *NARROW, *OPEN, f"cluster.address={address}")
    assert run.returncode == 0, run.stderr
    serial = svmbench(tmp_path / "results", "run", *NARROW, "cluster=serial")
    assert serial.returncode == 0, serial.stderr
    here, there = (store_of(folder).trials() for folder in (tmp_path / "results", tmp_path))
    kept = [name for name in here if name not in RUN_COLUMNS]
    pd.testing.assert_frame_equal(here[kept], there[kept])
    assert worker.poll() is None  # it was not ours to end


def test_a_shared_scheduler_keeps_its_settings_and_reports_deaths(cluster):
    address, worker = cluster
    with Client(address, timeout=60) as other:
        other.wait_for_workers(1, timeout=120)

        def allowed():
            return other.run_on_scheduler(
                lambda dask_scheduler: (dask_scheduler.allowed_failures, len(dask_scheduler.plugins))
            )

        before = allowed()
        assert before[0] == 3
        with Client(address, timeout=60, set_as_default=False) as ours:
            transport = DaskTransport(ours)
            results = queue.SimpleQueue()
            (place,) = transport.workers()
            theirs = other.submit(time.sleep, 0.01, pure=False)
            theirs.result(timeout=60)
            transport.submit(place, results.put, time.sleep, 3600)
            transport.run(place, results.put, os.getpid)
            result = results.get(timeout=60)  # although a task occupies the worker's only thread
            assert (result.status, result.value) == (CallStatus.RETURNED, worker.pid)
            assert allowed()[0] == 3
            worker.kill()
            assert results.get(timeout=60).status is CallStatus.WORKER_DIED  # at the first death
        wait_until(lambda: allowed() == before, "the plugin to leave with its client")


def test_a_scheduler_that_does_not_answer_is_told_in_a_sentence_within_half_a_minute(tmp_path):
    begun = time.monotonic()
    address = f"tcp://127.0.0.1:{free_port()}"
    with started(tmp_path, "run", *NARROW, *OPEN, f"cluster.address={address}") as process:
        stdout, stderr = process.communicate(timeout=200)
    assert time.monotonic() - begun < 40 * slowness()  # start-up included
    assert process.returncode == 1
    (sentence,) = stderr.splitlines()
    assert sentence.startswith("svmbench: ")
    assert address.removeprefix("tcp://") in sentence
    assert stdout == ""
