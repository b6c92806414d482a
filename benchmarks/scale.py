"""Measure a million trials: planning time, memory of the client, and the number of waiting trials.

    python benchmarks/scale.py [--trials 1000000] [--workers 2]

The trials train a classifier that does nothing, so all time and memory is orchestration. The run uses a
local Dask cluster. The peak resident memory covers the client and the scheduler.
"""

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent)  # otherwise benchmarks/solvers.py would hide the package

from rich.console import Console

from benchmarks.idle_study import idle_settings
from orchestrator.cli.display import display
from orchestrator.engine import planning
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.run import run_session
from orchestrator.store.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = idle_settings(Path(folder), options.trials, options.workers)
        started = time.perf_counter()
        prepared = prepare_study(settings)
        lines = planning.plan(prepared, {}, {})
        planned = sum(line.planned for line in lines)
        print(
            f"planning {planned:,} trials: {time.perf_counter() - started:.1f} s, {peak_memory()}", flush=True
        )
        summary = run_session(settings, prepared, display(Console(quiet=True)), ["benchmark"])
        rate = summary.trials_run / summary.seconds
        print(
            f"running them on {options.workers} workers: {summary.seconds:.0f} s, {rate:,.0f} trials/s, "
            f"{summary.batches:,} batches, {peak_memory()}",
            flush=True,
        )
        started = time.perf_counter()
        stored = Store(settings.paths.results / settings.study.name).stored()
        lines = planning.plan(prepared, stored, {})
        left = sum(line.left for line in lines)
        print(f"planning to resume: {time.perf_counter() - started:.1f} s, {left} left, {peak_memory()}")
        assert (left, len(stored), summary.failures) == (0, planned, 0)


def peak_memory() -> str:
    return f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"


if __name__ == "__main__":
    main()
