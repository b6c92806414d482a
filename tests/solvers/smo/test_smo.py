import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvers import SMOSVC
from tests.messages import raises

POINTS = [(1 / 16, 1 / 16), (4.0, 1 / 16), (4.0, 4.0), (1024.0, 1.0)]
LOOSE = "check_sample_weight_equivalence_on_{}_data"
EXPECTED = {LOOSE.format(kind): "solved to a violation of 1e-3 only" for kind in ("dense", "sparse")}


def scaled(load):
    X, y = load(return_X_y=True)
    return minmax_scale(X), y


def signed_weights(model, y):
    """Return β_i = y_i α_i of a binary model, positive for `classes_[1]`."""
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    return beta


def dual_objective(beta, y, K):
    return 0.5 * beta @ K @ beta - np.abs(beta).sum()


@parametrize_with_checks(
    [SMOSVC(), SMOSVC(loss="l2", tol=1e-9, gamma=0.1)],
    expected_failed_checks=lambda e: EXPECTED if e.tol == 1e-3 else {},
)
def test_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("C", "gamma"), POINTS)
def test_l1_equals_libsvm(C, gamma):
    X, y = scaled(load_breast_cancer)
    ours = SMOSVC(C=C, gamma=gamma).fit(X, y)
    peer = SVC(C=C, gamma=gamma).fit(X, y)
    K = rbf_kernel(X, gamma=gamma)
    expected = dual_objective(signed_weights(peer, y), y, K)
    assert ours.objective_ == pytest.approx(expected, rel=1e-6)
    assert ours.objective_ == pytest.approx(dual_objective(signed_weights(ours, y), y, K), rel=1e-9)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=2e-3)
    tight = SMOSVC(C=C, gamma=gamma, tol=1e-5).fit(X, y)
    peer = SVC(C=C, gamma=gamma, tol=1e-5).fit(X, y)
    np.testing.assert_allclose(tight.decision_function(X), peer.decision_function(X), atol=1e-3)


@pytest.mark.parametrize(("C", "gamma"), POINTS)
def test_multi_class_l1_equals_libsvm(C, gamma):
    X, y = scaled(load_digits)
    X, y = X[:600], y[:600]
    ours = SMOSVC(C=C, gamma=gamma, tol=1e-5).fit(X, y)
    peer = SVC(C=C, gamma=gamma, tol=1e-5).fit(X, y)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-3)
    np.testing.assert_array_equal(ours.support_, peer.support_)
    np.testing.assert_allclose(ours.dual_coef_, peer.dual_coef_, atol=1e-2 * C)


@pytest.mark.parametrize(("C", "gamma"), POINTS)
def test_l2_is_libsvm_on_a_kernel_with_a_ridge(C, gamma):
    X, y = scaled(load_breast_cancer)
    ours = SMOSVC(C=C, gamma=gamma, loss="l2", tol=1e-6).fit(X, y)
    ridged = rbf_kernel(X, gamma=gamma) + np.eye(len(y)) / C
    peer = SVC(C=1e10, kernel="precomputed", tol=1e-6).fit(ridged, y)
    beta = signed_weights(peer, y)
    assert ours.objective_ == pytest.approx(dual_objective(beta, y, ridged), rel=1e-6)
    expected = rbf_kernel(X, gamma=gamma) @ beta + peer.intercept_
    np.testing.assert_allclose(ours.decision_function(X), expected, atol=1e-3)


@pytest.mark.parametrize("loss", ["l1", "l2"])
@pytest.mark.parametrize(("C", "gamma"), POINTS)
def test_optimality_conditions_hold(loss, C, gamma):
    X, y = scaled(load_breast_cancer)
    model = SMOSVC(C=C, gamma=gamma, loss=loss).fit(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    alpha = signs * signed_weights(model, y)
    assert alpha.min() >= 0.0
    assert signs @ alpha == pytest.approx(0.0, abs=1e-8 * C * len(y))
    margin = signs * model.decision_function(X)
    if loss == "l1":
        assert alpha.max() <= C
        assert margin[alpha == 0].min(initial=np.inf) >= 1 - 2e-3
        assert margin[alpha == C].max(initial=-np.inf) <= 1 + 2e-3
        free = (alpha > 0) & (alpha < C)
        np.testing.assert_allclose(margin[free], 1.0, atol=2e-3)
    else:
        assert margin[alpha == 0].min(initial=np.inf) >= 1 - 2e-3
        np.testing.assert_allclose((margin + alpha / C)[alpha > 0], 1.0, atol=2e-3)


@pytest.mark.parametrize("loss", ["l1", "l2"])
def test_shrinking_and_a_small_cache_change_nothing(loss):
    X, y = make_classification(900, 12, n_informative=8, random_state=0)
    models = [
        SMOSVC(C=16.0, gamma=0.05, loss=loss, tol=1e-6, shrinking=shrinking, cache_size=size).fit(X, y)
        for shrinking in (True, False)
        for size in (200, 0.5)
    ]
    for model in models[1:]:
        assert model.objective_ == pytest.approx(models[0].objective_, rel=1e-9)
        np.testing.assert_allclose(model.decision_function(X), models[0].decision_function(X), atol=1e-4)
    whole, small = models[:2]
    assert whole.n_kernel_evals_ == 900**2
    assert small.n_kernel_evals_ != whole.n_kernel_evals_


def test_gap_bounds_the_distance_to_the_optimum():
    X, y = scaled(load_breast_cancer)
    rough, exact = (SMOSVC(C=4.0, gamma=1.0, tol=tol).fit(X, y) for tol in (0.3, 1e-8))
    assert rough.gap_ > exact.gap_
    assert exact.gap_ < 1e-7
    assert abs(rough.objective_ - exact.objective_) <= rough.gap_ * abs(exact.objective_) * 1.5


def test_sparse_and_precomputed_input_give_the_dense_model():
    X, y = make_classification(150, 15, n_informative=6, n_classes=3, random_state=0)
    X[np.abs(X) < 0.7] = 0.0
    dense = SMOSVC(gamma=0.1, tol=1e-6).fit(X, y)
    from_csr = SMOSVC(gamma=0.1, tol=1e-6).fit(sparse.csr_matrix(X), y)
    K = rbf_kernel(X, gamma=0.1)
    from_gram = SMOSVC(kernel="precomputed", tol=1e-6).fit(K, y)
    np.testing.assert_allclose(from_csr.dual_coef_, dense.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(from_gram.dual_coef_, dense.dual_coef_, atol=1e-5)
    np.testing.assert_array_equal(from_gram.predict(K), dense.predict(X))


def test_limits_end_a_fit_in_order():
    X, y = scaled(load_iris)
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        model = SMOSVC(gamma=1.0, max_iter=3).fit(X, y)
    assert model.n_iter_.sum() <= 9
    assert not model.converged_
    assert model.fit_status_ == 1


def test_refuses_an_unknown_loss():
    with raises(ValueError, "'loss'", "SMOSVC", "str", "'hinge'"):
        SMOSVC(loss="hinge").fit(*scaled(load_iris))
