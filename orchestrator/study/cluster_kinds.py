"""The built-in kinds of clusters: where each runs trainings, and what its configuration has to say.

The class of a kind, which starts it, is in the module of its name in `execution/clusters`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from orchestrator.study.tls import Tls, host_and_port, is_loopback


@dataclass(frozen=True, slots=True)
class Security:
    """What is known of the certificates of a cluster; `broken`: there are problems with them already."""

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
                "(made by: svmbench cluster certs DIR); you have none of your own on this host"
            )
    elif security.tls is not None:
        yield f"cluster.tls is set, so expected cluster.address=tls://…, found {address!r}"
    elif not security.insecure:
        yield (
            f"expected cluster.address=tls://…, found {address!r}: without encryption, whoever reaches the "
            "scheduler can run code as its owner and as you; "
            "if that is nobody, say cluster.tls.insecure=true"
        )


def _ssh(node: Mapping[str, Any], security: Security) -> Iterator[str]:
    if len(node["hosts"]) < 2:
        yield "cluster=ssh needs hosts, the scheduler's first: cluster.hosts=[HOST,HOST,…]"
    protected = security.tls or security.insecure or security.broken
    if not protected and not all(map(is_loopback, node["hosts"])):
        yield (
            "cluster=ssh opens ports to its hosts' network, through which anybody could run code there; "
            "make certificates (svmbench cluster certs DIR --host HOST), copy ca.pem, scheduler.pem and "
            "scheduler.key to the same place on every host, and give it with cluster.tls.folder=DIR"
        )


def _kubernetes(node: Mapping[str, Any], security: Security) -> Iterator[str]:
    if not security.insecure and not security.broken:
        yield (
            "cluster=kubernetes cannot hand out certificates; start `svmbench cluster scheduler` and "
            "`worker` in pods that have them, and use cluster=address; or accept with "
            "cluster.tls.insecure=true that whoever reaches the network of the pods can run code there"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterKind:
    """What is known of a kind of cluster without starting one.

    Attributes
    ----------
    in_process : bool
        Whether trainings run in the client's own process.
    on_this_host : bool
        Whether all trainings run on the client's host.
    joined : bool
        Whether the client joins a cluster that runs already, and starts none.
    fixed_size : bool
        Whether the number of workers cannot change during a run.
    counted : bool
        Whether the configuration has to say how many workers there are.
    own_problems : callable
        Yields what else is wrong with a configuration for the kind.
    """

    in_process: bool = False
    on_this_host: bool = False
    joined: bool = False
    fixed_size: bool = False
    counted: bool = False
    own_problems: Problems = lambda node, security: iter(())

    def problems(self, node: Mapping[str, Any], security: Security) -> Iterator[str]:
        """Say what is wrong with a configuration, beside what all kinds share."""
        kind, most = node["kind"], node["adapt"].get("maximum")
        if self.fixed_size and most is not None:
            yield f"cluster.adapt: the number of workers of cluster={kind} is not ours to change"
        if self.counted and node["workers"] is None and most is None:
            yield f"cluster={kind} needs to know how many: cluster.workers=N or cluster.adapt.maximum=N"
        yield from self.own_problems(node, security)


CLUSTER_KINDS: Mapping[str, ClusterKind] = {
    "serial": ClusterKind(in_process=True, on_this_host=True, fixed_size=True),
    "local": ClusterKind(on_this_host=True),
    "address": ClusterKind(joined=True, fixed_size=True, own_problems=_address),
    "slurm": ClusterKind(counted=True),
    "ssh": ClusterKind(fixed_size=True, own_problems=_ssh),
    "kubernetes": ClusterKind(counted=True, own_problems=_kubernetes),
}
"""The built-in kinds by their names."""


def cluster_kind(name: str) -> ClusterKind:
    """Return a kind by the name of a built-in one, or by the dotted path of a custom class."""
    return CLUSTER_KINDS.get(name) or ClusterKind()
