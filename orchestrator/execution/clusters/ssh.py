"""A scheduler and workers on other hosts, started over SSH."""

import socket
import sys
from dataclasses import replace
from typing import Any

from distributed import Security

from orchestrator.execution.clusters.deployment import LOOPBACK_LINK, Deployment
from orchestrator.execution.dask_settings import PAGES_ADDRESS, dask_settings
from orchestrator.study.settings import Cluster


class Ssh(Deployment):
    """A cluster on hosts that SSH reaches; the user's own certificates are made as needed."""

    target = "distributed:SSHCluster"
    requires = "asyncssh"

    def __init__(self, settings: Cluster):
        if settings.tls is None and not settings.insecure:
            from orchestrator.execution.certificates import own_certificates

            settings = replace(settings, tls=own_certificates("scheduler"))
        super().__init__(settings)

    def dask_settings(self) -> dict[str, Any]:
        """Return the settings of Dask to start the cluster with, which the hosts take over."""
        settings = self.settings
        return dask_settings(settings.worker_ttl, settings.tls, settings.dashboard) | {
            "distributed.dashboard.link": f"{LOOPBACK_LINK} on {{host}}"
        }

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the class, without those that encrypt."""
        settings, options = self.settings, dict(self.settings.options)
        both: dict[str, Any] = {"dashboard_address": PAGES_ADDRESS}
        if settings.tls is not None:
            both["protocol"] = "tls"  # a worker knows its own address only by this spelling
        worker = both | {"nthreads": 1, "n_workers": settings.workers or 1}
        if settings.memory is not None:
            worker["memory_limit"] = f"{settings.memory}GiB"
        scheduler = both | {"dashboard": settings.dashboard, "host": _address_of(settings.hosts[0])}
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
        """Return the keyword arguments of the class by which connections are encrypted."""
        return {} if self.settings.tls is None else {"security": Security(require_encryption=True)}

    def hint(self) -> str:
        """Return what to add to the reason why the cluster did not start."""
        return f"; every host needs this svmbench for {self._python()} (cluster.options.remote_python)"

    def _python(self) -> Any:
        """Return the Python of all hosts, or a list of those of each."""
        return self.settings.options.get("remote_python") or sys.executable


def _address_of(host: str) -> str | None:
    """Return the address a host has for this one; None, for Dask to choose, if only SSH knows the name."""
    try:
        return socket.gethostbyname(host)
    except OSError:
        return None
