"""The names that a study may have: each is the name of a folder, on every system and in every shell."""

import re
from typing import Any

from orchestrator.study.text import shown

_NAME = re.compile(r"[^\W_][\w.-]{0,99}")
_MAX_BYTES = 200
"""Longest name in UTF-8, in bytes: file systems allow 255, and folders to be deleted have longer names."""

_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names that Windows keeps for devices, whatever follows the dot."""


def name_problem(given: Any, key: str = "study") -> str:
    """Return why a value cannot be the name of a study, in one sentence; empty if it can.

    Parameters
    ----------
    given : object
        A text, or a whole number, which YAML makes of a name of digits.
    key : str
        The configuration key that holds it, for the message.
    """
    name = str(given) if isinstance(given, str) or type(given) is int else ""
    if not _NAME.fullmatch(name) or name.endswith(".") or len(name.encode()) > _MAX_BYTES:
        return (
            f"{key}={shown(given)}: expected letters, digits, '-', '_' and '.', for it names a folder; "
            "a letter or digit first, not a '.' last, at most 100 of them, in quotes if they read as a number"
        )
    if _DEVICES.fullmatch(name):
        return f"{key}={shown(given)} is the name of a device on Windows; choose another"
    return ""
