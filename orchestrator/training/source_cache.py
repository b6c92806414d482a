"""Cache of parsed sources, in this process and in the user's cache folder.

The key of an entry is a hash of its source, so an entry is never out of date.
"""

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.study.user_cache import read_value, write_value
from orchestrator.training import source_tree
from orchestrator.training.source_tree import Import, InitSource, ModuleSource

_Source = TypeVar("_Source", ModuleSource, InitSource)

_KIND = "sources"
"""Folder of the user's cache for sources."""

_WORTH_KEEPING = 20_000
"""Smallest size of newly parsed sources for which the user's cache is written, in bytes."""

_MAX_ENTRIES = 2000
"""Largest number of sources of earlier processes that are kept."""

_read: dict[str, ModuleSource | InitSource] = {}
"""Sources that this process has used, by key."""

_parsed: dict[str, int] = {}
"""Sizes of the sources that are not in the user's cache yet, by key, in bytes."""


def read_once(
    source: bytes, package: str, read: Callable[[bytes, str, bool], _Source], former: bool
) -> _Source:
    """Return the result of a function that parses a source, from the cache if there is one.

    Parameters
    ----------
    source : bytes
        Source of a module.
    package : str
        Dotted name of its package.
    read : callable
        The function: `read_module` or `read_init`.
    former : bool
        Whether to return the hashes of older versions of svmbench.

    Returns
    -------
    ModuleSource or InitSource
        Result of `read`, which the caller must not change.
    """
    key = hashlib.sha256(f"{package}:{read.__name__}:{former}:".encode() + source).hexdigest()
    found: Any = _read.get(key)
    if found is None:
        found = _decoded(_stored().get(key))
        if found is None:
            found = read(source, package, former)
            _parsed[key] = len(source)
        _read[key] = found
    return found


def keep_sources() -> None:
    """Write newly parsed sources to the user's cache if they have at least `_WORTH_KEEPING` bytes."""
    if sum(_parsed.values()) < _WORTH_KEEPING:
        return
    stored = _stored()
    kept = stored if len(stored) <= _MAX_ENTRIES else {}
    kept |= {key: _encoded(source) for key, source in _read.items()}
    write_value(_KIND, _version(), kept)
    _parsed.clear()


@cache
def _stored() -> dict[str, Any]:
    """Return the encoded sources of earlier processes by their keys."""
    found = read_value(_KIND, _version())
    return found if isinstance(found, dict) else {}


@cache
def _version() -> str:
    """Return a hash of the code that reads sources, and of the version of Python, which limits its syntax."""
    code = Path(source_tree.__file__).read_bytes()
    return hashlib.sha256(repr(sys.version_info[:2]).encode() + code).hexdigest()[:32]


def _encoded(source: ModuleSource | InitSource) -> list[Any]:
    """Return a source as lists and mappings; named tuples become lists when they are written.

    Parameters
    ----------
    source : ModuleSource or InitSource
        Syntax tree of the module, and its imports.

    Returns
    -------
    list
        The fields of the source.
    """
    if isinstance(source, ModuleSource):
        return [source.code, _pairs(source.imports)]
    origins = {name: _pairs(imports) for name, imports in source.origins.items()}
    return [origins, source.definitions, source.uses, source.stars]


def _pairs(imports: list[Import]) -> list[Any]:
    return [[module, None if names is None else list(names)] for module, names in imports]


def _decoded(fields: Any) -> ModuleSource | InitSource | None:
    """Return a source from its fields; None if they are absent or damaged.

    Parameters
    ----------
    fields : object
        Value that `_encoded` returned, as read from the cache.

    Returns
    -------
    ModuleSource, InitSource or None
        The source; None if it cannot be decoded.
    """
    try:
        if len(fields) == 2:
            return ModuleSource(str(fields[0]), _imports(fields[1]))
        origins, definitions, uses, stars = fields
        return InitSource({name: _imports(each) for name, each in origins.items()}, definitions, uses, stars)
    except (TypeError, ValueError, AttributeError):
        return None


def _imports(pairs: Any) -> list[Import]:
    return [Import(module, None if names is None else tuple(names)) for module, names in pairs]
