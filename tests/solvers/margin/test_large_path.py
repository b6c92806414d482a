"""Large subproblems are optimal for the exact kernel, whatever stores its values during training."""

import tracemalloc
from itertools import combinations

import numba
import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import lapack
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from solvers import SMOSVC, NewtonSVC
from solvers.estimators import fit_path as mixin
from solvers.gram.class_blocks import ClassBlocks
from solvers.kernels.tiles import add_products, error_of_values, fill_block, scaled_samples, tiles_of
from solvers.margin import dual_point, l1_path
from solvers.margin import subproblem as rules
from solvers.margin.l1_path import bytes_of_tiles, takes_large_path
from solvers.margin.newton_face import (
    FIRST_PROXIMITY,
    MAX_PROXIMITY,
    MIN_PROXIMITY,
    BlockPoint,
    _Planes,
    gather_packed,
    newton_on_face,
)
from solvers.newton.method_choice import _is_large
from tests.messages import assert_says
from tests.solvers.small_problems import CACHE, CS, SLACK, overlapping, problem_of


@pytest.fixture(autouse=True)
def small_subproblems_are_large(monkeypatch):
    """Lower the sizes from which on samples are chosen."""
    monkeypatch.setattr(l1_path, "MAX_DENSE", 100)
    monkeypatch.setattr("solvers.estimators.smosvc.MAX_DENSE", 100)
    monkeypatch.setattr(rules, "MAX_WHOLE_BLOCK", 50)
    monkeypatch.setattr(rules, "FEW_NEAR", 40)
    monkeypatch.setattr(rules, "MIN_SUBSAMPLE", 60)


def violation_and_objective(solution, X, y, gamma, k, weight=None, loss="l1"):
    """Return the largest violation of any pair, and the sum of the dual objectives, in plain float64."""
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    worst, objective, classes = 0.0, 0.0, solution.problem.classes
    of_row = np.zeros((solution.weights.shape[1], y.size))
    of_row[:, solution.problem.rows] = solution.weights[k]
    for i, j in combinations(range(classes.size), 2):
        rows = np.flatnonzero((y == classes[i]) | (y == classes[j]))
        sign = np.where(y[rows] == classes[i], 1.0, -1.0)
        beta = np.where(sign > 0, of_row[j - 1, rows], -of_row[i, rows])
        C = solution.problem.Cs[k] * (1.0 if weight is None else weight[rows])
        limit = C if loss == "l1" else np.inf
        low, high = np.where(sign > 0, 0.0, -limit), np.where(sign > 0, limit, 0.0)
        assert (low <= beta).all()
        assert (beta <= high).all()
        assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
        F = K[np.ix_(rows, rows)] @ beta - sign + (0.0 if loss == "l1" else beta / C)
        worst = max(worst, F[beta > low].max() - F[beta < high].min())
        objective += 0.5 * beta @ (F - sign)
    return worst, objective


@pytest.mark.parametrize("loss", ["l1", "l2"])
@pytest.mark.parametrize(("n_classes", "gamma", "tol"), [(2, 0.01, 1e-3), (2, 4.0, 1e-6), (3, 0.5, 1e-3)])
def test_a_path_is_optimal_for_the_kernel_in_float64(n_classes, gamma, tol, loss, trained):
    X, y = overlapping(n_classes=n_classes)
    path = SMOSVC(gamma=gamma, tol=tol, loss=loss, cache_size=CACHE).fit_path(X, y, CS)
    assert path.converged_.all()
    assert path.duality_gap_.max() <= tol
    for k in range(CS.size):
        worst, objective = violation_and_objective(trained[-1], X, y, gamma, k, loss=loss)
        assert worst <= tol
        assert path.objective_[k] == pytest.approx(objective, rel=1e-9)


def test_it_is_the_solution_of_the_dense_path_and_of_libsvm():
    X, y = overlapping(n_classes=3)
    dense = SMOSVC(gamma=0.5, tol=1e-5).fit_path(X, y, CS)
    large = SMOSVC(gamma=0.5, tol=1e-5, cache_size=CACHE).fit_path(X, y, CS)
    np.testing.assert_allclose(large.objective_, dense.objective_, rtol=2e-5)
    np.testing.assert_allclose(large._solution.intercepts, dense._solution.intercepts, atol=1e-3)
    assert (large.predict_path(X) == dense.predict_path(X)).mean() > 0.999
    for k in (0, 4, 7):
        peer = SVC(C=CS[k], gamma=0.5, tol=1e-5, decision_function_shape="ovo").fit(X, y)
        np.testing.assert_allclose(large._solution.intercepts[k], peer.intercept_, atol=1e-3)


@pytest.mark.parametrize("C", [0.25, 64.0])
def test_the_l2_loss_is_a_ridge_of_libsvms_kernel(C):
    X, y = overlapping()
    weight = np.random.default_rng(1).random(y.size) + 0.1
    model = SMOSVC(C=C, gamma=0.5, loss="l2", tol=1e-5, cache_size=CACHE).fit(X, y, weight)
    K = rbf_kernel(X, gamma=0.5)
    peer = SVC(C=1e9, kernel="precomputed", tol=1e-6).fit(K + np.diag(1.0 / (C * weight)), y)
    assert model.converged_
    alpha = np.zeros(y.size)
    alpha[peer.support_] = peer.dual_coef_[0]
    np.testing.assert_allclose(model.decision_function(X), K @ alpha + peer.intercept_, atol=2e-3)


def modified_l2(model, X, y, C):
    """Return ‖c‖² and the gap of the hull point of a model, in plain float64."""
    sign, alpha = np.where(y == 0, 1.0, -1.0), np.zeros(y.size)
    alpha[model.support_] = np.abs(model.dual_coef_[0]) / np.abs(model.dual_coef_[0]).sum()
    K = np.exp(-model.gamma * cdist(X, X, "sqeuclidean"))
    g = (np.outer(sign, sign) * (K + 1.0) + np.diag(np.broadcast_to(1.0 / C, y.size))) @ alpha
    return alpha @ g, 1.0 - (max(g.min(), 0.0) / (alpha @ g)) ** 2


@pytest.mark.parametrize(("gamma", "tol"), [(0.01, 1e-3), (0.5, 1e-6), (4.0, 1e-3)])
def test_newtons_solution_has_a_penalised_bias(gamma, tol):
    X, y = overlapping()
    path = NewtonSVC(gamma=gamma, tol=tol, cache_size=CACHE).fit_path(X, y, CS)
    assert path.converged_.all()
    assert "low_rank" not in "".join(path.method_)
    for k in (0, 3, 7):
        model = NewtonSVC(C=CS[k], gamma=gamma, tol=tol, cache_size=CACHE).fit(X, y)
        square_norm, gap = modified_l2(model, X, y, CS[k])
        assert gap <= model.gap_ <= tol
        assert model.objective_ == pytest.approx(square_norm, rel=1e-9)
        assert path.objective_[k] == pytest.approx(square_norm, rel=tol)
        assert np.abs(model.intercept_[0]) == pytest.approx(abs(model.dual_coef_.sum()), rel=1e-6)
    n_iter = model.n_iter_.sum()
    again = model.set_params(warm_start=True).fit(X, y).fit(X, y)
    assert again.converged_
    assert again.n_iter_.sum() <= 0.05 * n_iter


@pytest.mark.parametrize(("d", "gamma"), [(12, 0.5), (5, 0.1)], ids=["margin", "feature_space_first"])
def test_newton_counts_kernel_values_for_the_C_that_needs_them(d, gamma):
    X, y = overlapping(d=d)
    model = NewtonSVC(gamma=gamma, cache_size=CACHE)
    path = model.fit_path(X, y, CS)
    for n in (1, 4, 7):
        part = model.fit_path(X, y, CS[:n])
        np.testing.assert_array_equal(path.n_kernel_evals_[:n], part.n_kernel_evals_)


def test_newtons_penalties_of_samples_are_its_ridges():
    X, y = overlapping()
    weight = np.random.default_rng(1).random(y.size) + 0.1
    model = NewtonSVC(C=4.0, gamma=0.5, cache_size=CACHE).fit(X, y, weight)
    assert modified_l2(model, X, y, 4.0 * weight)[1] <= model.gap_ <= 1e-3


def test_zeros_of_dense_samples_take_no_memory():
    X, _ = overlapping()
    dense, csr = problem_of(X), problem_of(sparse.csr_matrix(X))
    assert bytes_of_tiles(dense) == bytes_of_tiles(csr)
    assert bytes_of_tiles(dense) == 8.0 * X.size + 12.0 * np.count_nonzero(X)


def test_newton_solves_other_subproblems_by_other_methods():
    X, _ = overlapping()
    problem = problem_of(X)
    assert not _is_large(problem, 1e8), "without a bias, no sum of weights is fixed"
    problem.bias = 1.0
    assert _is_large(problem, 1e8)
    problem.class_start = np.array([0, 200, 400, 600])
    assert not _is_large(problem, 1e8), "all classes at once"


@pytest.mark.parametrize(("gamma", "C", "method"), [(0.1, 4.0, "low_rank"), (40.0, 4.0, "pair_steps")])
def test_newton_tries_a_small_rank_before_the_large_path(gamma, C, method):
    X, y = overlapping(d=3)
    model = NewtonSVC(C=C, gamma=gamma, cache_size=CACHE).fit(X, y)
    assert method in model.method_
    assert ("low_rank" in model.method_) == (method == "low_rank")
    assert modified_l2(model, X, y, C)[1] <= model.gap_ <= 1e-3


def test_a_path_that_leaves_the_feature_space_goes_on_from_there():
    X, y = overlapping(d=5)
    path = NewtonSVC(gamma=0.1, cache_size=CACHE).fit_path(X, y, CS)
    assert path.converged_.all()
    assert "low_rank" in path.method_[0]
    assert "low_rank" not in path.method_[-1]
    for k in (0, len(CS) - 1):
        alone = NewtonSVC(C=CS[k], gamma=0.1, cache_size=CACHE).fit(X, y)
        assert path.objective_[k] == pytest.approx(alone.objective_, rel=2e-3)


@pytest.mark.parametrize("limit", [1, 3, 5])
def test_rounds_in_feature_space_count_as_iterations_of_the_large_path(limit):
    X, y = overlapping(d=3)
    with pytest.warns(UserWarning, match="max_iter"):
        model = NewtonSVC(C=64.0, gamma=0.1, cache_size=CACHE, max_iter=limit).fit(X, y)
    assert model.n_iter_ <= limit
    assert modified_l2(model, X, y, 64.0)[1] <= model.gap_
    assert not model.converged_


def test_the_feature_space_of_a_large_subproblem_stays_within_its_cache():
    rng = np.random.default_rng(0)
    X = rng.random((6000, 8))
    y = (X[:, 0] > 0.5).astype(int)
    X[:, 0] += 0.3 * y
    model = NewtonSVC(C=16.0, gamma=4.0, cache_size=CACHE)
    model.fit(X[::8], y[::8])  # compiled
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert model.converged_
    assert peak <= 1e6 * CACHE + SLACK + 2 * 8 * X.size


def test_a_fit_is_that_of_the_path():
    X, y = overlapping()
    path = SMOSVC(gamma=0.5, tol=1e-5, cache_size=CACHE).fit_path(X, y, CS)
    warm = SMOSVC(gamma=0.5, tol=1e-5, cache_size=CACHE, warm_start=True)
    for k in (0, 5, 7):
        cold = SMOSVC(C=CS[k], gamma=0.5, tol=1e-5, cache_size=CACHE).fit(X, y)
        peer = SVC(C=CS[k], gamma=0.5, tol=1e-5).fit(X, y)
        for model in (cold, warm.set_params(C=CS[k]).fit(X, y)):
            assert model.converged_
            assert model.objective_ == pytest.approx(path.objective_[k], rel=2e-5)
            assert_says(model.stopping_, "certified", "<= 1e-05")
            np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("rows_of_block", [40, 150])
def test_a_block_of_few_samples_is_enough(rows_of_block, monkeypatch, trained):
    """More weights are free than the block can contain."""
    X, y = overlapping(n=400)
    monkeypatch.setattr(rules.MarginBlock, "__init__", limited(rules.MarginBlock.__init__, rows_of_block))
    path = SMOSVC(gamma=4.0, cache_size=1.2).fit_path(X, y, CS[:5])
    assert path.n_support_.min() > rows_of_block
    assert path.converged_.all()
    for k in range(5):
        assert violation_and_objective(trained[-1], X, y, 4.0, k)[0] <= 1e-3


def test_rounds_on_small_blocks_of_any_free_samples_are_few(monkeypatch, trained):
    X, y = overlapping(n=400)
    monkeypatch.setattr(rules.MarginBlock, "__init__", limited(rules.MarginBlock.__init__, 100))
    rounds, minimise_on_block = [], rules.LargeSubproblem._minimise_on_block
    monkeypatch.setattr(
        rules.LargeSubproblem,
        "_minimise_on_block",
        lambda self, *limits: rounds.append(1) or minimise_on_block(self, *limits),
    )
    path = SMOSVC(gamma=0.5, loss="l2", cache_size=1.2).fit_path(X, y, [1.0, 16.0])
    assert path.n_support_.min() > 150
    assert path.converged_.all()
    assert violation_and_objective(trained[-1], X, y, 0.5, 1, loss="l2")[0] <= 1e-3
    assert len(rounds) <= 60  # 91 if the samples farthest from the margin are chosen


def limited(construct, rows):
    def constructed(self, *args):
        construct(self, *args)
        self.capacity = min(rows, self.capacity)

    return constructed


def test_penalties_of_classes_and_samples_bound_each_weight(trained):
    X, y = overlapping()
    weighted = SMOSVC(gamma=0.5, class_weight={0: 4.0, 1: 0.5}, cache_size=CACHE)
    path = weighted.fit_path(X, y, CS)
    assert path.converged_.all()
    for k in range(CS.size):
        assert violation_and_objective(trained[-1], X, y, 0.5, k, np.where(y == 0, 4.0, 0.5))[0] <= 1e-3
    weight = np.random.default_rng(1).random(y.size) + 0.1
    model = SMOSVC(C=4.0, gamma=0.5, tol=1e-5, cache_size=CACHE).fit(X, y, weight)
    peer = SVC(C=4.0, gamma=0.5, tol=1e-5).fit(X, y, weight)
    assert model.converged_
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=2e-3)


def test_numbers_depend_on_nothing_but_the_data():
    X, y = overlapping(n_classes=3)
    first = SMOSVC(gamma=0.5, cache_size=CACHE).fit_path(X, y, CS)
    again = SMOSVC(gamma=0.5, cache_size=CACHE).fit_path(sparse.csr_matrix(X), y, CS)
    np.testing.assert_array_equal(first._solution.weights, again._solution.weights)
    np.testing.assert_array_equal(first._solution.intercepts, again._solution.intercepts)
    alone = SMOSVC(gamma=0.5, cache_size=CACHE).fit(X, y)
    threads = SMOSVC(gamma=0.5, cache_size=CACHE, n_jobs=3).fit(X, y)
    np.testing.assert_array_equal(alone.dual_coef_, threads.dual_coef_)
    np.testing.assert_array_equal(alone.intercept_, threads.intercept_)


def test_training_stays_within_its_cache():
    X, y = overlapping(n=1500)
    model = SMOSVC(gamma=4.0, cache_size=3)
    model.fit(X[:700], y[:700])  # compiled
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert model.converged_
    assert peak <= 3e6 + SLACK + 2 * 8 * X.size


def test_limits_end_it_in_order():
    X, y = overlapping()
    path = SMOSVC(gamma=0.5, cache_size=CACHE, max_iter=5).fit_path(X, y, CS)
    assert path.n_iter_.max() <= 5
    assert (path.fit_status_ == 1).all()
    with pytest.warns(UserWarning, match="max_seconds"):
        model = SMOSVC(C=1024.0, gamma=4.0, cache_size=CACHE, max_seconds=1e-9).fit(X, y)
    assert model.fit_status_ == 2
    assert abs(model.dual_coef_.sum()) <= 1e-9 * np.abs(model.dual_coef_).sum()


@pytest.mark.parametrize("solver", [SMOSVC, NewtonSVC])
@pytest.mark.parametrize(
    ("n_classes", "kernel", "computed"), [(2, "rbf", 0), (2, "linear", 1), (8, "rbf", 1)]
)
def test_paths_with_a_large_subproblem_compute_no_gram_matrix_of_all(
    solver, n_classes, kernel, computed, monkeypatch
):
    """A Gram matrix fits but costs more than samples near the margin. Subproblems of 75 samples share one."""
    sizes = []
    original = mixin.kernel_block
    monkeypatch.setattr(mixin, "kernel_block", lambda *args: sizes.append(len(args[0])) or original(*args))
    X, _ = overlapping(n=300, d=20)
    fitted = solver(gamma=1.0, kernel=kernel).fit_path(X, np.arange(300) % n_classes, CS[2:4])
    assert sizes == [300] * computed
    assert fitted.converged_.all()


def test_which_subproblems_are_large():
    X, _ = overlapping()
    assert takes_large_path(problem_of(X), 1e8)
    assert takes_large_path(problem_of(sparse.csr_matrix(X)), 1e8)
    assert not takes_large_path(problem_of(X[:100]), 1e8), "a block of all is cheaper"
    assert not takes_large_path(problem_of(X, kind=0), 1e8), "linear"
    assert not takes_large_path(problem_of(X, C=np.inf), 1e8)
    assert not takes_large_path(problem_of(1e3 * X), 1e8), "products would cancel"
    assert not takes_large_path(problem_of(X), 1e5), "no memory for tiles"


@pytest.mark.parametrize(("d", "gamma"), [(3, 100.0), (30, 1.0), (300, 1e-4)])
def test_values_of_tiles_are_as_accurate_as_they_say(d, gamma):
    X, _ = overlapping(n=300, d=d)
    samples, every = scaled_samples(X, gamma), np.arange(300)
    tiles, weights = tiles_of(samples, every, d), np.random.default_rng(0).standard_normal(300)
    K = np.empty((300, 310), np.float64)
    fill_block(samples, every, every, tiles, 5, 1.0, K)
    wide = X.astype(np.longdouble)
    exact = np.exp(-gamma * ((wide[:, None] - wide) ** 2).sum(axis=2))
    assert np.abs(K[:, 5:305] + 1.0 - exact).max() <= error_of_values(samples) + 2.0**-53
    sums = np.ones(300)
    add_products(samples, every, weights, tiles, sums)
    np.testing.assert_allclose(sums, 1.0 + weights @ exact.astype(float), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("few_terms", [0, 64], ids=["products", "tiles"])
def test_blocks_of_classes_are_the_gram_matrix(few_terms, monkeypatch):
    monkeypatch.setattr("solvers.gram.class_blocks.FEW_TERMS", few_terms)
    X, _ = overlapping()
    problem = problem_of(X, gamma=0.5)
    for memory in (1e8, 0.0):
        blocks = ClassBlocks(X, problem.kernel, memory)
        for _ in range(2):
            K, error = blocks.gram(problem)
            np.testing.assert_allclose(K, rbf_kernel(X, gamma=0.5), rtol=0.0, atol=1e-13)
            assert error <= 1e-11


def face(box, ridge, seed=0):
    """Return a point in a box, many of whose weights are free, and values of the kernel less 1."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((120, 5)), np.arange(120) % 2 * 2.0 - 1.0
    K = rbf_kernel(X, gamma=2.0) + ridge * np.eye(120)
    beta = rng.permutation(np.repeat([-0.5, 0.5], 60)) * box
    low, high = np.full(120, -box), np.full(120, box)
    beta[:5], low[:5] = high[:5], 0.0
    values = np.zeros((120, 128), np.float32)
    values[:, :120] = rbf_kernel(X, gamma=2.0) - 1.0
    return K, values, y, beta, low, high, K @ beta - y


@pytest.mark.parametrize("proximity", [1e-9, 1e-4, 1e-2])
@pytest.mark.parametrize(("box", "ridge"), [(0.01, 0.0), (0.3, 0.0), (1e6, 0.0), (1e6, 0.5)])
def test_newton_across_bounds_is_feasible_and_lowers_the_objective(box, ridge, proximity):
    K, values, y, beta, low, high, F = face(box, ridge)
    total, before = beta.sum(), 0.5 * beta @ (F - y)
    point = BlockPoint(values, 1.0, np.full(120, ridge), F, beta, low, high)
    moved, _ = newton_on_face(point, 1e-3, proximity)
    assert moved
    assert (low <= beta).all()
    assert (beta <= high).all()
    assert beta.sum() == pytest.approx(total, abs=1e-9 * box)
    np.testing.assert_allclose(
        F - F.mean(), (K @ beta - y) - (K @ beta - y).mean(), atol=1e-4 * max(1.0, box)
    )
    assert 0.5 * beta @ (K @ beta - 2 * y) < before
    if box > 1.0 and proximity < 1e-8:  # no bound interferes with the minimum over the free weights
        free = (low < beta) & (beta < high)
        assert np.ptp((K @ beta - y)[free]) < 1e-6 * box


@pytest.mark.parametrize("seed", range(8))
def test_all_weights_at_bounds_but_for_roundings_are_a_solution(seed):
    """With balanced classes and a small C all weights are at C, if the sums of both classes round alike."""
    rng = np.random.default_rng(seed)
    X = rng.random((int(rng.integers(200, 900)), 8))
    y = X[:, 0] + 0.3 * rng.standard_normal(len(X)) > rng.uniform(0.2, 0.8)
    weight = rng.uniform(0.1, 3.0, len(X)) if seed % 2 else None
    fitted = SMOSVC(gamma=0.01, C=0.2, class_weight="balanced", cache_size=CACHE).fit(
        X, y, sample_weight=weight
    )
    assert fitted.converged_
    assert np.abs(fitted.dual_coef_.sum()) < 1e-9


@pytest.mark.parametrize("C", [1e8, 1e10, 1e12, 1e15])
def test_bounds_that_no_weight_reaches_are_as_none(C):
    """The rounding at a bound does not grow with bounds that no weight reaches."""
    X, y = overlapping(seed=3)
    X = X + 0.1 * np.random.default_rng(0).random(X.shape)  # no sample occurs with both labels
    free, bounded = (SMOSVC(C=c, gamma=8.0, cache_size=CACHE).fit(X, y) for c in (1e6, C))
    assert np.abs(free.dual_coef_).max() < 1e4
    np.testing.assert_allclose(bounded.objective_, free.objective_, rtol=1e-6)
    np.testing.assert_allclose(bounded.intercept_, free.intercept_, atol=1e-3)
    assert abs(bounded.dual_coef_.sum()) < 1e-12 * np.abs(bounded.dual_coef_).sum()


def test_unequal_penalties_leave_the_weights_of_the_lighter_class():
    """In a box as wide as that of the heavier class, all of these weights would be within its rounding."""
    X, y = overlapping(seed=4)
    weight = {0: 1e-6, 1: 1e6}
    model = SMOSVC(C=4.0, gamma=0.5, class_weight=weight, cache_size=CACHE).fit(X, y)
    peer = SVC(C=4.0, gamma=0.5, class_weight=weight).fit(X, y)
    assert model.converged_
    np.testing.assert_allclose(model.dual_coef_.sum(), 0.0, atol=1e-15)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-3)


@pytest.mark.parametrize(("loss", "C"), [("l1", 4.0), ("l1", 0.05), ("l2", 4.0), ("newton", 4.0)])
def test_whenever_time_is_over_what_is_said_of_the_model_holds(loss, C, monkeypatch):
    """Time ends at each reading of the clock in turn, also while the gradient of all samples is computed."""
    X, y = overlapping(seed=5)
    K, sign = rbf_kernel(X, gamma=0.5), np.where(y == 1, 1.0, -1.0)
    ridge = 0.0 if loss == "l1" else 1.0 / C
    monkeypatch.setattr(dual_point, "ROWS_AT_A_TIME", 32)
    monkeypatch.setattr(dual_point, "VALUES_BEFORE_CHECK", 1)
    make = NewtonSVC if loss == "newton" else lambda **given: SMOSVC(loss=loss, **given)
    weights, is_done = [], False
    while not is_done:
        looks = iter([0.0] * len(weights))
        for module in (rules, dual_point):
            monkeypatch.setattr(module, "clock", lambda looks=looks: next(looks, np.inf))
        model = make(C=C, gamma=0.5, cache_size=CACHE, max_seconds=1e6).fit(X, y)
        is_done = model.fit_status_ == 0
        beta = np.zeros(y.size)
        beta[model.support_] = model.dual_coef_[0]
        weights.append(np.abs(beta).sum())
        assert (sign * beta >= 0.0).all()
        assert (np.abs(beta) <= (C if loss == "l1" else np.inf)).all()
        assert is_done or model.fit_status_ == 2
        level = K @ beta
        np.testing.assert_allclose(model.decision_function(X), level + model.intercept_, atol=1e-9)
        if loss == "newton":
            assert model.intercept_ == pytest.approx(beta.sum())
            continue
        assert abs(beta.sum()) <= 1e-9 * weights[-1]
        dual = weights[-1] - 0.5 * beta @ (level + ridge * beta)
        assert model.objective_ == pytest.approx(-dual)
        slack = np.maximum(0.0, 1.0 - sign * (level + model.intercept_))
        loss_of_slack = C * slack.sum() if loss == "l1" else 0.5 * C * (slack**2).sum()
        primal = 0.5 * beta @ level + loss_of_slack
        assert not model.gap_ < (primal - dual) / primal - 1e-12  # the gap may be NaN
    assert len(set(weights)) > 3


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize(("n_dropped", "n_new"), [(0, 0), (2, 0), (0, 3), (3, 2)])
def test_rows_that_are_nearly_those_of_a_factor_are_solved_by_it(shift, n_dropped, n_new):
    rng = np.random.default_rng(n_dropped)
    X = rng.random((160, 3))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1)).astype(np.float32)
    ridge = rng.uniform(1e-4, 1e-3, 160)
    planes, free = _Planes(K, shift, ridge), np.arange(160) % 4 != 0
    planes.minimum(free, rng.standard_normal(120), 0.0)
    free[np.flatnonzero(free)[7 : 7 + n_dropped]] = False
    free[4 * np.arange(n_new)] = True
    n = np.count_nonzero(free)
    pull, factor = rng.standard_normal(n), planes._factor
    x = planes.minimum(free, pull, 2.5)
    assert planes._factor is factor
    assert x.sum() == pytest.approx(2.5, abs=1e-6)
    left = (K.astype(float)[free][:, free] + shift) @ x + ridge[free] * x - pull
    assert np.ptp(left) < 1e-9 * np.abs(x).max()


@pytest.mark.parametrize("box", [0.01, 0.3, 7.0, 1e3])
def test_newton_across_bounds_ends_at_the_minimum_in_the_box(box):
    """Steps alone lead there: weights at bounds are released if their gradient requires it."""
    K, values, y, beta, low, high, F = face(box, ridge=1e-3, seed=1)
    point, proximity = BlockPoint(values, 1.0, np.full(120, 1e-3), F, beta, low, high), FIRST_PROXIMITY
    for _ in range(60):
        moved, proximity = newton_on_face(point, 1e-4, proximity)
        assert MIN_PROXIMITY <= proximity <= MAX_PROXIMITY
        assert ((low <= beta) & (beta <= high)).all()
        level = K @ beta - y
        violation = level[beta > low].max() - level[beta < high].min()
        if violation < 2e-4 or not moved:
            break
    assert violation < 1e-3


def test_samples_just_inside_the_margin_get_no_more_weight_than_some_of_them_have():
    """At a large C, the low tolerance of the subsample may put most samples just inside the margin."""
    X, _ = overlapping(n=200)
    problem, signs = problem_of(X), np.repeat([1.0, -1.0], 100)
    samples = scaled_samples(problem.X, 1.0)
    subproblem = rules.LargeSubproblem(samples, X.shape[1], problem.rows.astype(np.int64), signs, 1e8)
    subproblem.set_C(np.full(200, 64.0))
    margins = np.where(np.arange(200) % 100 < 50, -1e-3, 1.0) + 1e-6 * np.arange(200)
    classes = [np.arange(100), np.arange(100, 200)]
    for largest, n_first in ((64.0 * 7.5, 7.5), (1e6, 50.0)):
        beta = subproblem._at_bounds(margins, classes, largest)
        np.testing.assert_allclose((beta[:100].sum(), beta[100:].sum()), (64 * n_first, -64 * n_first))
        assert np.count_nonzero(np.abs(beta) == 64.0) == 2 * int(n_first)
        assert (margins[beta != 0.0] < 0.0).all()


def test_tiles_use_the_widest_vectors():
    samples, rows = scaled_samples(np.ones((2, 3)), 1.0), np.arange(2)
    tiles = tiles_of(samples, rows, 3)
    compiled = numba.njit(error_model="numpy")(add_products.py_func)  # cached code cannot be inspected
    compiled(samples, rows, np.ones(2), tiles, np.zeros(2))
    (code,) = compiled.inspect_llvm().values()
    assert '"prefer-vector-width"="512"' in code


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7, 50])
def test_packed_matrices_are_those_of_lapack(n):
    rng = np.random.default_rng(n)
    K, rows, ridge = rng.random((60, 64)).astype(np.float32), rng.permutation(60)[:n], rng.random(n)
    K[:, :60] += K[:, :60].T
    packed = np.full(n * (n + 1) // 2, np.nan)
    gather_packed(K, rows, 0.5, ridge, packed)
    whole = K[np.ix_(rows, rows)].astype(float) + 0.5 + np.diag(ridge)
    expected, _ = lapack.dtrttf(whole, transr="N", uplo="L")
    np.testing.assert_array_equal(packed, expected)


def test_dense_and_sparse_samples_are_the_same():
    X = np.random.default_rng(0).random((50, 7)) - 0.5
    X[X < 0.0], X[3], X[:, 5] = 0.0, 0.0, 0.0
    for dense, of_sparse in zip(
        scaled_samples(X, 2.0), scaled_samples(sparse.csr_matrix(X), 2.0), strict=True
    ):
        np.testing.assert_array_equal(dense, of_sparse)
        assert dense.dtype == of_sparse.dtype
    np.testing.assert_allclose(scaled_samples(X, 2.0).halves, 2.0 * (X**2).sum(axis=1))
