"""Settings of an experiment for arms and datasets that a narrower command leaves out.

An experiment sets parameters, axes of its sweep and references for the solvers and datasets that it names. A
command that names fewer of them runs a part of the study, and leaves the settings of the others aside.
Settings that the command itself names are checked as usual.
"""

from collections.abc import Collection, Mapping
from typing import Any

OPTIONAL_AXES = "optional_axes"
"""Key of the axes of a sweep that may apply to no chosen solver or dataset, in a composed configuration."""

_GROUPS = ("dataset", "solver")


def left_aside(
    group: str, typed: Collection[str], node: Mapping[str, Any], names: Collection[str]
) -> set[str]:
    """Return the names whose parameters an experiment sets, but which the command does not choose.

    Parameters
    ----------
    group : {"dataset", "solver"}
        Group of the configurations.
    typed : collection of str
        Keys of the command's overrides.
    node : mapping
        Parameters by name, from the command and the experiment.
    names : collection of str
        Names that the command chooses.
    """
    if f"{group}s" not in typed:
        return set()
    heads = {".".join(key.split(".")[:2]) for key in typed}
    return {
        name
        for name in node
        if isinstance(name, str) and name not in names and f"{group}.{name}" not in heads
    }


def optional_axes(sweep: Any, typed: Collection[str]) -> list[str]:
    """Return the axes of an experiment's sweep that a command with fewer solvers or datasets may not need.

    Parameters
    ----------
    sweep : object
        The composed sweep.
    typed : collection of str
        Keys of the command's overrides.
    """
    if not isinstance(sweep, Mapping) or not {f"{group}s" for group in _GROUPS} & set(typed):
        return []
    if "sweep" in typed:
        return []
    return [axis for axis in sweep if isinstance(axis, str) and f"sweep.{axis}" not in typed]


def report_of(report: Any, typed: Collection[str], solvers: Collection[str]) -> Any:
    """Return the choices for the report without references and a control that the command leaves out.

    Parameters
    ----------
    report : object
        The composed choices.
    typed : collection of str
        Keys of the command's overrides.
    solvers : collection of str
        Names of the chosen solvers.
    """
    if not isinstance(report, Mapping) or "solvers" not in typed:
        return report

    def is_chosen(arm: Any) -> bool:
        return not isinstance(arm, str) or arm.partition("[")[0] in solvers

    kept = dict(report)
    references = kept.get("reference")
    if isinstance(references, list) and "report.reference" not in typed:
        kept["reference"] = [arm for arm in references if is_chosen(arm)]
    if "report.control" not in typed and not is_chosen(kept.get("control")):
        kept["control"] = None
    return kept
