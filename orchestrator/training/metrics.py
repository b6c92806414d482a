"""Read metrics: scikit-learn's scorers by name, and custom callables."""

import inspect
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from sklearn.metrics import get_scorer, get_scorer_names, make_scorer

from orchestrator.study.study import Metric
from orchestrator.study.targets import (
    PARTIAL,
    TARGET,
    did_you_mean,
    instantiate,
    resolve,
    target_problems,
    targets_in,
)
from orchestrator.study.text import one_line, shown
from orchestrator.study.values import for_json, from_json
from orchestrator.training.source_hash import class_identity

_NAME = re.compile(r"[^\W\d]\w{0,59}")

_EXPECTED = (
    "expected the name of a scikit-learn scorer, the dotted path of a function such as mymetric.f2, or "
    "{_target_: sklearn.metrics.make_scorer, score_func: mymetric.f2, …}"
)


def read_metric(node: Any) -> str | Metric:
    """Return the metric that a configuration names, without its identity and without importing it.

    Parameters
    ----------
    node : str or mapping
        Name of a scorer, dotted path of a function, or a mapping with `_target_`.

    Returns
    -------
    str or Metric
        The name for a scorer of scikit-learn.

    Raises
    ------
    ValueError
        If the configuration is not a metric.
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
            f"{path} would have the name {name} of a scikit-learn scorer; give it another name: "
            f"{{_target_: sklearn.metrics.make_scorer, score_func: {path}, name: my_{name}}}"
        )
    try:
        return Metric(name, node if isinstance(node, str) else json.dumps(for_json(node), sort_keys=True))
    except TypeError:
        raise ValueError(
            f"{name}: expected numbers, text, lists and mappings of these as options, found {shown(node)}"
        ) from None


def _scorer_name(name: str) -> str:
    """Return the name of a scorer of scikit-learn after checking it.

    Parameters
    ----------
    name : str
        Name as typed.

    Returns
    -------
    str
        The same name.

    Raises
    ------
    ValueError
        If there is no such scorer, or it is not for classifiers.
    """
    known = get_scorer_names()
    if name not in known:
        losses = [f"neg_{name}", f"neg_{name.removesuffix('_loss')}"]  # scikit-learn's scorers of losses
        loss = next((each for each in losses if each in known), None)
        near = f"; did you mean {loss!r}?" if loss else did_you_mean(name, known)
        raise ValueError(f"scikit-learn has no scorer {shown(name)}{near or f'; {_EXPECTED}'}")
    if measured := refused_metric(name):
        raise ValueError(
            f"{name} scores {measured}, not classes; "
            "expected a scorer for classifiers, such as accuracy or balanced_accuracy"
        )
    return name


def refused_metric(name: str) -> str:
    """Return the kind of prediction that a scorer of scikit-learn is for, if not classes.

    Parameters
    ----------
    name : str
        Name of a scorer.

    Returns
    -------
    str
        For example "quantities"; empty for a scorer of classifiers.
    """
    module = getattr(getattr(get_scorer(name), "_score_func", None), "__module__", "")
    return {"_regression": "quantities", "cluster": "clusters"}.get((module.split(".") + [""] * 3)[2], "")


def metric_targets(metric: Metric) -> list[str]:
    """Return the dotted paths in the definition of a metric.

    Parameters
    ----------
    metric : Metric
        A custom metric.

    Returns
    -------
    list of str
        The paths, in order.
    """
    return list(targets_in(_node(metric)))


def metric_objects(metrics: Iterable[Metric]) -> list[Any]:
    """Return the classes and functions that metrics consist of.

    Parameters
    ----------
    metrics : iterable of Metric
        Metrics whose code a user wrote.

    Returns
    -------
    list
        The imported objects.
    """
    return [resolve(target) for metric in metrics for target in metric_targets(metric)]


def unusable_metric(metric: Metric) -> str:
    """Return why a metric cannot be used; empty if it can.

    Parameters
    ----------
    metric : Metric
        A custom metric.

    Returns
    -------
    str
        The problem, on one line.
    """
    if problem := next(target_problems(_node(metric)), ""):
        return problem
    try:
        scorer(metric)
    except (ValueError, TypeError) as error:
        return one_line(error)
    return ""


def identified(metric: Metric) -> Metric:
    """Return a metric with its identity.

    Parameters
    ----------
    metric : Metric
        A custom metric.

    Returns
    -------
    Metric
        A copy, whose identity contains the identities of its classes and functions.
    """
    return replace(metric, identity=" + ".join(dict.fromkeys(map(class_identity, metric_targets(metric)))))


@cache
def scorer(metric: str | Metric) -> Any:
    """Return a metric as a scorer: a callable of a fitted estimator, rows and their labels.

    A result of scikit-learn's `make_scorer` is used unchanged. A callable of two arguments is called with
    true and predicted labels. A callable of three arguments is a scorer.

    Parameters
    ----------
    metric : str or Metric
        Name of a scorer of scikit-learn, or a custom metric.

    Returns
    -------
    callable
        f(estimator, X, y), which returns a score.

    Raises
    ------
    ResolveError, TypeError
        If a path does not name an object, or the object is not a metric.
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
            f"{metric.definition} takes scores or probabilities ({min(wanted)}), not labels; use a "
            "scikit-learn scorer (such as roc_auc), or make one by sklearn.metrics.make_scorer with a "
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
"""Parameters by which scikit-learn's functions take scores or probabilities instead of labels."""


def _named(function: Any) -> Any:
    """Return a callable that has a name, which scikit-learn shows in the texts of its scorers.

    Parameters
    ----------
    function : callable
        Callable that may lack `__name__`.

    Returns
    -------
    callable
        The same, or a function that calls it and has the name of its class.
    """
    if hasattr(function, "__name__"):
        return function

    def call(*arguments: Any, **options: Any) -> Any:
        return function(*arguments, **options)

    call.__name__ = type(function).__name__
    return call


def takes_features(metric: Metric) -> bool:
    """Return whether a metric may read the rows; a result of `make_scorer` only passes them on.

    Parameters
    ----------
    metric : Metric
        A custom metric.

    Returns
    -------
    bool
        Whether the rows are needed.
    """
    return not _is_made(scorer(metric))


def _is_made(scorer: Any) -> bool:
    """Return whether a scorer is a result of scikit-learn's `make_scorer`.

    Parameters
    ----------
    scorer : callable
        Scorer to examine.

    Returns
    -------
    bool
        True for such a result.
    """
    return hasattr(scorer, "_score_func")


def _node(metric: Metric) -> dict[str, Any]:
    """Return the mapping from which `instantiate` makes a metric.

    Parameters
    ----------
    metric : Metric
        A custom metric. Its `score_func` may be a dotted path.

    Returns
    -------
    dict
        Configuration node with `_target_`.
    """
    text = metric.definition
    if not text.startswith("{"):
        return {TARGET: text, PARTIAL: True}
    node = {key: value for key, value in json.loads(text, object_hook=from_json).items() if key != "name"}
    if isinstance(function := node.get("score_func"), str):
        node["score_func"] = {TARGET: function, PARTIAL: True}
    return node


def _required_arguments(function: Any) -> int:
    """Return the number of positional arguments that a callable requires.

    Parameters
    ----------
    function : object
        Callable to examine.

    Returns
    -------
    int
        The number; −1 for a class or an object that is not callable.
    """
    if not callable(function) or inspect.isclass(function):
        return -1
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # compiled functions may have no signature
        return 2
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in by_position and each.default is each.empty for each in parameters)
