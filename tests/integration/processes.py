"""The command line as a user runs it: real processes, always cleaned up."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import psutil

from orchestrator.cli.main import main
from orchestrator.store.store import Store
from tests.preloaded import new_interpreters

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the tests in the background has them ignore Ctrl-C, and what they start as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_START_SECONDS = 0.5
"""What a process that imports Dask takes to start on an idle machine; measured: 0.4 to 0.5."""


def slowness():
    """Return how many times longer than on an idle machine a process takes to start now, at least 1."""
    begun = time.monotonic()
    with new_interpreters():
        subprocess.run([sys.executable, "-c", "import distributed"], check=True)
    return max(1.0, (time.monotonic() - begun) / _START_SECONDS)


SMALL = (
    "study=small",
    "datasets=[iris,wine]",
    "solvers=[mnsvm,libsvm_l1]",
    "protocol.outer=3",
    "protocol.inner=3",
    "search.space.C=[0.25,1,4,64]",
    "search.space.gamma=[0.0625,0.25,1,4]",
)
SMALL_TRIALS = 2 * 2 * 3 * (3 * 16 + 1)

SLEEPY = '''
import os
import pathlib
import signal
import socket
import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Sleepy(ClassifierMixin, BaseEstimator):
    """Answers at random after a nap, and, if there is a gate, as soon as that is open.

    One value of C and one row of stripes together take its process down.
    """

    def __init__(self, C=1.0, seconds=0.02, poison=None, gate=None, random_state=None):
        self.C, self.seconds, self.poison, self.gate = C, seconds, poison, gate
        self.random_state = random_state

    def fit(self, X, y):
        time.sleep(self.seconds)
        if self.gate and len(X) > 20:
            gate = pathlib.Path(self.gate)
            (gate / f"training-{socket.gethostname()}-{os.getpid()}").touch()
            while not (gate / "open").exists():
                time.sleep(0.02)
        if self.C == self.poison and len(X) > 20 and X[:, -1].max() > 0:  # the warm-up has fewer rows
            os.kill(os.getpid(), signal.SIGKILL)
        self.classes_ = np.unique(y)
        self.n_iter_ = int(self.C)
        return self

    def predict(self, X):
        return np.random.default_rng(self.random_state).choice(self.classes_, len(X))


def stripes(n=60):
    x = np.linspace(0, 1, n)
    return np.column_stack([x, x == 0]), np.where(np.floor(x * 7) % 2 == 0, "black", "white")
'''


def write_config_dir(folder: Path, **params: object) -> Path:
    """Make a user's own folder: a module, a solver `sleepy` and a dataset `stripes` that come from it."""
    for name, text in {
        "sleepy_module.py": SLEEPY,
        "solver/sleepy.yaml": "_target_: sleepy_module.Sleepy\n"
        + "".join(f"{key}: {value}\n" for key, value in params.items()),
        "dataset/stripes.yaml": "_target_: sleepy_module.stripes\nn: 90\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def command(folder: Path, *arguments: str) -> list[str]:
    """Return the command line for a run whose files stay in a folder."""
    paths = [f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}"]
    return [sys.executable, "-m", "orchestrator", arguments[0], *paths, *arguments[1:]]


@contextmanager
def started(folder: Path, *arguments: str, **options):
    """Start a command in a process group of its own, and leave none of the group behind."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": folder}
    process = subprocess.Popen(command(folder, *arguments), start_new_session=True, **(pipes | options))
    try:
        yield process
    finally:
        kill_group(process)
        process.communicate()


def kill_group(process: subprocess.Popen) -> None:
    """Kill a process and those it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def svmbench(folder: Path, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess:
    """Run a command to its end."""
    with started(folder, *arguments) as process:
        stdout, stderr = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def in_process(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run a command to its end in this process, which has imported all it needs."""
    paths, modules = list(sys.path), set(sys.modules)
    line = command(folder, *arguments)[3:]
    stdout, stderr = io.StringIO(), io.StringIO()
    try:
        with chdir(folder), redirect_stdout(stdout), redirect_stderr(stderr):
            code = main(line)
    finally:
        sys.path[:] = paths
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                del sys.modules[name]  # the next test has others of the same names
    return subprocess.CompletedProcess(line, code, stdout.getvalue(), stderr.getvalue())


def store_of(folder: Path, study: str = "small") -> Store:
    """Return a study's store."""
    return Store(folder / "results" / study)


def workers_of(process: subprocess.Popen) -> list[psutil.Process]:
    """Return the worker processes that a client started, oldest first."""
    children = psutil.Process(process.pid).children(recursive=True)
    workers = {child.pid: child for child in children if _is_worker(child)}
    # A worker's fork, which checks something, has the same command line.
    found = [worker for worker in workers.values() if worker.ppid() not in workers]
    return sorted(found, key=lambda worker: worker.create_time())


def _is_worker(process: psutil.Process) -> bool:
    """Return whether a process is a worker, or a fork of one."""
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def wait_until(condition, what: str, seconds: float = 120) -> None:
    """Wait for something that has to happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.02)


def plain(text: str) -> str:
    """Return a text without line breaks and escape sequences, so that sentences can be looked for."""
    return " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).split())
