"""Dask as the link to workers: a local cluster of processes, a scheduler that is there, or one to be started.

Dask carries messages and watches processes. What runs where, `ClusterExecutor` decides.
"""

import contextlib
import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, performance_report

from orchestrator.execution import ExecutionError
from orchestrator.execution.cluster import ClusterExecutor
from orchestrator.execution.dask_settings import CONNECT_SECONDS, dask_settings
from orchestrator.execution.link import Answer, Fate
from orchestrator.execution.roster import Terms
from orchestrator.execution.tls import Tls, why_refused

ANSWER_SECONDS = 30.0
"""How long a scheduler may take to answer, and the first worker to join one that is already there."""

DEFAULT_TTL = 300.0
"""Seconds without a sign of life after which a worker is given up."""


class DaskLink:
    """A link over a Dask client.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Client):
        self._client = client
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
        return str(self._client.dashboard_link or "")

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

    def restart(self, address: str) -> None:
        """Have the worker's nanny kill and restart it; a worker without one is told to go."""

        def restart() -> None:
            with contextlib.suppress(Exception):  # the executor has given the worker up already
                self._client.sync(
                    self._client.scheduler.restart_workers,
                    workers=[address],
                    timeout=ANSWER_SECONDS,
                    wait_for_workers=False,
                    on_error="return",
                    stimulus_id=f"overtime-{uuid.uuid4().hex}",
                )

        threading.Thread(target=restart, daemon=True).start()

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
        super().__init__(DaskLink(client), kind, terms)


@contextlib.contextmanager
def local_executor(
    workers: int,
    memory_gb: float | None = None,
    terms: Terms | None = None,
    worker_ttl: float = DEFAULT_TTL,
    tls: Tls | None = None,
    report: Path | None = None,
) -> Iterator[DaskExecutor]:
    """Start a cluster of single-threaded processes on this host, reachable from this host only.

    Parameters
    ----------
    workers : int
        Number of processes.
    memory_gb : float or None
        Memory a worker may use before it is restarted; None shares the host's memory equally.
    terms : Terms, optional
    worker_ttl : float
        Seconds without a sign of life after which a worker is given up.
    tls : Tls or None
        Encrypt every link.
    report : Path or None
        Where to leave Dask's performance report.
    """
    # Threads are limited through the environment, which the workers' processes inherit.
    with dask.config.set(dask_settings(worker_ttl, tls)):
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            protocol="tls://" if tls else "tcp://",
            dashboard_address="127.0.0.1:0",
            memory_limit="auto" if memory_gb is None else f"{memory_gb}GiB",
            silence_logs=logging.ERROR,
        )
        with (
            cluster,
            Client(cluster, timeout=ANSWER_SECONDS) as client,
            _executor(client, "local", terms, report) as executor,
        ):
            yield executor


@contextlib.contextmanager
def address_executor(
    address: str,
    terms: Terms | None = None,
    worker_ttl: float = DEFAULT_TTL,
    tls: Tls | None = None,
    report: Path | None = None,
) -> Iterator[DaskExecutor]:
    """Connect to a scheduler that is already there.

    Parameters
    ----------
    address : str
    terms, worker_ttl, tls, report
        See `local_executor`.

    Raises
    ------
    ExecutionError
        When it does not answer or refuses this client, or no worker joins it within `ANSWER_SECONDS`.
    """
    with dask.config.set(dask_settings(worker_ttl, tls)), _connect(address, tls) as client:
        try:
            client.wait_for_workers(1, timeout=ANSWER_SECONDS)
        except TimeoutError as error:
            raise ExecutionError(
                f"the scheduler at {address} has no workers; "
                f"start some with `svmbench cluster worker {address}`"
            ) from error
        with _executor(client, "address", terms, report) as executor:
            yield executor


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


@contextlib.contextmanager
def _executor(client: Client, kind: str, terms: Terms | None, report: Path | None) -> Iterator[DaskExecutor]:
    client.run_on_scheduler(_never_retry)
    with contextlib.ExitStack() as stack:
        executor = DaskExecutor(client, kind, terms)
        stack.callback(executor.close)
        if report is not None:  # written while the client is still there
            stack.enter_context(performance_report(str(report)))
        yield executor


def _never_retry(dask_scheduler: Any) -> None:
    """Leave retries to the runner, on a scheduler that others have configured."""
    dask_scheduler.allowed_failures = 0
