"""Features in float32, far from the origin or of any size: the same model as for harmless ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.svm import SVC

from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC
from solvers.kernels.functions import IMQ, RBF, Kernel, for_samples, kernel_block
from tests.messages import raises
from tests.solvers.hull_reference import hull_kernel, hull_weights

SOLVERS = [
    MNSVC(random_state=0),
    CoreSVC(random_state=0),
    SphereSVC(random_state=0),
    BallSVC(random_state=0),
    NewtonSVC(),
    SMOSVC(),
    SMOSVC(loss="l2"),
]


def overlapping(n=300, d=12, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, d)) + 0.8 * y[:, None], y


def fitted(solver, **params):
    return solver.__class__(**solver.get_params()).set_params(**params)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize(("offset", "dtype"), [(10.0, np.float32), (1e5, np.float64), (1e8, np.float64)])
@pytest.mark.parametrize("solver", [s for s in SOLVERS if not isinstance(s, SMOSVC)], ids=str)
def test_the_gap_claimed_holds_for_the_exact_kernel(solver, offset, dtype, form):
    X, y = overlapping()
    X = (X + offset).astype(dtype)
    model = fitted(solver, C=1024.0, gamma=0.05).fit(form(X), y)
    H = hull_kernel(np.exp(-0.05 * cdist(X.astype(float), X.astype(float), "sqeuclidean")), y, 1024.0)
    g = H @ hull_weights(model, len(y))
    true = 1 - (max(g.min(), 0.0) / (hull_weights(model, len(y)) @ g)) ** 2
    assert true <= model.gap_ + 1e-12
    assert model.converged_


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("offset", [1e3, 1e5, 1e8])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_an_offset_changes_nothing(solver, offset, form):
    X, y = overlapping()
    X = np.round(X * 64) / 64  # exact at every offset
    new, _ = overlapping(seed=1)
    new = np.round(new * 64) / 64
    near = fitted(solver, C=4.0, gamma=0.05, tol=1e-6).fit(form(X), y)
    far = fitted(solver, C=4.0, gamma=0.05, tol=1e-6).fit(form(X + offset), y)
    wanted = near.decision_function(form(new))
    rough = isinstance(solver, (SphereSVC, BallSVC))  # end anywhere inside of their ball
    limit = 0.5 if rough else 1e-3
    assert_allclose(far.decision_function(form(new + offset)), wanted, atol=limit * np.abs(wanted).max())
    assert far.score(form(X + offset), y) == pytest.approx(near.score(form(X), y), abs=0.05 if rough else 0.0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_float32_features_train_what_their_float64_values_do(form):
    X, y = overlapping()
    X = (X + 1000.0).astype(np.float32)
    reference = SVC(C=64.0, gamma=0.05, tol=1e-6).fit(X.astype(float) - 1000.0, y)
    model = SMOSVC(C=64.0, gamma=0.05, tol=1e-6).fit(form(X), y)
    wanted = reference.decision_function(X.astype(float) - 1000.0)
    assert_allclose(model.decision_function(form(X)), wanted, atol=1e-4)


@pytest.mark.parametrize("solver", [MNSVC, NewtonSVC])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_paths_predict_by_the_kernel_they_were_trained_with(solver, form):
    X, y = overlapping()
    X = (X + 1e5).astype(np.float32).astype(float)
    for cache_size in (200, 0.1):
        path = solver(gamma=0.05, cache_size=cache_size) if solver is MNSVC else solver(gamma=0.05)
        labels = path.fit_path(form(X), y, [1.0, 64.0]).predict_path(form(X.astype(np.float32)))
        exact = solver(C=64.0, gamma=0.05).fit(X - 1e5, y).predict(X - 1e5)
        assert np.mean(labels[1] == exact) >= 0.99


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("kind", [RBF, IMQ])
def test_values_are_within_the_error_told(kind, form):
    rng = np.random.default_rng(0)
    near = rng.normal(size=(60, 12))
    for X in (
        near,
        near + 1e8,
        1e6 * near,
        np.concatenate((near, near + 1e8)),
        near * np.logspace(-6, 6, 12),
    ):
        for gamma in (1e-3, 1.0, 100.0):
            kernel, placed = for_samples(Kernel(kind, gamma, 1.0), form(X))
            square = cdist(X, X, "sqeuclidean")
            exact = np.exp(-gamma * square) if kind == RBF else 1 / np.sqrt(gamma * square + 1.0)
            found = kernel_block(placed, placed, kernel)
            assert np.abs(found - exact).max() <= kernel.error + 2e-14


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_gamma_scale_is_that_of_the_variance(form):
    X, y = overlapping()
    far = MNSVC(random_state=0).fit(form(X + 1e8), y)
    assert far._gamma == pytest.approx(1 / (X.shape[1] * X.var()), rel=1e-6)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_float32_matrices_are_taken_as_exact(solver):
    X, y = overlapping()
    K = np.exp(-0.05 * cdist(X, X, "sqeuclidean")).astype(np.float32)
    single = fitted(solver, C=1024.0, kernel="precomputed").fit(K, y)
    double = fitted(solver, C=1024.0, kernel="precomputed").fit(K.astype(float), y)
    np.testing.assert_array_equal(single.dual_coef_, double.dual_coef_)
    assert (single.gap_, single.converged_) == (double.gap_, True)


@pytest.mark.parametrize(("n_features", "gamma"), [(12, 0.05), (12, 100.0), (4, 0.05)])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_dense_and_sparse_samples_get_the_same_decisions(solver, n_features, gamma):
    """Kernels that are centred, evaluated by differences, or neither."""
    X, y = overlapping(n=80, d=n_features)
    X += 60.0
    for form, other in ((np.asarray, sparse.csr_matrix), (sparse.csr_matrix, np.asarray)):
        model = fitted(solver, C=4.0, gamma=gamma).fit(form(X), y)
        assert_allclose(model.decision_function(other(X)), model.decision_function(form(X)), atol=1e-9)


def test_normalised_kernels_take_either_format():
    X, y = overlapping(n=80)
    model = CoreSVC(kernel="poly", gamma=0.1, random_state=0).fit(X, y)
    assert_allclose(model.decision_function(sparse.csr_matrix(X)), model.decision_function(X), atol=1e-9)


@pytest.mark.parametrize(("n_features", "gamma"), [(12, 0.05), (12, 100.0), (4, 0.05)])
@pytest.mark.parametrize("solver", [MNSVC(random_state=0), NewtonSVC()], ids=str)
def test_paths_give_dense_and_sparse_samples_the_same_labels(solver, n_features, gamma):
    X, y = overlapping(n=80, d=n_features)
    X += 60.0
    for form, other in ((np.asarray, sparse.csr_matrix), (sparse.csr_matrix, np.asarray)):
        path = fitted(solver, gamma=gamma).fit_path(form(X), y, [1.0, 64.0])
        np.testing.assert_array_equal(path.predict_path(other(X)), path.predict_path(form(X)))


def test_gamma_scale_sums_duplicate_entries():
    X, y = overlapping(n=40)
    pieces = sparse.csr_matrix(np.repeat(X / 2, 2, axis=1))
    twice = sparse.csr_matrix((pieces.data, pieces.indices // 2, pieces.indptr), X.shape)
    assert NewtonSVC().fit(twice, y)._gamma == pytest.approx(1 / (X.shape[1] * X.var()))


@pytest.mark.parametrize("solver", [MNSVC(random_state=0), NewtonSVC()], ids=str)
def test_paths_refuse_samples_of_another_width(solver):
    X, y = overlapping(n=80)
    K = np.exp(-0.05 * cdist(X, X, "sqeuclidean"))
    for params, samples in (
        ({"gamma": 0.05}, X + 1e3),
        ({"kernel": "linear"}, X),
        ({"kernel": "precomputed"}, K),
    ):
        path = fitted(solver, **params).fit_path(samples, y, [1.0])
        for wrong in (np.hstack((samples, samples)), samples[:, :1], samples[:, :-1]):
            with raises(ValueError, f"{wrong.shape[1]} features"):
                path.predict_path(wrong)
