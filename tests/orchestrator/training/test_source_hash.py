"""The identity of a class is that of the sources it is made of, and of no others."""

import importlib
import shutil
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from orchestrator.training.source_hash import _sources, class_identity, source_packages

SOLVERS = Path(importlib.util.find_spec("solvers").origin).parent
CLASSES = ["MNSVC", "SphereSVC", "BallSVC", "CoreSVC", "SMOSVC", "NewtonSVC"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder on the path of imports; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def write(folder, **files):
    for name, text in files.items():
        path = folder / (
            name.replace("__init__", "INIT").replace("__", "/").replace("INIT", "__init__") + ".py"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    importlib.invalidate_caches()


def append(path, text="\nx = 1\n"):
    path.write_text(path.read_text() + text)


# -- our own solvers -----------------------------------------------------------------------------


@pytest.fixture
def solvers_copy(place):
    copy = place / "solvers_copy"
    shutil.copytree(SOLVERS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in copy.rglob("*.py"):
        path.write_text(path.read_text().replace("solvers", "solvers_copy"))
    importlib.invalidate_caches()
    return copy


def identities():
    return {name: class_identity(f"solvers_copy.{name}") for name in CLASSES}


def test_an_edited_or_a_new_solver_leaves_the_others_alone(solvers_copy):
    before = identities()
    assert len(set(before.values())) == len(CLASSES)

    def changed_by(file, text="\nx = 1\n"):
        path = solvers_copy / file
        old = path.read_bytes() if path.exists() else None
        path.write_bytes((old or b"") + text.encode())
        importlib.invalidate_caches()
        changed = {name for name, identity in identities().items() if identity != before[name]}
        path.unlink() if old is None else path.write_bytes(old)
        return changed

    assert changed_by("estimators/coresvc.py") == {"CoreSVC"}
    assert changed_by("smo/row_steps.py") == {"SMOSVC"}
    assert changed_by("newton/method_choice.py") == {"NewtonSVC"}
    assert changed_by("estimators/base.py") == set(CLASSES)
    assert changed_by("new_solver.py") == set()
    assert (
        changed_by("__init__.py", "from solvers_copy.hull.core_set import core_set_ball\n__all__ += ['x']\n")
        == set()
    )
    assert changed_by("__init__.py", "import numpy\nnumpy.seterr(all='raise')\n") == set(CLASSES)
    assert identities() == before


def test_nothing_that_an_import_loads_is_missing(solvers_copy, monkeypatch):
    (solvers_copy / "__init__.py").write_text("")  # now a module loads what it imports itself, and no more
    importlib.invalidate_caches()
    for module, name in (("coresvc", "CoreSVC"), ("smosvc", "SMOSVC"), ("newtonsvc", "NewtonSVC")):
        for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == "solvers_copy"]:
            monkeypatch.delitem(sys.modules, loaded)
        importlib.import_module(f"solvers_copy.estimators.{module}")
        # Rooms hold a docstring only, which is no source.
        found = {name: module for name, module in sys.modules.items() if name.startswith("solvers_copy.")}
        loaded = {name for name, module in found.items() if not hasattr(module, "__path__")}
        assert loaded == {module for module, _ in _sources(f"solvers_copy.estimators.{module}.{name}").pieces}


def test_scikit_learn_s_classes_are_their_version():
    import sklearn

    assert class_identity("sklearn.svm.SVC") == f"sklearn {sklearn.__version__}"
    assert source_packages("sklearn.svm.SVC") == ["sklearn"]


# -- every way to import -------------------------------------------------------------------------

NEEDED = {
    "absolute": "from pkg.part import f",
    "the module": "import pkg.part",
    "the module by another name": "import pkg.part as p",
    "relative": "from .part import f",
    "a relative module": "from . import part",
    "inside a function": "def g():\n    from .part import f",
    "under a condition": "try:\n    from .part import f\nexcept ImportError:\n    f = None",
    "through an export": "from pkg import exported",
    "through a renamed export": "from . import renamed",
    "through a chain": "from .between import f",
    "through another package": "from .deep.inner import f",
    "through an export of a package in it": "from .deep import f",
    "a module that its package imports": "from .deep import inner",
    "through a definition that uses such a module": "from .deep import with_inner",
    "a package that exports everything": "from . import stars",
    "everything from such a package": "from .stars import *",
    "through a definition of such a package": "from .stars import made_there",
    "everything": "from .part import *",
    "by its name": "import importlib\nf = importlib.import_module('pkg.part')",
    "by its relative name": "import importlib\nf = importlib.import_module('.part', __package__)",
    "by a name made up at run time": "import importlib\nf = importlib.import_module('pkg.' + 'part')",
    "through a definition of the package": "from . import made_here",
    "through what the package makes on demand": "from . import on_demand",
}
NOT_NEEDED = {
    "nothing": "",
    "for type checkers": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .part import f",
    "another export": "from . import other",
    "another module": "from .leaf import h",
    "the package's package": "from .deep import leaf",
}


def write_package(place, statement):
    write(
        place,
        pkg____init__='"""A package."""\nfrom .leaf import h as other\n'
        "from .part import f as renamed, f as exported\n"
        "def made_here():\n    return exported()\n"
        "def __getattr__(name):\n    if name == 'on_demand':\n"
        "        from . import part\n        return part\n"
        "    raise AttributeError(name)\n"
        "__all__ = ['other']\n",
        pkg__part="def f():\n    return 1\n",
        pkg__leaf="def h():\n    return 1\n",
        pkg__between="from pkg.part import f\n",
        pkg__deep____init__="from ..part import f\nfrom . import inner, leaf\n"
        "def with_inner():\n    return inner.f()\n",
        pkg__stars____init__="from ..part import *\ndef made_there():\n    return f()\n",
        pkg__deep__inner="from ..part import f\n",
        pkg__deep__leaf="",
        pkg__solver=f"{statement}\nclass Solver:\n    pass\n",
    )


@pytest.mark.parametrize("way", [*NEEDED, *NOT_NEEDED])
def test_what_a_class_imports_is_part_of_it_and_nothing_else_is(place, way):
    write_package(place, {**NEEDED, **NOT_NEEDED}[way])
    before = class_identity("pkg.solver.Solver")
    importlib.import_module("pkg.between")
    assert class_identity("pkg.solver.Solver") == before, "it depends on what is imported"
    append(place / "pkg/part.py")
    assert (class_identity("pkg.solver.Solver") != before) == (way in NEEDED)


def test_what_a_package_runs_when_imported_is_part_of_all_in_it(place):
    write_package(place, "")
    append(place / "pkg/__init__.py", "from .between import f as _f\n_f()\n")
    before = class_identity("pkg.solver.Solver")
    append(place / "pkg/part.py")
    assert class_identity("pkg.solver.Solver") != before


def test_a_class_is_made_of_those_it_inherits_from(place):
    write(
        place,
        mine="import helper\nfrom theirs import make\nclass Solver(make()):\n    pass\n",
        theirs="def make():\n    import base\n    return base.Base\n",
        base="class Base:\n    pass\n",
        helper="x = 1\n",
        unrelated="x = 1\n",
    )
    identity = class_identity("mine.Solver")
    assert source_packages("mine.Solver") == ["base", "helper", "mine", "theirs"]
    for name in ("base", "helper", "mine", "theirs", "unrelated"):
        before = identity
        append(place / f"{name}.py")
        identity = class_identity("mine.Solver")
        assert (identity != before) == (name != "unrelated")


def test_an_import_in_a_circle_comes_to_an_end(place):
    write(place, one="import two\nclass Solver:\n    pass\n", two="import one\n")
    assert class_identity("one.Solver") == class_identity("one.Solver")


def test_a_folder_without_an_init_is_a_package_too(place):
    write(place, space__solver="from space import part\nclass Solver:\n    pass\n", space__part="x = 1\n")
    before = class_identity("space.solver.Solver")
    append(place / "space/part.py")
    assert class_identity("space.solver.Solver") != before


def test_a_folder_in_a_folder_may_be_imported_later(place):
    lazy = "class Solver:\n    def fit(self):\n        from outer.inner import part\n"
    write(place, lazy=lazy, outer__inner__part="x = 1\n")
    before = class_identity("lazy.Solver")
    append(place / "outer/inner/part.py")
    assert class_identity("lazy.Solver") != before
    (place / "outer/inner/part.py").unlink()
    (place / "outer/inner").rmdir()
    importlib.invalidate_caches()
    class_identity("lazy.Solver")


def test_the_distributions_of_a_package_are_those_that_importlib_finds():
    from orchestrator.training.source_hash import _distributions

    expected = {name: sorted(set(found)) for name, found in packages_distributions().items()}
    importable = [name for name in expected if name.isidentifier()]
    assert {name: _distributions(name) for name in importable} == {
        name: expected[name] for name in importable
    }


def install(place, version, origin=None):
    folder = place / "site-packages"
    write(folder, foreign="class Base:\n    pass\n")
    info = folder / "foreign-1.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: foreign\nVersion: {version}\n")
    (info / "top_level.txt").write_text("foreign\n")
    if origin:
        (info / "direct_url.json").write_text(origin)
    return folder


@pytest.mark.parametrize("origin", [None, '{"url": "file:///x", "dir_info": {}}'])
def test_an_installed_package_is_its_version_unless_it_was_built_here(place, monkeypatch, origin):
    from orchestrator.training import source_hash as sources_of_class

    folder = install(place, "1.0", origin)
    monkeypatch.syspath_prepend(str(folder))
    write(place, mine="from foreign import Base\nclass Solver(Base):\n    pass\n")
    sources_of_class._installed_files.cache_clear()
    sources_of_class._distributions.cache_clear()
    before = class_identity("mine.Solver")
    assert ("foreign 1.0" in before) == (origin is None)
    append(folder / "foreign.py")
    assert (class_identity("mine.Solver") != before) == (origin is not None)
    install(place, "1.1", origin)
    assert ("foreign 1.1" in class_identity("mine.Solver")) == (origin is None)
    monkeypatch.undo()
    sources_of_class._installed_files.cache_clear()
    sources_of_class._distributions.cache_clear()
