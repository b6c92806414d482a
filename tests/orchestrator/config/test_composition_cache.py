"""A composition is read from the cache only if composing again would give the same."""

import json
import os
import re
import time
import warnings
from pathlib import Path

import pytest

from orchestrator.config import composition_cache, hydra_compose
from orchestrator.config.compose import compose_settings, known_names
from orchestrator.config.user_files import CONF_FOLDER, GROUPS
from orchestrator.study import user_cache
from orchestrator.study.errors import ConfigError

pytestmark = pytest.mark.sample(2)

CHOSEN = ["study=x", "datasets=[iris]", "solvers=[mnsvm]"]
AN_HOUR = 3600


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The user's folder; the cache is empty, and files count as old from the start."""
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(composition_cache, "_FRESH_SECONDS", 0.0)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine/solver").mkdir(parents=True)
    write(tmp_path / "mine/solver/ours.yaml", "_target_: sklearn.svm.SVC\nC: 2\n")
    return tmp_path / "mine"


@pytest.fixture
def composed(monkeypatch):
    """Counts compositions by Hydra."""
    calls = []
    original = hydra_compose.compose_with_hydra

    def counting(*arguments):
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(hydra_compose, "compose_with_hydra", counting)
    return calls


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    time.sleep(0.02)  # longer than the time between two ticks of the clock of files


def test_what_was_composed_once_is_read(folder, composed):
    first = compose_settings([*CHOSEN, "solvers=[ours]"], folder)
    again = compose_settings([*CHOSEN, "solvers=[ours]"], folder)
    assert len(composed) == 1
    assert first == again
    assert json.dumps(first) == json.dumps(again)  # also the order of the keys, and the types
    again["solver"]["ours"]["C"] = 99
    assert compose_settings([*CHOSEN, "solvers=[ours]"], folder)["solver"]["ours"]["C"] == 2


@pytest.mark.parametrize("edit", ["same size", "same time", "new file", "no file", "moved", "another"])
def test_an_edit_is_seen(folder, composed, edit):
    overrides, file = [*CHOSEN, "solvers=[ours]"], folder / "solver/ours.yaml"
    before = compose_settings(overrides, folder)
    stamp = file.stat()
    if edit == "new file":
        write(folder / "experiment/other.yaml", "# @package _global_\n")
    elif edit == "no file":
        file.unlink()
        with pytest.raises(ConfigError):
            compose_settings(overrides, folder)
    elif edit == "moved":
        assert compose_settings(overrides, folder.rename(folder.parent / "moved")) == before
    elif edit == "another":
        write(folder / "solver/ours.yml", "_target_: sklearn.svm.SVC\nC: 3\n")
        with pytest.raises(ConfigError):
            compose_settings(overrides, folder)
    else:
        write(file, "_target_: sklearn.svm.SVC\nC: 3\n")
        if edit == "same time":
            os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        assert compose_settings(overrides, folder)["solver"]["ours"]["C"] == 3
    assert len(composed) == 1 + (edit in ("same size", "same time", "no file", "moved", "another")) or (
        edit == "new file"
    )


def test_other_overrides_and_another_folder_are_composed(folder, composed, monkeypatch, tmp_path):
    compose_settings(CHOSEN)
    compose_settings([*CHOSEN, "protocol.seed=1"])
    monkeypatch.chdir(folder)
    compose_settings(CHOSEN)
    assert len(composed) == 3


def test_a_file_of_data_is_seen(folder, composed, tmp_path):
    overrides = ["study=x", "datasets=[iris]", f"paths.data={tmp_path}/data"]
    before = compose_settings(overrides)
    write(tmp_path / "data/iris.libsvm", "1 1:1\n")
    with pytest.warns(UserWarning, match="iris"):
        after = compose_settings(overrides)
    assert before["dataset"] != after["dataset"]
    with pytest.warns(UserWarning, match="iris"):  # the warning is repeated
        assert compose_settings(overrides) == after
    assert len(composed) == 2


def test_an_environment_variable_is_read_each_time(folder, composed, monkeypatch):
    write(folder / "solver/ours.yaml", "_target_: sklearn.svm.SVC\nC: ${oc.decode:${oc.env:MY_C}}\n")
    for overrides in ([*CHOSEN, "solvers=[ours]"], [*CHOSEN, "+solver.mnsvm.C=${oc.env:MY_C}"]):
        found = []
        for value in ("1", "2"):
            monkeypatch.setenv("MY_C", value)
            found.append(compose_settings(overrides, folder)["solver"])
        assert found[0] != found[1]


def test_what_has_just_changed_is_not_kept(folder, composed, monkeypatch):
    monkeypatch.setattr(composition_cache, "_FRESH_SECONDS", AN_HOUR)
    for _ in range(2):
        compose_settings(CHOSEN, folder)
    assert len(composed) == 2


def test_a_folder_with_many_files_is_composed_each_time(folder, composed, monkeypatch):
    monkeypatch.setattr(composition_cache, "_MAX_ENTRIES", 400)
    for number in range(401):
        (folder / f"{number}.txt").write_text("")
    for _ in range(2):
        compose_settings(CHOSEN, folder)
    assert len(composed) == 2


def test_problems_are_found_again(folder, composed):
    for _ in range(2):
        with pytest.raises(ConfigError, match="irish"):
            compose_settings(["datasets=[irish]"], folder)
    assert len(composed) == 2


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"config": {}}', "\0" * 100])
def test_a_damaged_cache_has_no_effect(folder, composed, damage, tmp_path):
    before = compose_settings(CHOSEN)
    (file,) = (tmp_path / "cache/configurations").glob("*.json")
    file.write_text(damage)
    assert compose_settings(CHOSEN) == before
    assert compose_settings(CHOSEN) == before
    assert len(composed) == 2


def test_a_cache_that_cannot_be_written_has_no_effect(folder, composed, monkeypatch, tmp_path):
    before = compose_settings(CHOSEN)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SVMBENCH_CACHE", str(tmp_path / "file"))
    after = compose_settings(CHOSEN)
    assert after.pop("paths")["cache"] == str(tmp_path / "file")
    assert after.items() <= before.items()


def test_built_in_files_read_no_other_variable_and_call_no_other_function():
    texts = [path.read_text() for path in CONF_FOLDER.rglob("*.yaml")]
    calls = [call for text in texts for call in re.findall(r"\$\{([^{}$]*:[^,}]*)", text)]
    assert set(calls) == {f"oc.env:{name}" for name in composition_cache.VARIABLES}


@pytest.mark.parametrize("name", composition_cache.VARIABLES)
def test_a_variable_of_ours_is_read_each_time(folder, monkeypatch, name):
    inside = compose_settings(CHOSEN)
    monkeypatch.setattr(user_cache, "cache_folder", lambda: folder / "cache")
    found = []
    for value in ("one", "two", "one"):
        monkeypatch.setenv(name, value)
        found.append(compose_settings(CHOSEN))
    assert found[0] == found[2] != found[1]
    assert found[0] != inside


def test_the_cache_stays_small(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(user_cache, "_MAX_FILES", 4)
    for seed in range(10):
        compose_settings([*CHOSEN, f"protocol.seed={seed}"])
    assert 1 <= len(list((tmp_path / "cache/configurations").iterdir())) <= 5


@pytest.mark.parametrize("value", [float("nan"), {1: 2}, {"a": {None: 1}}, (1, 2), {"a": b"x"}])
def test_a_value_that_json_would_change_is_not_kept(folder, value, tmp_path):
    user_cache.write_value("kind", "key", value)
    assert user_cache.read_value("kind", "key") is None


@pytest.mark.parametrize("group", [*GROUPS, "claim"])
def test_names_of_a_group_are_those_that_hydra_finds(folder, group):
    write(folder / group / "one.yaml", "a: 1\n")
    write(folder / group / "two.yml", "a: 1\n")
    write(folder / group / "three.txt", "a: 1\n")
    (folder / group / "four.yaml").mkdir()
    with hydra_compose._hydra([folder]):
        expected = set(hydra_compose._options(group))
    assert {"one", "two"} <= expected
    table = set(known_names("dataset")) - {path.stem for path in (CONF_FOLDER / "dataset").glob("*.yaml")}
    assert set(known_names(group, config_dir=folder)) == expected | (table if group == "dataset" else set())


def test_a_repeated_composition_warns_as_python_does(folder):
    write(folder / "dataset/iris.yaml", "_target_: sklearn.datasets.make_moons\n")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(3):
            compose_settings(CHOSEN, folder)
    assert len(said) <= 2
    assert all(str(Path("dataset/iris.yaml")) in str(each.message) for each in said)
    assert said
