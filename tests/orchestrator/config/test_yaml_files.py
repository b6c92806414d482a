"""Built-in configuration files are read and composed as OmegaConf and Hydra read and compose them."""

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from orchestrator.config import hydra_compose
from orchestrator.config.user_files import CONF_FOLDER
from orchestrator.config.yaml_files import built_in_content

EXPERIMENTS = sorted(path.stem for path in (CONF_FOLDER / "experiment").glob("*.yaml"))


def test_built_in_files_are_read_as_omegaconf_reads_them(full_size):
    for path in sorted(CONF_FOLDER.rglob("*.yaml"))[:: 1 if full_size else 4]:
        expected = OmegaConf.to_container(OmegaConf.load(path))
        assert repr(built_in_content(path)) == repr(expected), path


def test_scalars_are_read_as_omegaconf_reads_them(tmp_path):
    path = tmp_path / "x.yaml"
    scalars = [
        "1e-3",
        "1e5",
        "-2E+4",
        "1.e3",
        ".5e-1",
        "1_0e2",
        "1.5",
        ".5",
        "1_000",
        "0x1f",
        "017",
        "e5",
        "1e",
    ]
    scalars += [
        "2001-02-03",
        "2001-02-03 04:05:06",
        "yes",
        "off",
        "~",
        "null",
        ".inf",
        "-.Inf",
        "12:30",
        "1:2.5",
    ]
    path.write_text("".join(f"k{i}: {text}\n" for i, text in enumerate(scalars)))
    assert repr(built_in_content(path)) == repr(OmegaConf.to_container(OmegaConf.load(path)))


def test_a_changed_file_is_read_again_and_content_belongs_to_the_caller(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("a: [1]\n")
    built_in_content(path)["a"].append(2)
    assert built_in_content(path) == {"a": [1]}
    path.write_text("a: [1, 3]\n")
    assert built_in_content(path) == {"a": [1, 3]}
    path.write_text("")
    assert built_in_content(path) == {}


@pytest.mark.sample(16)
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_an_experiment_is_composed_as_by_hydra(experiment):
    config, problems = hydra_compose.compose_with_hydra([f"experiment={experiment}"], [])
    files = (
        (group, path.stem)
        for group in ("dataset", "solver")
        for path in (CONF_FOLDER / group).glob("*.yaml")
        if path.stem in config[f"{group}s"]
    )
    loads = [f"+{group}@{group}.{name}='{name}'" for group, name in files]
    with initialize_config_dir(str(CONF_FOLDER), version_base="1.3"):
        alone, together = (
            OmegaConf.to_container(
                compose("config", overrides=[f"experiment={experiment}", *more]), resolve=True
            )
            for more in ([], loads)
        )
    assert problems == []
    for key in ("search", "protocol", "cluster", "sweep", "paths"):
        assert config[key] == together[key]
    for group in ("dataset", "solver"):  # values of an experiment have precedence over files
        expected = hydra_compose._merged(together.get(group, {}), alone.get(group))
        assert {name: config[group][name] for name in expected} == expected


def test_files_with_defaults_or_a_package_are_left_to_hydra(tmp_path):
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "base.yaml").write_text("_target_: sklearn.svm.SVC\nC: 3\nkernel: rbf\n")
    (tmp_path / "solver" / "x.yaml").write_text("defaults: [base]\nkernel: linear\n")
    (tmp_path / "solver" / "y.yaml").write_text("# @package solver.y\n_target_: sklearn.svm.SVC\nC: 4\n")
    config, problems = hydra_compose.compose_with_hydra(["solvers=[x,y]", "solver.x.C=5"], [tmp_path])
    assert problems == []
    assert config["solver"] == {
        "x": {"_target_": "sklearn.svm.SVC", "C": 5, "kernel": "linear"},
        "y": {"_target_": "sklearn.svm.SVC", "C": 4},
    }
