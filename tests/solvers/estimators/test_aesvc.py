"""AESVC behaves as scikit-learn's classifiers do, and refuses what it cannot do in a sentence."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvers import AESVC, SMOSVC
from tests.messages import assert_says, raises, warns

LOOSE = "check_sample_weight_equivalence_on_{}_data"
EXPECTED = {LOOSE.format(kind): "solved to a violation of 1e-3 only" for kind in ("dense", "sparse")}


@pytest.mark.sample(3)
@parametrize_with_checks(
    [AESVC(), AESVC(epsilon=1e-12, tol=1e-9, gamma=0.1)],
    expected_failed_checks=lambda e: EXPECTED if e.tol == 1e-3 else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "options", [{"kernel": "linear"}, {"kernel": "poly", "degree": 2}, {"kernel": "imq"}, {"gamma": 0.3}]
)
def test_sparse_dense_and_precomputed_agree(two_classes, options):
    X, y = two_classes
    X = np.where(np.abs(X) < 0.4, 0.0, X)
    options = {"gamma": 0.3, "epsilon": 1e-2, "tol": 1e-7} | options
    dense = AESVC(**options).fit(X, y)
    csr = AESVC(**options).fit(sparse.csr_matrix(X), y)
    assert_allclose(csr.decision_function(X), dense.decision_function(X), atol=1e-3)
    values = {
        "linear": lambda A: A @ X.T,
        "poly": lambda A: (0.3 * A @ X.T + 1.0) ** 2,
        "imq": lambda A: 1.0 / np.sqrt(0.3 * ((A[:, None] - X) ** 2).sum(axis=2) + 1.0),
        "rbf": lambda A: np.exp(-0.3 * ((A[:, None] - X) ** 2).sum(axis=2)),
    }[options.get("kernel", "rbf")]
    options["kernel"] = "precomputed"
    gram = AESVC(**options).fit(values(X), y)
    assert_array_equal(gram.representatives_, dense.representatives_)
    assert_allclose(gram.decision_function(values(X[:20])), dense.decision_function(X[:20]), atol=1e-3)
    assert gram.gap_ == pytest.approx(dense.gap_, rel=1e-2, abs=1e-6)
    path = AESVC(**options).fit_path(values(X), y, [1.0, 4.0])
    assert_array_equal(path.predict_path(values(X[:20]))[0], gram.predict(values(X[:20])))


def test_it_warns_only_where_the_reduced_problem_is_not_solved(two_classes):
    X, y = two_classes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AESVC(epsilon=0.1).fit(X, y)
    assert model.gap_ > model.tol
    assert not model.converged_
    assert model.fit_status_ == 6
    assert_says(model.stopping_, "representatives", "all samples")
    with warns(ConvergenceWarning, "max_iter"):
        stopped = AESVC(epsilon=0.1, C=100.0, max_iter=3).fit(X, y)
    assert stopped.fit_status_ == 1
    assert stopped.gap_ > model.tol


def test_a_fine_set_is_certified(two_classes):
    X, y = two_classes
    model = AESVC(epsilon=1e-12, gamma=1.0).fit(X, y)
    assert model.converged_
    assert model.fit_status_ == 0
    assert model.gap_ <= model.tol
    assert model.n_representatives_ == X.shape[0]
    assert model.representation_error_ <= 1e-12


def test_warm_start_and_limits(two_classes):
    X, y = two_classes
    model = AESVC(C=10.0, warm_start=True).fit(X, y)
    before = model.n_iter_.sum()
    assert model.fit(X, y).n_iter_.sum() < 0.2 * before
    with pytest.warns(ConvergenceWarning):
        late = AESVC(max_seconds=1e-9).fit(X, y)
    assert late.fit_status_ == 2
    assert np.isnan(late.gap_)
    assert not late.converged_


def test_probabilities_and_callable_kernels(two_classes):
    X, y = two_classes
    model = AESVC(gamma=0.5, probability=True).fit(X, y)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)

    def kernel(A, B):
        return np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(axis=2))

    named, called = AESVC(gamma=0.5, tol=1e-6).fit(X, y), AESVC(kernel=kernel, tol=1e-6).fit(X, y)
    assert_array_equal(named.representatives_, called.representatives_)
    assert_allclose(named.decision_function(X), called.decision_function(X), atol=1e-6)


def test_what_bad_input_gets(two_classes):
    X, y = two_classes
    with raises(ValueError, "positive semidefinite", "rbf"):
        AESVC(kernel="sigmoid").fit(X, y)
    with raises(ValueError, "positive semidefinite"):
        AESVC(kernel="poly", coef0=-1.0).fit(X, y)
    with raises(ValueError, "loss"):
        AESVC(loss="l2").fit(X, y)
    with raises(ValueError, "V", "P"):
        AESVC(V=20, P=10).fit(X, y)
    with raises(ValueError, "'V'", "2", "1"):
        AESVC(V=1).fit(X, y)
    for epsilon in (0.0, -1.0, np.nan, np.inf):
        with raises(ValueError, "epsilon"):
            AESVC(epsilon=epsilon).fit(X, y)
    indefinite = np.where(y[:, None] == y, 2.0, 0.0) - np.eye(y.size)
    with raises(ValueError, "positive semidefinite", "Gram matrix"):
        AESVC(kernel="precomputed").fit(indefinite, y)
    for bad in (np.nan, np.inf):
        weight = np.ones(y.size)
        weight[3] = bad
        with raises(ValueError, "sample_weight"):
            AESVC().fit(X, y, weight)
    with raises(NotImplementedError, "fit_path"):
        AESVC()._path_solver()
    one = np.zeros(y.size, int)
    one[5] = 1  # a class with one sample is its own representative
    assert 5 in AESVC().fit(X, one).representatives_


@pytest.mark.parametrize("polish", [0, 1])
def test_a_sample_without_a_positive_weight_is_left_out(two_classes, polish):
    X, y = two_classes
    weight = np.ones(y.size)
    weight[[3, 8, 20]] = -1.0, 0.0, -1e-3
    kept = weight > 0.0
    model = AESVC(gamma=0.5, epsilon=0.1, polish=polish)
    expected = model.fit(X[kept], y[kept]).decision_function(X)
    weighted = model.fit(X, y, weight)
    assert_allclose(weighted.decision_function(X), expected, atol=1e-9)
    assert kept[weighted.representatives_].all()
    path = model.fit_path(X, y, [1.0], weight)
    assert_array_equal(path.representatives_, weighted.representatives_)
    assert_array_equal(path.predict_path(X)[0], weighted.predict(X))


def test_it_says_that_epsilon_exceeds_all_distances(two_classes):
    X, y = two_classes
    nearest = AESVC(gamma=1.0, epsilon=1.5)
    assert "epsilon" not in nearest.fit(X, y).stopping_
    whole = AESVC(gamma=1.0, epsilon=2.0)  # no squared distance of a Gaussian kernel is larger
    assert_says(whole.fit(X, y).stopping_, "epsilon", "ball")
    for text in whole.fit_path(X, y, [1.0, 2.0]).stopping_:
        assert_says(text, "epsilon", "ball")


def test_the_model_is_that_of_smosvc_on_the_representatives(two_classes):
    X, y = two_classes
    model = AESVC(C=3.0, gamma=0.2, epsilon=0.05, tol=1e-8).fit(X, y)
    reps = model.representatives_
    trained = SMOSVC(C=3.0, gamma=0.2, tol=1e-8).fit(X[reps], y[reps], model.beta_)
    assert_allclose(trained.decision_function(X), model.decision_function(X), atol=1e-10)
    assert model.objective_ == pytest.approx(trained.objective_)
    assert model.n_representatives_ < y.size
