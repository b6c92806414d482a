"""Which class starts a kind of cluster, and with what arguments."""

import importlib
import importlib.util
import inspect
import os
import shlex
import socket
import sys
import uuid
from typing import Any

from orchestrator.execution import ExecutionError
from orchestrator.execution.affinity import usable_cores
from orchestrator.execution.dask_settings import as_environment, dask_settings
from orchestrator.execution.installation import THREAD_LIMITS
from orchestrator.settings import Cluster

_CLASSES = {
    "local": ("distributed", "LocalCluster"),
    "slurm": ("dask_jobqueue", "SLURMCluster"),
    "ssh": ("distributed", "SSHCluster"),
    "kubernetes": ("dask_kubernetes.operator", "KubeCluster"),
}
_LOOPBACK = "127.0.0.1:0"
"""Where HTTP is served, which asks for no password: the dashboard, if there is one, or nothing at all."""

_NEEDS = {"slurm": "dask_jobqueue", "ssh": "asyncssh", "kubernetes": "dask_kubernetes"}
"""What the extra of the same name installs."""

_PRELOADS = {
    "local": {"worker": "uninterrupted"},
    "ssh": {"scheduler": "leash", "nanny": "leash"},
}
"""Modules of this room that the processes of a kind of cluster import first."""


def cluster_class(kind: str) -> Any:
    """Import the class that starts a kind of cluster.

    Raises
    ------
    ExecutionError
        Naming the extra to install, if it is not there.
    """
    needed = _NEEDS.get(kind)
    if needed and importlib.util.find_spec(needed) is None:
        raise ExecutionError(
            f"cluster={kind} needs {needed.replace('_', '-')}, which is not installed: "
            f"pip install 'svmbench[{kind}]'"
        )
    module, name = _CLASSES[kind]
    return getattr(importlib.import_module(module), name)


def preloads(kind: str) -> dict[str, list[str]]:
    """Return Dask's settings for the modules that the processes of a kind of cluster import first."""
    return {
        f"distributed.{process}.preload": [f"orchestrator.execution.{module}"]
        for process, module in _PRELOADS.get(kind, {}).items()
    }


def cluster_arguments(cluster: Cluster) -> dict[str, Any]:
    """Return the keyword arguments for `cluster_class`, links apart."""
    return _ARGUMENTS[cluster.kind](cluster)


def first_workers(cluster: Cluster) -> int:
    """Return how many workers to ask for at the start, of a cluster that starts none by itself."""
    if cluster.maximum is not None:
        return cluster.minimum
    return cluster.workers or 1


def start_hint(cluster: Cluster) -> str:
    """Return what to add to the reason why a cluster did not start, if that says too little."""
    if cluster.kind != "ssh":
        return ""
    python = cluster.options.get("remote_python") or sys.executable
    return f"; every host needs this svmbench for {python} (cluster.options.remote_python)"


def _local(cluster: Cluster) -> dict[str, Any]:
    return {
        "n_workers": cluster.workers or usable_cores(),
        "threads_per_worker": 1,
        "processes": True,
        "host": "127.0.0.1",
        "dashboard_address": _LOOPBACK,
        "scheduler_kwargs": {"dashboard": cluster.dashboard},
        "memory_limit": "auto" if cluster.memory is None else f"{cluster.memory}GiB",
    } | dict(cluster.options)


def _pages(cluster: Cluster) -> dict[str, Any]:
    return {"dashboard_address": _LOOPBACK, "dashboard": cluster.dashboard}


def _slurm(cluster: Cluster) -> dict[str, Any]:
    options = dict(cluster.options)
    environment = THREAD_LIMITS | as_environment(dask_settings(cluster.worker_ttl))
    exports = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    exports += [  # as `private_scratch`, on the job's host
        "export DASK_TEMPORARY_DIRECTORY=$(mktemp -d)",
        """trap 'rm -rf "$DASK_TEMPORARY_DIRECTORY"' EXIT""",
    ]
    if cluster.memory is not None:
        options["memory"] = f"{cluster.memory}GB"
    options = {"shared_temp_directory": os.getcwd()} | options  # jobs start there, so they see it
    return options | {
        "job_script_prologue": [*exports, *options.get("job_script_prologue", [])],
        "scheduler_options": _pages(cluster) | options.get("scheduler_options", {}),
        "worker_extra_args": ["--dashboard-address", _LOOPBACK, *options.get("worker_extra_args", [])],
    }


def _ssh(cluster: Cluster) -> dict[str, Any]:
    options = dict(cluster.options)
    both: dict[str, Any] = {"dashboard_address": _LOOPBACK}
    if cluster.tls is not None:
        both["protocol"] = "tls"  # a worker knows its own address only by this spelling
    worker = both | {"nthreads": 1, "n_workers": cluster.workers or 1}
    scheduler = both | _pages(cluster) | {"host": _address_of(cluster.hosts[0])}
    if cluster.memory is not None:
        worker["memory_limit"] = f"{cluster.memory}GiB"
    return {
        "hosts": list(cluster.hosts),
        "worker_options": worker | options.pop("worker_options", {}),
        "scheduler_options": scheduler | options.pop("scheduler_options", {}),
        **options,
        "remote_python": [f"{python} -m orchestrator.execution.ssh_host" for python in _pythons(cluster)],
    }


def _pythons(cluster: Cluster) -> list[str]:
    """Return the Python of each host."""
    python = cluster.options.get("remote_python") or sys.executable
    return [python] * len(cluster.hosts) if isinstance(python, str) else list(python)


def _address_of(host: str) -> str | None:
    """Return the address a host has for this one; None, for Dask to choose, if only SSH knows the name."""
    try:
        return socket.gethostbyname(host)
    except OSError:
        return None


def _kubernetes(cluster: Cluster) -> dict[str, Any]:
    cluster_class("kubernetes")  # or say what to install
    describe = importlib.import_module("dask_kubernetes.operator").make_cluster_spec
    environment = THREAD_LIMITS | as_environment(dask_settings(cluster.worker_ttl))
    options: dict[str, Any] = {"worker_command": ["dask", "worker", "--nthreads", "1"], "n_workers": 0}
    if cluster.memory is not None:
        memory = f"{cluster.memory}Gi"
        options["resources"] = {"requests": {"memory": memory}, "limits": {"memory": memory}}
    options |= {"name": f"svmbench-{uuid.uuid4().hex[:8]}"} | dict(cluster.options)
    options["env"] = environment | options.get("env", {})
    described = inspect.signature(describe).parameters.keys() & options.keys()
    resource = describe(**{name: options.pop(name) for name in described})
    for part in ("scheduler", "worker"):
        for container in resource["spec"][part]["spec"]["containers"]:
            container["command"] = ["env"]  # runs the arguments, which an image's entry point would take
    return {"custom_cluster_spec": resource} | options


_ARGUMENTS = {"local": _local, "slurm": _slurm, "ssh": _ssh, "kubernetes": _kubernetes}
