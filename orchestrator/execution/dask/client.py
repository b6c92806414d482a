"""Use Dask as the transport to workers, of a cluster that is started here or of a running scheduler.

Dask carries messages and watches processes. `ClusterExecutor` decides what runs on which worker.
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
from orchestrator.study.text import describe_error, format_memory

log = logging.getLogger(__name__)

_MEMORY_TOPIC = "worker-restart-memory"
"""Topic of the events by which Dask's nannies report that they restart a worker with too much memory."""


class DaskTransport:
    """A transport over a Dask client.

    Parameters
    ----------
    client : Client
        A connected client.

    Raises
    ------
    ExecutionError
        If this package is not installed where the scheduler runs.
    """

    def __init__(self, client: Client):
        self._client = client
        try:
            has_dashboard = client.run_on_scheduler(report_deaths, client.id)
        except (ImportError, AttributeError) as error:
            raise ExecutionError(
                f"this svmbench is not installed where the scheduler at {client.scheduler.address} runs "
                f"({describe_error(error)}). Install the same version there"
            ) from error
        self.scheduler = str(client.scheduler.address)
        # Dask returns a link even if there is no dashboard.
        self.dashboard = str(client.dashboard_link or "") if has_dashboard else ""
        self._group = f"batch-{uuid.uuid4().hex[:8]}"
        self._numbers = itertools.count()
        self._memory_limits: dict[str, int | None] = {}

    @property
    def alive(self) -> bool:
        """Whether the client is connected."""
        return bool(self._client.status == "running")

    def workers(self) -> dict[str, tuple[str, int]] | None:
        """Return the connected workers.

        Returns
        -------
        dict of str to (str, int) or None
            Name and number of threads of each worker, by address. None if the scheduler does not answer.
        """
        try:
            identity = self._client.scheduler.identity
            found = self._client.sync(identity, n_workers=-1, callback_timeout=ANSWER_SECONDS)["workers"]
        except (OSError, AttributeError, RuntimeError):  # a client that is closing raises the last two
            return None
        self._memory_limits |= {address: worker.get("memory_limit") for address, worker in found.items()}
        return {address: (str(worker["name"]), worker["nthreads"]) for address, worker in found.items()}

    def submit(self, address: str, callback: Callback, function: Function, *arguments: Any) -> Future:
        """Submit a task to one worker.

        Parameters
        ----------
        address : str
            Address of the worker.
        callback : Callback
            Called with the end of the call, in a thread of Dask.
        function : Function
            Function of an installed module.
        *arguments : object
            Arguments of the function, which can be pickled.

        Returns
        -------
        Future
            The future of the task.

        Raises
        ------
        ExecutionError
            If the client was closed in the meantime.
        """
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
        """Return the end of a task and release its future.

        Parameters
        ----------
        future : Future
            The future, which is done.
        address : str
            Address of the worker.

        Returns
        -------
        CallResult
            The end of the call.
        """
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
        """Return that a dead worker had exceeded its memory limit, if its nanny has reported that.

        Parameters
        ----------
        address : str
            Address of the worker.

        Returns
        -------
        str
            The reason, or an empty string.
        """
        try:
            events = self._client.get_events(_MEMORY_TOPIC)
        except Exception:  # the connection is about to break
            return ""
        if all(event["worker"] != address for _, event in events):
            return ""
        limit = self._memory_limits.get(address)
        return "exceeded the memory limit" + (f" of {format_memory(limit)}" if limit else "")

    def run(
        self, address: str, callback: Callback, function: Function, *arguments: Any
    ) -> concurrent.futures.Future:
        """Call a function directly, while tasks occupy the worker's only thread.

        Parameters
        ----------
        address : str
            Address of the worker.
        callback : Callback
            Called with the end of the call, in a thread of Dask.
        function : Function
            Function of an installed module.
        *arguments : object
            Arguments of the function, which can be pickled.

        Returns
        -------
        concurrent.futures.Future
            The future of the call.
        """
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
        """Return the end of a direct call.

        Parameters
        ----------
        future : concurrent.futures.Future
            The future, which is done.
        address : str
            Address of the worker.

        Returns
        -------
        CallResult
            The end of the call.
        """
        try:
            value, error = pickle.loads(future.result()[address])
        except OSError:  # raised by the connection: exceptions of the function are pickled
            return CallResult(future, CallStatus.LOST if self.alive else CallStatus.DISCONNECTED)
        except Exception as unpickling:  # usually the worker does not have the module
            value, error = None, unpickling
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
    """Start or join the configured cluster; everything that is started here ends with the block.

    Parameters
    ----------
    cluster : Cluster
        Configuration of any kind but `serial`.
    requirements : Requirements, optional
        Requirements of the run on its workers. By default, `Requirements()`.
    report : Path, optional
        Path for Dask's performance report. By default, none is written.
    client : Client, optional
        Client of the user, whose scheduler is joined in place of the configured cluster.

    Yields
    ------
    ClusterExecutor
        Executor that sends batches to the cluster's workers.

    Raises
    ------
    ExecutionError
        If the cluster cannot be started or joined, or has no worker that can be used.
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
        if report is not None:  # written at the end of the block, before the client disconnects
            reporting = contextlib.ExitStack()
            reporting.enter_context(performance_report(str(report)))
            stack.callback(_end, reporting.close)
        yield executor


def local_executor(workers: int, memory_gb: float | None = None) -> contextlib.AbstractContextManager:
    """Start a cluster of single-threaded processes on this host, reachable from this host only.

    Parameters
    ----------
    workers : int
        Number of processes.
    memory_gb : float, optional
        Memory limit of a worker, in GiB. By default, a share of the host's memory.

    Returns
    -------
    contextlib.AbstractContextManager
        Context manager that returns a `ClusterExecutor`.
    """
    return cluster_executor(Cluster(kind="local", workers=workers, memory=memory_gb))


def _end(close: Callable[[], None]) -> None:
    """Call a function that closes something; log its exception, so that the run's own end is reported.

    Parameters
    ----------
    close : callable
        Called without arguments.
    """
    try:
        close()
    except Exception as error:
        log.warning("a connection, a cluster or a report could not be closed: %s", describe_error(error))


def _wait_for_worker(client: Client, seconds: float) -> None:
    """Wait until the first worker has joined.

    Parameters
    ----------
    client : Client
        A connected client.
    seconds : float
        Longest wait, in seconds.

    Raises
    ------
    ExecutionError
        If no worker has joined in time.
    """
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError as error:
        address = client.scheduler.address
        raise ExecutionError(
            f"the scheduler at {address} had no workers for {seconds:g} s. "
            f"Start workers with `svmbench cluster worker {address}`"
        ) from error
