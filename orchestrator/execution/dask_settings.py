"""Settings of Dask for all processes of a cluster."""

from collections.abc import Mapping
from typing import Any

import platformdirs

from orchestrator.execution.installation import THREAD_LIMITS
from orchestrator.study.tls import Tls
from orchestrator.training.environment import host_name

ANSWER_SECONDS = 30.0
"""Longest time for an answer of a scheduler, or for its first worker to join, in seconds."""

CONNECT_SECONDS = 10
"""Time limit of a connection, after which the reason of its failure is searched, in seconds."""

LOOPBACK = "127.0.0.1"
"""Address of this host that only this host reaches."""

PAGES_ADDRESS = f"{LOOPBACK}:0"
"""Address at which Dask serves HTTP without a password. It listens there even if it serves no pages."""

_PAGES = [
    f"distributed.http.{name}"
    for name in ("scheduler.prometheus", "scheduler.info", "scheduler.json", "health", "statics")
]
"""Modules of read-only pages that a scheduler serves over HTTP besides its dashboard."""


def dask_settings(worker_ttl: float, tls: Tls | None = None, dashboard: bool = False) -> dict[str, Any]:
    """Return Dask's settings by dotted name.

    Parameters
    ----------
    worker_ttl : float
        Time without a heartbeat after which a worker counts as lost, in seconds.
    tls : Tls, optional
        Certificates for encrypting every connection. Certificates of other authorities are refused.
    dashboard : bool, default False
        Whether the scheduler serves pages over HTTP, without authentication.

    Returns
    -------
    dict of str to object
        Values by dotted name.
    """
    settings = {
        "distributed.scheduler.worker-saturation": 1.0,
        "distributed.scheduler.worker-ttl": f"{worker_ttl}s",
        # Workers hold no results to spill. A worker with too much memory is restarted.
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.profile.enabled": False,
        "distributed.nanny.pre-spawn-environ": THREAD_LIMITS,
        "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s",
        # With one order for each thread, there is no work to steal and no memory to manage.
        "distributed.scheduler.work-stealing": False,
        "distributed.scheduler.active-memory-manager.start": False,
        "distributed.scheduler.http.routes": _PAGES if dashboard else [],
        "distributed.worker.http.routes": [],
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.tick.limit": "30s",
        "distributed.admin.system-monitor.interval": "2s",
        "distributed.worker.memory.monitor-interval": "500ms",
    }
    return settings | (_tls_settings(tls) if tls else {})


def private_scratch() -> dict[str, str]:
    """Return the setting of Dask's working folder on this host, from which its processes import modules.

    By default, Dask uses a folder of /tmp that any user of the host can have created before.

    Returns
    -------
    dict of str to str
        The value by dotted name.
    """
    folder = platformdirs.user_cache_path("svmbench") / f"scratch-{host_name()}"
    return {"temporary-directory": str(folder)}


def _tls_settings(tls: Tls) -> dict[str, Any]:
    """Return the settings that encrypt every connection.

    Parameters
    ----------
    tls : Tls
        Paths of the authority's certificate, a certificate and its key.

    Returns
    -------
    dict of str to object
        Values by dotted name. Paths are absolute, because workers have another working folder.
    """
    files = {name: str(path.resolve()) for name, path in vars(tls).items()}
    return {
        "distributed.comm.require-encryption": True,
        "distributed.comm.tls.ca-file": files.pop("ca"),
        **{
            f"distributed.comm.tls.{side}.{name}": path
            for side in ("scheduler", "worker", "client")
            for name, path in files.items()
        },
    }


def as_environment(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return settings as the environment variables from which a Dask process reads them.

    Parameters
    ----------
    settings : mapping of str to object
        Values by dotted name.

    Returns
    -------
    dict of str to str
        Values by name of the variable.
    """
    return {
        "DASK_" + name.replace("-", "_").replace(".", "__").upper(): str(value)
        for name, value in settings.items()
    }
