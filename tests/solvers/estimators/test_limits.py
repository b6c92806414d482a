"""Limits of a fit, what it says when it ends, and stopping rules that a kernel has no use for."""

import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC
from solvers.estimators import geometric
from solvers.hull import row_training
from solvers.hull.state import EVALUATIONS
from tests.messages import raises, warns
from tests.solvers.small_problems import checkers

ALL = [MNSVC(), MNSVC(multiclass="all_at_once"), SphereSVC(), BallSVC(), CoreSVC(), SMOSVC(), NewtonSVC()]
CS = [0.25, 4.0, 64.0]


def seeded(model, **params):
    return clone(model).set_params(
        **params, **({"random_state": 0} if "random_state" in model.get_params() else {})
    )


def iterations_of(model, monkeypatch, X, y):
    """Return the iterations of every subproblem that a fit trains, including those of its calibration."""
    n_iters = []
    solve = type(model)._solve

    def recording(self, problem):
        solution = solve(self, problem)
        n_iters.append(solution.n_iter)
        return solution

    with monkeypatch.context() as patched:
        patched.setattr(type(model), "_solve", recording)
        model.fit(X, y)
    return n_iters


@pytest.mark.sample(5)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 7, 200])
@pytest.mark.parametrize("probability", [False, True])
@pytest.mark.parametrize("model", ALL, ids=str)
def test_max_iter_bounds_the_whole_fit(monkeypatch, iris, model, probability, max_iter):
    X, y = iris
    model = seeded(model, C=64.0, max_iter=max_iter, probability=probability)
    n_iters = iterations_of(model, monkeypatch, X, y)
    trainings = 6 if probability else 1
    assert sum(n_iters) <= max(max_iter, trainings)  # each training has at least one iteration
    assert model.n_iter_.sum() <= max(1, max_iter // trainings)
    assert np.isin(model.predict(X), y).all()
    if probability:
        assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.sample(5)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cache_size", [200, 0.06, 0.001])
@pytest.mark.parametrize("max_iter", [7, 100])
@pytest.mark.parametrize("solver", [MNSVC, NewtonSVC, SMOSVC])
def test_max_iter_bounds_every_training_of_a_path(solver, max_iter, cache_size):
    X, y = load_digits(return_X_y=True)
    path = solver(gamma=0.001, max_iter=max_iter, cache_size=cache_size).fit_path(X[:300], y[:300], CS)
    assert path.n_iter_.max() <= max_iter
    assert (path.fit_status_[~path.converged_] == 1).all()
    assert not path.converged_.all()


def test_a_limit_that_is_not_reached_changes_nothing(iris):
    X, y = iris
    for model in ALL:
        free = seeded(model, gamma=1.0).fit(X, y)
        bounded = seeded(model, gamma=1.0, max_iter=10**7, max_seconds=3600).fit(X, y)
        np.testing.assert_array_equal(bounded.dual_coef_, free.dual_coef_)
        assert bounded.converged_


@pytest.fixture(scope="module")
def endless():
    """Noise has 20 classes and 190 subproblems, and each of them takes long."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((4000, 20)), rng.integers(0, 20, 4000)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        MNSVC(),
        pytest.param(MNSVC(probability=True), marks=pytest.mark.full),
        BallSVC(tol=1e-9, probability=True),
        SMOSVC(tol=1e-9, probability=True),
        NewtonSVC(tol=1e-12),
        pytest.param(NewtonSVC(tol=1e-12, probability=True), marks=pytest.mark.full),
    ],
    ids=str,
)
def test_max_seconds_bound_the_whole_fit(endless, model):
    """The limit is in CPU seconds, which other processes do not use up."""
    X, y = endless
    model = seeded(model, C=1e8, gamma=0.01, max_seconds=0.5)
    clone(model).set_params(max_seconds=0.01).fit(X[:400], y[:400])  # compile
    with threadpool_limits(1):
        started = time.process_time()
        model.fit(X, y)
        assert time.process_time() - started < 0.5 + 3.0
    # Newton and SMO may reach the limit of rounding in some subproblems, and status 4 is then the larger one.
    assert model.fit_status_ in ((2, 4) if isinstance(model, NewtonSVC | SMOSVC) else (2,))
    assert np.isfinite(model.decision_function(X[:10])).all()


@pytest.mark.parametrize("model", ALL, ids=str)
def test_fit_status_is_a_whole_number(iris, model):
    X, y = iris
    fitted = seeded(model).fit(X, y)
    assert type(fitted.fit_status_) is int
    assert fitted.fit_status_ == 0
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        stopped = seeded(model, C=64.0, max_iter=2).fit(X, y)
    assert type(stopped.fit_status_) is int
    assert stopped.fit_status_ == 1


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("solver", [MNSVC, NewtonSVC, SMOSVC])
def test_fit_status_of_a_path_is_an_array_of_whole_numbers(iris, solver, kernel):
    X, y = iris
    K = X if kernel == "rbf" else rbf_kernel(X)
    path = solver(kernel=kernel).fit_path(K, y, CS)
    assert isinstance(path.fit_status_, np.ndarray)
    assert path.fit_status_.dtype.kind == "i"
    assert path.fit_status_.tolist() == [0, 0, 0]


def test_newton_tells_its_methods_apart_from_its_status(iris):
    X, y = iris
    model = NewtonSVC().fit(X, y)
    assert set(model.method_.split("+")) <= {"low_rank", "pair_steps", "support_newton"}
    assert all("pair_steps" in method for method in NewtonSVC().fit_path(X, y, CS).method_)


def duplicates():
    rng = np.random.default_rng(0)
    return np.round(rng.normal(size=(60, 2))), rng.integers(0, 2, 60)


@pytest.mark.parametrize(
    ("solver", "C"),
    [(MNSVC, 1e16), (MNSVC, 1e20), (SphereSVC, 1e16), (BallSVC, 1e16), (NewtonSVC, 1e16), (NewtonSVC, 1e20)],
)
def test_a_stall_by_rounding_does_not_blame_a_positive_definite_kernel(solver, C):
    X, y = duplicates()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = seeded(solver(), C=C, gamma=1.0).fit(X, y)
    messages = [str(warning.message) for warning in caught]
    assert model.fit_status_ == 4
    assert any("no more progress" in message for message in messages)
    assert not any("positive definite" in message for message in messages)


@pytest.mark.parametrize("solver", [MNSVC, NewtonSVC])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stall_of_a_path_by_rounding_is_told_apart(solver, dtype):
    X, y = duplicates()
    path = solver(kernel="precomputed").fit_path(rbf_kernel(X).astype(dtype), y, [1.0, 1e20])
    assert path.fit_status_.tolist() == [0, 4]


@pytest.mark.parametrize("solver", [MNSVC, SMOSVC, NewtonSVC])
def test_an_indefinite_kernel_is_named_as_the_cause(solver):
    K = np.random.default_rng(0).normal(size=(60, 60))
    K = K + K.T
    params = {"loss": "l2"} if solver is SMOSVC else {}
    with warns(ConvergenceWarning, "not positive definite"):
        model = solver(C=1e6, kernel="precomputed", **params).fit(K, np.arange(60) % 2)
    assert model.fit_status_ == 3


def test_a_path_refuses_a_limit_of_the_time(iris):
    for solver in (MNSVC, NewtonSVC):
        with pytest.raises(ValueError, match="fit_path takes no max_seconds"):
            solver(max_seconds=5).fit_path(*iris, CS)


@pytest.mark.parametrize("stopping", ["meb", "adjmn"])
def test_rules_of_the_ball_refuse_a_kernel_whose_diagonal_varies(iris, stopping):
    X, y = iris
    model = MNSVC(stopping=stopping, random_state=0)
    for kernel in ("linear", "poly", "sigmoid"):
        varying = clone(model).set_params(kernel=kernel)
        with raises(ValueError, f"stopping='{stopping}'", "k(x, x)", "stopping='mn'"):
            varying.fit(X, y)
        with pytest.raises(ValueError, match=r"same k\(x, x\)"):
            varying.fit_path(X, y, CS)
    with pytest.raises(ValueError, match=r"same k\(x, x\)"):
        clone(model).set_params(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match=r"same k\(x, x\)"):
        clone(model).set_params(kernel=lambda A, B: A @ B.T).fit(X, y)
    with pytest.raises(ValueError, match=r"same C .*\b1 to 2\b"):
        model.fit(X, y, sample_weight=1.0 + y % 2)


@pytest.mark.parametrize("stopping", ["meb", "adjmn"])
def test_rules_of_the_ball_take_samples_on_a_ball(iris, stopping):
    X, y = iris
    X = X / np.linalg.norm(X, axis=1)[:, None]
    model = MNSVC(stopping=stopping, random_state=0)
    for kernel in ("linear", "rbf", "imq"):
        assert clone(model).set_params(kernel=kernel).fit(X, y).score(X, y) > 0.9
    half = np.where(np.arange(len(y)) < 75, 0.0, 2.0)
    half[::10] = 2.0
    assert model.fit(X, y, sample_weight=half).converged_


@pytest.mark.parametrize("solver", [SphereSVC, BallSVC, CoreSVC])
@pytest.mark.parametrize("params", [{"kernel": "linear"}, {"kernel": "poly", "coef0": 0.0}], ids=str)
def test_a_row_of_zeros_does_not_fail_a_batch(iris, solver, params):
    X, y = iris
    model = solver(random_state=0, **params).fit(X, y)
    batch = np.vstack([X[:5], np.zeros(X.shape[1]), X[5:10]])
    expected = model.decision_function(X[:10])
    scores = model.decision_function(batch)
    np.testing.assert_allclose(np.delete(scores, 5, axis=0), expected, rtol=1e-12)
    assert np.isfinite(scores[5]).all()
    assert model.predict(batch)[5] in model.classes_
    two = solver(random_state=0, **params).fit(X[:100], y[:100])
    assert two.decision_function(np.zeros((1, X.shape[1])))[0] == two.intercept_[0]


def test_beyond_50_000_samples_the_gap_bounds_or_is_unknown(full_size):
    rng = np.random.default_rng(0)
    X = rng.random((52_000, 2))
    y = (X.sum(axis=1) > 1).astype(int)
    for solver in (MNSVC, SphereSVC) if full_size else (MNSVC,):
        model = solver(C=64.0, gamma=1.0, random_state=0).fit(X, y)
        signs = np.where(y == 1, 1.0, -1.0)
        alpha = np.zeros(len(y))
        alpha[model.support_] = np.abs(model.dual_coef_[0])
        g = (signs * model.decision_function(X) + alpha / 64.0) * model.objective_
        true_gap = 1.0 - (max(g.min(), 0.0) / model.objective_) ** 2
        assert np.isnan(model.gap_) or model.gap_ >= true_gap - 1e-9


@pytest.mark.parametrize("solver", [BallSVC, SphereSVC])
def test_margins_of_all_are_kept_once_draws_have_cost_more(solver, monkeypatch):
    monkeypatch.setattr(geometric, "TRACK_ALL", 300)
    switched = []
    track_all = row_training.track_all
    monkeypatch.setattr(
        row_training, "track_all", lambda hull, *given: switched.append(hull) or track_all(hull, *given)
    )
    monkeypatch.setattr(row_training, "WORK_BEFORE_PAUSE", 100_000)
    X, y = checkers(n=1500, seed=0)
    model = solver(C=16.0, gamma=16.0, random_state=0).fit(X, y)
    assert len(switched) == 1
    assert model.converged_
    assert model.stopping_.startswith("certified: every sample")
    assert model.n_kernel_evals_ > switched[0].counts[EVALUATIONS]
    again = solver(C=16.0, gamma=16.0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, again.dual_coef_)
    solver(C=16.0, gamma=16.0, random_state=0, track_margins=False).fit(X, y)
    solver(C=16.0, gamma=16.0, random_state=0, cache_size=0.01).fit(X, y)
    assert len(switched) == 2, "what is not asked for, or does not fit, is not kept"
