"""ReducedSetSVC behaves as scikit-learn's classifiers do, and certifies the labels that it keeps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvers import MNSVC, SMOSVC, PerfSVC, ReducedSetSVC, reduce
from solvers.estimators.kept_labels import certain_labels, fewest
from solvers.multiclass import votes
from tests.messages import assert_says, raises

EQUIVALENCE = "check_sample_weight_equivalence_on_{}_data"
EXPECTED = {
    EQUIVALENCE.format(kind): "a copy of a sample counts as a vector of which a share remains"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [ReducedSetSVC(random_state=0, n_vectors=0.3)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def first_digits(n):
    X, y = load_digits(return_X_y=True)
    return X[:n] / 16.0, y[:n]


@pytest.fixture(scope="module")
def digits(full_size):
    return first_digits(600 if full_size else 400)


@pytest.fixture(scope="module")
def svc(digits):
    return SVC(C=10.0, gamma=0.1).fit(*digits)


@pytest.mark.parametrize("method", ["greedy", "backward", "l1", "fixed_point", "merge"])
def test_a_fifth_of_the_vectors_keeps_the_labels(digits, svc, method):
    X, y = digits
    model = ReducedSetSVC(C=10.0, gamma=0.1, n_vectors=0.2, method=method, max_refine=30).fit(X, y)
    assert model.n_vectors_ == model.support_vectors_.shape[0] == round(0.2 * model.n_whole_)
    assert model.n_support_.sum() == model.n_vectors_
    assert model.dual_coef_.shape == (45, model.n_vectors_)
    assert (model.predict(X) == svc.predict(X)).mean() > 0.97
    assert model.residual_ < 0.2


@pytest.mark.parametrize("multiclass", ["pairwise", "one_vs_rest"])
def test_few_vectors_that_are_fitted_to_decisions_keep_more_labels(digits, multiclass):
    X, y = digits
    whole = SMOSVC(C=10.0, gamma=0.6, multiclass=multiclass).fit(X[:300], y[:300])
    options = {"n_vectors": 15, "max_refine": 30}
    models = [reduce(whole, fitted_to=to, X=X[:300], **options) for to in ("norm", "decisions")]
    kept = [(model.predict(X) == whole.predict(X)).mean() for model in models]
    assert kept[1] > kept[0] + 0.15
    params = whole.get_params() | options | {"fitted_to": "decisions"}
    params = {name: value for name, value in params.items() if name in ReducedSetSVC().get_params()}
    for samples in (X[:300], sparse.csr_matrix(X[:300])):
        model = ReducedSetSVC(**params).fit(samples, y[:300])
        assert (model.predict(X) == whole.predict(X)).mean() > kept[0] + 0.15
        changes = np.abs(model.decision_function(X) - whole.decision_function(X)).max(axis=0)
        assert multiclass == "pairwise" or (changes <= model.error_bound_).all()


def test_a_random_choice_with_the_old_weights_loses_more(digits, svc):
    """The reason for a method: the same number of vectors at random keeps far fewer labels."""
    X, _ = digits
    chosen = np.sort(np.random.default_rng(0).permutation(svc.support_.size)[: svc.support_.size // 10])
    K = rbf_kernel(X, svc.support_vectors_, gamma=0.1)
    K[:, np.setdiff1d(np.arange(K.shape[1]), chosen)] = 0.0
    model = SMOSVC(C=10.0, gamma=0.1).fit(*digits)
    labels = votes(model._subproblems_on(K[:, : model.support_.size], model.intercept_), 10).argmax(axis=1)
    assert (labels == svc.predict(X)).mean() + 0.1 < (reduce(svc, 0.1).predict(X) == svc.predict(X)).mean()


@pytest.mark.parametrize("multiclass", ["pairwise", "one_vs_rest"])
@pytest.mark.parametrize("n_vectors", [0.3, 0.9, 1.0])
def test_no_certified_label_is_changed(digits, multiclass, n_vectors):
    X, y = digits
    whole = SMOSVC(C=10.0, gamma=0.1, multiclass=multiclass).fit(X, y)
    model = reduce(whole, n_vectors, X=X, max_refine=20)
    labels, certain = model.predict(X, return_certified=True)
    assert model.certified_ == certain.mean()
    assert_array_equal(labels[certain], whole.predict(X)[certain])
    assert_array_equal(labels, model.predict(X))
    assert n_vectors < 0.9 or certain.mean() > 0.5
    if n_vectors == 1.0:
        assert_array_equal(certain, True)
        assert_says(model.reduction_, "whole machine")
        assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("break_ties", [False, True])
def test_certain_votes_are_those_of_all_decisions_within_the_bounds(break_ties):
    rng = np.random.default_rng(0)
    d = rng.normal(size=(300, 6)).round(1)
    b = rng.uniform(0.0, 1.0, (300, 6)) * rng.choice([0.0, 0.2, 1.0], (300, 1))
    certain = certain_labels(d, b, 4, True, break_ties)
    label = votes(d, 4, break_ties=break_ties).argmax(axis=1)
    changed = np.zeros(300, dtype=bool)
    for _ in range(300):
        moved = d + b * rng.choice([-1.0, -0.5, 0.5, 1.0], (300, 6))
        changed |= votes(moved, 4, break_ties=break_ties).argmax(axis=1) != label
    assert not (certain & changed).any()
    assert certain[b.max(axis=1) == 0.0].mean() > 0.5
    assert np.mean(certain) > 0.2


@pytest.mark.parametrize(
    "model", [SVC(C=10.0, gamma=0.1, break_ties=False), MNSVC(C=10.0, gamma=0.1, multiclass="all_at_once")]
)
def test_reduce_takes_any_machine(digits, model):
    X, y = digits
    model.fit(X, y)
    whole = reduce(model, 1.0)
    shape = {"decision_function_shape": "ovo"} if isinstance(model, SVC) else {}
    assert_allclose(
        whole.set_params(**shape).decision_function(X),
        model.set_params(**shape).decision_function(X),
        atol=1e-9,
    )
    assert_array_equal(whole.set_params(decision_function_shape="ovr").predict(X), model.predict(X))
    assert np.isnan(whole.certified_)
    assert (reduce(model, 60).predict(X) == model.predict(X)).mean() > 0.97


def test_two_classes_and_sparse_samples(digits):
    X, y = digits
    X, y = X[y < 2], np.where(y[y < 2] == 0, "no", "yes")
    dense = ReducedSetSVC(gamma=0.1, n_vectors=5).fit(X, y)
    csr = ReducedSetSVC(gamma=0.1, n_vectors=5).fit(sparse.csr_matrix(X), y)
    assert sparse.issparse(csr.support_vectors_)
    assert dense.decision_function(X).shape == y.shape
    assert_allclose(csr.decision_function(sparse.csr_matrix(X)), dense.decision_function(X), atol=1e-4)
    of_svc = reduce(SVC(gamma=0.1).fit(sparse.csr_matrix(X), y), 5)
    assert_array_equal(of_svc.predict(X), dense.predict(X))


@pytest.mark.parametrize("method", ["greedy", "backward", "l1", "exact"])
@pytest.mark.filterwarnings("error")
def test_sums_may_vanish(method):
    """Every sample has a copy of the other class."""
    X, y = np.repeat(np.eye(2), 2, axis=0), [0, 1, 0, 1]
    model = ReducedSetSVC(kernel="linear", n_vectors=2, method=method).fit(X, y)
    assert_allclose(model.decision_function(X), 0.0, atol=1e-12)


@pytest.mark.parametrize("method", ["greedy", "backward", "l1", "exact"])
def test_every_choice_of_vectors_takes_a_matrix(two_classes, method):
    X, y = np.tile(two_classes[0], (2, 1)), np.tile(two_classes[1], 2)  # half of the vectors depend on others
    options = {"C": 10.0, "n_vectors": 0.5, "method": method, "refine": False}
    expected = ReducedSetSVC(gamma=0.1, **options).fit(X, y)
    K = rbf_kernel(X, gamma=0.1)
    of_gram = ReducedSetSVC(kernel="precomputed", **options).fit(K, y)
    of_callable = ReducedSetSVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.1), **options).fit(X, y)
    for model, samples in ((of_gram, K), (of_callable, X)):
        assert_allclose(model.error_bound_, expected.error_bound_, rtol=0.1)
        assert_allclose(model.decision_function(samples), expected.decision_function(X), atol=1e-4)


def test_precomputed_and_callable_kernels_choose_among_their_vectors(digits):
    X, y = digits
    options = {"C": 10.0, "n_vectors": 40, "refine": False}
    expected = ReducedSetSVC(gamma=0.1, **options).fit(X, y)
    K = rbf_kernel(X, gamma=0.1)
    of_gram = ReducedSetSVC(kernel="precomputed", **options).fit(K, y)
    of_callable = ReducedSetSVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.1), **options).fit(X, y)
    shifted = ReducedSetSVC(kernel="precomputed", gram_shift=0.5, **options).fit(K - 0.5, y)
    for model, samples in ((of_gram, K), (of_callable, X), (shifted, K - 0.5)):
        assert_array_equal(model.support_, expected.support_)
        assert_allclose(model.decision_function(samples), expected.decision_function(X), atol=0.02)
        assert np.isnan(model.certified_)
    with raises(ValueError, "method='greedy'", "refine=False"):
        ReducedSetSVC(kernel="precomputed").fit(K, y)
    with raises(ValueError, "fitted_to='decisions'", "named kernel", "fitted_to='norm'"):
        reduce(model, refine=False, fitted_to="decisions", X=K)
    with raises(ValueError, "return_certified", "k(x, x)"):
        of_gram.predict(K, return_certified=True)
    plain = SMOSVC(kernel="precomputed", C=10.0).fit(K, y)
    with raises(ValueError, "X", "Gram matrix"):
        reduce(plain, refine=False)
    assert_array_equal(reduce(plain, 40, refine=False, X=K).predict(K), of_gram.predict(K))


def test_auto_keeps_the_labels_of_held_out_samples(digits):
    X, y = digits
    n = len(y) * 2 // 3
    whole = SMOSVC(C=10.0, gamma=0.1).fit(X[:n], y[:n])
    model = reduce(whole, "auto", refine=False, held_out=X[n:], tolerance=0.02)
    changed = np.mean(model.predict(X[n:]) != whole.predict(X[n:]))
    fewer = reduce(whole, model.n_vectors_ - 1, refine=False)
    assert changed <= 0.02 < np.mean(fewer.predict(X[n:]) != whole.predict(X[n:]))
    with raises(ValueError, "fitted_to='decisions'", "X", "fitted_to='norm'"):
        reduce(whole, fitted_to="decisions")
    with raises(ValueError, "2 features", "64"):
        reduce(whole, fitted_to="decisions", X=X[:, :2])
    with raises(ValueError, "n_vectors='auto'", "held_out"):
        reduce(whole, "auto")
    fitted = ReducedSetSVC(C=10.0, gamma=0.1, n_vectors="auto", refine=False, random_state=0).fit(X, y)
    assert 1 < fitted.n_vectors_ < fitted.n_whole_
    with raises(ValueError, "n_vectors='auto'", "4 samples"):
        ReducedSetSVC(n_vectors="auto").fit(X[:3], [0, 1, 1])


def test_auto_finds_the_same_number_on_a_matrix(two_classes):
    X, y = two_classes
    options = {"C": 10.0, "n_vectors": "auto", "refine": False, "random_state": 0}
    expected = ReducedSetSVC(gamma=0.1, **options).fit(X, y)
    K = rbf_kernel(X, gamma=0.1)
    model = ReducedSetSVC(kernel="precomputed", **options).fit(K, y)
    assert model.n_vectors_ == expected.n_vectors_ < model.n_whole_
    assert_array_equal(model.predict(K), expected.predict(X))


def test_auto_holds_out_only_samples_with_weight():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.repeat([0, 1], [36, 4])
    weight = np.where(np.arange(40) < 37, 1.0, 0.0)  # one sample of the second class
    for seed in range(5):
        model = ReducedSetSVC(gamma=1.0, n_vectors="auto", refine=False, random_state=seed)
        assert_array_equal(model.fit(X, y, weight).classes_, [0, 1])
    once, twice = model.fit(X, y).n_vectors_, model.fit(X, y, 1.0).n_vectors_
    assert once == twice


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_vectors": "auto"},
        {"fitted_to": "decisions"},
        {"method": "exact"},
        {"kernel": "precomputed", "refine": False},
        {"kernel": lambda A, B: A @ B.T, "refine": False, "n_vectors": "auto"},
    ],
)
def test_a_training_without_time_for_a_step_has_no_vectors(n_classes, options):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % n_classes
    X = rbf_kernel(X) if options.get("kernel") == "precomputed" else X
    model = ReducedSetSVC(max_seconds=1e-9, **options)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        model.fit(X, y)
    assert (model.fit_status_, model.n_vectors_, model.n_whole_) == (2, 0, 0)
    assert model.dual_coef_.shape == (n_classes * (n_classes - 1) // 2, 0)
    assert_array_equal(model.error_bound_, 0.0)
    assert np.isfinite(model.decision_function(X)).all()
    with raises(ValueError, "reduce", "support vectors"):
        reduce(model, X=X)


@pytest.mark.parametrize("wanted", [1, 2, 7, 63, 64, 100])
def test_the_fewest_are_found(wanted):
    assert fewest(lambda m: m >= wanted, 100) == wanted


def test_exact_needs_one_vector_for_each_linear_subproblem():
    X, y = load_iris(return_X_y=True)
    whole = SMOSVC(kernel="linear", C=1.0).fit(X, y)
    model = ReducedSetSVC(kernel="linear", C=1.0, method="exact", n_vectors="auto").fit(X, y)
    assert model.n_vectors_ == 3
    assert_allclose(model.coef_, whole.coef_, atol=1e-12)
    assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-9)
    assert model.certified_ > 0.99


def test_at_least_one_vector_and_shares_as_in_the_lecture(digits):
    """Half of 843 and of 1,215 vectors are 422 and 608 in the lecture: halves are rounded up."""
    from solvers.estimators.reducedsetsvc import _number_of

    assert [_number_of(0.5, n) for n in (843, 1215, 4191, 1670)] == [422, 608, 2096, 835]
    assert [_number_of(0.01, n) for n in (843, 1215, 4191)] == [8, 12, 42]
    X, y = digits
    few = reduce(SMOSVC(gamma=0.01).fit(X[:9], [0, 1] * 4 + [0]), 0.01)
    assert few.n_vectors_ == 1
    merged = reduce(SMOSVC(C=10.0, gamma=0.1).fit(X, y), 3, "merge")
    assert merged.n_vectors_ == 10
    assert_says(merged.reduction_, "one of each class")


@pytest.mark.parametrize("n_vectors", [0, -1, 0.0, 1.5, np.nan, np.inf, "all"])
def test_impossible_numbers_are_refused(digits, svc, n_vectors):
    with raises(ValueError, "n_vectors"):
        reduce(svc, n_vectors)
    with raises(ValueError, "n_vectors"):
        ReducedSetSVC(n_vectors=n_vectors).fit(*digits)


def test_other_models_are_refused(digits):
    X, y = digits
    with raises(TypeError, "PerfSVC"):
        reduce(PerfSVC().fit(X, y))
    with pytest.raises(NotFittedError):
        reduce(SMOSVC())
    with raises(ValueError, "sigmoid", "positive semidefinite"):
        reduce(SVC(kernel="sigmoid").fit(X, y))
    with raises(ValueError, "merge", "'rbf'", "'greedy'"):
        reduce(SVC(kernel="poly").fit(X, y), method="merge")


def test_probabilities_are_calibrated_again():
    X, y = first_digits(600)
    whole = SMOSVC(C=10.0, gamma=0.1, probability=True, random_state=0).fit(X[:400], y[:400])
    with raises(ValueError, "probabilities", "X", "y"):
        reduce(whole, 0.3)
    with raises(ValueError, "y", "classes"):
        reduce(whole, 0.3, X=X[:5], y=y[:5])
    model = reduce(whole, 0.3, X=X[400:500], y=y[400:500], refine=False)
    p = model.predict_proba(X[500:])
    assert_allclose(p.sum(axis=1), 1.0)
    loss = log_loss(y[500:], whole.predict_proba(X[500:]))
    assert log_loss(y[500:], p) < loss
    fitted = ReducedSetSVC(C=10.0, gamma=0.1, probability=True, random_state=0, refine=False, n_vectors=0.5)
    assert log_loss(y[500:], fitted.fit(X[:400], y[:400]).predict_proba(X[500:])) < 1.1 * loss


def test_the_same_input_gives_the_same_bits(digits):
    X, y = digits
    models = [ReducedSetSVC(C=10.0, gamma=0.1, max_refine=5, n_jobs=n).fit(X, y) for n in (1, 2)]
    assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)
    assert_array_equal(models[0].support_vectors_, models[1].support_vectors_)
