"""LASVC behaves as scikit-learn's classifiers do; batches give the model of one epoch."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvers import LASVC, SMOSVC
from solvers.multiclass import subproblem_seeds
from solvers.online.training import first_order
from tests.messages import assert_says, raises, warns

LOOSE = "check_sample_weight_equivalence_on_{}_data"
EXPECTED = {
    LOOSE.format(kind): "an epoch in random order is an approximation" for kind in ("dense", "sparse")
}


@parametrize_with_checks([LASVC(random_state=0)], expected_failed_checks=lambda e: EXPECTED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def in_batches(model, X, y, rows, n_batches, weight=None):
    for part in np.array_split(rows, n_batches):
        w = None if weight is None else weight[part]
        model.partial_fit(X[part], y[part], classes=np.unique(y), sample_weight=w)
    return model


@pytest.mark.parametrize("as_csr", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize(
    "options", [{"C": 4.0}, {"C": 64.0, "cache_size": 0.02}, {"kernel": "poly", "degree": 2}]
)
def test_batches_and_finish_equal_an_epoch(two_classes, options, as_csr):
    X, y = two_classes
    X = sparse.csr_matrix(X) if as_csr else X
    weight = np.random.default_rng(0).uniform(0.2, 2.0, y.size)
    options = {"gamma": 0.5, "random_state": 3, "tol": 1e-6} | options
    fitted = LASVC(**options).fit(X, y, weight)
    by_class = np.argsort(y, kind="stable")  # the order in which `fit` numbers its samples
    seed = int(subproblem_seeds(3, 1)[0])
    order, _ = first_order(np.where(y[by_class] == 0, 1.0, -1.0), np.random.default_rng(seed))
    model = in_batches(LASVC(**options), X, y, by_class[order], 100, weight)
    assert model.objective_ > fitted.objective_
    model.finish()
    assert model.objective_ == pytest.approx(fitted.objective_, rel=1e-9)
    assert model.n_iter_[0] == fitted.n_iter_[0]
    assert_allclose(model.decision_function(X), fitted.decision_function(X), atol=1e-6)
    assert_array_equal(np.sort(by_class[order][model.support_]), np.sort(fitted.support_))
    assert_array_equal(model.n_support_, fitted.n_support_)


def test_batches_know_their_set_only(two_classes):
    X, y = two_classes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = in_batches(LASVC(C=4.0, gamma=0.5), X, y, np.arange(y.size), 4)
        assert_says(model.stopping_, "partial_fit", "set", "only")
        rough = model.gap_
        model.finish()
    assert (model.converged_, model.fit_status_) == (False, 6)
    assert_says(model.stopping_, "finished", "set", "only")
    assert 0 <= model.gap_ <= model.tol < rough
    rows = model.support_
    assert_array_equal(X[rows], model.support_vectors_)
    on_set = SMOSVC(C=4.0, gamma=0.5).fit(X, y)
    assert on_set.objective_ * (1 + 1e-3) <= model.objective_


@pytest.mark.parametrize("multiclass", ["pairwise", "one_vs_rest"])
def test_several_classes(iris, multiclass):
    X, y = iris
    options = {"C": 4.0, "gamma": 2.0, "multiclass": multiclass, "tol": 1e-5}
    exact = SMOSVC(**options).fit(X, y)
    model = LASVC(epochs=8, random_state=0, **options).fit(X, y)
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-4)
    assert_allclose(model.decision_function(X), exact.decision_function(X), atol=1e-2)
    rows = np.random.default_rng(0).permutation(y.size)
    stream = LASVC(**options)
    for _ in range(8):  # samples that come again join the set again
        in_batches(stream, X, y, rows, 5)
    stream.finish()
    assert stream.dual_coef_.shape[0] == model.dual_coef_.shape[0]
    assert (stream.predict(X) == exact.predict(X)).mean() > 0.95
    if multiclass == "pairwise":
        for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
            pair = rows[np.isin(y[rows], (i, j))]
            alone = LASVC(**options)
            for _ in range(8):
                alone.partial_fit(X[pair], y[pair], [i, j])
            alone.finish()
            assert stream.intercept_[k] == pytest.approx(-alone.intercept_[0], abs=1e-6)


def test_weights_are_penalties(two_classes):
    X, y = two_classes
    weight = np.random.default_rng(0).integers(0, 4, y.size).astype(float)
    options = {"C": 2.0, "gamma": 0.5, "tol": 1e-6}
    rows = np.repeat(np.arange(y.size), weight.astype(int))
    weighted = LASVC(epochs=10, random_state=0, **options).fit(X, y, weight)
    exact = SMOSVC(**options).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(exact.objective_, rel=1e-6)
    assert (weight[weighted.support_] > 0).all()
    by_class = LASVC(class_weight={0: 0.5, 1: 3.0}, **options)
    stream = in_batches(by_class, X, y, np.arange(y.size), 3).finish()
    same = in_batches(LASVC(**options), X, y, np.arange(y.size), 3, np.where(y == 0, 0.5, 3.0)).finish()
    assert stream.objective_ == same.objective_


def test_bad_batches_change_nothing(two_classes):
    X, y = two_classes
    with raises(ValueError, "classes", "first call", "numpy.unique"):
        LASVC().partial_fit(X, y)
    with raises(ValueError, "classes", "class", "2"):
        LASVC().partial_fit(X, y, classes=[1, 1])
    model = LASVC(gamma=0.5).partial_fit(X[:50], y[:50], classes=[0, 1])
    before = pickle.dumps(model)
    with raises(ValueError, "class", "7", "[0, 1]"):
        model.partial_fit(X[50:], np.where(y[50:] == 1, 7, 0))
    with raises(ValueError, "classes", "[0, 1]", "[0, 1, 2]"):
        model.partial_fit(X[50:], y[50:], classes=[0, 1, 2])
    with raises(ValueError, "3", "features", "4"):
        model.partial_fit(X[50:, :3], y[50:])
    with raises(ValueError, "NaN"):
        model.partial_fit(np.where(X > 1e9, X, np.nan), y)
    with raises(ValueError, "sample_weight", "finite"):
        model.partial_fit(X[50:], y[50:], sample_weight=np.full(y.size - 50, np.inf))
    assert pickle.dumps(model) == before
    with raises(ValueError, "class_weight", "'balanced'"):
        LASVC(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    with raises(ValueError, "kernel", "'precomputed'"):
        LASVC(kernel="precomputed").partial_fit(X @ X.T, y, classes=[0, 1])
    with raises(ValueError, "probability"):
        LASVC(probability=True).partial_fit(X, y, classes=[0, 1])
    with raises(NotFittedError, "finish", "partial_fit"):
        LASVC().fit(X, y).finish()


def test_a_class_may_come_late(two_classes):
    X, y = two_classes
    first = LASVC(gamma=0.5).partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    assert_array_equal(first.predict(X), 1)
    first.partial_fit(X[y == 0], y[y == 0]).finish()
    assert first.score(X, y) > 0.7
    again = pickle.loads(pickle.dumps(first))
    assert_array_equal(again.decision_function(X), first.decision_function(X))
    assert again.partial_fit(X, y).objective_ <= first.objective_


def test_the_gap_on_a_set_of_one_label_is_unknown(two_classes):
    X, y = two_classes
    model = LASVC(gamma=0.5).partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    for _ in range(2):
        assert np.isnan(model.gap_)
        assert_says(model.stopping_, "gap unknown")
        model.finish()
    assert model.partial_fit(X[y == 0], y[y == 0]).finish().gap_ <= model.tol


@pytest.mark.parametrize("limit", [{"max_seconds": 1e-9}, {"max_iter": 1}], ids=["seconds", "steps"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_limit_may_leave_an_empty_set(limit, kernel, iris):
    """Sets of some pairs of classes, or all of them, are empty. Later calls take up the training."""
    order = np.random.default_rng(0).permutation(iris[1].size)
    X, y = iris[0][order], iris[1][order]
    model = LASVC(kernel=kernel, **limit)
    with pytest.warns(ConvergenceWarning):
        model.partial_fit(X, y, classes=np.unique(y))
    assert np.isnan(model.gap_)
    model.set_params(max_seconds=None, max_iter=-1).finish()
    assert np.isnan(model.gap_)
    assert_says(model.stopping_, "finished", "gap unknown")
    assert model.partial_fit(X, y).finish().gap_ < 0.01
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("as_csr", [False, True], ids=["dense", "csr"])
def test_a_batch_may_be_far_away(as_csr):
    """The method of evaluating the kernel, chosen for the first batch, is too inexact for the second one."""
    generator = np.random.default_rng(0)
    near = generator.normal(size=(40, 12))
    X, y = np.concatenate((near, near + 1e8)), np.tile(near[:, 0] > 0.0, 2)
    X = sparse.csr_matrix(X) if as_csr else X
    model = LASVC(C=10.0, gamma=0.05).partial_fit(X[:40], y[:40], classes=[False, True])
    model.partial_fit(X[40:], y[40:]).finish()
    assert model.score(X, y) == 1.0
    assert model.gap_ < 0.01


def test_limits_end_in_order(two_classes):
    X, y = two_classes
    with warns(ConvergenceWarning, "max_iter"):
        model = LASVC(C=64.0, max_iter=20, random_state=0).fit(X, y)
    assert (model.converged_, model.fit_status_) == (False, 1)
    assert model.n_iter_[0] <= 20
    with warns(ConvergenceWarning, "max_seconds"):
        model = LASVC(C=64.0, max_seconds=1e-9, random_state=0).fit(X, y)
    assert (model.converged_, model.fit_status_) == (False, 2)
    assert np.isfinite(model.decision_function(X)).all()
    with warns(ConvergenceWarning, "max_iter"):
        model = LASVC(C=64.0, max_iter=5).partial_fit(X, y, classes=[0, 1])
    assert (model.converged_, model.n_iter_[0]) == (False, 5)


def test_a_batch_without_samples_of_a_pair_forgets_its_last_time_limit(iris):
    X, y = iris
    model = LASVC(max_seconds=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.partial_fit(X, y, classes=np.unique(y))
    assert model.fit_status_ == 2
    of_first = y == 0
    model.set_params(max_seconds=None).partial_fit(X[of_first], y[of_first])
    assert model.fit_status_ != 2
