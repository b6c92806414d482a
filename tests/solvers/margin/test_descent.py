"""Paths of the minimal norm on many samples satisfy their stopping rule for the exact kernel."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from solvers import MNSVC, NewtonSVC
from solvers.margin import descent as rules
from solvers.margin import l1_path as large_path
from solvers.margin.descent import apply_labels, spread, takes_large_descent
from tests.solvers.peak_memory import peak_bytes
from tests.solvers.small_problems import CACHE, CS, SLACK, overlapping, problem_of

GAP = 1 - (1 - 1e-3) ** 4


@pytest.fixture(autouse=True)
def small_subproblems_are_large(monkeypatch):
    """Lower the sizes from which on samples are chosen."""
    monkeypatch.setattr(large_path, "MAX_DENSE", 100)
    monkeypatch.setattr(rules, "FEW_NEAR", 40)
    monkeypatch.setattr(rules, "MIN_FIRST", 60)


@pytest.fixture
def subproblems(monkeypatch):
    """Count the subproblems that are trained without a Gram matrix."""
    made, construct = [], rules.LargeHull.__init__
    monkeypatch.setattr(
        rules.LargeHull, "__init__", lambda self, *args: made.append(self) or construct(self, *args)
    )
    return made


def norm_and_gap(solution, X, y, gamma, k, penalties, bias=1.0):
    """Return ‖c‖² and the gap of the hull point of a path of two classes, in plain float64."""
    alpha = np.zeros(y.size)
    alpha[solution.problem.rows] = solution.weights[k].sum(axis=0)
    assert alpha.min() >= 0.0
    alpha, sign = alpha / alpha.sum(), np.where(y == 0, 1.0, -1.0)
    H = np.outer(sign, sign) * (np.exp(-gamma * cdist(X, X, "sqeuclidean")) + bias)
    g = (H + np.diag(1.0 / np.broadcast_to(penalties, y.size))) @ alpha
    return alpha @ g, 1.0 - (max(g.min(), 0.0) / (alpha @ g)) ** 2


SOLVERS = [
    MNSVC(),
    MNSVC(stopping="violation"),
    MNSVC(pair="mdm", eta=1.5),
    MNSVC(pair="gmdm", sampling="simple", subset=59),
    MNSVC(bias="none"),
    MNSVC(bias="average", tol=1e-5),
]


@pytest.mark.parametrize("gamma", [0.01, 4.0])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_a_path_ends_by_its_rule_for_the_kernel_in_float64(solver, gamma, trained, subproblems):
    X, y = overlapping()
    model = solver.__class__(**solver.get_params()).set_params(gamma=gamma, cache_size=CACHE, random_state=0)
    path = model.fit_path(X, y, CS)
    assert subproblems
    assert path.converged_.all()
    bias, epsilon = 0.0 if model.bias == "none" else 1.0, 1e-3 if model.tol == "auto" else model.tol
    promised = 1 - (1 - epsilon) ** (2 if model.stopping == "violation" else 4)
    for k in range(CS.size):
        square_norm, gap = norm_and_gap(trained[-1], X, y, gamma, k, CS[k], bias)
        assert gap <= path.duality_gap_[k] <= promised
        assert path.objective_[k] == pytest.approx(square_norm, rel=1e-9)


@pytest.mark.parametrize("bias", ["theoretic", "average", "none"])
def test_it_is_the_solution_of_the_dense_path(bias, subproblems):
    X, y = overlapping(n_classes=3)
    model = MNSVC(gamma=0.5, tol=1e-6, bias=bias, random_state=0)
    dense = model.fit_path(X, y, CS)
    assert not subproblems
    large = model.set_params(cache_size=1.2).fit_path(X, y, CS)
    assert len(subproblems) == 3
    np.testing.assert_allclose(large.objective_, dense.objective_, rtol=1e-5)
    np.testing.assert_allclose(large._solution.intercepts, dense._solution.intercepts, atol=1e-4)
    assert (large.predict_path(X) == dense.predict_path(X)).mean() > 0.999


def test_it_is_the_solution_of_newton():
    X, y = overlapping()
    path = MNSVC(gamma=0.5, tol=1e-6, cache_size=CACHE, random_state=0).fit_path(X, y, CS)
    exact = NewtonSVC(gamma=0.5, tol=1e-6).fit_path(X, y, CS)
    np.testing.assert_allclose(path.objective_, exact.objective_, rtol=1e-5)


@pytest.mark.parametrize("rows_of_block", [40, 150])
def test_a_block_of_few_samples_is_enough(rows_of_block, monkeypatch, trained, subproblems):
    """More samples have weight than the block can contain."""
    X, y = overlapping(n=400)
    monkeypatch.setattr(rules, "MIN_ROWS", rows_of_block)
    monkeypatch.setattr(rules, "SHARE_OF_BLOCK", 0.0)
    path = MNSVC(gamma=4.0, cache_size=1.2, random_state=0).fit_path(X, y, CS[:5])
    assert path.n_support_.min() > rows_of_block == subproblems[-1]._capacity
    assert path.converged_.all()
    for k in range(5):
        assert norm_and_gap(trained[-1], X, y, 4.0, k, CS[k])[1] <= GAP


def test_penalties_of_classes_are_the_ridge(trained, subproblems):
    X, y = overlapping()
    weighted = MNSVC(gamma=0.5, class_weight={0: 4.0, 1: 0.5}, cache_size=CACHE, random_state=0)
    path = weighted.fit_path(X, y, CS)
    assert subproblems
    assert path.converged_.all()
    for k in range(CS.size):
        penalties = CS[k] * np.where(y == 0, 4.0, 0.5)
        assert norm_and_gap(trained[-1], X, y, 0.5, k, penalties)[1] <= GAP


def test_numbers_depend_on_nothing_but_the_data_and_the_seed():
    X, y = overlapping()
    model = MNSVC(gamma=0.5, cache_size=CACHE, random_state=3)
    first, again = model.fit_path(X, y, CS), model.fit_path(sparse.csr_matrix(X), y, CS)
    np.testing.assert_array_equal(first._solution.weights, again._solution.weights)
    np.testing.assert_array_equal(first.n_iter_, again.n_iter_)
    other = model.set_params(random_state=4).fit_path(X, y, CS)
    assert (other.n_iter_ != first.n_iter_).any()


def test_steps_are_limited_and_counted(subproblems):
    X, y = overlapping()
    path = MNSVC(gamma=0.5, cache_size=CACHE, max_iter=7, eta=1.9, random_state=0).fit_path(X, y, CS)
    assert subproblems
    assert path.n_iter_.tolist() == [7] * CS.size
    assert not path.converged_.any()
    whole = MNSVC(gamma=0.5, cache_size=CACHE, eta=1.9, random_state=0).fit_path(X, y, CS)
    assert (whole.n_clipped_ > 0).all()
    assert (whole.n_clipped_ < whole.n_iter_).all()


def test_training_stays_within_its_cache():
    X, y = overlapping(n=1500)
    model = MNSVC(gamma=4.0, cache_size=3, random_state=0)
    model.fit_path(X[:700], y[:700], CS)  # compiled
    peak, path = peak_bytes(lambda: model.fit_path(X, y, CS))
    assert path.converged_.all()
    assert peak <= 3e6 + SLACK + 2 * 8 * X.size


def test_which_subproblems_are_trained_here():
    X, _ = overlapping()
    problem, usual = problem_of(X), MNSVC()._rules()
    assert takes_large_descent(problem, usual, 2e6)
    assert takes_large_descent(problem, usual._replace(max_tracked=100), 2e6), "of any size"
    assert not takes_large_descent(problem, usual, 1e8), "all kernel values fit"
    for name, value in (("exhaustive", False), ("track_margins", False), ("stopping", "meb")):
        assert not takes_large_descent(problem, MNSVC(**{name: value})._rules(), 2e6), name
    assert not takes_large_descent(problem_of(X[:100]), usual, 7e4), "a block of all is cheaper"
    assert not takes_large_descent(problem_of(X, kind=0), usual, 2e6), "linear"
    problem.class_start = np.array([0, 200, 400, 600])
    assert not takes_large_descent(problem, usual, 2e6), "all classes at once"


@pytest.mark.parametrize("bias", ["theoretic", "average", "none"])
def test_a_fit_is_a_path_of_one_C(bias, subproblems):
    X, y = overlapping(n=700)
    solver = MNSVC(C=4.0, gamma=2.0, bias=bias, cache_size=CACHE, random_state=0)
    path = solver.fit_path(X, y, [4.0])
    fitted = solver.fit(X, y)
    assert len(subproblems) == 2
    assert fitted.converged_
    assert fitted.stopping_ == "certified: gap <= 1 - (1 - tol)^4"
    assert (fitted.objective_, fitted.gap_) == (path.objective_[0], path.duality_gap_[0])
    assert fitted.n_iter_[0] == path.n_iter_[0]
    np.testing.assert_array_equal(fitted.decision_function(X) > 0.0, path.predict_path(X)[0] == 1)
    steps = fitted.n_iter_[0]
    again = solver.set_params(warm_start=True).fit(X, y).fit(X, y)
    assert again.n_iter_[0] < 0.1 * steps
    assert again.converged_


def test_a_fit_that_may_run_out_of_time_is_trained_by_rows_of_the_kernel(subproblems):
    X, y = overlapping(n=700)
    for given in ({"max_seconds": 100.0}, {"track_margins": False}, {"exhaustive": False}):
        MNSVC(gamma=2.0, cache_size=CACHE, random_state=0, **given).fit(X, y)
    assert not subproblems


def test_rows_are_spread_and_given_labels():
    rng = np.random.default_rng(0)
    full = rng.random((9, 9)).astype(np.float32)
    full += full.T
    sign = np.where(np.arange(9) < 4, 1.0, -1.0)
    signed = (np.outer(sign, sign) * full).astype(np.float32)
    places = np.array([0, 3, 5, 8])
    new = np.setdiff1d(np.arange(9), places)
    block = np.full((9, 12), np.nan, np.float32)
    block[:4, :4] = signed[np.ix_(places, places)]
    spread(block, places)
    block[new, :9] = full[new]
    apply_labels(block, new, 4, 9)
    np.testing.assert_array_equal(block[:, :9], signed)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("Cs", [[1.0, 1e17, 1e20, 1e100], [1e200, 1e300, 1.7e308]])
def test_weights_without_a_margin_are_those_of_the_hull(Cs, trained, subproblems):
    """Equal samples have both labels, so that ‖c‖² ends below its rounding."""
    X, y = np.ones((600, 3)), np.arange(600) % 2
    path = MNSVC(gamma=1.0, cache_size=CACHE, random_state=0, max_iter=20_000).fit_path(X, y, Cs)
    assert subproblems
    assert not path.converged_[-1]
    assert np.isfinite(trained[-1].weights).all()
    assert trained[-1].weights.min() >= 0.0
