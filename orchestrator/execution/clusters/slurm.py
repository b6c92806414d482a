"""Workers as SLURM jobs, by dask-jobqueue; the scheduler runs in this process."""

import os
import shlex
import signal
from collections.abc import Callable
from typing import Any

from distributed import Status

from orchestrator.execution.clusters.deployment import LOOPBACK_LINK, Deployment
from orchestrator.execution.dask_settings import PAGES_ADDRESS, as_environment, dask_settings
from orchestrator.execution.installation import THREAD_LIMITS


class Slurm(Deployment):
    """A cluster of SLURM jobs."""

    target = "dask_jobqueue:SLURMCluster"
    requires = "dask_jobqueue"

    def dask_settings(self) -> dict[str, Any]:
        """Return the settings of Dask to start the cluster with."""
        return super().dask_settings() | {"distributed.dashboard.link": LOOPBACK_LINK}

    def cluster_class(self) -> Any:
        """Import the class that starts the cluster, without the handler of SIGINT that the package installs.

        It would end an interrupted run as if it had succeeded.
        """
        handler = signal.getsignal(signal.SIGINT)
        try:
            return super().cluster_class()
        finally:
            if signal.getsignal(signal.SIGINT) is not handler:
                signal.signal(signal.SIGINT, handler)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the class, without those that encrypt."""
        settings = self.settings
        options = {"shared_temp_directory": os.getcwd()} | dict(
            settings.options
        )  # jobs see it: they start there
        environment = THREAD_LIMITS | as_environment(dask_settings(settings.worker_ttl))
        exports = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
        exports += [  # as `private_scratch`, on the job's host
            "export DASK_TEMPORARY_DIRECTORY=$(mktemp -d)",
            """trap 'rm -rf "$DASK_TEMPORARY_DIRECTORY"' EXIT""",
        ]
        if settings.memory is not None:
            options["memory"] = f"{settings.memory}GB"
        pages = {"dashboard_address": PAGES_ADDRESS, "dashboard": settings.dashboard}
        no_pages = ("--dashboard-address", PAGES_ADDRESS)
        return options | {
            "job_script_prologue": [*exports, *options.get("job_script_prologue", [])],
            "scheduler_options": pages | options.get("scheduler_options", {}),
            "worker_extra_args": [*no_pages, *options.get("worker_extra_args", [])],
        }

    def request_workers(self) -> None:
        """Submit the first jobs."""
        self._cluster.scale(self.least)
        self._cluster.sync(_wait_for_submission, self._cluster)

    def scale(self, demand: Callable[[], int]) -> None:
        """Keep as many jobs as are of use; if their number is fixed, replace those that end."""
        self.adapt(demand)


async def _wait_for_submission(cluster: Any) -> None:
    """Wait until the requested jobs are queued, or raise why one is not, which Dask would only log."""
    await cluster
    for job in cluster.workers.values():
        try:
            await job
        except Exception:
            job.status = Status.failed  # or the cluster would not close
            raise
