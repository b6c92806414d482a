"""Labels sorted by class, and votes of pairs of classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from solvers import MNSVC
from solvers.multiclass import pairwise_decisions, sort_by_class, votes


def test_pairwise_decisions_are_those_of_libsvm():
    X, y = load_iris(return_X_y=True)
    theirs = SVC(gamma=0.5, decision_function_shape="ovo").fit(X, y)
    K = pairwise.rbf_kernel(X, theirs.support_vectors_, gamma=0.5)
    start = np.concatenate(([0], np.cumsum(theirs.n_support_)))
    decisions = pairwise_decisions(K, theirs.dual_coef_, theirs.intercept_, start)
    assert_allclose(decisions, theirs.decision_function(X), atol=1e-12)
    assert_array_equal(votes(decisions, 3).argmax(axis=1), theirs.predict(X))
    theirs.set_params(decision_function_shape="ovr")
    assert_allclose(votes(decisions, 3), theirs.decision_function(X), atol=1e-12)


@pytest.mark.parametrize("kind", [int, float, str, bool, object])
def test_sorted_labels_are_grouped_as_any_others(kind):
    values = ["a", "bb", "c"] if kind is str else [0, 1, 1] if kind is bool else [-3, 0, 7]
    y = np.repeat(np.array(values, dtype=kind), [2, 4, 3])
    order = np.random.default_rng(0).permutation(y.size)
    classes, rows, class_start = sort_by_class(y)
    expected = sort_by_class(y[order])
    assert_array_equal(classes, np.unique(y))
    assert classes.dtype == expected[0].dtype
    assert_array_equal(rows, np.arange(y.size))
    assert_array_equal(class_start, expected[2])
    assert_array_equal(y[order][expected[1]], y)
    assert (rows.dtype, class_start.dtype) == (expected[1].dtype, expected[2].dtype)


@pytest.mark.parametrize("break_ties", ["auto", True, False])
def test_decisions_of_exactly_zero_vote_alike_after_fit_and_on_a_path(break_ties):
    """Far from all samples the kernel is 0, and without a bias all decisions are."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 10)
    X = rng.standard_normal((30, 2)) + y[:, None]
    model = MNSVC(C=1.0, gamma=1.0, bias="none", break_ties=break_ties, random_state=0).fit(X, y)
    far = np.full((1, 2), 1e3)
    assert not model.set_params(decision_function_shape="ovo").decision_function(far).any()
    model.set_params(decision_function_shape="ovr")
    assert model.fit_path(X, y, [1.0]).predict_path(far)[0] == model.predict(far)
