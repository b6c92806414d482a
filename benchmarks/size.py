"""Measure large studies: the cost of scheduling, storing, `status` and `report`, against their targets.

    python benchmarks/size.py [datasets|trainings|rows|parts|arms …] [--scale 1.0]

datasets   2,000 datasets × 10 trainings of a DummyClassifier on serial: CPU beside the trainings
trainings  200,000 trainings on one dataset, on a local cluster: CPU of the client and its scheduler
rows       `svmbench status` and `report` of 10⁶ rows, compacted: CPU and memory of the whole command
parts      `svmbench status` of 10,000 parts without compaction: seconds
arms       `svmbench report` of 500 arms: seconds, and the size of its page

`--scale` multiplies all these sizes. A line that misses its target ends with MISSED.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[0] = str(ROOT)  # otherwise benchmarks/solvers.py would hide the package

import numpy as np
from rich.console import Console

from benchmarks.idle_study import idle_settings
from orchestrator.cli.display import display
from orchestrator.engine.overview import compact
from orchestrator.engine.prepare import PreparedStudy, prepare_study
from orchestrator.engine.run import run_session
from orchestrator.execution.serial import SerialExecutor
from orchestrator.search.fold_search import FoldSearch
from orchestrator.store.store import Store
from orchestrator.study.records import Records
from orchestrator.study.settings import Cluster, Paths, Settings
from orchestrator.study.study import Arm, DatasetSpec, Protocol, SearchSpec, Study


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; default: all"
    )
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    for name in options.names or BENCHMARKS:
        with tempfile.TemporaryDirectory() as folder:
            BENCHMARKS[name](Path(folder), options.scale)


def datasets(folder: Path, scale: float) -> None:
    """Run many small datasets on serial, and subtract the time of the trainings themselves."""
    settings = study(folder, n_datasets=round(2000 * scale), solvers=1, space=2, outer=2, inner=2)
    cpu = time.process_time()
    prepared = prepare_study(settings)
    print(f"  preparing {len(settings.study.datasets):,} datasets: {time.process_time() - cpu:.1f} s of CPU")
    trained = 0.0
    wait = SerialExecutor.wait

    def timed(executor: SerialExecutor, seconds: float) -> list:
        nonlocal trained
        began = time.process_time()
        outcomes = wait(executor, seconds)
        trained += time.process_time() - began
        return outcomes

    SerialExecutor.wait = timed
    cpu = time.process_time()
    summary = run_session(settings, prepared, display(Console(quiet=True)), ["benchmark"])
    SerialExecutor.wait = wait
    spent = time.process_time() - cpu - trained
    print(f"  {summary.trials_run:,} trainings: {trained:.1f} s of CPU")
    text = f"{len(settings.study.datasets):,} datasets"
    verdict(f"{text}: scheduling CPU", spent, 60 * scale, "s")


def trainings(folder: Path, scale: float) -> None:
    """Run many trainings of one dataset on a local cluster."""
    settings = idle_settings(folder, round(200_000 * scale), workers=2)
    prepared = prepare_study(settings)
    summary = run_session(settings, prepared, display(Console(quiet=True)), ["benchmark"])
    spent = summary.orchestration_cpu_seconds + summary.storing_cpu_seconds
    print(f"  storing: {summary.storing_cpu_seconds:.1f} s; in all {summary.seconds:.0f} s, {peak()}")
    verdict(f"{summary.trials_run:,} trainings: a second of client CPU", summary.trials_run / spent, 2000, "")


def rows(folder: Path, scale: float) -> None:
    """Store the rows of many nested cross-validations, compact them, and run `status` and `report`."""
    settings = study(folder, n_datasets=max(1, round(63 * scale)), solvers=10, space=64)
    store, number = fabricate(settings, rows_a_part=100_000)
    cpu = time.process_time()
    compact(store)
    print(f"  compacting: {time.process_time() - cpu:.1f} s of CPU, {peak()}")
    cost = command("status", f"study={settings.study.name}", folder=folder)
    verdict(f"status of {number:,} rows: CPU", cost.cpu, 2, "s")
    verdict(f"status of {number:,} rows: memory", cost.memory, 300, "MB")
    cost = command("report", f"study={settings.study.name}", folder=folder)
    verdict(f"report of {number:,} rows: CPU", cost.cpu, 30, "s")
    verdict(f"report of {number:,} rows: memory", cost.memory, 2000, "MB")
    verdict("its page", (store.folder / "report" / "index.html").stat().st_size / 1e6, 5, "MB")


def parts(folder: Path, scale: float) -> None:
    """Store many small parts, and run `status`."""
    n_parts = round(10_000 * scale)
    settings = study(folder, n_datasets=1, solvers=2, space=max(2, n_parts // 5))
    store, number = fabricate(settings, rows_a_part=10)
    n_parts = len(list(store.trials_folder.glob("part-*")))
    cost = command("status", f"study={settings.study.name}", folder=folder)
    verdict(f"status of {n_parts:,} parts of {number:,} rows: wall clock", cost.wall, 5, "s")
    print(f"  CPU {cost.cpu:.1f} s, memory {cost.memory:.0f} MB")


def arms(folder: Path, scale: float) -> None:
    """Store a study of many arms and write its report."""
    settings = study(folder, n_datasets=10, solvers=round(500 * scale), space=4)
    store, number = fabricate(settings, rows_a_part=100_000)
    cost = command("report", f"study={settings.study.name}", folder=folder)
    size = (store.folder / "report" / "index.html").stat().st_size / 1e6
    verdict(f"report of {len(settings.study.arms)} arms, {number:,} rows: CPU", cost.cpu, 15, "s")
    verdict("its page", size, 3, "MB")
    print(f"  wall clock {cost.wall:.1f} s, memory {cost.memory:.0f} MB")
    sizes = sorted((path.stat().st_size, path.name) for path in (store.folder / "report").rglob("*.*"))
    print("  largest files:", ", ".join(f"{name} {size / 1e6:.1f} MB" for size, name in sizes[:-6:-1]))


BENCHMARKS: dict[str, Callable[[Path, float], None]] = {
    "datasets": datasets,
    "trainings": trainings,
    "rows": rows,
    "parts": parts,
    "arms": arms,
}


def study(
    folder: Path, n_datasets: int, solvers: int, space: int, outer: int = 5, inner: int = 5
) -> Settings:
    """Declare a study of dummies on generated datasets."""
    specs = [
        DatasetSpec(
            f"d{number:04d}",
            "sklearn.datasets.make_classification",
            {"n_samples": 60, "random_state": number},
        )
        for number in range(n_datasets)
    ]
    dummies = [
        Arm(
            f"dummy[a={number}]",
            "benchmarks.classifiers.IdleClassifier",
            {"a": number},
            {"C": tuple(float(value) for value in range(space))},
            solver="dummy",
            sweep={"a": number},
        )
        for number in range(solvers)
    ]
    if solvers == 1:
        strategies = ("most_frequent", "prior", "stratified", "uniform")[:space]
        dummies = [
            Arm("dummy", "sklearn.dummy.DummyClassifier", {}, {"strategy": strategies}, solver="dummy")
        ]
    declared = Study(
        "large", tuple(specs), tuple(dummies), SearchSpec("grid"), Protocol(outer=outer, inner=inner)
    )
    paths = Paths(results=folder / "results", data=folder, cache=folder / "cache")
    return Settings(declared, Cluster("serial", 1), paths, on_error="continue", retry="none")


def fabricate(settings: Settings, rows_a_part: int) -> tuple[Store, int]:
    """Store the rows that a run of a study would store, without training. Scores are random."""
    prepared = prepare_study(settings)
    store = Store(settings.paths.results / settings.study.name)
    with store.lock():
        store.write_provenance("made", provenance(prepared))
        batch: list[Records] = []
        waiting = number = 0
        for records in made_rows(prepared, min(rows_a_part, 2000)):
            batch.append(records)
            waiting += len(records)
            number += len(records)
            if waiting >= rows_a_part:
                store.append(batch)
                batch, waiting = [], 0
        store.append(batch)
    return store, number


def provenance(prepared: PreparedStudy) -> dict:
    return {
        "run_id": "made",
        "number": 1,
        "started_at": datetime.now(UTC).isoformat(),
        "finished_at": datetime.now(UTC).isoformat(),
        "command": ["benchmark"],
        "cluster": {"workers": 1},
        **prepared.declaration(),
    }


def made_rows(prepared: PreparedStudy, most: int) -> Iterator[Records]:
    chance = np.random.default_rng(0)
    search = prepared.study.search
    for (dataset, solver), identity in prepared.identities.items():
        constants = {
            "study": "large",
            "dataset": dataset,
            "solver": solver,
            "identity": identity.digest,
            "status": "ok",
            "message": "",
            "n_test": 12,
            "n_train": 48,
            "n_features": 20,
            "n_classes": 2,
            "profile": "throughput",
            "host": "host",
            "worker": "client",
            "attempt": 1,
            "run_id": "made",
            "versions": "{}",
        }
        for outer in range(identity.protocol.outer):
            fold = FoldSearch(identity, search, outer)
            while paths := fold.ask():
                made = []
                for path in paths:
                    for candidate, key in zip(path.candidates, path.keys, strict=True):
                        score, seconds = round(float(chance.random()), 2), float(chance.random())
                        fold.tell(candidate, path.inner, "ok", score)
                        made.append(
                            {
                                "key": key,
                                "outer": path.outer,
                                "inner": path.inner,
                                "seed": path.seed,
                                "score": score,
                                "n_iter": int(chance.integers(1000)),
                                "fit_seconds": seconds,
                                "fit_cpu_seconds": seconds * 0.9,
                                "predict_seconds": seconds * 0.01,
                                "started_at": datetime.now(UTC),
                                "finished_at": datetime.now(UTC),
                                **identity.arm.param_columns(candidate),
                            }
                        )
                for start in range(0, len(made), most):
                    yield Records.of(constants, made[start : start + most])


@dataclass(frozen=True)
class Cost:
    """CPU and wall seconds, and megabytes, of a command."""

    cpu: float
    wall: float
    memory: float


# Another process starts the command, because a process inherits the peak memory of its parent.
MEASURE = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
spent = usage.ru_utime + usage.ru_stime
print(json.dumps([os.waitstatus_to_exitcode(status), spent, usage.ru_maxrss / 1024]))
"""


def command(*arguments: str, folder: Path) -> Cost:
    """Run a command in a separate process."""
    paths = [f"paths.results={folder / 'results'}", f"paths.data={folder}", f"paths.cache={folder / 'cache'}"]
    began = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, sys.executable, "-m", "orchestrator", *arguments, *paths],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    status, cpu, memory = json.loads(run.stdout)
    if status:
        raise SystemExit(f"{' '.join(arguments)} ended with {status}")
    return Cost(cpu, time.perf_counter() - began, memory)


def verdict(what: str, value: float, target: float, unit: str) -> None:
    met = value >= target if not unit else value <= target
    bound = "at least" if not unit else "at most"
    print(
        f"{what}: {value:,.1f} {unit} (target: {bound} {target:,.0f}){'' if met else '  MISSED'}", flush=True
    )


def peak() -> str:
    return f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"


if __name__ == "__main__":
    main()
