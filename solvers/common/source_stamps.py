"""Stamps of compiled functions: hashes of the sources on which their code depends.

A compiled function contains the functions that it calls. Its code therefore depends on its module and on
all modules of this package that the module imports, directly or through others. An operation may have one
implementation for each class of the arguments. The code also depends on the modules of these implementations,
although the module of the function does not import them.
"""

import re
import sys
from functools import cache
from hashlib import blake2b
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = __name__.partition(".")[0]

# `from solvers.a.b import c` or `import solvers.a.b`, also inside a function. Relative imports start with
# a dot.
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+([.\w]+)", re.MULTILINE)
# A statement that imports a module whose name `_IMPORT` does not find.
_OTHER_IMPORT = re.compile(
    r"\bimport_module\(|\b__import__\(|^[ \t]*import[ \t].*,|;[ \t]*(?:from|import)\b", re.MULTILINE
)

_implementing: dict[type, set[str]] = {}


def note_implementation(kind, module):
    """Record that a module implements an operation for a class of arguments.

    Parameters
    ----------
    kind : type
        Class of an argument, a subclass of `NamedTuple`.
    module : str
        Name of the module with the implementation.
    """
    _implementing.setdefault(kind, set()).add(module)
    stamp_of.cache_clear()


def known_kinds():
    """Return the classes for which an operation has been implemented.

    Returns
    -------
    list of type
        Classes, sorted by name.
    """
    return sorted(_implementing, key=lambda kind: kind.__qualname__)


def kinds_of(types):
    """Return the classes among numba's types for which an operation has been implemented.

    Parameters
    ----------
    types : sequence of numba types
        Types of the arguments of a function. Those inside tuples count as well.

    Returns
    -------
    list of type
        Classes, sorted by name.
    """
    found, left = set(), [*types]
    while left:
        one = left.pop()
        found.add(getattr(one, "instance_class", None))
        left += getattr(one, "types", ())
    return [kind for kind in known_kinds() if kind in found]


@cache
def stamp_of(module, kinds=()):
    """Return the stamp of a module's functions when they are called with arguments of the given classes.

    Parameters
    ----------
    module : str
        Dotted name of the module.
    kinds : tuple of type, default ()
        Classes among the types of the arguments, from `kinds_of`.

    Returns
    -------
    str
        Hash of 12 hexadecimal digits.
    """
    content = blake2b(digest_size=6)
    for name, source in sorted(_sources_of([module, *(kind.__module__ for kind in kinds)], kinds).items()):
        content.update(f"{name}:{len(source)}:".encode() + source)
    return content.hexdigest()


def _sources_of(modules, kinds):
    """Return the sources on which the functions of some modules depend.

    Parameters
    ----------
    modules : list of str
        Dotted names of the modules.
    kinds : tuple of type
        Classes among the types of the arguments.

    Returns
    -------
    dict of str to bytes
        Sources by name of the module. If the imports are not certain, all modules of the package.
    """
    paths, left = _paths(), [*modules]
    found: dict[str, bytes] = {}
    for kind in kinds:
        left += _implementing[kind]
    while left:
        module = left.pop()
        if module in found:
            continue
        if module not in paths:  # another package may import anything
            found |= {name: _read_module(name)[0] for name in paths}
            found |= _foreign_sources(module)
            continue
        found[module], imported = _read_module(module)
        left += imported
        # The code may also make arguments of these classes by itself.
        for kind, implementing in _implementing.items():
            if kind.__module__ in found:
                left += implementing
    return found


@cache
def _paths():
    """Return the path of every module of this package.

    Returns
    -------
    dict of str to Path
        Paths, by name of the module.
    """
    return {_name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def _read_module(name):
    """Return the source of a module of this package, with the names of the modules that it imports.

    A stamp reads only the modules on which it depends, at most a quarter of the package for most functions.

    Parameters
    ----------
    name : str
        Dotted name of the module, a key of `_paths()`.

    Returns
    -------
    source : bytes
        Content of the file.
    imported : list of str
        Names of modules of this package. If the imports are not certain, all of them.
    """
    paths = _paths()
    source = paths[name].read_bytes()
    text = source.decode()
    imported = {match for match in _IMPORT.findall(text) if match.partition(".")[0] in (ROOT, "")}
    # `from package import name` may import a module of the package, so everything counts.
    is_certain = all(one in paths and paths[one].stem != "__init__" for one in imported)
    is_certain = is_certain and not _OTHER_IMPORT.search(text)
    return source, sorted(imported) if is_certain else [*paths]


def _name_of(path):
    """Return the name of the module that a file of this package contains.

    Parameters
    ----------
    path : Path
        Path of a source file of this package.

    Returns
    -------
    str
        Dotted name.
    """
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join([ROOT, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def _foreign_sources(module):
    """Return the sources beside a module of another package.

    Parameters
    ----------
    module : str
        Dotted name of the module.

    Returns
    -------
    dict of str to bytes
        All sources of its package, or of its folder if it belongs to no package. A module without a file has
        an empty source.
    """
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return {module: b""}
    package = getattr(sys.modules.get(module.partition(".")[0]), "__path__", None)
    paths = [path for folder in package for path in Path(folder).rglob("*.py")] if package else []
    return {
        str(path): path.read_bytes() for path in sorted({Path(file), *paths, *Path(file).parent.glob("*.py")})
    }
