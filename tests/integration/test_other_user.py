"""Another user of this host, a real one: what it reaches of a cluster that somebody else has started."""

from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from orchestrator.execution.certificates import make_certificates
from orchestrator.execution.dask.client import local_executor
from orchestrator.study.tls import certificate_folder
from tests.integration.clusters import command, free_port, running, wait_for
from tests.integration.reach import REASON, open_to_all, reached
from tests.messages import assert_says

pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Certificates that the other user has made for itself."""
    folder = tmp_path_factory.mktemp("certs") / "made"
    make_certificates(folder)
    with open_to_all(folder) as paths:
        yield paths


def family(pids) -> list[psutil.Process]:
    """Processes and all that they started."""
    tops = [psutil.Process(pid) for pid in pids]
    return [member for top in tops for member in (top, *top.children(recursive=True))]


def each(processes, question):
    """What all processes answer; those that have only helped others to start may have ended."""
    answers = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            answers += question(process)
    return answers


def listening(processes) -> set[str]:
    """Where processes listen."""
    links = each(processes, lambda process: process.net_connections("inet"))
    return {f"127.0.0.1:{link.laddr.port}" for link in links if link.status == psutil.CONN_LISTEN}


def sockets(processes) -> set[str]:
    """The sockets of the file system, or of the abstract names, that processes have."""
    links = each(processes, lambda process: process.net_connections("unix"))
    return {str(link.laddr) for link in links if link.laddr}


def folders(processes) -> set[str]:
    """The working folders of Dask's that processes have files open in."""
    opened = each(processes, lambda process: process.open_files())
    return {str(Path(file.path).parent) for file in opened if "dask-scratch-space" in file.path}


def scheduler_and_worker(stack, folder, *options):
    """Start both as a user does, without naming any certificates; return their processes."""
    scheme = "tcp" if "--insecure" in options else "tls"
    port, log = free_port(), folder / "scheduler.log"
    scheduler = stack.enter_context(running(command("cluster", "scheduler", "--port", port, *options), log))
    wait_for(log, "Scheduler at", seconds=120)
    line = command("cluster", "worker", f"{scheme}://127.0.0.1:{port}", *options)
    worker = stack.enter_context(running(line, folder / "worker.log"))
    wait_for(log, "Register worker", seconds=120)
    return family([scheduler.pid, worker.pid])


def test_another_user_reaches_nothing_of_a_scheduler_and_its_workers(tmp_path, certificates):
    with ExitStack() as stack:
        processes = scheduler_and_worker(stack, tmp_path)
        places = listening(processes)
        assert len(places) >= 5  # scheduler, nanny, worker, and where Dask serves HTTP
        keys = [*certificate_folder().iterdir(), certificate_folder()]
        assert len(keys) == 9
        assert reached(places, certificates, sockets(processes), [*keys, *folders(processes)]) == []
        with open_to_all(certificate_folder()) as stolen:  # the other user can do what it tries
            assert len([name for name in reached(places, stolen) if name.startswith("tls")]) == 3


def test_another_user_reaches_nothing_of_a_started_cluster(certificates):
    me = psutil.Process()
    before = listening([me])
    with local_executor(1):
        processes = family([me.pid])
        places = listening(processes) - before
        assert len(places) >= 4
        assert reached(places, certificates, sockets(processes) - sockets([me]), folders(processes)) == []


def test_without_encryption_another_user_reaches_everything(tmp_path, certificates):
    """What the option costs, and that the tests above would find an open door."""
    with ExitStack() as stack:
        processes = scheduler_and_worker(stack, tmp_path, "--insecure")
        found = reached(listening(processes), certificates)
    assert len([name for name in found if name.startswith("tcp")]) >= 3
    said = " ".join((tmp_path / "scheduler.log").read_text().split())
    assert_says(said, "every user", "run code")
