"""Workers with other software than the client's get no training, whether they were there first or not."""

import shutil
import subprocess
import sys
import zipfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator import load_study
from tests.integration.clusters import command, free_port, running, sleepy_solver, wait_for
from tests.integration.gate import Gate
from tests.messages import assert_says

ROOT = Path(__file__).parents[2]
VERSION = 'version = "0.1.0"'
OTHER = 'version = "0.1.1"'


def install(folder: Path, edit: tuple[str, str, str]) -> Path:
    """Build a wheel of this checkout with one text replaced in one file; return where it is installed."""
    source, target = folder / "source", folder / "installed"
    for name in ("orchestrator", "solvers", "conf"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "svmbench.py"):
        shutil.copy(ROOT / name, source / name)
    path, before, after = edit
    text = (source / path).read_text()
    assert before in text
    (source / path).write_text(text.replace(before, after, 1))
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(build, cwd=source, check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


@pytest.fixture
def scheduler(tmp_path):
    """The address of a scheduler without workers, and what starts some."""
    config = sleepy_solver(tmp_path / "config")
    port = free_port()
    address, log = f"tls://127.0.0.1:{port}", tmp_path / "scheduler.log"
    with ExitStack() as stack:
        stack.enter_context(running(command("cluster", "scheduler", "--port", port), log))
        wait_for(log, "Scheduler at")  # and so its certificates are made

        def worker(name, installed=None):
            before = log.read_text().count("Register worker")
            places = ":".join(map(str, filter(None, (installed, config))))
            line = command("cluster", "worker", address)
            stack.enter_context(running(line, tmp_path / f"{name}.log", PYTHONPATH=places))
            wait_for(log, "Register worker", times=before + 1, seconds=300)

        yield address, worker


def run(folder, address, *overrides):
    return command(
        *("run", "--config-dir", folder / "config", "study=s", "datasets=[iris]", "solvers=[sleepy]"),
        *("solver.sleepy.space.C=[1,2]", "protocol.outer=4", "protocol.inner=4", *overrides),
        *("cluster=address", f"cluster.address={address}", f"paths.results={folder}"),
    )


@pytest.mark.parametrize(
    ("edit", "facts"),
    [
        pytest.param(
            *(("pyproject.toml", VERSION, OTHER), ("svmbench 0.1.1 (here 0.1.0)",)), marks=pytest.mark.full
        ),
        (
            ("orchestrator/resampling/nested.py", "shuffle=True", "shuffle=False"),
            ("sources", "orchestrator"),
        ),
    ],
    ids=["version", "source"],
)
def test_a_worker_with_another_wheel_is_refused_before_the_first_trial(edit, facts, scheduler, tmp_path):
    address, worker = scheduler
    worker("good")
    worker("other", install(tmp_path, edit))
    done = subprocess.run(run(tmp_path, address), capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert_says(done.stderr, *facts)
    assert_says(done.stderr, "Install")
    assert not list(tmp_path.glob("s/trials/*"))


@pytest.mark.full
def test_a_worker_with_another_wheel_that_joins_later_gets_nothing(scheduler, tmp_path):
    address, worker = scheduler
    other = install(tmp_path, ("pyproject.toml", VERSION, OTHER))
    worker("good")
    gate = Gate(tmp_path / "gate")
    with running(run(tmp_path, address, gate.override), log := tmp_path / "run.log") as client:
        gate.wait_for_processes(1)
        worker("other", other)
        wait_for(log, "is not used", seconds=300)
        worker("late")
        gate.wait_for_processes(2)  # whatever time that takes: the study cannot end before
        gate.open()
        assert client.wait(timeout=300) == 0, log.read_text()
    assert "svmbench 0.1.1 (here 0.1.0)" in " ".join(log.read_text().split())
    trials = load_study("s", tmp_path).trials
    assert len(trials) == 4 * (4 * 2 + 1)
    assert set(trials["status"]) == {"ok"}
    assert trials["attempt"].max() == 1
    assert trials["worker"].nunique() == 2
