"""Large subproblems are optimal for the exact kernel, whatever stores its values during training."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from solvers import SMOSVC, NewtonSVC
from solvers.estimators import fit_path as mixin
from solvers.kernels.tiles import WIDTH
from solvers.margin.l1_path import SAMPLES, bytes_of_tiles, samples_of, takes_large_path
from tests.messages import assert_says
from tests.solvers.peak_memory import peak_bytes
from tests.solvers.small_problems import CACHE, CS, SLACK, overlapping, problem_of, violation_and_objective


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


def test_zeros_of_dense_samples_take_no_memory():
    X, _ = overlapping()
    dense, csr = problem_of(X), problem_of(sparse.csr_matrix(X))
    assert bytes_of_tiles(dense) == bytes_of_tiles(csr)
    assert bytes_of_tiles(dense) == 8.0 * X.size + 16.0 * np.count_nonzero(X)


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


def test_a_warm_start_of_the_l2_loss_keeps_weights_above_C():
    X, y = overlapping()
    model = SMOSVC(C=0.25, gamma=0.5, loss="l2", cache_size=CACHE, warm_start=True).fit(X, y)
    assert np.abs(model.dual_coef_).max() > model.C  # a slack above 1
    assert model.n_iter_.sum() > 0
    assert model.fit(X, y).n_iter_.sum() == 0


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
    peak, _ = peak_bytes(lambda: model.fit(X, y))
    assert model.converged_
    assert peak <= 3e6 + SLACK + 2 * 8 * X.size


def test_features_that_fill_most_of_the_cache_leave_a_small_block():
    X, y = overlapping(n=1500, d=40)
    problem = problem_of(X)
    megabytes = bytes_of_tiles(problem) / 0.9e6
    assert takes_large_path(problem, 1e6 * megabytes)
    model = SMOSVC(gamma=1.0, tol=1e-5, cache_size=megabytes)
    model.fit(X[:700], y[:700])  # compiled
    peak, _ = peak_bytes(lambda: model.fit(X, y))
    assert peak <= 1e6 * megabytes + SLACK + 2 * 8 * X.size
    peer = SVC(gamma=1.0, tol=1e-5).fit(X, y)
    assert model.converged_
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=2e-3)


@pytest.mark.parametrize("solver", [SMOSVC, NewtonSVC])
def test_many_features_that_fill_most_of_the_cache_leave_room_for_all_else(solver):
    """Float32 values, tiles of a subsample and tiles of new rows are small beside few features only."""
    X = sparse.random(1500, 3000, density=0.02, format="csr", random_state=0)
    score = X @ np.random.default_rng(0).standard_normal(3000)
    y = score > np.median(score)
    megabytes = bytes_of_tiles(problem_of(X)) / 0.94e6
    model = solver(gamma=0.05, tol=0.1, cache_size=megabytes)
    model.fit(X[:700], y[:700])  # compiled
    peak, _ = peak_bytes(lambda: model.fit(X, y))
    assert model.converged_
    one_tile = 8 * WIDTH * X.shape[1]
    assert peak <= 1e6 * megabytes + one_tile + SLACK + 2 * 12 * X.nnz


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


def test_subproblems_of_a_training_share_its_scaled_samples():
    X, _ = overlapping()
    first = problem_of(X)
    second = replace(first, rows=first.rows[::2])
    assert samples_of(second) is samples_of(first)
    other = replace(second, X=X + 1.0)
    assert_array_equal(samples_of(other).values, samples_of(problem_of(X + 1.0)).values)
    wider = replace(second, kernel=first.kernel._replace(gamma=4.0))
    assert_array_equal(samples_of(wider).halves, 4.0 * samples_of(problem_of(X)).halves)


def test_a_subproblem_that_is_not_large_has_the_memory_of_the_shared_samples():
    X, _ = overlapping()
    first = problem_of(X)
    samples_of(first)
    small = replace(first, rows=first.rows[:100])
    assert not takes_large_path(small, 1e8)
    assert SAMPLES not in small.shared


def test_which_subproblems_are_large():
    X, _ = overlapping()
    assert takes_large_path(problem_of(X), 1e8)
    assert takes_large_path(problem_of(sparse.csr_matrix(X)), 1e8)
    assert not takes_large_path(problem_of(X[:100]), 1e8), "a block of all is cheaper"
    assert not takes_large_path(problem_of(X, kind=0), 1e8), "linear"
    assert not takes_large_path(problem_of(X, C=np.inf), 1e8)
    assert not takes_large_path(problem_of(1e3 * X), 1e8), "products would cancel"
    assert not takes_large_path(problem_of(X), 1e5), "no memory for tiles"


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
