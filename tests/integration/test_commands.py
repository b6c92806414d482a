import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from orchestrator import load_study
from orchestrator.store.columns import RUN_COLUMNS
from tests.integration.processes import (
    SMALL,
    SMALL_TRIALS,
    in_process,
    plain,
    store_of,
    svmbench,
    write_config_dir,
)
from tests.messages import assert_says

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def small(full_size):
    """The overrides of a small study, and the number of its trials."""
    narrow = ("search.space.C=[0.25,4]", "search.space.gamma=[0.25,1]")
    return (SMALL, SMALL_TRIALS) if full_size else ((*SMALL, *narrow), 2 * 2 * 3 * (3 * 4 + 1))


@pytest.fixture(scope="module")
def serial(tmp_path_factory, small):
    """A small study run in one process."""
    folder = tmp_path_factory.mktemp("serial")
    return folder, in_process(folder, "run", *small[0], "cluster=serial")


def comparable(folder):
    trials = store_of(folder).trials()
    return trials[[name for name in trials if name not in RUN_COLUMNS]]


def test_a_run_ends_with_a_table_its_costs_and_the_way_to_the_report(serial, small):
    (folder, run), (_, number) = serial, small
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    text = plain(run.stdout)
    assert_says(text, f"{number:,} of {number:,} trials", "0 failed", "done")
    assert_says(text, "fit and predict")
    assert "batches took" not in text  # of one process nobody can tell
    assert "mnsvm" in text
    assert "results/small/report/index.html" in text  # two datasets have a short report
    assert len(load_study("small", folder / "results").trials) == number


@pytest.mark.new_interpreters
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.full), 2])
def test_any_number_of_workers_gives_the_rows_of_one_process(serial, small, workers, tmp_path):
    run = svmbench(tmp_path, "run", *small[0], f"cluster.workers={workers}")
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert "dashboard" not in run.stdout
    assert_says(plain(run.stdout), "scheduler", "CPU")
    pd.testing.assert_frame_equal(comparable(tmp_path), comparable(serial[0]))
    trials = store_of(tmp_path).trials()
    assert len(trials) == small[1]
    assert trials["worker"].nunique() == workers
    assert set(trials["status"]) == {"ok"}


@pytest.mark.full
def test_a_user_s_own_solver_and_dataset_need_a_folder_of_files_and_nothing_else(tmp_path):
    config_dir = write_config_dir(tmp_path / "mine", seconds=0.001)
    choice = [
        "--config-dir",
        str(config_dir),
        "study=small",
        "datasets=[stripes,iris]",
        "solvers=[sleepy,libsvm_l1]",
    ]
    folds = ["protocol.outer=2", "protocol.inner=2", "cluster.workers=1"]
    spaces = ["search.space={C:[1,4]}"]
    run = svmbench(tmp_path, "run", *choice, *folds, *spaces)
    assert run.returncode == 0, run.stderr
    trials = store_of(tmp_path).trials()
    assert set(trials["status"]) == {"ok"}
    assert set(trials["dataset"]) == {"stripes", "iris"}
    assert len(trials[trials["solver"] == "sleepy"]) == 2 * 2 * (2 * 2 + 1)
    listed = in_process(tmp_path, "list", "solvers", "--config-dir", str(config_dir))
    assert "sleepy" in listed.stdout.split()


def test_an_installed_wheel_works_from_any_folder(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def run(*arguments):
        environment = os.environ | {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=elsewhere,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    where = run("-c", "import orchestrator, solvers, orchestrator.config.compose as c; print(c.CONF_FOLDER)")
    assert Path(where.stdout.strip()) == site / "orchestrator" / "conf", where.stderr
    listed = run("-m", "orchestrator", "list")
    assert {"iris", "mnsvm", "quickstart", "pattern"} <= set(listed.stdout.replace(",", " ").split())
    planned = run("-m", "orchestrator", "plan", "experiment=quickstart")
    assert planned.returncode == 0, planned.stderr
    assert_says(plain(planned.stdout), "9,630 trainings")
    small = ["datasets=[iris]", "protocol.outer=2", "protocol.inner=2", "search.space={C:[1],gamma:[1]}"]
    done = run("-m", "orchestrator", "run", "study=x", "solvers=[libsvm_l1]", *small, "cluster=serial")
    assert done.returncode == 0, done.stderr
    assert (elsewhere / "results" / "x" / "outer.parquet").exists()


QUICK = (
    *("experiment=quickstart", "study=small", "datasets=[iris]", "solvers=[libsvm_l1]"),
    *("protocol.outer=2", "protocol.inner=2", "search.space={C: [1], gamma: [1]}"),
)


@pytest.fixture
def one_core():
    """Run commands on one core, as a container or a batch system does."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin a process")
def test_the_quickstart_runs_on_one_core(one_core, tmp_path, full_size):
    refused = in_process(tmp_path, "run", *QUICK, "cluster.workers=2")
    assert refused.returncode == 1
    (sentence,) = refused.stderr.splitlines()
    assert_says(sentence, "cluster.workers=2", "protocol.profile=timing", "core")
    assert_says(sentence, "1", "lower", "cluster.workers")
    run = svmbench(tmp_path, "run", *QUICK)
    assert run.returncode == 0, run.stderr
    assert store_of(tmp_path).trials()["worker"].nunique() == 1
    if full_size:
        throughput = ["cluster.workers=2", "protocol.profile=throughput", "study=two"]
        assert svmbench(tmp_path, "run", *QUICK, *throughput).returncode == 0


COMPILED = """
import numpy as np
from numba import njit
from sklearn.base import BaseEstimator, ClassifierMixin


@njit(cache=True)
def total(values):
    return values.sum()


class Compiled(ClassifierMixin, BaseEstimator):
    def __init__(self, C=1.0):
        self.C = C

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.total_ = total(np.ascontiguousarray(X))
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])
"""


@pytest.mark.parametrize(
    "cluster", ["cluster=serial", pytest.param("cluster.workers=1", marks=pytest.mark.full)]
)
def test_a_plan_counts_compilation_until_it_is_done(cluster, tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    config_dir = write_config_dir(tmp_path / "mine")
    (config_dir / "compiled_module.py").write_text(COMPILED)
    solver = "_target_: compiled_module.Compiled\nspace: {C: [1]}\n"
    (config_dir / "solver" / "compiled.yaml").write_text(solver)
    mine = ["--config-dir", str(config_dir), "datasets=[iris]", "solvers=[compiled]", cluster]
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path / "cache"))
    planned = in_process(tmp_path, "plan", "study=first", *mine)
    assert_says(plain(planned.stdout), "5 trainings")
    assert_says(plain(planned.stdout), "1 s", "compilation")
    assert svmbench(tmp_path, "run", "study=first", *mine).returncode == 0
    planned = in_process(tmp_path, "plan", "study=second", *mine)
    assert_says(plain(planned.stdout), "5 trainings")
    assert "compilation" not in planned.stdout
    with (config_dir / "compiled_module.py").open("a") as module:
        module.write("# an edit makes what was compiled stale\n")
    planned = in_process(tmp_path, "plan", "study=third", *mine)
    assert_says(planned.stdout, "1 s", "compilation")
