"""Paths of the ball solvers take the same steps as fits, for every source of kernel values."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics.pairwise import rbf_kernel

import solvers
from solvers import MNSVC, BallSVC, CoreSVC, SphereSVC
from solvers.hull.draws import scan_tracked

# There are no duplicates, because a fit and a path may choose different ones.
X3, Y3 = make_classification(
    110, 4, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, flip_y=0.1, random_state=0
)
BALLS = [SphereSVC, BallSVC, CoreSVC]
CS = 4.0 ** np.arange(-2, 4)


@pytest.mark.parametrize(
    "solver",
    [
        MNSVC(pair="mdm"),
        SphereSVC(),
        SphereSVC(eta=1.5, bias="average"),
        SphereSVC(draws=20, subset=1, exhaustive=False),
        BallSVC(),
        BallSVC(draws=30, subset=7, exhaustive=False, sampling="simple"),
        BallSVC(multiclass="all_at_once"),
        CoreSVC(),
        CoreSVC(draws=30, subset=7, exhaustive=False, bias="none"),
        SphereSVC(draws=200, subset=1, exhaustive=False, track_margins=False),
        BallSVC(track_margins=False),
    ],
    ids=str,
)
def test_a_path_of_one_C_takes_the_steps_of_a_fit(solver):
    for C in (0.25, 4.0):
        solver.set_params(C=C, gamma=0.2, random_state=3)
        model, path = solver.fit(X3, Y3), solver.fit_path(X3, Y3, [C])
        # A pair has the same g after its step, and rounding decides which of the two is next. Without pairs
        # the steps are the same.
        is_same = isinstance(solver, BallSVC)
        assert path.n_iter_ == pytest.approx(model.n_iter_.sum(), rel=0 if is_same else 0.1)
        assert path.n_clipped_ == pytest.approx(model.n_clipped_.sum(), rel=0.2, abs=5)
        bound = 1e-9 if is_same else max(model.gap_, path.duality_gap_[0])
        assert path.objective_ == pytest.approx(model.objective_, rel=bound)
        assert path.n_support_ == pytest.approx(model.n_support_.sum(), abs=0 if is_same else 3)
        assert np.mean(path.predict_path(X3)[0] != model.predict(X3)) <= (0.0 if is_same else 0.02)
        assert path.fit_status_ == model.fit_status_


@pytest.mark.parametrize("solver", BALLS)
def test_a_path_satisfies_the_rule_at_every_C(solver):
    X, y = X3, Y3
    path = solver(gamma=0.2, random_state=0).fit_path(X, y, CS)
    assert path.converged_.all()
    assert path.fit_status_.tolist() == [0] * CS.size
    cold = [solver(C=C, gamma=0.2, random_state=0).fit(X, y).n_iter_.sum() for C in CS]
    assert path.n_iter_.sum() < sum(cold)


@pytest.mark.parametrize("rows_that_fit", [110, 80, 10], ids=["one_block", "a_block_each", "no_block"])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("solver", BALLS)
def test_a_path_normalises_the_kernel_as_a_fit_does(solver, kernel, rows_that_fit):
    model = solver(kernel=kernel, degree=2, gamma=1.0, random_state=0, cache_size=8e-6 * rows_that_fit**2)
    path, model = model.fit_path(X3, Y3, [1.0]), model.fit(X3, Y3)
    assert path.objective_ == pytest.approx(model.objective_, rel=1e-3)
    assert path.n_iter_ == pytest.approx(model.n_iter_.sum(), rel=0.1)
    assert np.mean(path.predict_path(X3 + 0.1)[0] != model.predict(X3 + 0.1)) <= 0.02


@pytest.mark.parametrize("solver", BALLS)
def test_same_seed_same_numbers_however_the_rows_are_sorted(solver):
    X, y = load_iris(return_X_y=True)
    mixed = np.random.default_rng(0).permutation(150)
    model = solver(kernel="precomputed", gram_error=1e-7, random_state=5)
    K = rbf_kernel(X).astype(np.float32)
    K.flags.writeable = False
    order = mixed[np.argsort(y[mixed], kind="stable")]
    path, ordered = (model.fit_path(K[np.ix_(rows, rows)], y[rows], CS) for rows in (mixed, order))
    np.testing.assert_array_equal(path.objective_, ordered.objective_)
    np.testing.assert_array_equal(path.n_iter_, ordered.n_iter_)
    np.testing.assert_array_equal(path.predict_path(K[:, mixed]), ordered.predict_path(K[:, order]))


def test_every_solver_of_kernel_subproblems_has_a_path():
    without = {name for name in solvers.__all__ if not hasattr(getattr(solvers, name), "fit_path")}
    classifiers = {"H1SVC", "LASVC", "NuSVC", "PerfSVC", "ReducedSetSVC", "SVMTreeClassifier"}
    assert without == {*classifiers, "FourierFeatures", "OrientedGradients", "reduce"}


def test_the_lowest_of_each_group_of_candidates_is_found():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, subset = rng.integers(1, 70), rng.integers(2, 30)
        g, first, threshold = rng.integers(-3, 4, n) / 2, rng.integers(n), rng.integers(-4, 5) / 2
        expected = -1, n
        for looked in range(0, n, subset):
            group = (first + np.arange(looked, min(looked + subset, n))) % n
            if g[group].min() < threshold:
                expected = group[g[group].argmin()], looked
                break
        assert scan_tracked(g, threshold, first, subset) == expected


def all_at_once(**params):
    return MNSVC(multiclass="all_at_once", **params)


@pytest.mark.parametrize("solver", [SphereSVC, BallSVC, all_at_once])
def test_a_path_by_rows_takes_the_steps_of_warm_fits_and_keeps_its_rows(solver):
    n_rows = 110 if solver is all_at_once else 74
    model = solver(gamma=0.2, random_state=0, cache_size=7e-6 * n_rows**2, warm_start=True)
    path, evaluations = model.fit_path(X3, Y3, CS), []
    for k, C in enumerate(CS):
        model.set_params(C=C).fit(X3, Y3)
        assert path.n_iter_[k] == model.n_iter_.sum()
        assert path.objective_[k] == model.objective_
        evaluations.append(model.n_kernel_evals_)
    assert path.n_kernel_evals_[0] == evaluations[0]
    assert path.n_kernel_evals_[1:].sum() < 0.8 * sum(evaluations[1:])


@pytest.mark.parametrize("rows_that_fit", [4, 20, 60])
def test_a_path_of_core_sets_computes_no_more_values_than_fits(rows_that_fit):
    """A core set that does not fit the cache is no start for the next C."""
    model = CoreSVC(gamma=0.2, random_state=0, cache_size=8e-6 * rows_that_fit * 70)
    path = model.fit_path(X3, Y3, CS)
    cold = [model.set_params(C=C).fit(X3, Y3).n_kernel_evals_ for C in CS]
    assert path.converged_.all()
    assert path.n_kernel_evals_.sum() <= sum(cold)
