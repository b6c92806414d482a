"""Start, scale and close a cluster: what all kinds have in common."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterable
from pkgutil import resolve_name
from typing import Any, ClassVar

from distributed import Adaptive, Client, Security, SpecCluster

from orchestrator.execution.clusters.class_names import class_of_kind
from orchestrator.execution.dask_settings import ANSWER_SECONDS, LOOPBACK, dask_settings, private_scratch
from orchestrator.study.cluster_kinds import CLUSTER_KINDS
from orchestrator.study.errors import ExecutionError
from orchestrator.study.settings import Cluster
from orchestrator.study.targets import resolve
from orchestrator.study.text import describe_error, represented

LOOPBACK_LINK = f"{{scheme}}://{LOOPBACK}:{{port}}/status"
"""Link to a dashboard that listens on loopback. Dask would insert the scheduler's address."""

SCALE_SECONDS = 5.0
"""Time between two comparisons of the number of workers with the available work, in seconds."""

SCALE_DOWN_CHECKS = 24
"""Number of consecutive comparisons with too many workers before some are closed, which is two minutes."""

CLOSE_SECONDS = 4.0
"""Longest time to close a cluster whose start was interrupted, in seconds."""


class Deployment:
    """A cluster that is started by a class of Dask or of one of its extensions, or that is joined.

    Parameters
    ----------
    settings : Cluster
        Configuration of the cluster.

    Attributes
    ----------
    settings : Cluster
        Configuration of the cluster.
    first_worker_seconds : float
        Longest time until the first worker joins, in seconds.
    target : ClassVar[str]
        Class that starts the cluster, as `module:name`.
    requires : ClassVar[str]
        Package that the extra of the same name as the kind installs.
    """

    target: ClassVar[str]
    """Class that starts the cluster, as `module:name`."""

    requires: ClassVar[str] = ""
    """Package that the extra of the same name as the kind installs; empty if none is needed."""

    def __init__(self, settings: Cluster):
        self.settings = settings
        self.first_worker_seconds = settings.no_workers_timeout
        self._cluster: Any = None
        self._resources = contextlib.ExitStack()

    @property
    def min_workers(self) -> int:
        """The number of workers to start with, which is kept when there is no work."""
        settings = self.settings
        return settings.workers or 1 if settings.maximum is None else settings.minimum

    def dask_settings(self) -> dict[str, Any]:
        """Return the settings of Dask with which the cluster starts.

        Returns
        -------
        dict of str to object
            Values by dotted name.
        """
        settings = self.settings
        return dask_settings(settings.worker_ttl, settings.tls, settings.dashboard) | private_scratch()

    def cluster_class(self) -> Any:
        """Import the class that starts the cluster.

        Returns
        -------
        object
            Class that the dotted name denotes.

        Raises
        ------
        ExecutionError
            If its package is not installed. The error names the extra to install.
        """
        if self.requires and importlib.util.find_spec(self.requires) is None:
            kind = self.settings.kind
            raise ExecutionError(
                f"cluster={kind} needs {self.requires.replace('_', '-')}, which is not installed. "
                f"Run: pip install 'svmbench[{kind}]'"
            )
        return resolve_name(self.target)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of the class, without those for encryption.

        Returns
        -------
        dict of str to object
            Arguments by name.
        """
        raise NotImplementedError

    def encryption(self) -> dict[str, Any]:
        """Return the keyword arguments of the class that encrypt connections.

        Returns
        -------
        dict of str to object
            Arguments by name.
        """
        if self.settings.tls is not None:
            security = Security(require_encryption=True)  # the files come from Dask's settings
        else:
            # Other users reach loopback and shared networks, so temporary certificates protect the cluster.
            security = Security.temporary()
        return {"security": security, "protocol": "tls://"}

    def start(self) -> Client:
        """Start the cluster and connect to its scheduler.

        Returns
        -------
        Client
            The connected client.

        Raises
        ------
        ExecutionError
            If the cluster cannot be started.
        """
        others = set(SpecCluster._instances)
        try:
            made = self.cluster_class()(**self.arguments() | self.encryption())
            self._cluster = self._resources.enter_context(made)
            self.request_workers()
        except ExecutionError:
            raise
        except KeyboardInterrupt:
            _abandon(set(SpecCluster._instances) - others)
            raise
        except Exception as error:  # each library has its own exceptions
            message = f"cluster={self.settings.kind} did not start: {describe_error(error)}{self.hint()}"
            raise ExecutionError(message) from error
        return self._resources.enter_context(Client(self._cluster, timeout=ANSWER_SECONDS))

    def request_workers(self) -> None:
        """Request the first workers of a cluster that starts none by itself."""

    def hint(self) -> str:
        """Return advice that follows the reason why the cluster did not start.

        Returns
        -------
        str
            Text that starts with punctuation; by default, an empty string.
        """
        return ""

    def scale(self, demand: Callable[[], int]) -> None:
        """Follow the demand for workers, if their number may change.

        Parameters
        ----------
        demand : callable
            Function that returns the number of workers that have work.
        """
        if self.settings.maximum is not None:
            self.adapt(demand)

    def adapt(self, demand: Callable[[], int]) -> None:
        """Scale by Dask's `Adaptive`, which closes workers without work and replaces workers that end.

        Parameters
        ----------
        demand : callable
            Function that returns the number of workers that have work.
        """

        class ByDemand(Adaptive):  # Dask knows only the few batches that were sent
            async def target(self) -> int:
                return demand()

        self._cluster.adapt(
            Adaptive=ByDemand,
            minimum=self.min_workers,
            maximum=self.settings.maximum or self.min_workers,
            interval=f"{SCALE_SECONDS}s",
            wait_count=SCALE_DOWN_CHECKS,
        )

    def close(self) -> None:
        """Disconnect, and end everything that was started."""
        self._resources.close()


def _abandon(clusters: Iterable[SpecCluster]) -> None:
    """Close clusters whose start was interrupted.

    Dask cannot close a cluster while its workers start. Its attempt at the end of the process would write a
    traceback, so it is prevented. The workers end with this process.

    Parameters
    ----------
    clusters : iterable of SpecCluster
        Clusters that are not needed.
    """
    for cluster in clusters:
        with contextlib.suppress(Exception):
            cluster.close(timeout=CLOSE_SECONDS)
        cluster.shutdown_on_close = False


class CustomDeployment(Deployment):
    """A cluster that an object of a user-defined class starts.

    Parameters
    ----------
    settings : Cluster
        Configuration of the cluster.
    made : object
        Object with three methods. `made.start()` returns a `distributed.Client`. `made.scale(demand)` is
        called once, with a function that returns the number of workers that have work. `made.close()` ends
        the cluster.
    """

    def __init__(self, settings: Cluster, made: Any):
        super().__init__(settings)
        self._made = made

    def start(self) -> Client:
        """Start the cluster and connect to its scheduler.

        Returns
        -------
        Client
            The connected client.

        Raises
        ------
        ExecutionError
            If the cluster cannot be started.
        """
        self._resources.callback(self._made.close)
        try:
            client = self._made.start()
        except ExecutionError:
            raise
        except Exception as error:  # code of the user
            raise ExecutionError(
                f"cluster={self.settings.kind} did not start: {describe_error(error)}"
            ) from error
        if not isinstance(client, Client):
            raise ExecutionError(
                f"expected {self.settings.kind}.start to return a distributed.Client, found "
                f"{represented(client)}"
            )
        return client

    def scale(self, demand: Callable[[], int]) -> None:
        """Pass the demand for workers to the user's object.

        Parameters
        ----------
        demand : callable
            Function that returns the number of workers that have work.
        """
        self._made.scale(demand)


def deployment_of(cluster: Cluster) -> Deployment:
    """Return the object that starts or joins a cluster.

    The class that the kind names is called with the settings. A user-defined class need not derive from
    `Deployment`.

    Parameters
    ----------
    cluster : Cluster
        Configuration of the cluster.

    Returns
    -------
    Deployment
        Deployment that is not started yet.
    """
    kind = cluster.kind
    made = resolve(class_of_kind(kind) if kind in CLUSTER_KINDS else kind)(cluster)
    return made if isinstance(made, Deployment) else CustomDeployment(cluster, made)
