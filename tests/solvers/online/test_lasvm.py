"""LASVM never loses, ends at the optimum of its set, and after several epochs at that of all samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer

from solvers import LASVC, SMOSVC
from solvers.common.status import CONVERGED
from solvers.kernels.functions import RBF, Kernel
from solvers.kernels.subproblem_kernel import SubproblemKernel
from solvers.online.expansion import Expansion
from solvers.online.training import Schedule, first_order, train_online
from solvers.problem import Problem


def checkers(n=800, seed=0):
    rng = np.random.default_rng(seed)
    X = 4.0 * rng.random((n, 2))
    return X, np.floor(X).sum(axis=1).astype(int) % 2


def real():
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def problem_of(X, y, C, seed=0):
    order = np.argsort(y, kind="stable").astype(np.int32)
    start, kernel = np.array([0, np.count_nonzero(y == 0), y.size]), Kernel(RBF, 1.0, by_differences=True)
    return Problem(X, order, start, np.atleast_1d(C), kernel, 0.0, np.empty(0), seed, np.inf)


def state_of(expansion):
    p, used = expansion.places, expansion.members()
    return p.member[used], p.F[used], p.beta[used], p.low[used], p.high[used]


def gram(X):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("cache_bytes", [1e9, 5e3], ids=["all rows", "few rows"])
@pytest.mark.parametrize("C", [1.0, 64.0])
def test_the_dual_never_falls_and_the_set_ends_optimal(C, cache_bytes):
    X, y = checkers(250)
    K, sign, tol = gram(X), np.where(y == 0, 1.0, -1.0), 1e-4
    problem = problem_of(X, y, C)
    problem.rows = np.arange(y.size, dtype=np.int32)  # the loop reads labels, and no order by class
    kernel, expansion = SubproblemKernel(problem), Expansion(cache_bytes, tol)
    expansion.is_member = np.zeros(y.size, np.bool_)
    order, n_seeds = first_order(sign, np.random.default_rng(1))
    before, n_left = 0.0, 0
    members = set()
    for t, k in enumerate(order):
        one = np.array([k])
        expansion.learn(kernel, one, sign[one], np.full(1, C), np.array([t < n_seeds]))
        rows, F, beta, low, high = state_of(expansion)
        W = np.abs(beta).sum() - 0.5 * beta @ K[np.ix_(rows, rows)] @ beta
        assert before - 1e-9 * (1.0 + abs(before)) <= W
        assert -expansion.objective == pytest.approx(W, rel=1e-9, abs=1e-12)
        assert ((low <= beta) & (beta <= high)).all()
        assert abs(beta.sum()) <= 1e-9 * C
        assert_allclose(F, K[np.ix_(rows, rows)] @ beta - sign[rows], atol=1e-9 * C)
        n_left += len(members - set(rows.tolist()))
        members, before = set(rows.tolist()), W
    assert n_left > 10  # samples leave the set, and their places are used again
    assert expansion.finish(kernel) == CONVERGED
    rows, _, beta, low, high = state_of(expansion)
    F = K[np.ix_(rows, rows)] @ beta - sign[rows]
    assert F[beta > low].max() - F[beta < high].min() <= tol + 1e-9
    assert -expansion.objective >= before
    assert set(np.flatnonzero(expansion.is_member)) == set(rows)
    on_set = SMOSVC(C, kernel="precomputed", tol=1e-7).fit(K[np.ix_(rows, rows)], y[rows])
    assert expansion.objective == pytest.approx(on_set.objective_, rel=1e-5)


@pytest.mark.parametrize(("data", "gamma"), [(checkers, 1.0), (real, 0.03)])
@pytest.mark.parametrize("C", [1.0, 64.0])
def test_five_epochs_reach_the_dual_of_smo(data, gamma, C):
    X, y = data()
    best = SMOSVC(C, gamma=gamma, tol=1e-6).fit(X, y).objective_
    model = LASVC(C, gamma=gamma, epochs=5, random_state=0).fit(X, y)
    assert best * (1 + 1e-9) <= model.objective_ <= best * (1 - 1e-4)
    one = LASVC(C, gamma=gamma, random_state=0).fit(X, y)
    assert model.objective_ <= one.objective_


def test_an_epoch_says_that_it_is_not_certified():
    X, y = checkers()
    model = LASVC(gamma=1.0, random_state=0).fit(X, y)
    best = SMOSVC(gamma=1.0, tol=1e-6).fit(X, y).objective_
    assert (model.converged_, model.fit_status_) == (False, 6)
    assert model.gap_ > model.tol
    beta = model.dual_coef_[0]
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    square = beta @ gram(X[model.support_]) @ beta
    primal = 0.5 * square + np.maximum(0.0, 1.0 - margins).sum()
    assert model.gap_ == pytest.approx((primal + model.objective_) / primal, rel=1e-6)
    assert model.gap_ >= (primal + best) / primal
    many = LASVC(gamma=1.0, epochs=8, random_state=0).fit(X, y)
    assert (many.converged_, many.fit_status_) == (True, 0)
    assert many.gap_ <= many.tol


@pytest.mark.parametrize("selection", ["gradient", "margin"])
def test_selected_samples_end_at_the_same_optimum(selection):
    X, y = checkers(300)
    best = SMOSVC(gamma=1.0, tol=1e-6).fit(X, y).objective_
    model = LASVC(gamma=1.0, selection=selection, candidates=10, epochs=6, random_state=0).fit(X, y)
    assert best * (1 + 1e-9) <= model.objective_ <= best * (1 - 1e-4)


def test_finishing_only_improves():
    X, y = checkers(300)
    options = {"C": 16.0, "gamma": 1.0, "random_state": 0}
    rough = LASVC(finishing=False, **options).fit(X, y)
    model = LASVC(**options).fit(X, y)
    assert model.objective_ < rough.objective_
    assert model.n_iter_[0] > rough.n_iter_[0]


def test_few_rows_in_memory_change_no_step():
    X, y = checkers(300)
    problem = problem_of(X, y, 8.0)
    ample, scarce = (train_online(problem, Schedule(1e-3, 2, "random", 50, True, b)) for b in (1e9, 2e4))
    assert scarce.n_kernel_evals > ample.n_kernel_evals
    assert scarce.n_iter == ample.n_iter
    assert_allclose(scarce.alpha, ample.alpha, atol=1e-8)
