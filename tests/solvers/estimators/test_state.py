"""What an estimator keeps of its training data, and what may not change it."""

import dataclasses
import gc
import pickle
import weakref

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel

from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC

CS = [0.25, 1.0, 4.0]


def gaussian(A, B):
    return rbf_kernel(A, B, gamma=0.5)


@pytest.mark.parametrize("is_fitted", [False, True], ids=["fresh", "fitted"])
@pytest.mark.parametrize(
    "model",
    [
        MNSVC(random_state=np.random.RandomState(3)),
        MNSVC(kernel="linear", warm_start=True, random_state=0),
        MNSVC(kernel=gaussian, multiclass="all_at_once"),
        NewtonSVC(),
        NewtonSVC(warm_start=True, gamma=0.3, cache_size=0.02),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_path_leaves_its_estimator_untouched(iris, model, is_fitted):
    X, y = iris
    model = pickle.loads(pickle.dumps(model))
    if is_fitted:
        model.fit(X[:, :2], y)
    before = pickle.dumps(vars(model))
    first = model.fit_path(X, y, CS)
    assert pickle.dumps(vars(model)) == before
    if is_fitted:
        assert model.predict(X[:, :2]).shape == y.shape
    if model.get_params().get("random_state", 0) is not None:
        np.testing.assert_array_equal(model.fit_path(X, y, CS).objective_, first.objective_)


def test_a_path_of_a_gram_matrix_leaves_its_estimator_untouched(iris):
    X, y = iris
    model = MNSVC(kernel="precomputed", random_state=0).fit(gaussian(X[:100], X[:100]), y[:100])
    before = pickle.dumps(vars(model))
    model.fit_path(gaussian(X, X), y, CS)
    assert pickle.dumps(vars(model)) == before


def arrays_within(thing, seen):
    """Every array that can be reached from a fitted object, and the memory that a view is cut from."""
    if id(thing) in seen or thing is None:
        return
    seen[id(thing)] = thing
    if isinstance(thing, np.ndarray):
        yield thing
        yield from arrays_within(thing.base, seen)
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from arrays_within(value, seen)
    elif isinstance(thing, (list, tuple)):
        for value in thing:
            yield from arrays_within(value, seen)
    elif dataclasses.is_dataclass(thing) or hasattr(thing, "__dict__"):
        yield from arrays_within(vars(thing), seen)


@pytest.mark.sample(5)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kernel", ["precomputed", "rbf", gaussian], ids=["precomputed", "rbf", "callable"])
@pytest.mark.parametrize(
    "model",
    [
        MNSVC(warm_start=True, probability=True),
        MNSVC(multiclass="all_at_once"),
        SphereSVC(warm_start=True),
        BallSVC(),
        CoreSVC(),
        SMOSVC(probability=True),
        NewtonSVC(warm_start=True, probability=True),
    ],
    ids=str,
)
def test_nothing_fitted_refers_to_the_training_matrix(model, kernel, order):
    X, y = load_iris(return_X_y=True)
    X = np.array(gaussian(X, X) if kernel == "precomputed" else np.tile(X, 40), order=order)
    model = pickle.loads(pickle.dumps(model)).set_params(kernel=kernel, C=4.0).fit(X, y)
    held = weakref.ref(X)
    size = X.nbytes
    if kernel == "precomputed":
        assert max(array.nbytes for array in arrays_within(vars(model), {})) < size / 2
    del X
    gc.collect()
    assert held() is None


@pytest.mark.parametrize("kernel", ["precomputed", "rbf", gaussian], ids=["precomputed", "rbf", "callable"])
@pytest.mark.parametrize("solver", [MNSVC, NewtonSVC, SMOSVC])
def test_a_fitted_path_does_not_refer_to_the_training_matrix(solver, kernel):
    X, y = load_iris(return_X_y=True)
    X = gaussian(X, X) if kernel == "precomputed" else np.array(X)
    path = solver(kernel=kernel).fit_path(X, y, CS)
    held = weakref.ref(X)
    if kernel == "precomputed":
        assert max(array.nbytes for array in arrays_within(vars(path), {})) < X.nbytes / 2
    del X
    gc.collect()
    assert held() is None
