"""The pairs of first order and the working sets of SMOSVC lead to the same solution as the default."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.preprocessing import minmax_scale

from solvers import SMOSVC

pytestmark = pytest.mark.sample(3)


@pytest.mark.parametrize("loss", ["l1", "l2"])
@pytest.mark.parametrize("C", [1.0, 16.0, 1024.0])
@pytest.mark.parametrize(
    "choice", [{"selection": "first"}, {"working_set": 10}, {"working_set": 4, "selection": "first"}]
)
def test_every_selection_reaches_the_same_objective(loss, C, choice):
    X, y = load_breast_cancer(return_X_y=True)
    X = minmax_scale(X)
    expected = SMOSVC(C=C, loss=loss, gamma=1.0, tol=1e-7).fit(X, y)
    model = SMOSVC(C=C, loss=loss, gamma=1.0, tol=1e-7, **choice).fit(X, y)
    assert expected.converged_
    assert model.converged_
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("size", [2, 6, 50, 4000])
def test_working_sets_work_with_any_number_of_samples_and_a_small_cache(size):
    X, y = make_classification(400, 6, n_informative=4, flip_y=0.1, random_state=0)
    model = SMOSVC(C=8.0, gamma=0.2, working_set=size, cache_size=0.5, max_iter=10**6).fit(X, y)
    assert model.converged_
    small = SMOSVC(C=8.0, gamma=0.2, working_set=size).fit(X[:3], [0, 1, 0])
    assert small.converged_


def test_second_order_takes_fewer_steps():
    X, y = load_breast_cancer(return_X_y=True)
    X = minmax_scale(X)
    first, second = (SMOSVC(C=16.0, gamma=1.0, selection=s).fit(X, y) for s in ("first", "second"))
    assert first.n_iter_.sum() > 1.2 * second.n_iter_.sum()


def test_many_classes_keep_the_selection():
    X, y = make_classification(
        240, 6, n_informative=6, n_redundant=0, n_classes=12, n_clusters_per_class=1, random_state=0
    )
    pair = y < 2
    for choice in ({"selection": "first"}, {"working_set": 6}):
        model = SMOSVC(C=4.0, gamma=0.1, **choice)
        alone = model.fit(X[pair], y[pair]).n_iter_[0]
        assert model.fit(X, y).n_iter_[0] == alone


def test_paths_keep_their_selection():
    X, y = load_iris(return_X_y=True)
    paths = [SMOSVC(gamma=0.5, **choice).fit_path(X, y, [1.0, 4.0]) for choice in ({}, {"working_set": 8})]
    assert (paths[0].objective_ == paths[1].objective_).all()


@pytest.mark.parametrize("size", [0, 3])
def test_a_working_set_is_an_even_number(size):
    with pytest.raises(ValueError, match=str(size)):
        SMOSVC(working_set=size).fit([[0.0], [1.0]], [0, 1])
