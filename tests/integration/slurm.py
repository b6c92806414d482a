"""SLURM for a test: its daemons, real ones, with this host as the only node."""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from tests.integration.clusters import free_port, running
from tests.integration.processes import wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "sinfo", "squeue")
PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin"

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=8000 State=UNKNOWN
PartitionName=short Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str:
    """Say why SLURM cannot be started here; an empty string if it can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "SLURM's daemons take root"
    missing = [program for program in PROGRAMS if shutil.which(program, path=PLACES) is None]
    return f"{missing[0]} is not installed" if missing else ""


class Slurm:
    """A queue with one node of four processors."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._configuration = folder / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        """What programs have to find in their environment to use this queue."""
        return {"SLURM_CONF": str(self._configuration), "PATH": PLACES}

    def __enter__(self):
        host = socket.gethostname().split(".")[0]
        ports = {"controller_port": free_port(), "node_port": free_port()}
        self._configuration.write_text(CONFIGURATION.format(host=host, folder=self._folder, **ports))
        for name in ("state", "spool"):
            (self._folder / name).mkdir()
        key = self._folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        with ExitStack() as stack:
            stack.callback(self._end_jobs)  # last, when no daemon is left to start any
            munge = ["munged", "--foreground", "--force", f"--key-file={key}"]
            munge += [f"--{kind}-file={self._folder}/munge.{kind}" for kind in ("pid", "seed", "log")]
            self._start(stack, *munge, f"--socket={self._folder}/munge.socket")
            wait_until((self._folder / "munge.socket").exists, "munged to listen")
            self._start(stack, "slurmctld", "-D")
            self._start(stack, "slurmd", "-D")
            wait_until(self._is_ready, "the node to join")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._stack.close()

    def _start(self, stack, *line):
        stack.enter_context(running([*line], self._folder / f"{line[0]}.out", **self.environment))

    def _end_jobs(self):
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                # A job has the one; who watches over it overwrites it, but stays in its daemon's folder.
                told = process.environ().get("SLURM_CONF") == str(self._configuration)
                if told or process.cwd() == str(self._folder):
                    process.kill()

    def _is_ready(self):
        with suppress(subprocess.CalledProcessError):  # the controller does not answer at once
            return self.ask("sinfo", "--noheader", "--format=%T") == "idle"

    def ask(self, *line: str) -> str:
        """Return what one of SLURM's programs says."""
        names = os.environ | self.environment
        done = subprocess.run(line, check=True, capture_output=True, text=True, timeout=60, env=names)
        return done.stdout.strip()

    def jobs(self) -> list[str]:
        """Return the numbers of the jobs that wait or run, oldest first."""
        return sorted(self.ask("squeue", "--noheader", "--format=%A").split(), key=int)


@contextmanager
def slurm():
    """Start SLURM; nothing of it outlives the block."""
    # The paths of sockets have to be short.
    with tempfile.TemporaryDirectory(prefix="slurm") as name, Slurm(Path(name)) as queue:
        yield queue
