"""Measure the cost of a batch for the client and the scheduler, in CPU milliseconds.

    python benchmarks/dispatch.py [--batches 400]

Batches of eight trainings that do nothing are sent to two worker processes, two at a time, as the runner
does. They are pickled, scheduled, received, and reported to their search. The CPU time is that of the
client's process, which also contains the scheduler of a local cluster.
"""

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent)  # otherwise benchmarks/solvers.py would hide the package

from rich.console import Console

from benchmarks.idle_study import idle_settings
from orchestrator.cli.display import display
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.progress import Progress
from orchestrator.engine.queue import WorkQueue
from orchestrator.engine.runner import Runner
from orchestrator.execution.dask.client import local_executor
from orchestrator.store.store import Store

TRAININGS = 8


class SmallBatches(WorkQueue):
    """Queue whose batches all hold a few trainings."""

    def next_batch(self, slots):
        queue = next((queue for queue in self._queues.values() if queue.paths), None)
        if queue is None:
            return None
        path = self._take(queue, TRAININGS, math.inf, whole=False)
        self._changed(queue)
        return self._batch([path])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=400)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, local_executor(2) as executor:
        for repeat in range(3):
            settings = idle_settings(Path(folder) / str(repeat), options.batches * TRAININGS, 2)
            study = prepare_study(settings)
            store = Store(settings.paths.results / settings.study.name)
            planned = study.planned_trials()
            with store.lock():
                run = {"run_id": "dispatch", "number": 1, **study.declaration()}
                store.write_provenance("dispatch", run)
                runner = Runner(
                    study, store, executor, Progress(planned, display(Console(quiet=True))), "dispatch"
                )
                runner._queue = SmallBatches(runner._costs)
                started = time.perf_counter()
                summary = runner.run()
                seconds = time.perf_counter() - started
            each = 1000 * summary.orchestration_cpu_seconds / summary.batches
            print(f"{summary.batches} batches in {seconds:.1f} s: {each:.2f} ms of CPU each", flush=True)


if __name__ == "__main__":
    main()
