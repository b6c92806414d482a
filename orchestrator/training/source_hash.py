"""Identify code by the sources that a class or function imports, and by package versions.

Only the class or function itself is imported. All other sources are read from files, so that the result does
not depend on the modules that happen to be loaded.
"""

import ast
import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, distribution, distributions, requires
from pathlib import Path
from typing import NamedTuple

from orchestrator.study.targets import resolve

_RUN = "<run on import>"
"""Name for the statements of an `__init__` that run on import."""

_ANY = "<any module>"
"""Name for an import whose module is not known before run time."""


def class_identity(target: str) -> str:
    """Return a text that changes if and only if the code of a class or function does.

    It names the module, a hash of the sources, and the versions of the installed packages that these import.
    The sources are the class's module, the modules of its base classes, and everything that these import, at
    any depth, except installed packages and Python's standard library.

    Parameters
    ----------
    target : str
        Dotted path, e.g. `solvers.MNSVC`.

    Returns
    -------
    str
        The identity; empty for a class of Python's standard library.

    Raises
    ------
    ResolveError
        If the path does not name an object.
    """
    sources = _sources(target)
    content = hashlib.sha256()
    for (module, part), source in sorted(sources.pieces.items()):
        content.update(f"{module}:{part}:{len(source)}:".encode() + source)
    module = getattr(resolve(target), "__module__", None) or target.rpartition(".")[0]
    code = [module, content.hexdigest()[:16]] if sources.pieces else []
    return " ".join([*code, *(f"{name} {number}" for name, number in sorted(sources.versions.items()))])


def source_packages(target: str) -> list[str]:
    """Return the top-level names of the modules and packages that hold the sources of a class.

    Parameters
    ----------
    target : str
        Dotted path of the class.

    Returns
    -------
    list of str
        Sorted names, without those of Python's standard library.
    """
    root = target.partition(".")[0]
    found = {module.partition(".")[0] for module, _ in _sources(target).pieces}
    return sorted({root, *found} - sys.stdlib_module_names)


def source_files(target: str) -> list[Path]:
    """Return the files of the modules that hold the sources of a class.

    Parameters
    ----------
    target : str
        Dotted path of the class.

    Returns
    -------
    list of Path
        Python files.
    """
    modules = {module for module, _ in _sources(target).pieces}
    specs = (_spec(module) for module in sorted(modules))
    origins = (spec.origin for spec in specs if spec is not None and spec.origin)
    return [Path(origin) for origin in origins if origin.endswith(".py")]


def depends_on(target: str, package: str) -> bool:
    """Return whether the sources of a class import a package, directly or by an installed package.

    Parameters
    ----------
    target : str
        Dotted path of the class.
    package : str
        Top-level name of the package.

    Returns
    -------
    bool
        True also if an imported package requires it.
    """
    installed = _sources(target).versions
    required = (
        re.split(r"[^\w-]", requirement, maxsplit=1)[0]
        for root in installed
        for name in _distributions(root)
        for requirement in requires(name) or []
        if "extra ==" not in requirement
    )
    return package in installed or package in required


def _sources(target: str) -> "_Sources":
    """Return the sources that a class or function needs.

    Parameters
    ----------
    target : str
        Dotted path.

    Returns
    -------
    _Sources
        All sources, at any depth of imports.
    """
    sources, found = _Sources(), resolve(target)
    for part in inspect.getmro(found) if inspect.isclass(found) else [found]:
        module, name = (getattr(part, key, None) for key in ("__module__", "__qualname__"))
        if isinstance(module, str) and isinstance(name, str):
            sources.need(_Import(module, (name.partition(".")[0],)))
    if not inspect.isclass(found):  # another module, for example a decorator's, may have created it
        sources.need(_named_by(target))
    return sources


def _named_by(target: str) -> "_Import":
    """Return the import to which a dotted path corresponds.

    Parameters
    ----------
    target : str
        Dotted path of a class or function.

    Returns
    -------
    _Import
        The longest module in the path, and the name that follows it.
    """
    parts = target.split(".")
    depth = next(
        depth for depth in range(len(parts) - 1, 0, -1) if _spec(".".join(parts[:depth])) or depth == 1
    )
    return _Import(".".join(parts[:depth]), (parts[depth],))


class _Import(NamedTuple):
    """An imported module, and the names taken from it.

    Attributes
    ----------
    module : str
        Dotted name of the module.
    names : tuple of str or None
        Names taken from it; None if the module itself is bound to a name.
    """

    module: str
    names: tuple[str, ...] | None


class _Sources:
    """Sources that were found so far.

    Attributes
    ----------
    pieces : dict
        Sources by module and part. The part is "" for a whole file, or a name that a package's `__init__`
        defines, or `_RUN`. A name that an `__init__` imports from another module has no piece there. So a
        package may export more names without an effect on the others.
    versions : dict of str to str
        Versions of installed packages, by top-level name.
    """

    def __init__(self) -> None:
        self.pieces: dict[tuple[str, str], bytes] = {}
        self.versions: dict[str, str] = {}
        self._seen: set[tuple[str, str]] = set()
        self._followed: set[_Import] = set()
        # The caches live as long as this object, because files may change before the next class is read.
        self._installed_version = cache(_installed_version)
        self._spec = cache(_spec)
        self._init = cache(_init_of)

    def need(self, wanted: _Import) -> None:
        """Add an import and everything that it needs.

        Parameters
        ----------
        wanted : _Import
            The import.
        """
        waiting = [wanted]
        while waiting:
            if (next_one := waiting.pop()) not in self._followed:
                self._followed.add(next_one)
                waiting.extend(self._add(next_one))

    def _add(self, wanted: _Import) -> Iterator[_Import]:
        """Add an import, and yield the imports of its source.

        Parameters
        ----------
        wanted : _Import
            The import.

        Yields
        ------
        _Import
            An import to add next.
        """
        module, names = wanted
        root = module.partition(".")[0]
        if root in sys.stdlib_module_names:
            return
        if (number := self._installed_version(root)) is not None:
            self.versions[root] = number
            return
        spec = self._spec(module)
        if spec is None:
            return
        yield from (_Import(package, ()) for package in _parents(module))
        if spec.submodule_search_locations is not None:
            yield from self._add_names(module, spec, names)
        elif self._is_new(module, "") and spec.origin and Path(spec.origin).is_file():
            source = self.pieces[module, ""] = Path(spec.origin).read_bytes()
            if spec.origin.endswith(".py"):
                yield from _parsed(source, module.rpartition(".")[0])

    def _add_names(self, package: str, spec: ModuleSpec, names: Iterable[str] | None) -> Iterator[_Import]:
        """Add the statements that a package runs on import, and yield the origins of some of its names.

        Parameters
        ----------
        package : str
            Dotted name of the package.
        spec : ModuleSpec
            Its specification.
        names : iterable of str or None
            Names taken from it; None for all of them.

        Yields
        ------
        _Import
            An import to add next.
        """
        init = self._init(package, spec.origin)
        if names is None or "*" in names:
            names = init.origins
        waiting = [_RUN, *names]
        while waiting:
            name = waiting.pop()
            if not self._is_new(package, name):
                continue
            if name in init.origins:
                yield from init.origins[name]
                if name in init.definitions:
                    self.pieces[package, name] = init.definitions[name]
                waiting.extend(used for used in init.uses[name] if used in init.origins)
            elif name != _ANY and self._spec(f"{package}.{name}") is not None:
                yield _Import(f"{package}.{name}", None)
            elif name != _ANY and init.stars:
                yield from (_Import(module, (name,)) for module in init.stars)
            else:  # created on demand, from any module of the package
                yield from _modules_of(package, spec)

    def _is_new(self, module: str, part: str) -> bool:
        """Return whether a part of a module is asked for the first time, and remember it.

        Parameters
        ----------
        module : str
            Dotted name of the module.
        part : str
            Part of its source; see `pieces`.

        Returns
        -------
        bool
            False from the second call on.
        """
        if (module, part) in self._seen:
            return False
        self._seen.add((module, part))
        return True


# -- reading a source ----------------------------------------------------------------------------


class _Init(NamedTuple):
    """Names of a package's `__init__`, with `_RUN` for the statements that do more than define names.

    Attributes
    ----------
    origins : dict of str to list
        Imports that a name needs.
    definitions : dict of str to bytes
        Sources of the names that are defined here.
    uses : dict of str to set
        Names that a definition uses.
    stars : list of str
        Modules from which all names are imported.
    """

    origins: dict[str, list[_Import]]
    definitions: dict[str, bytes]
    uses: dict[str, set[str]]
    stars: list[str]


@lru_cache(maxsize=1024)
def _parsed(source: bytes, package: str) -> list[_Import]:
    """Return the imports of a module.

    Parameters
    ----------
    source : bytes
        Source of the module.
    package : str
        Dotted name of its package, for relative imports.

    Returns
    -------
    list of _Import
        Imports in order.
    """
    return list(_imports(_tree(source), package))


def _init_of(package: str, origin: str | None) -> _Init:
    """Read the `__init__` of a package.

    Parameters
    ----------
    package : str
        Dotted name of the package.
    origin : str or None
        Path of its file; None for a namespace package, which has none.

    Returns
    -------
    _Init
        Its names.
    """
    return _parsed_init(Path(origin).read_bytes() if origin and Path(origin).is_file() else b"", package)


@lru_cache(maxsize=256)
def _parsed_init(source: bytes, package: str) -> _Init:
    """Return the names of an `__init__`.

    Parameters
    ----------
    source : bytes
        Source of the file.
    package : str
        Dotted name of the package, for relative imports.

    Returns
    -------
    _Init
        Its names.
    """
    init = _Init({_RUN: []}, {_RUN: b""}, {_RUN: set()}, [])
    lines = source.splitlines(keepends=True)
    for statement in _flat(_tree(source).body):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            _read_import(statement, package, init)
            continue
        first = min([statement.lineno, *(mark.lineno for mark in getattr(statement, "decorator_list", []))])
        text = b"".join(lines[first - 1 : statement.end_lineno])
        for name in _defined(statement):
            init.origins.setdefault(name, []).extend(_imports(statement, package))
            init.definitions[name] = init.definitions.get(name, b"") + text
            init.uses.setdefault(name, set()).update(_loaded(statement))
    if not init.definitions[_RUN]:
        del init.definitions[_RUN]
    return init


def _read_import(statement: ast.Import | ast.ImportFrom, package: str, init: _Init) -> None:
    """Add the names of an import statement to those of an `__init__`.

    Parameters
    ----------
    statement : ast.Import or ast.ImportFrom
        The statement.
    package : str
        Dotted name of the package, for relative imports.
    init : _Init
        Receives the names.
    """
    for alias in statement.names:
        found = _import_of(statement, alias, package)
        if alias.name == "*":
            init.stars.append(found.module)
            continue
        name = alias.asname or alias.name.partition(".")[0]
        init.origins.setdefault(name, []).append(found)
        init.uses.setdefault(name, set())


def _defined(statement: ast.stmt) -> list[str]:
    """Return the names that a statement defines, and `_RUN` if it may do more.

    Parameters
    ----------
    statement : ast.stmt
        A statement of an `__init__`.

    Returns
    -------
    list of str
        Names; empty for a docstring.
    """
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return []
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    if any(name.startswith("__") and name.endswith("__") for name in names):
        return names  # such as __all__ and __version__
    plain = bool(names) and not any(isinstance(target, (ast.Subscript, ast.Attribute)) for target in targets)
    calls = any(isinstance(node, ast.Call) for node in ast.walk(statement))
    return names if plain and not calls else [*names, _RUN]


def _loaded(statement: ast.stmt) -> set[str]:
    """Return the names that occur in a statement.

    Parameters
    ----------
    statement : ast.stmt
        Any statement.

    Returns
    -------
    set of str
        Names.
    """
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _tree(source: bytes) -> ast.Module:
    """Parse a source.

    Parameters
    ----------
    source : bytes
        Source of a module.

    Returns
    -------
    ast.Module
        Its syntax tree; empty for invalid code, which cannot be imported either.
    """
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _flat(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, with the bodies of `if`, `try` and `with` in place of these.

    Blocks for type checkers are omitted.

    Parameters
    ----------
    statements : iterable of ast.stmt
        Statements of a module.

    Yields
    ------
    ast.stmt
        A statement.
    """
    for statement in statements:
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            blocks = [] if _for_type_checkers(statement) else [statement.body]
            blocks += [getattr(statement, name, []) for name in ("orelse", "finalbody")]
            blocks += [handler.body for handler in getattr(statement, "handlers", [])]
            for block in blocks:
                yield from _flat(block)
        else:
            yield statement


def _for_type_checkers(node: ast.AST) -> bool:
    """Return whether a node is an `if TYPE_CHECKING`.

    Parameters
    ----------
    node : ast.AST
        Any node.

    Returns
    -------
    bool
        Whether its body runs only in type checkers.
    """
    test = getattr(node, "test", None) if isinstance(node, ast.If) else None
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _imports(node: ast.AST, package: str) -> Iterator[_Import]:
    """Yield the imports at and below a node of the syntax tree.

    Parameters
    ----------
    node : ast.AST
        Any node.
    package : str
        Dotted name of the package, for relative imports.

    Yields
    ------
    _Import
        An import.
    """
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (_import_of(node, alias, package) for alias in node.names)
        return
    if isinstance(node, ast.Call):
        yield from _imported_by_name(node, package)
    for name, child in ast.iter_fields(node):
        if name == "body" and _for_type_checkers(node):
            continue
        for item in child if isinstance(child, list) else [child]:
            if isinstance(item, ast.AST):
                yield from _imports(item, package)


def _import_of(statement: ast.Import | ast.ImportFrom, alias: ast.alias, package: str) -> _Import:
    """Return the import of one alias.

    Parameters
    ----------
    statement : ast.Import or ast.ImportFrom
        The statement.
    alias : ast.alias
        One of its names.
    package : str
        Dotted name of the package, for relative imports.

    Returns
    -------
    _Import
        The module, and the name taken from it.
    """
    if isinstance(statement, ast.Import):
        return _Import(alias.name, None)
    return _Import(_absolute("." * statement.level + (statement.module or ""), package), (alias.name,))


def _imported_by_name(call: ast.Call, package: str) -> Iterator[_Import]:
    """Yield the import of a call of `importlib.import_module` or `__import__`.

    Parameters
    ----------
    call : ast.Call
        Any call.
    package : str
        Dotted name of the package, for relative imports.

    Yields
    ------
    _Import
        The module; all modules of the package if the argument is not a constant.
    """
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if called not in ("import_module", "__import__") or not call.args:
        return
    name = call.args[0]
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        yield _Import(_absolute(name.value, package), None)
    elif package:
        yield _Import(package, (_ANY,))


def _absolute(name: str, package: str) -> str:
    """Return the absolute name of a module.

    Parameters
    ----------
    name : str
        Name of the module, with leading dots if relative.
    package : str
        Dotted name of the package in which the import stands.

    Returns
    -------
    str
        Dotted name.
    """
    level = len(name) - len(name.lstrip("."))
    if not level:
        return name
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - level + 1], *filter(None, [name[level:]])])


# -- finding modules -----------------------------------------------------------------------------


def _parents(module: str) -> list[str]:
    """Return the packages that contain a module, outermost first.

    Parameters
    ----------
    module : str
        Dotted name.

    Returns
    -------
    list of str
        Dotted names.
    """
    parts = module.split(".")
    return [".".join(parts[:depth]) for depth in range(1, len(parts))]


def _spec(module: str) -> ModuleSpec | None:
    """Find a module without importing it or the packages that contain it.

    Parameters
    ----------
    module : str
        Dotted name.

    Returns
    -------
    ModuleSpec or None
        None if there is no such module.
    """
    parent, _, _ = module.rpartition(".")
    if not parent:
        return _top_level_spec(module)
    package = _spec(parent)
    if package is None or package.submodule_search_locations is None:
        return None
    return PathFinder.find_spec(module, list(package.submodule_search_locations))


def _top_level_spec(module: str) -> ModuleSpec | None:
    """Find a top-level module or package without importing it.

    Parameters
    ----------
    module : str
        Its name.

    Returns
    -------
    ModuleSpec or None
        None if there is no such module.
    """
    if (spec := PathFinder.find_spec(module)) is not None:
        return spec
    try:
        return importlib.util.find_spec(module)
    except ValueError:  # the main script and modules built at run time have no spec
        file = getattr(sys.modules[module], "__file__", None)
        return importlib.util.spec_from_file_location(module, file) if file else None


def _modules_of(package: str, spec: ModuleSpec) -> Iterator[_Import]:
    """Yield all modules of a package, except its tests.

    Parameters
    ----------
    package : str
        Dotted name of the package.
    spec : ModuleSpec
        Its specification.

    Yields
    ------
    _Import
        A module.
    """
    for folder in map(Path, spec.submodule_search_locations or []):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if "tests" not in parts:
                yield _Import(".".join([package, *(part for part in parts if part != "__init__")]), None)


def _installed_version(root: str) -> str | None:
    """Return the version of an installed package.

    Parameters
    ----------
    root : str
        Top-level name of the package.

    Returns
    -------
    str or None
        None for a package whose sources may change without a new version, such as an editable install.
    """
    spec = _top_level_spec(root)
    if spec is None:
        return None
    path = spec.origin if spec.origin else next(iter(spec.submodule_search_locations or []), "")
    if not {"site-packages", "dist-packages"} & set(Path(path).parts):
        return None
    names = _distributions(root)
    here = _distributions(__name__.partition(".")[0])
    if not names or set(here) & set(names) or any(map(_from_sources, names)):
        return None
    return "+".join(distribution(name).version for name in names)


@cache
def _distributions(root: str) -> list[str]:
    """Return the sorted names of the distributions that hold a top-level package or module.

    `importlib.metadata.packages_distributions` finds them for all packages, in ten times the time.

    Parameters
    ----------
    root : str
        Top-level name.

    Returns
    -------
    list of str
        Names of distributions.
    """
    file = re.compile(rf"\n{re.escape(root)}(/|\.py,|\.[^/,]*(so|pyd),)")
    return sorted(
        {
            each.metadata["Name"]
            for each, declared, files in _installed_files()
            if (root in declared if declared else f"\n{root}" in files and file.search(files))
        }
    )


@cache
def _installed_files() -> list[tuple[Distribution, list[str], str]]:
    """Return each distribution, the packages that it declares, and the list of its files."""
    return [
        (each, (each.read_text("top_level.txt") or "").split(), f"\n{each.read_text('RECORD') or ''}")
        for each in distributions()
    ]


def _from_sources(name: str) -> bool:
    """Return whether a distribution was built here from a folder or a repository.

    Parameters
    ----------
    name : str
        Name of the distribution.

    Returns
    -------
    bool
        True for such a distribution.
    """
    origin = distribution(name).read_text("direct_url.json") or ""
    return '"dir_info"' in origin or '"vcs_info"' in origin
