"""Every solver reaches the point that it aims at, and reports the true distance to it."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from solvers import MNSVC, BallSVC, CoreSVC, SphereSVC
from solvers.hull.stopping import MEB, default_tolerance
from tests.solvers.hull_reference import exact_square_norm, hull_kernel, hull_weights

KERNELS = {
    "linear": lambda A, B: A @ B.T,
    "poly": lambda A, B: polynomial_kernel(A, B, degree=3, gamma=0.5, coef0=1.0),
    "rbf": lambda A, B: rbf_kernel(A, B, gamma=0.5),
    "imq": lambda A, B: 1 / np.sqrt(0.5 * ((A[:, None] - B[None]) ** 2).sum(-1) + 1.0),
}
EXACT = [
    MNSVC(),
    MNSVC(pair="mdm"),
    MNSVC(pair="gmdm"),
    MNSVC(eta=1.5),
    MNSVC(subset=59),
    MNSVC(sampling="simple"),
]


def normalised(K):
    root = np.sqrt(np.diag(K))
    return K / np.outer(root, root)


@pytest.mark.sample(5)
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("bias", ["theoretic", "none"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("solver", EXACT, ids=str)
def test_minimal_norm_is_reached_within_epsilon(two_classes, solver, kernel, bias, is_sparse):
    X, y = two_classes
    model = solver.__class__(**solver.get_params()).set_params(C=2.0, kernel=kernel, gamma=0.5, bias=bias)
    model.set_params(random_state=1).fit(sparse.csr_matrix(X) if is_sparse else X, y)
    H = hull_kernel(KERNELS[kernel](X, X), y, 2.0, bias != "none")
    alpha = hull_weights(model, len(y))
    g = H @ alpha

    assert model.objective_ == pytest.approx(alpha @ g, rel=1e-8)
    assert model.gap_ == pytest.approx(max(0.0, 1 - (g.min() / (alpha @ g)) ** 2), abs=1e-7)
    assert g.min() >= (1 - 1e-3) ** 2 * (alpha @ g) * (1 - 1e-9)
    exact = exact_square_norm(H)
    assert exact * (1 - 1e-9) <= model.objective_ <= exact / (1 - model.gap_) * (1 + 1e-9)
    assert (model.converged_, model.fit_status_) == (True, 0)


@pytest.mark.parametrize("kernel", ["rbf", "imq"])  # on which all samples lie on a ball
def test_adjusted_rule_bounds_violations_by_the_ball(two_classes, kernel):
    X, y = two_classes
    model = MNSVC(C=2.0, kernel=kernel, gamma=0.5, stopping="adjmn", random_state=0).fit(X, y)
    H = hull_kernel(KERNELS[kernel](X, X), y, 2.0)
    g, w2 = H @ hull_weights(model, len(y)), model.objective_
    assert g.min() >= w2 - 1e-3 * np.sqrt(w2 * np.diag(H).max()) - 1e-12


@pytest.mark.sample(5)
@pytest.mark.parametrize("bias", ["theoretic", "none"])
@pytest.mark.parametrize(
    ("solver", "kernel"),
    [
        *product([SphereSVC(), SphereSVC(subset=1), SphereSVC(eta=1.9), BallSVC()], KERNELS),
        *product([MNSVC(stopping="meb")], ["rbf", "imq"]),  # MNSVC takes kernels as they are
    ],
    ids=str,
)
def test_no_sample_lies_outside_of_the_ball(two_classes, solver, kernel, bias):
    X, y = two_classes
    model = solver.__class__(**solver.get_params()).set_params(C=2.0, kernel=kernel, gamma=0.5, bias=bias)
    model.set_params(random_state=1).fit(X, y)
    H = hull_kernel(normalised(KERNELS[kernel](X, X)), y, 2.0, bias != "none")
    scale = np.sqrt(np.diag(KERNELS[kernel](X, X)))
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0]) * scale[model.support_]
    alpha /= alpha.sum()
    square_radius = H[0, 0]
    square_distances = square_radius - 2 * H @ alpha + alpha @ H @ alpha
    epsilon = default_tolerance(MEB, square_radius, 2.0)
    assert square_distances.max() <= (1 + epsilon) ** 2 * square_radius * (1 + 1e-9)
    assert model.objective_ == pytest.approx(alpha @ H @ alpha, rel=1e-8)
    assert model.objective_ >= exact_square_norm(H) * (1 - 1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_core_set_ball_is_the_minimal_one(two_classes, kernel):
    X, y = two_classes
    model = CoreSVC(C=2.0, kernel=kernel, gamma=0.5, random_state=1).fit(X, y)
    H = hull_kernel(normalised(KERNELS[kernel](X, X)), y, 2.0)
    exact = exact_square_norm(H)
    square_radius = H[0, 0]
    epsilon = default_tolerance(MEB, square_radius, 2.0)
    # All samples lie within (1 + ε) R of the centre: R² = τ̃ − ‖c‖² differs from the minimum by about 2 ε τ̃.
    assert exact * (1 - 1e-9) <= model.objective_ <= exact + 4 * epsilon * square_radius
    assert model.objective_ <= exact / (1 - model.gap_) * (1 + 1e-9)


@pytest.mark.parametrize("solver", [MNSVC, CoreSVC, SphereSVC, BallSVC])
@pytest.mark.parametrize("bias", ["theoretic", "average", "none"])
def test_all_at_once_subproblem_is_certified(iris, solver, bias):
    X, y = iris
    model = solver(C=4.0, gamma=2.0, multiclass="all_at_once", bias=bias, random_state=0).fit(X, y)
    H = hull_kernel(rbf_kernel(X, gamma=2.0), y, 4.0, bias != "none")
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[y[model.support_], np.arange(model.support_.size)]
    alpha /= alpha.sum()
    g = H @ alpha
    assert model.objective_ == pytest.approx(alpha @ g, rel=1e-8)
    assert model.gap_ == pytest.approx(max(0.0, 1 - (max(g.min(), 0) / (alpha @ g)) ** 2), abs=1e-7)
    exact = exact_square_norm(H)
    assert exact * (1 - 1e-9) <= model.objective_ <= exact / (1 - model.gap_) * (1 + 1e-9)


def test_pairs_are_certified_one_by_one(iris):
    X, y = iris
    model = MNSVC(C=4.0, gamma=2.0, random_state=0).fit(X, y)
    parts = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        k = np.isin(y, (i, j))
        parts.append(
            exact_square_norm(hull_kernel(rbf_kernel(X[k], gamma=2.0), (y[k] == j).astype(int), 4.0))
        )
    assert sum(parts) * (1 - 1e-9) <= model.objective_ <= sum(parts) / (1 - model.gap_)
    assert model.gap_ <= 1 - (1 - 1e-3) ** 4 + 1e-9


def test_tolerance_buys_accuracy(two_classes):
    X, y = two_classes
    exact = exact_square_norm(hull_kernel(rbf_kernel(X, gamma=0.5), y, 100.0))
    errors = []
    for tol in (1e-1, 1e-3, 1e-5, 1e-7):
        model = MNSVC(C=100.0, gamma=0.5, tol=tol, random_state=0).fit(X, y)
        errors.append(model.objective_ / exact - 1)
        assert errors[-1] <= 5 * tol
    assert errors[-1] < 1e-6 < errors[0]
