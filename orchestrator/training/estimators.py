"""Describe an estimator before it is trained, by scikit-learn's conventions only."""

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from orchestrator.isolation.exits import recorded_interrupts
from orchestrator.study.study import Arm, Candidate, Protocol, axis_values
from orchestrator.study.targets import ARGS, instantiate, resolve, target_problems, targets_in
from orchestrator.study.text import MAX_QUOTED, error_line, error_text, one_line, represented
from orchestrator.study.values import is_number

_PROGRAM = __name__.partition(".")[0]
_METHODS = ("fit", "predict", "get_params")


@cache
def estimator_class(target: str) -> tuple[Any, frozenset[str]]:
    """Return the class or factory that a dotted path names, and the names of its parameters.

    It is a classifier class, or a factory: a function that returns a classifier.

    Parameters
    ----------
    target : str
        Dotted path, e.g. `solvers.MNSVC`.

    Returns
    -------
    kind : class or callable
        The class or factory.
    names : frozenset of str
        The parameters that it takes by keyword.

    Raises
    ------
    ResolveError
        If the path does not name an object.
    TypeError
        If the object is neither a classifier class nor a factory.
    """
    kind = resolve(target)
    factory = callable(kind) and not inspect.isclass(kind) and target.partition(".")[0] != _PROGRAM
    classifier = inspect.isclass(kind) and all(hasattr(kind, name) for name in _METHODS)
    if not factory and not classifier:
        raise TypeError(
            f"{target!r} is not a scikit-learn classifier: expected a class with the methods fit, predict "
            "and get_params, or a function that returns an object with these methods"
        )
    parameters = inspect.signature(kind if factory else kind.__init__).parameters.values()
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return kind, frozenset(named - {"self"})


def takes(arm: Arm, param: str) -> bool:
    """Return whether the class of an arm has a parameter.

    Parameters
    ----------
    arm : Arm
        Solver with its fixed parameters and sweep values.
    param : str
        Name of the parameter.

    Returns
    -------
    bool
        Whether it is accepted by keyword.
    """
    return param in estimator_class(arm.target)[1]


class Description(NamedTuple):
    """Description of a solver's configuration, as its code declares it.

    Attributes
    ----------
    problems : tuple of str
        Reasons for which the configuration cannot be used.
    names : frozenset of str
        Parameters that the solver takes, including those of nested estimators such as `step__param`.
    """

    problems: tuple[str, ...]
    names: frozenset[str] = frozenset()


def describe(
    target: str, params: Mapping[str, Any], others: Any, space: Mapping[str, Any] | None = None
) -> Description:
    """Describe a solver: the problems of its configuration, and the parameters that it takes.

    Parameters
    ----------
    target : str
        Dotted path of a class or factory.
    params : mapping
        Its fixed parameters, by name.
    others : object
        Further nodes of the configuration, whose values may become parameters.
    space : mapping, optional
        Custom space of the solver. By default it has none. A class that takes any parameter, as those of
        XGBoost, LightGBM and CatBoost do, takes those of its custom space.

    Returns
    -------
    Description
        Without problems if the solver can be used.
    """
    try:
        kind, accepted = estimator_class(target)
        problems = dict.fromkeys(map(one_line, target_problems([list(params.values()), space, others])))
        nested = _is_composite(kind, params) or any("__" in name for name in _names([params, space, others]))
        own = {*params, *(space or ())}
        open_ended = _takes_any_parameter(kind) and not own <= accepted
        if problems or not (nested or open_ended):
            return Description(tuple(problems), accepted)
    except (ValueError, TypeError) as error:
        return Description((one_line(error),))
    try:
        return _describe_made(target, params, accepted, own)
    except BaseException as error:  # a class of the user may raise any exception
        return Description((f"{target} cannot be built from its parameters: {error_line(error)}",))


def _names(node: Any) -> Iterator[str]:
    """Yield the text keys of a node and of the mappings below it.

    Parameters
    ----------
    node : object
        A configuration node. Mappings and lists are searched, at any depth.

    Yields
    ------
    str
        Key of a mapping.
    """
    if isinstance(node, Mapping):
        yield from (name for name in node if isinstance(name, str))
        node = list(node.values())
    for item in node if isinstance(node, (list, tuple)) else ():
        yield from _names(item)


def _describe_made(
    target: str, params: Mapping[str, Any], accepted: frozenset[str], own: Iterable[str]
) -> Description:
    """Describe a solver with nested estimators, whose parameters only an instance can list.

    Parameters
    ----------
    target : str
        Dotted path of a class or factory.
    params : mapping
        Its fixed parameters, by name.
    accepted : frozenset of str
        Parameters that it takes by keyword.
    own : iterable of str
        Names of its fixed parameters, and those of its custom space.

    Returns
    -------
    Description
        Without problems if the instance is a classifier.
    """
    made = build(target, {name: value for name, value in params.items() if name in accepted | {ARGS}})
    # Some classifiers have `predict` only after their fit, such as a stacking classifier.
    lacking = [name for name in _METHODS if not hasattr(made, name)]
    if lacking and not (lacking == ["predict"] and _declared_kind(made) == "classifier"):
        return Description(
            (
                f"{target} does not return a classifier: expected the methods {', '.join(_METHODS)}, "
                f"found {represented(made)} without {' and '.join(lacking)}",
            )
        )
    known = made.get_params()
    names = accepted | known.keys()
    for name in filter(lambda each: isinstance(each, str), own):
        nested = name.rpartition("__")[0]
        if _takes_any_parameter(type(known.get(nested) if nested else made)):
            names |= {name}
    for name in sorted(params.keys() & names - accepted, key=lambda name: name.count("__")):
        made.set_params(**{name: instantiate(params[name])})  # a nested estimator may bring further names
        names |= made.get_params().keys()
    return Description((), names | ({ARGS} & params.keys()))


def _declared_kind(made: Any) -> str | None:
    """Return the kind that an estimator declares by scikit-learn's tags; None without tags.

    Parameters
    ----------
    made : object
        An estimator, or any object.
    """
    try:
        kind: str | None = get_tags(made).estimator_type
    except BaseException:  # not a scikit-learn class, or one of an older version
        return None
    return kind


def build(target: str, params: Mapping[str, Any]) -> Any:
    """Make an estimator from a dotted path and its parameters.

    Parameters that the target takes by keyword are passed to it. The others are set on the result. Nested
    mappings with `_target_` become objects; all other values are copied, as by scikit-learn's `clone`.

    Parameters
    ----------
    target : str
        Dotted path of a class or factory.
    params : mapping
        Parameters by name, including those of nested estimators such as `step__param`.

    Returns
    -------
    estimator
        The unfitted estimator.
    """
    kind, accepted = estimator_class(target)
    arguments = {name: instantiate(value) for name, value in params.items() if name in accepted}
    made = kind(*instantiate(params.get(ARGS, ())), **arguments)
    nested = {name: instantiate(value) for name, value in params.items() if name not in accepted | {ARGS}}
    return made.set_params(**nested) if nested else made


def _takes_any_parameter(kind: Any) -> bool:
    """Return whether a class has parameters beyond those of its signature, as LightGBM's classifier does.

    Parameters
    ----------
    kind : class or callable
        The class or factory.
    """
    if not inspect.isclass(kind) or kind.__init__ is object.__init__:
        return False
    parameters = inspect.signature(kind.__init__).parameters.values()
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def _is_composite(kind: Any, params: Mapping[str, Any]) -> bool:
    """Return whether an estimator contains further estimators of the configuration, or is made by a factory.

    Parameters
    ----------
    kind : class or callable
        The class or factory.
    params : mapping
        Its parameters, by name.

    Returns
    -------
    bool
        True if nested parameters may exist.
    """
    return not inspect.isclass(kind) or any(targets_in(params))


def refused_value(target: str, params: Mapping[str, Any]) -> str:
    """Return the message of the error by which an estimator rejects its parameters; empty if it accepts them.

    scikit-learn's classes check their parameters in `_validate_params`, by declared constraints or by a
    custom method. A class without either refuses values only when it is trained.

    Parameters
    ----------
    target : str
        Dotted path of a class or factory.
    params : mapping
        Its parameters, by name.

    Returns
    -------
    str
        The error's message, at most `MAX_QUOTED` characters.
    """
    kind, _ = estimator_class(target)
    process = os.getpid()
    with recorded_interrupts():
        try:
            made = build(target, params)
            nested = made.get_params().values() if _is_composite(kind, params) else ()
            for part in [made, *nested]:
                _validate(part)
        except Exception as error:  # a class of the user may raise any exception
            return error_text(error)[:MAX_QUOTED] or type(error).__name__
        except BaseException as error:
            return f"{target} raised {error_line(error)}"
        finally:
            if os.getpid() != process:
                os._exit(1)  # the child of an os.fork in user code must end here
    return ""


def _validate(part: Any) -> None:
    """Make an estimator check its parameters, if it can.

    Parameters
    ----------
    part : object
        An estimator, or a parameter of one.
    """
    kind = type(part)
    validate = getattr(kind, "_validate_params", None)
    declared = hasattr(kind, "_parameter_constraints")
    if validate is not None and (declared or validate is not BaseEstimator._validate_params):
        validate(part)


def other_kind(target: str, params: Mapping[str, Any]) -> str:
    """Return the kind of estimator that a class declares, if it is not a classifier.

    A class without scikit-learn's tags is accepted as a classifier.

    Parameters
    ----------
    target : str
        Dotted path of a class or factory.
    params : mapping
        Its parameters, by name.

    Returns
    -------
    str
        For example "regressor"; empty for a classifier, or for a class that declares nothing.
    """
    cls, _ = estimator_class(target)
    try:
        made = build(target, params)
    except BaseException:  # a class of the user may raise any exception
        made = None
    kind = _declared_kind(made) or getattr(cls, "_estimator_type", None)
    return "" if kind in (None, "classifier") else str(kind).replace("_", " ")


def make_estimator(
    arm: Arm, protocol: Protocol, candidate: Candidate, seed: int, override: Mapping[str, Any] | None = None
) -> Any:
    """Build the estimator of a trial from fixed, chosen and derived parameters.

    Parameters
    ----------
    arm : Arm
        Target and fixed parameters.
    protocol : Protocol
        Its time limit becomes `max_seconds`, if the target has that parameter.
    candidate : Candidate
        Chosen parameters.
    seed : int
        Value of `random_state`, if the target has that parameter. Nested random states that are None get it,
        too.
    override : mapping, optional
        Parameters that replace all others. None by default.

    Returns
    -------
    estimator
        The unfitted estimator.
    """
    kind, accepted = estimator_class(arm.target)
    derived: dict[str, Any] = {"random_state": seed}
    if protocol.max_seconds is not None:
        derived["max_seconds"] = protocol.max_seconds
    if arm.warm_starts:
        derived["warm_start"] = True
    derived = {name: value for name, value in derived.items() if name in accepted}
    params = {**derived, **arm.params, **dict(candidate.params), **(override or {})}
    made = build(arm.target, params)
    return seeded(made, seed, params) if _is_composite(kind, params) else made


def seeded(made: Any, seed: int, params: Mapping[str, Any]) -> Any:
    """Set every nested `random_state` that is None to the seed of the trial.

    Parameters
    ----------
    made : estimator
        A composite estimator.
    seed : int
        Seed of the trial, from 0 to 2³² − 1.
    params : mapping
        Parameters of the configuration, which are not changed.

    Returns
    -------
    estimator
        The same estimator.
    """
    known = made.get_params()
    left_open = [
        name
        for name, value in known.items()
        if value is None
        and name not in params
        and name.rpartition("__")[2] == "random_state"
        # Some encoders create a splitter. It raises an error for a random state while `shuffle` is False.
        and known.get(name.removesuffix("random_state") + "shuffle") is not False
    ]
    return made.set_params(**dict.fromkeys(left_open, seed)) if left_open else made


def takes_shared_gram(arm: Arm, n_samples: int, n_features: int) -> bool:
    """Return whether the trainings of an arm can share Gaussian Gram matrices, and gain from it.

    They can if the class takes `kernel="precomputed"`, the arm's kernel is "rbf" and every γ is a number. A
    class may decline by a method `prefers_gram(n_samples, n_features)`.

    Parameters
    ----------
    arm : Arm
        Target, fixed parameters and space.
    n_samples : int
        Number of rows of the dataset.
    n_features : int
        Number of features of the dataset.

    Returns
    -------
    bool
        Whether to share.
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
        except BaseException:  # a class of the user may raise any exception
            return False


def gamma_of(arm: Arm, candidate: Candidate) -> float:
    """Return γ of a trial, from the candidate or else from the arm's fixed parameters.

    Parameters
    ----------
    arm : Arm
        Fixed parameters.
    candidate : Candidate
        Chosen parameters.

    Returns
    -------
    float
        γ of the Gaussian kernel.
    """
    return float(candidate.value("gamma", arm.params.get("gamma")))
