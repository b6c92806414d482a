"""Run a study on an encrypted scheduler and two workers of this host, and compare it with a serial run."""

import socket
import subprocess
import sys
import time

from svmbench import run_study

STUDY = (
    *("datasets=[iris]", "solvers=[libsvm_l1]", "protocol.outer=2", "protocol.inner=2"),
    *("search.space.C=[1,16]", "search.space.gamma=[0.25,1]"),
)


def free_port():
    """Return a free port of this host."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(*arguments):
    """Start `svmbench cluster` with arguments in a new process."""
    return subprocess.Popen([sys.executable, "-m", "orchestrator", "cluster", *arguments])


def wait_for(port):
    """Wait until a process listens on a port. The scheduler has then made its certificates."""
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)


if __name__ == "__main__":
    port = free_port()
    address = f"tls://127.0.0.1:{port}"
    processes = [start("scheduler", "--port", str(port))]
    try:
        wait_for(port)
        processes.append(start("worker", address, "cluster.workers=2"))
        there = run_study("study=there", *STUDY, "cluster=address", f"cluster.address={address}")
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()
    here = run_study("study=here", *STUDY, "cluster=serial")
    assert there.trials["score"].equals(here.trials["score"])
    print(there.mean_scores())
