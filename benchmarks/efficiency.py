"""Measure the share of the workers' time spent in batches: Σ busy / (workers × makespan).

    python benchmarks/efficiency.py [processes|threads]

`processes` uses two worker processes and trainings of 50 ms. `threads` uses 32 workers in this process and
100,000 trainings of 20 ms. Trainings sleep, so that the number of cores does not matter.
"""

import argparse
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent)  # otherwise benchmarks/solvers.py would hide the package

from distributed import Client, LocalCluster
from rich.console import Console

from benchmarks.idle_study import idle_settings
from orchestrator.cli.display import display
from orchestrator.engine.prepare import prepare_study
from orchestrator.engine.progress import Progress
from orchestrator.engine.runner import Runner
from orchestrator.execution.cluster_executor import ClusterExecutor
from orchestrator.execution.dask.client import DaskTransport, local_executor
from orchestrator.store.store import Store
from orchestrator.study.settings import Cluster

CASES = {"processes": (2, 1_000, 0.05), "threads": (32, 100_000, 0.02)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=list(CASES))
    for case in parser.parse_args().cases:
        workers, trials, seconds = CASES[case]
        with tempfile.TemporaryDirectory() as folder:
            settings = idle_settings(Path(folder), trials, workers, seconds)
            study = prepare_study(settings)
            store = Store(settings.paths.results / settings.study.name)
            planned = study.planned_trials()
            cluster = local_executor(workers) if case == "processes" else threads(workers)
            with store.lock(), cluster as executor:
                run = {"run_id": "efficiency", "number": 1, **study.declaration()}
                store.write_provenance("efficiency", run)
                progress = Progress(planned, display(Console(quiet=True)))
                summary = Runner(study, store, executor, progress, "efficiency").run()
        print(
            f"{case}: {workers} workers, {summary.trials_run:,} trainings of {seconds * 1000:.0f} ms in "
            f"{summary.seconds:.1f} s and {summary.batches:,} batches; efficiency {summary.efficiency:.3f}, "
            f"of it {summary.worker_share:.3f} inside fit and predict",
            flush=True,
        )


@contextmanager
def threads(workers: int):
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=None)
    with cluster, Client(cluster) as client:
        executor = ClusterExecutor(DaskTransport(client), Cluster())
        yield executor
        executor.close()


if __name__ == "__main__":
    main()
