"""Conversion of the values that a training reports to types that a row can hold and every host can read.

All values of records are converted here to numbers of 64 bits and texts of bounded length. A value that is
storable already stays unchanged.
"""

import traceback
from collections.abc import Sequence
from datetime import datetime
from types import NoneType
from typing import Any

import numpy as np

TEXT_BYTES = 4096
"""Longest text in a row, in bytes of UTF-8."""

SMALLEST, LARGEST = -(2**63), 2**63 - 1
"""Range of a column of integers."""

_NOTICE_BYTES = 48
"""Bytes reserved for the notice at the end of a shortened text."""

_UNCHANGED = {NoneType, bool, float, datetime}
"""Types whose values are stored unchanged."""


def storable_text(value: Any, most: int | None = TEXT_BYTES) -> str:
    """Return the text of a value; a fixed text replaces it if the value's class raises.

    Parameters
    ----------
    value : object
        Any value.
    most : int or None
        Longest text to keep, in bytes of UTF-8. A longer text is shortened and ends with the number of
        missing characters. None keeps all. Default 4096.

    Returns
    -------
    str
        Text in which code points that UTF-8 cannot encode are escaped.
    """
    try:
        text = str.__str__(value if isinstance(value, str) else str(value))
    except BaseException:  # a custom `__str__` may raise any exception
        return "(its text cannot be read)"
    if most is None:
        return _encoded(text).decode("utf-8")
    head = _encoded(text[: most + 1])
    if len(head) <= most and len(text) <= most:
        return head.decode("utf-8")
    kept = head[: most - _NOTICE_BYTES].decode("utf-8", "ignore")
    return f"{kept} … ({len(text) - len(kept):,} more characters)"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def storable_value(value: Any) -> Any:
    """Convert a value to None, a boolean, an integer of 64 bits, a float, a time or a text.

    Parameters
    ----------
    value : object
        Any value. An integer of more than 64 bits becomes the nearest float, or None if there is none.
    """
    if type(value) in _UNCHANGED or isinstance(value, datetime):
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
    """Convert values as `storable_value` does; the fast way is taken if none of them needs a conversion.

    Parameters
    ----------
    values : sequence
        Any values.
    """
    kinds = set(map(type, values))
    odd = kinds - _UNCHANGED
    if (
        not odd
        or (odd == {str} and all(map(_is_short_ascii, set(values) if kinds <= {NoneType, str} else values)))
        or (odd == {int} and datetime not in kinds and _are_small(values))
    ):
        return list(values)
    return [storable_value(value) for value in values]


def _are_small(values: Sequence[Any]) -> bool:
    """Return whether all integers fit 64 bits, which is much faster than checking each.

    Parameters
    ----------
    values : sequence of int or None
        Values, at least one of which is an integer.
    """
    numbers = [value for value in values if value is not None]
    return min(numbers) >= SMALLEST and max(numbers) <= LARGEST


def _is_short_ascii(value: Any) -> bool:
    return value is None or (type(value) is str and len(value) <= TEXT_BYTES and value.isascii())


def error_text(error: BaseException) -> str:
    """Return the message of an error on one line.

    Parameters
    ----------
    error : BaseException
        Error to quote. A message of more than 3,596 bytes is shortened.
    """
    return " ".join(storable_text(error, TEXT_BYTES - 500).split())


def describe_error(error: BaseException) -> str:
    """Return the class and message of an error, and the line of code that raised it, on one line.

    Parameters
    ----------
    error : BaseException
        Error that was raised.
    """
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno})" if frames else ""
    name = storable_text(type(error).__name__, 200)
    return f"{name}: {error_text(error)}{storable_text(where, 300)}"
