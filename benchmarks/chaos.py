"""Inject random faults into a study of real trainings, and compare its rows with an undisturbed run.

    python benchmarks/chaos.py [--faults 200] [--seed 0]

A scheduler, three workers and a client run as processes. One of them at a time is killed with SIGKILL and
replaced. Some workers are frozen with SIGSTOP instead, and also replaced. The faults are spread evenly over
all rows. Between two faults the study stores at least one new row. The benchmark fails if the study stores no
row for `--patience` seconds. Three of the solvers are harmful: one exits the interpreter, one raises
KeyboardInterrupt, and one kills its process.

At the end, three conditions must hold. The tables equal those of an undisturbed run. No stored trial was
computed again. A killed client has lost only the batches that were running or had just returned.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from orchestrator.execution import cluster_executor as cluster
from orchestrator.store.columns import RUN_COLUMNS
from orchestrator.store.store import Store

LIBRARIES = ("OMP", "MKL", "OPENBLAS", "NUMBA")

OVERRIDES = [
    "study=chaos",
    "datasets=[iris,wine,breast_cancer,digits]",
    "solvers=[newton,mnsvm,libsvm_l1,smo_l1,spheresvm_590,leaving,interrupting,killing]",
]
HARMFUL = ("Leaving", "Interrupting", "Killing")
ROOT = Path(__file__).parents[1]
WORKERS = 3
LOGS = "CHAOS_LOGS"
"""Environment variable with the folder in which workers log their finished batches."""

PORT = 18786
ADDRESS = f"tcp://127.0.0.1:{PORT}"


class Fault(NamedTuple):
    """Fault of a process, and the number of rows stored when it happened."""

    what: str
    n_rows: int


class ClusterUnderTest:
    """Processes of a cluster and its client, each replaced when it has ended."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.processes: dict[str, subprocess.Popen] = {}
        self.frozen: list[subprocess.Popen] = []
        self.clients = 0
        self.killed: dict[str, float] = {}  # times at which clients were killed, by run

    def start(self, name: str) -> None:
        dask = [sys.executable, "-m", "dask"]
        commands = {
            "scheduler": [*dask, "scheduler", "--host", "127.0.0.1", "--port", str(PORT), "--no-dashboard"],
            "client": run_command(
                self.folder,
                "cluster=address",
                f"cluster.address={ADDRESS}",
                "cluster.tls.insecure=true",
                "cluster.worker_ttl=5",
            ),
        }
        worker = [
            *dask,
            "worker",
            ADDRESS,
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--death-timeout",
            "20",
            "--preload",
            __file__,
        ]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                commands.get(name, worker),
                stdout=log,
                stderr=log,
                env={
                    **environment(),
                    **{f"{library}_NUM_THREADS": "1" for library in LIBRARIES},
                    LOGS: str(self.folder),
                },
            )

    def names(self) -> list[str]:
        return ["scheduler", *(f"worker-{number}" for number in range(WORKERS)), "client"]

    def restart_ended(self) -> bool:
        """Replace ended processes, and return whether the client has finished its study."""
        for name in self.names():
            process = self.processes.get(name)
            if process is not None and process.poll() is None:
                continue
            if name == "client" and process is not None and process.returncode == 0:
                return True
            self.start(name)
            self.clients += name == "client"
        return False

    def inject_fault(self, chance: random.Random) -> str:
        """Kill or stop one process at random, and return a description of the fault."""
        name = chance.choice([*self.names(), *self.names()[1:-1]])  # workers twice as often
        process = self.processes[name]
        del self.processes[name]
        if name.startswith("worker") and chance.random() < 0.2:
            process.send_signal(signal.SIGSTOP)  # the scheduler has to detect this
            self.frozen.append(process)
            return "stop worker"
        process.kill()
        process.wait()
        runs = Store(self.folder / "chaos").provenance()
        # If its run has ended, the client was only closing.
        if name == "client" and runs and runs[-1]["finished_at"] is None:
            self.killed.setdefault(runs[-1]["run_id"], time.time())
        return f"kill {name.split('-')[0]}"

    def close(self) -> None:
        for process in [*self.processes.values(), *self.frozen]:
            process.kill()
            process.wait()


def dask_setup(worker: Any) -> None:
    """Make a worker log each finished batch. Dask calls this function when it preloads the file."""
    run_batch, finished = cluster.run_batch, Path(os.environ[LOGS]) / f"finished-{os.getpid()}.jsonl"

    def run_and_log(order: Any, *others: Any) -> Any:
        result = run_batch(order, *others)
        keys = [key for path in order.batch.paths for key in path.keys]
        with finished.open("a") as lines:
            lines.write(json.dumps([time.time(), order.run_id, keys]) + "\n")
        return result

    cluster.run_batch = run_and_log


def run_command(folder: Path, *overrides: str) -> list[str]:
    paths = [f"paths.results={folder}", f"paths.cache={folder / 'cache'}"]
    paths += ["--config-dir", str(folder.parent / "config")]
    return [sys.executable, "-m", "orchestrator", "run", *OVERRIDES, *paths, *overrides]


def environment() -> dict[str, str]:
    """Return an environment in which every process can import the harmful solvers."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def write_config(folder: Path) -> None:
    """Write configurations of the harmful solvers. Some trainings of each succeed."""
    (folder / "solver").mkdir(parents=True)
    for name in HARMFUL:
        text = f"_target_: benchmarks.classifiers.{name}Classifier\nspace: {{C: [1, 2, 4]}}\n"
        (folder / "solver" / f"{name.lower()}.yaml").write_text(text)


def run_undisturbed(folder: Path) -> None:
    """Run the study in one process. A solver that kills it ends the first run; the second run skips it."""
    for _ in range(2):
        run = subprocess.run(
            run_command(folder, "cluster=serial"), stdout=subprocess.DEVNULL, env=environment()
        )
        if run.returncode == 0:
            return
    raise RuntimeError(f"the undisturbed run ended with {run.returncode}")


def stored_rows(folder: Path) -> pd.DataFrame:
    store = Store(folder / "chaos")
    return store.trials().set_index("key") if store.trials_folder.is_dir() else pd.DataFrame()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--patience",
        type=float,
        default=600,
        help="seconds without a new row after which the benchmark fails",
    )
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as root:
        write_config(Path(root) / "config")
        undisturbed, disturbed = Path(root) / "undisturbed", Path(root) / "disturbed"
        for folder in (undisturbed, disturbed):
            folder.mkdir()
        started = time.perf_counter()
        run_undisturbed(undisturbed)
        print(f"undisturbed, serial: {time.perf_counter() - started:.0f} s", flush=True)
        expected = stored_rows(undisturbed)
        target = ClusterUnderTest(disturbed)
        faults, recomputed = disturb(target, options.faults, chance, len(expected), options.patience)
        rows = stored_rows(disturbed)
        differing = compare(expected, rows)
        lost = lost_batches(target, rows)
        tell(faults, target.clients, recomputed, lost)
        tell_when(faults, len(expected))
        print(f"rows: {len(rows):,}, by status {dict(rows['status'].value_counts())}")
        print(f"columns that differ from the undisturbed run: {differing or 'none'}")
        sys.exit(bool(recomputed or differing or len(faults) < options.faults))


def tell(faults: list[Fault], clients: int, recomputed: int, lost: pd.DataFrame) -> None:
    """Print the faults and their effects on the study."""
    numbers = Counter(fault.what for fault in faults)
    kinds = ", ".join(f"{number} × {what}" for what, number in sorted(numbers.items()))
    print(f"faults: {len(faults)} ({kinds}); clients started: {clients}")
    print(f"trials computed again after they were stored: {recomputed}")
    if lost.empty:
        print("no batch was lost with a killed client")
        return
    runs = lost.groupby("run")["trials"]
    for what, counts in (("batches", runs.size()), ("trials", runs.sum())):
        print(f"{what} lost with a killed client: {counts.mean():.1f} on average, {counts.max()} at most")
    print(f"the oldest lost batch had returned {lost['age'].max():.2f} s before the kill")


def tell_when(faults: list[Fault], n_rows: int) -> None:
    """Print the distribution of the faults over the rows."""
    tenths = Counter(10 * fault.n_rows // n_rows for fault in faults)
    print("faults in each tenth of the rows:", *(tenths[tenth] for tenth in range(10)))
    print("rows stored at each fault:", *(fault.n_rows for fault in faults))


def disturb(
    target: ClusterUnderTest, n_faults: int, chance: random.Random, n_rows: int, patience: float
) -> tuple[list[Fault], int]:
    """Run the study to its end under faults; return the faults and the number of trials computed twice.

    Parameters
    ----------
    target : ClusterUnderTest
        Cluster whose processes receive the faults.
    n_faults : int
        Number of faults to inject.
    chance : Random
        Generator of the faults and of the pauses between them.
    n_rows : int
        Number of rows of an undisturbed run.
    patience : float
        Seconds without a new row after which the study counts as stuck.

    Raises
    ------
    RuntimeError
        If the study is stuck.
    """
    faults: list[Fault] = []
    seen: dict[str, str] = {}
    recomputed, progressed = 0, time.monotonic()
    try:
        while not target.restart_ended():
            # Short trainings may end before all faults have happened.
            is_late = len(faults) < min(n_faults, n_faults * len(seen) // n_rows)
            # Without a random pause, every fault would follow an append.
            time.sleep(chance.uniform(0.1, 0.6 if is_late else 3.0))
            n_seen = len(seen)
            rows = stored_rows(target.folder)
            for key, finished in rows.get("finished_at", pd.Series(dtype=object)).astype(str).items():
                recomputed += seen.setdefault(key, finished) != finished
                seen[key] = finished
            if len(seen) > n_seen:
                progressed = time.monotonic()
            elif time.monotonic() - progressed > patience:
                raise RuntimeError(
                    f"no new row for {patience:.0f} s after {len(seen)} rows and {len(faults)} faults"
                )
            due = min(n_faults, 1 + n_faults * len(seen) // n_rows)
            if len(faults) < due and (not faults or len(seen) > faults[-1].n_rows):
                faults.append(Fault(target.inject_fault(chance), len(seen)))
    finally:
        target.close()
    return faults, recomputed


def lost_batches(target: ClusterUnderTest, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the batches that workers finished for clients that were killed before storing them.

    The columns are the run, the number of trials, and the seconds from the end of the batch to the kill.
    """
    lost = []
    for finished in target.folder.glob("finished-*.jsonl"):
        for finished_at, run, keys in map(json.loads, finished.read_text().splitlines()):
            if run in target.killed and (rows.loc[keys, "run_id"] != run).any():
                lost.append((run, len(keys), target.killed[run] - finished_at))
    return pd.DataFrame(lost, columns=["run", "trials", "age"])


def compare(undisturbed: pd.DataFrame, disturbed: pd.DataFrame) -> list[str]:
    """Return the columns that differ between the tables of two runs, except times and hosts."""
    if set(undisturbed.index) != set(disturbed.index):
        return [f"keys: {len(set(undisturbed.index) ^ set(disturbed.index))}"]
    disturbed = disturbed.loc[undisturbed.index].copy()
    for rows in (undisturbed, disturbed):  # the number of killed workers in the message is random
        rows.loc[rows["status"] == "worker_lost", "message"] = ""
    return [
        name
        for name in undisturbed.columns
        if name not in RUN_COLUMNS and not undisturbed[name].equals(disturbed[name])
    ]


if __name__ == "__main__":
    main()
