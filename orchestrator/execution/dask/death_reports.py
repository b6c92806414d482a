"""Let a scheduler report every death of a worker that runs tasks of one client.

Dask retries a task on further workers until its count of deaths exceeds the setting `allowed-failures`, which
applies to all clients. The tasks of this client start with the allowed count, so that the first death is
reported.
"""

from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin


class DeathReports(SchedulerPlugin):
    """A scheduler plugin that exists while its client is connected.

    Parameters
    ----------
    client : str
        Identifier of the client.
    """

    def __init__(self, client: str):
        self.name = f"death-reports-{client}"
        self._client = client

    def update_graph(self, scheduler: Any, *, client: str, tasks: list[Any], **others: Any) -> None:
        """Set the count of deaths of new tasks to the allowed number.

        Parameters
        ----------
        scheduler : object
            Dask's scheduler.
        client : str
            Identifier of the client that has submitted the tasks.
        tasks : list of object
            Keys of the new tasks.
        **others : object
            Further arguments of Dask, which are not used.
        """
        if client == self._client:
            for key in tasks:
                scheduler.tasks[key].suspicious = scheduler.allowed_failures

    def remove_client(self, scheduler: Any, client: str) -> None:
        """Remove the plugin after its client has disconnected or was killed.

        Parameters
        ----------
        scheduler : object
            Dask's scheduler.
        client : str
            Identifier of the client that has left.
        """
        if client == self._client:
            scheduler.remove_plugin(self.name)


def report_deaths(client: str, dask_scheduler: Any) -> bool:
    """Add the plugin to the scheduler in whose process this runs.

    Parameters
    ----------
    client : str
        Identifier of the client.
    dask_scheduler : object
        Dask's scheduler, which Dask passes by this name.

    Returns
    -------
    bool
        Whether the scheduler has a dashboard.
    """
    plugin = DeathReports(client)
    dask_scheduler.add_plugin(plugin, name=plugin.name, idempotent=True)
    return bool(dask_scheduler.http_application.applications)
