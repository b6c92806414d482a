"""What scikit-learn's examples do with `SVC` gives the same with `SMOSVC`: only the import changes."""

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_digits,
    load_iris,
    make_blobs,
    make_classification,
    make_multilabel_classification,
)
from sklearn.feature_selection import RFE, SelectPercentile, f_classif
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
    permutation_test_score,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from solvers import SMOSVC

mpl.use("Agg")
IRIS = load_iris(return_X_y=True)


def boundary_of_a_hyperplane(svc):
    X, y = make_blobs(n_samples=40, centers=2, random_state=6)
    model = svc(kernel="linear", C=1000).fit(X, y)
    shown = DecisionBoundaryDisplay.from_estimator(
        model, X, plot_method="contour", levels=[-1, 0, 1], grid_resolution=20
    )
    return shown.response, model.support_vectors_, model.coef_, model.intercept_


def unbalanced_classes(svc):
    X, y = make_blobs(
        n_samples=[200, 20], centers=[[0.0, 0.0], [2.0, 2.0]], cluster_std=[1.5, 0.5], random_state=0
    )
    plain, weighted = (svc(kernel="linear", class_weight=w).fit(X, y) for w in (None, {1: 10}))
    return plain.coef_, weighted.coef_, weighted.class_weight_, weighted.decision_function(X)


def weighted_samples(svc):
    X, y = make_blobs(n_samples=20, centers=2, cluster_std=3.0, random_state=0)
    weights = np.abs(np.random.RandomState(0).randn(20))
    weights[15:] *= 5
    return svc(gamma=1).fit(X, y, sample_weight=weights).decision_function(X)


def custom_kernel(svc):
    M = np.array([[2, 0], [0, 1.0]])
    model = svc(kernel=lambda A, B: A @ M @ B.T).fit(IRIS[0][:, :2], IRIS[1])
    return model.predict(IRIS[0][:, :2]), model.decision_function(IRIS[0][:, :2])


def grid_search(svc):
    X = StandardScaler().fit_transform(IRIS[0])
    splits = StratifiedShuffleSplit(n_splits=3, test_size=0.2, random_state=42)
    grid = {"C": np.logspace(-1, 3, 3), "gamma": np.logspace(-2, 1, 3)}
    found = GridSearchCV(svc(), param_grid=grid, cv=splits).fit(X, IRIS[1])
    return found.cv_results_["mean_test_score"], found.best_params_["C"], found.predict(X)


def random_search_with_balanced_classes(svc):
    space = {"C": [1.0, 10.0, 100.0], "gamma": [0.01, 0.1]}
    search = RandomizedSearchCV(svc(kernel="rbf", class_weight="balanced"), space, n_iter=3, random_state=0)
    return search.fit(IRIS[0][20:], IRIS[1][20:]).cv_results_["mean_test_score"]


def recursive_elimination(svc):
    X, y = load_digits(return_X_y=True)
    pipeline = Pipeline([("rfe", RFE(svc(kernel="linear", C=1), step=20))])
    return pipeline.fit(X[:120] / 16.0, y[:120]).named_steps["rfe"].ranking_


def anova_pipeline(svc):
    X = np.hstack((IRIS[0], 2 * np.random.RandomState(0).random((150, 36))))
    pipeline = make_pipeline(SelectPercentile(f_classif), StandardScaler(), svc(gamma="auto"))
    return [
        cross_val_score(pipeline.set_params(selectpercentile__percentile=p), X, IRIS[1]) for p in (10, 60)
    ]


def permutation_test(svc):
    model = svc(kernel="linear", random_state=7)
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    return permutation_test_score(model, *IRIS, cv=folds, n_permutations=5, random_state=0)


def one_against_the_rest_of_many_labels(svc):
    X, Y = make_multilabel_classification(n_classes=2, n_labels=1, allow_unlabeled=True, random_state=1)
    model = OneVsRestClassifier(svc(kernel="linear")).fit(X / 10.0, Y)
    return [m.coef_ for m in model.estimators_], model.predict(X / 10.0)


def calibration(svc):
    X, y = make_classification(n_samples=150, random_state=0)
    model = CalibratedClassifierCV(svc(gamma=0.1, C=2.0), ensemble=False, cv=3).fit(X, y)
    return model.predict_proba(X)


def ties(svc):
    X, y = make_blobs(random_state=27)
    X_test = np.random.RandomState(0).uniform(-12, 8, (200, 2))
    models = [svc(kernel="linear", C=1, break_ties=b).fit(X, y) for b in (False, True)]
    pairs = svc(kernel="linear", C=1, decision_function_shape="ovo").fit(X, y).decision_function(X_test)
    return [model.predict(X_test) for model in models], pairs


def test_paths_of_C_elect_as_their_estimator_does():
    X, y = make_blobs(200, centers=12, cluster_std=3.0, random_state=0)
    X_test = np.random.RandomState(0).uniform(-12, 12, (2000, 2))
    found = {}
    for break_ties in ("auto", True, False):
        model = SMOSVC(C=1.0, gamma=0.1, break_ties=break_ties)
        found[break_ties] = model.fit_path(X, y, [1.0]).predict_path(X_test)[0]
        assert_array_equal(found[break_ties], model.fit(X, y).predict(X_test))
    assert_array_equal(found["auto"], found[True])
    assert (found[False] != found[True]).any()
    assert_array_equal(found[False], SVC(C=1.0, gamma=0.1).fit(X, y).predict(X_test))


def recognise_digits(svc):
    X, y = load_digits(return_X_y=True)
    model = svc(gamma=0.001).fit(X[:300], y[:300])
    return model.predict(X[300:600]), model.n_support_.shape, model.n_iter_.shape, model.classes_


@pytest.mark.parametrize(
    "example",
    [
        boundary_of_a_hyperplane,
        unbalanced_classes,
        weighted_samples,
        custom_kernel,
        grid_search,
        random_search_with_balanced_classes,
        recursive_elimination,
        anova_pipeline,
        permutation_test,
        one_against_the_rest_of_many_labels,
        calibration,
        ties,
        recognise_digits,
    ],
)
def test_an_example_gives_the_same_with_another_import(example):
    expected, found = example(SVC), example(SMOSVC)
    if not isinstance(expected, tuple | list):
        expected, found = [expected], [found]
    for value, ours in zip(expected, found, strict=True):
        assert_allclose(np.asarray(ours, float), np.asarray(value, float), rtol=1e-3, atol=0.02)
