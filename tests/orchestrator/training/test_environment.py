import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.training.environment import git_state, host_summary, package_identity, versions

ROOT = Path(__file__).parents[3]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package in a folder that happens to be called tests."""
    folder = tmp_path / "tests" / "mypackage"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("__version__ = '1.2'\n")
    (folder / "kernel.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(folder.parent))
    yield folder
    sys.modules.pop("mypackage", None)


def identity():
    importlib.invalidate_caches()
    package_identity.cache_clear()
    importlib.import_module("mypackage")
    return package_identity("mypackage.Classifier")


def test_an_edit_anywhere_in_a_package_is_another_identity(package):
    before = identity()
    assert before.startswith("mypackage ")
    assert identity() == before
    (package / "kernel.py").write_text("x = 2\n")
    assert identity() != before


def test_a_renamed_file_is_another_identity(package):
    before = identity()
    (package / "kernel.py").rename(package / "kernels.py")
    assert identity() != before


def test_the_tests_of_a_package_are_no_part_of_its_identity(package):
    before = identity()
    (package / "tests").mkdir()
    (package / "tests" / "test_kernel.py").write_text("assert True\n")
    assert identity() == before


def test_a_single_module_is_a_package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "mypackage.py"
    module.write_text("x = 1\n")
    before = identity()
    module.write_text("x = 2\n")
    assert identity() != before
    sys.modules.pop("mypackage")


def test_the_identity_of_a_package_does_not_depend_on_what_was_imported_before(package):
    code = "import sys\nfor name in sys.argv[1:]:\n    __import__(name)\n"
    code += "from orchestrator.training.environment import package_identity\n"
    code += (
        "print([package_identity(f'{name}.X') for name in ('mypackage', 'solvers', 'sklearn', 'numpy')])\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package.parent), str(ROOT)])}
    told = {
        subprocess.run(
            [sys.executable, "-c", code, *order],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout
        for order in ([], ["mypackage.kernel", "sklearn"], ["sklearn.svm", "mypackage"])
    }
    assert len(told) == 1


def git(folder, *arguments):
    line = ["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x@x", *arguments]
    subprocess.run(line, check=True, capture_output=True, timeout=30)


@pytest.fixture
def checkout(package):
    """The package's checkout, with one commit."""
    git(package.parent, "init", "--quiet")
    git(package.parent, "add", "--all")
    git(package.parent, "commit", "--quiet", "--message", "x")
    return package.parent


def test_the_commit_is_that_of_the_checkout_which_holds_the_code(checkout, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert len((clean := git_state("mypackage.Classifier"))["commit"]) == 40
    assert clean["dirty"] is False
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert git_state("mypackage") == clean
    (checkout / "mypackage" / "kernel.py").write_text("x = 3\n")
    assert git_state("mypackage") == {**clean, "dirty": True}


def test_a_package_of_no_checkout_has_no_commit(package, checkout):
    assert git_state("sklearn") is None
    assert git_state("sys") is None
    assert git_state("no_such_package") is None
    (checkout / "installed_here.py").write_text("")  # as a wheel installed below a checkout
    importlib.invalidate_caches()
    assert git_state("installed_here") is None


def test_a_host_says_what_it_is():
    facts = host_summary()
    assert facts["threads"] >= facts["cores"] >= 1
    assert facts["memory_gb"] > 0
    assert facts["cpu"]
    assert versions()["python"] == sys.version.split()[0]
