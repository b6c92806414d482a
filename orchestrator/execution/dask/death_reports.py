"""Have a scheduler report every death of a worker with tasks of one client, and of no other.

Dask gives a task to further workers as long as its count of deaths does not exceed the scheduler's setting
`allowed-failures`, which holds for the tasks of all clients. The tasks of this client start with the count
that is allowed, so that the first death is reported.
"""

from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin


class DeathReports(SchedulerPlugin):
    """A scheduler plugin that is there while its client is connected.

    Parameters
    ----------
    client : str
        Identity of the client.
    """

    def __init__(self, client: str):
        self.name = f"death-reports-{client}"
        self._client = client

    def update_graph(self, scheduler: Any, *, client: str, tasks: list[Any], **others: Any) -> None:
        """Set the count of deaths of new tasks to the number that is allowed."""
        if client == self._client:
            for key in tasks:
                scheduler.tasks[key].suspicious = scheduler.allowed_failures

    def remove_client(self, scheduler: Any, client: str) -> None:
        """Remove the plugin with its client, which has disconnected or was killed."""
        if client == self._client:
            scheduler.remove_plugin(self.name)


def report_deaths(client: str, dask_scheduler: Any) -> bool:
    """Add the plugin to a scheduler, from inside; return whether the scheduler shows a dashboard."""
    plugin = DeathReports(client)
    dask_scheduler.add_plugin(plugin, name=plugin.name, idempotent=True)
    return bool(dask_scheduler.http_application.applications)
