"""Both rules for the pair of a step and larger working sets on ten sets, and one against the rest on five."""

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_classification,
    make_gaussian_quantiles,
    make_hastie_10_2,
    make_moons,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

from solvers import SMOSVC

N = 120
SETS = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "blobs": lambda: make_blobs(N, 5, centers=4, cluster_std=4.0, random_state=0),
    "circles": lambda: make_circles(N, noise=0.3, random_state=0),
    "moons": lambda: make_moons(N, noise=0.3, random_state=0),
    "quantiles": lambda: make_gaussian_quantiles(n_samples=N, n_features=4, n_classes=3, random_state=0),
    "hastie": lambda: make_hastie_10_2(N, random_state=0),
    "noise": lambda: make_classification(N, 8, n_informative=4, flip_y=0.2, random_state=0),
}
MANY_CLASSES = ["iris", "wine", "digits", "blobs", "quantiles"]


def scaled(name):
    X, y = SETS[name]()
    rows = np.random.default_rng(0).permutation(y.size)[:N]
    return minmax_scale(X[rows]), y[rows]


def fitted(X, y, **choice):
    return SMOSVC(C=16.0, gamma=1.0, tol=1e-6, **choice).fit(X, y)


def test_the_largest_gain_takes_fewer_steps_and_all_rules_the_same_objective():
    fewer = []
    for name in SETS:
        X, y = scaled(name)
        second, first, set_of_10 = (
            fitted(X, y, **choice) for choice in ({}, {"selection": "first"}, {"working_set": 10})
        )
        assert first.objective_ == pytest.approx(second.objective_, rel=1e-6)
        assert set_of_10.objective_ == pytest.approx(second.objective_, rel=1e-6)
        fewer.append(first.n_iter_.sum() >= 1.2 * second.n_iter_.sum())
    assert sum(fewer) >= 9


@pytest.mark.parametrize("name", MANY_CLASSES)
def test_each_class_against_the_rest_is_scikit_learn_s(name):
    X, y = scaled(name)
    peer = OneVsRestClassifier(SVC(C=16.0, gamma=1.0, tol=1e-6)).fit(X, y)
    model = SMOSVC(C=16.0, gamma=1.0, tol=1e-6, multiclass="one_vs_rest").fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-3)
