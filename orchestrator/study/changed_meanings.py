"""Name the keys in which two declarations of the same part differ, such as `scaling was none, now train`."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.study.values import cell

SPACE = "space"
"""Key of a solver's meaning with pairs of a hyper-parameter and its values, in order of precedence."""

_MAX_LENGTH = 60
"""Largest length of a value in a sentence, in characters."""

OTHER_CODE = "solver (its code)"
"""How a declaration describes the change of trials that only the code of a solver keeps from counting."""


def changed_keys(kind: str, before: str, now: str) -> str:
    """Return what differs between two meanings of one part; empty if it cannot be said in a few words.

    Parameters
    ----------
    kind : str
        Kind of the part: "protocol", "solver", "search" or another one.
    before, now : str
        The two meanings, as canonical JSON.
    """
    if kind not in ("protocol", "solver", "search"):
        return ""
    try:
        one, other = json.loads(before), json.loads(now)
    except ValueError:  # mappings with keys that are not text have another notation
        return ""
    if kind == "solver":
        one, other = ({**each, SPACE: dict(each[SPACE])} for each in (one, other))
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return f"{_text(one)}, now {_text(other)}"
    return "; ".join(_differences(one, other))


def _differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield a clause for each key whose values differ.

    Parameters
    ----------
    before, now : mapping
        Values by key.
    prefix : str
        Text before each key. Default: none.

    Yields
    ------
    str
        For example `space.C was [1, 4], now [1, 4, 16]`.
    """
    for key in dict.fromkeys([*before, *now]):
        one, other = before.get(key), now.get(key)
        if one == other:
            continue
        if key.startswith("code"):  # hashes
            yield f"its {key}"
        elif isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _differences(one, other, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key} was {_text(one)}, now {_text(other)}"


def _text(value: Any) -> str:
    text = "not set" if value is None else str(cell(value))
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
