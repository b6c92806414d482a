"""Dask as the link to workers: a local cluster of processes, a scheduler that is there, or one to be started.

Dask carries messages and watches processes. What runs where, `ClusterExecutor` decides.
"""

import asyncio
import concurrent.futures
import contextlib
import logging
import pickle
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import Adaptive, Client, Future, KilledWorker, Security, Status, performance_report

from orchestrator.execution import ExecutionError, scaling
from orchestrator.execution.beside import call_beside, pickled_call
from orchestrator.execution.cluster import LOST_SCHEDULER, ClusterExecutor, guarded
from orchestrator.execution.clusters import (
    cluster_arguments,
    cluster_class,
    first_workers,
    preloads,
    start_hint,
)
from orchestrator.execution.dask_settings import CONNECT_SECONDS, dask_settings, private_scratch
from orchestrator.execution.deaths import tell_deaths
from orchestrator.execution.link import Answer, Fate
from orchestrator.execution.roster import Terms
from orchestrator.execution.tls import Tls, why_refused
from orchestrator.settings import Cluster
from orchestrator.training import describe_error

ANSWER_SECONDS = 30.0
"""How long a scheduler may take to answer, and the first worker to join one that is already there."""

KEPT = "1000 days"
"""How long a local cluster has its nannies start workers again: for good."""

SCALED = ("slurm", "kubernetes")
"""Clusters that start without workers and are told how many to have."""


class DaskLink:
    """A link over a Dask client.

    Parameters
    ----------
    client : distributed.Client
    kind : str
        The configured kind of cluster.

    Raises
    ------
    ExecutionError
        When the scheduler runs without this package.
    """

    def __init__(self, client: Client, kind: str):
        self._client = client
        self._kind = kind
        try:
            self._has_dashboard = client.run_on_scheduler(tell_deaths, client.id)
        except (ImportError, AttributeError) as error:
            raise ExecutionError(
                f"the scheduler at {client.scheduler.address} runs without this svmbench "
                f"({describe_error(error)}); install the same one there"
            ) from error
        self._group = f"batch-{uuid.uuid4().hex[:8]}"
        self._number = 0
        self._names: dict[str, str] = {}

    @property
    def scheduler(self) -> str:
        """Address of the scheduler."""
        return str(self._client.scheduler.address)

    @property
    def dashboard(self) -> str:
        """Address of the dashboard, or an empty string."""
        if not self._has_dashboard:  # Dask has an address for it all the same
            return ""
        link = str(self._client.dashboard_link or "")
        if link and self._kind in ("slurm", "ssh"):  # where Dask takes loopback for the scheduler's address
            parts = urlsplit(link)
            link = parts._replace(netloc=f"127.0.0.1:{parts.port}").geturl()
            return f"{link} on {parts.hostname}" if self._kind == "ssh" else link
        return link

    @property
    def alive(self) -> bool:
        """Whether the client is connected."""
        return bool(self._client.status == "running")

    def workers(self) -> dict[str, tuple[str, int]] | None:
        """Return name and number of threads of each worker by address; None if the scheduler is gone."""
        scheduler = self._client.scheduler
        try:
            threads = self._client.sync(scheduler.ncores, callback_timeout=ANSWER_SECONDS)
            if not self._names.keys() >= threads.keys():
                identity = self._client.sync(
                    scheduler.identity, n_workers=-1, callback_timeout=ANSWER_SECONDS
                )
                self._names = {
                    address: str(worker["name"]) for address, worker in identity["workers"].items()
                }
        except (OSError, TimeoutError):
            return None
        return {address: (self._names.get(address, address), number) for address, number in threads.items()}

    def start(
        self,
        address: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        then: Callable[[Answer], None],
    ) -> Future:
        """Submit a task to one worker."""
        self._number += 1
        # A tuple as key keeps all tasks in one group; pure=False never returns a cached result.
        future = self._client.submit(
            guarded,
            function,
            *arguments,
            key=(self._group, self._number),
            workers=[address],
            allow_other_workers=False,
            pure=False,
        )
        future.add_done_callback(lambda ended: then(self._answer(ended)))
        return future

    def _answer(self, future: Future) -> Answer:
        try:
            return Answer(future, Fate.RETURNED, future.result(timeout=ANSWER_SECONDS))
        except KilledWorker:
            return Answer(future, Fate.DIED)
        except Exception as error:
            if not self.alive or future.status in ("cancelled", "lost"):
                return Answer(future, Fate.DISCONNECTED)
            if future.status == "pending":
                return Answer(future, Fate.VANISHED)
            return Answer(future, Fate.RAISED, error=error)
        finally:
            future.release()

    def ask(
        self,
        address: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        then: Callable[[Answer], None],
    ) -> concurrent.futures.Future:
        """Call a function beside a worker's tasks, which take turns on its only thread."""
        call = pickled_call(function, arguments)
        future = asyncio.run_coroutine_threadsafe(
            self._client._run(call_beside, call, workers=[address]), self._client.loop.asyncio_loop
        )

        def answer(ended: concurrent.futures.Future) -> None:
            if not ended.cancelled():
                then(self._told_beside(ended, address))

        future.add_done_callback(answer)
        return future

    def _told_beside(self, future: concurrent.futures.Future, address: str) -> Answer:
        try:
            value, error = pickle.loads(future.result()[address])
        except OSError:  # of the connection: the function's own are pickled
            return Answer(future, Fate.VANISHED if self.alive else Fate.DISCONNECTED)
        except Exception as lacking:  # most likely the worker has no such module
            return Answer(future, Fate.RAISED, error=lacking)
        if error is not None:
            return Answer(future, Fate.RAISED, error=error)
        return Answer(future, Fate.RETURNED, value)

    def close(self) -> None:
        """Disconnect."""
        self._client.close(timeout=5)


class DaskExecutor(ClusterExecutor):
    """An executor over a Dask client.

    Parameters
    ----------
    client : distributed.Client
    kind : str
        The configured kind of cluster, for the provenance.
    terms : Terms, optional
    """

    def __init__(self, client: Client, kind: str, terms: Terms | None = None):
        super().__init__(DaskLink(client, kind), kind, terms)


@contextlib.contextmanager
def cluster_executor(
    cluster: Cluster, terms: Terms | None = None, report: Path | None = None
) -> Iterator[DaskExecutor]:
    """Start or join the configured cluster; nothing that was started here outlives the block.

    Parameters
    ----------
    cluster : Cluster
        Of any kind but `serial`.
    terms : Terms, optional
    report : Path or None
        Where to leave Dask's performance report.

    Raises
    ------
    ExecutionError
        When the cluster cannot be started or joined, or has no worker that can be used.
    """
    terms = terms or Terms()
    with contextlib.ExitStack() as stack:
        # Threads are limited through the environment, which the workers' processes inherit.
        cluster = _with_certificates(cluster)
        settings = dask_settings(cluster.worker_ttl, cluster.tls, cluster.dashboard) | preloads(cluster.kind)
        if cluster.kind != "ssh":  # whose hosts take over our settings, and may have other folders
            settings |= private_scratch()
        if cluster.kind == "local":
            # Else it drops a worker that is not there so long after a death, as one is that has died again.
            settings |= {"distributed.deploy.lost-worker-timeout": KEPT}
        stack.enter_context(dask.config.set(settings))
        started = None
        if cluster.kind == "address":
            client = stack.enter_context(_connect(str(cluster.address), cluster.tls))
            patience = ANSWER_SECONDS
        else:
            started = stack.enter_context(_start(cluster))
            client = stack.enter_context(Client(started, timeout=ANSWER_SECONDS))
            patience = terms.no_workers_seconds
        try:
            _await_worker(client, patience)
            executor = DaskExecutor(client, cluster.kind, terms)
        except OSError as error:
            raise ExecutionError(LOST_SCHEDULER) from error
        stack.callback(executor.close)
        if started is not None:
            _follow_demand(started, cluster, executor, stack)
        if report is not None:  # written on leaving, while the client is still there
            stack.enter_context(performance_report(str(report)))
        yield executor


def local_executor(workers: int, memory_gb: float | None = None) -> contextlib.AbstractContextManager:
    """Start a cluster of single-threaded processes on this host, reachable from this host only."""
    return cluster_executor(Cluster(kind="local", workers=workers, memory=memory_gb))


def _start(cluster: Cluster) -> Any:
    arguments = cluster_arguments(cluster) | _encryption(cluster)
    if cluster.kind == "local":
        arguments["silence_logs"] = logging.ERROR
    with contextlib.ExitStack() as stack:
        try:
            started = stack.enter_context(cluster_class(cluster.kind)(**arguments))
            if cluster.kind in SCALED:
                started.scale(first_workers(cluster))
            if cluster.kind == "slurm":
                started.sync(_await_jobs, started)
        except ExecutionError:
            raise
        except Exception as error:  # the libraries of each kind have errors of their own
            message = f"cluster={cluster.kind} did not start: {describe_error(error)}{start_hint(cluster)}"
            raise ExecutionError(message) from error
        stack.pop_all()
    return started


async def _await_jobs(started: Any) -> None:
    """Wait until the jobs asked for are queued, or hear why one is not, which a cluster keeps to itself."""
    await started
    for job in started.workers.values():
        try:
            await job
        except Exception:
            job.status = Status.failed  # or the cluster would not close
            raise


def _with_certificates(cluster: Cluster) -> Cluster:
    """Return a cluster with the user's own certificates, where it starts processes that find them there."""
    if cluster.kind == "ssh" and cluster.tls is None and not cluster.insecure:
        from orchestrator.execution.certificates import own_certificates

        return replace(cluster, tls=own_certificates("scheduler"))
    return cluster


def _encryption(cluster: Cluster) -> dict[str, Any]:
    """Return the arguments by which a cluster's links are encrypted."""
    if cluster.tls is not None:
        security = Security(require_encryption=True)  # its files come from the settings in force
    elif cluster.kind in ("local", "slurm"):
        # Others reach loopback and a shared network too: certificates that live and die with the cluster.
        security = Security.temporary()
    else:
        return {}
    protocol = {} if cluster.kind == "ssh" else {"protocol": "tls://"}  # SSH's is among both sides' options
    return {"security": security} | protocol


def _connect(address: str, tls: Tls | None) -> Client:
    with _quiet("distributed"):
        try:
            return Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise ExecutionError(why_refused(address, tls)) from error


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keep a logger's words from the user, who is told the same in one sentence."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _await_worker(client: Client, seconds: float) -> None:
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError as error:
        address = client.scheduler.address
        raise ExecutionError(
            f"the scheduler at {address} had no workers for {seconds:g} s; "
            f"start some with `svmbench cluster worker {address}`"
        ) from error


def _follow_demand(
    started: Any, cluster: Cluster, executor: DaskExecutor, stack: contextlib.ExitStack
) -> None:
    """Keep as many workers as there are orders, most of which Dask does not see, until the stack closes."""
    least = first_workers(cluster)
    most = cluster.maximum or least
    if cluster.kind == "kubernetes" and cluster.maximum is not None:  # its own way is to ask Dask
        stack.callback(scaling.Scaling(started.scale, lambda: executor.demand, least, most).stop)
    elif cluster.kind == "slurm" or cluster.maximum is not None:  # else nobody replaces a job that ends

        class ByDemand(Adaptive):
            async def target(self) -> int:
                return executor.demand

        interval = f"{scaling.LOOK_SECONDS}s"
        started.adapt(
            Adaptive=ByDemand, minimum=least, maximum=most, interval=interval, wait_count=scaling.PATIENCE
        )
