"""Modules for classes and functions that a notebook or script defines, so that other processes import them.

The module holds the source of the definition and of everything that it uses: imports, constants, and further
definitions. Its name contains a hash of this code. So an edited cell gives another module, and Python need
not be restarted. Rows of the old code and of the new code have different keys.
"""

import __future__

import ast
import dis
import importlib
import inspect
import linecache
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from orchestrator.config.objects import UnwritableError, is_local, public_path
from orchestrator.study.atomic import atomic_write
from orchestrator.study.text import represented
from orchestrator.training.source_tree import read_module

_HEADER = '"""Definitions of a notebook or script. svmbench wrote this file."""\n'

_FUTURE = "from __future__ import annotations"
"""Import by which the annotations of a module are not evaluated."""


class LocalDefinitions:
    """Writes definitions of `__main__` to modules in a folder, and makes the folder importable.

    Parameters
    ----------
    folder : Path
        Folder of the modules. It becomes an entry of `sys.path` with the first module.
    """

    def __init__(self, folder: Path):
        self._folder = folder

    def path_of(self, thing: Any) -> str:
        """Return the dotted path of a class or function in a module that is written now, if necessary.

        Parameters
        ----------
        thing : class or function
            Definition of `__main__`.

        Raises
        ------
        UnwritableError
            If the source is not known, or uses a value that a module cannot hold.
        """
        text = module_text(thing)
        name = thing.__name__
        module = f"{name.lower().strip('_')}_{read_module(text.encode(), '').code[:8]}"
        file = self._folder / f"{module}.py"
        if not file.is_file():
            self._folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(file) as opened:
                opened.write(text.encode())
        if str(self._folder) not in sys.path:
            sys.path.insert(0, str(self._folder))
        importlib.invalidate_caches()
        return f"{module}.{name}"


def module_text(thing: Any) -> str:
    """Return the source of a module with a definition of `__main__` and everything that it uses.

    Parameters
    ----------
    thing : class or function
        Definition of `__main__`.

    Raises
    ------
    UnwritableError
        If the source is not known, or uses a value that a module cannot hold.
    """
    names = _namespace(thing)
    lines: dict[str, None] = {}
    sources: dict[str, str] = {}
    flags = 0
    if names.get("annotations") is __future__.annotations:
        lines[_FUTURE], flags = None, __future__.annotations.compiler_flag
    _add(thing, names, lines, sources, [], flags)
    imports = sorted(lines, key=lambda line: not line.startswith(("import ", "from ")))
    return "\n".join([_HEADER, *imports, "", "", "\n\n\n".join(sources.values()), ""])


def _add(
    thing: Any,
    names: dict[str, Any],
    lines: dict[str, None],
    sources: dict[str, str],
    under_way: list[str],
    flags: int,
) -> None:
    """Add the source of a definition behind the sources that it uses.

    Parameters
    ----------
    thing : class or function
        Definition of `__main__`.
    names : dict of str to object
        Global names of `__main__`.
    lines : dict of str to None
        Imports and constants, to which those of the definition are added.
    sources : dict of str to str
        Sources by name, to which that of the definition is added.
    under_way : list of str
        Names of the definitions that need this one.
    flags : int
        Flags of the compiler: whether annotations are evaluated.
    """
    name = thing.__name__
    if name in sources or name in under_way:
        return
    source = _source(thing)
    code = compile(source, "<definition>", "exec", flags=flags, dont_inherit=True)
    if name in _read_names(code):
        raise UnwritableError(
            f"{name} is defined in terms of an earlier definition of the same name; give it another name"
        )
    for used in sorted(set(_globals(code))):
        if used not in names or used == name or used.startswith("__"):
            continue
        value = names[used]
        if is_local(value) and isinstance(getattr(value, "__name__", None), str):
            _add(value, names, lines, sources, [*under_way, name], flags)
            if value.__name__ != used:
                sources[used] = f"{used} = {value.__name__}"
        else:
            lines[_line(name, used, value)] = None
    sources[name] = source


def _line(user: str, name: str, value: Any) -> str:
    """Return the statement that defines a global name in a module.

    Parameters
    ----------
    user : str
        Definition that uses the name, for the message.
    name : str
        Name that the definition reads from its module.
    value : object
        Object to which the module binds the name.
    """
    if isinstance(value, ModuleType):
        return f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else "")
    module, qualified = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(module, str) and isinstance(qualified, str):
        found = public_path(value, module, qualified)
        if found:
            parent, _, last = found.rpartition(".")
            return f"from {parent} import {last}" + (f" as {name}" if name != last else "")
    try:
        if ast.literal_eval(repr(value)) == value:
            return f"{name} = {value!r}"
    except (ValueError, SyntaxError, TypeError):
        pass
    raise UnwritableError(
        f"{user} uses the global name {name}, {represented(value)} ({type(value).__name__}), which other "
        "processes do not have; make it a parameter, or define the class in a module"
    )


def _globals(code: CodeType) -> Iterator[str]:
    """Yield the global names that code and its functions and classes read.

    Parameters
    ----------
    code : code
        Compiled source.
    """
    yield from _read_names(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)


def _read_names(code: CodeType) -> list[str]:
    """Return the global names that code reads itself.

    Parameters
    ----------
    code : code
        Compiled source.
    """
    reads = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
    return [str(step.argval) for step in dis.get_instructions(code) if step.opname in reads]


def _source(thing: Any) -> str:
    """Return the source of a class or function, decorators included.

    Parameters
    ----------
    thing : class or function
        Definition of `__main__`.

    Raises
    ------
    UnwritableError
        If Python does not keep the source, as at its prompt.
    """
    kind = ast.ClassDef if inspect.isclass(thing) else ast.FunctionDef
    found = lines = None
    for file in _files(thing):
        lines = linecache.getlines(file)
        if (found := _definition("".join(lines), kind, thing.__name__)) is not None:
            break
    if found is None or lines is None:
        raise UnwritableError(
            f"the source of {thing.__name__} is not known; define it in a notebook, a script or a module"
        )
    first = min([found.lineno, *(decorator.lineno for decorator in found.decorator_list)])
    return "".join(lines[first - 1 : found.end_lineno]).rstrip("\n")


def _definition(
    text: str, kind: type[ast.ClassDef | ast.FunctionDef], name: str
) -> ast.ClassDef | ast.FunctionDef | None:
    """Return the last definition of a name at the top level of a source; None if there is none.

    Parameters
    ----------
    text : str
        Source of a script or of a cell.
    kind : type
        Class of the syntax node.
    name : str
        Name of the class or function.
    """
    try:
        statements = ast.parse(text).body
    except SyntaxError:  # a cell of a notebook with commands that are not Python
        return None
    found = [node for node in statements if isinstance(node, kind) and node.name == name]
    return found[-1] if found else None


def _files(thing: Any) -> Iterator[str]:
    """Yield the files or cells that may define a class or function.

    Parameters
    ----------
    thing : class or function
        Definition of `__main__`.
    """
    yield from (function.__code__.co_filename for function in _functions(thing))
    # No code object of a class without methods names its file.
    if file := getattr(sys.modules[thing.__module__], "__file__", None):
        yield file
    yield from (cell for cell in reversed([*linecache.cache]) if not os.path.exists(cell))


def _namespace(thing: Any) -> dict[str, Any]:
    """Return the global names that a class or function sees.

    Parameters
    ----------
    thing : class or function
        Definition of `__main__`.
    """
    functions = (function.__globals__ for function in _functions(thing))
    return next(functions, vars(sys.modules[thing.__module__]))


def _functions(thing: Any) -> Iterator[FunctionType]:
    """Yield a function, or the functions that a class defines.

    Parameters
    ----------
    thing : class or function
        Definition of `__main__`.
    """
    for member in vars(thing).values() if inspect.isclass(thing) else [thing]:
        member = getattr(member, "fget", None) or getattr(member, "__func__", member)
        function = inspect.unwrap(member) if callable(member) else None
        if isinstance(function, FunctionType) and function.__module__ == thing.__module__:
            yield function
