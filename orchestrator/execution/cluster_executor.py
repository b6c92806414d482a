"""Run batches on the workers of a cluster, whatever carries the messages.

Which worker gets which order is decided here. So an order is given to exactly one worker, one that dies takes
its own orders with it and no others, and a worker gets none before its software is found to be the client's
and its host to hold the data.
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
from orchestrator.isolation.class_checks import starts_processes
from orchestrator.isolation.process_state import ProcessUnusableError
from orchestrator.study.batch import BatchResult, WorkOrder
from orchestrator.study.errors import ExecutionError
from orchestrator.study.settings import Cluster
from orchestrator.study.storable import describe_error
from orchestrator.training.batch_process import run_in_child
from orchestrator.training.cores import pin
from orchestrator.training.run_batch import run_batch
from orchestrator.training.split_data import DataNotHere
from orchestrator.training.watchdog import Watchdog, end_worker
from orchestrator.training.worker_state import capture_warnings, take_warnings, worker_memory

log = logging.getLogger(__name__)

DESCRIBE_SECONDS = 30.0
"""How long to wait at the start for workers that do not describe themselves, if others have."""

RESUME = "what had finished is stored, run the same command to resume"

LOST_SCHEDULER = f"the connection to the Dask scheduler was lost; {RESUME}"


def run_on_worker(
    order: bytes, worker: str, core: int | None
) -> tuple[BatchResult | ProcessEnded, tuple[str, ...]] | None:
    """Run a batch on a worker: its result, and the warnings of the process; None if its host lacks the data.

    The order is sent as bytes, which the scheduler passes on; objects it would unpickle, and so need this
    package and a millisecond for each. A training that may have to be stopped, start processes or end its own
    runs in a child process, which the worker outlives. This holds under a time limit, for classes that
    nobody has checked, and after the loss of a worker. Any other that does not return within
    `default_seconds` ends its worker, and is then tried in a child process.
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
        os._exit(1)  # at once: its connections may be broken, and another worker takes its place


def _wants_a_child(order: WorkOrder) -> bool:
    """Whether the trainings of an order are to run in a child process of their worker."""
    return order.protocol.max_seconds is not None or order.batch.attempt > 1 or starts_processes(order.arm)


@dataclass(frozen=True, eq=False)
class _Running:
    order: WorkOrder
    worker: WorkerHandle
    call: PendingCall
    started_at: float


class ClusterExecutor:
    """An executor over a connection to a cluster.

    Parameters
    ----------
    transport : Transport
    cluster : Cluster
        Its configuration.
    requirements : Requirements, optional

    Raises
    ------
    ExecutionError
        When a worker has other software than this client, or none can be used.
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
        self._known: set[str] = set()  # workers that are there and were asked to describe themselves
        self._refused: dict[str, str] = {}
        self._left_at: dict[str, float] = {}
        self._compiled: set[tuple[str, str]] = set()
        self._checked_at = float("-inf")
        self._no_workers_since: float | None = None
        self._no_workers_reported = False
        self._reported: set[str] = set()
        self._wait_for_workers()

    # -- the interface of the runner -------------------------------------------------------------

    @property
    def slots(self) -> int:
        """The number of threads of the workers in use, or those the cluster may grow to."""
        return max(self._pool.capacity, self._cluster.maximum or 0)

    @property
    def demand(self) -> int:
        """The number of orders that run or wait: so many workers have something to do."""
        return len(self._running) + len(self._waiting)

    def submit(self, order: WorkOrder) -> None:
        """Give an order to a free worker, or keep it until there is one."""
        self._waiting.append(order)
        self._dispatch()

    def wait(self, seconds: float) -> list[Outcome]:
        """Collect the orders that have ended, waiting for the first."""
        until = time.monotonic() + seconds
        outcomes: list[Outcome] = []
        while not outcomes:
            self._check_workers()
            left = until - time.monotonic()
            try:
                outcomes += self._events.get(timeout=max(0.0, min(left, CHECK_SECONDS)))()
            except queue.Empty:
                if left <= 0:
                    break
            self._dispatch()
        with contextlib.suppress(queue.Empty):
            while True:
                outcomes += self._events.get_nowait()()
        self._dispatch()
        return outcomes

    def facts(self) -> dict[str, Any]:
        """Describe the workers in use and their hosts."""
        return {
            "kind": self._cluster.kind,
            "workers": self._pool.capacity,
            "dashboard": self._transport.dashboard,
            "scheduler": self._transport.scheduler,
            "cores": sorted(worker.core for worker in self._pool.values() if worker.core is not None),
            "hosts": list({worker.host: worker.facts["host"] for worker in self._pool.values()}.values()),
        }

    def close(self) -> None:
        """Cancel what runs and disconnect."""
        self._uploads.close()
        with contextlib.suppress(Exception):
            for running in self._running.values():
                running.call.cancel()
        self._transport.close()

    # -- orders ----------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Give waiting orders to free workers."""
        for _ in range(len(self._waiting)):
            order = self._waiting.popleft()
            can_run = partial(self._can_run, order)
            worker = self._pool.choose(can_run, partial(self._failures.on_worker, order))
            if worker is None:
                self._waiting.append(order)
            else:
                self._start(order, worker)

    def _can_run(self, order: WorkOrder, worker: WorkerHandle) -> bool:
        """Whether a worker's host has the data, as far as is known, and no other worker compiles the arm."""
        if not (self._uploads.may_have(worker, order.source) and self._failures.may_try(order, worker)):
            return False
        if not self._requirements.timing:
            return True
        if self._uploads.uses(worker):
            return False  # it would take time from the training
        return (worker.cache, order.arm.name) in self._compiled or not any(
            running.worker.cache == worker.cache and running.order.arm.name == order.arm.name
            for running in self._running.values()
        )

    def _start(self, order: WorkOrder, worker: WorkerHandle) -> None:
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
        running = self._running.get(number)
        if running is None or running.call is not result.call:
            return []  # given up before
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
        """Let another worker have an order that failed outside of any training, or the same one later."""
        what = f"a batch of {order.batch.dataset} × {order.batch.solver} could not run on"
        self._failures.failed(order, worker)
        if self._failures.exhausted_everywhere(order, self._pool):
            raise ExecutionError(
                f"{what} any host; at last, on worker {worker.address} of {worker.host}: {problem}"
            )
        self._report_once("", f"{what} host {worker.host}, and is tried again: {problem}")
        self._waiting.appendleft(order)

    def _report_once(self, prefix: str, text: str) -> None:
        """Warn the user, unless the same text was reported before."""
        if text not in self._reported:
            self._reported.add(text)
            log.warning("%s%s", prefix, text)

    def _drop(self, number: int) -> WorkOrder:
        running = self._running.pop(number)
        running.worker.orders.discard(number)
        return running.order

    def _requeue(self, number: int) -> None:
        """Let another worker have an order whose worker went away without being to blame."""
        self._running[number].call.cancel()
        self._waiting.appendleft(self._drop(number))

    # -- workers ---------------------------------------------------------------------------------

    def _wait_for_workers(self) -> None:
        """Wait until all workers at the start have described themselves; raise if one is refused."""
        deadline = time.monotonic() + DESCRIBE_SECONDS
        self._check_workers()
        while len(self._pool) + len(self._refused) < len(self._known):
            if (self._pool or self._refused) and time.monotonic() > deadline:
                break  # without any answer, `_check_workers` says how long to wait: their host may be busy
            with contextlib.suppress(queue.Empty):
                self._events.get(timeout=CHECK_SECONDS)()
            self._check_workers()
        if self._refused:
            raise ExecutionError(next(iter(self._refused.values())))
        if not self._pool:
            raise ExecutionError(
                f"the scheduler at {self._transport.scheduler} has no worker that answers; "
                f"start some with `svmbench cluster worker {self._transport.scheduler}`"
            )

    def _check_workers(self) -> None:
        """Find out who has come and who has left."""
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
            # A death is reported at once: a worker that is gone without one has left by itself.
            if now - self._left_at.get(running.worker.address, now) > 2 * CHECK_SECONDS:
                self._requeue(number)
        self._check_no_workers_left(now)

    def _remove_worker(self, address: str) -> None:
        self._known.discard(address)
        self._refused.pop(address, None)
        if self._pool.pop(address, None):
            self._left_at[address] = time.monotonic()

    def _check_no_workers_left(self, now: float) -> None:
        """Raise when no worker can do what is left, and none has come for some time; warn before."""
        if self._pool and not self._is_stuck():
            self._no_workers_since, self._no_workers_reported = None, False
            return
        if self._no_workers_since is None:
            self._no_workers_since = now
        waited, limit = now - self._no_workers_since, self._cluster.no_workers_timeout
        if not self._pool and self._refused and waited > min(limit, DESCRIBE_SECONDS):
            # A local cluster's own, after an edit of the sources: no better ones will come.
            raise ExecutionError(f"no worker is left but {next(iter(self._refused.values()))}; {RESUME}")
        if waited > limit:
            lacking = " whose host can run what is left" if self._pool else ""
            raise ExecutionError(
                f"there has been no worker{lacking} for {limit:g} s (cluster.no_workers_timeout); "
                f"start some; {RESUME}"
            )
        if not self._no_workers_reported and waited > 3 * CHECK_SECONDS:
            self._no_workers_reported = True
            if self._pool:
                problem = "whose host can run what is left is there; waiting up to %g s for others to come"
            elif self._known - self._refused.keys():
                problem = "has answered yet; waiting up to %g s"
            else:
                problem = "is left; waiting up to %g s for others to come"
            log.warning(f"no worker {problem}", limit)

    def _is_stuck(self) -> bool:
        """Whether nothing runs, and every host that is there has failed for good with all that waits."""
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
        """Ask a worker to describe itself, before it gets an order."""
        self._known.add(address)
        self._left_at.pop(address, None)
        self._transport.run(
            address,
            lambda result: self._events.put(partial(self._described, address, name, threads, result)),
            describe,
            self._requirements.packages,
        )

    def _described(self, address: str, name: str, threads: int, result: CallResult) -> list[Outcome]:
        """Use a worker that has described itself, or refuse it."""
        if address not in self._known:
            return []
        if result.status not in (CallStatus.RETURNED, CallStatus.RAISED):
            self._known.discard(address)  # the next check asks again whoever is there then
            return []
        core, facts, timing = None, result.value, self._requirements.timing
        if result.error is not None:  # most likely it has no such module or function
            told = describe_error(result.error)
            problem = f"cannot run this svmbench ({told}); install the same one on both"
        else:
            problem = mismatch(facts, threads, self._software, timing)
        if not problem and timing and facts["cores"]:
            core = self._pool.free_core(facts)
            if core is None:
                problem = "finds every core of its host taken, and timings take one each; start fewer workers"
        if problem:
            self._refused[address] = f"worker {address} {problem}"
            log.warning("worker %s is not used: it %s", address, problem)
        else:
            self._pool[address] = worker = WorkerHandle(address, name, threads, facts, core)
            log.info("worker %s of host %s joined", address, worker.host)
        return []
