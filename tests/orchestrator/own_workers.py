"""Honest classifiers with workers of their own: processes by each of Python's means."""

import multiprocessing
import os
import subprocess
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_backend
from sklearn.ensemble import BaggingClassifier
from sklearn.tree import DecisionTreeClassifier

from tests.orchestrator.classifiers import Constant


def mean(rows):
    """Mean of some rows, which a worker computes."""
    return rows.mean(axis=0)


class OwnWorkers(Constant):
    """Nearest centroids, computed one by one or by two processes.

    Parameters
    ----------
    C : float
        Without effect.
    n_jobs : int
        Processes; 1 for none.
    """

    def __init__(self, C=1.0, n_jobs=2):
        super().__init__(C)
        self.n_jobs = n_jobs

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        rows = [X[y == label] for label in self.classes_]
        self.means_ = np.array(self.map(rows) if self.n_jobs > 1 else list(map(mean, rows)))
        return self

    def map(self, rows):
        raise NotImplementedError

    def predict(self, X):
        distances = ((X[:, None] - self.means_[None]) ** 2).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]


class ForkPool(OwnWorkers):
    start = "fork"

    def map(self, rows):
        with multiprocessing.get_context(self.start).Pool(self.n_jobs) as pool:
            return pool.map(mean, rows)


class SpawnPool(ForkPool):
    start = "spawn"


class ForkServerPool(ForkPool):
    start = "forkserver"


class Executor(OwnWorkers):
    def map(self, rows):
        with ProcessPoolExecutor(self.n_jobs) as pool:
            return list(pool.map(mean, rows))


class ForgottenPool(OwnWorkers):
    """Keeps its pool, and never closes it."""

    def map(self, rows):
        self.pool_ = multiprocessing.get_context("fork").Pool(self.n_jobs)
        return self.pool_.map(mean, rows)


class Joblib(OwnWorkers):
    def map(self, rows):
        return Parallel(self.n_jobs, backend="loky")(delayed(mean)(part) for part in rows)


class Bagging(BaggingClassifier):
    """Bagging under joblib's process backend, whatever is the default."""

    def __init__(self, n_jobs=2, random_state=None):
        super().__init__(DecisionTreeClassifier(), n_estimators=4, n_jobs=n_jobs, random_state=random_state)

    def fit(self, X, y):
        with parallel_backend("loky"):
            return super().fit(X, y)


def sleep_with(file):
    """Write which process this is, and never answer."""
    with Path(file).open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    time.sleep(600)


class Server(OwnWorkers):
    """Starts a server in a session of its own, as programs do that outlive a terminal."""

    def __init__(self, C=1.0, n_jobs=2, file=""):
        super().__init__(C, n_jobs)
        self.file = file

    def map(self, rows):
        server = subprocess.Popen(["sleep", "300"], start_new_session=True)
        with open(self.file, "a") as file:
            file.write(f"{server.pid}\n")
        return list(map(mean, rows))


class SilentPool(Constant):
    """Waits for a pool that never answers; not on the few rows on which solvers are tried."""

    def __init__(self, C=1.0, file=""):
        super().__init__(C)
        self.file = file

    def fit(self, X, y):
        if len(X) > 60:
            with multiprocessing.get_context("fork").Pool(2) as pool:
                pool.map(sleep_with, [self.file] * 2, chunksize=1)
        return super().fit(X, y)


class Hungry(Constant):
    """Takes memory until it is stopped, with one value of C; not on a few rows."""

    def __init__(self, C=1.0, hungry=4.0, megabytes=100_000):
        super().__init__(C)
        self.hungry, self.megabytes = hungry, megabytes

    def fit(self, X, y):
        if self.hungry == self.C and len(X) > 60:
            taken = []
            for _ in range(self.megabytes // 10):
                taken.append(np.ones(10 << 17))
                time.sleep(0.01)
        return super().fit(X, y)
