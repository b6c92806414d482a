"""The Gaussian kernel on a basis: the same problem as Nyström's features, and bounds for all w."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine, make_circles, make_classification, make_moons
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC, LinearSVC

from solvers import PerfSVC
from solvers.kernels.functions import RBF, Kernel, for_samples
from solvers.linear import basis_training
from solvers.linear.basis_training import distinct_rows
from solvers.linear.kernel_basis import BasisFeatures


def of_basis(vectors, X, gamma):
    """Return the features of samples by an eigendecomposition in float64, as Nyström's."""
    values, axes = np.linalg.eigh(rbf_kernel(vectors, gamma=gamma))
    return rbf_kernel(X, vectors, gamma=gamma) @ axes / np.sqrt(values)


def objective(decisions, half_square, y, C):
    return half_square + C * np.maximum(1.0 - y * decisions, 0.0).sum()


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(300, noise=0.3, random_state=0)
    return X, y


@pytest.mark.parametrize("basis", ["random", "preimage"])
def test_a_fixed_basis_is_nystroem_and_the_hinge_loss(moons, basis):
    X, y = moons
    signs, C, gamma = 2.0 * y - 1.0, 2.0, 1.0
    model = PerfSVC(C, kernel="rbf", gamma=gamma, n_basis=15, basis=basis, tol=1e-8, random_state=0).fit(X, y)
    Z = of_basis(model.basis_vectors_[0], X, gamma)
    theirs = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-9, max_iter=10**6).fit(Z, y)
    w = theirs.coef_[0]
    assert model.objective_ == pytest.approx(objective(Z @ w, 0.5 * w @ w, signs, C), rel=1e-5)
    assert_allclose(model.decision_function(X), Z @ w, atol=2e-3)


def test_nystroem_of_scikit_learn_has_the_same_features(moons):
    """Nyström on k samples with these as its basis: equal inner products."""
    X, _ = moons
    nystroem = Nystroem(gamma=1.0, n_components=15, random_state=0).fit(X)
    kernel, prepared = for_samples(Kernel(RBF, 1.0), X)
    features = BasisFeatures(prepared, kernel, 15, False)
    assert features.extend(nystroem.components_) == 15
    ours = np.array([features.lower_solution(features.values[:, i]) for i in range(X.shape[0])])
    theirs = nystroem.transform(X)
    assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-8)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("basis", ["random", "preimage"])
def test_the_objective_is_that_of_the_published_decisions(moons, basis, bias):
    X, y = moons
    model = PerfSVC(0.5, kernel="rbf", gamma=2.0, n_basis=12, basis=basis, bias=bias, random_state=1).fit(
        X, y
    )
    beta, Z = model.basis_coef_[0], model.basis_vectors_[0]
    half_square = 0.5 * beta @ rbf_kernel(Z, gamma=2.0) @ beta + 0.5 * model.intercept_[0] ** 2
    decisions = rbf_kernel(X, Z, gamma=2.0) @ beta + model.intercept_[0]
    assert_allclose(model.decision_function(X), decisions, atol=1e-9)
    assert model.objective_ == pytest.approx(objective(decisions, half_square, 2.0 * y - 1.0, 0.5), rel=1e-9)


@pytest.mark.parametrize("bias", [False, True])
def test_the_gap_bounds_the_distance_from_the_optimum_of_all_w(bias):
    """F1* by coordinate descent on features of the whole kernel matrix."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 3))
        y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(80) > 0, 1, 0)
        gamma, C = 10.0 ** rng.uniform(-1, 0.5), 10.0 ** rng.uniform(-1, 1)
        K = rbf_kernel(X, gamma=gamma) + bias
        Z = np.linalg.cholesky(K + 1e-12 * np.eye(80))
        w = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-9, max_iter=10**6).fit(Z, y).coef_[0]
        exact = objective(Z @ w, 0.5 * w @ w, 2.0 * y - 1.0, C)
        for n_basis, basis in ((3, "random"), (10, "preimage"), (40, "random"), (200, "preimage")):
            options = {"n_basis": n_basis, "basis": basis, "bias": bias, "random_state": seed}
            model = PerfSVC(C, kernel="rbf", gamma=gamma, **options).fit(X, y)
            excess = (model.objective_ - exact) / model.objective_
            assert -1e-6 <= excess <= model.gap_ + 1e-9
            assert model.gap_basis_ <= model.gap_ + 1e-9
        assert model.gap_ <= 1e-3 * C * 80 / model.objective_ + 1e-6  # the basis is all samples


def test_the_gap_over_all_w_is_unknown_where_it_costs_more_than_the_training(moons, monkeypatch):
    X, y = moons
    model = PerfSVC(kernel="rbf", gamma=1.0, n_basis=1, basis="random", random_state=0)
    assert np.isfinite(model.fit(X, y).gap_)
    monkeypatch.setattr(basis_training, "ALWAYS_AFFORDABLE", 0.0)
    model.fit(X, y)
    assert np.isnan(model.gap_)
    assert np.isnan(model.duality_gap_)
    assert model.converged_
    assert 0.0 <= model.gap_basis_ <= 1e-3 * y.size / model.objective_


def test_pre_images_beat_random_vectors_on_five_sets():
    wine, cancer = load_wine(return_X_y=True), load_breast_cancer(return_X_y=True)
    sets = {
        "moons": (*make_moons(400, noise=0.3, random_state=0), 1.0),
        "circles": (*make_circles(400, noise=0.15, factor=0.5, random_state=0), 1.0),
        "wine": (minmax_scale(wine[0]), wine[1] == 1, 1.0),
        "cancer": (minmax_scale(cancer[0]), cancer[1], 0.5),
        "clusters": (*make_classification(400, 8, n_informative=5, flip_y=0.05, random_state=0), 0.05),
    }
    for name, (X, y, gamma) in sets.items():
        means = {}
        for basis in ("preimage", "random"):
            options = {"kernel": "rbf", "gamma": gamma, "n_basis": 10, "basis": basis, "tol": 1e-4}
            models = [PerfSVC(1.0, random_state=seed, **options).fit(X, y) for seed in range(4)]
            means[basis] = np.mean([model.objective_ for model in models])
        assert means["preimage"] < means["random"], name


def test_more_pre_images_approach_the_optimum(moons):
    X, y = moons
    K = rbf_kernel(X, gamma=1.0)
    exact = SVC(kernel="precomputed", C=1.0, tol=1e-6).fit(K, y)
    a = exact.dual_coef_[0]
    with_free_bias = np.abs(a).sum() - 0.5 * a @ K[np.ix_(exact.support_, exact.support_)] @ a
    objectives = [
        PerfSVC(1.0, kernel="rbf", gamma=1.0, n_basis=k, tol=1e-5, random_state=0).fit(X, y).objective_
        for k in (3, 10, 40)
    ]
    assert objectives[0] > objectives[1] > objectives[2] > with_free_bias


@pytest.mark.parametrize("seed", [14, 32, 36])
def test_the_gap_allows_for_the_errors_of_kernel_values(seed):
    rng = np.random.default_rng(seed)  # a line far from the origin, in CSR: distances lose many digits
    n, d, C = 32, 20, 1e-5
    X = rng.random((n, 1)) * rng.standard_normal((1, d))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    gamma = 1.0 / np.median(((X[:, None] - X) ** 2).sum(axis=2))
    X += np.sqrt(8e3 / gamma / d)
    options = {"kernel": "rbf", "gamma": gamma, "n_basis": 24, "basis": "random", "tol": 1e-12}
    model = PerfSVC(C, random_state=seed, **options).fit(sparse.csr_matrix(X), y)

    def values(A, B):
        square = ((A[:, None].astype(np.longdouble) - B) ** 2).sum(axis=2)
        return np.exp(-np.longdouble(gamma) * square)

    def primal(coefficients, vectors):
        decisions = values(X, vectors) @ coefficients
        half_square = 0.5 * coefficients @ values(vectors, vectors) @ coefficients
        return objective(decisions, half_square, y, C)

    best = primal(C * y, X)  # all samples have a loss, so that this is the optimum
    assert (y * (values(X, X) @ (C * y)) < 1.0).all()
    found = primal(model.basis_coef_[0].astype(np.longdouble), model.basis_vectors_[0].toarray())
    assert (found - best) / found <= model.gap_


def test_vectors_in_the_span_of_others_are_left_out():
    X = np.random.default_rng(0).standard_normal((20, 2))
    kernel, prepared = for_samples(Kernel(RBF, 0.5), X)
    features = BasisFeatures(prepared, kernel, 10, False)
    assert features.extend(prepared[[0, 1, 0, 2, 1]]) == 3
    assert features.extend(prepared[[2]]) == 0
    assert features.size == 3
    np.testing.assert_array_equal(features.vectors(), prepared[[0, 1, 2]])
    L = features._factor[:3, :3].T
    assert_allclose(L @ L.T, rbf_kernel(prepared[:3], gamma=0.5), atol=1e-12)


def test_distinct_rows_are_the_first_of_each_group():
    X = np.array([[0.0, 1.0], [2.0, 0.0], [-0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    np.testing.assert_array_equal(distinct_rows(X), [0, 1, 4])
    np.testing.assert_array_equal(distinct_rows(sparse.csr_matrix(X)), [0, 1, 4])


def test_the_model_depends_on_the_seed_alone(moons):
    X, y = moons
    fits = [PerfSVC(kernel="rbf", n_basis=8, random_state=s).fit(X, y) for s in (3, 3, 4)]
    np.testing.assert_array_equal(fits[0].basis_vectors_[0], fits[1].basis_vectors_[0])
    assert fits[0].objective_ == fits[1].objective_
    assert not np.array_equal(fits[0].basis_vectors_[0], fits[2].basis_vectors_[0])
