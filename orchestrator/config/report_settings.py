"""Checks of the configuration key `report`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator.config.scalars import wrong_values
from orchestrator.study.errors import ConfigError
from orchestrator.study.report_choices import ReportChoices
from orchestrator.study.text import shown


def checked_choices(node: Mapping[str, Any], problems: list[str]) -> ReportChoices:
    """Return the checked choices of a report.

    Parameters
    ----------
    node : mapping
        Composed configuration key `report`.
    problems : list of str
        One message is appended for each problem.
    """
    names_of_scalars = ("alpha", "rope", "families", "sequential", "failed", "adjust")
    found = list(wrong_values(node, names_of_scalars, "report."))
    names = node["leave_out"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        found.append(f"report.leave_out must be a list of arms and datasets, found {shown(names)}")
    arms = node["reference"]
    if not isinstance(arms, str | list) or not all(isinstance(name, str) for name in arms):
        found.append(f"report.reference must be a list of arms, found {shown(arms)}")
    elif isinstance(arms, list) and len(set(arms)) < len(arms):
        found.append(f"report.reference={shown(arms)} repeats an arm; name each arm once")
    if not isinstance(node["control"], str | None):
        found.append(f"report.control must be the name of an arm, found {shown(node['control'])}")
    if not isinstance(node["earlier"], str | None):
        found.append(f"report.earlier must be the name of a study, found {shown(node['earlier'])}")
    found += _plan_problems(node["plan"])
    problems += found
    return ReportChoices() if found else ReportChoices.of(node)


def _plan_problems(plan: Any) -> list[str]:
    """Return a message for each value of `report.plan` that is not valid.

    Parameters
    ----------
    plan : object
        Composed configuration key `report.plan`.
    """
    keys = ("datasets", "arms", "repeats")
    if not isinstance(plan, Mapping) or not {*plan} <= {*keys}:
        return [f"report.plan must be a mapping of {', '.join(keys)}, found {shown(plan)}"]
    found = [
        f"report.plan.{key} must be a list of names, found {shown(names)}"
        for key in keys[:2]
        if not isinstance(names := plan.get(key) or [], list) or not all(isinstance(n, str) for n in names)
    ]
    repeats = plan.get("repeats")
    if repeats is not None and (not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1):
        found.append(f"report.plan.repeats must be a whole number of at least 1, found {shown(repeats)}")
    return found


def given_choices(config: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Return the choices that overrides or an experiment set.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    overrides : sequence of str
        Overrides from which it was composed.

    Raises
    ------
    ConfigError
        If a choice is not valid. The error lists every problem.
    """
    problems: list[str] = []
    chosen = checked_choices(config["report"], problems).declared()
    if problems:
        raise ConfigError(problems)
    default = ReportChoices(adjust=None).declared()
    named = {name for name in chosen if any(f"report.{name}=" in text for text in overrides)}
    return {name: value for name, value in chosen.items() if name in named or value != default[name]}


def published_files(config: Mapping[str, Any], problems: list[str]) -> list[str]:
    """Return the paths of files of published scores, without opening them.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    problems : list of str
        A message is appended if the key is not a list of texts.
    """
    return _names(config, "published", "CSV files", bool, problems)


def section_names(config: Mapping[str, Any], problems: list[str]) -> list[str]:
    """Return the dotted paths of the user's sections of a report, without importing them.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    problems : list of str
        A message is appended if the key is not a list of dotted paths.
    """
    expected = "dotted paths of functions, such as [mysections.errors]"
    return _names(config, "sections", expected, lambda name: "." in name, problems)


def _names(
    config: Mapping[str, Any],
    key: str,
    expected: str,
    is_right: Callable[[str], bool],
    problems: list[str],
) -> list[str]:
    """Return the names that a key of the report lists. A single name means a list of one.

    Parameters
    ----------
    config : mapping
        Composed configuration.
    key : str
        Key below `report`.
    expected : str
        Description of valid items, for the message.
    is_right : callable
        Returns whether a text is a valid item.
    problems : list of str
        A message is appended if the value is not valid.
    """
    names = config["report"][key] or []
    names = [names] if isinstance(names, str) else names
    if isinstance(names, list) and all(isinstance(name, str) and is_right(name) for name in names):
        return names
    problems.append(f"report.{key} must be a list of {expected}, found {shown(names)}")
    return []
