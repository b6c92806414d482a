from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.preprocessing import scale

from orchestrator.config.compose import load_settings
from orchestrator.datasets import load
from orchestrator.engine import feasibility
from orchestrator.engine.feasibility import infeasible
from orchestrator.engine.preparations import chosen_preparations
from orchestrator.engine.prepare import prepare_study
from orchestrator.study.errors import ConfigError
from orchestrator.training.metrics import refused_metric
from tests.messages import assert_says, says, warns
from tests.orchestrator.classifiers import Constant

HERE = __name__


class Duck:
    """A classifier that declares nothing and inherits nothing."""

    def __init__(self, C=1.0):
        self.C = C

    def get_params(self, deep=True):
        return {"C": self.C}

    def fit(self, X, y):
        self.classes_ = np.unique(y)

    def predict(self, X):
        return [self.classes_[0]] * len(X)


class QuantityDuck(Duck):
    """A regressor that does not say so."""

    def fit(self, X, y):
        self.classes_ = np.array([np.mean(y) + 0.1])


class OldRegressor(Duck):
    """A regressor that says so as scikit-learn did before it had tags."""

    _estimator_type = "regressor"


class Both(ClassifierMixin, BaseEstimator):
    """Takes an argument that nobody gives."""

    def __init__(self, C=1.0):
        self.C = C

    def fit(self, X, y, groups):
        return self

    def predict(self, X):
        return X[:, 0]


class Column(Constant):
    """Predicts a column."""

    def predict(self, X):
        return super().predict(X)[:, None]


class Square(Constant):
    """Gives probabilities of three classes, whatever the classes."""

    def predict_proba(self, X):
        return np.full((len(X), 3), 1 / 3)


class Hungry(Constant):
    """Needs more rows than it is tried on."""

    def fit(self, X, y):
        if len(X) < 40:
            raise ValueError("expected at least 40 rows")
        return super().fit(X, y)


class Regressor(RegressorMixin, BaseEstimator):
    """Is a regressor."""

    def __init__(self, C=1.0):
        self.C = C

    fit = predict = Constant.predict


def words():
    """Two classes with names."""
    X = np.random.default_rng(0).random((60, 3))
    return X, np.where(X[:, 0] > 0.5, "yes", "no")


@pytest.fixture
def problems(tmp_path):
    """A function that returns the problems of a study of solvers given by their classes."""

    def problems(*targets, datasets="iris", **protocol):
        (tmp_path / "solver").mkdir(exist_ok=True)
        (tmp_path / "dataset").mkdir(exist_ok=True)
        (tmp_path / "dataset" / "words.yaml").write_text(f"_target_: {HERE}.words\n")
        names = []
        for target in targets:
            names.append(target.rpartition(".")[2])
            space = {
                "KNeighborsClassifier": "n_neighbors: [50]",
                "Ridge": "alpha: [1]",
                "KMeans": "n_clusters: [3]",
            }.get(names[-1], "C: [1, 2]")
            text = f"_target_: {target}\nspace: {{{space}}}\n"
            (tmp_path / "solver" / f"{names[-1]}.yaml").write_text(text)
        overrides = [
            "study=x",
            f"datasets=[{datasets}]",
            f"solvers=[{','.join(names) or 'libsvm_l1'}]",
            f"paths.cache={tmp_path}/cache",
            *(f"protocol.{key}={value}" for key, value in protocol.items()),
        ]
        try:
            prepare_study(load_settings(overrides, tmp_path))
        except ConfigError as error:
            return error.problems
        return []

    return problems


# -- metrics -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [
        ("r2", ("protocol.metric", "r2", "quantities", "scorer")),
        ("neg_mean_squared_error", ("protocol.metric", "neg_mean_squared_error", "quantities")),
        ("rand_score", ("protocol.metric", "rand_score", "clusters")),
        ("f1", ("dataset iris", "protocol.metric=f1", "f1_macro")),
        ("roc_auc", ("dataset iris", "protocol.metric=roc_auc", "roc_auc_ovo")),
        ("positive_likelihood_ratio", ("dataset iris", "binary")),
    ],
)
def test_a_metric_that_cannot_score_the_classes_is_refused(metric, sentence, problems):
    (problem,) = problems(metric=metric)
    assert_says(problem, *sentence)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", get_scorer_names())
def test_a_scorer_is_accepted_exactly_where_it_works(name):
    """It works where it scores a plain classifier; a scorer for quantities and clusters nowhere."""
    elsewhere = bool(refused_metric(name))
    assert elsewhere == (
        name in ("r2", "explained_variance", "fowlkes_mallows_score")
        or any(part in name for part in ("error", "deviance", "rand", "mutual_info", "homog", "complet"))
        or name in ("v_measure_score", "d2_absolute_error_score")
    )
    study, models = plain_classifiers()
    for spec, dataset, X, model in models:
        try:
            get_scorer(name)(model, X, dataset.y)
            works = True
        except ValueError:
            works = False
        alone = replace(study, datasets=(spec,), protocol=replace(study.protocol, metric=name))
        prepared, _ = chosen_preparations(alone, {spec.name: dataset})
        assert elsewhere or works == (not infeasible(alone, {spec.name: dataset}, prepared))


@cache
def plain_classifiers():
    """A study of two and of three classes; and of each, data and a model."""
    overrides = ["study=x", "datasets=[breast_cancer,iris]", "solvers=[mnsvm]"]
    study = load_settings(overrides).study
    models = []
    for spec in study.datasets:
        dataset = load(spec)
        X = scale(dataset.X)
        models.append((spec, dataset, X, LogisticRegression(max_iter=5000).fit(X, dataset.y)))
    return replace(study, arms=()), models


def test_labels_that_are_words_have_no_positive_class(problems):
    (problem,) = problems(metric="f1", datasets="words")
    assert_says(problem, "pos_label=1")
    assert not problems(metric="f1_macro", datasets="words")


def test_metrics_recorded_beside_are_tried_too(problems):
    first, second = problems(also="[f1,roc_auc]")
    assert "protocol.also=f1" in first
    assert "protocol.also=roc_auc" in second


# -- solvers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("sklearn.linear_model.Ridge", "regressor"),
        ("sklearn.cluster.KMeans", "clusterer"),
        (f"{HERE}.Regressor", "regressor"),
        (f"{HERE}.OldRegressor", "regressor"),
    ],
)
def test_what_is_no_classifier_is_refused(target, kind, problems):
    (problem,) = problems(target)
    assert_says(problem, f"{target} is a {kind}", "classifier")


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("QuantityDuck", ("labels", "classes (0, 1, 2)")),
        ("Both", ("TypeError",)),
        ("Column", ("label", "18 rows")),
    ],
)
def test_a_solver_that_cannot_be_trained_is_warned_of_and_may_leave_its_failures(target, sentence, problems):
    with warns(UserWarning, "dataset iris", f"solver {target}", *sentence):
        assert not problems(f"{HERE}.{target}")


@pytest.mark.parametrize(
    "target", [f"{HERE}.Duck", f"{HERE}.Hungry", "sklearn.neighbors.KNeighborsClassifier"]
)
def test_what_behaves_or_may_lack_rows_only_is_accepted(target, problems):
    assert not problems(target)


@pytest.mark.parametrize("target", ["solvers.MNSVC", "sklearn.svm.SVC"])
def test_a_metric_that_needs_probabilities_refuses_solvers_without(target, problems):
    (problem,) = problems(target, metric="neg_log_loss", also="[accuracy]", datasets="breast_cancer")
    name = target.rpartition(".")[2]
    assert_says(
        problem, "dataset breast_cancer", f"solver {name}", "neg_log_loss", f"{target}", "predict_proba"
    )
    assert not problems(target, metric="roc_auc", datasets="breast_cancer")


def test_probabilities_of_other_classes_are_refused(problems):
    (problem,) = problems(f"{HERE}.Square", metric="neg_log_loss", datasets="breast_cancer")
    assert_says(problem, "array", "shape (20, 2)", "predict_proba", "(20, 3)")


def test_all_problems_are_told_at_once(problems):
    found = problems("solvers.MNSVC", datasets="iris,breast_cancer", metric="f1", also="[neg_log_loss]")
    assert len(found) == 2
    assert sum("dataset iris: protocol.metric=f1" in problem for problem in found) == 1
    assert any(says(problem, "iris, breast_cancer", "solver MNSVC") for problem in found)


def test_a_solver_is_tried_once_however_many_values_are_swept(problems, monkeypatch, tmp_path):
    tried = tmp_path / "tried"  # a file, since solvers are tried in a process of their own

    def try_training(task):
        with tried.open("a") as file:
            file.write(f"{task.arm.name}\n")

    monkeypatch.setattr(feasibility, "try_training", try_training)
    overrides = ["study=x", "datasets=[iris]", "solvers=[libsvm_l1]", "sweep.tol=[0.1,0.01]"]
    prepare_study(load_settings([*overrides, f"paths.cache={tmp_path}"]))
    assert tried.read_text() == "libsvm_l1[tol=0.1]\n"
