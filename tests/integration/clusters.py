"""Schedulers, workers and clients as a user starts them, on this host or on hosts that a test makes."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import psutil

from orchestrator import load_study
from orchestrator.execution.certificates import make_certificates
from tests.orchestrator.classifiers import Constant

CHANGING = ("seconds", "_at", "host", "worker", "attempt", "run_id", "identity", "key", "study", "versions")
"""Endings of columns that two runs of the same trainings may differ in."""

SLEEPY = '''
import os
import pathlib
import socket
import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Sleepy(ClassifierMixin, BaseEstimator):
    """Answers at random after a nap, and on iris, if there is a gate, as soon as that is open."""

    def __init__(self, C=1.0, seconds=0.0, gate=None, random_state=None):
        self.C, self.seconds, self.gate, self.random_state = C, seconds, gate, random_state

    def fit(self, X, y):
        time.sleep(self.seconds)
        if self.gate and len(X) > 60 and X.shape[1] == 4:  # fewer rows are to try the solver
            gate = pathlib.Path(self.gate)
            (gate / f"training-{socket.gethostname()}-{os.getpid()}").touch()
            while not (gate / "open").exists():
                time.sleep(0.02)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.random.default_rng([self.random_state, int(self.C)]).choice(self.classes_, len(X))
'''


class Hanging(Constant):
    """Takes its time, whatever its limit."""

    def __init__(self, C=1.0, gamma=1.0, seconds=0.0):
        super().__init__(C, gamma)
        self.seconds = seconds

    def fit(self, X, y):
        if len(X) > 60:  # not when compiling
            time.sleep(self.seconds)
        return super().fit(X, y)


class Complaining(Constant):
    """Finds fault with its data."""

    def fit(self, X, y):
        warnings.warn("the data are odd", stacklevel=1)
        return super().fit(X, y)


def free_port() -> int:
    """Return a port that nobody listens at, and that the kernel gives to no connection in the meantime.

    The kernel chooses the ports of connections from 32,768 on by default.
    """
    while True:
        port = random.SystemRandom().randrange(12_000, 32_000)  # tests seed the shared generator alike
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        return port


def sleepy_solver(folder: Path) -> Path:
    """Make a configuration folder with a solver whose trainings take as long as one likes."""
    (folder / "solver").mkdir(parents=True)
    (folder / "gated_module.py").write_text(SLEEPY)
    (folder / "solver" / "sleepy.yaml").write_text(
        "_target_: gated_module.Sleepy\nspace: {C: [1, 2, 3, 4]}\n"
    )
    return folder


def command(*arguments: object, where: tuple[str, ...] = ()) -> list[str]:
    """Return the command line of a verb, behind what brings it to another host."""
    return [*where, sys.executable, "-m", "orchestrator", *map(str, arguments)]


@contextmanager
def running(arguments: list[str], log: Path, **environment: object):
    """Run a process in a group of its own; leave none of the group behind."""
    names = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    with open(log, "ab") as file:
        process = subprocess.Popen(
            arguments, start_new_session=True, stdout=file, stderr=file, cwd=log.parent, env=names
        )
        try:
            yield process
        finally:
            end(process)


def end(process: subprocess.Popen) -> None:
    """Kill a process and all that it started."""
    family = []
    try:
        family = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, psutil.NoSuchProcess):
        pass
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


def certificates(folder: Path) -> Path:
    """Make the certificates of a cluster."""
    make_certificates(folder)
    return folder


def wait_for(log: Path, text: str, times: int = 1, seconds: float = 300) -> None:
    """Wait until a process has said something so many times."""
    deadline = time.monotonic() + seconds
    while log.read_text().count(text) < times:
        assert time.monotonic() < deadline, f"{text!r} not within {seconds} s in:\n{log.read_text()[-3000:]}"
        time.sleep(0.05)


def trainings(folder: Path, study: str) -> pd.DataFrame:
    """Return what a study's trials found, in canonical order, without what may differ between two runs."""
    trials = load_study(study, folder).trials
    kept = [name for name in trials.columns if not name.endswith(CHANGING)]
    axes = ["dataset", "solver", "outer", "inner", *(n for n in kept if n.startswith("param_"))]
    return trials[kept].sort_values(axes).reset_index(drop=True)
