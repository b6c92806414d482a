"""Start workers as SLURM jobs by dask-jobqueue; the scheduler runs in this process."""

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
        """Return the settings of Dask with which the cluster starts.

        Returns
        -------
        dict of str to object
            Values by dotted name.
        """
        return super().dask_settings() | {"distributed.dashboard.link": LOOPBACK_LINK}

    def cluster_class(self) -> Any:
        """Import the class that starts the cluster, without the package's handler of SIGINT.

        With that handler, an interrupted run would end as if it had succeeded.

        Returns
        -------
        object
            Class that the dotted name denotes.
        """
        handler = signal.getsignal(signal.SIGINT)
        try:
            return super().cluster_class()
        finally:
            if signal.getsignal(signal.SIGINT) is not handler:
                signal.signal(signal.SIGINT, handler)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the class, without those for encryption.

        Returns
        -------
        dict of str to object
            Arguments by name.
        """
        settings = self.settings
        options = {"shared_temp_directory": os.getcwd()} | dict(
            settings.options
        )  # jobs start in this folder, so they can access it
        environment = THREAD_LIMITS | as_environment(dask_settings(settings.worker_ttl))
        exports = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
        exports += [  # corresponds to `private_scratch`, on the job's host
            "export DASK_TEMPORARY_DIRECTORY=$(mktemp -d)",
            """trap 'rm -rf "$DASK_TEMPORARY_DIRECTORY"' EXIT""",
        ]
        if settings.memory is not None:
            options["memory"] = f"{settings.memory}GiB"
        pages = {"dashboard_address": PAGES_ADDRESS, "dashboard": settings.dashboard}
        no_pages = ("--dashboard-address", PAGES_ADDRESS)
        return options | {
            "job_script_prologue": [*exports, *options.get("job_script_prologue", [])],
            "scheduler_options": pages | options.get("scheduler_options", {}),
            "worker_extra_args": [*no_pages, *options.get("worker_extra_args", [])],
        }

    def request_workers(self) -> None:
        """Submit the first jobs."""
        self._cluster.scale(self.min_workers)
        self._cluster.sync(_wait_for_submission, self._cluster)

    def scale(self, demand: Callable[[], int]) -> None:
        """Follow the demand for jobs; if their number is fixed, replace jobs that end.

        Parameters
        ----------
        demand : callable
            Function that returns the number of workers that have work.
        """
        self.adapt(demand)

    def close(self) -> None:
        """Disconnect, end all jobs, and delete the files of their certificates.

        dask-jobqueue deletes these files only when the cluster is collected as garbage, which a process that
        ends may never do.
        """
        super().close()
        for part in ("ca_file", "cert", "key"):
            file = getattr(self._cluster, f"_job_{part}", None)
            if file is not None:
                file.close()


async def _wait_for_submission(cluster: Any) -> None:
    """Wait until the requested jobs are queued; raise the exception of a failed one, which Dask only logs.

    Parameters
    ----------
    cluster : object
        Cluster of dask-jobqueue whose jobs were requested.
    """
    await cluster
    for job in cluster.workers.values():
        try:
            await job
        except Exception:
            job.status = Status.failed  # otherwise the cluster would not close
            raise
