"""Measure what a second worker adds to a study, and why workers wait.

    python -m benchmarks.two_workers [--repeats 3] [OVERRIDE…]

A study is run with one worker process and with two in turn, each time into an empty folder. The overrides are
those of `svmbench run` (by default `experiment=quickstart`). The first run compiles, and is not counted. Of
the others, the run with the shortest makespan counts. A makespan is the time of the main loop, from the first
batch that is sent to the last result, without compilation. The workers have started before.

The gain is the makespan of one worker divided by that of two. Its bound is for two cores that the client and
its workers share: 2 · M / (W + c), where M is the makespan of one worker, W the time of its batches, and c
the CPU time of the client with two workers.

The time of the workers is divided by use, in per cent:

- *training*: fit and predict.
- *handling*: the rest of a batch. The worker opens splits, scales, checks and writes records.
- *start*: until the first batch of each worker.
- *storing*: between two batches, while the client writes rows.
- *scheduling*: between two batches otherwise. Orders and results travel, and the client asks the searches.
- *end*: from the last batch of each worker to the last one of the run.
"""

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent)  # otherwise benchmarks/solvers.py would hide the package

from rich.console import Console

from orchestrator.cli.display import display
from orchestrator.config.compose import check_settings, compose_settings
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.progress import Progress
from orchestrator.engine.runner import Runner
from orchestrator.execution.dask.client import local_executor
from orchestrator.store.store import Store

WORKERS = (1, 2)
Span = tuple[float, float]


class FollowedRunner(Runner):
    """Runner that notes when each worker was in a batch, and when the client wrote rows."""

    def _loop(self):
        self.batches: dict[str, list[Span]] = defaultdict(list)
        self.writes: list[Span] = []
        started = time.time()
        super()._loop()
        self.span = started, time.time()

    def _take(self, outcome):
        if outcome.result is not None:
            records = outcome.result.records
            finished = max(records.columns["finished_at"]).timestamp()
            self.batches[records.constants["worker"]].append(
                (finished - outcome.result.busy_seconds, finished)
            )
        super()._take(outcome)

    def _flush(self):
        started = time.time()
        super()._flush()
        self.writes.append((started, time.time()))


@dataclass(frozen=True)
class Run:
    """Makespan, time of batches, time of all workers by use, and CPU time of the client, in seconds."""

    makespan: float
    busy: float
    uses: dict[str, float]
    client: float
    trainings: int
    batches: int

    def __str__(self) -> str:
        total = sum(self.uses.values())
        uses = ", ".join(f"{name} {100 * seconds / total:.1f}" for name, seconds in self.uses.items())
        return (
            f"{self.trainings:,} trainings, {self.batches:,} batches, {self.makespan:.1f} s; "
            f"client {self.client:.2f} CPU s; workers, %: {uses}"
        )


def overlap(span: Span, others: list[Span]) -> float:
    """Return the length of the part of a span that other spans cover."""
    return sum(max(0.0, min(span[1], end) - max(span[0], start)) for start, end in others)


def divided(runner: FollowedRunner) -> Run:
    """Divide the time of the workers of a run by use."""
    summary, (begun, ended) = runner.summary, runner.span
    busy = summary.busy_seconds - summary.compile_seconds
    uses = {"training": summary.training_seconds, "handling": busy - summary.training_seconds}
    uses |= dict.fromkeys(("start", "storing", "scheduling", "end"), 0.0)
    for spans in map(sorted, runner.batches.values()):
        uses["start"] += max(0.0, spans[0][0] - begun)
        uses["end"] += ended - spans[-1][1]
        for (_, waiting), (again, _) in pairwise(spans):
            if again > waiting:
                written = overlap((waiting, again), runner.writes)
                uses["storing"] += written
                uses["scheduling"] += again - waiting - written
    makespan = ended - begun - summary.compile_seconds / len(runner.batches)
    client = summary.orchestration_cpu_seconds + summary.storing_cpu_seconds
    return Run(makespan, busy, uses, client, summary.trials_run, summary.batches)


def measure(overrides: list[str], n_workers: int) -> Run:
    """Run a study in an empty folder on new workers, and divide their time."""
    with tempfile.TemporaryDirectory() as folder:
        settings = check_settings(compose_settings([*overrides, f"paths.results={folder}"]))
        study = prepare_study(settings)
        store = Store(settings.paths.results / settings.study.name)
        with store.lock(), local_executor(n_workers) as executor:
            while executor.slots < n_workers:
                executor.wait(0.1)
            store.write_provenance("measured", {"run_id": "measured", "number": 1, **study.declaration()})
            progress = Progress(study.planned_trials(), display(Console(quiet=True)))
            runner = FollowedRunner(study, store, executor, progress, "measured")
            runner.run()
    return divided(runner)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", default=["experiment=quickstart"])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    measure(options.overrides, max(WORKERS))  # compile
    found = {workers: [] for workers in WORKERS}
    for _ in range(options.repeats):
        for n_workers in WORKERS:
            found[n_workers].append(run := measure(options.overrides, n_workers))
            print(f"{n_workers} workers: {run}", flush=True)
    one, two = (min(found[workers], key=lambda run: run.makespan) for workers in WORKERS)
    bound = 2 * one.makespan / (one.busy + two.client)
    print(f"gain {one.makespan / two.makespan:.2f}; on two cores at most {bound:.2f}")


if __name__ == "__main__":
    main()
