"""Run batches on Dask workers: a local cluster of processes, or a scheduler that is already there.

The runner keeps one order per worker thread in flight, so that a worker that dies takes exactly the
order it was running with it and the blame is exact. Dask never retries by itself: the runner decides.
"""

import contextlib
import logging
import os
import pickle
import queue
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, get_worker

from orchestrator.execution import ExecutionError, Outcome
from orchestrator.machine import host_facts, versions
from orchestrator.training import describe_error
from orchestrator.worker import BatchResult, WorkOrder, run_batch

log = logging.getLogger(__name__)

ANSWER_SECONDS = 30
"""How long a scheduler or its first worker may take to answer."""

_THREAD_LIMITS = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
"""One thread a worker: Dask sets the first three, numba would take every core."""

_SETTINGS = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.scheduler.worker-ttl": "30 minutes",
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.profile.enabled": False,
    "distributed.nanny.pre-spawn-environ": _THREAD_LIMITS,
    "distributed.comm.timeouts.connect": f"{ANSWER_SECONDS}s",
    # One order a slot leaves nothing to steal and no managed memory; the rest only costs idle time.
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.limit": "30s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.worker.memory.monitor-interval": "500ms",
}


def run_on_worker(order: bytes) -> BatchResult:
    """Run a batch inside a Dask task.

    The order travels as bytes, which the scheduler passes on; objects it would unpickle, and so need this
    package and a millisecond for each.
    """
    return run_batch(pickle.loads(order), worker=str(get_worker().name))


class DaskExecutor:
    """An executor over a Dask client.

    Parameters
    ----------
    client : distributed.Client
    kind : str
        The configured kind of cluster, for the provenance.
    """

    def __init__(self, client: Client, kind: str):
        self._client = client
        self._kind = kind
        self._ended: queue.SimpleQueue[tuple[WorkOrder, Future]] = queue.SimpleQueue()
        self._group = f"batch-{uuid.uuid4().hex[:8]}"
        self._in_flight: dict[int, Future] = {}
        self._slots = 0
        self._counted_at = float("-inf")
        self._facts = self._ask_workers()

    @property
    def slots(self) -> int:
        """The number of worker threads, counted anew every second."""
        if time.monotonic() - self._counted_at > 1:
            self._counted_at = time.monotonic()
            self._slots = sum(self._client.nthreads().values())
        return self._slots

    @property
    def dashboard(self) -> str:
        """Address of the Dask dashboard, or an empty string."""
        return str(self._client.dashboard_link or "")

    def submit(self, order: WorkOrder) -> None:
        """Send an order to the scheduler."""
        number = order.batch.number
        # A tuple as key keeps all batches in one task group; pure=False never returns a cached result.
        future = self._client.submit(
            run_on_worker, pickle.dumps(order), key=(self._group, number), pure=False
        )
        self._in_flight[number] = future
        future.add_done_callback(lambda ended: self._ended.put((order, ended)))

    def wait(self, seconds: float) -> list[Outcome]:
        """Collect the orders that have ended, waiting for the first."""
        outcomes = []
        with contextlib.suppress(queue.Empty):
            outcomes.append(self._outcome(*self._ended.get(timeout=seconds)))
            while True:
                outcomes.append(self._outcome(*self._ended.get_nowait()))
        return outcomes

    def _outcome(self, order: WorkOrder, future: Future) -> Outcome:
        self._in_flight.pop(order.batch.number, None)
        try:
            return Outcome(order, future.result(timeout=ANSWER_SECONDS))
        except KilledWorker as error:
            return Outcome(order, None, lost=f"its worker {error.last_worker.address} died")
        except Exception as error:
            if future.status in ("cancelled", "lost"):
                raise ExecutionError(
                    "the connection to the Dask scheduler was lost; run the same command to resume"
                ) from error
            raise ExecutionError(
                f"a batch of {order.batch.dataset} × {order.batch.solver} could not run on a worker: "
                f"{describe_error(error)}"
            ) from error
        finally:
            future.release()

    def facts(self) -> dict[str, Any]:
        """Describe the workers and their hosts as they were at the start."""
        return self._facts

    def _ask_workers(self) -> dict[str, Any]:
        answers = self._client.run(_worker_facts)
        _refuse_other_versions(answers)
        hosts = {answer["host"]["host"]: answer["host"] for answer in answers.values()}
        return {
            "kind": self._kind,
            "workers": len(answers),
            "dashboard": self.dashboard,
            "scheduler": self._client.scheduler.address,
            "hosts": list(hosts.values()),
        }

    def close(self) -> None:
        """Cancel what runs and disconnect."""
        with contextlib.suppress(Exception):
            self._client.cancel(list(self._in_flight.values()), force=True)
        self._client.close(timeout=5)


def _worker_facts() -> dict[str, Any]:
    return {
        "host": host_facts(),
        "versions": versions(),
        "numba_threads": os.environ.get("NUMBA_NUM_THREADS"),
    }


def _refuse_other_versions(answers: Mapping[str, dict[str, Any]]) -> None:
    mine = versions()
    for address, answer in answers.items():
        theirs = answer["versions"]
        differing = [name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name)]
        if differing:
            details = ", ".join(f"{name} {theirs.get(name)} (here {mine.get(name)})" for name in differing)
            raise ExecutionError(f"worker {address} has other versions: {details}; install the same on both")


@contextlib.contextmanager
def local_executor(workers: int, memory_gb: float | None = None) -> Iterator[DaskExecutor]:
    """Start a cluster of single-threaded processes on this host, reachable from this host only.

    Parameters
    ----------
    workers : int
        Number of processes.
    memory_gb : float or None
        Memory a worker may use before it is restarted; None shares the host's memory equally.
    """
    # Threads are limited through the environment, which the workers' processes inherit.
    with dask.config.set(_SETTINGS):
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit="auto" if memory_gb is None else f"{memory_gb}GiB",
            silence_logs=logging.ERROR,
        )
        with cluster, Client(cluster, timeout=ANSWER_SECONDS) as client:
            executor = DaskExecutor(client, "local")
            try:
                yield executor
            finally:
                executor.close()


@contextlib.contextmanager
def address_executor(address: str) -> Iterator[DaskExecutor]:
    """Connect to a scheduler that is already there.

    Raises
    ------
    ExecutionError
        When it does not answer, or no worker joins it, within `ANSWER_SECONDS`.
    """
    with dask.config.set(_SETTINGS):
        try:
            client = Client(address, timeout=ANSWER_SECONDS)
        except (OSError, ValueError) as error:
            raise ExecutionError(
                f"no Dask scheduler answered at {address} within {ANSWER_SECONDS} s ({error}); "
                f"start one with `dask scheduler`, or correct cluster.address"
            ) from error
        with client:
            try:
                client.wait_for_workers(1, timeout=ANSWER_SECONDS)
            except TimeoutError as error:
                raise ExecutionError(
                    f"the scheduler at {address} has no workers; "
                    f"start some with `dask worker {address} --nthreads 1`"
                ) from error
            client.run_on_scheduler(_never_retry)
            executor = DaskExecutor(client, "address")
            try:
                yield executor
            finally:
                executor.close()


def _never_retry(dask_scheduler: Any) -> None:
    """Leave retries to the runner, on a scheduler that others have configured."""
    dask_scheduler.allowed_failures = 0
