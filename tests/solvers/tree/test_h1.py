"""Planes without errors on one class: truths of the mathematics, by hand and on random problems."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import linprog
from sklearn.svm import SVC

from solvers import H1SVC
from solvers.tree.h1 import csvm_direction, h1_direction, hull_of, threshold_of
from solvers.tree.nearest_point import Hull, nearest_point
from tests.solvers.tree_problems import PROBLEMS, cosine, random_problem

SAMPLE = 40


@pytest.fixture(scope="module")
def problems(full_size):
    seeds = range(PROBLEMS) if full_size else range(0, PROBLEMS, PROBLEMS // SAMPLE)
    return [random_problem(seed) for seed in seeds]


def found_for(X, is_soft):
    return h1_direction(hull_of(X, is_soft, np.ones(is_soft.size)))


def test_three_points_by_hand():
    """H = {(0, 0), (2, 0)} is hard, S = {(1, 1)} soft, so that m = 1 and s = (1, 1).

    The point of the hull nearest to s is p = (1, 0), so that w = m (p − s) = (0, −1). The smallest w·x on H
    is 0, so that b = 1 − 0 = 1. The objective is ½ ‖w‖² − y (w·s + b) = ½ + (−1 + 1) = ½ = m − ½ ‖w‖². The
    threshold is halfway between 0 on H and −1 on S.
    """
    model = H1SVC(hard=1).fit([[0, 0], [2, 0], [1, 1]], [1, 1, 0])
    assert_allclose(model.coef_, [[0.0, -1.0]], atol=1e-15)
    assert (model.intercept_[0], model.objective_, model.threshold_) == pytest.approx((1.0, 0.5, -0.5))
    assert model.predict([[0, 0], [2, 0], [1, 1], [9, 0.49], [9, 0.51]]).tolist() == [1, 1, 0, 1, 0]
    assert model.converged_
    assert model.gap_ < 1e-12
    mirrored = H1SVC(hard=0).fit([[0, 0], [2, 0], [1, 1]], [0, 0, 1])
    assert_allclose([*mirrored.coef_[0], *mirrored.intercept_], [0.0, 1.0, -1.0], atol=1e-15)


def test_xor_has_the_zero_solution_for_either_class():
    """The classes {(0, 0), (1, 1)} and {(0, 1), (1, 0)} have the same mean (½, ½), which is in both hulls.

    The smallest reduced hull is the mean itself, so that no bound gives a direction.
    """
    X, is_soft = np.array([[0.0, 0], [1, 1], [0, 1], [1, 0]]), np.array([True, True, False, False])
    for soft in (is_soft, ~is_soft):
        found = found_for(X, soft)
        assert not found.z.any()
        assert found.mu == 0.5


def test_primal_and_dual_agree_and_the_hard_class_has_margin(problems):
    for X, is_soft in problems:
        found = found_for(X, is_soft)
        if found.mu < 1.0 or not found.z.any():
            continue
        m, s = np.count_nonzero(is_soft), X[is_soft].mean(axis=0)
        p = found.weights @ X[~is_soft][found.samples]
        assert_allclose(found.z, p - s, atol=1e-12 * np.abs(X).max())
        w = m * found.z
        b = 1.0 - (X[~is_soft] @ w).min()
        scale = 1.0 + m + w @ w
        primal = 0.5 * w @ w + (X[is_soft] @ w + b).sum()
        dual = m - 0.5 * w @ w
        assert abs(primal - dual) <= 1e-9 * scale
        assert ((X[~is_soft] @ w + b) >= 1.0 - 1e-9 * scale).all()
        # α = m λ on the hard class are feasible, and their objective is that of the dual.
        alpha = m * found.weights
        assert (alpha >= 0.0).all()
        assert alpha.sum() == pytest.approx(m, rel=1e-12)
        assert found.gap < 1e-6


def test_zero_exactly_if_the_mean_is_in_the_hull(problems):
    seen = set()
    for X, is_soft in problems[::2]:
        hard, s = X[~is_soft], X[is_soft].mean(axis=0)
        for mu in (1.0, 0.25):
            if mu * len(hard) < 1.0:
                continue
            nearest = nearest_point(Hull(hard, np.ones(len(hard)), s), mu)
            A = np.vstack([hard.T, np.ones(len(hard))])
            inside = linprog(np.zeros(len(hard)), A_eq=A, b_eq=np.append(s, 1.0), bounds=(0, mu)).status == 0
            assert nearest.z.any() != inside
            assert nearest.weights.max() <= mu * (1 + 1e-9)
            assert nearest.weights.sum() == pytest.approx(1.0)
            seen.add((inside, mu))
    assert len(seen) == 4


def test_the_direction_is_that_of_svc_with_nearly_hard_margins_on_one_class(problems):
    compared = 0
    for X, is_soft in problems[::2]:
        found = found_for(X, is_soft)
        if found.mu < 1.0 or not found.z.any() or X.shape[0] > 300:
            continue
        m = np.count_nonzero(is_soft)
        distances = m * (found.z @ (found.weights @ X[~is_soft][found.samples] - X[is_soft]).T)
        C = 0.5 * 2.0 / distances.max()
        if not 1e-6 < C < 1e6:
            continue
        svc = SVC(kernel="linear", C=C, class_weight={1: m}, tol=1e-9, max_iter=300_000)
        svc.fit(X, np.where(is_soft, -1, 1))
        if svc.fit_status_:
            continue
        w = svc.coef_[0]
        assert cosine(w, found.z) >= 1.0 - 1e-9
        assert np.linalg.norm(w) == pytest.approx(C * m * np.linalg.norm(found.z), rel=1e-5)
        compared += 1
    assert compared >= 5


def test_the_penalty_of_the_hard_class_makes_its_margin_exactly_hard(problems):
    for X, is_soft in problems[::2]:
        found = found_for(X, is_soft)
        if found.mu < 1.0 or not found.z.any():
            continue
        weights = np.ones(is_soft.size)
        w = csvm_direction(X, is_soft, weights, 1.0, 1.0)
        harder = csvm_direction(X, is_soft, weights, 1.0, 10.0)
        assert cosine(w, harder) >= 1.0 - 1e-9
        if is_soft.size > 200:
            continue
        svc = SVC(kernel="linear", class_weight={1: np.count_nonzero(is_soft)}, tol=1e-8, max_iter=50_000)
        svc.fit(X, np.where(is_soft, -1, 1))
        if not svc.fit_status_:
            assert cosine(w, svc.coef_[0]) >= 1.0 - 1e-9


def test_labels_swapped_give_the_mirror_image(problems):
    for X, is_soft in problems[::4]:
        y = is_soft.astype(int)
        one, other = H1SVC(hard=0).fit(X, y), H1SVC(hard=1).fit(X, 1 - y)
        assert_allclose(one.coef_, -other.coef_, rtol=1e-12)
        assert_allclose(one.decision_function(X), -other.decision_function(X), rtol=1e-9, atol=1e-12)


def test_sparse_samples_have_the_same_plane(problems):
    for X, is_soft in problems[::8]:
        X = np.round(X)
        dense, rows = found_for(X, is_soft), found_for(sparse.csr_matrix(X), is_soft)
        assert dense.mu == rows.mu
        assert_allclose(dense.z, rows.z, atol=1e-7 * np.abs(X).max())


def test_a_threshold_leaves_the_hard_class_whole():
    """Scores 0 and 2 are hard. The soft scores −1 and −3 are below, 1 is not: r = (0 − 1)/2."""
    scores, is_soft = np.array([0.0, 2.0, -1.0, -3.0, 1.0]), np.array([False, False, True, True, True])
    threshold = threshold_of(scores, is_soft, np.ones(5), 1e-15)
    assert threshold == (-0.5, 1.0, 2.0)
    assert threshold_of(scores, is_soft, np.ones(5), 0.3).cut == 1.0  # −1 may be above 0 but for rounding
