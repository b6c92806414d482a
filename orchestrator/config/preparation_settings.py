"""Checks of the configuration key `prepare` of a protocol, a solver or a sweep."""

from collections.abc import Mapping
from typing import Any

from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.isolation.class_checks import ask_classes, most_doubtful
from orchestrator.study.preparation import AUTO, NAMES, SCALINGS, Preparation
from orchestrator.study.targets import TARGET, did_you_mean
from orchestrator.study.text import shown
from orchestrator.study.values import canonical_json, cell
from orchestrator.training.preparation import unusable_transformer


def protocol_preparation(node: Mapping[str, Any], problems: list[str]) -> Preparation:
    """Return the preparation that a protocol asks for, by `prepare` or by the older key `scaling`.

    Parameters
    ----------
    node : mapping
        Configuration key `protocol`.
    problems : list of str
        One message is appended for a preparation that cannot be used, or for two that differ.
    """
    prepare, scaling = node.get("prepare") or AUTO, node.get("scaling")
    by_scaling = SCALINGS.get(scaling, AUTO) if isinstance(scaling, str) else AUTO
    if prepare == AUTO:
        return Preparation(by_scaling)
    name = read_preparation(prepare, "protocol.prepare", problems)
    if by_scaling not in (AUTO, name):
        problems.append(
            f"protocol.prepare={cell(prepare)} and protocol.scaling={scaling}, which means "
            f"{Preparation(by_scaling).words}, ask for different preparations. Leave out protocol.scaling"
        )
    return Preparation(name or AUTO)


def read_preparation(node: Any, key: str, problems: list[str]) -> str:
    """Return a preparation as text: its name, or a transformer as JSON; empty if it cannot be used.

    Parameters
    ----------
    node : object
        Configured value.
    key : str
        Key of the value, for messages.
    problems : list of str
        One message is appended for a value that cannot be used.
    """
    expected = (
        f"{key}: expected {', '.join(NAMES)}, or a transformer such as "
        "{_target_: sklearn.decomposition.PCA}"
    )
    if isinstance(node, str):
        if node not in NAMES:
            problems.append(f"{expected}, found {shown(node)}{did_you_mean(node, NAMES)}")
            return ""
        return node
    if not isinstance(node, Mapping) or not isinstance(node.get(TARGET), str):
        problems.append(f"{expected}, found {shown(node)}")
        return ""
    try:
        preparation = Preparation(canonical_json(node))
    except TypeError as error:
        problems.append(f"{key}: {error}")
        return ""
    path = most_doubtful(preparation.targets)
    (found,) = ask_classes(unusable_transformer, [(path, preparation)])
    if isinstance(found, ProcessEnded):
        found = f"{path} {found.reason} when it was imported and called; correct it"
    if found:
        problems.append(f"{key}: {found}")
    return preparation.name
