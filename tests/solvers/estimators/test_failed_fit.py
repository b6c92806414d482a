"""A fit that fails leaves the estimator as it was: not fitted, or with the model of the fit before."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from solvers import (
    AESVC,
    LASVC,
    MNSVC,
    SMOSVC,
    BallSVC,
    BayesPointClassifier,
    CoreSVC,
    EllipsoidalKernelSVC,
    EllipsoidSVC,
    NewtonSVC,
    ReducedSetSVC,
    RelativeMarginSVC,
    SoftBallSVC,
    SphereSVC,
)
from solvers.estimators.reduced_training import Trainer

OF_VERSION_SPACE = [
    EllipsoidSVC,
    BayesPointClassifier,
    RelativeMarginSVC,
    EllipsoidalKernelSVC,
    SoftBallSVC,
]
SOLVERS = [
    AESVC,
    LASVC,
    MNSVC,
    SphereSVC,
    BallSVC,
    CoreSVC,
    NewtonSVC,
    SMOSVC,
    ReducedSetSVC,
    *OF_VERSION_SPACE,
]
X = np.random.default_rng(0).normal(size=(24, 3))
Y = np.arange(24) % 3
X[:, 0] += Y
WITH_NAN = np.where(np.arange(24) == 3, np.nan, 1.0)


class Interrupted(BaseException):
    """What is not an `Exception`, as `KeyboardInterrupt` is not."""


def raising(error):
    def kernel(A, B):
        raise error

    return kernel


def nan_kernel(A, B):
    return np.full((len(A), len(B)), np.nan)


def damaged_rows():
    rows = sparse.csr_matrix(X)
    rows.indices[4] = 9
    return rows


# Parameters, samples, labels and weights of a fit that fails.
FAILURES = {
    "a weight is NaN": ({}, X, Y, WITH_NAN),
    "the weights have a wrong shape": ({}, X, Y, np.ones(5)),
    "the weights are text": ({}, X, Y, ["a"] * 24),
    "no weight is positive": ({}, X, Y, np.zeros(24)),
    "a class has no weight": ({}, X, Y, (Y > 0).astype(float)),
    "C times weight overflows": ({"C": 1e300}, X, Y, np.full(24, 1e300)),
    "a sample is NaN": ({}, np.where(X[2, 1] == X, np.nan, X), Y, None),
    "samples are dates": ({}, X.astype("M8[D]"), Y, None),
    "samples are too few": ({}, X[:10], Y, None),
    "samples have one axis": ({}, X[:, 0], Y, None),
    "the structure is damaged": ({}, damaged_rows(), Y, None),
    "there is one class": ({}, X, np.zeros(24), None),
    "labels are fractions": ({}, X, X[:, 0], None),
    "labels are of mixed types": ({}, X, [1, "a"] * 12, None),
    "there are other features, and a weight is NaN": ({}, X[:, :2], Y, WITH_NAN),
    "there are other classes, and a weight is NaN": ({}, X, Y + 5, WITH_NAN),
    "C is negative": ({"C": -1.0}, X, Y, None),
    "the kernel is unknown": ({"kernel": "unknown"}, X, Y, None),
    "the shape is unknown": ({"decision_function_shape": "unknown"}, X, Y, None),
    "gamma is NaN": ({"gamma": np.nan}, X, Y, None),
    "the matrix is not square": ({"kernel": "precomputed"}, X, Y, None),
    "the kernel raises": ({"kernel": raising(RuntimeError("no kernel"))}, X, Y, None),
    "the kernel is interrupted": ({"kernel": raising(KeyboardInterrupt())}, X, Y, None),
    "the kernel ends the process": ({"kernel": raising(SystemExit(3))}, X, Y, None),
    "the kernel raises what is no exception": ({"kernel": raising(Interrupted())}, X, Y, None),
    "the kernel returns NaN": ({"kernel": nan_kernel}, X, Y, None),
    "the kernel returns a wrong shape": ({"kernel": lambda A, B: np.ones((2, 2))}, X, Y, None),
    "the kernel returns complex values": ({"kernel": lambda A, B: A @ B.T + 1j}, X, Y, None),
    "kernel values are infinite": ({"kernel": "linear"}, 1e200 * X, Y, None),
    "memory is too small": (
        {"cache_size": 1e12, "n_jobs": 10**9},
        np.tile(X, (200, 1)),
        np.tile(Y, 200),
        None,
    ),
}
OF_CLASS_WEIGHT = {
    "a class weight is negative": {0: -1.0},
    "a class weight is NaN": {0: np.nan},
    "a class weight is text": {0: "2"},
    "a class weight is of another class": {9: 2.0},
}


def seeded(solver, **params):
    defaults = {} if solver in (SMOSVC, NewtonSVC) else {"random_state": 0}
    if solver is BayesPointClassifier:  # its balls take long to agree on more digits
        defaults["tol"] = 0.05
    return solver(**(defaults | params))


def path_values(solver):
    """Return values of the parameter that orders a path."""
    return [0.5, 1.0] if solver is SoftBallSVC else [0.5, 2.0]


def failures_of(solver):
    if "C" in solver().get_params():
        yield from FAILURES.items()
    else:
        yield from ((name, case) for name, case in FAILURES.items() if "C" not in case[0])
        yield "nu is above 1", ({"nu": 1.5}, X, Y, None)
    if "class_weight" in solver().get_params():
        for name, weights in OF_CLASS_WEIGHT.items():
            yield name, ({"class_weight": weights}, X, Y, None)
    if "multiclass" in solver().get_params():
        both = {"multiclass": "all_at_once", "decision_function_shape": "ovo"}
        yield "the shape and the multiclass method disagree", (both, X, Y, None)


CASES = [
    pytest.param(solver, *case, id=f"{solver.__name__}-{name}")
    for solver in SOLVERS
    for name, case in failures_of(solver)
]


def state_of(model):
    """The fitted attributes of a model, by name."""
    return {name: value for name, value in vars(model).items() if name not in model.get_params()}


def assert_same_state(model, before):
    after = state_of(model)
    assert after.keys() == before.keys()
    for name, value in before.items():
        assert after[name] is value, name


def assert_fails(train, *given):
    """Assert that a call raises an error, and that it is not a missing attribute or name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            train(*given)
        except (AttributeError, NameError, UnboundLocalError):
            raise
        except BaseException:  # KeyboardInterrupt is one of those that are raised
            return
    raise AssertionError("the call succeeded")


@pytest.mark.parametrize(("solver", "params", "samples", "labels", "weights"), CASES)
def test_a_first_fit_that_fails_leaves_a_model_that_is_not_fitted(solver, params, samples, labels, weights):
    for probability in (False, True):
        model = seeded(solver, probability=probability, **params)
        before = dict(vars(model))
        assert_fails(model.fit, samples, labels, weights)
        assert vars(model) == before
        methods = ["predict", "decision_function"] + ["predict_proba", "predict_log_proba"] * probability
        for method in methods:
            with pytest.raises(NotFittedError):
                getattr(model, method)(X)


@pytest.mark.sample(17)
@pytest.mark.parametrize(("solver", "params", "samples", "labels", "weights"), CASES)
def test_a_second_fit_that_fails_leaves_the_model_of_the_first(solver, params, samples, labels, weights):
    for first in ({}, {"kernel": "linear"}, {"probability": True}):
        model = seeded(solver, **first).fit(X, Y)
        scores, before = model.decision_function(X), state_of(model)
        labels_before = model.predict(X)
        model.set_params(**params)
        assert_fails(model.fit, samples, labels, weights)
        assert_same_state(model, before)
        if "decision_function_shape" in params:  # a parameter of predictions as well
            model.set_params(decision_function_shape="ovr")
        if "cache_size" in params:
            model.set_params(cache_size=200, n_jobs=None)
        assert_array_equal(model.decision_function(X), scores)
        assert_array_equal(model.predict(X), labels_before)
        if first.get("kernel") == "linear" and not model._normalised:
            assert model.coef_.shape[1] == 3
        if "probability" in first:
            assert model.predict_proba(X).shape == (24, 3)


@pytest.mark.sample(7)
@pytest.mark.parametrize(
    ("solver", "params", "samples", "labels", "weights"),
    [case for case in CASES if case.values[4] is None and case.values[0] not in (LASVC, ReducedSetSVC)],
)
def test_a_path_that_fails_leaves_the_model_of_a_fit(solver, params, samples, labels, weights):
    for model in (seeded(solver), seeded(solver).fit(X, Y)):
        path = model.fit_path(X, Y, path_values(solver))
        labels_of_path, before = path.predict_path(X), state_of(model)
        kept = dict(vars(path))
        if params.keys() & {"C", "nu"}:  # a path has its own values
            continue
        model.set_params(**params)
        assert_fails(model.fit_path, samples, labels, path_values(solver))
        assert_same_state(model, before)
        assert vars(path).keys() == kept.keys()
        assert all(value is kept[name] for name, value in vars(path).items())
        assert_array_equal(path.predict_path(X), labels_of_path)


@pytest.mark.parametrize(
    "solver",
    [solver for solver in SOLVERS if solver not in (AESVC, LASVC, ReducedSetSVC, *OF_VERSION_SPACE)],
)
def test_a_grid_goes_on_after_matrices_that_were_refused(solver):
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    models = [seeded(solver, kernel="precomputed") for _ in range(2)]
    grid, undisturbed = (solver.path_grid(models, Y, [0.5, 2.0]) for _ in range(2))
    for matrix in (K, np.sqrt(K)):
        for bad in (K[None] * np.nan, K[None, :5], K, K[None] + 0j, np.stack([K, K, K])):
            assert_fails(grid.fit, bad)
        grid.fit(matrix[None])
        undisturbed.fit(matrix[None])
        assert_fails(grid.fit, K[None] * np.nan)
        assert_array_equal(grid.predict(K[None]), undisturbed.predict(K[None]))
    assert_array_equal(grid.fitted().objective_, undisturbed.fitted().objective_)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_that_is_stopped_while_it_trains_leaves_the_estimator_as_it_was(solver, monkeypatch):
    def interrupted(self, problem):
        raise KeyboardInterrupt

    has_starts = "warm_start" in solver().get_params() and solver not in (LASVC, CoreSVC)
    options = {"warm_start": True} if has_starts else {}
    fitted, new = seeded(solver, **options).fit(X, Y), seeded(solver)
    before = state_of(fitted)
    with monkeypatch.context() as patched:
        patched.setattr({AESVC: Trainer, ReducedSetSVC: SMOSVC}.get(solver, solver), "_solve", interrupted)
        for model in (fitted, new):
            with pytest.raises(KeyboardInterrupt):
                model.set_params(**({"nu": 0.7} if solver is SoftBallSVC else {"C": 3.0})).fit(X + 1.0, Y)
    assert_same_state(fitted, before)
    with pytest.raises(NotFittedError):
        new.predict(X)
    assert_array_equal(fitted.predict(X), fitted.classes_[fitted.decision_function(X).argmax(axis=1)])


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_warning_that_is_an_error_leaves_the_estimator_as_it_was(solver):
    model = seeded(solver).fit(X, Y)
    before = state_of(model)
    model.set_params(**({"max_iter": 1} if solver is SoftBallSVC else {"C": 1e6, "max_iter": 1}))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning):
            model.fit(X, Y)
    assert_same_state(model, before)


def test_a_fit_that_succeeds_forgets_what_only_the_last_had():
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for probability in (False, True):
        model = SMOSVC(probability=probability).fit(frame, Y)
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(X, Y).predict(X)
        assert not hasattr(model, "feature_names_in_")


def test_a_parameter_that_is_set_after_a_fit_changes_no_prediction():
    model = SMOSVC(kernel="linear").fit(X, Y)
    scores = model.decision_function(X)
    for kernel in ("rbf", "precomputed", nan_kernel, "unknown"):
        model.set_params(kernel=kernel)
        assert_array_equal(model.decision_function(X), scores)
        assert model.coef_.shape == (3, 3)
    assert clone(model).set_params(kernel="linear").fit(X, Y).kernel == "linear"


def test_a_generator_advances_with_each_fit():
    generator = np.random.RandomState(0)
    model = MNSVC(random_state=generator).fit(X, Y)
    assert model.random_state is generator
    state = generator.get_state()[2]
    model.fit(X, Y)
    assert generator.get_state()[2] != state
