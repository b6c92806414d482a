"""Objects that a configuration names: a mapping with `_target_` represents a call of a class or function.

`{_target_: package.name, parameter: value}` means `package.name(parameter=value)`. A value may be such a
mapping too, at any depth of lists and mappings. As in Hydra, `_args_` lists positional arguments. With
`_partial_: true` the object is the class or function itself, with the given arguments bound to it.
"""

import inspect
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import partial
from types import NoneType
from typing import Any

from orchestrator.study.names import ResolveError, did_you_mean, resolve
from orchestrator.study.text import shown

TARGET, ARGS, PARTIAL = "_target_", "_args_", "_partial_"
RESERVED = frozenset({TARGET, ARGS, PARTIAL})
"""Keys of a mapping with `_target_` that are not keyword arguments."""

_SCALARS = (int, float, str, NoneType)


def targets_in(node: Any) -> Iterator[str]:
    """Yield the dotted paths of all `_target_` keys in a node, the outermost first.

    Parameters
    ----------
    node : object
        Any value that YAML can express.
    """
    if isinstance(node, Mapping):
        if isinstance(target := node.get(TARGET), str):
            yield target
        node = list(node.values())
    for item in node if isinstance(node, (list, tuple)) else ():
        if not isinstance(item, _SCALARS):
            yield from targets_in(item)


def instantiate(node: Any) -> Any:
    """Replace every mapping that has a `_target_` by the object that its call returns.

    All other values are copied, so that changes of the result do not change the configuration.

    Parameters
    ----------
    node : object
        Any value that YAML can express.

    Raises
    ------
    ResolveError
        If a dotted path cannot be resolved.
    Exception
        Any error of a class or function that is called.
    """
    if isinstance(node, _SCALARS):
        return node
    if isinstance(node, (list, tuple)):
        return type(node)(map(instantiate, node))
    if not isinstance(node, Mapping):
        return deepcopy(node)
    if TARGET not in node:
        return {key: instantiate(value) for key, value in node.items()}
    made = resolve(node[TARGET])
    args = instantiate(node.get(ARGS, []))
    params = {key: instantiate(value) for key, value in node.items() if key not in RESERVED}
    if not node.get(PARTIAL, False):
        return made(*args, **params)
    return partial(made, *args, **params) if args or params else made


def target_problems(node: Any) -> Iterator[str]:
    """Yield why calls in a node cannot succeed: unknown `_target_`, not callable, or unknown parameters.

    Modules are imported and signatures are read, but nothing is called.

    Parameters
    ----------
    node : object
        Any value that YAML can express.
    """
    if isinstance(node, Mapping):
        yield from _problems_of_call(node) if TARGET in node else ()
        node = list(node.values())
    for item in node if isinstance(node, (list, tuple)) else ():
        yield from target_problems(item)


def _problems_of_call(node: Mapping[Any, Any]) -> Iterator[str]:
    target = node[TARGET]
    try:
        made = resolve(target)
    except ResolveError as error:
        yield str(error)
        return
    if not callable(made):
        is_object = PARTIAL in node and node[PARTIAL] is True and node.keys() <= {TARGET, PARTIAL}
        if not is_object:
            yield f"expected {TARGET} to name a class or a function, found {target} = {shown(made)}"
        return
    if not isinstance(node.get(ARGS, []), (list, tuple)):
        yield f"{target}: expected a list as {ARGS}, found {shown(node[ARGS])}"
    if not isinstance(node.get(PARTIAL, False), bool):
        yield f"{target}: expected true or false as {PARTIAL}, found {shown(node[PARTIAL])}"
    accepted = keyword_names(made)
    for name in node:
        if accepted is not None and name not in accepted | RESERVED:
            yield f"{target} has no parameter {name!r}{did_you_mean(str(name), accepted)}"


def keyword_names(made: Any) -> frozenset[str] | None:
    """Return the keyword parameters of a class or function; None if it accepts any or has no signature.

    Parameters
    ----------
    made : callable
        Class or function.
    """
    try:
        parameters = inspect.signature(made).parameters.values()
    except (ValueError, TypeError):  # many functions of compiled modules have no signature
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return frozenset(parameter.name for parameter in parameters if parameter.kind in kinds)
