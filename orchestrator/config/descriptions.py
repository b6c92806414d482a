"""Descriptions of configuration files for `svmbench list`, read without Hydra and without any import."""

import re
from pathlib import Path

from orchestrator.datasets.packages import package_folder

_TARGET = re.compile(r"^\s*_target_:\s*['\"]?(\w+)\.", re.MULTILINE)
"""Line that names a class; the group is its package."""

_NO_SENTENCE = ("@package", "svmbench ")
"""Beginnings of comment lines that are not part of a description."""


def description(file: Path) -> str:
    """Return the first sentence of the comment at the head of a configuration file; empty if it has none.

    Parameters
    ----------
    file : Path
        YAML file.
    """
    lines = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    head = []
    for line in lines:
        if not line.startswith("#"):
            break
        if not (text := line.lstrip("# ").strip()).startswith(_NO_SENTENCE):
            head.append(text)
    return re.split(r"(?<=[.;])\s", " ".join(head) + " ")[0].rstrip(".; ")


def missing_packages(file: Path) -> list[str]:
    """Return the packages that a configuration file names in `_target_` and that are not installed.

    Parameters
    ----------
    file : Path
        YAML file.
    """
    packages = dict.fromkeys(_TARGET.findall(file.read_text(encoding="utf-8-sig", errors="replace")))
    return [name for name in packages if package_folder(name) is None]
