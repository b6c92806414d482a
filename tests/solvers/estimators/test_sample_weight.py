"""A path with weights of samples is `fit` for each C, and integer weights are repeated rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel

from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC
from solvers.margin import descent, l1_path, subproblem
from tests.solvers.small_problems import overlapping

pytestmark = pytest.mark.sample(3)

CS = [0.02, 0.5, 4.0, 100.0]
SOLVERS = [
    SMOSVC(tol=1e-5),
    SMOSVC(loss="l2", tol=1e-5),
    NewtonSVC(tol=1e-7),
    NewtonSVC(tol=1e-7, multiclass="all_at_once"),
    NewtonSVC(tol=1e-7, bias="none"),
    MNSVC(tol=1e-5, random_state=0),
    MNSVC(tol=1e-5, random_state=0, multiclass="all_at_once"),
]
BALLS = [SphereSVC, BallSVC, CoreSVC]
ENGINES = {"one gram": 200, "a gram each": 0.06, "rows": 1e-4, "margin": 0.05}
"""Name of each way to train, and a `cache_size` in MB that leads to it for about 130 samples."""


@pytest.fixture
def engine(request, monkeypatch):
    """Return the `cache_size` of a way to train."""
    if request.param == "margin":
        monkeypatch.setattr(l1_path, "MAX_DENSE", 20)
        monkeypatch.setattr("solvers.estimators.smosvc.MAX_DENSE", 20)
        monkeypatch.setattr(subproblem, "MAX_WHOLE_BLOCK", 20)
        monkeypatch.setattr(subproblem, "FEW_NEAR", 10)
        monkeypatch.setattr(subproblem, "MIN_SUBSAMPLE", 20)
        monkeypatch.setattr(descent, "FEW_NEAR", 10)
        monkeypatch.setattr(descent, "MIN_FIRST", 20)
    return ENGINES[request.param]


def random_problem(seed):
    rng = np.random.default_rng(seed)
    X, y = overlapping(130, 4, n_classes=2 + seed % 2, seed=seed)
    order = rng.permutation(y.size)
    return X[order], y[order], rng


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.full) for s in range(2, 12))])
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_a_path_has_the_objectives_of_fit(solver, engine, seed):
    X, y, rng = random_problem(seed)
    weight = rng.uniform(0.2, 5.0, y.size) * (rng.random(y.size) < 0.9)
    model = solver._copy().set_params(gamma=rng.choice([0.3, 2.0]), cache_size=engine)
    path = model.fit_path(X, y, CS, weight)
    assert path.converged_.all()
    for k, C in enumerate(CS):
        fitted = model._copy().set_params(C=C).fit(X, y, weight)
        assert path.objective_[k] == pytest.approx(fitted.objective_, rel=10 * model.tol)
        assert np.mean(path.predict_path(X)[k] == fitted.predict(X)) > 0.98


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.full) for s in range(2, 12))])
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_integer_weights_are_repeated_rows(solver, engine, seed):
    X, y, rng = random_problem(100 + seed)
    times = rng.integers(0, 4, y.size)
    model = solver._copy().set_params(gamma=rng.choice([0.3, 2.0]), cache_size=engine)
    weighted = model.fit_path(X, y, CS, times)
    repeated = model.fit_path(np.repeat(X, times, axis=0), np.repeat(y, times), CS)
    assert_allclose(weighted.objective_, repeated.objective_, rtol=10 * model.tol)
    assert (weighted.predict_path(X) == repeated.predict_path(X)).mean() > 0.98


@pytest.mark.parametrize("loss", ["l1", "l2"])
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_weights_are_optimal_within_the_bounds_of_their_rows(engine, loss, trained):
    X, y, rng = random_problem(4)
    weight = rng.uniform(0.1, 10.0, y.size)
    SMOSVC(loss=loss, gamma=1.0, cache_size=engine).fit_path(X, y, CS, weight)
    solution, K = trained[-1], rbf_kernel(X, gamma=1.0)
    rows, n_first = solution.problem.rows, solution.problem.class_start[1]
    sign = np.where(np.arange(y.size) < n_first, 1.0, -1.0)
    for k, C in enumerate(CS):
        beta, limit = sign * solution.weights[k, 0], C * weight[rows]
        high = limit if loss == "l1" else np.full(y.size, np.inf)
        assert (np.abs(beta) <= high * (1 + 1e-15)).all()  # C / (1 / weight) has two roundings
        F = K[np.ix_(rows, rows)] @ beta - sign + (0.0 if loss == "l1" else beta / limit)
        is_full = np.abs(beta) >= high * (1 - 1e-15)
        can_grow = np.where(sign > 0, ~is_full, beta < 0.0)
        can_shrink = np.where(sign > 0, beta > 0.0, ~is_full)
        assert F[can_shrink].max() - F[can_grow].min() <= 1e-3


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_a_row_without_weight_is_left_out(solver):
    X, y, rng = random_problem(3)
    weight = np.where(rng.random(y.size) < 0.7, rng.uniform(0.5, 2.0, y.size), -1.0 * (rng.random() < 0.5))
    kept, model = weight > 0.0, solver._copy().set_params(kernel="precomputed")
    K = rbf_kernel(X, gamma=1.0)
    all_rows = model.fit_path(K, y, CS, weight)
    fewer = model.fit_path(K[np.ix_(kept, kept)], y[kept], CS, weight[kept])
    assert_array_equal(all_rows.objective_, fewer.objective_)
    assert_array_equal(all_rows.n_support_, fewer.n_support_)
    assert_array_equal(all_rows.predict_path(K), fewer.predict_path(K[:, kept]))


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_a_grid_has_the_weights_of_its_paths(solver):
    X, y, rng = random_problem(5)
    weight = rng.uniform(0.5, 2.0, y.size) * (rng.random(y.size) < 0.8)
    model = solver._copy().set_params(kernel="precomputed")
    Ks = np.stack([rbf_kernel(X, gamma=gamma) for gamma in (0.5, 4.0)])
    grid = model.path_grid([model, model], y, CS, weight)
    grid.fit(Ks)
    paths = [model.fit_path(K, y, CS, weight) for K in Ks]
    assert_array_equal(grid.fitted().objective_, np.concatenate([path.objective_ for path in paths]))
    assert_array_equal(grid.predict(Ks), [path.predict_path(K) for path, K in zip(paths, Ks, strict=True)])


@pytest.mark.parametrize("kind", BALLS)
def test_balls_take_equal_weights_only(kind):
    X, y, _ = random_problem(6)
    weight = np.full(y.size, 2.0)
    weight[::7] = 0.0
    model = kind(gamma=1.0, tol=1e-3, random_state=0)
    path = model.fit_path(X, y, CS, weight)
    doubled = model.fit_path(X[weight > 0.0], y[weight > 0.0], 2.0 * np.array(CS))
    assert_allclose(path.objective_, doubled.objective_, rtol=1e-9)
    weight[0] = 3.0
    for train in (lambda: model.fit(X, y, weight), lambda: model.fit_path(X, y, CS, weight)):
        with pytest.raises(ValueError, match="same C"):
            train()
