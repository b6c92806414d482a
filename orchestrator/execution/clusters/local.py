"""Start single-threaded worker processes on this host, reachable from this host only."""

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from distributed import Client

from orchestrator.execution.clusters.deployment import Deployment
from orchestrator.execution.dask_settings import LOOPBACK, PAGES_ADDRESS
from orchestrator.execution.main_guard import UNGUARDED, forget_script_without_file, unguarded_reported
from orchestrator.study.errors import ExecutionError
from orchestrator.training.cores import usable_cores


class Local(Deployment):
    """A cluster of processes on this host."""

    target = "distributed:LocalCluster"

    def dask_settings(self) -> dict[str, Any]:
        """Return the settings of Dask with which the cluster starts.

        Returns
        -------
        dict of str to object
            Values by dotted name.
        """
        return super().dask_settings() | {
            "distributed.worker.preload": ["orchestrator.execution.clusters.local_preload"],
            # Otherwise Dask forgets a worker that does not return soon after its death, or dies again.
            "distributed.deploy.lost-worker-timeout": "1000 days",
        }

    def start(self) -> Client:
        """Start the cluster; report a script that its workers would run again.

        Returns
        -------
        Client
            The connected client.

        Raises
        ------
        ExecutionError
            If the cluster cannot be started.
        """
        loggers = [
            logging.getLogger(name) for name in ("distributed.nanny", "asyncio", "tornado.application")
        ]
        levels = [logger.level for logger in loggers]
        keep_tracker_quiet()
        forget_script_without_file()
        with unguarded_reported() as report:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL + 1)
            try:
                return super().start()
            except ExecutionError:
                if report.read_text():
                    raise ExecutionError(f"cluster=local did not start: {UNGUARDED}") from None
                raise
            finally:
                for logger, level in zip(loggers, levels, strict=True):
                    logger.setLevel(level)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the class, without those for encryption.

        Returns
        -------
        dict of str to object
            Arguments by name.
        """
        settings = self.settings
        return {
            "n_workers": settings.workers or usable_cores(),
            "threads_per_worker": 1,
            "processes": True,
            "host": LOOPBACK,
            "dashboard_address": PAGES_ADDRESS,
            "scheduler_kwargs": {"dashboard": settings.dashboard},
            "memory_limit": "auto" if settings.memory is None else f"{settings.memory}GiB",
            "silence_logs": logging.ERROR,
        } | dict(settings.options)


def keep_tracker_quiet() -> None:
    """Silence Python's resource tracker, now and after each restart.

    Local workers share the client's tracker. It warns of semaphores that killed workers have left, and
    releases them. Python replaces a tracker that is killed and warns of it. The new tracker writes a
    traceback for each semaphore that it does not know. In both cases the run continues.
    """
    tracker: Any = resource_tracker._resource_tracker
    kind = type(tracker)

    def launch() -> None:
        with _errors_discarded():
            kind._launch(tracker)

    def ensure_running() -> None:
        if tracker._fd is None or not tracker._check_alive():
            with _errors_discarded(), warnings.catch_warnings(action="ignore"):
                kind.ensure_running(tracker)

    if hasattr(kind, "_launch"):  # later versions of Python start the tracker there
        warnings.filterwarnings("ignore", "resource_tracker: process died unexpectedly")
        tracker._launch = launch
    else:
        tracker.ensure_running = ensure_running
    tracker.ensure_running()


@contextmanager
def _errors_discarded() -> Iterator[None]:
    """Discard standard error of this process during the block, and of processes started in it."""
    try:
        errors = os.dup(2)
    except OSError:  # standard error is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(errors, 2)
        os.close(errors)
        os.close(nowhere)
