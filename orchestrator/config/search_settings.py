"""Checks of the configuration key `search`: a built-in search, by `kind`, or a custom one, by `_target_`."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.config.scalars import wrong_values
from orchestrator.search import OPTIONS
from orchestrator.search.statistical_race import DEFAULTS, STATISTICAL
from orchestrator.study.score_bounds import highest_score
from orchestrator.study.study import BY_DATASET, MEDIAN, MOST_OFTEN, SAMPLE, SELECTED, SearchSpec
from orchestrator.study.study_name import name_problem
from orchestrator.study.targets import did_you_mean
from orchestrator.study.text import shown
from orchestrator.study.values import canonical_json, is_number

MAX_RESOLUTION = 1000
"""Largest number of values of a hyper-parameter that `search.resolution` accepts."""

_LOSSLESS = "lossless"
"""Default mode of a race. It is not recorded, so a search that names it is the same as one without a mode."""


def read_search(
    node: Mapping[str, Any], metric: str, problems: list[str], is_custom_metric: bool = False
) -> tuple[SearchSpec, dict[str, Any], int | list[int] | None]:
    """Check the configuration key `search`.

    The code of a custom search is not imported here; `orchestrator.config.arms` tries it.

    Parameters
    ----------
    node : mapping
        Value of the key.
    metric : str
        Name of the metric that selects candidates. A lossless race needs its highest value.
    problems : list of str
        One message is appended for each problem.
    is_custom_metric : bool
        Whether a user wrote the metric, so that its highest value is not known. Default False.

    Returns
    -------
    search : SearchSpec
        Search with its options.
    space : dict
        Space of the solvers that have no custom one.
    resolution : int, list of int or None
        Number of values of each numeric axis, or several numbers. None keeps the values of the space.
    """
    space = node.get("space") or {}
    if not isinstance(space, Mapping):
        problems.append(
            f"search.space must map parameters to lists of values or ranges, found {shown(space)}"
        )
        space = {}
    kind, target = node.get("kind"), node.get("_target_")
    if target is not None and (not isinstance(target, str) or "." not in target):
        problems.append(
            f"search._target_ must be the dotted path of a class or generator, found {shown(target)}"
        )
        target = None
    if kind is not None and target is not None:
        problems.append(
            f"search has the kind {kind} and the _target_ {target}; put the latter into a file "
            "search/NAME.yaml of your --config-dir and choose it with search=NAME, or add search.kind=null"
        )
    resolution = _resolution(node.get("resolution"), problems)
    others = ("kind", "_target_", "space", "resolution")
    options = {name: value for name, value in node.items() if name not in others}
    for name, usable in (("budget", 1), ("seed", 0)):
        if name in options and (wrong := list(wrong_values(options, [name], "search."))):
            problems += wrong
            options[name] = usable  # avoids further messages about the same value
    known = OPTIONS.get(str(kind), ()) if target is None else None
    for name, value in options.items():
        if known is not None and kind in OPTIONS and name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            problems.append(
                f"search.{name}: {kind} has no such option; {takes}{did_you_mean(str(name), known)}"
            )
        try:
            canonical_json(value)
        except TypeError:
            problems.append(
                f"search.{name} is {shown(value)}; expected a number, text, or a list or mapping of these"
            )
    if BY_DATASET in options:
        problems += _fixed_problems(options[BY_DATASET])
    if kind == "race":
        options, wrong = _race_options(options, metric, None if is_custom_metric else highest_score(metric))
        problems += wrong
    if kind in (SELECTED, SAMPLE) and target is None:
        problems += _source_problems(str(kind), options)
        if kind == SAMPLE:
            problems += _sample_problems(options)
        elif (rule := options.pop("rule", None)) not in (None, MOST_OFTEN):  # the default is not recorded
            problems += _rule_problems(rule)
            options["rule"] = rule
        options["study"] = str(options.get("study"))  # YAML reads a name that consists of digits as a number
    return SearchSpec(target or str(kind), options), dict(space), resolution


def _resolution(value: Any, problems: list[str]) -> int | list[int] | None:
    """Return the configured resolution if it is valid, else None.

    Parameters
    ----------
    value : object
        Configured value: a number, a list of numbers, or None.
    problems : list of str
        A message is appended if the value is not valid.
    """
    values = value if isinstance(value, list) else [] if value is None else [value]
    right = [each for each in values if type(each) is int and 2 <= each <= MAX_RESOLUTION]
    if right != values or value == [] or len(set(right)) < len(right):
        problems.append(
            f"search.resolution must be a whole number from 2 to {MAX_RESOLUTION}, or a list of different "
            f"ones, found {shown(value)}"
        )
        return None
    return None if value is None else right if isinstance(value, list) else right[0]


def _source_problems(kind: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of the study from which a search takes its candidates.

    Parameters
    ----------
    kind : {"selected", "sample"}
        Name of the search.
    options : mapping
        Options of the search.
    """
    study, arm = options.get("study"), options.get("arm")
    takes = "hyper-parameters that a finished study has selected"
    if kind == SAMPLE:
        takes = "trainings of a finished study"
    if study is None or study == "":
        name = "median_of" if options.get("rule") == MEDIAN else kind
        yield f"search={name} uses the {takes}; set search.study=NAME, found {shown(study)}"
    elif problem := name_problem(study, "search.study"):
        yield problem
    if not isinstance(arm, str | None):
        yield f"search.arm must be the name of an arm of that study, or null, found {shown(arm)}"


def _fixed_problems(fixed: Any) -> Iterator[str]:
    """Yield the problems of the hyper-parameters that are fixed on single datasets.

    Parameters
    ----------
    fixed : object
        Configured value of `search.by_dataset`.
    """
    if not isinstance(fixed, Mapping) or not all(isinstance(values, Mapping) for values in fixed.values()):
        yield (
            f"search.{BY_DATASET}={shown(fixed)}: expected hyper-parameters by dataset, such as "
            "{heart: {gamma: 0.005}}"
        )
        return
    for dataset, values in fixed.items():
        for name, value in values.items():
            if not isinstance(name, str) or isinstance(value, list | Mapping):
                yield (
                    f"search.{BY_DATASET}.{dataset}: expected one value for each hyper-parameter, found "
                    f"{shown(name)}: {shown(value)}. Give a single value"
                )


def _rule_problems(rule: Any) -> Iterator[str]:
    """Yield the problem of the rule by which one candidate follows from the selections of a study.

    Parameters
    ----------
    rule : object
        Configured value.
    """
    if rule != MEDIAN:
        yield f"search.rule={shown(rule)}: expected {MOST_OFTEN} or {MEDIAN}. Set search.rule={MEDIAN}"


def _sample_problems(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of the sizes of a sample.

    Parameters
    ----------
    options : mapping
        Options of the search.
    """
    for name, counted in (("folds", "trainings of each candidate"), ("repeats", "measurements of each")):
        value = options.get(name, 1)
        if type(value) is not int or value < 1:
            yield f"search.{name}={shown(value)}: expected the number of {counted}, an integer from 1"


def _race_options(
    options: dict[str, Any], metric: str, known: float | None
) -> tuple[dict[str, Any], list[str]]:
    """Return the options of a race as they are recorded, and their problems.

    Parameters
    ----------
    options : dict
        Options of `search` as the user wrote them, by name.
    metric : str
        Name of the metric that selects candidates.
    known : float or None
        Its highest value; None if it is not known.
    """
    mode = options.get("mode", _LOSSLESS)
    if mode not in (_LOSSLESS, STATISTICAL):
        return {}, [f"search.mode must be {_LOSSLESS} or {STATISTICAL}, found {shown(mode)}"]
    if mode == _LOSSLESS:
        options = {name: value for name, value in options.items() if name != "mode"}
        others, needs = DEFAULTS.keys() & options.keys(), f"search.mode={STATISTICAL}"
        return options, [f"search.{name} needs {needs}" for name in sorted(others)] + list(
            _highest_problem(options.get("highest"), metric, known)
        )
    problems = []
    if "highest" in options:
        problems.append(f"search.highest has no effect on search.mode={STATISTICAL}; leave it out")
    options = DEFAULTS | options
    for name in DEFAULTS:
        if not (is_number(options[name]) and 0 < options[name] < 1):
            problems.append(f"search.{name} must be a number between 0 and 1, found {shown(options[name])}")
    return options, problems


def _highest_problem(highest: Any, metric: str, known: float | None) -> Iterator[str]:
    if highest is None and known is None:
        yield (
            f"search=race needs the highest value of the metric {metric} to leave out candidates that cannot "
            "win, and it is not known; declare it with search.highest=1, or use search=grid"
        )
    if highest is not None and not (is_number(highest) and math.isfinite(highest)):
        yield f"search.highest must be the highest value of the metric, a number, found {shown(highest)}"
