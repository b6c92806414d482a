"""Dask as the transport to workers: of a cluster that is started here, or of a scheduler that is there.

Dask carries messages and watches processes. What runs where, `ClusterExecutor` decides.
"""

import asyncio
import concurrent.futures
import contextlib
import itertools
import logging
import pickle
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, performance_report
from distributed.client import ClosedClientError

from orchestrator.execution.cluster_executor import LOST_SCHEDULER, ClusterExecutor
from orchestrator.execution.clusters.address import OfClient
from orchestrator.execution.clusters.deployment import deployment_of
from orchestrator.execution.dask.death_reports import report_deaths
from orchestrator.execution.dask.worker_calls import direct_call, guarded_call
from orchestrator.execution.dask_settings import ANSWER_SECONDS
from orchestrator.execution.transport import Callback, CallResult, CallStatus, Function
from orchestrator.execution.worker_pool import Requirements
from orchestrator.study.errors import ExecutionError
from orchestrator.study.settings import Cluster
from orchestrator.study.storable import describe_error
from orchestrator.study.text import format_memory

log = logging.getLogger(__name__)

_MEMORY_TOPIC = "worker-restart-memory"
"""Where Dask's nannies report that they restart a worker that takes too much memory."""


class DaskTransport:
    """A transport over a Dask client.

    Parameters
    ----------
    client : distributed.Client

    Raises
    ------
    ExecutionError
        When the scheduler runs without this package.
    """

    def __init__(self, client: Client):
        self._client = client
        try:
            has_dashboard = client.run_on_scheduler(report_deaths, client.id)
        except (ImportError, AttributeError) as error:
            raise ExecutionError(
                f"the scheduler at {client.scheduler.address} runs without this svmbench "
                f"({describe_error(error)}); install the same one there"
            ) from error
        self.scheduler = str(client.scheduler.address)
        # Dask has a link even for a dashboard that is not there.
        self.dashboard = str(client.dashboard_link or "") if has_dashboard else ""
        self._group = f"batch-{uuid.uuid4().hex[:8]}"
        self._numbers = itertools.count()
        self._memory_limits: dict[str, int | None] = {}

    @property
    def alive(self) -> bool:
        """Whether the client is connected."""
        return bool(self._client.status == "running")

    def workers(self) -> dict[str, tuple[str, int]] | None:
        """Return name and number of threads of each worker by address; None if the scheduler is gone."""
        try:
            identity = self._client.scheduler.identity
            found = self._client.sync(identity, n_workers=-1, callback_timeout=ANSWER_SECONDS)["workers"]
        except (OSError, AttributeError, RuntimeError):  # the last two of a client that is just closing
            return None
        self._memory_limits |= {address: worker.get("memory_limit") for address, worker in found.items()}
        return {address: (str(worker["name"]), worker["nthreads"]) for address, worker in found.items()}

    def submit(self, address: str, callback: Callback, function: Function, *arguments: Any) -> Future:
        """Submit a task to one worker; an ExecutionError if the client was closed in the meantime."""
        try:
            # A tuple as key keeps all tasks in one group; pure=False never returns a cached result.
            future = self._client.submit(
                guarded_call,
                function,
                *arguments,
                key=(self._group, next(self._numbers)),
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )
        except ClosedClientError as error:
            raise ExecutionError(LOST_SCHEDULER) from error
        future.add_done_callback(lambda ended: callback(self._result(ended, address)))
        return future

    def _result(self, future: Future, address: str) -> CallResult:
        try:
            return CallResult(future, CallStatus.RETURNED, future.result(timeout=ANSWER_SECONDS))
        except KilledWorker:
            return CallResult(future, CallStatus.WORKER_DIED, reason=self._memory_reason(address))
        except Exception as error:
            if not self.alive or future.status in ("cancelled", "lost"):
                return CallResult(future, CallStatus.DISCONNECTED)
            if future.status == "pending":
                return CallResult(future, CallStatus.LOST)
            return CallResult(future, CallStatus.RAISED, error=error)
        finally:
            future.release()

    def _memory_reason(self, address: str) -> str:
        """Say that a worker that died had exceeded its memory limit, if its nanny has reported that."""
        try:
            events = self._client.get_events(_MEMORY_TOPIC)
        except Exception:  # of a connection that is about to break
            return ""
        if all(event["worker"] != address for _, event in events):
            return ""
        limit = self._memory_limits.get(address)
        return "exceeded the memory limit" + (f" of {format_memory(limit)}" if limit else "")

    def run(
        self, address: str, callback: Callback, function: Function, *arguments: Any
    ) -> concurrent.futures.Future:
        """Call a function directly, while tasks occupy the worker's only thread."""
        future = asyncio.run_coroutine_threadsafe(
            self._client._run(direct_call, pickle.dumps((function, arguments)), workers=[address]),
            self._client.loop.asyncio_loop,
        )

        def pass_on(ended: concurrent.futures.Future) -> None:
            if not ended.cancelled():
                callback(self._direct_result(ended, address))

        future.add_done_callback(pass_on)
        return future

    def _direct_result(self, future: concurrent.futures.Future, address: str) -> CallResult:
        try:
            value, error = pickle.loads(future.result()[address])
        except OSError:  # of the connection: the function's own are pickled
            return CallResult(future, CallStatus.LOST if self.alive else CallStatus.DISCONNECTED)
        except Exception as lacking:  # most likely the worker has no such module
            value, error = None, lacking
        status = CallStatus.RETURNED if error is None else CallStatus.RAISED
        return CallResult(future, status, value, error)

    def close(self) -> None:
        """Disconnect."""
        self._client.close(timeout=5)


@contextlib.contextmanager
def cluster_executor(
    cluster: Cluster,
    requirements: Requirements | None = None,
    report: Path | None = None,
    client: Client | None = None,
) -> Iterator[ClusterExecutor]:
    """Start or join the configured cluster; nothing that was started here outlives the block.

    Parameters
    ----------
    cluster : Cluster
        Of any kind but `serial`.
    requirements : Requirements, optional
    report : Path or None
        Where to leave Dask's performance report.
    client : Client, optional
        A user's own, whose scheduler is joined in place of the configured one.

    Raises
    ------
    ExecutionError
        When the cluster cannot be started or joined, or has no worker that can be used.
    """
    deployment = deployment_of(cluster) if client is None else OfClient(cluster, client)
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(deployment.dask_settings()))
        stack.callback(_end, deployment.close)
        connected = deployment.start()
        try:
            _wait_for_worker(connected, deployment.first_worker_seconds)
            executor = ClusterExecutor(DaskTransport(connected), cluster, requirements)
        except OSError as error:
            raise ExecutionError(LOST_SCHEDULER) from error
        stack.callback(_end, executor.close)
        deployment.scale(lambda: executor.demand)
        if report is not None:  # written on leaving, while the client is still there
            reporting = contextlib.ExitStack()
            reporting.enter_context(performance_report(str(report)))
            stack.callback(_end, reporting.close)
        yield executor


def local_executor(workers: int, memory_gb: float | None = None) -> contextlib.AbstractContextManager:
    """Start a cluster of single-threaded processes on this host, reachable from this host only."""
    return cluster_executor(Cluster(kind="local", workers=workers, memory=memory_gb))


def _end(close: Callable[[], None]) -> None:
    """Close something; if that fails, how the run itself ended is still what the user is told."""
    try:
        close()
    except Exception as error:
        log.warning("a connection, a cluster or a report could not be closed: %s", describe_error(error))


def _wait_for_worker(client: Client, seconds: float) -> None:
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError as error:
        address = client.scheduler.address
        raise ExecutionError(
            f"the scheduler at {address} had no workers for {seconds:g} s; "
            f"start some with `svmbench cluster worker {address}`"
        ) from error
