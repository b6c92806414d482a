"""Which room of the package may import which: those below it, named here."""

import ast
import re
from pathlib import Path

import solvers

FOLDER = Path(solvers.__file__).parent
PATH = {"common", "kernels", "problem", "multiclass", "gram", "smo", "hull", "margin", "newton"}
MAY_IMPORT = {
    "common": set(),
    "kernels": {"common"},
    "multiclass": {"common"},
    "problem": {"common", "kernels"},
    "gram": {"common", "kernels", "problem", "multiclass"},
    "smo": {"common", "kernels", "problem", "gram"},
    "hull": {"common", "kernels", "problem", "gram"},
    "margin": {"common", "kernels", "problem", "gram", "smo", "hull"},
    "newton": {"common", "kernels", "problem", "gram", "smo", "hull", "margin"},
    "path": PATH,
    "linear": {"common", "kernels"},
    "reduction": {"common", "kernels"},
    "online": {"common", "kernels", "problem", "gram", "smo"},
    "tree": {"common", "kernels", "problem", "reduction", "smo"},
    "version_space": {"common", "kernels", "problem", "gram", "smo"},
    "estimators": {*PATH, "path", "reduction", "online", "linear", "tree", "version_space"},
    "__init__": {"estimators"},
}


def room_of(path):
    return path.relative_to(FOLDER).with_suffix("").parts[0]


def rooms_imported_by(path):
    """First names below the package that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        assert not getattr(node, "level", 0), f"{path}: relative import"
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from {name.split(".")[1] for name in names if name.startswith("solvers.")}


def upward(paths):
    return [
        f"{path.relative_to(FOLDER)}: {room}"
        for path in paths
        for room in rooms_imported_by(path)
        if room not in MAY_IMPORT[room_of(path)] | {room_of(path)}
    ]


def test_no_room_imports_one_above_it():
    paths = sorted(FOLDER.rglob("*.py"))
    assert {room_of(path) for path in paths} == set(MAY_IMPORT)
    assert upward(paths) == []


def test_the_table_has_no_circle():
    order = list(MAY_IMPORT)
    assert all(order.index(below) < order.index(room) for room in order for below in MAY_IMPORT[room])


def test_the_docstring_lists_each_room_once_above_those_it_imports():
    table = re.split("^=+ =+$", solvers.__doc__, flags=re.MULTILINE)[1]
    rooms = re.findall(r"^(\w+)/? ", table, flags=re.MULTILINE)
    assert sorted(rooms) == sorted(set(MAY_IMPORT) - {"__init__"})
    assert all(rooms.index(room) < rooms.index(below) for room in rooms for below in MAY_IMPORT[room])


def test_an_arrow_upward_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "FOLDER", tmp_path)
    (tmp_path / "kernels").mkdir()
    file = tmp_path / "kernels" / "functions.py"
    file.write_text("def f():\n    from solvers.path.driver import path_from_gram\n")
    assert upward([file]) == ["kernels/functions.py: path"]


def test_a_room_says_what_it_holds_and_hides_nothing():
    for init in FOLDER.glob("*/__init__.py"):
        tree = ast.parse(init.read_text())
        assert ast.get_docstring(tree), init
        assert "may import" in ast.get_docstring(tree).lower()
        assert len(tree.body) == 1, f"{init} holds more than its docstring"
