import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import minmax_scale

from solvers import NewtonSVC

CS = 4.0 ** np.arange(-2, 6)


def digits():
    X, y = load_digits(return_X_y=True)
    return minmax_scale(X)[:600], y[:600], minmax_scale(X)[600:1000], y[600:1000]


def one_by_one(model, X, y, X_test):
    """Return the fits for each C, each from the last solution, which `fit_path` promises to match."""
    labels, objectives, gaps = [], [], []
    for C in CS:
        model.set_params(C=C).fit(X, y)
        labels.append(model.predict(X_test))
        objectives.append(model.objective_)
        gaps.append(model.duality_gap_)
    return np.array(labels), np.array(objectives), np.array(gaps)


@pytest.mark.parametrize("multiclass", ["pairwise", "all_at_once"])
@pytest.mark.parametrize("bias", ["theoretic", "none"])
def test_path_equals_warm_started_fits(multiclass, bias):
    X, y, X_test, _ = digits()
    kwargs = {"gamma": 0.05, "multiclass": multiclass, "bias": bias, "tol": 1e-6}
    path = NewtonSVC(**kwargs).fit_path(X, y, CS)
    labels, objectives, gaps = one_by_one(NewtonSVC(**kwargs, warm_start=True), X, y, X_test)
    assert gaps.max() <= 1e-6
    assert path.duality_gap_.max() <= 1e-6
    np.testing.assert_allclose(path.objective_, objectives, rtol=1e-6)
    np.testing.assert_array_equal(path.predict_path(X_test), labels)


def test_precomputed_float32_path_predicts_what_the_features_do():
    X, y, X_test, _ = digits()
    K = rbf_kernel(X, gamma=0.05).astype(np.float32)
    K_test = rbf_kernel(X_test, X, gamma=0.05).astype(np.float32)
    gram = NewtonSVC(kernel="precomputed").fit_path(K, y, CS)
    features = NewtonSVC(gamma=0.05).fit_path(X, y, CS)
    np.testing.assert_allclose(gram.objective_, features.objective_, rtol=1e-3)
    # A decision value may move by the square root of the gap, and few values are that close to zero.
    assert np.mean(gram.predict_path(K_test) != features.predict_path(X_test)) < 0.005


def test_rows_sorted_by_class_give_the_same_numbers():
    X, y, X_test, _ = digits()
    K, K_test = rbf_kernel(X, gamma=0.05), rbf_kernel(X_test, X, gamma=0.05)
    order = np.argsort(y, kind="stable")
    mixed = NewtonSVC(kernel="precomputed").fit_path(K, y, CS)
    ordered = NewtonSVC(kernel="precomputed").fit_path(K[np.ix_(order, order)], y[order], CS)
    np.testing.assert_array_equal(mixed.objective_, ordered.objective_)
    np.testing.assert_array_equal(mixed.predict_path(K_test), ordered.predict_path(K_test[:, order]))


def test_low_dimensional_path_needs_few_kernel_values():
    X = np.random.default_rng(0).random((1500, 2))
    y = np.floor(4 * X).sum(axis=1) % 2
    X_test = np.random.default_rng(1).random((400, 2))
    model = NewtonSVC(gamma=4.0, tol=1e-5)
    assert not model.prefers_gram(*X.shape)
    path = model.fit_path(X, y, CS)
    assert set(path.method_) == {"low_rank"}
    assert not path.fit_status_.any()
    assert path.n_kernel_evals_.max() < 0.1 * 1500**2
    K, K_test = rbf_kernel(X, gamma=4.0), rbf_kernel(X_test, X, gamma=4.0)
    gram = NewtonSVC(kernel="precomputed", tol=1e-5).fit_path(K, y, CS)
    np.testing.assert_allclose(path.objective_, gram.objective_, rtol=1e-5)
    assert np.mean(path.predict_path(X_test) != gram.predict_path(K_test)) < 0.003


def test_published_numbers_are_those_of_fits():
    X, y = load_iris(return_X_y=True)
    X = minmax_scale(X)
    path = NewtonSVC(gamma=1.0, tol=1e-9).fit_path(X, y, CS)
    for k, C in enumerate(CS):
        model = NewtonSVC(C=C, gamma=1.0, tol=1e-9).fit(X, y)
        assert path.n_support_[k] == model.n_support_.sum()
        assert path.objective_[k] == pytest.approx(model.objective_, rel=1e-8)
        assert path.n_kernel_evals_[k] == model.n_kernel_evals_
        of_pair = np.count_nonzero(model.dual_coef_) / 300
        assert path.sv_share_[k] == pytest.approx(of_pair)
    assert (path.fit_seconds_ > 0).all()
    assert path.converged_.all()


def test_a_start_that_is_optimal_already_has_a_time_too():
    path = NewtonSVC(kernel="precomputed").fit_path(np.eye(8), np.arange(8) % 2, [1.0, 4.0])
    assert np.isfinite(path.fit_seconds_).all()
    assert path.n_iter_.sum() == 0
