"""Send datasets to hosts that lack them: once for each host, in pieces, with a check at the end."""

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
from orchestrator.study.errors import ExecutionError
from orchestrator.study.text import describe_error
from orchestrator.study.trials import DataSource, WorkOrder
from orchestrator.training.environment import cache_folder
from orchestrator.training.open_data import load_from_origin, open_content, open_copy, restore

log = logging.getLogger(__name__)

PIECE_BYTES = 8 << 20
"""Size of a piece, in bytes. Its message delays neither the scheduler nor a worker."""

STORE_SECONDS = 120.0
"""Longest time in which a worker that is training stores a piece or checks a dataset, in seconds."""

PAUSE_SECONDS = 5.0
"""Pause before a dataset is sent to a host again, in seconds."""

MAX_SENDS = 3
"""Number of attempts to send a dataset to a host, before the host loads it from its origin."""

_STALE_SECONDS = 24 * 3600.0
"""Age after which the folder of an unfinished upload is removed, in seconds."""
_STAGING = ".incoming-"
"""Start of the name of the folder that receives an upload."""

Event = Callable[[], list[Outcome]]
"""Function that processes an event and returns the outcomes that follow from it."""


class DatasetUploads:
    """Datasets that are being sent to hosts, and those that a host cannot get.

    Parameters
    ----------
    transport : Transport
        The connection to the cluster.
    pool : WorkerPool
        The workers in use.
    """

    def __init__(self, transport: Transport, pool: WorkerPool):
        self._transport = transport
        self._pool = pool
        # Keys are the token of a host's cache and a dataset.
        self._uploading: dict[tuple[str, DataSource], str] = {}
        self._failed: dict[tuple[str, DataSource], str] = {}
        self._threads = ThreadPoolExecutor(4, "upload")
        self._closed = threading.Event()

    def may_have(self, worker: WorkerHandle, source: DataSource) -> bool:
        """Return whether a worker may receive an order of a dataset now.

        Parameters
        ----------
        worker : WorkerHandle
            Connected worker, with its host and current batches.
        source : DataSource
            The dataset of the order.

        Returns
        -------
        bool
            False while the dataset is sent to the worker's host, and after this has failed.
        """
        return (worker.cache, source) not in self._uploading and self.can_have(worker, source)

    def can_have(self, worker: WorkerHandle, source: DataSource) -> bool:
        """Return whether a worker's host has a dataset or can still receive it.

        Parameters
        ----------
        worker : WorkerHandle
            Connected worker, with its host and current batches.
        source : DataSource
            Name, fingerprint and folder of the prepared dataset.

        Returns
        -------
        bool
            False after an upload to the host has failed.
        """
        return (worker.cache, source) not in self._failed

    def uses(self, worker: WorkerHandle) -> bool:
        """Return whether a worker is receiving a dataset.

        Parameters
        ----------
        worker : WorkerHandle
            Connected worker, with its host and current batches.

        Returns
        -------
        bool
            True during the upload.
        """
        return worker.address in self._uploading.values()

    def start(self, order: WorkOrder, worker: WorkerHandle, report: Callable[[Event], None]) -> None:
        """Start to send an order's dataset to a worker's host.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        worker : WorkerHandle
            A worker of the host, which receives the dataset.
        report : callable
            Function that receives an event at the end of the upload, in another thread.
        """
        if not self.may_have(worker, order.source):
            return
        self._uploading[worker.cache, order.source] = worker.address
        self._threads.submit(
            lambda: report(partial(self._ended, order.source, worker, self._upload(order, worker)))
        )

    def close(self) -> None:
        """Cancel uploads that have not started."""
        self._closed.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _upload(self, order: WorkOrder, worker: WorkerHandle) -> str:
        """Send a dataset, or let the host load it from its origin.

        Parameters
        ----------
        order : WorkOrder
            Batch to run, with its dataset, arm and protocol.
        worker : WorkerHandle
            The worker that receives the dataset.

        Returns
        -------
        str
            Description of the failure, or an empty string.
        """
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
            # A task runs between trainings: a loader is code of the user and may take long.
            submit = self._transport.submit
            self._call(submit, worker, math.inf, load_from_origin, order.source, order.protocol)
        except Exception as error:
            return f"{problem}; loading it from its origin failed, too: {describe_error(error)}"
        return ""

    def _send(self, name: str, source: DataSource, worker: WorkerHandle) -> None:
        """Send all pieces of a dataset and let the worker check them.

        Parameters
        ----------
        name : str
            Name of the dataset.
        source : DataSource
            Name, fingerprint and folder of the prepared dataset.
        worker : WorkerHandle
            The worker that receives the dataset.
        """
        started, token, n_bytes = time.perf_counter(), uuid.uuid4().hex, 0
        run = partial(self._call, self._transport.run, worker, STORE_SECONDS)
        for file, piece in pieces(source):
            run(receive_piece, token, file, piece)
            n_bytes += len(piece)
        run(finish_upload, token, source)
        seconds = time.perf_counter() - started
        log.info("sent %s to host %s: %.1f MB in %.1f s", name, worker.host, n_bytes / 1e6, seconds)

    def _ended(self, source: DataSource, worker: WorkerHandle, problem: str) -> list[Outcome]:
        """Process the end of an upload.

        Parameters
        ----------
        source : DataSource
            Name, fingerprint and folder of the prepared dataset.
        worker : WorkerHandle
            The worker that received the dataset.
        problem : str
            Description of the failure, or an empty string.

        Returns
        -------
        list of Outcome
            Always empty; the type is that of an event.

        Raises
        ------
        ExecutionError
            If no connected host can get the dataset.
        """
        self._uploading.pop((worker.cache, source), None)
        if not problem or worker.address not in self._pool:
            return []  # the upload succeeded, or the next worker of the host will report that it did not
        self._failed[worker.cache, source] = problem
        log.warning("%s is not used for dataset %s: %s", worker.host, source.spec.name, problem)
        if not any(self.can_have(other, source) for other in self._pool.values()):
            raise ExecutionError(f"no host can obtain dataset {source.spec.name!r}: {problem}")
        return []

    def _call(
        self,
        start: Callable[..., PendingCall],
        worker: WorkerHandle,
        seconds: float,
        function: Function,
        *arguments: Any,
    ) -> None:
        """Call a function on a worker and wait for its end, while the worker is connected and the run lasts.

        Parameters
        ----------
        start : callable
            Method of the transport that starts the call.
        worker : WorkerHandle
            Connected worker, with its host and current batches.
        seconds : float
            Time limit, in seconds.
        function : Function
            Called in the worker's process with `arguments`.
        *arguments : object
            Positional arguments of the function.

        Raises
        ------
        TimeoutError
            If there is no answer in time.
        ConnectionError
            If the worker left or died, or the run ended.
        Exception
            The exception that the function raised.
        """
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
        raise ConnectionError("the worker left, or the run ended")


def pieces(source: DataSource) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a prepared dataset with the splits of one study, in pieces.

    Parameters
    ----------
    source : DataSource
        Name, fingerprint and folder of the prepared dataset.

    Yields
    ------
    (str, bytes)
        Name of the file and next piece, in order.
    """
    splits_file = f"splits-{source.split_hash}.npy"
    for path in sorted(Path(source.folder).iterdir()):
        if path.name.startswith(".") or (path.name.startswith("splits-") and path.name != splits_file):
            continue
        with open(path, "rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield path.name, piece


def receive_piece(token: str, name: str, piece: bytes) -> None:
    """Append a piece to a file of an upload, on the host that receives it.

    Parameters
    ----------
    token : str
        Identifier of the upload.
    name : str
        Name of the file.
    piece : bytes
        Next part of the file's content.

    Raises
    ------
    OSError
        If it cannot be written. The pieces before it are removed, because the client starts again.
    """
    folder = cache_folder() / f"{_STAGING}{token}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / name, "ab") as file:
            file.write(piece)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)  # it may fill the disk
        raise


def finish_upload(token: str, source: DataSource) -> None:
    """Check the received files and move them to where `open_data` finds them.

    Parameters
    ----------
    token : str
        Identifier of the upload.
    source : DataSource
        Name, fingerprint and folder of the prepared dataset.

    Raises
    ------
    DatasetError
        If the dataset differs from the one that the client sent.
    """
    cache = cache_folder()
    staged = cache / f"{_STAGING}{token}"
    folder = cache / Path(source.folder).name
    try:
        dataset, folds = open_copy(staged, source)
        found = fingerprint(dataset.X, dataset.classes, dataset.codes, dataset.metadata)
        if found != source.fingerprint:
            raise DatasetError(f"dataset {source.spec.name!r} was damaged during the upload")
        with FileLock(cache / f".{folder.name}.lock"):
            try:
                open_content(folder, source)
                folds.save(folder)
            except DatasetError:  # it is missing or damaged
                shutil.rmtree(folder, ignore_errors=True)
                staged.replace(folder)
    except ValueError as error:  # DatasetError is a subclass
        raise DatasetError(str(error)) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        _remove_abandoned(cache)


def _remove_abandoned(cache: Path) -> None:
    """Remove the folders of uploads that have not changed for `_STALE_SECONDS`.

    Parameters
    ----------
    cache : Path
        Folder of prepared datasets.
    """
    for folder in cache.glob(f"{_STAGING}*"):
        try:
            if time.time() - folder.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # another process has removed it
