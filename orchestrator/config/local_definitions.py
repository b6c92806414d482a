"""Modules for classes and functions that a notebook or script defines, so that other processes import them.

The module holds the source of the definition and of everything that it uses: imports, constants, and further
definitions. Its name contains a hash of this code. So an edited cell gives another module, and Python need
not be restarted. Rows of the old code and of the new code have different keys.
"""

import ast
import dis
import importlib
import inspect
import linecache
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from orchestrator.config.objects import UnwritableError, is_local, public_path
from orchestrator.study.atomic import atomic_write
from orchestrator.study.text import shown
from orchestrator.training.source_tree import read_module

_HEADER = '"""Definitions of a notebook or script. svmbench wrote this file."""\n'


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

    def forget(self) -> None:
        """Remove the folder from `sys.path`."""
        while str(self._folder) in sys.path:
            sys.path.remove(str(self._folder))


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
    names = vars(sys.modules[thing.__module__])
    lines: dict[str, None] = {}
    sources: dict[str, str] = {}
    _add(thing, names, lines, sources, [])
    imports = sorted(lines, key=lambda line: not line.startswith(("import ", "from ")))
    return "\n".join([_HEADER, *imports, "", "", "\n\n\n".join(sources.values()), ""])


def _add(
    thing: Any, names: dict[str, Any], lines: dict[str, None], sources: dict[str, str], under_way: list[str]
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
    """
    name = thing.__name__
    if name in sources or name in under_way:
        return
    source = _source(thing)
    for used in sorted(set(_globals(compile(source, "<definition>", "exec")))):
        if used not in names or used == name:
            continue
        value = names[used]
        if is_local(value) and isinstance(getattr(value, "__name__", None), str):
            _add(value, names, lines, sources, [*under_way, name])
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
        return f"import {value.__name__} as {name}"
    module, qualified = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(module, str) and isinstance(qualified, str):
        found = public_path(value, module, qualified)
        if found:
            parent, _, last = found.rpartition(".")
            return f"from {parent} import {last} as {name}"
    try:
        if ast.literal_eval(repr(value)) == value:
            return f"{name} = {value!r}"
    except (ValueError, SyntaxError, TypeError):
        pass
    raise UnwritableError(
        f"{user} uses the global name {name}, {shown(value)} ({type(value).__name__}), which other processes "
        "do not have; make it a parameter, or define the class in a module"
    )


def _globals(code: CodeType) -> Iterator[str]:
    """Yield the global names that code reads, with that of its functions and classes.

    Parameters
    ----------
    code : code
        Compiled source.
    """
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            yield str(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)


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
    file = next(_files(thing), "")
    lines = linecache.getlines(file) if file else []
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        tree = ast.parse("")
    kinds = ast.ClassDef if inspect.isclass(thing) else ast.FunctionDef
    found = [node for node in tree.body if isinstance(node, kinds) and node.name == thing.__name__]
    if not found:
        raise UnwritableError(
            f"the source of {thing.__name__} is not known; define it in a notebook, a script or a module"
        )
    node = found[-1]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "".join(lines[first - 1 : node.end_lineno]).rstrip("\n")


def _files(thing: Any) -> Iterator[str]:
    """Yield the files or cells that may define a class or function.

    Parameters
    ----------
    thing : class or function
        Definition of `__main__`.
    """
    for member in [thing, *vars(thing).values()] if inspect.isclass(thing) else [thing]:
        member = getattr(member, "fget", None) or getattr(member, "__func__", member)
        code = getattr(inspect.unwrap(member), "__code__", None) if callable(member) else None
        if code is not None and getattr(member, "__module__", thing.__module__) == thing.__module__:
            yield code.co_filename
    if file := getattr(sys.modules[thing.__module__], "__file__", None):
        yield file  # a class without methods
