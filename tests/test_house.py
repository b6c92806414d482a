"""The rules of the house: which room may know which, how large a file may be, what has to explain itself."""

import ast
from pathlib import Path

import pytest

from orchestrator.config import load_settings

ROOT = Path(__file__).parents[1]
MODULES = sorted([*ROOT.glob("orchestrator/**/*.py"), *ROOT.glob("solvers/**/*.py")])

ONLY_IN = {
    "hydra": {"orchestrator/cli.py", "orchestrator/config.py"},
    "omegaconf": {"orchestrator/cli.py", "orchestrator/config.py"},
    "dask": {"orchestrator/execution/dask.py"},
    "distributed": {"orchestrator/execution/dask.py", "orchestrator/execution/deaths.py"},
    "pyarrow": {"orchestrator/store.py"},
}
READS_FRAMES_ONLY = ("orchestrator/report", "orchestrator/analysis")


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def imported_modules(path):
    """Dotted names a module imports anywhere in it, relative imports resolved."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
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


@pytest.mark.parametrize(("package", "stranger"), [("solvers", "orchestrator"), ("orchestrator", "solvers")])
def test_the_two_packages_do_not_know_each_other(package, stranger):
    guilty = [name_of(path) for path in modules(f"{package}/") if stranger in packages_imported_by(path)]
    assert not guilty


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_stays_in_its_room(library):
    users = {name_of(path) for path in MODULES if library in packages_imported_by(path)}
    assert users <= ONLY_IN[library]
    assert users, f"nobody imports {library}; take it off the list"


@pytest.mark.parametrize("room", READS_FRAMES_ONLY)
def test_reports_need_no_cluster_no_data_and_no_solvers(room):
    machinery = {
        "orchestrator.execution",
        "orchestrator.datasets",
        "orchestrator.worker",
        "orchestrator.runner",
    }
    for path in modules(room):
        names = set(imported_modules(path))
        assert not names & machinery, name_of(path)
        assert not {*ONLY_IN, "solvers"} & packages_imported_by(path), name_of(path)


def is_text(node):
    """Whether an expression is a string literal, formatted or not, which rich would read as markup."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_texts_reach_the_terminal_through_the_helper_that_takes_them_as_data():
    guilty = [
        f"{name_of(path)}:{node.lineno}"
        for path in modules("orchestrator/")
        for node in ast.walk(ast.parse(path.read_text()))
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


# -- conf/ ---------------------------------------------------------------------------------------


def names(group):
    return sorted(path.stem for path in (ROOT / "conf" / group).glob("*.yaml"))


@pytest.mark.parametrize("experiment", names("experiment"))
def test_every_experiment_can_be_run(experiment, tmp_path):
    settings = load_settings([f"experiment={experiment}", f"paths.data={tmp_path}"])
    assert settings.study.name == experiment


@pytest.mark.parametrize("profile", ["throughput", "timing"])
def test_every_solver_can_be_run(profile):
    solvers = names("solver")
    overrides = [
        "study=x",
        "datasets=[iris]",
        f"solvers=[{','.join(solvers)}]",
        f"protocol.profile={profile}",
    ]
    arms = load_settings(overrides).study.arms
    assert [arm.name for arm in arms] == solvers


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


@pytest.mark.parametrize("kind", names("cluster"))
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
    assert load_settings(overrides).study.search == kind
