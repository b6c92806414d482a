"""From solver configurations and sweep axes to arms, with every problem found on the way."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.config.axes import settings, too_many
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import ask_classes, most_doubtful
from orchestrator.search import at_resolution, check_search, make_search, make_space, most_candidates
from orchestrator.study.errors import StudyStopped
from orchestrator.study.names import did_you_mean
from orchestrator.study.study import PATH_PARAM, SELECTED, Arm, SearchSpec, axis_values
from orchestrator.study.targets import targets_in
from orchestrator.study.text import shown
from orchestrator.study.values import ParamValue, canonical_json, is_number
from orchestrator.training.estimators import (
    Description,
    describe,
    estimator_class,
    other_kind,
    refused_value,
)
from orchestrator.training.source_hash import class_identity

RESOLUTION = "resolution"
"""The axis of a sweep that belongs to the search."""

Space = Mapping[str, tuple[ParamValue, ...] | Mapping[str, Any]]


def build_arms(
    solvers: Mapping[str, Mapping[str, Any]],
    sweep: Mapping[str, Sequence[ParamValue]],
    search: SearchSpec,
    default_space: Mapping[str, Any],
    profile: str,
    resolutions: Sequence[int] | int | None = None,
) -> tuple[list[Arm], list[str]]:
    """Multiply solvers by the sweep's values.

    Parameters
    ----------
    solvers : mapping of str to mapping
        By name: `_target_`, parameters of the class, and optionally a `space` of its own.
    sweep : mapping of str to sequence
        Axes; each multiplies every solver that has the parameter.
    search : SearchSpec
    default_space : mapping of str to sequence or mapping
        The space of solvers that have none of their own. A solver with none of its parameters is not tuned:
        it has one candidate.
    profile : {"throughput", "timing"}
        Only throughput lets trainings start from one another.
    resolutions : int, sequence of int or None
        Numbers of values that each numeric axis of the space has in place of its own; of a sequence each
        makes arms of its own.

    Returns
    -------
    arms : list of Arm
    problems : list of str
        One sentence each; arms are complete only if there is none.

    Warns
    -----
    UserWarning
        For a solver that is not tuned because it has no parameter of the default space.
    """
    arms: list[Arm] = []
    problems = [
        f"search.space: expected names of parameters, found {shown(param)}"
        for param in default_space
        if not isinstance(param, str)
    ]
    if problems:
        return arms, problems
    asked: list[Arm] = []
    # Other searches seldom propose paths, and their rows are to serve whatever asks for a candidate.
    starts = profile == "throughput" and search.target in ("grid", "race", "pattern")
    described = _described(solvers, [sweep, default_space])
    for (name, config), (unusable, accepted) in zip(solvers.items(), described, strict=True):
        if unusable:
            problems += [f"solver {name}: {problem}" for problem in unusable]
            continue
        if found := list(_unusable_config(name, config)):
            problems += found
            continue
        space = _space(name, config.get("space"), default_space, accepted)
        axes = {param: values for param, values in sweep.items() if param in accepted}
        if isinstance(resolutions, Sequence):
            axes[RESOLUTION] = resolutions
        if problem := too_many(f"solver {name}", "arms", axes):
            problems.append(problem)
            continue
        for values, label in settings(axes):
            try:
                resolution = values.get(RESOLUTION) if isinstance(resolutions, Sequence) else resolutions
                at = space if resolution is None else at_resolution(space, resolution)
                arm = _arm(name, config, at, values, label, accepted, starts)
            except (ValueError, TypeError) as error:  # of a class that a parameter names
                problems.append(f"solver {name}: {error}")
                continue
            arms.append(arm)
            if found := list(_problems(arm, accepted, search)):
                problems += found
            else:
                asked.append(arm)
    problems += _refused_by_classes(asked)
    problems += _refused_by_search(search, asked) if search.is_own else ()
    problems += list(_same_computations(arms))
    return arms, list(dict.fromkeys(problems))


def _described(solvers: Mapping[str, Mapping[str, Any]], others: Any) -> Iterator[Description]:
    """Describe each solver; what a child process could not import without harm is not imported here."""
    questions = [
        (_module([str(config["_target_"]), *targets_in([config, others])]), config)
        for config in solvers.values()
    ]

    def ask(config: Mapping[str, Any]) -> Description:
        return describe(str(config["_target_"]), _params(config), [config.get("space"), others])

    for (module, _), found in zip(questions, ask_classes(ask, questions), strict=True):
        if isinstance(found, ProcessEnded):
            found = Description((f"importing {module} {found.reason}; correct it",))
        yield found


def _params(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in ("_target_", "space")}


def _module(targets: Sequence[str]) -> str:
    """Return the module of the first class that is not trusted, else of the first."""
    return most_doubtful(targets).rpartition(".")[0]


def _unusable_config(solver: str, config: Mapping[Any, Any]) -> Iterator[str]:
    """Find what a solver's configuration may not hold, whatever its class."""
    space = config.get("space")
    if space is not None and not isinstance(space, Mapping):
        yield (
            f"solver {solver}: `space` must map parameters to lists of values, "
            f"such as `space: {{C: [1, 10]}}`, found {shown(space)}"
        )
        return
    for param in [*config, *(space or {})]:
        if not isinstance(param, str):
            yield f"solver {solver}: expected names of parameters, found {shown(param)}"


def _space(
    solver: str,
    own: Mapping[str, Any] | None,
    default: Mapping[str, Any],
    accepted: frozenset[str],
) -> Space:
    if own is None and default and not accepted.intersection(default):
        warnings.warn(
            f"solver {solver} has none of the search's parameters ({', '.join(map(str, default))}) and no "
            "`space` of its own; it is trained as it is, with one candidate",
            stacklevel=3,
        )
        return {}
    return {
        name: tuple(values) if isinstance(values, (list, tuple)) else values
        for name, values in (default if own is None else own).items()
    }


def _arm(
    name: str,
    config: Mapping[str, Any],
    space: Space,
    sweep: dict[str, ParamValue],
    label: str,
    accepted: frozenset[str],
    starts: bool,
) -> Arm:
    target = str(config["_target_"])
    params = _params(config) | {param: value for param, value in sweep.items() if param in accepted}
    arm = Arm(
        name=f"{name}[{label}]" if sweep else name,
        target=target,
        params=params,
        space=space,
        solver=name,
        sweep=sweep,
        # The C of a nested solver (`step__C`) makes no path: its pipeline would not start from the last fit.
        warm_starts=starts
        and isinstance(estimator_class(target)[0], type)
        and "warm_start" in accepted
        and params.get("warm_start") is not False
        and _is_path(space.get(PATH_PARAM, ())),
    )
    nested = sorted(set(targets_in(params)) - {target})
    identities = dict.fromkeys(filter(None, map(class_identity, [target, *nested])))
    of_space = {name: class_identity(name) for name in sorted(set(targets_in(space)))}
    others = {name: found for name, found in of_space.items() if found and found not in identities}
    return replace(arm, identity=" + ".join(identities), space_identities=others)


def _is_path(values: Any) -> bool:
    return isinstance(values, tuple) and len(values) > 1 and all(map(is_number, values))


def _problems(arm: Arm, accepted: frozenset[str], search: SearchSpec) -> Iterator[str]:
    known = sorted(accepted)
    for param in arm.params:
        if param not in accepted:
            yield f"solver {arm.solver}: {arm.target} has no parameter {param!r}{did_you_mean(param, known)}"
    for param in arm.space:
        if param not in accepted:
            yield (
                f"solver {arm.solver}: {arm.target} has no parameter {param!r} to search over"
                f"{did_you_mean(param, known)}; give the solver a `space` of its own"
            )
        elif param in arm.params:
            where = f"sweep.{param}" if param in arm.sweep else f"the configuration of solver {arm.solver}"
            yield f"{where} fixes {param!r}, which the search varies too; leave it out of one of them"
    if unusable := list(_unusable_params(arm)):
        yield from unusable
        return
    try:
        if search.is_own:  # whose code is tried in a child process
            make_space(arm.space)
            most_candidates(search, arm.space)
        elif search.target != SELECTED:  # whose candidates are known when the study is prepared
            check_search(search, arm.space)
    except ValueError as error:
        yield f"solver {arm.solver}: {error}"


def _unusable_params(arm: Arm) -> Iterator[str]:
    for param, value in arm.params.items():
        try:
            canonical_json(value)
        except TypeError:
            yield (
                f"solver {arm.solver}: {param} is {shown(value)}; "
                "expected null, a boolean, a number, text, or a list or mapping of these"
            )


def _refused_by_classes(arms: Sequence[Arm]) -> Iterator[str]:
    questions = [(arm.target, arm) for arm in arms]
    for arm, found in zip(arms, ask_classes(lambda arm: list(_refused_values(arm)), questions), strict=True):
        if isinstance(found, ProcessEnded):
            yield (
                f"solver {arm.solver}: {arm.target} {found.reason} when it was constructed "
                "and its parameters were checked; correct it"
            )
        else:
            yield from found


def _refused_values(arm: Arm) -> Iterator[str]:
    """Ask the class about its fixed parameters, then about each value it is to be given."""
    if refusal := refused_value(arm.target, arm.params):
        yield f"solver {arm.name}: {refusal}"
        return
    if kind := other_kind(arm.target, arm.params):
        yield f"solver {arm.name}: {arm.target} is a {kind}; expected a classifier"
        return
    for param, values in arm.space.items():
        for value in axis_values(values):
            if refusal := refused_value(arm.target, {**arm.params, param: value}):
                yield f"search.space.{param} for solver {arm.name}: {refusal}"


def _refused_by_search(search: SearchSpec, arms: Sequence[Arm]) -> Iterator[str]:
    """Try a user's search on the space of each arm, in a child process."""

    def ask(arm: Arm) -> str:
        try:
            first, again = (make_search(search, arm.space, seed=0).ask() for _ in range(2))
        except StudyStopped as error:
            return str(error)
        if first != again:
            return (
                f"search {search.target} proposes other candidates each time; expected the same for one seed"
            )
        return "" if first else f"search {search.target} proposes no candidate for solver {arm.solver}"

    for found in dict.fromkeys(ask_classes(ask, [(search.target, arm) for arm in arms])):
        if isinstance(found, ProcessEnded):
            yield f"search {search.target} {found.reason} when it was asked for candidates; correct it"
        elif found:
            yield found


def _same_computations(arms: Sequence[Arm]) -> Iterator[str]:
    """Find arms that would train the same models: they would count twice as evidence."""
    first_with: dict[tuple[str, str, str], Arm] = {}
    for arm in arms:
        if any(_unusable_params(arm)):
            continue
        key = arm.target, canonical_json(arm.params), canonical_json(arm.of_search)
        first = first_with.setdefault(key, arm)
        if first is not arm:
            yield f"solvers {first.name} and {arm.name} are the same computation; keep one of them"
