"""The rules of the house: which room may import which, where libraries stay, what has to have a docstring."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

from orchestrator.config.compose import load_settings
from orchestrator.config.descriptions import description, missing_packages
from orchestrator.study.cluster_kinds import CLUSTER_KINDS

ROOT = Path(__file__).parents[1]
MODULES = sorted([*ROOT.glob("orchestrator/**/*.py"), *ROOT.glob("solvers/**/*.py"), ROOT / "svmbench.py"])

# Room to the rooms below it, DESIGN's arrows: an import in the other direction is a mistake. A folder within
# a room may be one of its own.
BELOW = {
    "study": set(),
    # Directly above the nouns, so that every room that runs a user's code can protect itself from it.
    "isolation": {"study"},
    "store": {"study"},
    "search": {"isolation", "study"},
    "resampling": {"study"},
    "datasets": {"isolation", "study"},
    "training": {"isolation", "datasets", "resampling", "study"},
    "execution": {"training", "isolation", "datasets", "study"},
    "execution/clusters": {"execution", "training", "study"},
    "execution/dask": {"execution/clusters", "execution", "training", "study"},
    "engine": {
        *("execution/dask", "execution", "training", "isolation", "datasets", "resampling", "search"),
        *("store", "study"),
    },
    "analysis": {"store", "study"},
    "report": {"analysis", "store", "isolation", "study"},
    "claims": {"report", "analysis", "store", "study"},
    # Above the rooms whose classes it names.
    "config": {
        *("execution/clusters", "training", "isolation", "datasets", "resampling", "search"),
        "study",
    },
    # The way in from Python, beside the command line.
    "comparison": {"config", "report", "analysis", "engine", "datasets", "store", "study"},
    "cli": {
        *("config", "claims", "report", "analysis", "engine", "execution/dask", "execution"),
        *("isolation", "datasets", "store", "study"),
    },
}

# Where a library may be imported: a folder, or a file.
ONLY_IN = {
    "hydra": ("orchestrator/config/",),
    "omegaconf": ("orchestrator/config/",),
    "dask": ("orchestrator/execution/dask/", "orchestrator/execution/clusters/"),
    "distributed": ("orchestrator/execution/dask/", "orchestrator/execution/clusters/"),
    "pyarrow": ("orchestrator/store/", "orchestrator/datasets/"),
    "rich": ("orchestrator/cli/",),
}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


@cache
def nodes_of(text):
    """All nodes of the syntax tree of a module's text."""
    return tuple(ast.walk(ast.parse(text)))


def imported_modules(path):
    """Dotted names a module imports anywhere in it, relative imports resolved."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in nodes_of(path.read_text()):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def packages_imported_by(path):
    return {name.split(".")[0] for name in imported_modules(path)}


def modules(prefix):
    found = [path for path in MODULES if name_of(path).startswith(prefix)]
    assert found, f"no module under {prefix}"
    return found


@pytest.mark.parametrize(("package", "other"), [("solvers", "orchestrator"), ("orchestrator", "solvers")])
def test_the_two_packages_do_not_know_each_other(package, other):
    guilty = [name_of(path) for path in modules(f"{package}/") if other in packages_imported_by(path)]
    assert not guilty


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_stays_in_its_room(library):
    users = [name_of(path) for path in MODULES if library in packages_imported_by(path)]
    assert not [name for name in users if not name.startswith(ONLY_IN[library])]
    assert users, f"nobody imports {library}; take it off the list"


def room_of(module):
    """The room of a dotted name; `orchestrator` itself is above all rooms. None for other packages."""
    package, *parts = module.split(".")
    if package != "orchestrator" or module == "orchestrator.__version__":
        return None
    rooms = "/".join(parts[:2]), parts[0] if parts else ""
    return next((room for room in rooms if room in BELOW), "the package")


def modules_by_name(path):
    """Dotted names of ours in the strings of a module, by which it could import them."""
    texts = [node.value for node in nodes_of(path.read_text()) if is_constant_text(node)]
    for text in texts:
        if re.fullmatch(r"(orchestrator|solvers)(\.\w+)+", text):
            yield text
        # Code that another process runs.
        yield from re.findall(r"\b(?:from|import) ((?:orchestrator|solvers)(?:\.\w+)+)", text)
    # `import_module(f"orchestrator.datasets.{table[name]}")`: a table in the module holds the last parts.
    for node in nodes_of(path.read_text()):
        start = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else None
        if is_constant_text(start) and re.fullmatch(r"(orchestrator|solvers)\.([\w.]+\.)?", start.value):
            yield from (name for text in texts if is_module(name := f"{start.value}{text}"))


def is_constant_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def is_module(name):
    if not re.fullmatch(r"\w+(\.\w+)+", name):
        return False
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def dotted(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def rooms_used(path):
    """The rooms that a module imports, by the names it imports them by."""
    named = [*imported_modules(path), *modules_by_name(path)]
    # `from orchestrator import __version__` names the package, too.
    return {name: room for name in named if name != "orchestrator" and (room := room_of(name))}


def upward_imports(path):
    """The imports of a module that lead to a room which is not below its own."""
    room = room_of(dotted(path))
    if room not in BELOW:
        return []
    return [name for name, other in rooms_used(path).items() if other not in (room, *BELOW[room])]


def test_every_module_is_in_a_room():
    names = {path.relative_to(ROOT).parts[1] for path in modules("orchestrator/")}
    assert names == {*(room.partition("/")[0] for room in BELOW), "__init__.py", "__main__.py"}


def test_arrows_point_down():
    assert not {name_of(path): found for path in modules("orchestrator/") if (found := upward_imports(path))}


@pytest.mark.parametrize("room", BELOW)
def test_every_arrow_of_the_table_is_used(room):
    within = [path for path in modules(f"orchestrator/{room}/") if room_of(dotted(path)) == room]
    assert BELOW[room] <= {used for path in within for used in rooms_used(path).values()}


def circle_of(imports):
    """The modules that import one another, or are imported by those, given what each imports."""
    left = dict(imports)
    while lowest := [module for module, others in left.items() if not others & left.keys()]:
        for module in lowest:
            del left[module]
    return sorted(left)


def test_no_module_imports_itself_through_others():
    names = {dotted(path): path for path in modules("orchestrator/")}
    imports = {
        name: {*imported_modules(path), *modules_by_name(path)} & names.keys() - {name}
        for name, path in names.items()
    }
    for name, others in imports.items():  # `from package import module` names the package, too
        parents = {other for other in others if any(each.startswith(f"{other}.") for each in others)}
        imports[name] = others - parents
    assert circle_of(imports) == []
    assert circle_of({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]


def test_an_arrow_that_points_up_is_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    wrong = tmp_path / "orchestrator" / "study" / "wrong.py"
    wrong.parent.mkdir(parents=True)
    wrong.write_text("def f():\n    from orchestrator.engine import run\n    return run\n")
    assert upward_imports(wrong) == ["orchestrator.engine", "orchestrator.engine.run"]
    wrong.write_text("from orchestrator import __version__, load_study\n")
    assert upward_imports(wrong) == ["orchestrator.load_study"]
    wrong.write_text("import importlib\nload = importlib.import_module('orchestrator.engine.load')\n")
    assert upward_imports(wrong) == ["orchestrator.engine.load"]
    wrong.write_text("code = 'import os; from orchestrator.engine.load import f; f()'\n")
    assert upward_imports(wrong) == ["orchestrator.engine.load"]
    (tmp_path / "orchestrator" / "engine").mkdir()
    (tmp_path / "orchestrator" / "engine" / "load.py").write_text("")
    wrong.write_text(
        "import importlib\nT = {'f': 'load'}\nm = importlib.import_module(f'orchestrator.engine.{T}')\n"
    )
    assert upward_imports(wrong) == ["orchestrator.engine.load"]


def test_the_way_from_python_imports_nothing_of_the_command_line():
    names = {dotted(path): path for path in modules("orchestrator/")}
    reached, left = set(), {"orchestrator", "svmbench"}
    names["svmbench"] = ROOT / "svmbench.py"
    while left:
        reached |= left
        left = {found for name in left for found in imported_modules(names[name])} & names.keys() - reached
    assert "orchestrator.engine.run" in reached
    assert not [name for name in reached if name.startswith("orchestrator.cli")]


def private_names(path):
    """Private names that a module defines (True) and those that it reads or writes of an object (False)."""
    for node in nodes_of(path.read_text()):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = {node.name: True}
        elif isinstance(node, ast.Name):
            names = {node.id: isinstance(node.ctx, ast.Store)}
        elif isinstance(node, ast.alias):
            names = {node.asname or node.name: True}
        elif isinstance(node, ast.Attribute):
            of_self = isinstance(node.value, ast.Name) and node.value.id == "self"
            names = {node.attr: of_self and isinstance(node.ctx, ast.Store)}
        else:
            continue
        for name, is_definition in names.items():
            if re.fullmatch(r"_[^\W_]\w*", name):
                yield name, is_definition


NAMES_OF_LIBRARIES = {"_replace", "_run"}
"""Private names of named tuples and of Dask's client that rooms of ours define, too."""


def test_no_room_uses_what_is_private_to_another():
    defined, used = {}, {}
    for path in modules("orchestrator/"):
        room = room_of(dotted(path))
        for name, is_definition in private_names(path):
            (defined if is_definition else used).setdefault(name, {}).setdefault(room, name_of(path))
    # What no room defines belongs to a library.
    guilty = {
        f"{where}: {name}"
        for name, rooms in used.items()
        for room, where in rooms.items()
        if name in defined.keys() - NAMES_OF_LIBRARIES and room not in defined[name]
    }
    assert not guilty


def test_no_room_reaches_itself_through_others():
    assert circle_of(BELOW) == []


def is_text(node):
    """Whether an expression is a string literal, formatted or not, which rich would read as markup."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_texts_reach_the_terminal_through_the_helper_that_takes_them_as_data():
    guilty = [
        f"{name_of(path)}:{node.lineno}"
        for path in modules("orchestrator/")
        for node in nodes_of(path.read_text())
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("print", "log", "rule", "status")
        and "console" in ast.unparse(node.func.value).lower()
        and any(map(is_text, node.args))
    ]
    assert not guilty


def test_what_is_public_explains_itself():
    assert not [
        f"{name_of(path)}: {name}" for path in MODULES for name in undocumented(ast.parse(path.read_text()))
    ]


def undocumented(tree):
    """Public classes, functions, and methods of public classes without a docstring."""
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                yield node.name
            if isinstance(node, ast.ClassDef):
                yield from (f"{node.name}.{name}" for name in undocumented(node))


# -- other packages ------------------------------------------------------------------------------

DISTRIBUTIONS = {"hydra": "hydra-core", "sklearn": "scikit-learn"}
"""Distributions by the packages that they hold, where the names differ."""


def packages_with_private_names_in_use():
    """Return the packages of others of which we import a name with a leading underscore, or numba's core."""
    found = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            parts = (
                [*module.split("."), *(alias.name for alias in getattr(node, "names", []))] if module else []
            )
            is_private = any(re.match("_[a-z]", part) for part in parts) or module.startswith("numba.core")
            if is_private and parts[0] not in ("orchestrator", "solvers"):
                found.add(parts[0])
    return found - sys.stdlib_module_names


def test_packages_whose_private_names_we_use_are_bounded_above_by_the_next_release():
    """A new release does not get in by itself: raise the bound, lock, and run the tests."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    bounds = {re.match(r"[\w-]+", text)[0]: re.search(r"<([\d.]+)", text) for text in dependencies}
    packages = packages_with_private_names_in_use()
    assert {"numba", "sklearn"} <= packages
    for package in packages:
        distribution = DISTRIBUTIONS.get(package, package)
        major, minor = map(int, version(distribution).split(".")[:2])
        bound = bounds[distribution]
        assert bound, f"{distribution} has no upper bound"
        assert bound[1] == f"{major}.{minor + 1}", distribution


def test_no_test_imports_from_another_test_file():
    for path in ROOT.glob("tests/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [*(alias.name for alias in node.names), getattr(node, "module", None) or ""]
                assert not [name for name in names if re.search(r"(^|\.)test_\w+$", name)], path


# -- conf/ ---------------------------------------------------------------------------------------


def names(group):
    return sorted(path.stem for path in (ROOT / "conf" / group).glob("*.yaml"))


@pytest.mark.sample(7)
@pytest.mark.parametrize("experiment", names("experiment"))
def test_every_experiment_can_be_run(experiment, tmp_path):
    settings = load_settings([f"experiment={experiment}", f"paths.data={tmp_path}"])
    assert settings.study.name == experiment


@pytest.mark.parametrize("profile", ["throughput", "timing"])
def test_every_solver_can_be_run(profile):
    files = (ROOT / "conf" / "solver").glob("*.yaml")
    solvers = sorted(file.stem for file in files if not missing_packages(file))
    assert set(names("solver")) - set(solvers) <= {"xgboost", "lightgbm", "catboost"}
    solvers.remove("svm")  # it makes the same computations as smo_l1, which is a problem of one study
    overrides = [
        "study=x",
        "datasets=[iris]",
        f"solvers=[{','.join(solvers)}]",
        f"protocol.profile={profile}",
    ]
    arms = load_settings(overrides).study.arms
    assert [arm.name for arm in arms] == solvers


@pytest.mark.parametrize("group", ["solver", "search", "experiment"])
def test_every_choice_of_a_list_is_described(group):
    for file in (ROOT / "conf" / group).glob("*.yaml"):
        assert len(description(file).split()) >= 2, file


def test_every_dataset_can_be_named(tmp_path):
    datasets = names("dataset")
    overrides = [
        "study=x",
        f"datasets=[{','.join(datasets)}]",
        "solvers=[libsvm_l1]",
        f"paths.data={tmp_path}",
    ]
    specs = load_settings(overrides).study.datasets
    assert [spec.name for spec in specs] == datasets


@pytest.mark.parametrize("kind", CLUSTER_KINDS)
def test_every_cluster_can_be_chosen(kind):
    overrides = ["study=x", "datasets=[iris]", "solvers=[libsvm_l1]", f"cluster={kind}"]
    needs = {
        "address": ["cluster.address=tcp://127.0.0.1:8786", "cluster.tls.insecure=true"],
        "slurm": ["cluster.workers=2"],
        "kubernetes": ["cluster.adapt.maximum=2", "cluster.tls.insecure=true"],
        "ssh": ["cluster.hosts=[localhost,localhost]"],
    }
    assert load_settings([*overrides, *needs.get(kind, ())]).cluster.kind == kind


@pytest.mark.parametrize("kind", names("search"))
def test_every_search_can_be_chosen(kind):
    overrides = ["study=x", "datasets=[iris]", "solvers=[libsvm_l1]", f"search={kind}"]
    overrides += ["search.study=y"] if kind in ("median_of", "sample", "selected") else []
    assert load_settings(overrides).study.search.target == {"median_of": "selected"}.get(kind, kind)


@cache
def names_in(module):
    """Names that a module of ours defines or imports outside functions and classes."""
    path = ROOT.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found, waiting = set(), [ast.parse(path.read_text())] if path.exists() else []
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
                continue
            if isinstance(node, ast.Import | ast.ImportFrom):
                found |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            waiting.append(node)
    return found


def test_every_name_that_a_benchmark_imports_exists():
    ours, absent = ("benchmarks", "orchestrator", "solvers", "tests"), []
    for path in ROOT.glob("benchmarks/*.py"):
        for node in nodes_of(path.read_text()):
            if not isinstance(node, ast.ImportFrom) or node.level or node.module.split(".")[0] not in ours:
                continue
            known = names_in(node.module)
            names = [each.name for each in node.names if not is_module(f"{node.module}.{each.name}")]
            absent += [
                f"{name_of(path)}:{node.lineno} {name}"
                for name in names
                if name not in known and "__getattr__" not in known
            ]
    assert absent == []


SHARED_LINES = 8
"""Number of equal lines of code that are one piece of code. Docstrings, comments, imports and lines with one
argument of a call do not count."""


def code_lines(module):
    """Return the lines of a module that are code, without indentation, each with its number."""
    source = module.read_text()
    lines, tree = source.splitlines(), ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            node = node.body[0]
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        skipped.update(range(node.lineno, node.end_lineno + 1))
    numbered = ((k, line.strip()) for k, line in enumerate(lines, 1) if k not in skipped)
    return [(k, line) for k, line in numbered if not re.fullmatch(r"#.*|[\w*]*,?", line)]


def test_no_piece_of_code_stands_twice():
    seen, twice = {}, []
    for module in MODULES:
        lines = code_lines(module)
        for start in range(len(lines) - SHARED_LINES + 1):
            window = lines[start : start + SHARED_LINES]
            text = "\n".join(line for _, line in window)
            place = f"{module.relative_to(ROOT)}:{window[0][0]}"
            if seen.setdefault(text, place) != place:
                twice.append(f"{place} repeats {seen[text]}")
    assert twice == []
