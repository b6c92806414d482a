"""The configuration key `cluster`."""

import math
from collections.abc import Mapping
from typing import Any

from orchestrator.config.scalars import wrong_values
from orchestrator.study.cluster_kinds import CLUSTER_KINDS, Security
from orchestrator.study.settings import Cluster, DeathLimits
from orchestrator.study.text import one_line, shown
from orchestrator.study.tls import is_host, own_tls, read_tls


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
    known = CLUSTER_KINDS.get(kind) if isinstance(kind, str) else None
    security = _security(node, known is not None and known.joined, problems)
    if known is not None:
        problems += known.problems(node, security)
    return Cluster(
        kind=kind if known else Cluster.kind,
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


def _security(node: Mapping[str, Any], joins: bool, problems: list[str]) -> Security:
    """Read the certificates; a client that joins a running cluster takes the user's own if none are named."""
    insecure = isinstance(node["tls"], Mapping) and node["tls"].get("insecure") is True
    try:
        # A cluster that is started here has one pair on all its sides, and the scheduler's may serve.
        tls, found = read_tls(node["tls"], "client" if joins else "scheduler")
        if joins and tls is None and not found and str(node["address"]).startswith("tls://"):
            tls, found = own_tls("client")
    except (ValueError, RuntimeError) as error:  # a null byte in a path, or the home of nobody
        tls, found = None, [f"cluster.tls: {one_line(error)}"]
    problems += found
    return Security(tls, insecure, bool(found))


def _death_limits(node: Any, problems: list[str]) -> DeathLimits:
    """Return what a training whose workers die may cost."""
    if not isinstance(node, Mapping):
        problems.append(f"cluster.give_up must be a mapping of deaths and minutes, found {shown(node)}")
        return DeathLimits()
    problems += (found := [*wrong_values(node, ("deaths", "minutes"), "cluster.give_up.")])
    minutes = None if found else node.get("minutes")
    return DeathLimits(node.get("deaths"), 60.0 * minutes if minutes else math.inf)  # type: ignore[arg-type]
