"""A cluster of four hosts: encrypted, without a shared folder, one of them cut off for a while."""

import re
import subprocess
from contextlib import ExitStack

import pytest

from orchestrator import load_study
from tests.integration.clusters import (
    certificates,
    command,
    running,
    sleepy_solver,
    trainings,
    wait_for,
)
from tests.integration.gate import Gate
from tests.integration.hosts import Network, unplugged, why_not
from tests.integration.processes import in_process

REASON = why_not()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)

STUDY = (
    *("datasets=[digits,iris]", "solvers=[sleepy]", "solver.sleepy.space.C=[1,2,3,4]"),
    *("protocol.outer=4", "protocol.inner=4"),
)
TRIALS = 2 * 4 * (4 * 4 + 1)


@pytest.mark.full
def test_a_study_survives_a_host_that_is_cut_off_and_comes_back(tmp_path):
    config = sleepy_solver(tmp_path / "config")
    tls = certificates(tmp_path / "certs")
    others = certificates(tmp_path / "others")
    cache = tmp_path / "client cache"
    cache.mkdir()
    gate = Gate(tmp_path / "gate")
    paths = (f"paths.results={tmp_path}", f"paths.cache={cache}")
    study = ("--config-dir", config, *STUDY, gate.override, *paths)
    with Network(["scheduler", "client", "one", "two"]) as network, ExitStack() as stack:
        scheduler = network.addresses["scheduler"]
        address = f"tls://{scheduler}:8786"
        logs = {name: tmp_path / f"{name}.log" for name in network.addresses}

        def start(name, *arguments, hidden=(), **environment):
            line = command(*arguments, where=network.at(name, *hidden))
            return stack.enter_context(running(line, logs[name], **environment))

        start(
            *("scheduler", "cluster", "scheduler", "--host", scheduler),
            *(f"cluster.tls.folder={tls}", "cluster.worker_ttl=10"),
        )
        for name in ("one", "two"):
            start(
                *(name, "cluster", "worker", address, "--host", network.addresses[name]),
                *(f"cluster.tls.folder={tls}", f"paths.cache={tmp_path / name}", "cluster.worker_ttl=10"),
                hidden=[cache],
                PYTHONPATH=config,
            )
        wait_for(logs["scheduler"], "Register worker", times=2)

        def run(*overrides):
            return command("run", *study, "cluster=address", *overrides, where=network.at("client"))

        client = stack.enter_context(
            running(
                run("study=s", "--verbose", f"cluster.address={address}", f"cluster.tls.folder={tls}"),
                logs["client"],
            )
        )
        gate.wait_for_processes(1, "one")
        gate.wait_for_processes(1, "two")
        for line in (
            run("study=t", f"cluster.address={address}", f"cluster.tls.folder={others}"),
            run("study=t", f"cluster.address={address.replace('tls', 'tcp')}", "cluster.tls.insecure=true"),
        ):
            told = subprocess.run(line, capture_output=True, text=True, timeout=300, cwd=tmp_path)
            assert (told.returncode, told.stderr.count("\n")) == (1, 1), told.stderr
        with unplugged(network, "two"):
            wait_for(logs["client"], "died")
        wait_for(logs["client"], "of host two joined", times=2)
        gate.wait_for_processes(2, "two")  # it trains again, and what it trains is not done before
        gate.open()
        assert client.wait(timeout=300) == 0, logs["client"].read_text()
    assert in_process(tmp_path, "run", *map(str, study), "study=serial", "cluster=serial").returncode == 0
    mine = trainings(tmp_path, "s")
    assert len(mine) == TRIALS
    assert mine.equals(trainings(tmp_path, "serial"))
    trials = load_study("s", tmp_path).trials
    assert set(trials["host"]) == {"one", "two"}
    assert not trials["key"].duplicated().any()
    # At most once for each host and dataset, however many workers and however often they came.
    sent = re.findall("sent (digits|iris) to host (one|two)", logs["client"].read_text())
    assert len(sent) == len(set(sent))
    assert {("iris", "one"), ("iris", "two")} <= set(sent)
