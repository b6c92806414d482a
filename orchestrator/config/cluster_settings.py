"""Checks of the configuration key `cluster`."""

import math
from collections.abc import Mapping
from typing import Any

from orchestrator.config.scalars import wrong_values
from orchestrator.execution.clusters.class_names import class_of_kind
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import ask_classes
from orchestrator.study.cluster_kinds import CLUSTER_KINDS, Security, cluster_kind
from orchestrator.study.settings import Cluster, DeathLimits
from orchestrator.study.targets import TARGET, ResolveError, resolve
from orchestrator.study.text import one_line, shown
from orchestrator.study.tls import is_host, read_tls, user_tls

_BUILT_IN = {class_of_kind(kind): kind for kind in CLUSTER_KINDS}
"""Kinds of the built-in classes. The classes are not imported for the check, because they import Dask."""


def cluster_settings(node: Mapping[str, Any], problems: list[str]) -> Cluster:
    """Return the checked configuration key `cluster`.

    Parameters
    ----------
    node : mapping
        Value of the key.
    problems : list of str
        One message is appended for each problem.
    """
    kind, adapt = _kind(node, problems), node["adapt"]
    node = {**node, "kind": kind}
    scalars = ("workers", "memory", "worker_ttl", "no_workers_timeout", "dashboard", "performance_report")
    problems += wrong_values(node, scalars, "cluster.")
    problems += wrong_values(adapt, ("minimum", "maximum"), "cluster.adapt.")
    if not isinstance(node["hosts"], list) or not all(map(is_host, node["hosts"])):
        problems.append(
            "cluster.hosts must be a list of names or addresses such as cluster.hosts=[a,b], "
            f"found {shown(node['hosts'])}"
        )
        node = {**node, "hosts": []}
    known = cluster_kind(kind)
    security = _security(node, known.joined, problems)
    problems += known.problems(node, security)
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


def _kind(node: Mapping[str, Any], problems: list[str]) -> str:
    """Return the name of a built-in kind, or the dotted path of a custom class.

    Parameters
    ----------
    node : mapping
        Configuration key `cluster`. `kind` takes precedence over `_target_`.
    problems : list of str
        A message is appended if neither can be used.
    """
    kind, target = node["kind"], node.get(TARGET)
    if kind is not None:
        problems += (found := [*wrong_values(node, ["kind"], "cluster.")])
        return Cluster.kind if found else str(kind)
    if target is None:
        return Cluster.kind
    if not isinstance(target, str):
        problems.append(f"cluster.{TARGET} must be the dotted path of a class, found {shown(target)}")
        return Cluster.kind
    if target in _BUILT_IN:
        return _BUILT_IN[target]
    (problem,) = ask_classes(_class_problem, [(target, target)])
    if isinstance(problem, ProcessEnded):
        problem = f"{target} {problem.reason} when it was imported; correct it"
    if problem:
        problems.append(f"cluster.{TARGET}: {problem}")
    return target


def _class_problem(target: str) -> str:
    """Return why a custom class cannot start a cluster; empty if it can.

    Parameters
    ----------
    target : str
        Dotted path of the class.
    """
    try:
        found = resolve(target)
    except ResolveError as error:
        return str(error)
    lacking = [name for name in ("start", "scale", "close") if not callable(getattr(found, name, None))]
    if not isinstance(found, type) or lacking:
        return (
            f"expected a class with the methods start, scale and close, found {target} = {shown(found)}"
            f"{f' without {lacking[0]}' if lacking else ''}"
        )
    return ""


def _security(node: Mapping[str, Any], joins: bool, problems: list[str]) -> Security:
    """Read the certificates of a cluster.

    Parameters
    ----------
    node : mapping
        Configuration key `cluster`.
    joins : bool
        Whether the client joins a running cluster. If no certificates are named, it uses those of the user.
    problems : list of str
        One message is appended for each problem.
    """
    insecure = isinstance(node["tls"], Mapping) and node["tls"].get("insecure") is True
    try:
        # A cluster that is started here uses one certificate for all its processes: that of the scheduler.
        tls, found = read_tls(node["tls"], "client" if joins else "scheduler")
        if joins and tls is None and not found and str(node["address"]).startswith("tls://"):
            tls, found = user_tls("client")
    except (ValueError, RuntimeError) as error:  # a null byte in a path, or the home of an unknown user
        tls, found = None, [f"cluster.tls: {one_line(error)}"]
    problems += found
    return Security(tls, insecure, bool(found))


def _death_limits(node: Any, problems: list[str]) -> DeathLimits:
    """Return the checked configuration key `cluster.give_up`.

    Parameters
    ----------
    node : object
        Value of the key: a mapping with `deaths` and `minutes`.
    problems : list of str
        One message is appended for each problem.
    """
    if not isinstance(node, Mapping):
        problems.append(f"cluster.give_up must be a mapping of deaths and minutes, found {shown(node)}")
        return DeathLimits()
    problems += (found := [*wrong_values(node, ("deaths", "minutes"), "cluster.give_up.")])
    minutes = None if found else node.get("minutes")
    return DeathLimits(node.get("deaths"), 60.0 * minutes if minutes else math.inf)  # type: ignore[arg-type]
