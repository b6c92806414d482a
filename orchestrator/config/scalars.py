"""Valid values of the scalar keys of a configuration."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.study.cluster_kinds import CLUSTER_KINDS
from orchestrator.study.families import APART, ONCE
from orchestrator.study.report_choices import CONSTANT, HOLM, LEAVE_OUT, MAX_T
from orchestrator.study.settings import MIN_DEATHS
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import shown

MAX_FOLDS = 1000
"""Largest number of folds of a split, outer or inner."""

_CHOICES = {
    "protocol.scaling": ("train", "dataset", "none"),
    "protocol.profile": ("throughput", "timing"),
    "protocol.predictions": ("none", "outer"),
    "cluster.kind": tuple(CLUSTER_KINDS),
    "on_error": ("continue", "fail_fast"),
    "retry": ("none", "failed"),
    "report.families": (ONCE, APART),
    "report.adjust": (MAX_T, HOLM),
    "report.failed": (LEAVE_OUT, CONSTANT),
}
_WHOLE = {
    "protocol.outer": (2, MAX_FOLDS),
    "protocol.inner": (2, MAX_FOLDS),
    "protocol.seed": (0, 2**64 - 1),
    "protocol.repeats": (1, MAX_FOLDS),
    "search.budget": (1, 100_000),
    "search.seed": (0, 2**64 - 1),
    "cluster.workers": (1, 10**6),
    "cluster.adapt.minimum": (1, 10**6),
    "cluster.adapt.maximum": (1, 10**6),
    "cluster.give_up.deaths": (MIN_DEATHS, 10**6),
}
"""Ranges of whole numbers, both ends included."""
_SPLITTER = ", or a splitter such as {_target_: sklearn.model_selection.GroupKFold, n_splits: 5}"
_OR_ELSE = {
    "protocol.outer": _SPLITTER,
    "protocol.inner": _SPLITTER,
    "protocol.seed": ", or a list of different ones",
}
_MAY_BE_NULL = {
    *("protocol.scaling", "protocol.repeats", "cluster.workers", "report.adjust"),
    *("cluster.adapt.minimum", "cluster.adapt.maximum"),
}
_POSITIVE = {
    *("protocol.max_seconds", "data_memory", "cluster.give_up.minutes", "report.rope"),
    *("minutes", "cluster.memory", "cluster.worker_ttl", "cluster.no_workers_timeout"),
}
"""Keys that take a number above 0, or null."""
_SHARE = {"report.alpha"}
"""Keys that take a number between 0 and 1."""
_BOOLEAN = {"cluster.dashboard", "cluster.performance_report", "report.sequential"}


def choices(key: str) -> tuple[str, ...]:
    """Return the valid values of a key that has few; empty for any other key.

    Parameters
    ----------
    key : str
        Dotted configuration key.
    """
    return ("true", "false") if key in _BOOLEAN else _CHOICES.get(key, ())


def wrong_values(node: Mapping[str, Any], names: Sequence[str], prefix: str = "") -> Iterator[str]:
    """Yield a message for each value that its key does not accept.

    Parameters
    ----------
    node : mapping
        Node of the configuration.
    names : sequence of str
        Keys in the node to check. A missing key counts as null.
    prefix : str
        Start of the dotted keys, such as "protocol.". Default: none.
    """
    for name in names:
        key, value = f"{prefix}{name}", node.get(name)
        if expected := _expected(key, value):
            near = did_you_mean(str(value), _CHOICES.get(key, ()))
            yield f"{key} must be {expected}, found {shown(value)}{near}"


def _expected(key: str, value: Any) -> str:
    """Return a description of the valid values of a key; empty if the value is valid.

    Parameters
    ----------
    key : str
        Dotted configuration key.
    value : object
        Value to check.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is None and key in (_POSITIVE | _MAY_BE_NULL):
        return ""
    if key in _CHOICES:
        return "" if value in _CHOICES[key] else f"one of {', '.join(_CHOICES[key])}"
    if key in _BOOLEAN:
        return "" if isinstance(value, bool) else "true or false"
    if key in _SHARE:
        return "" if number and 0 < value < 1 else "a number between 0 and 1"
    if key in _POSITIVE:
        return "" if number and 0 < value < 1e12 else "a number above 0, or null"
    least, most = _WHOLE[key]
    if not number or not isinstance(value, int) or value < least:
        return f"a whole number of at least {least}{_OR_ELSE.get(key, '')}"
    return f"a whole number of at most {most}" if value > most else ""
