"""A cluster started over SSH, by real servers on three hosts: its scheduler on one, workers on the others."""

import importlib.util
import os
import shutil
import subprocess
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs
import psutil
import pytest

from orchestrator import load_study
from tests.integration.clusters import certificates, command, running, sleepy_solver, trainings, wait_for
from tests.integration.hosts import Network, why_not
from tests.integration.processes import in_process, plain, wait_until
from tests.messages import assert_says

SERVERS = ("head", "one", "two")
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")


def missing():
    """Say what is not here; an empty string if everything is."""
    if SSHD is None or shutil.which("ssh-keygen") is None:
        return "OpenSSH's server and ssh-keygen are not installed"
    if importlib.util.find_spec("asyncssh") is None:
        return "asyncssh is not installed: svmbench[ssh]"
    return why_not()


REASON = missing()
pytestmark = [pytest.mark.skipif(bool(REASON), reason=REASON), pytest.mark.usefixtures("no_pages")]

OUTER, INNER, POINTS = 4, 3, 4
TRIALS = 2 * OUTER * (INNER * POINTS + 1)
STUDY = (
    *("datasets=[iris,wine]", "solvers=[sleepy]"),
    f"solver.sleepy.space.C=[{','.join(str(point + 1) for point in range(POINTS))}]",
    *(f"protocol.outer={OUTER}", f"protocol.inner={INNER}"),
)


@dataclass
class Hosts:
    """Three hosts with SSH servers and one without, and what it takes to run a study from the latter."""

    folder: Path
    network: Network
    servers: set[psutil.Process]
    config: Path

    def run(self, study, *overrides):
        """Return the command of a study, at the client."""
        return command(
            *("run", "--config-dir", self.config, f"study={study}", *STUDY),
            *(f"paths.results={self.folder}", f"paths.cache={self.folder / 'cache'}", *overrides),
            where=self.network.at("client"),
        )

    def over_ssh(self, study, *overrides):
        """Return the command of a study on the other hosts."""
        hosts = ",".join(self.network.addresses[name] for name in SERVERS)
        keys = f"client_keys:[{self.folder / 'key'}],known_hosts:{self.folder / 'known_hosts'}"
        return self.run(
            *(study, "cluster=ssh", f"cluster.hosts=[{hosts}]", f"cluster.tls.folder={self.folder / 'tls'}"),
            *(f"cluster.options.connect_options={{{keys}}}", *overrides),
        )

    def finish(self, line):
        """Run a command to its end, which has to be a good one; return what it said."""
        done = subprocess.run(line, capture_output=True, text=True, timeout=300, cwd=self.folder)
        assert (done.returncode, done.stderr) == (0, "")
        return plain(done.stdout)

    def left(self):
        """Return what runs on the hosts but their SSH servers."""
        return set().union(*map(self.network.processes, SERVERS)) - self.servers


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Three hosts with SSH servers, and one without."""
    folder = tmp_path_factory.mktemp("ssh")
    config = sleepy_solver(folder / "config")
    certificates(folder / "tls")
    for name in ("key", "host_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    os.makedirs("/run/sshd", exist_ok=True)  # a server locks itself up in there, and takes no other place
    with Network(["client", *SERVERS]) as network, ExitStack() as stack:
        servers = set()
        for name in SERVERS:
            options = {
                "AuthorizedKeysFile": folder / "key.pub",
                "ListenAddress": network.addresses[name],
                "PermitRootLogin": "prohibit-password",
                "PidFile": folder / f"{name}.pid",
                "StrictModes": "no",  # everybody may write to the folder that tests have theirs in
                # What a user's shell would know on such a host: the solver, and a cache of its own.
                "SetEnv": f"PYTHONPATH={config} SVMBENCH_CACHE={folder / name}",
            }
            line = [*network.at(name), SSHD, "-D", "-e", "-f", "/dev/null", "-h", str(folder / "host_key")]
            line += [word for option, value in options.items() for word in ("-o", f"{option}={value}")]
            server = stack.enter_context(running(line, folder / f"{name}.log"))
            servers.add(psutil.Process(server.pid))
        for name in SERVERS:
            wait_for(folder / f"{name}.log", "Server listening")
        host_key = (folder / "host_key.pub").read_text()
        (folder / "known_hosts").write_text(
            "".join(f"{network.addresses[name]} {host_key}" for name in SERVERS)
        )
        made = Hosts(folder, network, servers, config)
        try:
            yield made
        finally:
            for process in made.left():
                process.kill()


def rows(folder, study):
    """When, by which run and where each stored trial was computed."""
    trials = load_study(study, folder).trials
    return {row.key: (row.run_id, row.finished_at, row.host) for row in trials.itertuples()}


def scratch(processes):
    """The working folders of Dask's that processes have files open in."""
    found = set()
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            found |= {str(Path(file.path).parent) for file in process.open_files()}
    return {path for path in found if "dask-scratch-space" in path}


def test_a_study_over_ssh_is_that_of_one_process_and_leaves_nothing_on_the_hosts(hosts):
    line = hosts.run("serial", "cluster=serial")
    assert in_process(hosts.folder, *line[line.index("run") :]).returncode == 0
    hosts.finish(hosts.over_ssh("s", "solver.sleepy.seconds=0.05"))
    wait_until(lambda: not hosts.left(), "the cluster to end")
    assert len(trainings(hosts.folder, "s")) == TRIALS
    assert trainings(hosts.folder, "s").equals(trainings(hosts.folder, "serial"))
    assert set(load_study("s", hosts.folder).trials["host"]) == {"one", "two"}


@pytest.mark.full
def test_a_killed_client_leaves_nothing_on_the_hosts_and_goes_on_later(hosts):
    line = hosts.over_ssh("killed", "solver.sleepy.seconds=0.15")
    with running(line, log := hosts.folder / "killed.log") as client:
        parts = hosts.folder / "killed" / "trials"
        wait_until(lambda: list(parts.glob("part-*")), "rows to be stored", seconds=120)
        folders = scratch(hosts.left())
        assert len(folders) == 3, folders  # the one of the scheduler, and those of two hosts of workers
        client.kill()
        client.wait()
        wait_until(lambda: not hosts.left(), "what the client had started to end")
    mine = str(platformdirs.user_cache_path("svmbench"))
    assert all(folder.startswith(mine) for folder in folders), folders  # others can write to /tmp
    before = rows(hosts.folder, "killed")
    assert 0 < len(before) < TRIALS, log.read_text()
    told = hosts.finish(line)
    assert_says(told, f"{TRIALS - len(before)} trials run", f"{len(before)} found")
    after = rows(hosts.folder, "killed")
    assert before.items() <= after.items()
    assert len(after) == TRIALS


def test_hosts_without_our_python_are_told_in_one_sentence_and_nothing_is_left(hosts):
    line = hosts.over_ssh("nowhere", "cluster.options.remote_python=/nowhere/python")
    done = subprocess.run(line, capture_output=True, text=True, timeout=100, cwd=hosts.folder)
    assert done.returncode == 1
    assert done.stderr.startswith("svmbench: cluster=ssh did not start: ")
    assert done.stderr.endswith("for /nowhere/python (cluster.options.remote_python)\n")
    assert done.stderr.count("\n") == 1
    wait_until(lambda: not hosts.left(), "what had started to end")
