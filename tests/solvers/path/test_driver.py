"""What paths of every block solver have in common."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from solvers import MNSVC, NewtonSVC
from tests.messages import raises

SOLVERS = [MNSVC, NewtonSVC]


@pytest.mark.parametrize("solver", SOLVERS)
def test_labels_of_any_type(solver):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for labels in (names, names.astype(object), y.astype(float)):
        predicted = solver(gamma=1.0, random_state=0).fit_path(X, labels, [1.0, 4.0]).predict_path(X)
        assert predicted.shape == (2, 150)
        assert np.mean(predicted[1] == labels) > 0.95


@pytest.mark.parametrize("solver", SOLVERS)
def test_nothing_starts_from_a_training_that_diverged(solver):
    X, y = load_iris(return_X_y=True)
    Cs = [1e-310, 1.0]  # 1/C of the first C is infinite
    alone = solver(C=1.0, gamma=0.5).fit(X, y)
    fitted = solver(gamma=0.5).fit_path(X, y, Cs)
    assert not np.isfinite(fitted.objective_[0])
    warm = solver(gamma=0.5, warm_start=True)
    with np.errstate(all="ignore"), pytest.warns(ConvergenceWarning):
        warm.set_params(C=Cs[0]).fit(X, y)
    assert not np.isfinite(warm.objective_)
    warm.set_params(C=Cs[1]).fit(X, y)
    for after in (fitted.objective_[1], warm.objective_):
        assert after == pytest.approx(alone.objective_, rel=1e-2)


@pytest.mark.parametrize("Cs", [[4.0, 1.0], [], [0.0, 1.0], [1.0, np.inf]])
def test_refuses_what_is_not_an_ascending_path(Cs):
    with raises(ValueError, "Cs", "ascending", "finite", "> 0"):
        NewtonSVC().fit_path(*load_iris(return_X_y=True), Cs)


def test_refuses_a_gram_matrix_of_the_wrong_shape():
    with raises(ValueError, "float", "Gram", "shape (3, 3)"):
        NewtonSVC(kernel="precomputed").fit_path(np.eye(4), np.array([0, 1, 1]), [1.0])
