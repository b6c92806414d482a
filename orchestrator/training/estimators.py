"""What is known of an estimator class before it is trained, by scikit-learn's protocol alone."""

import copy
import inspect
import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from orchestrator.study.names import resolve
from orchestrator.study.storable import error_text
from orchestrator.study.study import Arm, Candidate, Protocol, axis_values
from orchestrator.study.text import error_line, one_line
from orchestrator.study.values import is_number
from orchestrator.training.interrupts import recorded_interrupts

_TEXT_LENGTH = 500


@cache
def estimator_class(target: str) -> tuple[Any, frozenset[str]]:
    """Return the class at a dotted path and the names of its constructor's parameters.

    Raises
    ------
    ResolveError
        If the path leads nowhere.
    TypeError
        If what it leads to is not a classifier class.
    """
    kind = resolve(target)
    if not inspect.isclass(kind) or not all(hasattr(kind, name) for name in ("fit", "predict", "get_params")):
        raise TypeError(
            f"{target!r} is not a scikit-learn classifier: "
            f"expected a class with the methods fit, predict and get_params"
        )
    parameters = inspect.signature(kind.__init__).parameters.values()
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return kind, frozenset(named - {"self"})


def unusable_class(targets: Sequence[str]) -> str:
    """Return why a class, or others that its parameters name, cannot be used; empty if they can.

    Parameters
    ----------
    targets : sequence of str
        Dotted paths, the class's first.
    """
    try:
        estimator_class(targets[0])
        for target in targets[1:]:
            resolve(target)
    except (ValueError, TypeError) as error:
        return one_line(error)
    return ""


def refused_value(target: str, params: Mapping[str, Any]) -> str:
    """Return why an estimator would refuse its parameters, as it says itself; empty if it would not.

    scikit-learn's classes check their parameters in `_validate_params`, by constraints they declare or by
    a method of their own; a class with neither refuses when it is trained.
    """
    kind, _ = estimator_class(target)
    validate = getattr(kind, "_validate_params", None)
    declared = hasattr(kind, "_parameter_constraints")
    process = os.getpid()
    with recorded_interrupts():
        try:
            estimator = kind(**params)
            if validate is not None and (declared or validate is not BaseEstimator._validate_params):
                validate(estimator)
        except Exception as error:  # of the user's class, given any values
            return error_text(error)[:_TEXT_LENGTH] or type(error).__name__
        except BaseException as error:
            return f"{target} raised {error_line(error)}"
        finally:
            if os.getpid() != process:
                os._exit(1)  # a copy made by os.fork, which must not go on with other values
    return ""


def other_kind(target: str, params: Mapping[str, Any]) -> str:
    """Return what kind of estimator a class says that it is; empty if a classifier, or if it does not say.

    Classes without scikit-learn's tags are taken for classifiers as long as they behave as such.
    """
    cls, _ = estimator_class(target)
    try:
        kind = get_tags(cls(**params)).estimator_type
    except BaseException:  # not a class of scikit-learn's, or of an older one's
        kind = None
    kind = kind or getattr(cls, "_estimator_type", None)
    return "" if kind in (None, "classifier") else str(kind).replace("_", " ")


def make_estimator(
    arm: Arm, protocol: Protocol, candidate: Candidate, seed: int, override: Mapping[str, Any] | None = None
) -> Any:
    """Build the estimator of a trial: the arm's class with its fixed, chosen and derived parameters."""
    kind, accepted = estimator_class(arm.target)
    derived: dict[str, Any] = {"random_state": seed}
    if protocol.max_seconds is not None:
        derived["max_seconds"] = protocol.max_seconds
    if arm.warm_starts:
        derived["warm_start"] = True
    derived = {name: value for name, value in derived.items() if name in accepted}
    params = {**derived, **arm.params, **dict(candidate.params), **(override or {})}
    return kind(**{name: _own_copy(value) for name, value in params.items()})


def _own_copy(value: Any) -> Any:
    """Copy what an estimator could change in place, as scikit-learn's `clone` does."""
    return value if isinstance(value, (int, float, str)) or value is None else copy.deepcopy(value)


def takes_shared_gram(arm: Arm, n_samples: int, n_features: int) -> bool:
    """Whether an arm's trainings can share the Gaussian Gram matrices of their split, and gain from it.

    They can if the class takes `kernel="precomputed"`, the arm's kernel is "rbf" and every γ is a number. A
    class may say by `prefers_gram(n_samples, n_features)` that it does better without.
    """
    kind, accepted = estimator_class(arm.target)
    if not {"kernel", "gamma"} <= accepted or "kernel" in arm.space:
        return False
    gammas = axis_values(arm.space.get("gamma", (arm.params.get("gamma"),)))
    if not all(map(is_number, gammas)) or refused_value(arm.target, {**arm.params, "kernel": "precomputed"}):
        return False
    with recorded_interrupts():
        try:
            estimator = kind(**arm.params)
            if estimator.kernel != "rbf":
                return False
            prefers = getattr(estimator, "prefers_gram", None)
            return prefers is None or bool(prefers(n_samples, n_features))
        except BaseException:  # of the user's class
            return False


def gamma_of(arm: Arm, candidate: Candidate) -> float:
    """Return γ of a trial: the candidate's, or the arm's own."""
    return float({**arm.params, **candidate.as_dict()}["gamma"])
