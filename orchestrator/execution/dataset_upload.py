"""Bring datasets to hosts that lack them: once for all workers of a host, in pieces, checked at the end."""

import logging
import math
import queue
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock

from orchestrator.datasets import DatasetError
from orchestrator.datasets.dataset import fingerprint
from orchestrator.execution.executor import Outcome
from orchestrator.execution.transport import CallResult, CallStatus, Function, PendingCall, Transport
from orchestrator.execution.worker_pool import CHECK_SECONDS, WorkerHandle, WorkerPool
from orchestrator.study.batch import DataSource, WorkOrder
from orchestrator.study.errors import ExecutionError
from orchestrator.study.storable import describe_error
from orchestrator.training.environment import cache_folder
from orchestrator.training.split_data import load_from_origin, open_content, open_copy, restore

log = logging.getLogger(__name__)

PIECE_BYTES = 8 << 20
"""Small enough for a message that delays neither the scheduler nor a worker."""

STORE_SECONDS = 120.0
"""How long a worker may take to store a piece of a dataset or to check the whole, while it trains."""

PAUSE_SECONDS = 5.0
"""How long to wait before a dataset is sent to a host again."""

MAX_SENDS = 3
"""How often to send a dataset to a host before it has to be loaded there from its origin."""

_STALE_SECONDS = 24 * 3600.0
_STAGING = ".incoming-"

Event = Callable[[], list[Outcome]]


class DatasetUploads:
    """Datasets on their way to hosts, and those that could not be brought there.

    Parameters
    ----------
    transport : Transport
    pool : WorkerPool
        The workers in use.
    """

    def __init__(self, transport: Transport, pool: WorkerPool):
        self._transport = transport
        self._pool = pool
        # By a host's cache and a dataset.
        self._under_way: dict[tuple[str, DataSource], str] = {}
        self._failed: dict[tuple[str, DataSource], str] = {}
        self._threads = ThreadPoolExecutor(4, "upload")
        self._closed = threading.Event()

    def may_have(self, worker: WorkerHandle, source: DataSource) -> bool:
        """Whether a worker may be tried: its host has the dataset, or has not been found to lack it."""
        return (worker.cache, source) not in self._under_way and self.can_have(worker, source)

    def can_have(self, worker: WorkerHandle, source: DataSource) -> bool:
        """Whether a worker's host has a dataset or may still get it."""
        return (worker.cache, source) not in self._failed

    def uses(self, worker: WorkerHandle) -> bool:
        """Whether a worker is receiving a dataset."""
        return worker.address in self._under_way.values()

    def start(self, order: WorkOrder, worker: WorkerHandle, report: Callable[[Event], None]) -> None:
        """Start to bring an order's dataset to a worker's host; `report` gets what to do at the end."""
        if not self.may_have(worker, order.source):
            return
        self._under_way[worker.cache, order.source] = worker.address
        self._threads.submit(
            lambda: report(partial(self._ended, order.source, worker, self._upload(order, worker)))
        )

    def close(self) -> None:
        """Start nothing more."""
        self._closed.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _upload(self, order: WorkOrder, worker: WorkerHandle) -> str:
        """Send a dataset, or have the host load it from its origin; return what went wrong."""
        name, problem = order.batch.dataset, ""
        for attempt in range(MAX_SENDS):
            if attempt and self._closed.wait(PAUSE_SECONDS):
                return problem
            try:
                restore(order.source, order.protocol)
                self._send(name, order.source, worker)
                return ""
            except Exception as error:
                problem = describe_error(error)
                log.warning("could not send dataset %s to host %s: %s", name, worker.host, problem)
                if worker.address not in self._pool:
                    return problem
        try:
            # As a task, between trainings: a loader is code of a user's and takes any time.
            submit = self._transport.submit
            self._call(submit, worker, math.inf, load_from_origin, order.source, order.protocol)
        except Exception as error:
            return f"{problem}; nor from its origin: {describe_error(error)}"
        return ""

    def _send(self, name: str, source: DataSource, worker: WorkerHandle) -> None:
        started, token, n_bytes = time.perf_counter(), uuid.uuid4().hex, 0
        run = partial(self._call, self._transport.run, worker, STORE_SECONDS)
        for file, piece in pieces(source):
            run(receive_piece, token, file, piece)
            n_bytes += len(piece)
        run(finish_upload, token, source)
        seconds = time.perf_counter() - started
        log.info("sent %s to host %s: %.1f MB in %.1f s", name, worker.host, n_bytes / 1e6, seconds)

    def _ended(self, source: DataSource, worker: WorkerHandle, problem: str) -> list[Outcome]:
        self._under_way.pop((worker.cache, source), None)
        if not problem or worker.address not in self._pool:
            return []  # it is there, or the next worker of the host reports what is lacking
        self._failed[worker.cache, source] = problem
        log.warning("%s is not used for dataset %s: %s", worker.host, source.spec.name, problem)
        if not any(self.can_have(other, source) for other in self._pool.values()):
            raise ExecutionError(f"no host can get dataset {source.spec.name!r}: {problem}")
        return []

    def _call(
        self,
        start: Callable[..., PendingCall],
        worker: WorkerHandle,
        seconds: float,
        function: Function,
        *arguments: Any,
    ) -> None:
        """Call a function on a worker and wait for its end, as long as the worker and this run last."""
        results: queue.SimpleQueue[CallResult] = queue.SimpleQueue()
        call = start(worker.address, results.put, function, *arguments)
        deadline = time.monotonic() + seconds
        while worker.address in self._pool and not self._closed.is_set():
            try:
                result = results.get(timeout=max(0.0, min(CHECK_SECONDS, deadline - time.monotonic())))
            except queue.Empty:
                if time.monotonic() < deadline:
                    continue
                call.cancel()
                raise TimeoutError(f"no answer within {seconds:g} s") from None
            if result.error is not None:
                raise result.error
            if result.status is not CallStatus.RETURNED:
                raise ConnectionError(result.status.value)
            return
        call.cancel()
        raise ConnectionError("its worker left, or the run ended")


def pieces(source: DataSource) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a prepared dataset with the folds of one study, as (name, piece) in order."""
    folds = f"splits-{source.split_hash}.npy"
    for path in sorted(Path(source.folder).iterdir()):
        if path.name.startswith(".") or (path.name.startswith("splits-") and path.name != folds):
            continue
        with open(path, "rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield path.name, piece


def receive_piece(token: str, name: str, piece: bytes) -> None:
    """Append a piece to a file of the upload `token`, on the host that receives it."""
    folder = cache_folder() / f"{_STAGING}{token}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "ab") as file:
        file.write(piece)


def finish_upload(token: str, source: DataSource) -> None:
    """Check what was received and put it where `open_data` finds it.

    Raises
    ------
    DatasetError
        If it is not what the client sent.
    """
    cache = cache_folder()
    staged = cache / f"{_STAGING}{token}"
    folder = cache / Path(source.folder).name
    try:
        dataset, folds = open_copy(staged, source)
        found = fingerprint(dataset.X, dataset.classes, dataset.codes, dataset.metadata)
        if found != source.fingerprint:
            raise DatasetError(f"dataset {source.spec.name!r} was damaged on the way")
        with FileLock(cache / f".{folder.name}.lock"):
            try:
                open_content(folder, source)
                folds.save(folder)
            except DatasetError:  # it is not there, or is damaged
                shutil.rmtree(folder, ignore_errors=True)
                staged.replace(folder)
    except ValueError as error:  # of which a DatasetError is one
        raise DatasetError(str(error)) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        _remove_abandoned(cache)


def _remove_abandoned(cache: Path) -> None:
    for folder in cache.glob(f"{_STAGING}*"):
        try:
            if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # another process was first
