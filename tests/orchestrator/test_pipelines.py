"""Pipelines, factories and nested objects as solvers, on data with missing values and text."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from orchestrator import run_study
from orchestrator.config.compose import load_settings
from orchestrator.engine.prepare import prepare_study
from orchestrator.search.fold_search import selection_key
from orchestrator.study.errors import ConfigError
from orchestrator.study.preparation import SCALINGS, Preparation
from orchestrator.study.study import Candidate
from orchestrator.study.trials import Identity
from orchestrator.training.estimators import make_estimator
from orchestrator.training.open_data import open_data
from orchestrator.training.split_data import prepared_split
from solvers import MNSVC
from tests.messages import assert_says, says

EXAMPLE = Path(__file__).parents[2] / "examples" / "pipelines"

TRACES = """
import json, os
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

class Records(TransformerMixin, BaseEstimator):
    def __init__(self, file=None):
        self.file = file
    def fit(self, X, y=None):
        with open(self.file, "a") as out:
            out.write(json.dumps([os.getpid(), np.sort(np.asarray(X)[:, 0]).tolist()]) + "\\n")
        return self
    def transform(self, X):
        return X

class Shuffles(Records):
    def __init__(self, shuffle=False, random_state=None):
        self.shuffle, self.random_state = shuffle, random_state

def numbered():
    rows = np.arange(60.0)
    return np.column_stack([rows, np.where(rows % 7 == 0, np.nan, rows % 3)]), (rows % 2).astype(int)

def noise(n=100, seed=0):
    import pandas as pd
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 30)), columns=[f"x{i}" for i in range(30)])
    X = X.mask(rng.random(X.shape) < 0.1)
    X["text"] = rng.choice(list("abcdefghijklmnopqrstuvwxyz"), n)
    return X, rng.permutation(np.arange(n) % 2)
"""

PIPE = "_target_: sklearn.pipeline.Pipeline\nsteps:"
SVC = "[[a, {_target_: sklearn.svm.SVC}]]"

CHANCE = """
_target_: sklearn.pipeline.Pipeline
steps:
  - - columns
    - _target_: sklearn.compose.ColumnTransformer
      transformers:
        - [numbers, {_target_: sklearn.impute.SimpleImputer}, {_target_: builtins.slice, _args_: [0, 30]}]
        - [text, {_target_: sklearn.preprocessing.TargetEncoder}, [text]]
  - [best, {_target_: sklearn.feature_selection.SelectKBest, k: 3}]
  - [model, {_target_: sklearn.linear_model.LogisticRegression}]
prepare: none
space: {best__k: [3, 6]}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of the example outside of the repository, with a module of further data and classes."""
    copy = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("elsewhere") / "pipelines")
    (copy / "traces.py").write_text(TRACES)
    (copy / "solver" / "chance.yaml").write_text(CHANCE)
    return copy


def places(folder):
    return [f"paths.{name}={folder / name}" for name in ("results", "cache")] + [f"paths.data={folder}"]


def run(folder, *overrides):
    return run_study(*overrides, "cluster=serial", *places(folder), config_dir=folder)


def prepared(folder, *overrides):
    return prepare_study(load_settings(["study=x", *overrides, *places(folder)], folder))


# -- scores are those of scikit-learn ------------------------------------------------------------


def columns(numbers, text, remainder="drop"):
    steps = [("text", text, ["city"])]
    if numbers is not None:
        steps.insert(0, ("numbers", numbers, ["age", "income"]))
    return ColumnTransformer(steps, remainder=remainder)


def plain(model):
    onehot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return Pipeline([("columns", columns(make_pipeline(SimpleImputer(), StandardScaler()), onehot)), model])


def by_hand(row):
    """The estimator of a row, written in Python."""
    if row["solver"] == "piped_logistic":
        model = LogisticRegression(C=row["param_model__C"], class_weight="balanced", random_state=row["seed"])
        return plain(("model", model))
    if row["solver"] == "piped_svm":
        chosen = {name: row[f"param_svm__{name}"] for name in ("C", "gamma")}
        return plain(("svm", MNSVC(**chosen, random_state=row["seed"])))
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    model = HistGradientBoostingClassifier(max_iter=10, random_state=row["seed"])
    return Pipeline([("columns", columns(None, ordinal, "passthrough")), ("model", model)])


@pytest.mark.full
def test_the_example_scores_as_a_loop_over_scikit_learn_bit_for_bit(folder, full_size):
    n_splits = 5 if full_size else 2
    n_outer = 2 * n_splits
    trials = run(folder, "experiment=pipelines", f"protocol.outer.n_splits={n_splits}").trials
    table = pd.read_csv(folder / "people.csv")
    X, y = table.drop(columns="answer"), table["answer"].to_numpy()
    seeds = np.random.SeedSequence(0).generate_state(n_outer + 1).tolist()
    outer = RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=2, random_state=seeds[0])
    inner = [StratifiedKFold(2, shuffle=True, random_state=seed) for seed in seeds[1:]]
    checked = 0
    for number, (train, test) in enumerate(outer.split(X, y)):
        splits = {-1: (train, test)}
        for index, (fit, score) in enumerate(inner[number].split(X.iloc[train], y[train])):
            splits[index] = train[fit], train[score]
        for row in trials[trials["outer"] == number].to_dict("records"):
            fit, score = splits[row["inner"]]
            model = by_hand(row).fit(X.iloc[fit], y[fit])
            for metric, column in (("balanced_accuracy", "score"), ("roc_auc", "score_roc_auc")):
                assert row[column] == get_scorer(metric)(model, X.iloc[score], y[score]), row
            checked += 1
    assert checked == len(trials) == n_outer * (3 * 2 + 1) + n_outer * (2 + 1) + n_outer * (4 * 2 + 1)
    assert (trials["status"] == "ok").all()


# -- nothing is fitted on test rows --------------------------------------------------------------


@pytest.mark.parametrize("scaling", ["none", "train"])
def test_a_transformer_is_fitted_on_the_training_rows_alone(folder, tmp_path, scaling):
    log = tmp_path / "fits.txt"
    (folder / "dataset" / "numbered.yaml").write_text("_target_: traces.numbered\n")
    (folder / "solver" / "recording.yaml").write_text(
        f"{PIPE} [[log, {{_target_: traces.Records, file: {log}}}],"
        "\n  [fill, {_target_: sklearn.impute.SimpleImputer}],"
        "\n  [tree, {_target_: sklearn.tree.DecisionTreeClassifier}]]\nspace: {tree__max_depth: [1, 2]}\n"
    )
    study = ["datasets=[numbered]", "solvers=[recording]", f"study=recorded_{scaling}"]
    study += ["protocol.outer=3", "protocol.inner=2", f"protocol.scaling={scaling}"]
    trials = run(folder, *study).trials
    ready = prepared(folder, *study)
    dataset, splits = open_data(ready.sources["numbered"], ready.study.protocol)
    trained_on = []
    for row in trials.to_dict("records"):
        split = prepared_split(
            dataset, *splits.train_test(row["outer"], row["inner"]), Preparation(SCALINGS[scaling])
        )
        trained_on.append(np.sort(split.X_train[:, 0]).tolist())
    fits = [rows for process, rows in map(json.loads, log.read_text().splitlines()) if process == os.getpid()]
    warm_up, fits = fits[0], fits[1:]  # the first is on a few rows of the first split
    assert {*warm_up} < {*fits[0]}
    assert sorted(fits) == sorted(trained_on)
    assert len(fits) == 3 * (2 * 2 + 1)


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.full) for k in range(1, 20))])
def test_random_labels_are_predicted_at_chance(folder, seed):
    (folder / "dataset" / f"noise{seed}.yaml").write_text(f"_target_: traces.noise\nseed: {seed}\n")
    names = [f"datasets=[noise{seed}]", "solvers=[chance]", f"study=noise{seed}"]
    outer = run(folder, *names, "protocol.outer=10", "protocol.inner=2").outer
    right = int(outer["n_correct"].sum())
    assert outer["status"].eq("ok").all()
    assert abs(right - 50) <= 5 * 3.5, right  # 5 standard deviations of 100 tosses, folds being dependent


# -- what a configuration may say ----------------------------------------------------------------


def test_parameters_of_nested_estimators_are_fixed_swept_and_searched(folder):
    overrides = [
        "datasets=[people]",
        "solvers=[factory,piped_logistic]",
        "sweep.model__fit_intercept=[true,false]",
    ]
    arms = load_settings(["study=x", *overrides, "solver.factory.svc__kernel=linear"], folder).study.arms
    assert [arm.name for arm in arms] == [
        "factory",
        "piped_logistic[model__fit_intercept=true]",
        "piped_logistic[model__fit_intercept=false]",
    ]
    protocol = load_settings(["study=x", *overrides], folder).study.protocol
    made = make_estimator(arms[0], protocol, Candidate.of({"strategy": "median", "svc__C": 10}), seed=7)
    assert made["simpleimputer"].strategy == "median"
    assert made["svc"].get_params().items() >= {"C": 10, "kernel": "linear", "random_state": 7}.items()
    model = make_estimator(arms[2], protocol, Candidate.of({"model__C": 1}), seed=7)["model"]
    assert (model.fit_intercept, model.class_weight, model.random_state) == (False, "balanced", 7)


def test_a_random_state_that_would_be_refused_or_is_fixed_is_left_alone(folder):
    (folder / "solver" / "states.yaml").write_text(
        "_target_: sklearn.ensemble.AdaBoostClassifier\n"
        "estimator: {_target_: sklearn.pipeline.make_pipeline, _args_: ["
        "{_target_: traces.Shuffles}, "
        "{_target_: sklearn.tree.DecisionTreeClassifier, random_state: 3}, "
        "{_target_: sklearn.linear_model.LogisticRegression}]}\nspace: {}\n"
    )
    study = load_settings(["study=x", "datasets=[people]", "solvers=[states]"], folder).study
    made = make_estimator(study.arms[0], study.protocol, Candidate.of({}), seed=7)
    states = {name: value for name, value in made.get_params().items() if name.endswith("random_state")}
    assert states == {
        "random_state": 7,
        "estimator__shuffles__random_state": None,
        "estimator__decisiontreeclassifier__random_state": 3,
        "estimator__logisticregression__random_state": 7,
    }


def test_a_trial_depends_on_the_code_of_its_own_candidate_alone(folder):
    logistic = "{_target_: sklearn.linear_model.LogisticRegression}"
    for name, spaces in (("few", logistic), ("more", f"{logistic}, {{_target_: searched.Mine}}")):
        (folder / "solver" / f"{name}.yaml").write_text(
            f"{PIPE} [[model, {logistic}]]\nspace: {{model: [{spaces}]}}\n"
        )

    def keys(name):
        study = load_settings(["study=x", "datasets=[people]", f"solvers=[{name}]"], folder).study
        identity = Identity("people", "f", "s", study.arms[0], study.protocol)
        chosen = [Candidate.of({"model": value}) for value in study.arms[0].space["model"]]
        paths = identity.paths(0, 0, chosen)
        return [key for path in paths for key in path.keys], selection_key(identity, study.search)

    (folder / "searched.py").write_text("from sklearn.svm import SVC\n\n\nclass Mine(SVC): ...\n")
    (few,), _ = keys("few")
    (same, mine), selection = keys("more")
    assert same == few
    (folder / "searched.py").write_text("from sklearn.svm import SVC\n\n\nclass Mine(SVC): a = 1\n")
    (same, edited), other = keys("more")
    assert same == few
    assert edited != mine
    assert selection != other


def test_the_identity_covers_nested_code_and_nothing_else(folder):
    def identities():
        arms = load_settings(
            ["study=x", "datasets=[people]", "solvers=[factory,nested,mnsvm]"], folder
        ).study.arms
        return {arm.name: arm.identity for arm in arms}

    (folder / "solver" / "nested.yaml").write_text(
        PIPE + " [[log, {_target_: traces.Records}], "
        "[svm, {_target_: sklearn.svm.SVC}]]\nspace: {svm__C: [1]}\n"
    )
    before, module = identities(), folder / "traces.py"
    module.write_text(TRACES + "\nEDITED = True\n")
    try:
        changed = {name for name, identity in identities().items() if identity != before[name]}
    finally:
        module.write_text(TRACES)
    assert changed == {"nested"}
    assert "people" in before["factory"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            PIPE + " [[a, {_target_: sklearn.svm.SVC, c: 1}]]",
            ("did you mean", "'C'"),
        ),
        (
            PIPE + " [[a, {_target_: nowhere.x}]]",
            ("module 'nowhere'",),
        ),
        (
            f"{PIPE} {SVC}\na__c: 1\nspace: {{}}",
            ("'a__c'", "'a__C'"),
        ),
        (
            f"{PIPE} {SVC}\nspace: {{a__C: [-1]}}",
            ("search.space.a__C", "'C'", "SVC", "float"),
        ),
        (
            PIPE + " [[a, {_target_: sklearn.preprocessing.StandardScaler}]]",
            ("methods", "get_params"),
        ),
        ("_target_: people.table\nspace: {}", ("classifier",)),
    ],
)
def test_what_cannot_be_made_is_refused_in_a_sentence(folder, text, problem):
    (folder / "solver" / "bad.yaml").write_text(text + "\n")
    with pytest.raises(ConfigError, match=r"^(?s:.)*solver bad") as found:
        load_settings(["study=x", "datasets=[people]", "solvers=[bad]"], folder)
    assert any(says(each, *problem) for each in found.value.problems), found.value.problems


# -- arms that cannot take the data --------------------------------------------------------------


def test_an_arm_that_cannot_take_a_column_is_refused_by_names(folder):
    (folder / "solver" / "blind.yaml").write_text(
        (EXAMPLE / "solver" / "piped_svm.yaml").read_text().replace("SimpleImputer", "MissingIndicator")
    )
    with pytest.raises(ConfigError) as found:
        prepared(
            folder,
            "datasets=[people]",
            "solvers=[piped_logistic,piped_boosting,piped_svm,factory,libsvm_l1,mnsvm]",
            "protocol.prepare=none",
        )
    factory, others = sorted(found.value.problems)
    assert_says(
        factory, "dataset people", "solver factory", "column 'city'", "text and missing values", "prepare"
    )
    assert_says(
        others, "dataset people", "solvers libsvm_l1, mnsvm", "'age' (missing values)", "'city'", "NaN"
    )


def test_kernel_matrices_are_not_shared_of_what_is_not_finite(folder):
    (folder / "dataset" / "gaps.yaml").write_text("_target_: traces.numbered\n")
    (folder / "solver" / "any.yaml").write_text(
        "_target_: tests.orchestrator.classifiers.Constant\nspace: {}\n"
    )
    made = prepared(folder, "datasets=[gaps]", "solvers=[any]", "protocol.prepare=none")
    assert [identity.shared_gram for identity in made.identities.values()] == [False]
