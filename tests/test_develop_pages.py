"""The examples under `docs/develop` are complete: each is copied from its page and used."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import dask
import pytest
import yaml

from orchestrator import run_study
from orchestrator.config import scalars
from orchestrator.execution.clusters.deployment import deployment_of
from orchestrator.execution.dask_settings import dask_settings
from orchestrator.study.cluster_kinds import CLUSTER_KINDS, ClusterKind
from orchestrator.study.settings import Cluster

ROOT = Path(__file__).parents[1]
DEVELOP = ROOT / "docs" / "develop"
QSUB = """#!/bin/sh
job=$(mktemp ./job-XXXXXX)
cp "$1" "$job"
setsid bash "$job" >"$job.log" 2>&1 &
echo "$!.here"
"""
"""Substitute for PBS's `qsub`: copy the job script, start it as a process, and print its number."""
WAIT = ("cluster=pbs", "cluster.workers=1", "cluster.no_workers_timeout=120")
QDEL = """#!/bin/sh
kill -- "-${1%.here}"
"""
STUDY = (
    *("datasets=[iris]", "solvers=[libsvm_l1]", "protocol.outer=2", "protocol.inner=2"),
    *("search.space.C=[1,16]", "search.space.gamma=[0.25,1]"),
)


def block(page, path):
    """Return the block of a page that begins with the path of a file."""
    text = (DEVELOP / page).read_text(encoding="utf-8")
    (found,) = re.findall(rf"^```(?:python|yaml)\n(# {re.escape(path)}\n.*?)^```$", text, re.M | re.S)
    return found


def imported(name, text, folder, monkeypatch):
    """Write a module, import it under a dotted name, and return it."""
    file = folder / f"{name.rpartition('.')[2]}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    package, _, last = name.rpartition(".")
    monkeypatch.setattr(importlib.import_module(package), last, module, raising=False)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pbs(tmp_path, monkeypatch):
    """The kind of the page, registered as the page says; a folder of its configuration."""
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed: svmbench[slurm]")
    monkeypatch.setitem(CLUSTER_KINDS, "pbs", ClusterKind(counted=True))
    monkeypatch.setitem(scalars._CHOICES, "cluster.kind", tuple(CLUSTER_KINDS))
    path = "orchestrator/execution/clusters/pbs.py"
    imported("orchestrator.execution.clusters.pbs", block("cluster.md", path), tmp_path, monkeypatch)
    (tmp_path / "mine" / "cluster").mkdir(parents=True)
    config = tmp_path / "mine" / "cluster" / "pbs.yaml"
    config.write_text(block("cluster.md", "conf/cluster/pbs.yaml"), encoding="utf-8")
    return tmp_path / "mine"


def test_a_job_of_the_kind_runs_a_worker_with_one_thread(pbs):
    options = yaml.safe_load((pbs / "cluster" / "pbs.yaml").read_text())["options"]
    deployment = deployment_of(Cluster(kind="pbs", workers=2, memory=3, options=options | {"queue": "short"}))
    with (
        dask.config.set(dask_settings(300)),
        deployment.cluster_class()(interface="lo", **deployment.arguments()) as started,
    ):
        script = started.job_script()
    for line in ("#PBS -q short", "#PBS -l walltime=01:00:00", "export NUMBA_NUM_THREADS=1"):
        assert line in script
    assert "--nthreads 1" in script


@pytest.mark.full
def test_a_study_on_the_kind_has_the_rows_of_a_serial_run(pbs, tmp_path, monkeypatch):
    for name, text in (("qsub", QSUB), ("qdel", QDEL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.chdir(tmp_path)
    where = (f"paths.results={tmp_path}", f"paths.cache={tmp_path / 'cache'}")
    there = run_study("study=there", *STUDY, *where, *WAIT, config_dir=pbs)
    here = run_study("study=here", *STUDY, *where, "cluster=serial")
    assert there.trials["score"].equals(here.trials["score"])


def test_the_walks_name_functions_that_are_there():
    steps = re.findall(
        r"^\d+\. `([a-z_/]+\.py)`: (.*(?:\n   .*)*)",
        (DEVELOP / "solver.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert steps
    package = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "solvers").rglob("*.py"))
    for file, text in steps:
        source = (ROOT / "solvers" / file).read_text(encoding="utf-8")
        names = [name.split(".")[-1] for name in re.findall(r"`([A-Za-z_.]+)`", text)]
        assert re.search(rf"\b{names[0]}\b", source), (file, names[0])
        assert not [name for name in names if not re.search(rf"\b{name}\b", package)], file


MODULES = ("solvers/newton/coordinate.py", "solvers/estimators/coordinatesvc.py")
STRATEGIES = ("pairwise", "one_vs_rest", "all_at_once")
TRAIN = """
import importlib.util, json, sys
from sklearn.datasets import load_iris

for name, path in zip(("solvers.newton.coordinate", "solvers.estimators.coordinatesvc"), sys.argv[1:3]):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
X, y = load_iris(return_X_y=True)
weight = 1.0 + 0.5 * (X[:, 0] > 5.8)
for multiclass in sys.argv[3:]:
    model = module.CoordinateSVC(gamma=0.5, C=4.0, multiclass=multiclass)
    path = model.fit_path(X, y, [0.25, 1.0, 4.0], weight)
    fit = model.fit(X, y, weight)
    gaps = [*path.duality_gap_.tolist(), fit.gap_]
    agreement = float((path.predict_path(X)[-1] == fit.predict(X)).mean())
    print(json.dumps([[*path.objective_.tolist(), fit.objective_], gaps, agreement]))
"""
"""Program that trains by the solver of the page, in a process with a separate cache of compiled code."""


def test_the_block_solver_of_the_page_finds_the_optimum(tmp_path):
    from sklearn.datasets import load_iris

    from solvers import NewtonSVC

    paths = [tmp_path / Path(name).name for name in MODULES]
    for path, name in zip(paths, MODULES, strict=True):
        path.write_text(block("solver.md", name), encoding="utf-8")
    names = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    arguments = [*map(str, paths), *STRATEGIES]
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, *arguments], capture_output=True, text=True, cwd=ROOT, env=names
    )
    assert done.returncode == 0, done.stderr
    X, y = load_iris(return_X_y=True)
    weight = 1.0 + 0.5 * (X[:, 0] > 5.8)
    for multiclass, line in zip(STRATEGIES, done.stdout.splitlines(), strict=True):
        objectives, gaps, agreement = json.loads(line)
        exact = NewtonSVC(gamma=0.5, tol=1e-9, multiclass=multiclass).fit_path(X, y, [0.25, 1.0, 4.0], weight)
        optima = [*exact.objective_, exact.objective_[-1]]
        assert max(gaps) <= 1e-3
        assert agreement > 0.99
        assert objectives == pytest.approx(optima, rel=1e-3)
        assert all(found >= best * (1 - 1e-9) for found, best in zip(objectives, optima, strict=True))
