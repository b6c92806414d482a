"""Values that YAML can say, their canonical text, and hashes of them."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

ParamValue = Any
"""Whatever YAML can say: null, booleans, numbers, text, and lists and mappings of these."""


def canonical_json(value: Any) -> str:
    """Write a value as JSON, so that two values have one text exactly if no classifier tells them apart.

    The order of a mapping's keys carries no meaning, nor does the type that holds an integer (`int`,
    `numpy.int32`), a float or a list. 1, 1.0, true and "1" are four values: `max_features=1` is one
    feature, and 1.0 all of them. What JSON lacks is written `NaN`, `Infinity` and `{0:1}` (a key that is no
    text).

    Raises
    ------
    TypeError
        If a value is none that YAML could say.
    """
    if value is None:
        return "null"
    if _is_boolean(value):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(str(value))
    if isinstance(value, (int, Integral)):
        return str(int(value))
    if isinstance(value, (float, Real)):
        return json.dumps(float(value) + 0.0)  # -0.0 becomes 0.0, which is equal to it
    if isinstance(value, Mapping):
        items = sorted((canonical_json(key), canonical_json(item)) for key, item in value.items())
        return "{" + ",".join(f"{key}:{item}" for key, item in items) + "}"
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return "[" + ",".join(map(canonical_json, value)) + "]"
    raise TypeError(
        f"cannot put a {type(value).__name__} into a trial key; use numbers, strings, lists and mappings"
    )


def _is_boolean(value: Any) -> bool:
    kind = type(value)  # NumPy, which `svmbench list` does not import, registers its booleans nowhere
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"))


def cell(value: ParamValue) -> str:
    """Write a value for a column of text and for a reader: as canonical JSON, but plain text as it is.

    Text that would read as something else, such as that of the number 1 or of null, stays in quotes; so
    different values have different texts.
    """
    if not isinstance(value, str):
        return canonical_json(value)
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return json.dumps(value) if value[:1] in ("", "[", "{", '"') else str(value)
    return json.dumps(value)


_ITEMS = "__items__"


def for_json(value: Any) -> Any:
    """Return a value with its mappings made ready for JSON, which knows text keys only: see `from_json`."""
    if isinstance(value, Mapping):
        if any(not isinstance(key, str) or key == _ITEMS for key in value):
            return {_ITEMS: [[key, for_json(item)] for key, item in value.items()]}
        return {key: for_json(item) for key, item in value.items()}
    return [for_json(item) for item in value] if isinstance(value, (list, tuple)) else value


def from_json(mapping: dict[str, Any]) -> dict[Any, Any]:
    """Return a mapping as it was before `for_json`; the `object_hook` of `json.loads`."""
    return dict(mapping[_ITEMS]) if mapping.keys() == {_ITEMS} else mapping


def is_number(value: Any) -> bool:
    """Whether a value is a number that a float holds exactly; a boolean is none."""
    if _is_boolean(value) or not isinstance(value, (int, float, Real)):
        return False
    try:
        return bool(float(value) == value)
    except OverflowError:
        return False


def stored_as_numbers(values: Sequence[ParamValue] | Mapping[str, Any]) -> bool:
    """Whether floats can stand for the values of a parameter: all are numbers, and no two are equal.

    A mapping is a range of numbers.
    """
    if isinstance(values, Mapping):
        return True
    return all(map(is_number, values)) and len(set(map(float, values))) == len(values)


def with_merged_numbers(value: Any) -> Any:
    """Return a value in which whole numbers are integers, for what 1 and 1.0 are the same to."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, Mapping):
        return {key: with_merged_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_merged_numbers(item) for item in value]
    return value


def digest(value: Any) -> str:
    """Return the first 32 hex digits of the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:32]
