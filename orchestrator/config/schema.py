"""From a composed configuration, in plain containers, to a `Study`; all its problems are told at once."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import platformdirs

from orchestrator.study.errors import ConfigError
from orchestrator.study.names import ResolveError, did_you_mean, is_imported, resolve
from orchestrator.study.settings import LEAST_DEATHS, Cluster, DeathLimits, Paths, Settings
from orchestrator.study.study import Arm, DatasetSpec, Protocol, Study
from orchestrator.study.text import one_line, shown
from orchestrator.study.tls import Tls, is_loopback, own_tls, read_tls
from orchestrator.training.cores import physical_cores, usable_cores

_MOST_FOLDS = 1000
_MOST_TRAININGS = 10_000_000
"""Of a study: each is a row, and planning looks at all of them."""

_STUDY_NAME = re.compile(r"[^\W_][\w.-]{0,99}")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that Windows keeps for devices, whatever follows the dot."""

_CHOICES = {
    "protocol.scaling": ("train", "dataset", "none"),
    "protocol.profile": ("throughput", "timing"),
    "cluster.kind": ("serial", "local", "address", "slurm", "ssh", "kubernetes"),
    "on_error": ("continue", "fail_fast"),
    "retry": ("none", "failed"),
}
_WHOLE = {
    "protocol.outer": (2, _MOST_FOLDS),
    "protocol.inner": (2, _MOST_FOLDS),
    "protocol.seed": (0, 2**64 - 1),
    "cluster.workers": (1, 10**6),
    "cluster.adapt.minimum": (1, 10**6),
    "cluster.adapt.maximum": (1, 10**6),
    "cluster.give_up.deaths": (LEAST_DEATHS, 10**6),
}
"""The least and the most of whole numbers."""
_MAY_BE_NULL = {"cluster.workers", "cluster.adapt.minimum", "cluster.adapt.maximum"}
_POSITIVE = {
    *("protocol.max_seconds", "data_memory", "cluster.give_up.minutes"),
    *("cluster.memory", "cluster.worker_ttl", "cluster.no_workers_timeout"),
}
"""Numbers above 0, or null."""


def check_settings(config: Mapping[str, Any]) -> Settings:
    """Turn a composed configuration into settings that can be run.

    Raises
    ------
    ConfigError
        With every problem found.
    """
    problems: list[str] = []
    name = _study_name(config, problems)
    for key in ("dataset", "solver"):
        if not config[f"{key}s"]:
            problems.append(
                f"no {key}s; choose some with {key}s=[NAME,…] (see: svmbench list {key}s), or an experiment"
            )
    protocol = _protocol(config["protocol"], problems)
    cluster = cluster_settings(config["cluster"], problems)
    problems += _too_few_cores(cluster, protocol)
    problems += _wrong_values(config, ("on_error", "retry", "data_memory"))
    problems += _path_problems(config["paths"])
    nodes = {group: _with_target(group, config[group], problems) for group in ("dataset", "solver")}
    datasets = [_dataset(key, node, problems) for key, node in nodes["dataset"].items()]
    search = config["search"] or {}
    sweep = _sweep(config["sweep"], problems)
    from orchestrator.config.arms import build_arms  # it imports scikit-learn, which not every command needs

    arms, found = build_arms(
        nodes["solver"], sweep, str(search.get("kind")), search.get("space") or {}, protocol.profile
    )
    problems += found
    problems += _size_problem(protocol, arms, len(datasets))
    if {arm.solver for arm in arms} == set(config["solvers"]):
        problems += _unused_axes(sweep, arms)
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))
    study = Study(name, tuple(datasets), tuple(arms), str(search["kind"]), protocol)
    memory = config["data_memory"] and config["data_memory"] * 2**30
    return Settings(study, cluster, folders(config), config["on_error"], config["retry"], memory)


def _path_problems(paths: Mapping[str, Any]) -> Iterator[str]:
    for key, path in paths.items():
        if path is None and key == "cache":
            continue
        try:
            usable = isinstance(path, str) and path.isprintable() and bool(path and Path(path).expanduser())
        except RuntimeError:  # the home of a user who does not exist
            usable = False
        if not usable:
            yield f"paths.{key} must name a folder, found {shown(path)}"


def _size_problem(protocol: Protocol, arms: Sequence[Arm], n_datasets: int) -> Iterator[str]:
    folds = protocol.outer, protocol.inner
    if not all(isinstance(number, int) and 2 <= number <= _MOST_FOLDS for number in folds):
        return
    points = [math.prod(len(values) for values in arm.space.values()) for arm in arms if _has_lists(arm)]
    number = n_datasets * protocol.outer * sum(protocol.inner * each + 1 for each in points)
    if number > _MOST_TRAININGS:
        yield (
            f"the study asks for {number:.3g} trainings; expected at most {_MOST_TRAININGS:,}: "
            "use fewer folds, values, solvers or datasets"
        )


def _has_lists(arm: Arm) -> bool:
    return all(isinstance(values, tuple) for values in arm.space.values())


def folders(config: Mapping[str, Any]) -> Paths:
    """Return the folders a configuration names, wherever the working directory is later."""
    paths = config["paths"]
    cache = paths["cache"] or platformdirs.user_cache_dir("svmbench")
    return Paths(
        *(Path(str(path)).expanduser().absolute() for path in (paths["results"], paths["data"], cache))
    )


def study_name(config: Mapping[str, Any]) -> str:
    """Return the name of the study a configuration speaks of.

    Raises
    ------
    ConfigError
        If it has none, or one that is no file name.
    """
    problems: list[str] = []
    name = _study_name(config, problems)
    if problems:
        raise ConfigError(problems)
    return name


def _study_name(config: Mapping[str, Any], problems: list[str]) -> str:
    given = config["study"]
    name = str(given) if isinstance(given, str) or type(given) is int else ""
    if given is None or given == "":
        problems.append("the study has no name; give it one with study=NAME, or choose an experiment")
    elif not _STUDY_NAME.fullmatch(name) or name.endswith(".") or len(name.encode()) > 200:
        problems.append(
            f"study={shown(given)}: expected letters, digits, '-', '_' and '.', for it names a folder; "
            "a letter or digit first, not a '.' last, at most 100 of them, in quotes if they read as a number"
        )
    elif _DEVICES.fullmatch(name):
        problems.append(f"study={shown(given)} is the name of a device on Windows; choose another")
    return name


def _protocol(node: Mapping[str, Any], problems: list[str]) -> Protocol:
    node = {**asdict(Protocol()), **node}
    keys = ("outer", "inner", "seed", "scaling", "profile", "max_seconds")
    problems += _wrong_values(node, keys, "protocol.")
    also = node["also"] or []
    also = also if isinstance(also, list) else [also]
    from sklearn.metrics import get_scorer_names

    from orchestrator.training.estimators import refused_metric

    scorers = get_scorer_names()
    for key, metric in [("metric", node["metric"]), *(("also", metric) for metric in also)]:
        if metric not in scorers:
            near = did_you_mean(str(metric), scorers)
            problems.append(f"protocol.{key}: scikit-learn has no scorer {shown(metric)}{near}")
        elif measured := refused_metric(metric):
            problems.append(
                f"protocol.{key}: {metric} measures {measured}, not classes; "
                "expected a scorer for classifiers, such as accuracy or balanced_accuracy"
            )
    known = {name: node[name] for name in asdict(Protocol())}
    return Protocol(**{**known, "also": tuple(map(str, also))})


def cluster_settings(node: Mapping[str, Any], problems: list[str]) -> Cluster:
    """Check the configuration key `cluster`; what is wrong is added to `problems`."""
    kind, workers, adapt = node["kind"], node["workers"], node["adapt"]
    problems += _wrong_values(node, ("kind", "workers"), "cluster.")
    problems += _wrong_values(adapt, ("minimum", "maximum"), "cluster.adapt.")
    problems += _wrong_values(node, ("memory", "worker_ttl", "no_workers_timeout"), "cluster.")
    hosts = tuple(map(str, node["hosts"])) if isinstance(node["hosts"], list) else ()
    if not isinstance(node["hosts"], list):
        problems.append(
            f"cluster.hosts must be a list such as cluster.hosts=[a,b], found {shown(node['hosts'])}"
        )
    # A cluster that is started here has one pair on all its sides, and the scheduler's may serve.
    insecure = isinstance(node["tls"], Mapping) and node["tls"].get("insecure") is True
    try:
        tls, found = read_tls(node["tls"], "client" if kind == "address" else "scheduler")
        if kind == "address" and tls is None and not found and str(node["address"]).startswith("tls://"):
            tls, found = own_tls("client")
    except (ValueError, RuntimeError) as error:  # a null byte in a path, or the home of nobody
        tls, found = None, [f"cluster.tls: {one_line(error)}"]
    problems += found
    if kind == "address":
        problems += _address_problems(node["address"], tls, insecure, bool(found))
    if not isinstance(node["dashboard"], bool):
        problems.append(f"cluster.dashboard must be true or false, found {shown(node['dashboard'])}")
    if kind in ("slurm", "kubernetes") and workers is None and adapt.get("maximum") is None:
        problems.append(
            f"cluster={kind} needs to know how many: cluster.workers=N or cluster.adapt.maximum=N"
        )
    if adapt.get("maximum") is not None and kind in ("serial", "address", "ssh"):
        problems.append(f"cluster.adapt: the number of workers of cluster={kind} is not ours to change")
    if kind == "ssh":
        problems += _ssh_problems(hosts, tls, insecure, bool(found))
    if kind == "kubernetes" and not insecure and not found:
        problems.append(
            "cluster=kubernetes cannot hand out certificates; start `svmbench cluster scheduler` and "
            "`worker` in pods that have them, and use cluster=address; or accept with "
            "cluster.tls.insecure=true that whoever reaches the network of the pods can run code there"
        )
    return Cluster(
        kind=kind,
        workers=workers,
        memory=node["memory"],
        address=node["address"],
        hosts=hosts,
        tls=tls,
        insecure=insecure,
        dashboard=bool(node["dashboard"]),
        minimum=adapt.get("minimum") or 1,
        maximum=adapt.get("maximum"),
        worker_ttl=node["worker_ttl"] or 300.0,
        no_workers_timeout=node["no_workers_timeout"] or 600.0,
        give_up=_death_limits(node["give_up"], problems),
        performance_report=bool(node["performance_report"]),
        options=dict(node["options"] or {}),
    )


def _too_few_cores(cluster: Cluster, protocol: Protocol) -> Iterator[str]:
    workers, cores = cluster.workers, usable_cores()
    if cluster.kind != "local" or protocol.profile != "timing" or not isinstance(workers, int):
        return
    if physical_cores() and workers > cores:  # none are told where a process cannot be pinned to a core
        yield (
            f"cluster.workers={workers}: protocol.profile=timing gives each worker a core of its own, and "
            f"this process may use {cores}; lower cluster.workers, or choose protocol.profile=throughput"
        )


def _death_limits(node: Any, problems: list[str]) -> DeathLimits:
    """Return what a training whose workers die may cost."""
    if not isinstance(node, Mapping):
        problems.append(f"cluster.give_up must be a mapping of deaths and minutes, found {shown(node)}")
        return DeathLimits()
    problems += (found := [*_wrong_values(node, ("deaths", "minutes"), "cluster.give_up.")])
    minutes = None if found else node.get("minutes")
    return DeathLimits(node.get("deaths"), 60.0 * minutes if minutes else math.inf)  # type: ignore[arg-type]


def _ssh_problems(hosts: Sequence[str], tls: Tls | None, insecure: bool, broken: bool) -> Iterator[str]:
    if len(hosts) < 2:
        yield "cluster=ssh needs hosts, the scheduler's first: cluster.hosts=[HOST,HOST,…]"
    if tls is None and not insecure and not broken and not all(map(is_loopback, hosts)):
        yield (
            "cluster=ssh opens ports to its hosts' network, through which anybody could run code there; "
            "make certificates (svmbench cluster certs DIR --host HOST), copy ca.pem, scheduler.pem and "
            "scheduler.key to the same place on every host, and give it with cluster.tls.folder=DIR"
        )


def _address_problems(address: Any, tls: Tls | None, insecure: bool, broken: bool) -> Iterator[str]:
    if not isinstance(address, str):
        yield "cluster=address needs the scheduler's address: cluster.address=tls://HOST:PORT"
    elif broken:
        return
    elif address.startswith("tls://"):
        if tls is None:
            yield (
                "cluster.address=tls://… needs the certificates of the cluster: cluster.tls.folder=DIR "
                "(made by: svmbench cluster certs DIR); you have none of your own on this host"
            )
    elif tls is not None:
        yield f"cluster.tls is set, so expected cluster.address=tls://…, found {address!r}"
    elif not insecure:
        yield (
            f"expected cluster.address=tls://…, found {address!r}: without encryption, whoever reaches the "
            "scheduler can run code as its owner and as you; "
            "if that is nobody, say cluster.tls.insecure=true"
        )


def _with_target(group: str, nodes: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """Return the configurations that say what to call."""
    lacking = [name for name, node in nodes.items() if not isinstance(node.get("_target_"), str)]
    problems += [f"{group} {name}: its configuration has no _target_ to say what to call" for name in lacking]
    return {name: node for name, node in nodes.items() if name not in lacking}


def _dataset(name: str, node: Mapping[str, Any], problems: list[str]) -> DatasetSpec:
    target = str(node.get("_target_"))
    try:
        if is_imported(target) and not callable(resolve(target)):
            problems.append(f"dataset {name}: {target} is not a function that returns (X, y)")
    except ResolveError as error:
        problems.append(f"dataset {name}: {error}")
    return DatasetSpec(name, target, {key: value for key, value in node.items() if key != "_target_"})


def _sweep(node: Any, problems: list[str]) -> dict[str, list[Any]]:
    axes = {}
    for param, values in (node or {}).items():
        values = values if isinstance(values, list) else [values]
        if not values:
            problems.append(f"sweep.{param} is empty; expected at least one value")
        axes[str(param)] = values
    return axes


def _unused_axes(sweep: Mapping[str, Any], arms: Sequence[Arm]) -> Iterator[str]:
    for param in sweep:
        if arms and not any(param in arm.sweep for arm in arms):
            yield f"sweep.{param}: no chosen solver has a parameter {param!r}"


def _wrong_values(node: Mapping[str, Any], names: Sequence[str], prefix: str = "") -> Iterator[str]:
    """Say of each value that is not what its key takes what that is."""
    for name in names:
        key, value = f"{prefix}{name}", node.get(name)
        if expected := _expected(key, value):
            near = did_you_mean(str(value), _CHOICES.get(key, ()))
            yield f"{key} must be {expected}, found {shown(value)}{near}"


def _expected(key: str, value: Any) -> str:
    """Return what a key takes; nothing if its value is that."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if key in _CHOICES:
        return "" if value in _CHOICES[key] else f"one of {', '.join(_CHOICES[key])}"
    if value is None and key in (_POSITIVE | _MAY_BE_NULL):
        return ""
    if key in _POSITIVE:
        return "" if number and 0 < value < 1e12 else "a number above 0, or null"
    least, most = _WHOLE[key]
    if not number or not isinstance(value, int) or value < least:
        return f"a whole number of at least {least}"
    return f"a whole number of at most {most}" if value > most else ""
