"""Metrics of a user's own, in a folder outside the repository: `examples/metric` and worse ones."""

import shutil
from pathlib import Path

import pytest
from sklearn.metrics import accuracy_score, fbeta_score
from sklearn.svm import SVC

from orchestrator import run_study
from orchestrator.config.compose import load_settings
from orchestrator.engine.prepare import prepare_study
from orchestrator.study.errors import ConfigError
from orchestrator.study.study import Protocol
from orchestrator.training.split_data import open_split
from tests.messages import assert_says, says

EXAMPLE = Path(__file__).parents[3] / "examples" / "metric"

WORSE = """
import os
from sklearn.metrics import fbeta_score
from mymetric import f2

def ends(y_true, y_pred):
    os._exit(3)

def words(y_true, y_pred):
    return "good"

def alone(y_true):
    return 1.0

def elsewhere(estimator, X, y):
    return float((estimator.predict(X[:1]) == y[:1]).mean())

def binary(y_true, y_pred):
    return fbeta_score(y_true, y_pred, beta=3)

def accuracy(y_true, y_pred):
    return 0.5

calls = 0

def counts(y_true, y_pred):
    global calls
    calls += 1
    return calls
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    copy = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("elsewhere") / "metric")
    (copy / "worsemetric.py").write_text(WORSE)
    return copy


@pytest.fixture(scope="module")
def results(folder):
    return run_study("experiment=f2", "cluster=serial", f"paths.results={folder / 'r'}", config_dir=folder)


def prepared(folder, *overrides, datasets="breast_cancer"):
    small = f"study=x datasets=[{datasets}] solvers=[libsvm_l1] search.space.C=[1] search.space.gamma=[0.1]"
    paths = [f"paths.cache={folder / 'cache'}", f"paths.results={folder / 'r'}"]
    return prepare_study(load_settings([*small.split(), *paths, *overrides], folder))


def problems(folder, *overrides, **options):
    with pytest.raises(ConfigError) as found:
        prepared(folder, *overrides, **options)
    return found.value.problems


def test_scores_are_those_of_scikit_learn_bit_for_bit(folder, results):
    made = prepared(folder, "protocol.outer=3", "protocol.inner=2")
    protocol = made.study.protocol.for_preparation(made.preparations["breast_cancer", "libsvm_l1"])
    for row in results.outer.to_dict("records"):
        split = open_split(made.sources["breast_cancer"], protocol, row["outer"], -1)
        model = SVC(C=row["param_C"], gamma=row["param_gamma"]).fit(split.X_train, split.y_train)
        y, answers = split.y_test, model.predict(split.X_test)
        positive, right = model.decision_function(split.X_test) > 0, answers == y
        assert row["score"] == row["score_fbeta_score"] == fbeta_score(y, answers, beta=2)
        assert row["score_accuracy"] == accuracy_score(y, answers)
        costs = 10.0 * ((y == 1) & ~positive) + ((y == 0) & positive)
        assert row["score_cost"] == -costs.mean()
        feature = split.X_test[:, 0]
        assert row["score_first_feature_gap"] == feature[right].mean() - feature[~right].mean()


def test_the_search_selects_by_it(results):
    trials = results.trials[results.trials["inner"] >= 0]
    means = trials.groupby(["outer", "param_C"])["score"].mean().unstack()
    assert results.selections["param_C"].tolist() == means.idxmax(axis=1).tolist()
    assert results.selections["inner_score"].tolist() == pytest.approx(means.max(axis=1).tolist())


def test_keys_change_with_the_metric_s_code_and_with_no_other(folder):
    def identity(*overrides):
        return prepared(folder, *overrides).identities["breast_cancer", "libsvm_l1"].digest

    own, plain = identity("protocol.metric=worsemetric.f2"), identity()
    module = folder / "mymetric.py"
    source = module.read_text()
    try:
        module.write_text(source.replace("beta=2", "beta=2.0"))
        assert identity("protocol.metric=worsemetric.f2") != own
        assert identity() == plain
    finally:
        module.write_text(source)
    assert "own_metrics" not in Protocol().to_dict()


def test_only_a_metric_that_sees_the_rows_keeps_kernel_matrices_from_being_shared(folder):
    for metric, shares in (("mymetric.f2", True), ("mymetric.first_feature_gap", False)):
        (identity,) = prepared(folder, f"protocol.metric={metric}", "solvers=[mnsvm]").identities.values()
        assert identity.shared_gram == shares


ROC = "sklearn.metrics.roc_auc_score"
MADE = "{_target_: sklearn.metrics.make_scorer, score_func: mymetric.f2, %s}"


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("metric=worsemetric.ends", ("metric=ends", "ended", "exit status 3")),
        (
            "metric=worsemetric.words",
            ("metric=words", "finite number", "score words"),
        ),
        ("metric=worsemetric.elsewhere", ("metric", "predict", "rows")),
        ("metric=worsemetric.alone", ("worsemetric.alone", "f(y_true, y_pred)")),
        (f"metric={ROC}", ("scores", "(y_score)")),
        ("metric=worsemetric.f3", ("module 'worsemetric'", "'f3'")),
        ("metric=worsemetric.accuracy", ("accuracy", "scorer")),
        ("metric=acuracy", ("'acuracy'", "'accuracy'")),
        ("metric=3", ("name", "scorer")),
        ("metric={score_func: mymetric.f2}", ("name", "scorer")),
        ("metric=" + MADE % "name: 'a b'", ("'_'", "'a b'")),
        (
            "metric=" + (MADE % "response_method: predict_proba").replace("mymetric.f2", ROC),
            ("SVC", "predict_proba"),
        ),
        ("also=[mymetric.f2,worsemetric.f2]", ("mymetric.f2", "worsemetric.f2")),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(override, sentence, folder):
    assert any(says(problem, *sentence) for problem in problems(folder, f"protocol.{override}"))


def test_a_metric_is_tried_on_each_dataset(folder):
    metric = "protocol.metric=worsemetric.binary"
    (problem,) = problems(folder, metric, datasets="breast_cancer,iris")
    assert_says(problem, "dataset iris", "protocol.metric=binary", "multiclass")


def test_what_a_metric_remembers_is_forgotten_after_each_training(folder):
    small = ("protocol.outer=2", "protocol.inner=2", "search.space={C: [1, 2], gamma: [1]}", "cluster=serial")
    chosen = ("study=counts", "datasets=[iris]", "solvers=[libsvm_l1]", f"paths.results={folder / 'r'}")
    metric = "protocol.metric=worsemetric.counts"
    assert set(run_study(*chosen, *small, metric, config_dir=folder).trials["score"]) == {1.0}
