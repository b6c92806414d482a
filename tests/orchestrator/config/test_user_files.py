"""A name of a user's own is answered with the user's file, never with the built-in one."""

import os
import sys
import warnings

import pytest
import yaml

from orchestrator.cli.claims import declared_claims
from orchestrator.config import composition_cache
from orchestrator.config.compose import (
    claim_nodes,
    compose_settings,
    dataset_nodes,
    known_names,
    load_settings,
)
from orchestrator.config.user_files import CONF_FOLDER, table_datasets
from orchestrator.study.errors import ConfigError
from tests.messages import assert_says, raises

MOONS = "_target_: sklearn.datasets.make_moons\nn_samples: 40\nrandom_state: 0"
BASE = ("study=x", "datasets=[iris]", "solvers=[libsvm_l1]")
CLAIM = """text: Ours.
source: nobody
published: ours
studies: [x]
parts: []"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def composed(overrides, config_dir):
    """Return a configuration and what was said while it was composed."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        found = compose_settings(overrides, config_dir)
    return found, [str(each.message) for each in said]


@pytest.fixture(params=["--config-dir", "hydra.searchpath"])
def way(request, tmp_path):
    """The two ways to name a folder: its overrides, and the folder of `--config-dir`."""
    if request.param == "--config-dir":
        return (), tmp_path
    return (f"hydra.searchpath=[file://{tmp_path}]",), None


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ["iris", "diabetes", "saheart"])  # a file, a file, and a row of the table
@pytest.mark.parametrize("suffix", ["yaml", "yml"])
def test_a_dataset_of_a_built_in_name_is_the_user_s(tmp_path, way, name, suffix):
    overrides, config_dir = way
    write(tmp_path / f"dataset/{name}.{suffix}", MOONS)
    config, said = composed([*overrides, *BASE, f"datasets=[{name}]"], config_dir)
    assert config["dataset"][name]["_target_"] == "sklearn.datasets.make_moons"
    assert config["dataset"][name].keys() == {"_target_", "n_samples", "random_state"}
    (sentence,) = said
    assert str(tmp_path / "dataset" / f"{name}.{suffix}") in sentence
    with pytest.warns(UserWarning, match=f"{name}.{suffix} replaces"):
        assert dataset_nodes(overrides, config_dir)[name]["n_samples"] == 40


@pytest.mark.parametrize(
    ("group", "name", "text", "overrides", "key", "expected"),
    [
        ("solver", "newton", "_target_: sklearn.svm.LinearSVC", ["solvers=[newton]"], "solver", None),
        (
            "search",
            "grid",
            "kind: grid\nspace: {C: [3]}",
            [],
            "search",
            {"kind": "grid", "space": {"C": [3]}},
        ),
        ("search", "race", "kind: race\nspace: {C: [3]}", ["search=race"], "search", None),
        ("protocol", "nested5x5", "outer: 3", [], "protocol", {"outer": 3}),
        ("cluster", "serial", "kind: serial\nworkers: 7", ["cluster=serial"], "cluster", None),
        ("experiment", "small", "# @package _global_\nstudy: mine", ["experiment=small"], "study", "mine"),
    ],
)
def test_other_files_of_built_in_names_are_the_user_s(
    tmp_path, way, group, name, text, overrides, key, expected
):
    more, config_dir = way
    before = compose_settings([*BASE[:1], "solvers=[newton]"])
    write(tmp_path / f"{group}/{name}.yaml", text)
    config, said = composed([*more, *overrides], config_dir)
    if expected is not None:
        assert config[key] == expected
    assert config[key] != compose_settings(overrides)[key]
    assert any(str(tmp_path / group / f"{name}.yaml") in sentence for sentence in said)
    assert compose_settings([*BASE[:1], "solvers=[newton]"]) == before


def test_a_protocol_of_the_built_in_name_may_leave_out_what_it_does_not_change(tmp_path):
    write(tmp_path / "protocol/nested5x5.yaml", "outer: 3")
    with pytest.warns(UserWarning, match="protocol nested5x5"):
        protocol = load_settings(BASE, tmp_path).study.protocol
    assert (protocol.outer, protocol.inner) == (3, 5)


def test_a_claim_of_a_built_in_name_is_the_user_s(tmp_path, way):
    overrides, config_dir = way
    write(tmp_path / "claim/A1.yml", CLAIM)
    with pytest.warns(UserWarning, match="built-in claim A1"):
        nodes = claim_nodes(overrides, config_dir)
    assert nodes["A1"]["text"] == "Ours."
    assert nodes["S2"] == claim_nodes()["S2"]
    write(tmp_path / "claim/A1.yml", "text: [")
    with pytest.raises(ConfigError, match=r"A1\.yml"):
        declared_claims(overrides, config_dir)


@pytest.mark.parametrize("fresh", [0.0, 1e9], ids=["cached", "composed"])
def test_it_is_said_once_and_only_of_what_is_used_and_differs(fresh, tmp_path, monkeypatch):
    monkeypatch.setattr(composition_cache, "_FRESH_SECONDS", fresh)
    same = compose_settings(["datasets=[wine]"])["dataset"]["wine"]
    write(tmp_path / "dataset/iris.yaml", MOONS)
    write(tmp_path / "dataset/wine.yaml", f"# A copy.\n{same}")
    write(tmp_path / "dataset/digits.yaml", MOONS)
    chosen = ["datasets=[iris,wine]"]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            compose_settings(chosen, tmp_path)
    assert ["dataset iris" in str(each.message) for each in said] == [True]


@pytest.mark.parametrize("group", ["dataset", "solver", "search", "protocol", "cluster", "experiment"])
def test_two_files_of_one_name_in_a_folder_are_refused(tmp_path, way, group):
    overrides, config_dir = way
    for suffix in ("yaml", "yml"):
        write(tmp_path / f"{group}/mine.{suffix}", "x: 1")
    key = f"{group}s=[mine]" if group in ("dataset", "solver") else f"{group}=mine"
    with raises(ConfigError, "mine.yaml", "mine.yml"):
        compose_settings([*overrides, key], config_dir)
    if group == "dataset":
        with raises(ConfigError, "mine.yaml", "mine.yml"):
            dataset_nodes(overrides, config_dir)


def test_two_claims_of_one_name_in_a_folder_are_refused(tmp_path):
    for suffix in ("yaml", "yml"):
        write(tmp_path / f"claim/mine.{suffix}", CLAIM)
    with raises(ConfigError, "mine.yaml", "mine.yml"):
        claim_nodes((), tmp_path)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("datasets/iris.yaml", ("move",)),
        ("solvers/newton.yml", ("move",)),
        ("searches/grid.yaml", ("move",)),
        ("dataset/iris.YAML", ("iris.yaml",)),
        ("claim/S4.Yml", ("S4.yml",)),
    ],
)
def test_a_file_that_a_built_in_one_would_replace_is_refused(tmp_path, way, file, said):
    overrides, config_dir = way
    write(tmp_path / file, MOONS)
    with pytest.raises(ConfigError) as refusal:
        compose_settings([*overrides, *BASE], config_dir)
    (problem,) = refusal.value.problems
    assert problem.startswith(str(tmp_path / file))
    assert_says(problem, *said)
    (tmp_path / file).rename((tmp_path / file).with_stem("other"))
    compose_settings([*overrides, *BASE], config_dir)


@pytest.mark.parametrize("kind", ["link to nothing", "folder", "pipe"])
def test_a_file_that_cannot_be_read_is_not_answered_with_the_built_in_one(tmp_path, way, kind):
    overrides, config_dir = way
    path = tmp_path / "dataset/iris.yaml"
    path.parent.mkdir()
    if kind == "link to nothing":
        path.symlink_to("missing")
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with raises(ConfigError, "iris.yaml"):
        compose_settings([*overrides, "datasets=[iris]"], config_dir)


def test_names_are_listed_once_whatever_their_files_end_in(tmp_path):
    write(tmp_path / "solver/a.yml", MOONS)
    write(tmp_path / "solver/newton.yml", MOONS)
    write(tmp_path / "solver/notes.txt", "no configuration")
    names = known_names("solver", (), tmp_path)
    assert sorted({*names} - {*known_names("solver")}) == ["a"]
    assert names.count("newton") == 1


def test_a_user_s_config_yaml_does_not_take_the_place_of_the_defaults(tmp_path):
    write(tmp_path / "config.yaml", "study: other")
    assert compose_settings([], tmp_path) == compose_settings([])


@pytest.mark.parametrize("name", ["iris", "saheart"])
def test_a_bare_file_in_the_folder_of_data_is_taken_before_a_built_in_dataset_that_does_not_read_it(
    tmp_path, name
):
    overrides = [f"paths.data={tmp_path}", f"datasets=[{name},a9a]"]
    for each in (name, "a9a"):
        write(tmp_path / f"{each}.libsvm", "1 1:1\n2 2:1")
    config, said = composed(overrides, None)
    assert config["dataset"][name]["_target_"] == "orchestrator.datasets.libsvm_file"
    assert config["dataset"]["a9a"]["n_features"] == 123
    assert [name in sentence for sentence in said] == [True]
    nodes = dataset_nodes(overrides)
    assert (nodes[name], nodes["a9a"]["n_features"]) == (config["dataset"][name], 123)
    write(tmp_path / f"own/dataset/{name}.yaml", MOONS)
    config, _ = composed(overrides, tmp_path / "own")
    assert config["dataset"][name]["_target_"] == "sklearn.datasets.make_moons"


@pytest.fixture
def path(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})


@pytest.mark.parametrize(
    "name", ["solvers.py", "solvers/__init__.py", "math.py", "json/__init__.py", "sklearn.py"]
)
def test_a_module_that_python_would_take_from_elsewhere_is_refused(tmp_path, path, name):
    write(tmp_path / name, "class MNSVC: pass")
    with pytest.raises(ConfigError) as refusal:
        load_settings(BASE, tmp_path)
    (problem,) = refusal.value.problems
    assert str(tmp_path / name) in problem


def test_modules_of_two_folders_that_share_a_name_are_not_mixed(tmp_path, path):
    metric = ["protocol.metric=measures_of_mine.score"]
    for folder, value in (("a", 0), ("b", 1)):
        write(tmp_path / folder / "measures_of_mine.py", f"def score(y_true, y_pred):\n    return {value}")
    load_settings([*BASE, *metric], tmp_path / "a")
    import measures_of_mine

    assert measures_of_mine.score(None, None) == 0
    with pytest.raises(ConfigError) as refusal:
        load_settings([*BASE, *metric], tmp_path / "b")
    (problem,) = refusal.value.problems
    assert str(tmp_path / "a") in problem
    assert str(tmp_path / "b") in problem
    load_settings([*BASE, *metric], tmp_path / "a")


def test_modules_that_nothing_else_is_called_are_not_refused(tmp_path, path):
    for name in ("setup.py", "test.py", "mine.py", "not-a-name.py", "lib/__init__.py"):
        write(tmp_path / name, "raise SystemExit('imported')")
    load_settings(BASE, tmp_path)


@pytest.mark.parametrize("row", ["saheart", "iris"])
def test_two_rows_or_a_row_and_a_file_of_one_name_are_refused(tmp_path, row):
    table = CONF_FOLDER / "dataset" / "packages.csv"
    header, *rows = table.read_text().splitlines()
    first = next(line for line in rows if line.startswith("saheart,"))
    write(tmp_path / "iris.yaml", MOONS)
    write(tmp_path / "packages.csv", "\n".join([header, first, first.replace("saheart", row, 1)]))
    with pytest.raises(ConfigError, match=f"{row} names 2"):
        table_datasets(tmp_path / "packages.csv")


@pytest.mark.sample(5)
@pytest.mark.parametrize("package", ["_global_", "foo", "search.space", "protocol.outer"])
@pytest.mark.parametrize(
    ("group", "text"), [("search", "kind: grid"), ("protocol", "outer: 3"), ("cluster", "kind: serial")]
)
def test_a_package_line_that_moves_a_file_s_settings_is_refused_or_followed(tmp_path, group, text, package):
    write(tmp_path / f"{group}/mine.yaml", f"# @package {package}\n{text}")
    with pytest.raises(ConfigError) as refusal:
        load_settings([*BASE, f"{group}=mine"], tmp_path)
    assert all("KeyError" not in problem for problem in refusal.value.problems)
    if group != "cluster" and package in ("_global_", "foo"):
        assert any(group in problem and "@package" in problem for problem in refusal.value.problems)
    for header in ("", f"# @package {group}\n"):
        write(tmp_path / f"{group}/mine.yaml", f"{header}{text}")
        load_settings([*BASE, f"{group}=mine"], tmp_path)
    write(tmp_path / f"{group}/mine.yaml", f"# @package _global_\n{group}: {{{text}}}")
    load_settings([*BASE, f"{group}=mine"], tmp_path)


def test_the_package_line_of_a_file_with_a_byte_order_mark_counts(tmp_path):
    text = "\ufeff# @package _global_\r\nstudy: mine\r\ndatasets: [iris]\r\nsolvers: [libsvm_l1]\r\n"
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment/mine.yaml").write_bytes(text.encode())  # as editors on Windows write it
    assert compose_settings(["experiment=mine"], tmp_path)["study"] == "mine"


@pytest.mark.parametrize("values", ["{low: 0.1, high: 10, log: true}", "[0.5, 2]"])
def test_an_experiment_replaces_the_values_of_a_solver_by_a_range_or_a_list(values, tmp_path):
    text = "# @package _global_\nstudy: x\ndatasets: [iris]\nsolvers: [logistic]\nsearch: {kind: random}\n"
    space = f"solver: {{logistic: {{space: {{C: {values}}}}}}}\n"
    write(tmp_path / "experiment/mine.yaml", text + space)
    found = compose_settings(["experiment=mine"], tmp_path)["solver"]["logistic"]
    assert found["space"]["C"] == yaml.safe_load(values)
    assert found["max_iter"] == 1000
    again = compose_settings(["experiment=mine", "solver.logistic.space.C=[7]"], tmp_path)
    assert again["solver"]["logistic"]["space"]["C"] == [7]


def test_an_experiment_without_its_package_line_is_named(tmp_path):
    write(tmp_path / "experiment/mine.yaml", "study: x")
    with pytest.raises(ConfigError, match="@package _global_"):
        load_settings(["experiment=mine"], tmp_path)
