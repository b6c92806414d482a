"""PerfSVC behaves as a scikit-learn classifier, and refuses what it cannot do in a sentence."""

import doctest

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvers import PerfSVC
from tests.messages import assert_says, raises, warns

BY_DRAWS = "a basis from draws of other rows is another basis"


def expected_failures(model):
    if model.kernel == "rbf":
        return {f"check_sample_weight_equivalence_on_{kind}_data": BY_DRAWS for kind in ("dense", "sparse")}
    without_constant = "without a constant no class weight gives all samples of the plane one label"
    return {} if model.bias else {"check_class_weight_classifiers": without_constant}


@pytest.mark.sample(5)
@parametrize_with_checks(
    [PerfSVC(), PerfSVC(bias=True, multiclass="one_vs_rest"), PerfSVC(kernel="rbf", n_basis=10)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("multiclass", ["pairwise", "one_vs_rest"])
@pytest.mark.parametrize("bias", [False, True])
def test_several_classes_are_as_many_binary_problems(iris, multiclass, bias):
    X, y = iris
    model = PerfSVC(4.0, multiclass=multiclass, bias=bias, tol=1e-6).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert (model.intercept_ != 0.0).all() == bias
    pairs = [(0, 1), (0, 2), (1, 2)]
    decisions, objective = [], 0.0
    for t in range(3):
        of_pair = np.isin(y, pairs[t]) if multiclass == "pairwise" else np.full(y.size, True)
        positive = y[of_pair] == (pairs[t][0] if multiclass == "pairwise" else t)
        binary = PerfSVC(4.0, bias=bias, tol=1e-6).fit(X[of_pair], positive)
        decisions.append(binary.decision_function(X))
        objective += binary.objective_
    assert model.objective_ == pytest.approx(objective, rel=1e-9)
    if multiclass == "pairwise":
        wins = np.zeros((y.size, 3))
        for (i, j), d in zip(pairs, decisions, strict=True):
            wins[np.arange(y.size), np.where(d > 0, i, j)] += 1
        assert np.abs(model.decision_function(X) - wins).max() < 1 / 3 + 1e-9
    else:
        assert_allclose(model.decision_function(X), np.transpose(decisions), atol=1e-9)
    assert model.score(X, y) > 0.8


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_are_repetitions(two_classes, kernel):
    X, y = two_classes
    weights = np.random.default_rng(0).integers(0, 4, y.size)
    rows = np.repeat(np.arange(y.size), weights)
    model = PerfSVC(2.0, kernel=kernel, gamma=0.5, tol=1e-7, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-2)


def test_class_weights_are_weights_of_their_samples(two_classes):
    X, y = two_classes
    by_class = PerfSVC(class_weight={0: 2.0, 1: 5.0}, tol=1e-6).fit(X, y)
    by_sample = PerfSVC(tol=1e-6).fit(X, y, sample_weight=np.where(y == 0, 2.0, 5.0))
    assert by_class.objective_ == by_sample.objective_
    assert_array_equal(by_class.coef_, by_sample.coef_)
    balanced = PerfSVC(class_weight="balanced").fit(X, y)
    assert_allclose(balanced.class_weight_, y.size / (2.0 * np.bincount(y)))


@pytest.mark.parametrize("params", [{"kernel": "linear"}, {"kernel": "rbf", "gamma": 0.3, "n_basis": 12}])
def test_sparse_samples_give_the_model_of_dense_ones(params):
    rng = np.random.default_rng(0)
    X = sparse.random(150, 20, density=0.2, format="csr", random_state=0)
    y = np.where(X @ rng.standard_normal(20) + 0.1 * rng.standard_normal(150) > 0, "yes", "no")
    dense = PerfSVC(4.0, tol=1e-7, random_state=0, **params).fit(X.toarray(), y)
    of_sparse = PerfSVC(4.0, tol=1e-7, random_state=0, **params).fit(X, y)
    assert of_sparse.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    assert_allclose(of_sparse.decision_function(X), dense.decision_function(X.toarray()), atol=1e-2)
    assert_array_equal(of_sparse.predict(X), of_sparse.predict(X.toarray()))


def test_a_bias_is_a_constant_feature(two_classes):
    X, y = two_classes
    with_bias = PerfSVC(0.5, bias=True, tol=1e-7).fit(X, y)
    appended = PerfSVC(0.5, tol=1e-7).fit(np.column_stack([X, np.ones(y.size)]), y)
    assert with_bias.objective_ == pytest.approx(appended.objective_, rel=1e-6)
    theirs = LinearSVC(loss="hinge", C=0.5, intercept_scaling=1.0, tol=1e-9, max_iter=10**6).fit(X, y)
    assert_allclose(with_bias.coef_, theirs.coef_, atol=2e-3)
    assert_allclose(with_bias.intercept_, theirs.intercept_, atol=2e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_limits_end_the_training_with_the_best_model_so_far(two_classes, kernel):
    X, y = two_classes
    model = PerfSVC(64.0, kernel=kernel, n_basis=20, tol=1e-9, random_state=0)
    with warns(ConvergenceWarning, "max_iter"):
        model.set_params(max_iter=5).fit(X, y)
    assert (model.converged_, model.fit_status_, model.n_iter_.tolist()) == (False, 1, [5])
    assert_says(model.stopping_, "max_iter")
    with warns(ConvergenceWarning, "max_seconds"):
        model.set_params(max_iter=-1, max_seconds=1e-9).fit(X, y)
    assert (model.converged_, model.fit_status_) == (False, 2)
    assert np.isfinite(model.decision_function(X)).all()


def test_a_basis_larger_than_the_samples_is_the_distinct_samples(two_classes):
    X, y = two_classes
    model = PerfSVC(kernel="rbf", gamma=0.5, n_basis=500).fit(np.vstack([X, X]), np.append(y, y))
    assert_says(model.stopping_, "120", "distinct", "n_basis=500")
    assert model.n_support_ <= 120
    assert {row.tobytes() for row in model.basis_vectors_[0]} <= {row.tobytes() for row in X}
    assert model.gap_ == pytest.approx(model.gap_basis_, abs=1e-6)


def test_a_variance_that_overflows_is_refused():
    with raises(ValueError, "gamma='scale'", "variance", "inf"):
        PerfSVC(kernel="rbf").fit([[1e200], [-1e200], [0.0]], [0, 1, 0])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(("C", "weight"), [(1.0, 1e307), (1e308, 1.0), (1.0, 1e-310), (5e-324, 1.0)])
def test_penalties_outside_the_range_of_numbers_are_refused(two_classes, kernel, C, weight):
    X, y = two_classes
    with raises(ValueError, f"C={C:g}", "sum of the weights"):
        PerfSVC(C=C, kernel=kernel).fit(X, y, np.full(y.size, weight))


def test_a_fit_that_fails_leaves_the_model_as_it_was(two_classes):
    X, y = two_classes
    model = PerfSVC().fit(X, y)
    before = dict(model.__dict__)
    with raises(ValueError, "only one class"):
        model.fit(X[:, :2], np.zeros(y.size))
    assert model.__dict__ == before
    assert model.n_features_in_ == 4


@pytest.mark.parametrize(
    ("weights", "facts"),
    [
        ([1.0, np.nan, 1.0, 1.0], ("sample_weight", "finite", "nan", "index 1")),
        ([1.0, 1.0, np.inf, 1.0], ("sample_weight", "finite", "inf", "index 2")),
        ([-2.0, 1.0, 1.0, 1.0], ("sample_weight", "at least 0", "-2.0", "index 0")),
        ([1.0, 1.0], ("sample_weight", "(4,)", "(2,)")),
        ([0.0, 1.0, 0.0, 1.0], ("same class",)),
    ],
)
def test_weights_that_are_not_valid_are_refused(weights, facts):
    with raises(ValueError, *facts):
        PerfSVC().fit(np.eye(4), [0, 1, 0, 1], sample_weight=weights)


@pytest.mark.parametrize(
    ("params", "facts"),
    [
        ({"C": 0.0}, ("'C'", "0.0")),
        ({"kernel": "poly"}, ("'kernel'", "'poly'")),
        ({"n_basis": 0}, ("'n_basis'", "0")),
        ({"basis": "rows"}, ("'basis'", "'rows'")),
        ({"tol": 0.0}, ("'tol'", "0.0")),
        ({"class_weight": {0: -1.0, 1: 1.0}}, ("class_weight", "at least 0", "-1.0")),
    ],
)
def test_parameters_are_checked_in_fit(two_classes, params, facts):
    with raises(ValueError, *facts):
        PerfSVC(**params).fit(*two_classes)


def test_the_example_runs():
    (test,) = doctest.DocTestFinder(recurse=False).find(PerfSVC, "PerfSVC", globs={})
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_a_parameter_that_is_set_after_fit_changes_no_prediction(iris):
    X, y = iris
    model = PerfSVC(4.0, multiclass="one_vs_rest").fit(X, y)
    decisions = model.decision_function(X)
    assert_array_equal(model.set_params(multiclass="pairwise").decision_function(X), decisions)
