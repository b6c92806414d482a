"""Paths as names of datasets, dotted classes as names of solvers, and the keys that speak of them."""

import sys

import numpy as np
import pandas as pd
import pytest

from orchestrator.config.classes import class_suggestion
from orchestrator.config.compose import compose_settings, load_settings
from orchestrator.config.override_text import with_quotes
from orchestrator.config.schema import study_name
from orchestrator.study.errors import ConfigError
from tests.messages import assert_each_says, assert_says

SOLVER = "solvers=[libsvm_l1]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with small tables."""
    made = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": range(40), "a b": rng.normal(size=40), "who": np.arange(40) // 4})
    frame = frame.assign(outcome=np.where(rng.random(40) < 0.5, "yes", "no"))
    (made / "sub").mkdir()
    for name in ("churn.csv", "sub/churn.csv", "Größe 2 (neu).csv"):
        frame.to_csv(made / name, index=False)
    frame[:30].to_csv(made / "first.csv", index=False)
    frame[30:].to_csv(made / "rest.csv", index=False)
    (made / "numbers.svm").write_text("1 1:0.5\n2 2:1\n" * 10)
    (made / "numbers.xyz").write_text("1")
    return made


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])


def problems_of(*overrides):
    with pytest.raises(ConfigError) as refusal:
        load_settings(overrides)
    return refusal.value.problems


def test_a_path_makes_the_dataset_that_a_yaml_file_with_its_keys_makes(folder, tmp_path):
    keys = {"label": "outcome", "drop": "[id]", "groups": "who"}
    settings = load_settings(
        ["datasets=[churn.csv]", SOLVER, *(f"{key}={value}" for key, value in keys.items())]
    )
    text = "".join(f"{key}: {value}\n" for key, value in keys.items())
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "churn.yaml").write_text(
        f"_target_: orchestrator.datasets.csv_file\npath: churn.csv\nunlabelled: drop\nsep: auto\n{text}"
    )
    by_file = load_settings(["study=churn", "datasets=[churn]", SOLVER], tmp_path)
    assert settings.study.datasets == by_file.study.datasets
    assert settings.study == by_file.study


def test_a_study_without_a_name_is_called_after_its_first_table():
    assert study_name(compose_settings(["datasets=[sub/churn.csv,iris]"])) == "churn"
    assert study_name(compose_settings(["datasets=[sub/churn.csv]", "study=other"])) == "other"
    assert study_name(compose_settings(["datasets=[Größe 2 (neu).csv]"])) == "Größe_2_neu"
    with pytest.raises(ConfigError):
        study_name(compose_settings(["datasets=[iris]"]))


def test_short_forms_stand_for_keys_of_the_protocol():
    settings = load_settings(["datasets=[churn.csv]", "label=outcome", SOLVER, "metric=balanced_accuracy"])
    assert settings.study.protocol.metric == "balanced_accuracy"
    config = compose_settings(["train=first.csv", "test=rest.csv", "label=outcome"])
    assert config["datasets"] == ["first"]
    assert config["protocol"]["outer"]["_target_"].endswith(".PredefinedSplit")


def test_a_metric_and_its_short_form_are_not_given_apart():
    both = ["datasets=[churn.csv]", "label=outcome", SOLVER, "metric=f1_macro"]
    (problem,) = problems_of(*both, "protocol.metric=accuracy")
    assert_says(problem, "metric=f1_macro", "protocol.metric=accuracy", "only one")
    assert load_settings([*both, "protocol.metric=f1_macro"]).study.protocol.metric == "f1_macro"


def test_a_solver_may_be_the_dotted_path_of_a_class():
    classes = [
        "sklearn.svm.NuSVC",
        "sklearn.linear_model.LogisticRegression",
        "sklearn.naive_bayes.GaussianNB",
    ]
    with pytest.warns(UserWarning, match="GaussianNB has none of the search's parameters"):
        settings = load_settings(
            [
                "datasets=[churn.csv]",
                "label=outcome",
                f"solvers=[{','.join(classes)}]",
                "search.space.nu=[0.1,0.2]",
            ]
        )
    spaces = {arm.name: set(arm.space) for arm in settings.study.arms}
    assert spaces == {"NuSVC": {"gamma", "nu"}, "LogisticRegression": {"C"}, "GaussianNB": set()}
    assert [arm.target for arm in settings.study.arms] == classes


@pytest.mark.parametrize(
    ("overrides", "facts"),
    [
        (["datasets=[churn.csv]"], ("churn", "label=COLUMN", "id", "a b", "who", "outcome", "label=outcome")),
        (
            ["datasets=[churn.csv,sub/churn.csv]", "label=outcome"],
            ("churn.csv", "sub/churn.csv", "'churn'", "rename"),
        ),
        (["datasets=[nowhere.csv]", "label=y"], ("nowhere", "no file")),
        (["datasets=[./numbers.xyz]"], ("numbers.xyz", ".csv", ".parquet", ".npz")),
        (["datasets=[t.parquet.gz]", "label=y"], (".parquet", "decompress")),
        (
            ["datasets=[iris]", "label=outcome"],
            ("label='outcome'", "datasets=[mine.csv]", "dataset.NAME.label"),
        ),
        (["train=first.csv", "label=outcome"], ("train=first.csv", "test=FILE")),
        (["train=first.csv", "test=numbers.svm", "label=outcome"], ("first.csv", "numbers.svm", "columns")),
        (
            ["train=first.csv", "test=rest.csv", "label=outcome", "protocol.outer=5"],
            ("protocol.outer=5", "train", "test"),
        ),
        (["datasets=[churn.csv]", "label=outcome", "lable=x"], ("'lable'", "'label'")),
    ],
)
def test_a_table_that_is_not_clear_gets_one_sentence(overrides, facts):
    assert_each_says(problems_of("study=t", SOLVER, *overrides), facts)


@pytest.mark.parametrize(
    ("overrides", "facts"),
    [
        (["datasets=[churn.csv]", "lable=outcome"], ("'lable'", "did you mean 'label'")),
        (["train=first.csv", "label=outcome"], ("train=first.csv", "test=FILE")),
    ],
)
def test_one_error_gets_one_message(overrides, facts):
    (found,) = problems_of(*overrides, SOLVER)
    assert_each_says([found], facts)


def test_a_class_in_the_working_folder_is_found_by_naming_the_folder(folder):
    (folder / "my_models.py").write_text(
        "from sklearn.svm import LinearSVC\n\n\nclass Mine(LinearSVC):\n    pass\n"
    )
    overrides = ["study=t", "datasets=[iris]", "solvers=[my_models.Mine]"]
    assert_each_says(problems_of(*overrides), ("'my_models.Mine'", "--config-dir ."))
    (arm,) = load_settings(overrides, folder).study.arms
    assert (arm.name, set(arm.space)) == ("Mine", {"C"})


def test_an_unknown_solver_suggests_the_class_of_its_name():
    (problem,) = problems_of("study=t", "datasets=[iris]", "solvers=[RandomForestClassifier]")
    assert_each_says([problem], ("'RandomForestClassifier'", "'sklearn.ensemble.RandomForestClassifier'"))
    assert_each_says(
        problems_of("study=t", "datasets=[iris]", "solvers=[SVC]"), ("'svm'", "'sklearn.svm.SVC'")
    )
    assert class_suggestion("nothing_like_it", "") == ""


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("label=Exit status (y/n)", "label='Exit status (y/n)'"),
        ("label=it's", r"label='it\'s'"),
        ("label=true", "label='true'"),
        ("label=-1", "label=-1"),
        ("groups=Größe", "groups='Größe'"),
        ("drop=[a b,no,größe, c]", "drop=['a b',no,'größe', c]"),
        ("datasets=[~/my data (1).csv,iris]", "datasets=['~/my data (1).csv',iris]"),
        ("datasets=['a,b.csv']", "datasets=['a,b.csv']"),
        ("datasets=[1_000,1.5]", "datasets=[1_000,1.5]"),
    ],
)
def test_names_of_columns_and_files_need_no_quotes(typed, read):
    assert with_quotes(typed) == read
