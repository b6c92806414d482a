"""Read the source of a module: a hash of its code, and the names that it imports.

The hash is that of the syntax tree without docstrings, comments, annotations and layout, and without imports
that only annotations use. It does not depend on the version of Python, as long as that can parse the source.
With `former=True`, functions return the hash of older versions of svmbench, which contained these imports.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Set
from typing import Any, NamedTuple

RUN = "<run on import>"
"""Name for the statements of an `__init__` that run on import."""

ANY = "<any module>"
"""Name for an import whose module is not known before run time."""


class Import(NamedTuple):
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


class ModuleSource(NamedTuple):
    """Source of a module.

    Attributes
    ----------
    code : str
        Hash of its code.
    imports : list of Import
        Imports in order.
    """

    code: str
    imports: list[Import]


class InitSource(NamedTuple):
    """Names of a package's `__init__`, with `RUN` for the statements that do more than define names.

    Attributes
    ----------
    origins : dict of str to list of Import
        Imports that a name needs.
    definitions : dict of str to str
        Hashes of the definitions of the names that are defined here.
    uses : dict of str to list of str
        Names that a definition uses.
    stars : list of str
        Modules from which all names are imported.
    """

    origins: dict[str, list[Import]]
    definitions: dict[str, str]
    uses: dict[str, list[str]]
    stars: list[str]


def read_module(source: bytes, package: str, former: bool = False) -> ModuleSource:
    """Return the hash and the imports of a module.

    Parameters
    ----------
    source : bytes
        Source of the module.
    package : str
        Dotted name of its package, for relative imports.
    former : bool, default False
        Return the hash of older versions of svmbench.

    Returns
    -------
    ModuleSource
        Hash and imports. For code that cannot be parsed, and so cannot be imported, it is the hash of the
        bytes, without imports.
    """
    tree = _tree(source, former)
    if tree is None:
        return ModuleSource(hashlib.sha256(source).hexdigest(), [])
    return ModuleSource(_hash(tree.body), list(_imports(tree, package)))


def read_init(source: bytes, package: str, former: bool = False) -> InitSource:
    """Return the names of an `__init__`, with what each of them needs.

    Parameters
    ----------
    source : bytes
        Source of the file.
    package : str
        Dotted name of the package, for relative imports.
    former : bool, default False
        Return the hashes of older versions of svmbench.

    Returns
    -------
    InitSource
        Names that it defines or imports, with their hashes and imports.
    """
    init = InitSource({RUN: []}, {}, {RUN: []}, [])
    defined: dict[str, list[ast.stmt]] = {}
    tree = _tree(source, former)
    for statement in _flat(tree.body if tree else []):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            _read_import(statement, package, init)
            continue
        for name in _defined(statement):
            init.origins.setdefault(name, []).extend(_imports(statement, package))
            defined.setdefault(name, []).append(statement)
    for name, statements in defined.items():
        init.definitions[name] = _hash(statements)
        used = {node.id for each in statements for node in ast.walk(each) if isinstance(node, ast.Name)}
        init.uses[name] = sorted(used)
    return init


# -- the syntax tree -----------------------------------------------------------------------------


def _tree(source: bytes, former: bool) -> ast.Module | None:
    """Parse a source, and remove everything that does not count as code.

    Parameters
    ----------
    source : bytes
        Source of a module.
    former : bool
        Whether imports that only annotations use count as code.

    Returns
    -------
    ast.Module or None
        The syntax tree; None for invalid code.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        _strip(node)
    if not former:
        _remove_annotation_imports(tree)
    return tree


_ANNOTATION_MODULES = ("__future__", "typing", "typing_extensions", "collections.abc", "numpy.typing")
"""Modules with names for annotations, whose import has no other effect."""


def _remove_annotation_imports(tree: ast.Module) -> None:
    """Remove imports of names that only annotations use, and code for type checkers that is empty now.

    Parameters
    ----------
    tree : ast.Module
        Syntax tree without annotations, which is changed in place.
    """
    for node in ast.walk(tree):
        for name, block in _blocks(node):
            setattr(node, name, [each for each in block if not _for_type_checkers(each) or each.orelse])
    used = {getattr(node, "id", getattr(node, "value", None)) for node in ast.walk(tree) if _is_name(node)}
    for node in ast.walk(tree):
        for name, block in _blocks(node):
            setattr(node, name, [each for each in block if _imports_used(each, used)])


def _blocks(node: ast.AST) -> list[tuple[str, list[Any]]]:
    """Return the lists of statements of a node by the names of their fields.

    Parameters
    ----------
    node : ast.AST
        Any node.

    Returns
    -------
    list of (str, list of ast.stmt)
        Names and statements.
    """
    found = ((name, getattr(node, name, None)) for name in ("body", "orelse", "finalbody"))
    return [(name, block) for name, block in found if isinstance(block, list)]


def _is_name(node: ast.AST) -> bool:
    """Return whether a node uses a name, possibly by a text, as in `__all__`.

    Parameters
    ----------
    node : ast.AST
        Any node.

    Returns
    -------
    bool
        True for a name and for a text.
    """
    return isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _imports_used(statement: ast.stmt, used: Set[Any]) -> bool:
    """Remove names that only annotations use from an import, and return whether the statement is still code.

    Parameters
    ----------
    statement : ast.stmt
        Any statement; an import is changed in place.
    used : set of str
        Names that the module uses.

    Returns
    -------
    bool
        False for an import without names.
    """
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        return True
    source = "" if isinstance(statement, ast.Import) or statement.level else statement.module
    statement.names = [
        alias
        for alias in statement.names
        if (source or alias.name) not in _ANNOTATION_MODULES
        or alias.name == "*"
        or (source != "__future__" and (alias.asname or alias.name.partition(".")[0]) in used)
    ]
    return bool(statement.names)


_MEANINGFUL = ("ClassVar", "InitVar", "KW_ONLY")
"""Annotations of a class's fields that `dataclasses` reads."""

_READERS = ("jitclass", "register")
"""Decorators that read annotations: of numba, and of a generic function of `functools`."""


def _strip(node: ast.AST) -> None:
    """Remove docstrings, annotations and code for type checkers from a node.

    Parameters
    ----------
    node : ast.AST
        Node to change in place.
    """
    is_read = any(_last_name(mark) in _READERS for mark in getattr(node, "decorator_list", []))
    if hasattr(node, "type_params"):  # Python 3.12 and later
        node.type_params = []
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not is_read:
        node.returns = None
        given = node.args
        for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            if arg is not None:
                arg.annotation = None
    for name in ("body", "orelse", "finalbody"):
        if isinstance(block := getattr(node, name, None), list):
            code = [] if name == "body" and _for_type_checkers(node) else filter(_has_effect, block)
            if not is_read:
                of_class = isinstance(node, ast.ClassDef)
                code = filter(None, (_without_annotation(each, of_class) for each in code))
            setattr(node, name, list(code))


def _has_effect(statement: ast.stmt) -> bool:
    """Return whether a statement is not a mere constant, such as a docstring or `...`.

    Parameters
    ----------
    statement : ast.stmt
        Statement of a module, class or function.

    Returns
    -------
    bool
        True for code.
    """
    return not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


def _without_annotation(statement: ast.stmt, of_class: bool) -> ast.stmt | None:
    """Return a statement without its annotation; None if nothing else is left of it.

    A field of a class stays different from an attribute, because `dataclass` distinguishes them.

    Parameters
    ----------
    statement : ast.stmt
        Statement of the module's syntax tree.
    of_class : bool
        Whether it stands in the body of a class.

    Returns
    -------
    ast.stmt or None
        The statement, or an assignment in its place. An annotation without a value is no code.
    """
    if not isinstance(statement, ast.AnnAssign):
        return statement
    if of_class:
        name = _last_name(statement.annotation)
        statement.annotation = ast.Name(name if name in _MEANINGFUL else "")
        return statement
    return None if statement.value is None else ast.Assign([statement.target], statement.value)


def _last_name(node: ast.AST) -> str:
    """Return the name of a decorator or of an annotation, without its package and arguments.

    Parameters
    ----------
    node : ast.AST
        The expression, such as that of `numba.experimental.jitclass(spec)`.

    Returns
    -------
    str
        The name, such as `jitclass`; empty if there is none.
    """
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Constant) and isinstance(node.value, str):  # an annotation in quotes
        return re.match(r"[\w.]*", node.value)[0].rpartition(".")[2]  # type: ignore[index]
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


_LAYOUT = ("ctx", "kind", "simple", "type_comment", "type_ignores")
"""Fields of a syntax tree that depend on its layout or follow from other fields."""


def _hash(statements: list[ast.stmt]) -> str:
    """Return a hash of stripped statements.

    Nodes are written with the names of their fields and without empty fields. So a field that a later version
    of Python adds has no effect on sources that do not use it.

    Parameters
    ----------
    statements : list of ast.stmt
        Statements of the module's syntax tree, in order.

    Returns
    -------
    str
        The hash, in hexadecimal digits.
    """
    written: list[str] = []
    waiting: list[object] = [statements]  # a stack, because long expressions are deeply nested
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            written.append(item)
        elif isinstance(item, list):
            waiting.append("]")
            for each in reversed(item):
                waiting += (",", each)
            waiting.append("[")
        elif isinstance(item, ast.Constant):
            written.append(_value_text(item.value))
        elif isinstance(item, ast.AST):
            fields = _fields(item)
            waiting.append(")")
            for name, value in reversed(fields):
                waiting += (";", value, f"{name}=")
            waiting.append(f"{type(item).__name__}(")
        else:
            written.append(f"{item}")
    return hashlib.sha256("".join(written).encode("utf-8", "surrogatepass")).hexdigest()


def _fields(node: ast.AST) -> list[tuple[str, object]]:
    """Return the fields of a node that its hash includes.

    Parameters
    ----------
    node : ast.AST
        Node without docstrings and annotations.

    Returns
    -------
    list of (str, object)
        Sorted names and values.
    """
    found = ((name, getattr(node, name, None)) for name in sorted(node._fields) if name not in _LAYOUT)
    fields = [(name, value) for name, value in found if value is not None and value != []]
    if isinstance(node, ast.JoinedStr):  # versions of Python divide the literal parts differently
        return [("values", _joined(node.values))]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [(name, value) for name, value in fields if name != "level"]
    return fields


def _joined(parts: Iterable[ast.expr]) -> list[ast.expr]:
    """Join adjacent literal parts of a formatted string, and drop empty ones.

    Parameters
    ----------
    parts : iterable of ast.expr
        Parts of the string.

    Returns
    -------
    list of ast.expr
        The same string in fewer parts.
    """
    joined: list[ast.expr] = []
    for part in parts:
        if isinstance(part, ast.Constant) and joined and isinstance(joined[-1], ast.Constant):
            joined[-1] = ast.Constant(str(joined[-1].value) + str(part.value))
        elif not isinstance(part, ast.Constant) or part.value:
            joined.append(part)
    return joined


def _value_text(value: object) -> str:
    """Return the text of a literal, which is the same in every version of Python.

    Parameters
    ----------
    value : object
        Value of the literal.

    Returns
    -------
    str
        Its type and its value.
    """
    if type(value) is int:  # Python limits the number of decimal digits
        return f"int {value:x}"
    return f"{type(value).__name__} {value!a}"


def _for_type_checkers(node: ast.AST) -> bool:
    """Return whether a node is an `if TYPE_CHECKING`.

    Parameters
    ----------
    node : ast.AST
        Node to examine.

    Returns
    -------
    bool
        Whether its body runs only in type checkers.
    """
    test = getattr(node, "test", None) if isinstance(node, ast.If) else None
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


# -- names of an `__init__` ----------------------------------------------------------------------


def _flat(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, with the content of every `if`, `try` and `with` in its place.

    Parameters
    ----------
    statements : iterable of ast.stmt
        Statements of a module.

    Yields
    ------
    ast.stmt
        Statement, or the condition of a block as a statement.
    """
    for statement in statements:
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            yield from map(ast.Expr, _conditions(statement))
            blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
            blocks += [handler.body for handler in getattr(statement, "handlers", [])]
            for block in blocks:
                yield from _flat(block)
        else:
            yield statement


def _conditions(statement: ast.If | ast.Try | ast.With) -> Iterator[ast.expr]:
    """Yield the expressions that decide whether a block runs.

    Parameters
    ----------
    statement : ast.If, ast.Try or ast.With
        Statement of the module's syntax tree.

    Yields
    ------
    ast.expr
        Condition of an `if`, or context of a `with`.
    """
    if isinstance(statement, ast.If) and not _for_type_checkers(statement):
        yield statement.test
    elif isinstance(statement, ast.With):
        yield from (item.context_expr for item in statement.items)


def _read_import(statement: ast.Import | ast.ImportFrom, package: str, init: InitSource) -> None:
    """Add the names of an import statement to those of an `__init__`.

    Parameters
    ----------
    statement : ast.Import or ast.ImportFrom
        Statement of the module's syntax tree.
    package : str
        Dotted name of the package, for relative imports.
    init : InitSource
        Receives the names.
    """
    for alias in statement.names:
        found = _import_of(statement, alias, package)
        if alias.name == "*":
            init.stars.append(found.module)
            continue
        name = alias.asname or alias.name.partition(".")[0]
        init.origins.setdefault(name, []).append(found)
        init.uses.setdefault(name, [])


def _defined(statement: ast.stmt) -> list[str]:
    """Return the names that a statement defines, and `RUN` if it may do more.

    Parameters
    ----------
    statement : ast.stmt
        A statement of an `__init__`.

    Returns
    -------
    list of str
        The names; empty for `pass`.
    """
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, ast.Pass):
        return []
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AugAssign):
        targets = [statement.target]
    names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    if any(name.startswith("__") and name.endswith("__") for name in names):
        return names  # such as __all__ and __version__
    plain = bool(names) and not any(isinstance(target, (ast.Subscript, ast.Attribute)) for target in targets)
    calls = any(isinstance(node, ast.Call) for node in ast.walk(statement))
    return names if plain and not calls else [*names, RUN]


# -- imports -------------------------------------------------------------------------------------


def _imports(root: ast.AST, package: str) -> Iterator[Import]:
    """Yield the imports at and below a node of the syntax tree.

    Parameters
    ----------
    root : ast.AST
        Node at which the walk starts.
    package : str
        Dotted name of the package, for relative imports.

    Yields
    ------
    Import
        Module that is imported, and the names taken from it.
    """
    for node in ast.walk(root):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (_import_of(node, alias, package) for alias in node.names)
        elif isinstance(node, ast.Call):
            yield from _imported_by_name(node, package)


def _import_of(statement: ast.Import | ast.ImportFrom, alias: ast.alias, package: str) -> Import:
    """Return the import of one alias.

    Parameters
    ----------
    statement : ast.Import or ast.ImportFrom
        Statement of the module's syntax tree.
    alias : ast.alias
        One of its names.
    package : str
        Dotted name of the package, for relative imports.

    Returns
    -------
    Import
        The module, and the name taken from it; no name for an `import` statement.
    """
    if isinstance(statement, ast.Import):
        return Import(alias.name, None)
    return Import(_absolute("." * statement.level + (statement.module or ""), package), (alias.name,))


def _imported_by_name(call: ast.Call, package: str) -> Iterator[Import]:
    """Yield the import of a call of `importlib.import_module` or `__import__`.

    Parameters
    ----------
    call : ast.Call
        Call to examine.
    package : str
        Dotted name of the package, for relative imports.

    Yields
    ------
    Import
        The module; all modules of the package if the argument is not a constant.
    """
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if called not in ("import_module", "__import__") or not call.args:
        return
    name = call.args[0]
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        yield Import(_absolute(name.value, package), None)
    elif package:
        yield Import(package, (ANY,))


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
