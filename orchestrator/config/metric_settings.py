"""The configuration keys `protocol.metric` and `protocol.also`."""

from typing import Any

from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import ask_classes, most_doubtful
from orchestrator.study.study import Metric
from orchestrator.training.metrics import identified, metric_targets, read_metric, unusable_metric


def read_metrics(
    metric: Any, also: Any, problems: list[str]
) -> tuple[str, tuple[str, ...], tuple[Metric, ...]]:
    """Return the name of the metric that selects, those recorded beside it, and what names of one's own mean.

    Problems are told of metrics that do not exist, cannot be imported or share a name. What a child process
    has not imported without harm is not imported by this one.
    """
    names: dict[str, list[str]] = {"metric": [], "also": []}
    own: dict[str, tuple[str, Metric]] = {}
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
        first = own.setdefault(found.name, (key, found))[1]
        if first != found:
            problems.append(
                f"protocol.{key}: two metrics are called {found.name}, {first.definition} and "
                f"{found.definition}; give one of them another `name`"
            )
    selects = names["metric"][0] if names["metric"] else "accuracy"
    return selects, tuple(names["also"]), tuple(_usable(list(own.values()), problems))


def _usable(own: list[tuple[str, Metric]], problems: list[str]) -> list[Metric]:
    """Return the metrics that can be imported, with their identities."""
    questions = [(most_doubtful(metric_targets(metric)), metric) for _, metric in own]
    usable = []
    for (key, metric), found in zip(own, ask_classes(unusable_metric, questions), strict=True):
        if isinstance(found, ProcessEnded):
            found = f"importing {metric.definition} {found.reason}; correct it"
        if found:
            problems.append(f"protocol.{key}: {found}")
        else:
            usable.append(identified(metric))
    return usable
