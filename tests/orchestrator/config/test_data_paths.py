"""A relative path of data leads beside the file that names it, or into the working folder."""

import pytest

from orchestrator.config.compose import compose_settings, dataset_nodes, load_settings
from orchestrator.datasets import DatasetError, load
from orchestrator.study.errors import ConfigError

TEXT = "x,y\n1,p\n2,q\n"
SAYS = ("study=s", "solvers=[libsvm_l1]", "datasets=[churn]")


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """The folder of a user's file `churn.yaml`; the working folder is another."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mine" / "dataset"
    folder.mkdir(parents=True)
    (folder / "churn.yaml").write_text(
        "_target_: orchestrator.datasets.csv_file\npath: churn.csv\nlabel: y\n"
    )
    return folder


def loaded(beside, *overrides):
    (spec,) = load_settings([*SAYS, *overrides], beside.parent).study.datasets
    return load(spec)


def problems(beside):
    with pytest.raises(ConfigError) as found:
        load_settings(SAYS, beside.parent)
    return str(found.value)


def test_a_file_is_found_in_either_place(beside, tmp_path):
    (beside / "churn.csv").write_text(TEXT)
    assert loaded(beside).y.tolist() == ["p", "q"]
    (beside / "churn.csv").rename(tmp_path / "churn.csv")
    assert loaded(beside).y.tolist() == ["p", "q"]
    (beside / "churn.csv").symlink_to(tmp_path / "churn.csv")
    assert loaded(beside).y.tolist() == ["p", "q"]


def test_two_files_and_none_are_named_with_whole_paths(beside, tmp_path):
    both = [str(beside / "churn.csv"), str(tmp_path / "churn.csv")]
    assert all(path in problems(beside) for path in both)
    for path in both:
        assert "churn.csv" in compose_settings(SAYS, beside.parent)["dataset"]["churn"]["path"]
        with open(path, "w") as file:
            file.write(TEXT)
    assert all(path in problems(beside) for path in both)


def test_a_path_of_an_override_starts_at_the_working_folder(beside, tmp_path):
    (beside / "other.csv").write_text(TEXT)
    with pytest.raises(DatasetError, match=str(tmp_path / "other.csv")):
        loaded(beside, "dataset.churn.path=other.csv")


def test_a_list_of_datasets_knows_the_place(beside):
    (beside / "churn.csv").write_text(TEXT)
    assert dataset_nodes((), beside.parent)["churn"]["path"] == "mine/dataset/churn.csv"
