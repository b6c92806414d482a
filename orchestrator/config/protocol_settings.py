"""Checks of the configuration key `protocol`: how rows are split, and by which metrics models are scored."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from orchestrator.config.preparation_settings import protocol_preparation
from orchestrator.config.scalars import wrong_values
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import ask_classes, most_doubtful
from orchestrator.resampling.splitters import unusable_splitter
from orchestrator.study.preparation import AUTO
from orchestrator.study.study import Metric, Protocol
from orchestrator.study.targets import TARGET, targets_in
from orchestrator.study.text import shown
from orchestrator.study.values import canonical_json
from orchestrator.training.metrics import identified, metric_targets, read_metric, unusable_metric


def read_protocol(node: Mapping[str, Any], problems: list[str], has_inner_splits: bool = True) -> Protocol:
    """Return the protocol that a configuration declares.

    Parameters
    ----------
    node : mapping
        Value of the key. Missing keys have the defaults of `Protocol`.
    problems : list of str
        One message is appended for each value that cannot be used.
    has_inner_splits : bool
        Whether the search uses inner splits. Default True. Otherwise the key `inner` is not read, and the
        protocol has None instead.

    Returns
    -------
    Protocol
        Protocol, which is valid if no problem was appended.
    """
    seeded = with_seeds_of_repeats(node, problems)
    node = {**Protocol().to_dict(), "scaling": None, "predictions": "none", **seeded}
    if not has_inner_splits:
        node["inner"] = Protocol.inner
    problems += wrong_values(node, ("scaling", "profile", "max_seconds", "predictions"), "protocol.")
    problems += resampling_problems(node)
    metric, also, custom = read_metrics(node["metric"], node["also"], problems)
    preparation = protocol_preparation(node, problems)
    known = {name: node[name] for name in Protocol().to_dict()} | {"scaling": "train"}
    protocol = Protocol.from_dict({**known, "metric": metric, "also": also})
    protocol = replace(protocol, custom_metrics=custom)
    if not has_inner_splits:
        protocol = replace(protocol, inner=None)
    if preparation.name == AUTO:
        return replace(protocol, prepare=preparation)
    return protocol.for_preparation(preparation)


def with_seeds_of_repeats(node: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """Return the configuration with `repeats: R` replaced by `seed: [0, …, R-1]`, which it is short for.

    Parameters
    ----------
    node : mapping
        Value of the key `protocol`.
    problems : list of str
        One message is appended if `repeats` cannot be used, or `seed` has another value than its default.
    """
    others = {name: value for name, value in node.items() if name != "repeats"}
    repeats = node.get("repeats")
    if repeats is None:
        return others
    if wrong := list(wrong_values(node, ["repeats"], "protocol.")):
        problems += wrong
        return others
    seeds, given = list(range(repeats)), others.get("seed", Protocol.seed)
    if given not in (Protocol.seed, seeds):
        problems.append(
            f"protocol.seed={shown(given)} and protocol.repeats={repeats} are both given; repeats={repeats} "
            f"stands for protocol.seed={shown(seeds)}. Give only one of them"
        )
    return others | {"seed": seeds if repeats > 1 else seeds[0]}


def resampling_problems(protocol: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each of `outer`, `inner` and `seed` that cannot be used.

    Parameters
    ----------
    protocol : mapping
        Configuration key `protocol`, complete.
    """
    for level in ("outer", "inner"):
        if isinstance(protocol[level], Mapping):
            if problem := _splitter_problem(protocol[level]):
                yield f"protocol.{level}: {problem}"
        else:
            yield from wrong_values(protocol, [level], "protocol.")
    seeds = protocol["seed"]
    for seed in seeds if isinstance(seeds, list) and seeds else [seeds]:
        yield from wrong_values({"seed": seed}, ["seed"], "protocol.")
    if isinstance(seeds, list) and len(set(map(shown, seeds))) < len(seeds):
        yield f"protocol.seed={shown(seeds)} repeats a seed; use distinct seeds"


def _splitter_problem(scheme: Mapping[str, Any]) -> str:
    if not isinstance(scheme.get(TARGET), str):
        return f"expected a whole number, or a mapping with the {TARGET} of a splitter, found {shown(scheme)}"
    try:
        canonical_json(scheme)
    except TypeError as error:
        return str(error)
    paths = list(targets_in(scheme))
    path = most_doubtful(paths)
    (found,) = ask_classes(unusable_splitter, [(path, scheme)])
    if isinstance(found, ProcessEnded):
        return f"{path} {found.reason} when it was imported and called; correct it"
    return found


def read_metrics(
    metric: Any, also: Any, problems: list[str]
) -> tuple[str, tuple[str, ...], tuple[Metric, ...]]:
    """Check the configured metrics.

    Custom metrics are imported here only if a child process could import them unharmed.

    Parameters
    ----------
    metric : object
        Configured value of `protocol.metric`.
    also : object
        Configured value of `protocol.also`.
    problems : list of str
        One message is appended for each metric that does not exist, cannot be imported or has the name of
        another one.

    Returns
    -------
    metric : str
        Name of the metric that selects candidates.
    also : tuple of str
        Names of the further metrics that are recorded.
    custom : tuple of Metric
        Custom metrics among them.
    """
    names: dict[str, list[str]] = {"metric": [], "also": []}
    custom: dict[str, tuple[str, Metric]] = {}
    beside = also if isinstance(also, list) else [also] if also else []
    for key, node in [("metric", metric), *(("also", node) for node in beside)]:
        try:
            found = read_metric(node)
        except ValueError as error:
            problems.append(f"protocol.{key}: {error}")
            continue
        if isinstance(found, str):
            names[key].append(found)
            continue
        names[key].append(found.name)
        first = custom.setdefault(found.name, (key, found))[1]
        if first != found:
            problems.append(
                f"protocol.{key}: two metrics are called {found.name}, {first.definition} and "
                f"{found.definition}; give one of them another `name`"
            )
    selects = names["metric"][0] if names["metric"] else "accuracy"
    return selects, tuple(names["also"]), tuple(_usable(list(custom.values()), problems))


def _usable(custom: list[tuple[str, Metric]], problems: list[str]) -> list[Metric]:
    """Return the custom metrics that can be imported, with their identities.

    Parameters
    ----------
    custom : list of (str, Metric)
        Custom metrics, each after its key, "metric" or "also".
    problems : list of str
        One message is appended for each metric that cannot be imported.
    """
    questions = [(most_doubtful(metric_targets(metric)), metric) for _, metric in custom]
    usable = []
    for (key, metric), found in zip(custom, ask_classes(unusable_metric, questions), strict=True):
        if isinstance(found, ProcessEnded):
            found = f"importing {metric.definition} {found.reason}; correct it"
        if found:
            problems.append(f"protocol.{key}: {found}")
        else:
            usable.append(identified(metric))
    return usable
