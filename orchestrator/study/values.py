"""Values that YAML can express, their canonical text, and their hashes."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

ParamValue = Any
"""Any value that YAML can express: null, booleans, numbers, text, and lists and mappings of these."""


def canonical_json(value: Any) -> str:
    """Return the canonical JSON of a value: values have the same text if they mean the same to a classifier.

    The order of a mapping's keys does not matter, nor does the type of an integer (`int`, `numpy.int32`), a
    float or a list. But 1, 1.0, true and "1" are four values: `max_features=1` means one feature, and 1.0 all
    features. Values that JSON lacks are written `NaN`, `Infinity` and `{0:1}` (a key that is not a text).

    Parameters
    ----------
    value : object
        Any value that YAML can express.

    Raises
    ------
    TypeError
        If YAML cannot express the value.
    """
    if (usual := _USUAL.get(type(value))) is not None:
        return usual(value)
    if value is None:
        return "null"
    if _is_boolean(value):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(str(value))
    if isinstance(value, (int, Integral)):
        return str(int(value))
    if isinstance(value, (float, Real)):
        return json.dumps(float(value) + 0.0)  # -0.0 becomes 0.0
    if isinstance(value, Mapping):
        return _of_mapping(value)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return _of_list(value)
    raise TypeError(
        f"cannot use a {type(value).__name__} in a trial key; use numbers, strings, lists and mappings"
    )


def _of_mapping(value: Mapping[Any, Any]) -> str:
    items = sorted((canonical_json(key), canonical_json(item)) for key, item in value.items())
    return "{" + ",".join(f"{key}:{item}" for key, item in items) + "}"


def _of_list(value: Iterable[Any]) -> str:
    return "[" + ",".join(map(canonical_json, value)) + "]"


_USUAL: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    float: lambda value: json.dumps(value + 0.0),
    str: json.dumps,
    dict: _of_mapping,
    list: _of_list,
    tuple: _of_list,
}
"""Canonical JSON of the usual types, which are found faster than by `isinstance` of abstract classes."""


def _is_boolean(value: Any) -> bool:
    kind = type(value)  # recognised by name, because `svmbench list` must not import NumPy
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"))


def cell(value: ParamValue) -> str:
    """Return a value as text for a column of a table and for a reader.

    It is the canonical JSON of the value, without the quotes of a plain text. A text that would read as
    another value, such as "1" or "null", keeps its quotes. So different values have different texts.

    Parameters
    ----------
    value : object
        Any value that YAML can express.
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
    """Replace mappings that JSON cannot express because a key is not a text. `from_json` restores them.

    Parameters
    ----------
    value : object
        Any value that YAML can express.
    """
    if isinstance(value, Mapping):
        if any(not isinstance(key, str) or key == _ITEMS for key in value):
            return {_ITEMS: [[key, for_json(item)] for key, item in value.items()]}
        return {key: for_json(item) for key, item in value.items()}
    return [for_json(item) for item in value] if isinstance(value, (list, tuple)) else value


def from_json(mapping: dict[str, Any]) -> dict[Any, Any]:
    """Restore a mapping that `for_json` has replaced. Use it as the `object_hook` of `json.loads`.

    Parameters
    ----------
    mapping : dict
        Object that JSON has read.
    """
    return dict(mapping[_ITEMS]) if mapping.keys() == {_ITEMS} else mapping


def is_number(value: Any) -> bool:
    """Return whether a value is a number that a float represents exactly; booleans are not numbers.

    Parameters
    ----------
    value : object
        Any value.
    """
    if _is_boolean(value) or not isinstance(value, (int, float, Real)):
        return False
    try:
        return bool(float(value) == value)
    except OverflowError:
        return False


def stored_as_numbers(values: Sequence[ParamValue] | Mapping[str, Any]) -> bool:
    """Return whether a parameter's values are stored as floats: all are numbers, and no two are equal.

    Parameters
    ----------
    values : sequence or mapping
        Values, or a range of numbers, for which the answer is True.
    """
    if isinstance(values, Mapping):
        return True
    return all(map(is_number, values)) and len(set(map(float, values))) == len(values)


def with_merged_numbers(value: Any) -> Any:
    """Replace floats that are whole numbers by integers, for settings in which 1 and 1.0 mean the same.

    Parameters
    ----------
    value : object
        Any value that YAML can express; lists and mappings are converted item by item.
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, Mapping):
        return {key: with_merged_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_merged_numbers(item) for item in value]
    return value


def digest(value: Any) -> str:
    """Return the first 32 hexadecimal digits of the SHA-256 hash of a value's canonical JSON.

    Parameters
    ----------
    value : object
        Any value that YAML can express.
    """
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:32]
