"""Start workers as pods, by the Dask operator of a Kubernetes cluster."""

import inspect
import logging
import threading
import uuid
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

from orchestrator.execution.clusters import deployment
from orchestrator.execution.dask_settings import as_environment, dask_settings
from orchestrator.execution.installation import THREAD_LIMITS

log = logging.getLogger(__name__)


class Kubernetes(deployment.Deployment):
    """A cluster of pods."""

    target = "dask_kubernetes.operator:KubeCluster"
    requires = "dask_kubernetes"

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the class.

        Returns
        -------
        dict of str to object
            Arguments by name.
        """
        self.cluster_class()  # raises if the package is not installed
        settings, make_spec = self.settings, resolve_name("dask_kubernetes.operator:make_cluster_spec")
        environment = THREAD_LIMITS | as_environment(dask_settings(settings.worker_ttl))
        options: dict[str, Any] = {"worker_command": ["dask", "worker", "--nthreads", "1"], "n_workers": 0}
        if settings.memory is not None:
            memory = f"{settings.memory}Gi"
            options["resources"] = {"requests": {"memory": memory}, "limits": {"memory": memory}}
        options |= {"name": f"svmbench-{uuid.uuid4().hex[:8]}"} | dict(settings.options)
        options["env"] = environment | options.get("env", {})
        specified = inspect.signature(make_spec).parameters.keys() & options.keys()
        resource = make_spec(**{name: options.pop(name) for name in specified})
        for part in ("scheduler", "worker"):
            for container in resource["spec"][part]["spec"]["containers"]:
                container["command"] = ["env"]  # `env` runs the arguments; the image's entry point would not
        return {"custom_cluster_spec": resource} | options

    def encryption(self) -> dict[str, Any]:
        """Return no arguments, because pods cannot receive certificates.

        Returns
        -------
        dict of str to object
            An empty dictionary.
        """
        return {}

    def request_workers(self) -> None:
        """Request the first pods."""
        self._cluster.scale(self.min_workers)

    def scale(self, demand: Callable[[], int]) -> None:
        """Follow the demand for pods, if their number may change.

        Parameters
        ----------
        demand : callable
            Function that returns the number of workers that have work.
        """
        if self.settings.maximum is not None:  # KubeCluster.adapt asks Dask, which does not know the demand
            follower = DemandFollower(self._cluster.scale, demand, self.min_workers, self.settings.maximum)
            self._resources.callback(follower.stop)


class DemandFollower:
    """A thread that scales a cluster with the demand for workers: up at once, down after some time.

    Parameters
    ----------
    scale : callable
        Function that is called with the wanted number of workers.
    demand : callable
        Function that returns the number of workers that have work.
    minimum, maximum : int
        Limits of the number of workers. The cluster has `minimum` of them at the start.
    """

    def __init__(self, scale: Callable[[int], object], demand: Callable[[], int], minimum: int, maximum: int):
        self._scale = scale
        self._demand = demand
        self._minimum, self._maximum = minimum, maximum
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the number of workers does not change any more."""
        self._stopped.set()
        self._thread.join()

    def _follow(self) -> None:
        """Scale the cluster until `stop` is called."""
        size, checks = self._minimum, 0
        while not self._stopped.wait(deployment.SCALE_SECONDS):
            wanted = min(max(self._demand(), self._minimum), self._maximum)
            checks = checks + 1 if wanted < size else 0
            if wanted <= size and checks < deployment.SCALE_DOWN_CHECKS:
                continue
            try:
                self._scale(wanted)
            except Exception as error:  # tried again at the next check
                log.warning("the cluster cannot be scaled to %d workers: %s", wanted, error)
            else:
                size, checks = wanted, 0
