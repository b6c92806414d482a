"""Start a scheduler and workers on other hosts over SSH."""

import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from distributed import Security

from orchestrator.execution.clusters.deployment import LOOPBACK_LINK, Deployment
from orchestrator.execution.dask_settings import PAGES_ADDRESS, dask_settings
from orchestrator.study.settings import Cluster
from orchestrator.study.tls import is_loopback


class Ssh(Deployment):
    """A cluster on hosts that SSH reaches. Certificates of the user are made at first use.

    Parameters
    ----------
    settings : Cluster
        Configuration of the cluster.
    """

    target = "distributed:SSHCluster"
    requires = "asyncssh"

    def __init__(self, settings: Cluster):
        if settings.tls is None and not settings.insecure:
            from orchestrator.execution.certificates import user_certificates

            settings = replace(settings, tls=user_certificates("scheduler"))
        super().__init__(settings)

    def dask_settings(self) -> dict[str, Any]:
        """Return the settings of Dask with which the cluster starts, also on the hosts.

        Returns
        -------
        dict of str to object
            Values by dotted name.
        """
        settings = self.settings
        return dask_settings(settings.worker_ttl, settings.tls, settings.dashboard) | {
            "distributed.dashboard.link": f"{LOOPBACK_LINK} on {{host}}"
        }

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the class, without those for encryption.

        Returns
        -------
        dict of str to object
            Arguments by name.
        """
        settings, options = self.settings, dict(self.settings.options)
        both: dict[str, Any] = {"dashboard_address": PAGES_ADDRESS}
        if settings.tls is not None:
            both["protocol"] = "tls"  # a worker finds its address only with this spelling
        worker = both | {"nthreads": 1, "n_workers": settings.workers or 1}
        if settings.memory is not None:
            worker["memory_limit"] = f"{settings.memory}GiB"
        scheduler = both | {"dashboard": settings.dashboard, "host": _scheduler_address(settings.hosts)}
        python = self._python()
        pythons = [python] * len(settings.hosts) if isinstance(python, str) else python
        return {
            "hosts": list(settings.hosts),
            **options,
            "worker_options": worker | options.get("worker_options", {}),
            "scheduler_options": scheduler | options.get("scheduler_options", {}),
            "remote_python": [f"{path} -m orchestrator.execution.clusters.ssh_host" for path in pythons],
        }

    def encryption(self) -> dict[str, Any]:
        """Return the keyword arguments of the class that encrypt connections.

        Returns
        -------
        dict of str to object
            Arguments by name.
        """
        return {} if self.settings.tls is None else {"security": Security(require_encryption=True)}

    def hint(self) -> str:
        """Return advice that follows the reason why the cluster did not start.

        Returns
        -------
        str
            Text that starts with punctuation.
        """
        return f". Install this svmbench on every host for {self._python()} (cluster.options.remote_python)"

    def _python(self) -> Any:
        """Return the path of Python on the hosts.

        Returns
        -------
        str or list of str
            The path on all hosts, or a list with one path for each.
        """
        return self.settings.options.get("remote_python") or sys.executable


def _scheduler_address(hosts: Sequence[str]) -> str | None:
    """Return the address on which the scheduler listens, which all hosts can reach.

    The file /etc/hosts of a host often maps its own name to loopback, which other hosts do not reach.

    Parameters
    ----------
    hosts : sequence of str
        Names of the hosts, as SSH knows them. The scheduler runs on the first one.

    Returns
    -------
    str or None
        The address of the first host. None if Dask must choose the address.
    """
    first, *others = map(_address_of, hosts)
    if first is not None and is_loopback(first) and not all(each and is_loopback(each) for each in others):
        return None
    return first


def _address_of(host: str) -> str | None:
    """Return the address of a host, as seen from this one.

    Parameters
    ----------
    host : str
        Name of the host, as SSH knows it.

    Returns
    -------
    str or None
        The address. None if only SSH knows the name.
    """
    try:
        return socket.gethostbyname(host)
    except OSError:
        return None
