"""The configuration key `cluster`."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.config.values import wrong_values
from orchestrator.study.settings import Cluster, DeathLimits
from orchestrator.study.text import one_line, shown
from orchestrator.study.tls import Tls, host_and_port, is_host, is_loopback, own_tls, read_tls


@dataclass(frozen=True)
class _Security:
    """What is known of the certificates of a cluster; `broken`: there are problems with them already."""

    tls: Tls | None
    insecure: bool
    broken: bool


_Problems = Callable[[Mapping[str, Any], _Security], Iterator[str]]


def cluster_settings(node: Mapping[str, Any], problems: list[str]) -> Cluster:
    """Check the configuration key `cluster`; what is wrong is added to `problems`."""
    kind, adapt = node["kind"], node["adapt"]
    scalars = ("workers", "memory", "worker_ttl", "no_workers_timeout", "dashboard", "performance_report")
    problems += wrong_values(node, ("kind", *scalars), "cluster.")
    problems += wrong_values(adapt, ("minimum", "maximum"), "cluster.adapt.")
    if not isinstance(node["hosts"], list) or not all(map(is_host, node["hosts"])):
        problems.append(
            "cluster.hosts must be a list of names or addresses such as cluster.hosts=[a,b], "
            f"found {shown(node['hosts'])}"
        )
        node = {**node, "hosts": []}
    security = _security(node, problems)
    if of_kind := _KIND_PROBLEMS.get(str(kind)):
        problems += of_kind(node, security)
    return Cluster(
        kind=kind,
        workers=node["workers"],
        memory=node["memory"],
        address=node["address"],
        hosts=tuple(node["hosts"]),
        tls=security.tls,
        insecure=security.insecure,
        dashboard=node["dashboard"],
        minimum=adapt.get("minimum") or 1,
        maximum=adapt.get("maximum"),
        worker_ttl=node["worker_ttl"] or 300.0,
        no_workers_timeout=node["no_workers_timeout"] or 600.0,
        give_up=_death_limits(node["give_up"], problems),
        performance_report=node["performance_report"],
        options=dict(node["options"] or {}),
    )


def _security(node: Mapping[str, Any], problems: list[str]) -> _Security:
    """Read the certificates; a client that joins a running cluster takes the user's own if none are named."""
    joins = node["kind"] == "address"
    insecure = isinstance(node["tls"], Mapping) and node["tls"].get("insecure") is True
    try:
        # A cluster that is started here has one pair on all its sides, and the scheduler's may serve.
        tls, found = read_tls(node["tls"], "client" if joins else "scheduler")
        if joins and tls is None and not found and str(node["address"]).startswith("tls://"):
            tls, found = own_tls("client")
    except (ValueError, RuntimeError) as error:  # a null byte in a path, or the home of nobody
        tls, found = None, [f"cluster.tls: {one_line(error)}"]
    problems += found
    return _Security(tls, insecure, bool(found))


def _death_limits(node: Any, problems: list[str]) -> DeathLimits:
    """Return what a training whose workers die may cost."""
    if not isinstance(node, Mapping):
        problems.append(f"cluster.give_up must be a mapping of deaths and minutes, found {shown(node)}")
        return DeathLimits()
    problems += (found := [*wrong_values(node, ("deaths", "minutes"), "cluster.give_up.")])
    minutes = None if found else node.get("minutes")
    return DeathLimits(node.get("deaths"), 60.0 * minutes if minutes else math.inf)  # type: ignore[arg-type]


# -- what each kind asks for ---------------------------------------------------------------------


def _fixed_size(node: Mapping[str, Any], security: _Security) -> Iterator[str]:
    if node["adapt"].get("maximum") is not None:
        yield f"cluster.adapt: the number of workers of cluster={node['kind']} is not ours to change"


def _counted(node: Mapping[str, Any], security: _Security) -> Iterator[str]:
    if node["workers"] is None and node["adapt"].get("maximum") is None:
        yield f"cluster={node['kind']} needs to know how many: cluster.workers=N or cluster.adapt.maximum=N"


def _address(node: Mapping[str, Any], security: _Security) -> Iterator[str]:
    yield from _fixed_size(node, security)
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


def _ssh(node: Mapping[str, Any], security: _Security) -> Iterator[str]:
    yield from _fixed_size(node, security)
    if len(node["hosts"]) < 2:
        yield "cluster=ssh needs hosts, the scheduler's first: cluster.hosts=[HOST,HOST,…]"
    protected = security.tls or security.insecure or security.broken
    if not protected and not all(map(is_loopback, node["hosts"])):
        yield (
            "cluster=ssh opens ports to its hosts' network, through which anybody could run code there; "
            "make certificates (svmbench cluster certs DIR --host HOST), copy ca.pem, scheduler.pem and "
            "scheduler.key to the same place on every host, and give it with cluster.tls.folder=DIR"
        )


def _kubernetes(node: Mapping[str, Any], security: _Security) -> Iterator[str]:
    yield from _counted(node, security)
    if not security.insecure and not security.broken:
        yield (
            "cluster=kubernetes cannot hand out certificates; start `svmbench cluster scheduler` and "
            "`worker` in pods that have them, and use cluster=address; or accept with "
            "cluster.tls.insecure=true that whoever reaches the network of the pods can run code there"
        )


_KIND_PROBLEMS: Mapping[str, _Problems] = {
    "serial": _fixed_size,
    "address": _address,
    "slurm": _counted,
    "ssh": _ssh,
    "kubernetes": _kubernetes,
}
"""What is wrong with a configuration for one kind of cluster, beside what all kinds share."""
