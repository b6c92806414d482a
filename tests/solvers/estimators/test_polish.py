"""Rounds on all samples end at the optimum of all samples, or say how far from it they are."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import solvers.margin.l1_path
from solvers import AESVC, SMOSVC
from solvers.estimators import polishing
from tests.messages import assert_says, warns
from tests.solvers.small_problems import overlapping


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch):
    """Train subproblems of more than 100 samples as large ones."""
    monkeypatch.setattr(solvers.margin.l1_path, "MAX_DENSE", 100)


@pytest.fixture
def improved(monkeypatch):
    """Solutions of the rounds."""
    solutions, improve = [], polishing.improve

    def keep(*args):
        solutions.append(improve(*args))
        return solutions[-1]

    monkeypatch.setattr(polishing, "improve", keep)
    return solutions


@pytest.mark.parametrize("multiclass", ["pairwise", "one_vs_rest"])
def test_many_rounds_solve_the_problem_of_all_samples(multiclass, improved):
    X, y = overlapping(500, 6, n_classes=3)
    options = {"C": 4.0, "gamma": 2.0, "multiclass": multiclass, "tol": 1e-5}
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], y.size)
    model = AESVC(polish=100, epsilon=0.1, **options).fit(X, y, weight)
    whole = SMOSVC(**options).fit(X, y, weight)
    assert len(improved) == 3
    assert model.converged_
    assert model.gap_ <= 1e-5
    assert model.fit_status_ == 0
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-4)
    assert_allclose(model.decision_function(X), whole.decision_function(X), atol=0.05)
    options |= {"cache_size": 1.5}  # one Gram matrix of all samples does not fit
    path = AESVC(polish=100, epsilon=0.1, **options).fit_path(X, y, [1.0, 4.0], weight)
    assert path.converged_.all()
    assert (path.duality_gap_ <= 1e-5).all()
    assert len(improved) == 9
    assert (path.predict_path(X)[1] == model.predict(X)).mean() > 0.99


def test_a_round_improves_the_gap_and_is_certified(improved):
    X, y = overlapping(600, 6)
    options = {"C": 16.0, "gamma": 2.0, "epsilon": 0.05}
    best = SMOSVC(C=16.0, gamma=2.0, tol=1e-7).fit(X, y).objective_
    objectives = []
    for rounds in (1, 2, 100):
        model = AESVC(polish=rounds, **options).fit(X, y)
        objectives.append(model.objective_)
        # `objective_` is minimised, so the optimum of the primal problem is -best.
        decisions = model.decision_function(X)
        square = model.dual_coef_[0] @ (model.decision_function(model.support_vectors_) - model.intercept_[0])
        F1 = 0.5 * square + 16.0 * np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * decisions).sum()
        assert model.gap_ >= (F1 + best) / F1 - 1e-6
        assert model.gap_reduced_ <= model.tol
    assert objectives[0] >= objectives[1] >= objectives[2]
    assert objectives[2] == pytest.approx(best, rel=1e-3)
    assert improved[-1].converged
    start = AESVC(**options).fit(X, y)
    assert start.gap_ > model.gap_


def test_the_end_of_the_rounds_is_no_limit(improved):
    X, y = overlapping(600, 6)
    # One Gram matrix of all samples does not fit.
    model = AESVC(C=16.0, gamma=2.0, epsilon=0.05, polish=1, cache_size=1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X, y)
    path = model.fit_path(X, y, [1.0, 16.0])
    assert not any(solution.converged for solution in improved)
    assert model.gap_reduced_ <= model.tol < model.gap_
    assert model.fit_status_ == 6
    assert_array_equal(path.fit_status_, 6)


def test_max_iter_limits_both_trainings_together():
    X, y = overlapping(90, 6)
    options = {"C": 16.0, "gamma": 2.0, "epsilon": 0.5}
    reduced, path = AESVC(**options).fit(X, y), AESVC(**options).fit_path(X, y, [16.0])
    n_reduced = int(reduced.n_iter_.sum())
    for limit in (3, n_reduced + 5):
        model = AESVC(polish=1, max_iter=limit, **options)
        with warns(ConvergenceWarning, "AESVC", "max_iter"):
            model.fit(X, y)
        assert model.n_iter_.sum() <= limit
        assert (model.fit_status_, model.converged_) == (1, False)
    assert model.gap_reduced_ <= model.tol
    assert_says(model.stopping_, "representatives: certified", "all samples: max_iter")
    polished = AESVC(polish=1, **options).fit_path(X, y, [16.0])
    assert polished.n_iter_[0] > path.n_iter_[0]
    assert polished.n_kernel_evals_[0] > path.n_kernel_evals_[0]


def test_other_kernels_are_trained_from_scratch(improved):
    X, y = overlapping(300, 4)
    for options in ({"kernel": "linear"}, {"kernel": "imq", "gamma": 1.0}):
        model = AESVC(polish=1, epsilon=0.1, tol=1e-4, **options).fit(X, y)
        whole = SMOSVC(tol=1e-4, **options).fit(X, y)
        assert model.converged_
        assert model.objective_ == pytest.approx(whole.objective_, rel=1e-3)
        path = AESVC(polish=1, epsilon=0.1, tol=1e-4, **options).fit_path(X, y, [1.0])
        assert_array_equal(path.predict_path(X)[0], model.predict(X))
    K = X @ X.T
    path = AESVC(kernel="precomputed", polish=1, epsilon=0.1).fit_path(K, y, [1.0])
    assert path.converged_.all()
    assert path.predict_path(K).shape == (1, y.size)
    assert not improved
