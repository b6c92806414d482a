"""Objects that a configuration names, by a dotted path or by a mapping with `_target_`.

`{_target_: package.name, parameter: value}` means `package.name(parameter=value)`. A value may be such a
mapping too, at any depth of lists and mappings. As in Hydra, `_args_` lists positional arguments. With
`_partial_: true` the object is the class or function itself, with the given arguments bound to it.
"""

import difflib
import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any

from orchestrator.study.text import error_line, one_line, represented, shown


class ResolveError(ValueError):
    """Error of a dotted path that cannot be resolved; the message names the part that failed."""


def resolve(path: str) -> Any:
    """Return the object that a dotted path names, and import the modules on the path.

    Parameters
    ----------
    path : str
        Names of a module and of its attributes, such as ``"sklearn.svm.SVC"``.

    Raises
    ------
    ResolveError
        If a part of the path is not found, or a module on the path cannot be imported.
    """
    parts = path.split(".") if isinstance(path, str) else []
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise ResolveError(f"expected a dotted path such as 'package.module.name', found {shown(path)}")
    found: Any = _import(parts[0], path)
    for depth, part in enumerate(parts[1:], start=1):
        try:
            found = _member(found, part, ".".join(parts[:depth]), path)
        except ResolveError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a module may compute its attributes, by code that fails
            raise ResolveError(
                f"cannot resolve {path!r}: {part!r} failed with {error_line(error)}"
            ) from error
    return found


def _member(found: Any, part: str, parent: str, path: str) -> Any:
    if not hasattr(found, part):
        if not _is_submodule(found, part):
            kind = "module" if isinstance(found, ModuleType) else type(found).__name__
            raise ResolveError(
                f"cannot resolve {path!r}: the {kind} {parent!r} has no {part!r}"
                + (_hidden(f"{parent}.{part}") or did_you_mean(part, _names_in(found)))
            )
        _import(f"{parent}.{part}", path)
    return getattr(found, part)


def is_imported(path: str) -> bool:
    """Return whether `resolve` would import no module: all modules on the path are imported or do not exist.

    Parameters
    ----------
    path : str
        Names of a module and an object in it, with dots between.
    """
    root, *rest = path.split(".")
    if root not in sys.modules:
        return not root.isidentifier() or importlib.util.find_spec(root) is None
    found: Any = sys.modules[root]
    for part in rest:
        if not isinstance(found, ModuleType):
            break
        if part not in vars(found):
            return not (part.isidentifier() and _is_submodule(found, part))
        found = vars(found)[part]
    return True


_MIN_START = 3
"""Smallest length of a name that may be the start of the meant name, in characters."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` with the most similar known name; empty if none is similar.

    A known name that starts with the typed one is preferred, and then one of the same letters.

    Parameters
    ----------
    name : str
        Name as typed.
    known : iterable of str
        Valid names.
    """
    if len(name) > 100:  # the time of the comparison grows with the square of the length
        return ""
    spelt = {item.lower(): item for item in known}
    start = [item for item in spelt if len(name) >= _MIN_START and item.startswith(name.lower())]
    near = sorted(start, key=len)[:1] or difflib.get_close_matches(name.lower(), spelt)
    near.sort(key=lambda item: sorted(item) != sorted(name.lower()))
    return f"; did you mean {spelt[near[0]]!r}?" if near else ""


def _import(name: str, path: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise ResolveError(
                f"cannot resolve {path!r}: there is no module {name!r}"
                + did_you_mean(name, (module.name for module in pkgutil.iter_modules()))
                + f" ({_where_to_put(name)})"
            ) from None
        raise ResolveError(
            f"cannot resolve {path!r}: importing {name!r} failed: {one_line(error)}"
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ResolveError(
            f"cannot resolve {path!r}: importing {name!r} failed: {error_line(error)}"
        ) from error


def _where_to_put(name: str) -> str:
    """Return how Python can find a module.

    Parameters
    ----------
    name : str
        Dotted name of a module that cannot be imported.
    """
    root = Path(name.partition(".")[0])
    if root.with_suffix(".py").is_file() or (root / "__init__.py").is_file():
        return "the working folder has one: add --config-dir ."
    return "install its package, or put its folder on PYTHONPATH"


def _hidden(name: str) -> str:
    """Return that a module is in a folder that a package of the same name hides; empty if it is not.

    Parameters
    ----------
    name : str
        Dotted name of a module that cannot be imported.
    """
    root, *parts = name.split(".")
    package = getattr(sys.modules.get(root), "__file__", None)
    for entry in sys.path if package and parts else ():
        folder = Path(entry, root)
        file = folder.joinpath(*parts)
        if file.with_suffix(".py").is_file() or file.is_dir():
            return f"; {folder} has one, but the package of this name is {package}. Rename the folder"
    return ""


def _is_submodule(parent: Any, name: str) -> bool:
    if not hasattr(parent, "__path__"):
        return False
    return importlib.util.find_spec(f"{parent.__name__}.{name}") is not None


def _names_in(parent: Any) -> list[str]:
    submodules = [module.name for module in pkgutil.iter_modules(getattr(parent, "__path__", []))]
    return [name for name in [*dir(parent), *submodules] if not name.startswith("_")]


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
            yield f"expected {TARGET} to name a class or a function, found {target} = {represented(made)}"
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
