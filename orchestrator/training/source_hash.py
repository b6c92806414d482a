"""Identify code by the sources that a class or function imports, and by package versions.

Only the class or function itself is imported. All other sources are read from files, so that the result does
not depend on the modules that happen to be loaded.
"""

import hashlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, distribution, distributions, requires
from pathlib import Path
from typing import Any

from orchestrator.study.study import Arm
from orchestrator.study.targets import resolve, targets_in
from orchestrator.training.source_cache import keep_sources, read_once
from orchestrator.training.source_tree import ANY, RUN, Import, InitSource, read_init, read_module


def class_identity(target: str, former: bool = False) -> str:
    """Return a text that changes if and only if the code of a class or function does.

    It names the module, a hash of the sources, and the versions of the installed packages that these import.
    Docstrings, comments, annotations and layout of the sources do not count as code.
    The sources are the class's module, the modules of its base classes, and everything that these import, at
    any depth, except installed packages and Python's standard library.

    Parameters
    ----------
    target : str
        Dotted path, e.g. `solvers.MNSVC`.
    former : bool, default False
        Return the identity that older versions of svmbench compute for the same sources.

    Returns
    -------
    str
        The identity; empty for a class of Python's standard library.

    Raises
    ------
    ResolveError
        If the path does not name an object.
    """
    sources = _sources(target, former)
    return _as_text(getattr(resolve(target), "__module__", None) or target.rpartition(".")[0], sources)


def identity_now(recorded: str, targets: Iterable[str]) -> str:
    """Return today's identity of recorded code, without importing it.

    The recorded text names the modules of the classes. The result differs from that of `arm_code` only for a
    class with a base class that its module does not import by a statement.

    Parameters
    ----------
    recorded : str
        Identities of classes and functions, joined by " + ".
    targets : iterable of str
        Their dotted paths, in any order.

    Returns
    -------
    str
        Identities of the same classes and functions; empty if one of their modules or packages is not found.
    """
    names = list(dict.fromkeys(target.rpartition(".")[2] for target in targets))
    found = [_part_now(part, names) for part in recorded.split(" + ")]
    keep_sources()
    return " + ".join(dict.fromkeys(found)) if all(found) else ""


def _part_now(recorded: str, names: Sequence[str]) -> str:
    """Return today's identity of one class or function; empty if it is not found.

    Parameters
    ----------
    recorded : str
        Its recorded identity.
    names : sequence of str
        Names that it may have. Only a class that an `__init__` defines has an identity that depends on it.
    """
    words = recorded.split()
    if len(words) > 1 and re.fullmatch(r"[0-9a-f]{16}", words[1]):
        found = [_identity_in(words[0], name) for name in names]
        return recorded if recorded in found else next(iter(found), "")
    versions = {root: _installed_version(root) for root in words[::2]}
    if None in versions.values():
        return ""
    return " ".join(f"{root} {number}" for root, number in versions.items())


def _identity_in(module: str, name: str) -> str:
    """Return the identity of a class from its module.

    Parameters
    ----------
    module : str
        Dotted name of the module that defines the class.
    name : str
        Name of the class.
    """
    sources = _Sources(former=False)
    sources.need(Import(module, (name,)))
    return _as_text(module, sources)


def _as_text(module: str, sources: "_Sources") -> str:
    """Return an identity as text.

    Parameters
    ----------
    module : str
        Module of the class.
    sources : _Sources
        Its sources and versions of packages.

    Returns
    -------
    str
        The module and a hash, if it has sources, and the versions.
    """
    content = hashlib.sha256()
    for (found, part), piece in sorted(sources.pieces.items()):
        content.update(f"{found}:{part}:{piece};".encode())
    code = [module, content.hexdigest()[:16]] if sources.pieces else []
    return " ".join([*code, *(f"{name} {number}" for name, number in sorted(sources.versions.items()))])


def arm_code(target: str, params: Mapping[str, Any], former: bool = False) -> str:
    """Return the identity of the code of an arm: of its class, and of the classes in its parameters.

    Parameters
    ----------
    target : str
        Dotted path of the class.
    params : mapping
        Parameters of the arm, which may name further classes.
    former : bool, default False
        Return the identity that older versions of svmbench compute for the same sources.

    Returns
    -------
    str
        Identities of the classes, joined by " + ".
    """
    nested = sorted(set(targets_in(params)) - {target})
    found = (class_identity(each, former) for each in (target, *nested))
    return " + ".join(dict.fromkeys(filter(None, found)))


def with_code(arm: Arm) -> Arm:
    """Return an arm with the identities of today's code.

    Parameters
    ----------
    arm : Arm
        Solver with its sweep values.

    Returns
    -------
    Arm
        The arm with its `identity` and `space_identities`.
    """
    code = arm_code(arm.target, arm.params)
    of_space = {name: class_identity(name) for name in sorted(set(targets_in(arm.space)))}
    others = {name: found for name, found in of_space.items() if found and found not in code.split(" + ")}
    return replace(arm, identity=code, space_identities=others)


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
    found = {module.partition(".")[0] for module, _ in _latest_sources(target).pieces}
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
    modules = {module for module, _ in _latest_sources(target).pieces}
    specs = (_spec(module) for module in sorted(modules))
    origins = (spec.origin for spec in specs if spec is not None and spec.origin)
    return [Path(origin) for origin in origins if origin.endswith(".py")]


def depends_on(target: str, package: str) -> bool:
    """Return whether the sources of a class import a package, directly or through an installed package.

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


_latest: dict[str, "_Sources"] = {}
"""Sources that were found last, by dotted path."""


def _latest_sources(target: str) -> "_Sources":
    """Return the sources that the last `class_identity` of a class found, or find them.

    Parameters
    ----------
    target : str
        Dotted path.
    """
    return _latest.get(target) or _sources(target)


def _sources(target: str, former: bool = False) -> "_Sources":
    """Return the sources that a class or function needs.

    Parameters
    ----------
    target : str
        Dotted path.
    former : bool, default False
        Use the hashes of older versions of svmbench.

    Returns
    -------
    _Sources
        All sources, at any depth of imports.
    """
    sources, found = _Sources(former), resolve(target)
    for part in inspect.getmro(found) if inspect.isclass(found) else [found]:
        module, name = (getattr(part, key, None) for key in ("__module__", "__qualname__"))
        if isinstance(module, str) and isinstance(name, str):
            sources.need(Import(module, (name.partition(".")[0],)))
    if not inspect.isclass(found):  # another module, for example a decorator's, may have created it
        sources.need(_named_by(target))
    keep_sources()
    if not former:
        _latest[target] = sources
    return sources


def _named_by(target: str) -> "Import":
    """Return the import to which a dotted path corresponds.

    Parameters
    ----------
    target : str
        Dotted path of a class or function.

    Returns
    -------
    Import
        The longest part of the path that names a module, and the name that follows it.
    """
    parts = target.split(".")
    depth = next(
        depth for depth in range(len(parts) - 1, 0, -1) if _spec(".".join(parts[:depth])) or depth == 1
    )
    return Import(".".join(parts[:depth]), (parts[depth],))


class _Sources:
    """Sources that were found so far.

    Parameters
    ----------
    former : bool
        Whether to use the hashes of older versions of svmbench.

    Attributes
    ----------
    pieces : dict
        Hashes of code by module and part. The part is "" for a whole file, or a name that a package's
        `__init__` defines, or `RUN`. A name that an `__init__` imports from another module has no piece
        there. So a package may export more names without an effect on the others.
    versions : dict of str to str
        Versions of installed packages, by top-level name.
    """

    def __init__(self, former: bool) -> None:
        self._former = former
        self.pieces: dict[tuple[str, str], str] = {}
        self.versions: dict[str, str] = {}
        self._seen: set[tuple[str, str]] = set()
        self._followed: set[Import] = set()
        # The caches live as long as this object, because files may change before the next class is read.
        self._installed_version = cache(_installed_version)
        self._spec = cache(lambda module: _spec(module, self._spec))
        self._init = cache(partial(_init_of, former=former))

    def need(self, wanted: Import) -> None:
        """Add an import and everything that it needs.

        Parameters
        ----------
        wanted : Import
            Module to include, and the names taken from it.
        """
        waiting = [wanted]
        while waiting:
            if (next_one := waiting.pop()) not in self._followed:
                self._followed.add(next_one)
                waiting.extend(self._add(next_one))

    def _add(self, wanted: Import) -> Iterator[Import]:
        """Add an import, and yield the imports of its source.

        Parameters
        ----------
        wanted : Import
            Module to include, and the names taken from it.

        Yields
        ------
        Import
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
        yield from (Import(package, ()) for package in _parents(module))
        if spec.submodule_search_locations is not None:
            yield from self._add_names(module, spec, names)
        elif self._is_new(module, "") and spec.origin and Path(spec.origin).is_file():
            source = Path(spec.origin).read_bytes()
            if not spec.origin.endswith(".py"):
                self.pieces[module, ""] = hashlib.sha256(source).hexdigest()
                return
            read = read_once(source, module.rpartition(".")[0], read_module, self._former)
            self.pieces[module, ""] = read.code
            yield from read.imports

    def _add_names(self, package: str, spec: ModuleSpec, names: Iterable[str] | None) -> Iterator[Import]:
        """Add the statements that a package runs on import, and yield the origins of some of its names.

        Parameters
        ----------
        package : str
            Dotted name of the package.
        spec : ModuleSpec
            Specification of the package.
        names : iterable of str or None
            Names taken from it; None for all of them.

        Yields
        ------
        Import
            An import to add next.
        """
        init = self._init(package, spec.origin)
        if names is None or "*" in names:
            yield from (Import(module, ("*",)) for module in init.stars)
            names = init.origins
        waiting = [RUN, *names]
        while waiting:
            name = waiting.pop()
            if not self._is_new(package, name):
                continue
            if name in init.origins:
                own = Import(package, (name,))  # `from . import name` in the package itself
                submodule = Import(f"{package}.{name}", None)
                yield from (submodule if each == own else each for each in init.origins[name])
                if name in init.definitions:
                    self.pieces[package, name] = init.definitions[name]
                # A name that is not defined here may come from a star import.
                waiting.extend(used for used in init.uses[name] if used in init.origins or init.stars)
            elif name != ANY and self._spec(f"{package}.{name}") is not None:
                yield Import(f"{package}.{name}", None)
            elif name != ANY and init.stars:
                yield from (Import(module, (name,)) for module in init.stars)
            else:  # created on demand, from any module of the package
                yield from _modules_of(package, spec)

    def _is_new(self, module: str, part: str) -> bool:
        """Return whether a part of a module is requested for the first time, and store that it was.

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


# -- finding modules -----------------------------------------------------------------------------


def _init_of(package: str, origin: str | None, former: bool) -> InitSource:
    """Read the `__init__` of a package.

    Parameters
    ----------
    package : str
        Dotted name of the package.
    origin : str or None
        Path of its file; None for a namespace package, which has none.
    former : bool
        Whether to use the hashes of older versions of svmbench.

    Returns
    -------
    InitSource
        Names that it defines or imports, with their hashes and imports.
    """
    source = Path(origin).read_bytes() if origin and Path(origin).is_file() else b""
    return read_once(source, package, read_init, former)


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


def _spec(module: str, find: Callable[[str], ModuleSpec | None] | None = None) -> ModuleSpec | None:
    """Find a module without importing it or the packages that contain it.

    Parameters
    ----------
    module : str
        Dotted name.
    find : callable, optional
        Finds the package that contains the module. Default: this function.

    Returns
    -------
    ModuleSpec or None
        None if there is no such module.
    """
    parent, _, name = module.rpartition(".")
    if not parent:
        return _top_level_spec(module)
    package = (find or _spec)(parent)
    if package is None or package.submodule_search_locations is None:
        return None
    folders = list(package.submodule_search_locations)
    try:
        return PathFinder.find_spec(module, folders)
    except KeyError:  # a folder without __init__.py: Python asks `sys.modules` for the package around it
        spec = ModuleSpec(module, None, is_package=True)
        paths = (Path(folder, name) for folder in folders)
        spec.submodule_search_locations = [str(path) for path in paths if path.is_dir()]
        return spec


def _top_level_spec(module: str) -> ModuleSpec | None:
    """Find a top-level module or package without importing it.

    Parameters
    ----------
    module : str
        Name of the module, without dots.

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


def _modules_of(package: str, spec: ModuleSpec) -> Iterator[Import]:
    """Yield all modules of a package, except its tests.

    Parameters
    ----------
    package : str
        Dotted name of the package.
    spec : ModuleSpec
        Specification of the package, with its folders.

    Yields
    ------
    Import
        Import of one module.
    """
    for folder in map(Path, spec.submodule_search_locations or []):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if "tests" not in parts:
                yield Import(".".join([package, *(part for part in parts if part != "__init__")]), None)


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
    return "+".join(map(_version, names))


def _version(name: str) -> str:
    """Return the version of a distribution, without parsing all of its metadata, which may be a long text.

    Parameters
    ----------
    name : str
        Name of the distribution.
    """
    found = distribution(name)
    line = re.search(r"^Version: *(\S+)", found.read_text("METADATA") or "", re.MULTILINE)
    return line[1] if line else found.version


@cache
def _distributions(root: str) -> list[str]:
    """Return the sorted names of the distributions that hold a top-level package or module.

    `importlib.metadata.packages_distributions` finds them for all packages, which takes ten times as long.

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
