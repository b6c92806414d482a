import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import minmax_scale
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvers import MNSVC, NewtonSVC
from solvers.newton import method_choice
from tests.messages import raises, warns

BUNDLED = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}
GRID_C = 4.0 ** np.arange(-2, 6)
GRID_GAMMA = 4.0 ** np.arange(-5, 3)

# With the default tolerance, a repeated and a weighted sample differ by more than the 1e-7 of the check.
LOOSE = "check_sample_weight_equivalence_on_{}_data"
EXPECTED = {LOOSE.format(kind): "solved to a relative gap of 1e-3 only" for kind in ("dense", "sparse")}


def bundled(name):
    X, y = BUNDLED[name](return_X_y=True)
    return minmax_scale(X), y


def board(n, seed=0):
    """Return a 4 × 4 checkerboard: two features, many support vectors, small kernel rank."""
    X = np.random.default_rng(seed).random((n, 2))
    return X, (np.floor(4 * X).sum(axis=1) % 2).astype(int)


def extended_kernel(X, y, C, gamma, bias):
    """Return k̃ of a binary problem by its definition (Strack 2013, 2.114)."""
    signs = np.where(y == np.unique(y)[0], 1.0, -1.0)
    return np.outer(signs, signs) * (rbf_kernel(X, gamma=gamma) + bias) + np.eye(len(y)) / C


def hull_weights(model, n):
    alpha = np.zeros(n)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha / alpha.sum()


@parametrize_with_checks(
    [NewtonSVC(), NewtonSVC(tol=1e-10, gamma=0.1), NewtonSVC(kernel="linear", multiclass="all_at_once")],
    expected_failed_checks=lambda e: EXPECTED if e.tol == 1e-3 else {},
)
def test_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", BUNDLED)
def test_reaches_a_gap_of_1e_8_over_the_whole_grid(name):
    X, y = bundled(name)
    for gamma in GRID_GAMMA:
        path = NewtonSVC(gamma=gamma, tol=1e-8).fit_path(X, y, GRID_C)
        assert path.duality_gap_.max() <= 1e-8, gamma
        assert path.converged_.all()


@pytest.mark.parametrize("bias", ["theoretic", "none"])
@pytest.mark.parametrize(("C", "gamma"), [(1 / 16, 1 / 64), (1.0, 1.0), (1024.0, 1 / 16), (1024.0, 16.0)])
def test_certificate_is_that_of_the_exact_kernel(C, gamma, bias):
    X, y = bundled("breast_cancer")
    model = NewtonSVC(C=C, gamma=gamma, bias=bias).fit(X, y)
    K = extended_kernel(X, y, C, gamma, 1.0 if bias == "theoretic" else 0.0)
    alpha = hull_weights(model, len(y))
    g = K @ alpha
    square_norm = alpha @ g
    assert model.objective_ == pytest.approx(square_norm, rel=1e-9)
    assert 1 - (g.min() / square_norm) ** 2 <= 1e-3


@pytest.mark.parametrize("gamma", [1 / 64, 1.0, 4.0])
def test_low_rank_certificate_holds_for_the_exact_kernel(gamma):
    X, y = board(1200)
    model = NewtonSVC(C=64.0, gamma=gamma).fit(X, y)
    assert model.method_ == "low_rank"
    assert model.n_kernel_evals_ < 0.2 * len(y) ** 2
    alpha = hull_weights(model, len(y))
    g = extended_kernel(X, y, 64.0, gamma, 1.0) @ alpha
    square_norm = alpha @ g
    assert 1 - (g.min() / square_norm) ** 2 <= model.duality_gap_ + 1e-9
    assert model.duality_gap_ <= 1e-3


def test_all_methods_reach_the_same_norm():
    X, y = board(900)
    K = rbf_kernel(X, gamma=4.0)
    by_features = NewtonSVC(C=256.0, gamma=4.0, tol=1e-8).fit(X, y)
    on_gram = NewtonSVC(C=256.0, kernel="precomputed", tol=1e-8).fit(K, y)
    assert "low_rank" in by_features.method_
    assert "support_newton" in on_gram.method_
    assert by_features.objective_ == pytest.approx(on_gram.objective_, rel=1e-8)


def test_linear_kernel_without_bias_is_the_linear_l2_svm():
    X, y = bundled("breast_cancer")
    model = NewtonSVC(C=4.0, kernel="linear", bias="none", tol=1e-10).fit(X, y)
    # LinearSVC has C Σ ξ², without our factor ½.
    peer = LinearSVC(C=2.0, loss="squared_hinge", fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-4)


def test_theoretic_bias_is_a_kernel_with_one_added():
    X, y = bundled("breast_cancer")
    with_bias = NewtonSVC(C=4.0, gamma=0.5, tol=1e-9).fit(X, y)
    K = rbf_kernel(X, gamma=0.5) + 1.0
    without = NewtonSVC(C=4.0, kernel="precomputed", bias="none", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(with_bias.decision_function(X), without.decision_function(K), atol=1e-6)


def test_all_at_once_with_two_classes_is_the_binary_subproblem():
    X, y = bundled("breast_cancer")
    models = [NewtonSVC(C=4.0, gamma=0.5, multiclass=m).fit(X, y) for m in ("pairwise", "all_at_once")]
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)


@pytest.mark.parametrize("bias", ["theoretic", "none"])
def test_all_at_once_solves_the_simplex_problem(bias):
    X, y = bundled("wine")
    model = NewtonSVC(C=16.0, gamma=0.5, multiclass="all_at_once", bias=bias, tol=1e-8).fit(X, y)
    shift = 1.0 if bias == "theoretic" else 0.0
    products = np.where(y[:, None] == y, 1.0, -0.5)
    K = products * (rbf_kernel(X, gamma=0.5) + shift) + np.eye(len(y)) / 16.0
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[y[model.support_], np.arange(model.support_.size)]
    alpha /= alpha.sum()
    g = K @ alpha
    assert model.objective_ == pytest.approx(alpha @ g, rel=1e-9)
    assert 1 - (g.min() / (alpha @ g)) ** 2 <= 2e-8


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "imq"])
def test_sparse_input_gives_the_dense_model(kernel):
    X, y = make_classification(120, 15, n_informative=6, n_classes=3, random_state=0)
    X[np.abs(X) < 0.7] = 0.0
    kwargs = {"kernel": kernel, "gamma": 0.1, "C": 2.0, "tol": 1e-9}
    dense = NewtonSVC(**kwargs).fit(X, y)
    from_csr = NewtonSVC(**kwargs).fit(sparse.csr_matrix(X), y)
    assert from_csr.objective_ == pytest.approx(dense.objective_, rel=1e-9)
    np.testing.assert_allclose(
        from_csr.decision_function(sparse.csr_matrix(X)), dense.decision_function(X), atol=1e-6
    )


def test_indefinite_kernel_is_reported_not_crashed_on():
    X, y = bundled("wine")
    K = rbf_kernel(X, gamma=1.0) - 0.5 * np.eye(len(y))
    with warns(ConvergenceWarning, "not positive definite"):
        model = NewtonSVC(C=1e6, kernel="precomputed").fit(K, y)
    assert not model.converged_
    assert model.fit_status_ == 3
    assert np.isfinite(model.decision_function(K)).all()


def test_float32_gram_is_accurate_enough_for_large_C():
    X, y = board(600)
    K = rbf_kernel(X, gamma=16.0)
    single = NewtonSVC(C=1024.0, kernel="precomputed").fit(K.astype(np.float32), y)
    double = NewtonSVC(C=1024.0, kernel="precomputed").fit(K, y)
    assert single.converged_
    assert single.objective_ == pytest.approx(double.objective_, rel=2e-3)
    assert np.mean(single.predict(K.astype(np.float32)) == double.predict(K)) > 0.995


def test_compact_model_predicts_like_the_full_one_from_fewer_vectors():
    X, y = board(1500)
    full = NewtonSVC(C=16.0, gamma=4.0).fit(X, y)
    compact = NewtonSVC(C=16.0, gamma=4.0, compact=True).fit(X, y)
    assert compact.support_.size < 0.1 * full.support_.size
    new, _ = board(500, seed=1)
    np.testing.assert_allclose(compact.decision_function(new), full.decision_function(new), atol=1e-3)


def test_warm_start_continues_on_the_same_rows():
    X, y = bundled("wine")
    model = NewtonSVC(C=1.0, gamma=1.0, warm_start=True).fit(X, y)
    cold = NewtonSVC(C=4.0, gamma=1.0).fit(X, y)
    warm = model.set_params(C=4.0).fit(X, y)
    assert warm.n_iter_.sum() < cold.n_iter_.sum()
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-3)


def test_large_subproblem_grows_a_working_set():
    X, y = make_classification(1500, 20, n_informative=10, class_sep=2.0, random_state=0)
    whole = NewtonSVC(C=4.0, gamma=0.02, tol=1e-6).fit(X, y)
    # 6 MB hold a Gram block of 866 rows.
    grown = NewtonSVC(C=4.0, gamma=0.02, tol=1e-6, cache_size=6).fit(X, y)
    assert grown.converged_
    assert grown.objective_ == pytest.approx(whole.objective_, rel=1e-6)
    # Almost every sample is a support vector here, so the working set does not fit either.
    streamed, whole = (NewtonSVC(C=4.0, gamma=16.0, cache_size=size).fit(X, y) for size in (6, 1000))
    assert streamed.converged_
    assert streamed.objective_ == pytest.approx(whole.objective_, rel=2e-3)


def test_limits_end_a_fit_in_order():
    X, y = bundled("digits")
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        model = NewtonSVC(gamma=1.0, tol=1e-9, max_iter=5).fit(X, y)
    assert model.fit_status_ == 1
    assert model.score(X, y) > 0.5


def test_same_input_same_model():
    X, y = bundled("digits")
    first, second = (NewtonSVC(C=16.0, gamma=0.1).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
    assert (first.n_iter_ == second.n_iter_).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"tol": 0.0}, ("'tol'", "NewtonSVC", "float", "0.0", "(0.0, 1.0)")),
        ({"bias": "average"}, ("'bias'", "NewtonSVC", "str")),
        ({"cache_size": 0}, ("'cache_size'", "parameter")),
        ({"C": -1.0}, ("'C'", "parameter")),
    ],
)
def test_refuses_bad_parameters_with_a_sentence(params, message):
    with raises(ValueError, *message):
        NewtonSVC(**params).fit(*bundled("iris"))


def test_max_seconds_ends_a_fit_with_its_best_model():
    X, y = board(1500)
    K = rbf_kernel(X, gamma=64.0)
    model = NewtonSVC(C=1e6, kernel="precomputed", tol=1e-12, max_seconds=1e-3)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        model.fit(K, y)
    assert model.fit_status_ == 2
    assert model.score(K, y) > 0.9


def test_kernel_rows_are_not_started_if_time_is_too_short_for_their_start(monkeypatch):
    """The gap of the present weights over all samples is then not known, and reported as unknown."""
    monkeypatch.setattr(method_choice, "seconds_to_start", lambda *_: np.inf)
    X, y = make_classification(400, random_state=0)
    model = NewtonSVC(kernel="poly", cache_size=0.1, max_seconds=1e3)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        model.fit(X, y)
    assert model.fit_status_ == 2
    assert model.duality_gap_ == 1.0
    assert set(model.predict(X)) <= {0, 1}


@pytest.mark.parametrize("C", [1e-6, 1e8])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_duplicates_are_solved_at_any_scale_and_C(C, scale):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(400, 3))) * scale  # many duplicates, of either class
    X[:, 0] = scale
    y = rng.integers(0, 2, 400)
    # At C = 1e8, ‖c‖² is 3e-11, and the rounding of float64 sums leaves no gap below 2e-3.
    model = NewtonSVC(C=C, gamma=0.3 / scale**2, tol=1e-3 if C < 1 else 2e-3).fit(X, y)
    assert model.converged_
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("kind", [NewtonSVC, MNSVC])
def test_gaps_hold_where_C_jumps_by_many_powers_of_ten(kind):
    """From 1/C = 1e6 to 1e-3 and below, g contains roundings of the larger diagonal."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        X, y = rng.random((6, 2)), np.array([0, 1, 0, 1, 0, 1])
        K = rbf_kernel(X, gamma=10.0 ** rng.uniform(-4, 2))
        Cs = np.sort(10.0 ** rng.uniform(-6, 7, 4))
        path = kind(kernel="precomputed").fit_path(K, y, Cs)
        rows, signs = path._solution.problem.rows, np.array([1.0, 1, 1, -1, -1, -1])
        H = (K[np.ix_(rows, rows)] + 1.0) * signs[:, None] * signs
        for k, C in enumerate(Cs):
            alpha = path._solution.weights[k, 0] / path._solution.weights[k, 0].sum()
            g = H @ alpha + alpha / C
            true = 1.0 - (max(g.min(), 0.0) / (alpha @ g)) ** 2
            assert true <= path.duality_gap_[k] + 1e-9
