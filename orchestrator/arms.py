"""From solver configurations and sweep axes to arms, with every problem found on the way."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.estimators import estimator_class, other_kind, refused_value
from orchestrator.machine import package_identity
from orchestrator.resolve import did_you_mean
from orchestrator.search import make_search
from orchestrator.study import PATH_PARAM, Arm, ParamValue

Space = Mapping[str, tuple[ParamValue, ...]]


def build_arms(
    solvers: Mapping[str, Mapping[str, Any]],
    sweep: Mapping[str, Sequence[ParamValue]],
    search: str,
    default_space: Mapping[str, Sequence[ParamValue]],
    profile: str,
) -> tuple[list[Arm], list[str]]:
    """Multiply solvers by the sweep's values.

    Parameters
    ----------
    solvers : mapping of str to mapping
        By name: `_target_`, parameters of the class, and optionally a `space` of its own.
    sweep : mapping of str to sequence
        Axes; each multiplies every solver that has the parameter.
    search : str
        Kind of the search.
    default_space : mapping of str to sequence
        The space of solvers that have none of their own.
    profile : {"throughput", "timing"}
        Only throughput lets trainings start from one another.

    Returns
    -------
    arms : list of Arm
    problems : list of str
        One sentence each; arms are complete only if there is none.
    """
    arms: list[Arm] = []
    problems: list[str] = []
    for name, config in solvers.items():
        try:
            _, accepted = estimator_class(str(config.get("_target_")))
        except (ValueError, TypeError) as error:
            problems.append(f"solver {name}: {error}")
            continue
        space = _space(config.get("space") or default_space)
        axes = {param: values for param, values in sweep.items() if param in accepted}
        for values in itertools.product(*axes.values()):
            arm = _arm(name, config, space, dict(zip(axes, values, strict=True)), accepted, profile)
            problems += _problems(arm, accepted, search)
            arms.append(arm)
    problems += list(_same_computations(arms))
    return arms, list(dict.fromkeys(problems))


def _space(config: Mapping[str, Any]) -> Space:
    return {
        name: tuple(_frozen(value) for value in values) if isinstance(values, (list, tuple)) else values
        for name, values in config.items()
    }


def _frozen(value: Any) -> Any:
    """Turn lists into tuples, which have a hash as candidates need it, and which classes take as well."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _arm(
    name: str,
    config: Mapping[str, Any],
    space: Space,
    sweep: dict[str, ParamValue],
    accepted: frozenset[str],
    profile: str,
) -> Arm:
    target = str(config["_target_"])
    params = {key: value for key, value in config.items() if key not in ("_target_", "space")} | sweep
    label = ",".join(f"{key}={_format(value)}" for key, value in sweep.items())
    return Arm(
        name=f"{name}[{label}]" if sweep else name,
        target=target,
        params=params,
        space=space,
        identity=package_identity(target),
        solver=name,
        sweep=sweep,
        warm_starts=profile == "throughput"
        and "warm_start" in accepted
        and params.get("warm_start") is not False
        and len(space.get(PATH_PARAM, ())) > 1,
    )


def _format(value: ParamValue) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _problems(arm: Arm, accepted: frozenset[str], search: str) -> Iterator[str]:
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
    if unusable := list(_unusable_values(arm.space)):
        yield from unusable
        return
    try:
        make_search(search, arm.space)
    except ValueError as error:
        yield f"solver {arm.solver}: {error}"
        return
    if accepted.issuperset(arm.params) and accepted.issuperset(arm.space):
        yield from _refused_values(arm)


def _unusable_values(space: Space) -> Iterator[str]:
    for param, values in space.items():
        for value in values if isinstance(values, tuple) else ():
            if isinstance(value, Mapping):
                yield f"search.space.{param} holds {value!r}; expected numbers, words, truths or lists"
            elif param == PATH_PARAM and (isinstance(value, bool) or not isinstance(value, (int, float))):
                yield f"search.space.{param} holds {value!r}; expected numbers, from small to large penalties"


def _refused_values(arm: Arm) -> Iterator[str]:
    """Ask the class about its fixed parameters, then about each value it is to be given."""
    if refusal := refused_value(arm.target, arm.params):
        yield f"solver {arm.name}: {refusal}"
        return
    if kind := other_kind(arm.target, arm.params):
        yield f"solver {arm.name}: {arm.target} is a {kind}; expected a classifier"
        return
    for param, values in arm.space.items():
        for value in values:
            if refusal := refused_value(arm.target, {**arm.params, param: value}):
                yield f"search.space.{param} for solver {arm.name}: {refusal}"


def _same_computations(arms: Sequence[Arm]) -> Iterator[str]:
    """Find arms that would train the same models: they would count twice as evidence."""
    for first, second in itertools.combinations(arms, 2):
        if (first.target, dict(first.params)) == (second.target, dict(second.params)):
            yield f"solvers {first.name} and {second.name} are the same computation; keep one of them"
