"""Memory of training and prediction stays within `cache_size`; what cannot fit is refused at once."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics.pairwise import rbf_kernel

import solvers.common.resources
from solvers import MNSVC, SMOSVC, BallSVC, NewtonSVC, SphereSVC
from solvers.common.resources import available_bytes, require_memory
from tests.messages import raises
from tests.solvers.peak_memory import peak_bytes

SLACK = 1_500_000  # bytes for arrays of one number a sample and the like


def overlapping(n, d=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(n) > 0).astype(int)


@pytest.mark.sample(7)
@pytest.mark.parametrize("loss", ["l1", "l2"])
@pytest.mark.parametrize("kind", ["gram", "gram32", "dense", "wide", "csr"])
def test_smo_stays_within_its_cache(kind, loss):
    X, y = overlapping(1000, d=300 if kind == "wide" else 20)
    params = {"C": 4.0, "gamma": 0.02, "loss": loss}
    if kind in ("gram", "gram32"):
        X = rbf_kernel(X, gamma=0.02).astype(np.float32 if kind == "gram32" else np.float64)
        params["kernel"] = "precomputed"
    if kind == "csr":
        X = sparse.csr_matrix(X)
    exact = SMOSVC(**params, cache_size=200).fit(X, y)
    model = SMOSVC(**params, cache_size=2)
    model.fit(X[:50, :50] if kind.startswith("gram") else X[:50], y[:50])  # compiled
    peak, _ = peak_bytes(lambda: model.fit(X, y))
    support = (
        8 * model.support_.size * (1 if kind.startswith("gram") else X.shape[1])
    )  # the fitted model itself
    assert peak <= 2e6 + SLACK + 1.5 * support
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-5)


@pytest.mark.parametrize("n", [300, 450])
def test_smo_counts_what_it_keeps_beside_a_gram_matrix(n):
    """Cache sizes around that of the Gram matrix, where shrinking makes a part of it beside it."""
    X, y = overlapping(n)
    for megabytes in 8e-6 * n * n * np.array([0.9, 1.01, 1.3, 1.6]):
        model = SMOSVC(C=64.0, gamma=0.02, cache_size=megabytes)
        model.fit(X, y)
        peak, _ = peak_bytes(lambda model=model: model.fit(X, y))
        assert peak <= 1e6 * megabytes + 8 * X.size + 200_000


@pytest.mark.parametrize("multiclass", ["pairwise", "all_at_once"])
def test_predictions_stay_within_the_cache(multiclass):
    X, y = load_digits(return_X_y=True)
    model = SMOSVC(C=4.0, gamma=0.001, probability=True, cache_size=1000)
    if multiclass == "all_at_once":
        model = NewtonSVC(C=4.0, gamma=0.001, multiclass=multiclass, probability=True)
    model.fit(X[:250], y[:250]).set_params(cache_size=2)
    X_test = np.tile(X, (3, 1))
    for method, width in ((model.predict, 1 + 10), (model.decision_function, 10), (model.predict_proba, 10)):
        peak, _ = peak_bytes(lambda method=method: method(X_test))
        assert peak <= 2e6 + 8 * width * len(X_test) + SLACK


def test_probabilities_of_many_classes_stay_within_the_cache():
    X, y = make_blobs(400, centers=16, n_features=5, cluster_std=0.5, random_state=0)
    model = SMOSVC(probability=True, cache_size=2).fit(X, y)
    X_test = np.tile(X, (6, 1))
    peak, probabilities = peak_bytes(lambda: model.predict_proba(X_test))
    assert peak <= 2e6 + 8 * 16 * len(X_test) + SLACK
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.mean(probabilities.argmax(axis=1)[:400] == y) > 0.9


@pytest.mark.parametrize("solver", [MNSVC, NewtonSVC, SMOSVC])
def test_predictions_of_a_path_stay_within_the_cache(solver):
    X, y = make_blobs(900, centers=30, n_features=5, random_state=0)
    Cs = 4.0 ** np.arange(-2, 6)
    path = solver(gamma=0.1, cache_size=10).fit_path(X, y, Cs)
    gram = solver(kernel="precomputed", cache_size=10).fit_path(rbf_kernel(X, gamma=0.1), y, Cs)
    X_test = np.tile(X, (4, 1))
    peak, labels = peak_bytes(lambda: path.predict_path(X_test))
    assert peak <= 10e6 + 2 * 8 * labels.size + SLACK
    K = rbf_kernel(X_test, X, gamma=0.1)
    peak, of_gram = peak_bytes(lambda: gram.predict_path(K))
    assert peak <= 10e6 + 2 * 8 * labels.size + SLACK
    assert np.mean(of_gram == labels) > 0.99


def test_a_callable_kernel_that_cannot_fit_is_refused_before_it_is_called(monkeypatch):
    X, y = overlapping(100)
    called = []
    model = MNSVC(kernel=lambda A, B: called.append(1) or A @ B.T, cache_size=0.01)
    monkeypatch.setattr(solvers.common.resources, "SMALL", 0)
    monkeypatch.setattr(solvers.common.resources, "available_bytes", lambda: 50_000.0)
    for train in (lambda: model.fit(X, y), lambda: model.fit_path(X, y, [1.0])):
        with raises(MemoryError, "matrix", "callable", "100 samples"):
            train()
    assert not called


@pytest.mark.parametrize("solver", [NewtonSVC, MNSVC, SMOSVC])
def test_a_copy_of_a_gram_matrix_that_cannot_fit_is_refused(monkeypatch, solver):
    X, y = overlapping(100)
    K = rbf_kernel(X)
    monkeypatch.setattr(solvers.common.resources, "SMALL", 0)
    monkeypatch.setattr(solvers.common.resources, "available_bytes", lambda: 50_000.0)
    with pytest.raises(MemoryError, match=r"100 samples.*Gram matrix.*use features"):
        solver(kernel="precomputed", cache_size=0.01).fit_path(K, y, [1.0])


@pytest.mark.parametrize("solver", [MNSVC, BallSVC, SMOSVC, NewtonSVC])
def test_a_cache_that_cannot_fit_is_refused(monkeypatch, solver):
    X, y = overlapping(100)
    monkeypatch.setattr(solvers.common.resources, "SMALL", 0)
    monkeypatch.setattr(solvers.common.resources, "available_bytes", lambda: 50_000.0)
    with raises(MemoryError, "cache_size=1", "cache_size"):
        solver(cache_size=1).fit(X, y)
    assert solver(cache_size=0.04).fit(X, y).score(X, y) > 0.7


def test_available_memory_observes_the_limit_of_the_process():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    free = available_bytes()
    assert free > 0
    with open("/proc/self/statm") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    try:
        resource.setrlimit(resource.RLIMIT_AS, (used + 300_000_000, before[1]))
        assert available_bytes() <= 300_000_000
        with raises(MemoryError, "cake", "1.0 GB", "GB"):
            require_memory(1e9, "a cake", "eat less")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    require_memory(1e8, "a crumb", "eat less")


def test_newton_streams_what_does_not_fit_into_its_cache():
    """Almost every sample is a support vector, and the cache holds a block of 200 of them."""
    X, y = overlapping(1000, d=4)
    whole = NewtonSVC(C=4.0, gamma=16.0).fit(X, y)
    streamed = NewtonSVC(C=4.0, gamma=16.0, cache_size=8e-6 * 200**2).fit(X, y)
    assert whole.support_.size > 900
    assert streamed.converged_
    assert streamed.gap_ <= 1e-3
    assert streamed.objective_ == pytest.approx(whole.objective_, rel=2e-3)
    path = NewtonSVC(gamma=16.0, cache_size=8e-6 * 200**2).fit_path(X, y, [1.0, 4.0])
    assert path.converged_.all()
    assert path.objective_[1] == pytest.approx(whole.objective_, rel=2e-3)


@pytest.mark.parametrize("solver", [SphereSVC, BallSVC])
def test_normalised_kernels_predict_within_the_cache(solver):
    X, y = overlapping(600)
    model = solver(kernel="linear", random_state=0, cache_size=2).fit(X, y)
    X_test = np.tile(X, (40, 1))
    peak, _ = peak_bytes(lambda: model.predict(X_test))
    assert peak <= 2e6 + 24 * len(X_test) + SLACK


def test_predictions_of_many_matrices_take_no_more_memory_than_those_of_one():
    random = np.random.default_rng(0)
    y, Cs = np.repeat(np.arange(12), 5), list(range(1, 13))
    K, K_test = np.eye(60, dtype=np.float32) + 1, random.random((600, 60), dtype=np.float32)
    peaks = []
    for n in (1, 24):
        grid = SMOSVC.path_grid([SMOSVC(kernel="precomputed", gram_error=1e-7)] * n, y, Cs)
        grid.fit(np.stack([K] * n))
        tests = np.stack([K_test] * n)
        peak, labels = peak_bytes(partial(grid.predict, tests))
        peaks.append(peak - 2 * labels.nbytes - 8 * n * len(Cs) * 600)
    assert peaks[1] < 2 * peaks[0]
