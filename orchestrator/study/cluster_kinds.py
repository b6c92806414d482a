"""Built-in kinds of clusters: where each kind runs trainings, and which settings it requires.

The class that starts a kind is in the module of the same name in `execution/clusters`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from orchestrator.study.text import shown
from orchestrator.study.tls import Tls, host_and_port, is_loopback


@dataclass(frozen=True, slots=True)
class Security:
    """Certificates of a cluster, as configured.

    Attributes
    ----------
    tls : Tls or None
        Certificates to use, or None.
    insecure : bool
        Whether the user accepts connections without encryption.
    broken : bool
        Whether problems with the certificates have been reported already.
    """

    tls: Tls | None
    insecure: bool
    broken: bool


Problems: TypeAlias = Callable[[Mapping[str, Any], Security], Iterator[str]]


def _address(node: Mapping[str, Any], security: Security) -> Iterator[str]:
    address = node["address"]
    if not isinstance(address, str):
        yield "cluster=address needs the scheduler's address: cluster.address=tls://HOST:PORT"
    elif None in host_and_port(address):
        yield f"expected cluster.address=tls://HOST:PORT, found {address!r}"
    elif security.broken:
        return
    elif address.startswith("tls://"):
        if security.tls is None:
            yield (
                "cluster.address=tls://… needs the certificates of the cluster: cluster.tls.folder=DIR "
                "(made by: svmbench cluster certs DIR); this host has no certificates of yours"
            )
    elif security.tls is not None:
        yield f"cluster.tls is set, so expected cluster.address=tls://…, found {address!r}"
    elif not security.insecure:
        yield (
            f"expected cluster.address=tls://…, found {address!r}: without encryption, everybody who reaches "
            "the scheduler can run code as its owner and as you; "
            "if nobody else reaches it, set cluster.tls.insecure=true"
        )


def _ssh(node: Mapping[str, Any], security: Security) -> Iterator[str]:
    if len(node["hosts"]) < 2:
        yield (
            f"cluster.hosts={shown(list(node['hosts']))}: cluster=ssh expects two or more hosts, because the "
            "scheduler runs on the first one. Set cluster.hosts=[HOST,HOST,…], or cluster=local"
        )
    protected = security.tls or security.insecure or security.broken
    if not protected and not all(map(is_loopback, node["hosts"])):
        yield (
            "cluster=ssh opens ports to the network of its hosts, through which anybody could run code "
            "there; make certificates (svmbench cluster certs DIR --host HOST), copy ca.pem, scheduler.pem "
            "and scheduler.key to the same folder on every host, and set cluster.tls.folder=DIR"
        )


def _kubernetes(node: Mapping[str, Any], security: Security) -> Iterator[str]:
    if not security.insecure and not security.broken:
        yield (
            "cluster=kubernetes cannot hand out certificates; start `svmbench cluster scheduler` and "
            "`worker` in pods that have certificates, and use cluster=address; or accept with "
            "cluster.tls.insecure=true that everybody who reaches the network of the pods can run code there"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterKind:
    """Properties of a kind of cluster that are known before it is started.

    Attributes
    ----------
    in_process : bool
        Whether trainings run in the client's process. Default False.
    on_this_host : bool
        Whether all trainings run on the client's host. Default False.
    joined : bool
        Whether the client joins a running cluster instead of starting one. Default False.
    fixed_size : bool
        Whether the number of workers cannot change during a run. Default False.
    counted : bool
        Whether the configuration must set the number of workers. Default False.
    further_problems : callable
        Takes the configuration and a `Security`, and yields one message for each problem that is specific to
        the kind. By default it yields none.
    """

    in_process: bool = False
    on_this_host: bool = False
    joined: bool = False
    fixed_size: bool = False
    counted: bool = False
    further_problems: Problems = lambda node, security: iter(())

    def problems(self, node: Mapping[str, Any], security: Security) -> Iterator[str]:
        """Yield the problems of a configuration that depend on the kind of cluster.

        Parameters
        ----------
        node : mapping
            Configuration key `cluster`.
        security : Security
            Certificates of the cluster.

        Yields
        ------
        str
            One message for each problem.
        """
        kind, most = node["kind"], node["adapt"].get("maximum")
        if self.fixed_size and most is not None:
            yield (
                f"cluster.adapt.maximum={most}: the number of workers of cluster={kind} cannot change during "
                "a run; leave cluster.adapt out"
            )
        if self.counted and node["workers"] is None and most is None:
            yield (
                f"cluster={kind} needs a number of workers: set cluster.workers=N or cluster.adapt.maximum=N"
            )
        yield from self.further_problems(node, security)


CLUSTER_KINDS: Mapping[str, ClusterKind] = {
    "serial": ClusterKind(in_process=True, on_this_host=True, fixed_size=True),
    "local": ClusterKind(on_this_host=True),
    "address": ClusterKind(joined=True, fixed_size=True, further_problems=_address),
    "slurm": ClusterKind(counted=True),
    "ssh": ClusterKind(fixed_size=True, further_problems=_ssh),
    "kubernetes": ClusterKind(counted=True, further_problems=_kubernetes),
}
"""Built-in kinds of clusters, by name."""


def cluster_kind(name: str) -> ClusterKind:
    """Return the properties of a kind of cluster.

    Parameters
    ----------
    name : str
        Name of a built-in kind, or dotted path of a custom class, which has the default properties.
    """
    return CLUSTER_KINDS.get(name) or ClusterKind()
