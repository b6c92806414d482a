"""Encrypted links on one host: who has no certificate of the cluster's authority stays out."""

import json
import time
from contextlib import ExitStack

import psutil
import pytest

from orchestrator.cli.main import main
from orchestrator.execution.clusters.address import why_refused
from orchestrator.execution.dask.client import local_executor
from tests.integration.clusters import (
    certificates,
    command,
    free_port,
    running,
    trainings,
    wait_for,
)
from tests.integration.processes import in_process, slowness
from tests.messages import assert_says

pytestmark = pytest.mark.usefixtures("no_pages")

STUDY = (
    *("study=s", "datasets=[iris]", "solvers=[libsvm_l1]", "protocol.outer=3", "protocol.inner=3"),
    *("search.space.C=[1,16]", "search.space.gamma=[0.25,1]"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of an encrypted scheduler with two workers, its certificates, and its processes."""
    folder = tmp_path_factory.mktemp("cluster")
    tls = certificates(folder / "certs")
    address = f"tls://127.0.0.1:{(port := free_port())}"
    with ExitStack() as stack:
        start = [
            command("cluster", "scheduler", "--port", port),
            command("cluster", "worker", address, "cluster.workers=2"),
        ]
        processes = [
            stack.enter_context(running([*line, f"cluster.tls.folder={tls}"], folder / f"{number}.log"))
            for number, line in enumerate(start)
        ]
        wait_for(folder / "0.log", "Register worker", times=2)
        yield address, tls, processes


def run(folder, *overrides):
    """Run the study; return what came of it and how long it took."""
    started = time.monotonic()
    done = in_process(folder, "run", *STUDY, "cluster=address", f"paths.results={folder}", *overrides)
    return done, time.monotonic() - started


def logged(folder):
    """Return the messages of the study's one run."""
    (log,) = folder.glob("s/logs/*.jsonl")
    return [json.loads(line)["message"] for line in log.read_text().splitlines()]


def test_a_study_over_encrypted_links_is_that_of_one_process(cluster, tmp_path):
    address, tls, _ = cluster
    links = (f"cluster.address={address}", f"cluster.tls.folder={tls}")
    done, _ = run(tmp_path, *links, "cluster.performance_report=true")
    assert done.returncode == 0, done.stderr
    (report,) = tmp_path.glob("s/provenance/*-dask.html")
    assert "Performance Report" in report.read_text()
    messages = logged(tmp_path)
    assert sum("joined" in message for message in messages) == 2
    assert "is complete" in messages[-1]
    serial = (*STUDY, "study=serial", "cluster=serial", f"paths.results={tmp_path}")
    assert in_process(tmp_path, "run", *serial).returncode == 0
    assert trainings(tmp_path, "s").equals(trainings(tmp_path, "serial"))
    assert len(trainings(tmp_path, "s")) == 3 * (3 * 4 + 1)


def refused(done, seconds):
    """What a refused client was told, which has to be one sentence and within half a minute."""
    assert done.returncode == 1
    assert seconds < 30 or seconds < 30 * slowness()
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_a_client_without_a_certificate_is_refused(cluster, tmp_path):
    address = cluster[0].replace("tls://", "tcp://")
    told = refused(*run(tmp_path, f"cluster.address={address}", "cluster.tls.insecure=true"))
    assert_says(told, "refused", "without a certificate")
    assert not (tmp_path / "s" / "trials").exists() or not list((tmp_path / "s" / "trials").iterdir())


def test_a_client_of_another_authority_is_refused(cluster, tmp_path):
    address, _, _ = cluster
    others = certificates(tmp_path / "others")
    told = refused(*run(tmp_path, f"cluster.address={address}", f"cluster.tls.folder={others}"))
    assert_says(told, "certificate", "another authority")


def test_a_pair_of_another_authority_is_refused_though_the_client_trusts_the_cluster(cluster, tmp_path):
    address, tls, _ = cluster
    others = certificates(tmp_path / "others")
    mixed = (
        f"cluster.tls.ca={tls / 'ca.pem'}",
        f"cluster.tls.cert={others / 'client.pem'}",
        f"cluster.tls.key={others / 'client.key'}",
    )
    told = refused(*run(tmp_path, f"cluster.address={address}", *mixed))
    assert_says(told, "refused", "cluster.tls")


def test_a_worker_of_another_authority_does_not_join(cluster, tmp_path):
    address, tls, _ = cluster
    others = certificates(tmp_path / "others")
    with running(
        command("cluster", "worker", address, f"cluster.tls.folder={others}"), tmp_path / "worker.log"
    ):
        time.sleep(6)
        done, _ = run(tmp_path, f"cluster.address={address}", f"cluster.tls.folder={tls}")
    assert done.returncode == 0
    assert sum("joined" in message for message in logged(tmp_path)) == 2


def test_an_address_without_encryption_is_not_used_with_certificates_and_the_reverse(
    cluster, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))  # another test may have made certificates
    address, tls, _ = cluster
    told = refused(*run(tmp_path, f"cluster.address={address}"))
    assert_says(told, "certificates")
    plain = address.replace("tls://", "tcp://")
    told = refused(*run(tmp_path, f"cluster.address={plain}", f"cluster.tls.folder={tls}"))
    assert "expected cluster.address=tls://" in told


def test_nobody_there_is_told_as_such(tmp_path):
    told = refused(
        *run(tmp_path, f"cluster.address=tcp://127.0.0.1:{free_port()}", "cluster.tls.insecure=true")
    )
    assert_says(told, "no scheduler")


def test_nothing_listens_beyond_loopback(cluster):
    _, _, processes = cluster
    listening = set()
    for process in processes:
        top = psutil.Process(process.pid)
        for member in [top, *top.children(recursive=True)]:
            listening |= {
                link.laddr.ip for link in member.net_connections("inet") if link.status == psutil.CONN_LISTEN
            }
    assert listening == {"127.0.0.1"}


def test_a_started_cluster_is_on_loopback_and_closed_to_the_host_s_other_users(tmp_path):
    me = psutil.Process()

    def listening():
        return {
            link.laddr
            for process in [me, *me.children(recursive=True)]
            for link in process.net_connections("inet")
            if link.status == psutil.CONN_LISTEN
        }

    before = listening()
    with local_executor(1) as executor:
        assert {address.ip for address in listening() - before} == {"127.0.0.1"}
        address = executor.describe()["scheduler"].replace("tls://", "tcp://")
        assert_says(why_refused(address, None), "refused", "without a certificate")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--port", "99999999"), "cannot listen at 127.0.0.1:99999999 (ports are from 0 to 65535)"),
        (("--port", "-1"), "--host or --port"),
        (("--host", "203.0.113.7"), "cannot listen at 203.0.113.7:8786"),
        (("--port", "0", "--dashboard", "here"), "expected --dashboard HOST:PORT"),
        (("--port", "0", "--dashboard", "203.0.113.7:8787"), "cannot listen at 203.0.113.7:8787"),
    ],
    ids=["large port", "negative port", "host of another", "no port", "dashboard of another"],
)
def test_where_a_scheduler_cannot_listen_is_told_in_one_sentence(options, told, capsys):
    assert main(["cluster", "scheduler", *options]) == 1
    sentence = capsys.readouterr().err
    assert told in sentence
    assert sentence.count("\n") == 1


def test_a_worker_that_cannot_listen_is_not_started_again_and_again(capsys):
    assert main(["cluster", "worker", "tcp://127.0.0.1:1", "--insecure", "--host", "203.0.113.7"]) == 1
    assert_says(capsys.readouterr().err, "listen", "203.0.113.7:0")


def test_the_dashboard_says_who_may_see_it(tmp_path):
    line = command("cluster", "scheduler", "--port", 0, "--dashboard", f"127.0.0.1:{free_port()}")
    with running(line, log := tmp_path / "log"):
        wait_for(log, "Scheduler at")
    said = " ".join(log.read_text().split())
    assert_says(said, "dashboard", "no password", "every user")
