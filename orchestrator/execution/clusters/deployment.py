"""What the kinds of clusters have in common when they are started, scaled and closed."""

import contextlib
import importlib.util
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any, ClassVar

from distributed import Adaptive, Client, Security

from orchestrator.execution.dask_settings import ANSWER_SECONDS, LOOPBACK, dask_settings, private_scratch
from orchestrator.study.cluster_kinds import CLUSTER_KINDS
from orchestrator.study.errors import ExecutionError
from orchestrator.study.names import resolve
from orchestrator.study.settings import Cluster
from orchestrator.study.storable import describe_error
from orchestrator.study.text import shown

LOOPBACK_LINK = f"{{scheme}}://{LOOPBACK}:{{port}}/status"
"""Where the dashboard is, if that listens on loopback; Dask would name the scheduler's address."""

SCALE_SECONDS = 5.0
"""How often to compare the number of workers with the work there is."""

SCALE_DOWN_CHECKS = 24
"""How many times in a row workers have to be superfluous before they are closed: two minutes."""


class Deployment:
    """A cluster that is started, through a class of Dask or of one of its extensions, or joined.

    Parameters
    ----------
    settings : Cluster

    Attributes
    ----------
    first_worker_seconds : float
        How long the first worker may take to join.
    """

    target: ClassVar[str]
    """The class that starts the cluster, as module:name."""

    requires: ClassVar[str] = ""
    """The package that the extra of the kind's name installs."""

    def __init__(self, settings: Cluster):
        self.settings = settings
        self.first_worker_seconds = settings.no_workers_timeout
        self._cluster: Any = None
        self._resources = contextlib.ExitStack()

    @property
    def least(self) -> int:
        """The number of workers to start with, and to keep if there is no work."""
        settings = self.settings
        return settings.workers or 1 if settings.maximum is None else settings.minimum

    def dask_settings(self) -> dict[str, Any]:
        """Return the settings of Dask to start the cluster with."""
        settings = self.settings
        return dask_settings(settings.worker_ttl, settings.tls, settings.dashboard) | private_scratch()

    def cluster_class(self) -> Any:
        """Import the class that starts the cluster.

        Raises
        ------
        ExecutionError
            Naming the extra to install, if it is not there.
        """
        if self.requires and importlib.util.find_spec(self.requires) is None:
            kind = self.settings.kind
            raise ExecutionError(
                f"cluster={kind} needs {self.requires.replace('_', '-')}, which is not installed: "
                f"pip install 'svmbench[{kind}]'"
            )
        return resolve_name(self.target)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the class, without those that encrypt."""
        raise NotImplementedError

    def encryption(self) -> dict[str, Any]:
        """Return the keyword arguments of the class by which connections are encrypted."""
        if self.settings.tls is not None:
            security = Security(require_encryption=True)  # the files come from Dask's settings
        else:
            # Other users reach loopback and a shared network: certificates that last as long as the cluster.
            security = Security.temporary()
        return {"security": security, "protocol": "tls://"}

    def start(self) -> Client:
        """Start the cluster and connect to its scheduler.

        Raises
        ------
        ExecutionError
            When it cannot be started.
        """
        try:
            made = self.cluster_class()(**self.arguments() | self.encryption())
            self._cluster = self._resources.enter_context(made)
            self.request_workers()
        except ExecutionError:
            raise
        except Exception as error:  # the libraries of each kind have errors of their own
            message = f"cluster={self.settings.kind} did not start: {describe_error(error)}{self.hint()}"
            raise ExecutionError(message) from error
        return self._resources.enter_context(Client(self._cluster, timeout=ANSWER_SECONDS))

    def request_workers(self) -> None:
        """Request the first workers of a cluster that starts none by itself."""

    def hint(self) -> str:
        """Return what to add to the reason why the cluster did not start, if that says too little."""
        return ""

    def scale(self, demand: Callable[[], int]) -> None:
        """Keep as many workers as `demand` says are of use, if their number may change."""
        if self.settings.maximum is not None:
            self.adapt(demand)

    def adapt(self, demand: Callable[[], int]) -> None:
        """Scale by Dask's own means, which closes workers without work and replaces those that end."""

        class ByDemand(Adaptive):  # Dask does not see most of the work
            async def target(self) -> int:
                return demand()

        self._cluster.adapt(
            Adaptive=ByDemand,
            minimum=self.least,
            maximum=self.settings.maximum or self.least,
            interval=f"{SCALE_SECONDS}s",
            wait_count=SCALE_DOWN_CHECKS,
        )

    def close(self) -> None:
        """Disconnect, and end all that was started."""
        self._resources.close()


class CustomDeployment(Deployment):
    """A cluster that an object of a user's class starts; the object may have no more than three methods.

    Parameters
    ----------
    settings : Cluster
    made : object
        `made.start()` returns a `distributed.Client`. `made.scale(demand)` is called once, with a function
        that returns how many workers are of use now. `made.close()` ends the cluster.
    """

    def __init__(self, settings: Cluster, made: Any):
        super().__init__(settings)
        self._made = made

    def start(self) -> Client:
        """Start the cluster and connect to its scheduler.

        Raises
        ------
        ExecutionError
            When it cannot be started.
        """
        self._resources.callback(self._made.close)
        try:
            client = self._made.start()
        except ExecutionError:
            raise
        except Exception as error:  # of the user's code
            raise ExecutionError(
                f"cluster={self.settings.kind} did not start: {describe_error(error)}"
            ) from error
        if not isinstance(client, Client):
            raise ExecutionError(
                f"expected {self.settings.kind}.start to return a distributed.Client, found {shown(client)}"
            )
        return client

    def scale(self, demand: Callable[[], int]) -> None:
        """Let the object keep as many workers as `demand` says are of use."""
        self._made.scale(demand)


def deployment_of(cluster: Cluster) -> Deployment:
    """Return what starts or joins a cluster: an instance of the class that its kind names.

    The class is called with the settings. A custom one need not derive from `Deployment`.
    """
    kind = cluster.kind
    made = resolve(f"{__package__}.{kind}.{kind.capitalize()}" if kind in CLUSTER_KINDS else kind)(cluster)
    return made if isinstance(made, Deployment) else CustomDeployment(cluster, made)
