"""Run batches on the workers of a cluster, over any transport of messages.

This module decides which worker gets which order. So each order is sent to exactly one worker, and a worker
that dies only loses its own orders. A worker gets no order before its software is known to equal the
client's. It gets the orders of a dataset only if its host has the dataset.
"""

import contextlib
import logging
import os
import pickle
import queue
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any

from orchestrator.execution.dataset_upload import DatasetUploads, Event
from orchestrator.execution.executor import Outcome
from orchestrator.execution.installation import describe, mismatch, software
from orchestrator.execution.transport import CallResult, CallStatus, PendingCall, Transport
from orchestrator.execution.worker_pool import (
    CHECK_SECONDS,
    HostFailures,
    Requirements,
    WorkerHandle,
    WorkerPool,
)
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import is_trusted, starts_processes
from orchestrator.isolation.process_state import ProcessUnusableError
from orchestrator.study.errors import ExecutionError
from orchestrator.study.settings import Cluster
from orchestrator.study.text import describe_error
from orchestrator.study.trials import BatchResult, WorkOrder
from orchestrator.training.batch_process import run_in_child
from orchestrator.training.cores import pin
from orchestrator.training.open_data import DataNotHere
from orchestrator.training.run_batch import run_batch
from orchestrator.training.watchdog import Watchdog, end_worker
from orchestrator.training.worker_state import capture_warnings, take_warnings, worker_memory

log = logging.getLogger(__name__)

DESCRIBE_SECONDS = 30.0
"""Longest wait at start-up for workers that have not described themselves, once one has, in seconds."""

RESUME = "Finished trials are stored. Run the same command to resume"
"""End of messages about an interrupted run."""

LOST_SCHEDULER = f"the connection to the Dask scheduler was lost. {RESUME}"
"""Message about a lost connection."""


def run_on_worker(
    order: bytes, worker: str, core: int | None
) -> tuple[BatchResult | ProcessEnded, tuple[str, ...]] | None:
    """Run a batch on a worker.

    The order is sent as bytes, which the scheduler passes on. The scheduler would unpickle an object, which
    requires this package there and takes 1 ms each.

    A training may have to be stopped, start processes or end its process. So it runs in a child process in
    three cases: under a time limit, if its classes are not trusted, and after the death of a worker. Any
    other training that does not return within `default_seconds` ends its worker, and is then tried in a child
    process.

    Parameters
    ----------
    order : bytes
        The pickled `WorkOrder`.
    worker : str
        Name of the worker, which its rows record.
    core : int or None
        Core to which the process is pinned, or None.

    Returns
    -------
    (BatchResult or ProcessEnded, tuple of str) or None
        The result, and the warnings of the process. None if the host does not have the dataset.
    """
    pin(core)
    capture_warnings()
    batch: WorkOrder = pickle.loads(order)
    try:
        if _wants_a_child(batch):
            return run_in_child(batch, worker, core, worker_memory())
        with Watchdog(end_worker) as watchdog:
            return run_batch(batch, worker, watchdog), take_warnings()
    except DataNotHere:
        return None
    except ProcessUnusableError:
        os._exit(1)  # its connections may be broken; another worker replaces it


def _wants_a_child(order: WorkOrder) -> bool:
    """Return whether the trainings of an order run in a child process of their worker.

    Parameters
    ----------
    order : WorkOrder
        Batch to run, with its dataset, arm and protocol.

    Returns
    -------
    bool
        True under a time limit, in further attempts and for unchecked classes.
    """
    is_limited = order.protocol.max_seconds is not None or order.batch.attempt > 1
    prepared_by = order.protocol.preparation.targets
    return is_limited or starts_processes(order.arm) or not all(map(is_trusted, prepared_by))


@dataclass(frozen=True, eq=False)
class _Running:
    """An order that was sent to a worker.

    Attributes
    ----------
    order : WorkOrder
        Batch to run, with its dataset, arm and protocol.
    worker : WorkerHandle
        Connected worker, with its host and current batches.
    call : PendingCall
        Handle of the task that runs the order.
    started_at : float
        Time of sending, on the monotonic clock, in seconds.
    """

    order: WorkOrder
    worker: WorkerHandle
    call: PendingCall
    started_at: float


class ClusterExecutor:
    """An executor over a connection to a cluster.

    Parameters
    ----------
    transport : Transport
        The connection to the cluster.
    cluster : Cluster
        Configuration of the cluster.
    requirements : Requirements, optional
        Requirements of the run on its workers. By default, `Requirements()`.

    Raises
    ------
    ExecutionError
        If a worker's software differs from this client's, or no worker can be used.
    """

    def __init__(self, transport: Transport, cluster: Cluster, requirements: Requirements | None = None):
        self._transport = transport
        self._cluster = cluster
        self._requirements = requirements or Requirements()
        self._software = software(self._requirements.packages)
        self._pool = WorkerPool()
        self._uploads = DatasetUploads(transport, self._pool)
        self._failures = HostFailures()
        self._waiting: deque[WorkOrder] = deque()
        self._running: dict[int, _Running] = {}
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._known: set[str] = set()  # connected workers that were asked to describe themselves
        self._refused: dict[str, str] = {}
        self._hosts: dict[str, dict[str, Any]] = {}  # descriptions of all hosts that were used, by name
        self._left_at: dict[str, float] = {}
        self._compiled: set[tuple[str, str]] = set()
        self._checked_at = float("-inf")
        self._no_workers_since: float | None = None
        self._no_workers_reported = False
        self._reported: set[str] = set()
        self._error: ExecutionError | None = None  # raised by the next `wait`, after the last outcomes
        self._wait_for_workers()

    # -- the interface of the runner -------------------------------------------------------------

    @property
    def slots(self) -> int:
        """The number of threads of the workers in use, or the largest number of workers if that is larger."""
        return max(self._pool.capacity, self._cluster.maximum or 0)

    @property
    def demand(self) -> int:
        """The number of orders that run or wait, an upper bound on the busy workers."""
        return len(self._running) + len(self._waiting)

    def submit(self, order: WorkOrder) -> None:
        """Send an order to a free worker, or keep it until there is one.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        """
        self._waiting.append(order)
        self._dispatch()

    def wait(self, seconds: float) -> list[Outcome]:
        """Return the outcomes of ended orders; wait until there is at least one.

        An error that ends the run is raised by the next call if orders have ended before it, so that their
        trials are stored.

        Parameters
        ----------
        seconds : float
            Longest wait, in seconds.

        Returns
        -------
        list of Outcome
            The outcomes, none if no order has ended in time.

        Raises
        ------
        ExecutionError
            If the run cannot continue.
        """
        if self._error is not None:
            raise self._error
        outcomes: list[Outcome] = []
        try:
            self._wait(seconds, outcomes)
        except ExecutionError as error:
            self._error = error
            self._process_events(outcomes)
            if not outcomes:
                raise
        return outcomes

    def _wait(self, seconds: float, outcomes: list[Outcome]) -> None:
        """Append the outcomes of ended orders; wait until there is at least one.

        Parameters
        ----------
        seconds : float
            Longest wait, in seconds.
        outcomes : list of Outcome
            Receives the outcomes.

        Raises
        ------
        ExecutionError
            If the run cannot continue.
        """
        until = time.monotonic() + seconds
        while not outcomes:
            self._check_workers()
            left = until - time.monotonic()
            try:
                outcomes += self._events.get(timeout=max(0.0, min(left, CHECK_SECONDS)))()
            except queue.Empty:
                if left <= 0:
                    break
            self._dispatch()
        self._process_events(outcomes)
        self._dispatch()

    def _process_events(self, outcomes: list[Outcome]) -> None:
        """Process the events that have arrived; append the outcomes that follow from them.

        Parameters
        ----------
        outcomes : list of Outcome
            Receives the outcomes.

        Raises
        ------
        ExecutionError
            At the first event that ends the run.
        """
        while True:
            try:
                outcomes += self._events.get_nowait()()
            except queue.Empty:
                return
            except ExecutionError:
                if self._error is None:
                    raise

    def describe(self) -> dict[str, Any]:
        """Return a description of the workers in use and of all hosts so far, for the provenance.

        Returns
        -------
        dict of str to object
            Kind, number of workers, addresses of dashboard and scheduler, and assigned cores. `hosts` has the
            hosts of workers that have left, too, because they have run trials.
        """
        return {
            "kind": self._cluster.kind,
            "workers": self._pool.capacity,
            "dashboard": self._transport.dashboard,
            "scheduler": self._transport.scheduler,
            "cores": sorted(worker.core for worker in self._pool.values() if worker.core is not None),
            "hosts": list(self._hosts.values()),
        }

    def close(self) -> None:
        """Cancel running orders and disconnect."""
        self._uploads.close()
        with contextlib.suppress(Exception):
            for running in self._running.values():
                running.call.cancel()
        self._transport.close()

    # -- orders ----------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Send waiting orders to free workers."""
        for _ in range(len(self._waiting)):
            order = self._waiting.popleft()
            can_run = partial(self._can_run, order)
            worker = self._pool.choose(can_run, partial(self._failures.on_worker, order))
            if worker is None:
                self._waiting.append(order)
            else:
                self._start(order, worker)

    def _can_run(self, order: WorkOrder, worker: WorkerHandle) -> bool:
        """Return whether a worker may start an order now.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        worker : WorkerHandle
            Connected worker, with its host and current batches.

        Returns
        -------
        bool
            False if its host is known to lack the dataset or has failed recently. For timings, also
            false while another worker of the host compiles the arm, or the worker receives a dataset.
            An arm without code to compile does not wait for its first batch to end.
        """
        if not (self._uploads.may_have(worker, order.source) and self._failures.may_try(order, worker)):
            return False
        if not self._requirements.timing:
            return True
        if self._uploads.uses(worker):
            return False  # the upload would slow down the training
        arm, compiling = order.arm.name, self._requirements.compiling
        is_compiled = (worker.cache, arm) in self._compiled or (
            compiling is not None and arm not in compiling
        )
        return is_compiled or not any(
            running.worker.cache == worker.cache and running.order.arm.name == arm
            for running in self._running.values()
        )

    def _start(self, order: WorkOrder, worker: WorkerHandle) -> None:
        """Send an order to a worker.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        worker : WorkerHandle
            A worker with a free thread.
        """
        number = order.batch.number
        call = self._transport.submit(
            worker.address,
            lambda result: self._events.put(partial(self._ended, number, result)),
            run_on_worker,
            *(pickle.dumps(order), worker.name, worker.core),
        )
        self._running[number] = _Running(order, worker, call, time.monotonic())
        worker.orders.add(number)

    def _ended(self, number: int, result: CallResult) -> list[Outcome]:
        """Process the end of a call.

        Parameters
        ----------
        number : int
            Number of the batch.
        result : CallResult
            The end of the call.

        Returns
        -------
        list of Outcome
            The outcome, or none if the order is tried again.

        Raises
        ------
        ExecutionError
            If the connection is lost, or the order has failed on every host.
        """
        running = self._running.get(number)
        if running is None or running.call is not result.call:
            return []  # the call was cancelled before
        order, worker = running.order, running.worker
        if result.status is CallStatus.DISCONNECTED:
            raise ExecutionError(LOST_SCHEDULER)
        if result.status is CallStatus.LOST:
            self._requeue(number)
            return []
        self._drop(number)
        if result.error is not None:
            self._try_elsewhere(order, worker, describe_error(result.error))
            return []
        if result.status is CallStatus.WORKER_DIED:
            self._remove_worker(worker.address)
            seconds = time.monotonic() - running.started_at
            reason, by_memory = result.reason or "died", bool(result.reason)
            return [Outcome(order, None, f"its worker {worker.address} {reason}", seconds, by_memory)]
        if result.value is None:
            self._waiting.appendleft(order)
            self._uploads.start(order, worker, self._events.put)
            return []
        self._failures.succeeded(order, worker)
        end, warnings = result.value
        if isinstance(end, ProcessEnded):
            lost = f"on worker {worker.address} it {end.reason}"
            return [Outcome(order, None, lost, end.seconds, end.by_memory)]
        self._compiled.add((worker.cache, order.arm.name))
        for text in warnings:
            self._report_once(f"{order.batch.dataset} × {order.batch.solver}: ", text)
        return [Outcome(order, end)]

    def _try_elsewhere(self, order: WorkOrder, worker: WorkerHandle, problem: str) -> None:
        """Queue an order again that failed outside of any training.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        worker : WorkerHandle
            The worker on which it failed.
        problem : str
            Description of the failure.

        Raises
        ------
        ExecutionError
            If the order has reached the failure limit on every connected host.
        """
        what = f"a batch of {order.batch.dataset} × {order.batch.solver} could not run on"
        self._failures.failed(order, worker)
        if self._failures.exhausted_everywhere(order, self._pool):
            raise ExecutionError(
                f"{what} any host. It failed last on worker {worker.address} of {worker.host}: {problem}"
            )
        self._report_once("", f"{what} host {worker.host} and is tried again: {problem}")
        self._waiting.appendleft(order)

    def _report_once(self, prefix: str, text: str) -> None:
        """Warn the user, unless the same text was reported before.

        Parameters
        ----------
        prefix : str
            Start of the message, which may differ between reports.
        text : str
            Message of the warning, which is compared with earlier ones.
        """
        if text not in self._reported:
            self._reported.add(text)
            log.warning("%s%s", prefix, text)

    def _drop(self, number: int) -> WorkOrder:
        """Remove an order from the running ones.

        Parameters
        ----------
        number : int
            Number of the batch.

        Returns
        -------
        WorkOrder
            Order that no longer runs.
        """
        running = self._running.pop(number)
        running.worker.orders.discard(number)
        return running.order

    def _requeue(self, number: int) -> None:
        """Queue an order again whose worker left without having died.

        Parameters
        ----------
        number : int
            Number of the batch.
        """
        self._running[number].call.cancel()
        self._waiting.appendleft(self._drop(number))

    # -- workers ---------------------------------------------------------------------------------

    def _wait_for_workers(self) -> None:
        """Wait until all workers that are connected at start-up have described themselves.

        Raises
        ------
        ExecutionError
            If a worker is refused, or none can be used.
        """
        deadline = time.monotonic() + DESCRIBE_SECONDS
        self._check_workers()
        while len(self._pool) + len(self._refused) < len(self._known):
            if (self._pool or self._refused) and time.monotonic() > deadline:
                break  # without any answer, `_check_workers` limits the wait: their host may be busy
            with contextlib.suppress(queue.Empty):
                self._events.get(timeout=CHECK_SECONDS)()
            self._check_workers()
        if self._refused:
            raise ExecutionError(next(iter(self._refused.values())))
        if not self._pool:
            raise ExecutionError(
                f"no worker of the scheduler at {self._transport.scheduler} answers. "
                f"Start workers with `svmbench cluster worker {self._transport.scheduler}`"
            )

    def _check_workers(self) -> None:
        """Update the workers in use, at most once every `CHECK_SECONDS`.

        Raises
        ------
        ExecutionError
            If the connection is lost, or there have been no usable workers for too long.
        """
        now = time.monotonic()
        if not self._transport.alive:
            raise ExecutionError(LOST_SCHEDULER)
        if now - self._checked_at < CHECK_SECONDS:
            return
        self._checked_at = now
        present = self._transport.workers()
        if present is None:
            raise ExecutionError(LOST_SCHEDULER)
        for address in sorted(present.keys() - self._known):
            self._add_worker(address, *present[address])
        for address in self._known - present.keys():
            self._remove_worker(address)
        for number, running in list(self._running.items()):
            # Deaths are reported at once, so a worker that is missing without a report has left by itself.
            if now - self._left_at.get(running.worker.address, now) > 2 * CHECK_SECONDS:
                self._requeue(number)
        self._check_no_workers_left(now)

    def _remove_worker(self, address: str) -> None:
        """Remove a worker that has left or died.

        Parameters
        ----------
        address : str
            Address of the worker.
        """
        self._known.discard(address)
        self._refused.pop(address, None)
        if self._pool.pop(address, None):
            self._left_at[address] = time.monotonic()

    def _check_no_workers_left(self, now: float) -> None:
        """Raise if no worker has been able to run the remaining orders for too long; warn before.

        Parameters
        ----------
        now : float
            Current time on the monotonic clock, in seconds.

        Raises
        ------
        ExecutionError
            After `cluster.no_workers_timeout` seconds, or earlier if every worker that joins is refused.
        """
        if self._pool and not self._is_stuck():
            self._no_workers_since, self._no_workers_reported = None, False
            return
        if self._no_workers_since is None:
            self._no_workers_since = now
        waited, limit = now - self._no_workers_since, self._cluster.no_workers_timeout
        if not self._pool and self._refused and waited > min(limit, DESCRIBE_SECONDS):
            # For example, workers that a local cluster restarted after an edit of the sources.
            raise ExecutionError(f"no worker can be used: {next(iter(self._refused.values()))}. {RESUME}")
        if waited > limit:
            condition = " whose host can run the remaining batches" if self._pool else ""
            raise ExecutionError(
                f"cluster.no_workers_timeout={limit:g}: there was no worker{condition} for {limit:g} s. "
                f"Start workers. {RESUME}"
            )
        if not self._no_workers_reported and waited > 3 * CHECK_SECONDS:
            self._no_workers_reported = True
            if self._pool:
                problem = "no connected host can run the remaining batches; waiting up to %g s for others"
            elif self._known - self._refused.keys():
                problem = "no worker has answered yet; waiting up to %g s"
            else:
                problem = "no worker is connected; waiting up to %g s for others"
            log.warning(problem, limit)

    def _is_stuck(self) -> bool:
        """Return whether nothing runs and every connected host has failed for good with all waiting orders.

        Returns
        -------
        bool
            False if no order waits.
        """
        return (
            bool(self._waiting)
            and not self._running
            and not any(
                self._uploads.can_have(worker, order.source) and not self._failures.exhausted(order, worker)
                for order in self._waiting
                for worker in self._pool.values()
            )
        )

    def _add_worker(self, address: str, name: str, threads: int) -> None:
        """Request the description of a worker, before it receives an order.

        Parameters
        ----------
        address : str
            Address of the worker.
        name : str
            Name of the worker.
        threads : int
            Number of its threads.
        """
        self._known.add(address)
        self._left_at.pop(address, None)
        self._transport.run(
            address,
            lambda result: self._events.put(partial(self._described, address, name, threads, result)),
            describe,
            self._requirements.packages,
        )

    def _described(self, address: str, name: str, threads: int, result: CallResult) -> list[Outcome]:
        """Use a worker that has described itself, or refuse it.

        Parameters
        ----------
        address : str
            Address of the worker.
        name : str
            Name of the worker.
        threads : int
            Number of its threads.
        result : CallResult
            The end of the call to `describe`.

        Returns
        -------
        list of Outcome
            Always empty; the type is that of an event.
        """
        if address not in self._known:
            return []
        if result.status not in (CallStatus.RETURNED, CallStatus.RAISED):
            self._known.discard(address)  # the next check asks again if the worker is still connected
            return []
        core, description, timing = None, result.value, self._requirements.timing
        if result.error is not None:  # usually the module or function does not exist there
            error = describe_error(result.error)
            problem = f"cannot run this svmbench ({error}). Install the same version on both"
        else:
            problem = mismatch(description, threads, self._software, timing)
        if not problem and timing and description["cores"]:
            core = self._pool.free_core(description)
            if core is None:
                problem = "has no free core, and timings need one core each. Start fewer workers on its host"
        if problem:
            self._refused[address] = f"worker {address} {problem}"
            log.warning("worker %s is not used: it %s", address, problem)
        else:
            self._pool[address] = worker = WorkerHandle(address, name, threads, description, core)
            self._hosts[worker.host] = description["host"]
            log.info("worker %s of host %s joined", address, worker.host)
        return []
