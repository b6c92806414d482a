"""Single-threaded processes on this host, reachable from this host only."""

import logging
from typing import Any

from distributed import Client

from orchestrator.execution.clusters.deployment import Deployment
from orchestrator.execution.dask_settings import LOOPBACK, PAGES_ADDRESS
from orchestrator.execution.main_guard import UNGUARDED, unguarded_reported
from orchestrator.execution.quiet_tracker import keep_tracker_quiet
from orchestrator.study.errors import ExecutionError
from orchestrator.training.cores import usable_cores


class Local(Deployment):
    """A cluster of processes on this host."""

    target = "distributed:LocalCluster"

    def dask_settings(self) -> dict[str, Any]:
        """Return the settings of Dask to start the cluster with."""
        return super().dask_settings() | {
            "distributed.worker.preload": ["orchestrator.execution.clusters.local_preload"],
            # Or Dask forgets a worker that is not back so soon after its death, as when it dies again.
            "distributed.deploy.lost-worker-timeout": "1000 days",
        }

    def start(self) -> Client:
        """Start the cluster; a script that has its workers run it again is told so in one sentence."""
        loggers = [
            logging.getLogger(name) for name in ("distributed.nanny", "asyncio", "tornado.application")
        ]
        levels = [logger.level for logger in loggers]
        keep_tracker_quiet()
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
        """Return the keyword arguments of the class, without those that encrypt."""
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
