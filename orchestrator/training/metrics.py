"""Metrics: scikit-learn's scorers by name, and callables of a user's own."""

import inspect
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from sklearn.metrics import get_scorer, get_scorer_names, make_scorer

from orchestrator.study.names import did_you_mean, resolve
from orchestrator.study.study import Metric
from orchestrator.study.targets import PARTIAL, TARGET, instantiate, target_problems, targets_in
from orchestrator.study.text import one_line, shown
from orchestrator.study.values import for_json, from_json
from orchestrator.training.source_hash import class_identity

_NAME = re.compile(r"[^\W\d]\w{0,59}")

_EXPECTED = (
    "expected the name of a scorer of scikit-learn's, the dotted path of a function such as mymetric.f2, or "
    "{_target_: sklearn.metrics.make_scorer, score_func: mymetric.f2, …}"
)


def read_metric(node: Any) -> str | Metric:
    """Return the metric that a configuration names, without its identity: nothing is imported.

    Raises
    ------
    ValueError
        If the configuration names none.
    """
    if isinstance(node, str) and "." not in node:
        return _scorer_name(node)
    function = node.get("score_func", node) if isinstance(node, Mapping) else node
    path = function.get(TARGET) if isinstance(function, Mapping) else function
    if not isinstance(path, str) or (isinstance(node, Mapping) and TARGET not in node):
        raise ValueError(f"{_EXPECTED}; found {shown(node)}")
    name = path.rpartition(".")[2]
    if isinstance(node, Mapping):
        name = node.get("name", name)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"expected at most 60 letters, digits and '_' as the name of a metric, found {shown(name)}"
        )
    if name in get_scorer_names():
        raise ValueError(
            f"{path} would be called {name}, as a scorer of scikit-learn's is; give it another name: "
            f"{{_target_: sklearn.metrics.make_scorer, score_func: {path}, name: my_{name}}}"
        )
    try:
        return Metric(name, node if isinstance(node, str) else json.dumps(for_json(node), sort_keys=True))
    except TypeError:
        raise ValueError(
            f"{name} is given {shown(node)}; expected numbers, text, lists and mappings of these"
        ) from None


def _scorer_name(name: str) -> str:
    known = get_scorer_names()
    if name not in known:
        near = did_you_mean(name, known)
        raise ValueError(f"scikit-learn has no scorer {shown(name)}{near or f'; {_EXPECTED}'}")
    if measured := refused_metric(name):
        raise ValueError(
            f"{name} measures {measured}, not classes; "
            "expected a scorer for classifiers, such as accuracy or balanced_accuracy"
        )
    return name


def refused_metric(name: str) -> str:
    """Return what else than classes a scorer of scikit-learn's is for; empty if it is for classifiers."""
    module = getattr(getattr(get_scorer(name), "_score_func", None), "__module__", "")
    return {"_regression": "quantities", "cluster": "clusters"}.get((module.split(".") + [""] * 3)[2], "")


def metric_targets(metric: Metric) -> list[str]:
    """Return the dotted paths that a metric consists of."""
    return list(targets_in(_node(metric)))


def metric_objects(metrics: Iterable[Metric]) -> list[Any]:
    """Return the classes and functions that metrics consist of."""
    return [resolve(target) for metric in metrics for target in metric_targets(metric)]


def unusable_metric(metric: Metric) -> str:
    """Return why a metric cannot be used; empty if it can."""
    if problem := next(target_problems(_node(metric)), ""):
        return problem
    try:
        scorer(metric)
    except (ValueError, TypeError) as error:
        return one_line(error)
    return ""


def identified(metric: Metric) -> Metric:
    """Return a metric with its identity."""
    return replace(metric, identity=" + ".join(dict.fromkeys(map(class_identity, metric_targets(metric)))))


@cache
def scorer(metric: str | Metric) -> Any:
    """Return a metric as a scorer: a callable of a fitted estimator, rows and their labels.

    What scikit-learn's `make_scorer` has made is used as it is; a callable of two arguments is given true and
    predicted labels, and one of three is a scorer itself.

    Raises
    ------
    ResolveError, TypeError
        If a path leads nowhere, or to what is no metric.
    """
    if isinstance(metric, str):
        return get_scorer(metric)
    found = instantiate(_node(metric))
    if _is_made(found):
        found._score_func = _named(found._score_func)
        return found
    number = _required_arguments(found)
    if number == 2 and (wanted := _SCORES & inspect.signature(found).parameters.keys()):
        raise TypeError(
            f"{metric.definition} takes scores or probabilities ({min(wanted)}), not labels; name "
            "scikit-learn's scorer (such as roc_auc), or make one by sklearn.metrics.make_scorer with a "
            "response_method"
        )
    if number not in (2, 3):
        raise TypeError(
            f"expected {metric.definition} to be f(y_true, y_pred), a scorer f(estimator, X, y), or made by "
            f"sklearn.metrics.make_scorer, found {shown(found)}"
            + (f", which has {number} required arguments" if number >= 0 else "")
        )
    return make_scorer(_named(found)) if number == 2 else found


_SCORES = {"y_score", "y_prob", "y_proba", "pred_decision"}
"""What scikit-learn's functions call predictions that are no labels."""


def _named(function: Any) -> Any:
    """Return a callable that has a name, which scikit-learn shows of the scorers it makes."""
    if hasattr(function, "__name__"):
        return function

    def call(*arguments: Any, **options: Any) -> Any:
        return function(*arguments, **options)

    call.__name__ = type(function).__name__
    return call


def takes_features(metric: Metric) -> bool:
    """Whether a metric may look at the rows themselves; what `make_scorer` has made only hands them on."""
    return not _is_made(scorer(metric))


def _is_made(scorer: Any) -> bool:
    return hasattr(scorer, "_score_func")


def _node(metric: Metric) -> dict[str, Any]:
    """Return the mapping that `instantiate` makes a metric of; a text as `score_func` is a path, too."""
    text = metric.definition
    if not text.startswith("{"):
        return {TARGET: text, PARTIAL: True}
    node = {key: value for key, value in json.loads(text, object_hook=from_json).items() if key != "name"}
    if isinstance(function := node.get("score_func"), str):
        node["score_func"] = {TARGET: function, PARTIAL: True}
    return node


def _required_arguments(function: Any) -> int:
    """Return how many arguments a callable has to be given by position; -1 of what is none."""
    if not callable(function) or inspect.isclass(function):
        return -1
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # compiled, and silent about it
        return 2
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in by_position and each.default is each.empty for each in parameters)
