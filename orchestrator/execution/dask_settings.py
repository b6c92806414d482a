"""The configuration of Dask's processes, whoever starts them."""

from collections.abc import Mapping
from typing import Any

import platformdirs

from orchestrator.execution.installation import THREAD_LIMITS
from orchestrator.study.tls import Tls
from orchestrator.training.environment import host_name

ANSWER_SECONDS = 30.0
"""How long a scheduler or its first worker may take to answer."""

CONNECT_SECONDS = 10
"""How long a connection may take, before the reason of its failure is searched for."""

LOOPBACK = "127.0.0.1"

PAGES_ADDRESS = f"{LOOPBACK}:0"
"""Where HTTP is served, which asks for no password: the dashboard, or nothing; Dask listens all the same."""

_PAGES = [
    f"distributed.http.{name}"
    for name in ("scheduler.prometheus", "scheduler.info", "scheduler.json", "health", "statics")
]
"""What a scheduler serves over HTTP besides its dashboard; all of it is read-only."""


def dask_settings(worker_ttl: float, tls: Tls | None = None, dashboard: bool = False) -> dict[str, Any]:
    """Return Dask's settings by dotted name.

    Parameters
    ----------
    worker_ttl : float
        Seconds without a heartbeat after which a worker is given up.
    tls : Tls or None
        Encrypt every connection, and accept no certificate that another authority signed.
    dashboard : bool
        Whether the scheduler serves pages over HTTP, without authentication.
    """
    settings = {
        "distributed.scheduler.worker-saturation": 1.0,
        "distributed.scheduler.worker-ttl": f"{worker_ttl}s",
        # Workers hold no results: there is nothing to spill, and one that needs too much memory is restarted.
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.profile.enabled": False,
        "distributed.nanny.pre-spawn-environ": THREAD_LIMITS,
        "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s",
        # One order a thread leaves nothing to steal and no managed memory; the rest only costs idle time.
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
    """Return the setting for Dask's working folders on this host, which its processes import modules from.

    By default they are made in a folder of /tmp that any user of the host can have made before.
    """
    folder = platformdirs.user_cache_path("svmbench") / f"scratch-{host_name()}"
    return {"temporary-directory": str(folder)}


def _tls_settings(tls: Tls) -> dict[str, Any]:
    files = {
        name: str(path.resolve()) for name, path in vars(tls).items()
    }  # workers run in their own folders
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
    """Return settings as the environment variables from which a Dask process reads them."""
    return {
        "DASK_" + name.replace("-", "_").replace(".", "__").upper(): str(value)
        for name, value in settings.items()
    }
