"""Whatever a training reports, as something that a row can hold and any machine can read.

All values of records pass through here: plain numbers of 64 bits and texts of
bounded length. A value that can be stored as it is stays as it is.
"""

import traceback
from collections.abc import Sequence
from datetime import datetime
from types import NoneType
from typing import Any

import numpy as np

TEXT_BYTES = 4096
"""The longest text of a row, in UTF-8."""

SMALLEST, LARGEST = -(2**63), 2**63 - 1
"""What a column of integers holds."""

_ROOM_FOR_NOTICE = 48
_AS_THEY_ARE = {NoneType, bool, float, datetime}


def storable_text(value: Any, most: int | None = TEXT_BYTES) -> str:
    """Return the text of a value, whatever its class makes of being asked.

    Parameters
    ----------
    value : object
    most : int or None
        Bytes of UTF-8 that are kept; what is longer is cut and says how much is missing. None keeps all.

    Returns
    -------
    str
        What is no character in UTF-8 is spelled out.
    """
    try:
        text = str.__str__(value if isinstance(value, str) else str(value))
    except BaseException:  # its class has a `__str__` of its own
        return "(its text cannot be read)"
    if most is None:
        return _encoded(text).decode("utf-8")
    head = _encoded(text[: most + 1])
    if len(head) <= most and len(text) <= most:
        return head.decode("utf-8")
    kept = head[: most - _ROOM_FOR_NOTICE].decode("utf-8", "ignore")
    return f"{kept} … ({len(text) - len(kept):,} more characters)"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def storable_value(value: Any) -> Any:
    """Return None, a boolean, an integer of 64 bits, a float, a time or a text in place of any value.

    An integer that is too large becomes the nearest float, or None if there is none.
    """
    if type(value) in _AS_THEY_ARE or isinstance(value, datetime):
        return value
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        whole = int.__int__(value) if isinstance(value, int) else int(value)
        return whole if SMALLEST <= whole <= LARGEST else _as_float(whole)
    if isinstance(value, float):
        return float.__float__(value)
    return float(value) if isinstance(value, np.floating) else storable_text(value)


def _as_float(number: int) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


def storable_values(values: Sequence[Any]) -> list[Any]:
    """Return storable values in place of any, with no look at each of those that are plain by their types."""
    kinds = set(map(type, values))
    odd = kinds - _AS_THEY_ARE
    if (
        not odd
        or (odd == {str} and all(map(_is_short_ascii, set(values) if kinds <= {NoneType, str} else values)))
        or (odd == {int} and datetime not in kinds and _are_small(values))
    ):
        return list(values)
    return [storable_value(value) for value in values]


def _are_small(values: Sequence[Any]) -> bool:
    """Whether all integers have 64 bits; much faster than a look at each."""
    numbers = [value for value in values if value is not None]
    return min(numbers) >= SMALLEST and max(numbers) <= LARGEST


def _is_short_ascii(value: Any) -> bool:
    return value is None or (type(value) is str and len(value) <= TEXT_BYTES and value.isascii())


def error_text(error: BaseException) -> str:
    """Return what an error says, in one line."""
    return " ".join(storable_text(error, TEXT_BYTES - 500).split())


def describe_error(error: BaseException) -> str:
    """Say in one line what was raised and where."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    name = storable_text(type(error).__name__, 200)
    return f"{name}: {error_text(error)}{storable_text(where, 300)}"
