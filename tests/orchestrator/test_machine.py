import importlib
import sys

import pytest

from orchestrator.machine import git_state, host_facts, package_identity, versions


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
    assert before.startswith("mypackage 1.2 ")
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


def test_outside_a_checkout_there_is_no_commit(tmp_path):
    assert git_state(tmp_path) is None


def test_a_host_says_what_it_is():
    facts = host_facts()
    assert facts["threads"] >= facts["cores"] >= 1
    assert facts["memory_gb"] > 0
    assert facts["cpu"]
    assert versions()["python"] == sys.version.split()[0]
