"""What a batch costs the client and the scheduler, in CPU milliseconds.

    python benchmarks/dispatch.py [--batches 400]

Batches of eight trainings that do nothing go to two worker processes, two at a time, as the runner sends
them: pickled, scheduled, received, told to their search. CPU of the client's process, in which a local
cluster's scheduler lives too.
"""

import argparse
import itertools
import sys
import tempfile
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent)  # or benchmarks/solvers.py would hide the package

from rich.console import Console

from benchmarks.idle_study import idle_settings
from orchestrator.execution.dask import local_executor
from orchestrator.preparation import prepare_study
from orchestrator.progress import Progress
from orchestrator.runner import Runner
from orchestrator.scheduling import WorkQueue
from orchestrator.store import Store

TRAININGS = 8


class SmallBatches(WorkQueue):
    """A queue whose batches all hold a few trainings."""

    def next_batch(self, slots):
        lane = next((lane for lane in self._lanes.values() if lane), None)
        return self._batch([self._take(lane, TRAININGS)]) if lane else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=400)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, local_executor(2) as executor:
        for repeat in range(3):
            settings = idle_settings(Path(folder) / str(repeat), options.batches * TRAININGS, 2)
            study = prepare_study(settings).prepared
            store = Store(settings.paths.results / settings.study.name)
            planned = dict(zip(study.identities, itertools.repeat(0)))
            with store.lock():
                runner = Runner(study, store, executor, Progress(planned, Console(quiet=True)), "dispatch")
                runner._queue = SmallBatches(runner._costs, 5, 5)
                started = time.perf_counter()
                summary = runner.run()
                seconds = time.perf_counter() - started
            each = 1000 * summary.orchestration_cpu_seconds / summary.batches
            print(f"{summary.batches} batches in {seconds:.1f} s: {each:.2f} ms of CPU each", flush=True)


if __name__ == "__main__":
    main()
