"""Valid names of studies. A name is also that of a folder, so it must work on every system."""

import re
from typing import Any

from orchestrator.study.text import shown

_NAME = re.compile(r"[^\W_][\w.-]{0,99}")
_MAX_BYTES = 200
"""Longest name, in bytes of UTF-8. File systems allow 255, and folders of deleted studies get a suffix."""

_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that Windows reserves for devices, with or without a suffix."""


def name_problem(given: Any, key: str = "study") -> str:
    """Return why a value is not a valid name of a study, in one sentence; empty if it is valid.

    Parameters
    ----------
    given : object
        Name. An integer is accepted, because YAML reads a name of digits as one.
    key : str, default "study"
        Configuration key of the name, for the message.
    """
    name = str(given) if isinstance(given, str) or type(given) is int else ""
    if not _NAME.fullmatch(name) or name.endswith(".") or len(name.encode()) > _MAX_BYTES:
        return (
            f"{key}={shown(given)}: expected the name of a folder: at most 100 letters, digits, '-', '_' and "
            "'.', a letter or digit first, no '.' last, in quotes if it reads as a number"
        )
    if _DEVICES.fullmatch(name):
        return f"{key}={shown(given)} is the name of a device on Windows; choose another name"
    return ""
