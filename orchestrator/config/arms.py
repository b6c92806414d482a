"""Construction of arms from solver configurations and sweep axes, with reports of all problems."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.config.axes import settings, swept_step, too_many
from orchestrator.config.preparation_settings import read_preparation
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import ask_classes, most_doubtful
from orchestrator.search import at_resolution, check_search, make_search, make_space, max_candidates
from orchestrator.study.errors import StudyStopped
from orchestrator.study.study import (
    BY_DATASET,
    EVERY,
    PATH_PARAM,
    PREPARE,
    SAMPLE,
    SELECTED,
    Arm,
    SearchSpec,
    axis_values,
)
from orchestrator.study.targets import did_you_mean, targets_in
from orchestrator.study.text import shown
from orchestrator.study.values import ParamValue, canonical_json, is_number
from orchestrator.training.estimators import (
    Description,
    describe,
    estimator_class,
    other_kind,
    refused_value,
)
from orchestrator.training.source_hash import with_code

RESOLUTION = "resolution"
"""Name of the sweep axis that belongs to the search."""

_USUAL = ("C", "gamma")
"""Parameters of the built-in searches' spaces, which classes of other kinds may lack."""

Space = Mapping[str, tuple[ParamValue, ...] | Mapping[str, Any]]
"""Hyper-parameters with their values or ranges."""


def build_arms(
    solvers: Mapping[str, Mapping[str, Any]],
    sweep: Mapping[str, Sequence[ParamValue]],
    search: SearchSpec,
    default_space: Mapping[str, Any],
    profile: str,
    resolutions: Sequence[int] | int | None = None,
) -> tuple[list[Arm], list[str]]:
    """Combine every solver with every combination of its sweep values.

    Parameters
    ----------
    solvers : mapping of str to mapping
        Configurations by name: `_target_`, parameters of the class, and optionally a custom `space` and the
        preparation `prepare`.
    sweep : mapping of str to sequence
        Values by parameter. Each axis applies to the solvers that have the parameter. If none has it, it
        applies to the pipelines of which one step has it. The axis of the preparation, `prepare`, applies to
        the solvers whose configuration does not have one.
    search : SearchSpec
        Search over hyper-parameters.
    default_space : mapping of str to sequence or mapping
        Space of the solvers without a custom one. A solver that has none of its parameters is not tuned: it
        has one candidate.
    profile : {"throughput", "timing"}
        Profile of the protocol. Only "throughput" allows warm starts.
    resolutions : int, sequence of int or None
        Number of values that replaces those of each numeric axis of the space. A sequence makes one arm for
        each of its numbers. None (default) keeps the values.

    Returns
    -------
    arms : list of Arm
        Arms in the order of the solvers. They are complete only if there is no problem.
    problems : list of str
        One sentence for each problem.

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
    untuned: list[str] = []
    # Other searches rarely propose paths, and rows without warm starts can be reused by any search.
    starts = profile == "throughput" and search.target in ("grid", "race", "pattern", EVERY)
    described = list(_described(solvers, [sweep, default_space]))
    optional = frozenset({*_USUAL, *(name for _, accepted in described for name in accepted)})
    direct = {PREPARE, *(axis for axis in sweep if any(axis in accepted for _, accepted in described))}
    if not any(unusable for unusable, _ in described):
        problems += _without_effect(default_space, solvers, [accepted for _, accepted in described])
    for (name, config), (unusable, accepted) in zip(solvers.items(), described, strict=True):
        if unusable:
            problems += [f"solver {name}: {problem}" for problem in unusable]
            continue
        if found := list(_unusable_config(name, config)):
            problems += found
            continue
        if _is_untuned(config.get("space"), default_space, accepted):
            untuned.append(name)
        space = _space(config.get("space"), default_space, accepted, optional)
        # A solver with its own preparation, such as a pipeline that takes text, keeps it.
        swept = accepted if config.get(PREPARE) is not None else accepted | {PREPARE}
        known = swept | {axis for axis in sweep if axis not in direct and swept_step(axis, accepted)}
        axes = {swept_step(axis, swept) or axis: values for axis, values in sweep.items() if axis in known}
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
                arm = replace(arm, prepare=_preparation(name, config, values, problems))
            except (ValueError, TypeError) as error:  # raised by a class that a parameter names
                problems.append(f"solver {name}: {error}")
                continue
            arms.append(arm)
            if found := list(_problems(arm, accepted, search)):
                problems += found
            else:
                asked.append(arm)
    problems += _refused_by_classes(asked, search)
    problems += _refused_by_search(search, asked) if search.is_custom else ()
    problems += list(_same_computations(arms))
    lacking = ", ".join(map(str, default_space))
    for name in [] if problems else untuned:
        warnings.warn(
            f"solver {name} has none of the search's parameters ({lacking}) and no `space`; it is "
            "trained with one candidate, its configured parameters. To tune it, give it a `space`",
            stacklevel=2,
        )
    return arms, list(dict.fromkeys(problems))


def _described(solvers: Mapping[str, Mapping[str, Any]], others: Any) -> Iterator[Description]:
    """Describe each solver. Its module is imported here only if a child process could import it unharmed.

    Parameters
    ----------
    solvers : mapping of str to mapping
        Configurations by name.
    others : object
        Further nodes of the configuration that may name classes: the sweep and the default space.

    Yields
    ------
    Description
        Problems and accepted parameters of a solver, in the order of `solvers`.
    """
    questions = [
        (_module([str(config["_target_"]), *targets_in([config, others])]), config)
        for config in solvers.values()
    ]

    def ask(config: Mapping[str, Any]) -> Description:
        own = config.get("space")
        space = own if isinstance(own, Mapping) else None
        return describe(str(config["_target_"]), _params(config), others, space)

    for (module, _), found in zip(questions, ask_classes(ask, questions), strict=True):
        if isinstance(found, ProcessEnded):
            found = Description((f"importing {module} {found.reason}; correct it",))
        yield found


def _params(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in ("_target_", "space", PREPARE)}


def _module(targets: Sequence[str]) -> str:
    """Return the module of the first class that is not trusted, or else of the first class.

    Parameters
    ----------
    targets : sequence of str
        Dotted paths of classes.
    """
    return most_doubtful(targets).rpartition(".")[0]


def _unusable_config(solver: str, config: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the problems of a solver's configuration that do not depend on its class.

    Parameters
    ----------
    solver : str
        Name of the solver.
    config : mapping
        Configuration of the solver.
    """
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


def _is_untuned(
    custom: Mapping[str, Any] | None, default: Mapping[str, Any], accepted: frozenset[str]
) -> bool:
    """Return whether a solver has neither a custom space nor a parameter of the search's space.

    Parameters
    ----------
    custom : mapping or None
        Space of its configuration.
    default : mapping
        Space of the search.
    accepted : frozenset of str
        Parameters of its class.
    """
    return custom is None and bool(default) and not accepted.intersection(default)


def _space(
    custom: Mapping[str, Any] | None,
    default: Mapping[str, Any],
    accepted: frozenset[str],
    optional: frozenset[str],
) -> Space:
    """Return the space of a solver: its custom one, or the part of the search's space that it accepts.

    Parameters
    ----------
    custom : mapping or None
        Space of its configuration.
    default : mapping
        Space of the search.
    accepted : frozenset of str
        Parameters of its class.
    optional : frozenset of str
        Parameters of the search's space that it may lack. A parameter that no solver has is a mistake.
    """
    if _is_untuned(custom, default, accepted):
        return {}
    return {
        name: tuple(values) if isinstance(values, (list, tuple)) else values
        for name, values in (default if custom is None else custom).items()
        if custom is not None or name in accepted or name not in optional
    }


def _without_effect(
    default: Mapping[str, Any], solvers: Mapping[str, Mapping[str, Any]], accepted: Sequence[frozenset[str]]
) -> Iterator[str]:
    """Yield a problem for each parameter of the search's space that no solver takes from it.

    A parameter that a solver without a custom space lacks is reported with this solver.

    Parameters
    ----------
    default : mapping
        Space of the search. C and gamma are in it by default, so that nothing is said of them.
    solvers : mapping of str to mapping
        Configurations by name.
    accepted : sequence of frozenset of str
        Parameters of the class of each solver.
    """
    custom = {
        name: known
        for (name, config), known in zip(solvers.items(), accepted, strict=True)
        if config.get("space") is not None
    }
    others = [known for name, known in zip(solvers, accepted, strict=True) if name not in custom]
    for param in default:
        if param in _USUAL or any(param in known for known in others):
            continue
        if having := [name for name, known in custom.items() if param in known]:
            yield (
                f"search.space.{param} has no effect on {', '.join(having)}, which has a custom `space`. "
                f"Set solver.{having[0]}.space.{param}=[…]"
            )
        elif not others:
            known = sorted(frozenset().union(*accepted))
            near = did_you_mean(param, known) or f"; their parameters are {', '.join(known)}"
            yield f"search.space.{param}: no chosen solver has a parameter {param!r}{near}"


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
        # The C of a nested solver (`step__C`) makes no path: a pipeline does not start from its last fit.
        warm_starts=starts
        and isinstance(estimator_class(target)[0], type)
        and "warm_start" in accepted
        and params.get("warm_start") is not False
        and _is_path(space.get(PATH_PARAM, ())),
    )
    return with_code(arm)


def _preparation(
    name: str, config: Mapping[str, Any], sweep: Mapping[str, ParamValue], problems: list[str]
) -> str:
    """Return the preparation that an arm asks for, as text; empty for that of the protocol.

    Parameters
    ----------
    name : str
        Name of the solver.
    config : mapping
        Configuration of the solver.
    sweep : mapping
        Sweep values of the arm.
    problems : list of str
        One message is appended for a preparation that cannot be used.
    """
    if (own := config.get(PREPARE)) is not None:
        return read_preparation(own, f"solver {name}: prepare", problems)
    return read_preparation(sweep[PREPARE], f"sweep.{PREPARE}", problems) if PREPARE in sweep else ""


def _is_path(values: Any) -> bool:
    return isinstance(values, tuple) and len(values) > 1 and all(map(is_number, values))


def _problems(arm: Arm, accepted: frozenset[str], search: SearchSpec) -> Iterator[str]:
    known = sorted(accepted)
    for param in arm.params:
        if param not in accepted:
            yield f"solver {arm.solver}: {arm.target} has no parameter {param!r}{did_you_mean(param, known)}"
    for param in arm.space:
        if param not in accepted:
            near = did_you_mean(param, known) or f"; its parameters are {', '.join(known)}"
            yield f"solver {arm.solver}: {arm.target} has no parameter {param!r} to search over{near}"
        elif param in arm.params:
            where = f"sweep.{param}" if param in arm.sweep else f"the configuration of solver {arm.solver}"
            yield f"{where} fixes {param!r}, which the search varies too; leave it out of one of them"
    if unusable := list(_unusable_params(arm)):
        yield from unusable
        return
    try:
        if search.is_custom:  # the code of a custom search is tried in a child process
            make_space(arm.space)
            max_candidates(search, arm.space)
        elif search.target not in (SELECTED, SAMPLE):  # these are known only when the study is prepared
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


def _refused_by_classes(arms: Sequence[Arm], search: SearchSpec) -> Iterator[str]:
    questions = [(arm.target, arm) for arm in arms]
    answers = ask_classes(lambda arm: list(_refused_values(arm, search)), questions)
    for arm, found in zip(arms, answers, strict=True):
        if isinstance(found, ProcessEnded):
            yield (
                f"solver {arm.solver}: {arm.target} {found.reason} when it was constructed "
                "and its parameters were checked; correct it"
            )
        else:
            yield from found


def _refused_values(arm: Arm, search: SearchSpec) -> Iterator[str]:
    """Yield the values that a class refuses: fixed parameters first, then each value of the space.

    Parameters
    ----------
    arm : Arm
        Class and its values.
    search : SearchSpec
        Search, which may fix values of the space on single datasets.
    """
    if refusal := refused_value(arm.target, arm.params):
        yield f"solver {arm.name}: {refusal}"
        return
    if kind := other_kind(arm.target, arm.params):
        article = "an" if kind[0] in "aeiou" else "a"
        yield f"solver {arm.name}: {arm.target} is {article} {kind}; expected a classifier"
        return
    for param, values in arm.space.items():
        for value in axis_values(values):
            if refusal := refused_value(arm.target, {**arm.params, param: value}):
                yield f"search.space.{param} for solver {arm.name}: {refusal}"
    for dataset, param, value in _fixed_values(search):
        if param in arm.space and (refusal := refused_value(arm.target, {**arm.params, param: value})):
            yield f"search.{BY_DATASET}.{dataset}.{param} for solver {arm.name}: {refusal}"


def _fixed_values(search: SearchSpec) -> Iterator[tuple[str, str, ParamValue]]:
    """Yield the dataset, name and value of each hyper-parameter that a search fixes on a single dataset.

    Parameters
    ----------
    search : SearchSpec
        Search. Values that are no mapping are left out; they are reported where the search is checked.

    Yields
    ------
    tuple of (str, str, object)
        Dataset, hyper-parameter and value.
    """
    by_dataset = search.options.get(BY_DATASET)
    for dataset, values in by_dataset.items() if isinstance(by_dataset, Mapping) else ():
        for param, value in values.items() if isinstance(values, Mapping) else ():
            yield dataset, param, value


def _refused_by_search(search: SearchSpec, arms: Sequence[Arm]) -> Iterator[str]:
    """Try a custom search on the space of each arm in a child process, and yield the problems.

    Parameters
    ----------
    search : SearchSpec
        Search whose code a user wrote.
    arms : sequence of Arm
        Arms whose parameters are valid.
    """

    def ask(arm: Arm) -> str:
        try:
            first, again = (make_search(search, arm.space, seed=0).ask() for _ in range(2))
        except StudyStopped as error:
            return str(error)
        if first != again:
            return (
                f"search {search.target} proposes different candidates for one seed; expected equal ones. "
                "Draw random numbers only from `seed`"
            )
        return "" if first else f"search {search.target} proposes no candidate for solver {arm.solver}"

    for found in dict.fromkeys(ask_classes(ask, [(search.target, arm) for arm in arms])):
        if isinstance(found, ProcessEnded):
            yield f"search {search.target} {found.reason} when it was asked for candidates; correct it"
        elif found:
            yield found


def _same_computations(arms: Sequence[Arm]) -> Iterator[str]:
    """Yield a problem for each pair of arms that train the same models and would count twice in a test.

    Parameters
    ----------
    arms : sequence of Arm
        All arms of the study.
    """
    first_with: dict[tuple[str, ...], Arm] = {}
    for arm in arms:
        if any(_unusable_params(arm)):
            continue
        key = arm.target, arm.prepare, canonical_json(arm.params), canonical_json(arm.of_search)
        first = first_with.setdefault(key, arm)
        if first is not arm:
            yield f"solvers {first.name} and {arm.name} are the same computation; keep one of them"
