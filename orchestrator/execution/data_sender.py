"""Bring datasets to the hosts that lack them, once for all workers of a host."""

import logging
import math
import queue
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from orchestrator.execution import ExecutionError, Outcome
from orchestrator.execution.link import Answer, Fate, Handle, Link
from orchestrator.execution.roster import Roster, Seat
from orchestrator.execution.transfer import finish, pieces, take_piece
from orchestrator.sources import DataSource, load_from_origin
from orchestrator.training import describe_error
from orchestrator.worker import WorkOrder

log = logging.getLogger(__name__)

ANSWER_SECONDS = 120.0
"""How long a worker may take to store a piece of a dataset or to check the whole, beside its trainings."""

LOOK_SECONDS = 1.0
"""How often to look whether a worker that is called is still there."""

PAUSE_SECONDS = 5.0
"""How long to wait before a dataset is sent to a host again."""

TRIES = 3
"""How often to send a dataset to a host before it has to be loaded there from its origin."""

Event = Callable[[], list[Outcome]]

Place = tuple[str, DataSource]
"""A host, by its cache, and a dataset."""


class DataSender:
    """Datasets on their way to hosts, and those that could not be brought there.

    Parameters
    ----------
    link : Link
    roster : Roster
        The workers in use.
    """

    def __init__(self, link: Link, roster: Roster):
        self._link = link
        self._roster = roster
        self._under_way: dict[Place, str] = {}
        self._failed: dict[Place, str] = {}
        self._threads = ThreadPoolExecutor(4, "send-data")
        self._closed = threading.Event()

    def may_have(self, seat: Seat, source: DataSource) -> bool:
        """Whether a worker may be tried: its host has the dataset, or has not been found to lack it."""
        return (seat.cache, source) not in self._under_way and self.can_have(seat, source)

    def can_have(self, seat: Seat, source: DataSource) -> bool:
        """Whether a worker's host has a dataset or may still get it."""
        return (seat.cache, source) not in self._failed

    def sends_to(self, seat: Seat) -> bool:
        """Whether a worker is receiving a dataset."""
        return seat.address in self._under_way.values()

    def send(self, order: WorkOrder, seat: Seat, report: Callable[[Event], None]) -> None:
        """Start to bring an order's dataset to a worker's host; `report` gets what to do at the end."""
        place = (seat.cache, order.source)
        if not self.may_have(seat, order.source):
            return
        self._under_way[place] = seat.address

        def work() -> None:
            report(partial(self._arrived, place, seat, self._bring(order, seat)))

        self._threads.submit(work)

    def close(self) -> None:
        """Start nothing more."""
        self._closed.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _bring(self, order: WorkOrder, seat: Seat) -> str:
        """Send a dataset, or have the host load it from its origin; return what went wrong."""
        host = seat.facts["host"]["host"]
        problem = ""
        for attempt in range(TRIES):
            if attempt and self._closed.wait(PAUSE_SECONDS):
                return problem
            started = time.perf_counter()
            try:
                n_bytes = self._send_pieces(order.source, seat)
            except Exception as sending:
                problem = describe_error(sending)
                name = order.batch.dataset
                log.warning("could not send dataset %s to host %s: %s", name, host, problem)
                if seat.address not in self._roster:
                    return problem
            else:
                megabytes, seconds = n_bytes / 1e6, time.perf_counter() - started
                name = order.batch.dataset
                log.info("sent %s to host %s: %.1f MB in %.1f s", name, host, megabytes, seconds)
                return ""
        try:
            self._load_there(order, seat)
        except Exception as loading:
            return f"{problem}; nor from its origin: {describe_error(loading)}"
        return ""

    def _send_pieces(self, source: DataSource, seat: Seat) -> int:
        token, n_bytes = uuid.uuid4().hex, 0
        for name, piece in pieces(source):
            self._ask(seat, take_piece, token, name, piece)
            n_bytes += len(piece)
        self._ask(seat, finish, token, source)
        return n_bytes

    def _arrived(self, place: Place, seat: Seat, problem: str) -> list[Outcome]:
        self._under_way.pop(place, None)
        if not problem or seat.address not in self._roster:
            return []  # it is there, or whoever comes next says what it lacks
        self._failed[place] = problem
        log.warning(
            "%s is not used for dataset %s: %s", seat.facts["host"]["host"], place[1].spec.name, problem
        )
        if all((other.cache, place[1]) in self._failed for other in self._roster):
            raise ExecutionError(f"no host can get dataset {place[1].spec.name!r}: {problem}")
        return []

    def _ask(self, seat: Seat, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function beside a worker's trainings and wait for its end."""
        self._call(self._link.ask, seat, function, arguments, ANSWER_SECONDS)

    def _load_there(self, order: WorkOrder, seat: Seat) -> None:
        """Have a dataset loaded between a worker's trainings, for a loader is a user's code, however long."""
        self._call(self._link.start, seat, load_from_origin, (order.source, order.protocol), math.inf)

    def _call(
        self,
        start: Callable[..., Handle],
        seat: Seat,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        seconds: float,
    ) -> None:
        answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        handle = start(seat.address, function, arguments, answers.put)
        deadline = time.monotonic() + seconds
        while seat.address in self._roster and not self._closed.is_set():
            try:
                answer = answers.get(timeout=max(0.0, min(LOOK_SECONDS, deadline - time.monotonic())))
            except queue.Empty:
                if time.monotonic() < deadline:
                    continue
                handle.cancel()
                raise TimeoutError(f"no answer within {seconds:g} s") from None
            if answer.error is not None:
                raise answer.error
            if answer.fate is not Fate.RETURNED:
                raise ConnectionError(answer.fate.value)
            return
        handle.cancel()
        raise ConnectionError("its worker left, or the run ended")
