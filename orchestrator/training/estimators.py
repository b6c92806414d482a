"""What is known of an estimator before it is trained, by scikit-learn's protocol alone."""

import inspect
import os
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from orchestrator.isolation.interrupts import recorded_interrupts
from orchestrator.study.names import resolve
from orchestrator.study.storable import error_text
from orchestrator.study.study import Arm, Candidate, Protocol, axis_values
from orchestrator.study.targets import ARGS, instantiate, target_problems, targets_in
from orchestrator.study.text import MAX_QUOTED, error_line, one_line, shown
from orchestrator.study.values import is_number

_PROGRAM = __name__.partition(".")[0]
_METHODS = ("fit", "predict", "get_params")


@cache
def estimator_class(target: str) -> tuple[Any, frozenset[str]]:
    """Return what a dotted path names, and the names of the parameters that it takes by keyword.

    It is a classifier class, or a factory: a function that returns a classifier.

    Raises
    ------
    ResolveError
        If the path leads nowhere.
    TypeError
        If what it leads to is neither.
    """
    kind = resolve(target)
    factory = callable(kind) and not inspect.isclass(kind) and target.partition(".")[0] != _PROGRAM
    classifier = inspect.isclass(kind) and all(hasattr(kind, name) for name in _METHODS)
    if not factory and not classifier:
        raise TypeError(
            f"{target!r} is not a scikit-learn classifier: expected a class with the methods fit, predict "
            "and get_params, or a function that returns an object with them"
        )
    parameters = inspect.signature(kind if factory else kind.__init__).parameters.values()
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return kind, frozenset(named - {"self"})


class Description(NamedTuple):
    """What has to be known of a solver's configuration, as its own code says.

    Attributes
    ----------
    problems : tuple of str
        Why it cannot be used.
    names : frozenset of str
        The parameters that it takes, those of nested estimators such as `step__param` included.
    """

    problems: tuple[str, ...]
    names: frozenset[str] = frozenset()


def describe(target: str, params: Mapping[str, Any], others: Any) -> Description:
    """Describe a solver: whether what it names can be called, and the parameters that it takes.

    Parameters
    ----------
    target : str
    params : mapping
        Its parameters.
    others : object
        Further nodes of the configuration with values that it may be given.
    """
    try:
        kind, accepted = estimator_class(target)
        problems = dict.fromkeys(map(one_line, target_problems([list(params.values()), others])))
        nested = _is_composite(kind, params) or any("__" in name for name in _names([params, others]))
        if problems or not nested:
            return Description(tuple(problems), accepted)
    except (ValueError, TypeError) as error:
        return Description((one_line(error),))
    try:
        return _describe_made(target, params, accepted)
    except BaseException as error:  # of the user's class
        return Description((f"{target} cannot be made of its parameters: {error_line(error)}",))


def _names(node: Any) -> Iterator[str]:
    """Yield the texts among the keys at and below a node, as far as mappings lie in mappings or lists."""
    if isinstance(node, Mapping):
        yield from (name for name in node if isinstance(name, str))
        node = list(node.values())
    for item in node if isinstance(node, (list, tuple)) else ():
        yield from _names(item)


def _describe_made(target: str, params: Mapping[str, Any], accepted: frozenset[str]) -> Description:
    """Ask the estimator itself for the parameters of what is nested in it."""
    made = build(target, {name: value for name, value in params.items() if name in accepted | {ARGS}})
    if lacking := [name for name in _METHODS if not hasattr(made, name)]:
        return Description(
            (
                f"{target} makes no classifier: expected the methods {', '.join(_METHODS)}, "
                f"found {shown(made)} without {' and '.join(lacking)}",
            )
        )
    names = accepted | made.get_params().keys()
    for name in sorted(params.keys() & names - accepted, key=lambda name: name.count("__")):
        made.set_params(**{name: instantiate(params[name])})  # of which further names may come
        names |= made.get_params().keys()
    return Description((), names | ({ARGS} & params.keys()))


def build(target: str, params: Mapping[str, Any]) -> Any:
    """Make an estimator: the target's own parameters are its arguments, the others are set on what it makes.

    Nested mappings with `_target_` become objects; everything else is copied, as scikit-learn's `clone` does.
    """
    kind, accepted = estimator_class(target)
    own = {name: instantiate(value) for name, value in params.items() if name in accepted}
    made = kind(*instantiate(params.get(ARGS, ())), **own)
    nested = {name: instantiate(value) for name, value in params.items() if name not in accepted | {ARGS}}
    return made.set_params(**nested) if nested else made


def _is_composite(kind: Any, params: Mapping[str, Any]) -> bool:
    """Whether an estimator is made of others that its configuration names, or by a function."""
    return not inspect.isclass(kind) or any(targets_in(params))


def refused_value(target: str, params: Mapping[str, Any]) -> str:
    """Return why an estimator would refuse its parameters, as it says itself; empty if it would not.

    scikit-learn's classes check their parameters in `_validate_params`, by constraints they declare or by
    a method of their own; a class with neither refuses when it is trained.
    """
    kind, _ = estimator_class(target)
    process = os.getpid()
    with recorded_interrupts():
        try:
            made = build(target, params)
            nested = made.get_params().values() if _is_composite(kind, params) else ()
            for part in [made, *nested]:
                _validate(part)
        except Exception as error:  # of the user's class, given any values
            return error_text(error)[:MAX_QUOTED] or type(error).__name__
        except BaseException as error:
            return f"{target} raised {error_line(error)}"
        finally:
            if os.getpid() != process:
                os._exit(1)  # a copy made by os.fork, which must not go on with other values
    return ""


def _validate(part: Any) -> None:
    """Have an estimator check its parameters, if that is what it is and if it can."""
    kind = type(part)
    validate = getattr(kind, "_validate_params", None)
    declared = hasattr(kind, "_parameter_constraints")
    if validate is not None and (declared or validate is not BaseEstimator._validate_params):
        validate(part)


def other_kind(target: str, params: Mapping[str, Any]) -> str:
    """Return what kind of estimator a class says that it is; empty if a classifier, or if it does not say.

    Classes without scikit-learn's tags are taken for classifiers as long as they behave as such.
    """
    cls, _ = estimator_class(target)
    try:
        kind = get_tags(build(target, params)).estimator_type
    except BaseException:  # not a class of scikit-learn's, or of an older one's
        kind = None
    kind = kind or getattr(cls, "_estimator_type", None)
    return "" if kind in (None, "classifier") else str(kind).replace("_", " ")


def make_estimator(
    arm: Arm, protocol: Protocol, candidate: Candidate, seed: int, override: Mapping[str, Any] | None = None
) -> Any:
    """Build the estimator of a trial: the arm's target with its fixed, chosen and derived parameters."""
    kind, accepted = estimator_class(arm.target)
    derived: dict[str, Any] = {"random_state": seed}
    if protocol.max_seconds is not None:
        derived["max_seconds"] = protocol.max_seconds
    if arm.warm_starts:
        derived["warm_start"] = True
    derived = {name: value for name, value in derived.items() if name in accepted}
    params = {**derived, **arm.params, **dict(candidate.params), **(override or {})}
    made = build(arm.target, params)
    return _seeded(made, seed, params) if _is_composite(kind, params) else made


def _seeded(made: Any, seed: int, params: Mapping[str, Any]) -> Any:
    """Set every nested `random_state` that is left open to the trial's seed."""
    known = made.get_params()
    left_open = [
        name
        for name, value in known.items()
        if value is None
        and name not in params
        and name.rpartition("__")[2] == "random_state"
        # Splitters, of which some encoders make one, refuse a random state that has no effect.
        and known.get(name.removesuffix("random_state") + "shuffle") is not False
    ]
    return made.set_params(**dict.fromkeys(left_open, seed)) if left_open else made


def takes_shared_gram(arm: Arm, n_samples: int, n_features: int) -> bool:
    """Whether an arm's trainings can share the Gaussian Gram matrices of their split, and gain from it.

    They can if the class takes `kernel="precomputed"`, the arm's kernel is "rbf" and every γ is a number. A
    class may say by `prefers_gram(n_samples, n_features)` that it does better without.
    """
    kind, accepted = estimator_class(arm.target)
    if not inspect.isclass(kind) or not {"kernel", "gamma"} <= accepted or "kernel" in arm.space:
        return False
    gammas = axis_values(arm.space.get("gamma", (arm.params.get("gamma"),)))
    if not all(map(is_number, gammas)) or refused_value(arm.target, {**arm.params, "kernel": "precomputed"}):
        return False
    with recorded_interrupts():
        try:
            estimator = build(arm.target, arm.params)
            if estimator.kernel != "rbf":
                return False
            prefers = getattr(estimator, "prefers_gram", None)
            return prefers is None or bool(prefers(n_samples, n_features))
        except BaseException:  # of the user's class
            return False


def gamma_of(arm: Arm, candidate: Candidate) -> float:
    """Return γ of a trial: the candidate's, or the arm's own."""
    return float(candidate.value("gamma", arm.params.get("gamma")))
