"""Overrides as a user types them, in the form that Hydra's parser accepts."""

import re
from collections.abc import Mapping
from typing import Any

from orchestrator.datasets.formats import is_path
from orchestrator.study.errors import ConfigError
from orchestrator.study.text import quoted, shown

_NUMERIC_NAME = re.compile(r"\d[\w.-]*")
"""Name of a study that Hydra might read as a number and so change: `1_000` would become 1000."""

_TOKEN = re.compile(r"[^\[\]{}(),'\"]+")
"""Text between the brackets and commas of a value."""

_NAME_IN_LIST = re.compile(r"[^\[\],\s](?:[^\[\],]*[^\[\],\s])?")
"""Name between the brackets and commas of a list, without the spaces around it."""

_COLUMN_KEYS = ("label", "groups", "train", "test")
"""Keys whose value is the name of a column or the path of a file."""

_AS_TYPED = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*|-?\d{1,9}|")
"""Names, paths and positions that Hydra's parser reads as typed."""

_PLAIN = re.compile(r"[A-Za-z_./~-][\w./~-]*", re.ASCII)
"""Texts that Hydra's parser reads as texts without quotes, unless they are another value."""

_OTHER_VALUES = frozenset({"null", "true", "false", "nan", "inf", "-inf"})


def override_of(key: str, value: Any) -> str:
    """Return the override that sets a key to a value.

    Parameters
    ----------
    key : str
        Key with dots between its levels, such as `protocol.outer`.
    value : object
        Any value that YAML can express.
    """
    return f"{key}={_written(value)}"


def _written(value: Any) -> str:
    """Return a value in Hydra's grammar.

    Parameters
    ----------
    value : object
        Any value that YAML can express.
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}: {_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_written, value)) + "]"
    if not isinstance(value, str) or (_PLAIN.fullmatch(value) and value.lower() not in _OTHER_VALUES):
        return str(value)
    return quoted(value)


def with_quotes(text: str) -> str:
    """Return an override with quotes around each name or path that Hydra's parser would misread.

    The parser reads letters outside ASCII only between quotes: `study='größe'`. It reads the name of a study
    that starts with a digit as a number where it can. It reads no mapping or list over several lines, as one
    is that was copied from the lines of a terminal.

    Parameters
    ----------
    text : str
        Override as typed. One with quotes is returned unchanged.
    """
    key, equals, value = text.partition("=")
    if key in _COLUMN_KEYS:
        return key + equals + _as_text(value)
    if key in ("datasets", "drop") and not {*"'\"{"} & {*value}:
        value = _NAME_IN_LIST.sub(
            lambda name: _as_text(name[0]) if key == "drop" or is_path(name[0]) else name[0], value
        )
        text = key + equals + value
    if value[:1] in ("{", "[") and not {*"'\""} & {*value}:
        text = key + equals + " ".join(value.split())
        value = text.partition("=")[2]
    if key == "study" and _NUMERIC_NAME.fullmatch(value):
        return f"study='{value}'"
    if value.isascii() or "'" in value or '"' in value:
        return text
    return key + equals + _TOKEN.sub(lambda token: _quoted(token[0]), value)


def value_of(text: str) -> Any:
    """Return the value of an override, as Hydra's parser reads it.

    Parameters
    ----------
    text : str
        Override as typed.

    Raises
    ------
    ConfigError
        If the text is no override.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    try:
        return OverridesParser.create().parse_override(with_quotes(text)).value()
    except Exception:  # any error: the parser recurses, and Python limits the digits of a number
        raise ConfigError([f"cannot read the override {shown(text, 100)}; expected key=value"]) from None


def _quoted(token: str) -> str:
    inner = token.strip()
    if inner.isascii() or inner.endswith("\\"):
        return token
    start = token.index(inner)
    return f"{token[:start]}'{inner}'{token[start + len(inner) :]}"


def _as_text(name: str) -> str:
    """Return the name of a column or file in quotes, unless Hydra's parser reads it as typed.

    Parameters
    ----------
    name : str
        Name as typed. One in quotes, a mapping and an interpolation are returned unchanged.
    """
    words = ("true", "false", "nan", "inf")
    if (
        (_AS_TYPED.fullmatch(name) and name.lower() not in words)
        or name[:1] in "'\"{"
        or name.startswith("${")
    ):
        return name
    return quoted(name)
