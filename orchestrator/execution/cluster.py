"""Run batches on the workers of a cluster, whatever carries the messages.

Which worker gets which order is decided here. So an order lies with exactly one worker, one that dies takes
its own orders with it and no others, and a worker gets none before its software is found to be the client's
and its host to hold the data.
"""

import contextlib
import logging
import pickle
import queue
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from orchestrator.execution import ExecutionError, Outcome
from orchestrator.execution.affinity import pin
from orchestrator.execution.data_sender import DataSender
from orchestrator.execution.installation import Requirements, describe
from orchestrator.execution.link import Answer, Fate, Handle, Link
from orchestrator.execution.roster import Roster, Seat, Terms
from orchestrator.execution.trouble import Trouble
from orchestrator.execution.warned import heard, listen
from orchestrator.isolation import Died, run_isolated
from orchestrator.sources import DataNotHere
from orchestrator.training import describe_error
from orchestrator.worker import BatchResult, WorkOrder, run_batch

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often to look who is there."""

ANSWER_SECONDS = 30.0
"""How long to wait at the start for workers that do not say what they are, if others have."""

RESUME = "what had finished is stored, run the same command to resume"

LOST_SCHEDULER = f"the connection to the Dask scheduler was lost; {RESUME}"

Event = Callable[[], list[Outcome]]


def run_on_worker(
    order: bytes, worker: str, core: int | None
) -> tuple[BatchResult | Died, tuple[str, ...]] | None:
    """Run a batch on a worker: its result, and what the process warned of; None if its host lacks the data.

    The order travels as bytes, which the scheduler passes on; objects it would unpickle, and so need this
    package and a millisecond for each. Under a time limit it runs in a child process, so that the worker
    outlives a training that has to be stopped.
    """
    pin(core)
    listen()
    batch: WorkOrder = pickle.loads(order)
    try:
        if batch.protocol.max_seconds is not None:
            return run_isolated(batch, worker, core)
        return run_batch(batch, worker), heard()
    except DataNotHere:
        return None


def guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function on a worker, which Dask would have closed for good by SystemExit or Ctrl-C."""
    try:
        return function(*arguments)
    except Exception:
        raise
    except BaseException as error:
        raise RuntimeError(describe_error(error)) from None


@dataclass(frozen=True, eq=False)
class _Running:
    order: WorkOrder
    seat: Seat
    handle: Handle
    started_at: float

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started_at


class ClusterExecutor:
    """An executor over a link to a cluster.

    Parameters
    ----------
    link : Link
    kind : str
        The configured kind of cluster, for the provenance.
    terms : Terms, optional

    Raises
    ------
    ExecutionError
        When a worker has other software than this client, or none can be used.
    """

    def __init__(self, link: Link, kind: str, terms: Terms | None = None):
        self._link = link
        self._kind = kind
        self._terms = terms or Terms()
        self._requirements = Requirements.here(self._terms.packages, self._terms.timing)
        self._roster = Roster()
        self._sender = DataSender(link, self._roster)
        self._trouble = Trouble()
        self._waiting: deque[WorkOrder] = deque()
        self._running: dict[int, _Running] = {}
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._asked: set[str] = set()  # workers that are there and were asked what they are
        self._refused: dict[str, str] = {}
        self._left_at: dict[str, float] = {}
        self._compiled: set[tuple[str, str]] = set()
        self._looked_at = float("-inf")
        self._deserted_at: float | None = None
        self._warned = False
        self._told: set[str] = set()
        self._gather_workers()

    # -- the interface of the runner -------------------------------------------------------------

    @property
    def slots(self) -> int:
        """The number of threads of the workers in use, or those the cluster may grow to."""
        return max(self._roster.capacity, self._terms.most)

    @property
    def demand(self) -> int:
        """The number of orders that run or wait: so many workers have something to do."""
        return len(self._running) + len(self._waiting)

    def submit(self, order: WorkOrder) -> None:
        """Give an order to a free worker, or keep it until there is one."""
        self._waiting.append(order)
        self._hand_out()

    def wait(self, seconds: float) -> list[Outcome]:
        """Collect the orders that have ended, waiting for the first."""
        until = time.monotonic() + seconds
        outcomes: list[Outcome] = []
        while not outcomes:
            self._look()
            left = until - time.monotonic()
            try:
                outcomes += self._events.get(timeout=max(0.0, min(left, LOOK_SECONDS)))()
            except queue.Empty:
                if left <= 0:
                    break
            self._hand_out()
        with contextlib.suppress(queue.Empty):
            while True:
                outcomes += self._events.get_nowait()()
        self._hand_out()
        return outcomes

    def facts(self) -> dict[str, Any]:
        """Describe the workers in use and their hosts."""
        hosts = {seat.facts["host"]["host"]: seat.facts["host"] for seat in self._roster}
        return {
            "kind": self._kind,
            "workers": self._roster.capacity,
            "dashboard": self._link.dashboard,
            "scheduler": self._link.scheduler,
            "cores": sorted(seat.core for seat in self._roster if seat.core is not None),
            "hosts": list(hosts.values()),
        }

    def close(self) -> None:
        """Cancel what runs and disconnect."""
        self._sender.close()
        with contextlib.suppress(Exception):
            for running in self._running.values():
                running.handle.cancel()
        self._link.close()

    # -- orders ----------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        for _ in range(len(self._waiting)):
            order = self._waiting.popleft()
            seat = self._roster.choose(partial(self._suits, order), partial(self._trouble.on_worker, order))
            if seat is None:
                self._waiting.append(order)
            else:
                self._start(order, seat)

    def _suits(self, order: WorkOrder, seat: Seat) -> bool:
        """Whether a worker's host has the data, as far as is known, and nobody compiles the arm there."""
        if not (self._sender.may_have(seat, order.source) and self._trouble.allows(order, seat)):
            return False
        if self._terms.timing and self._sender.sends_to(seat):
            return False  # it would take time from the training
        if not self._terms.timing or (seat.cache, order.arm.name) in self._compiled:
            return True
        return not any(
            running.seat.cache == seat.cache and running.order.arm.name == order.arm.name
            for running in self._running.values()
        )

    def _start(self, order: WorkOrder, seat: Seat) -> None:
        number = order.batch.number
        handle = self._link.start(
            seat.address,
            run_on_worker,
            (pickle.dumps(order), seat.name, seat.core),
            lambda answer: self._events.put(partial(self._ended, number, answer)),
        )
        self._running[number] = _Running(order, seat, handle, time.monotonic())
        seat.orders.add(number)

    def _ended(self, number: int, answer: Answer) -> list[Outcome]:
        running = self._running.get(number)
        if running is None or running.handle is not answer.handle:
            return []  # given up before
        order, seat = running.order, running.seat
        if answer.fate is Fate.DISCONNECTED:
            raise ExecutionError(LOST_SCHEDULER)
        if answer.error is not None:
            return self._try_elsewhere(self._drop(number), seat, describe_error(answer.error))
        if answer.fate is Fate.VANISHED:
            self._give_back(number)
            return []
        self._drop(number)
        if answer.fate is Fate.DIED:
            self._forget(seat.address)
            return [Outcome(order, None, f"its worker {seat.address} died", running.seconds)]
        if answer.value is None:
            self._waiting.appendleft(order)
            self._sender.send(order, seat, self._events.put)
            return []
        self._trouble.worked(order, seat)
        result, warned = answer.value
        if isinstance(result, Died):
            return [Outcome(order, None, f"on worker {seat.address} it {result.reason}", result.seconds)]
        self._compiled.add((seat.cache, order.arm.name))
        self._pass_on(order, warned)
        return [Outcome(order, result)]

    def _try_elsewhere(self, order: WorkOrder, seat: Seat, problem: str) -> list[Outcome]:
        """Let another worker have an order that failed outside of any training, or the same one later."""
        what = f"a batch of {order.batch.dataset} × {order.batch.solver} could not run on"
        host = seat.facts["host"]["host"]
        self._trouble.failed(order, seat)
        if self._trouble.everywhere(order, self._roster):
            raise ExecutionError(f"{what} any host; at last, on worker {seat.address} of {host}: {problem}")
        text = f"{what} host {host}, and is tried again: {problem}"
        if text not in self._told:
            self._told.add(text)
            log.warning(text)
        self._waiting.appendleft(order)
        return []

    def _pass_on(self, order: WorkOrder, warned: tuple[str, ...]) -> None:
        """Tell what a worker warned of, unless another has warned of the same."""
        for text in warned:
            if text not in self._told:
                self._told.add(text)
                log.warning("%s × %s: %s", order.batch.dataset, order.batch.solver, text)

    def _drop(self, number: int) -> WorkOrder:
        running = self._running.pop(number)
        running.seat.orders.discard(number)
        return running.order

    def _give_back(self, number: int) -> None:
        """Let another worker have an order whose worker went away without being to blame."""
        self._running[number].handle.cancel()
        self._waiting.appendleft(self._drop(number))

    # -- workers ---------------------------------------------------------------------------------

    def _gather_workers(self) -> None:
        """Take stock at the start, when somebody is there to be told what is wrong."""
        deadline = time.monotonic() + ANSWER_SECONDS
        self._look()
        while len(self._roster) + len(self._refused) < len(self._asked):
            if (self._roster or self._refused) and time.monotonic() > deadline:
                break  # while nobody has answered, `_look` has the patience for it: their host may be busy
            with contextlib.suppress(queue.Empty):
                self._events.get(timeout=LOOK_SECONDS)()
            self._look()
        if self._refused:
            raise ExecutionError(next(iter(self._refused.values())))
        if not self._roster:
            raise ExecutionError(
                f"the scheduler at {self._link.scheduler} has no worker that answers; "
                f"start some with `svmbench cluster worker {self._link.scheduler}`"
            )

    def _look(self) -> None:
        """See who has come and who has left."""
        now = time.monotonic()
        if not self._link.alive:
            raise ExecutionError(LOST_SCHEDULER)
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        present = self._link.workers()
        if present is None:
            raise ExecutionError(LOST_SCHEDULER)
        for address in sorted(present.keys() - self._asked):
            self._ask(address, *present[address])
        for address in self._asked - present.keys():
            self._forget(address)
        for number, running in list(self._running.items()):
            # A death is told at once; whoever is still not told to have died has left in peace.
            if now - self._left_at.get(running.seat.address, now) > 2 * LOOK_SECONDS:
                self._give_back(number)
        self._mind_desertion(now)

    def _forget(self, address: str) -> None:
        self._asked.discard(address)
        self._refused.pop(address, None)
        if self._roster.dismiss(address):
            self._left_at[address] = time.monotonic()

    def _mind_desertion(self, now: float) -> None:
        if self._roster and not self._is_stuck():
            self._deserted_at, self._warned = None, False
            return
        if self._deserted_at is None:
            self._deserted_at = now
        patience = self._terms.no_workers_seconds
        if not self._roster and self._refused and now - self._deserted_at > min(patience, ANSWER_SECONDS):
            # A local cluster's own, after an edit of the sources: no better ones will come.
            raise ExecutionError(f"no worker is left but {next(iter(self._refused.values()))}; {RESUME}")
        if now - self._deserted_at > patience:
            lacking = " whose host can run what is left" if self._roster else ""
            raise ExecutionError(
                f"there has been no worker{lacking} for {patience:g} s (cluster.no_workers_timeout); "
                f"start some; {RESUME}"
            )
        if not self._warned and now - self._deserted_at > 3 * LOOK_SECONDS:
            self._warned = True
            if not self._roster and self._asked - self._refused.keys():
                log.warning("no worker has answered yet; waiting up to %g s", patience)
                return
            which = "whose host can run what is left is there" if self._roster else "is left"
            log.warning("no worker %s; waiting up to %g s for others to come", which, patience)

    def _is_stuck(self) -> bool:
        """Whether nothing runs, and every host that is there has failed for good with all that waits."""
        return (
            bool(self._waiting)
            and not self._running
            and not any(
                self._sender.can_have(seat, order.source) and not self._trouble.exhausted(order, seat)
                for order in self._waiting
                for seat in self._roster
            )
        )

    def _ask(self, address: str, name: str, threads: int) -> None:
        """Ask a worker what it is, before it gets an order."""
        self._asked.add(address)
        self._left_at.pop(address, None)
        self._link.ask(
            address,
            describe,
            (self._terms.packages,),
            lambda answer: self._events.put(partial(self._answered, address, name, threads, answer)),
        )

    def _answered(self, address: str, name: str, threads: int, answer: Answer) -> list[Outcome]:
        if address not in self._asked:
            return []
        if answer.fate in (Fate.DIED, Fate.VANISHED, Fate.DISCONNECTED):
            self._asked.discard(address)  # the next look asks again whoever is there then
            return []
        core = None
        if answer.error is not None:  # most likely it has no such module or function
            problem = (
                f"cannot run this svmbench ({describe_error(answer.error)}); install the same one on both"
            )
        else:
            problem = self._requirements.objection(answer.value, threads)
        if not problem and self._terms.timing and answer.value["cores"]:
            core = self._roster.free_core(answer.value)
            if core is None:
                problem = "finds every core of its host taken, and timings take one each; start fewer workers"
        if problem:
            self._refused[address] = f"worker {address} {problem}"
            log.warning("worker %s is not used: it %s", address, problem)
            return []
        self._roster.admit(Seat(address, name, threads, answer.value, core))
        log.info("worker %s of host %s joined", address, answer.value["host"]["host"])
        return []
