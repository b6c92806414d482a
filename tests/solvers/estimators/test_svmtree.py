"""H1SVC and SVMTreeClassifier are scikit-learn classifiers, and refuse what they cannot do in a sentence."""

import doctest
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvers import H1SVC, SVMTreeClassifier
from tests.messages import assert_says, raises, warns

LOOSE = "the tail agrees to its tolerance only"
HARD = "no class weight makes a plane err on samples that it can separate"


def expected_failures(model):
    if isinstance(model, H1SVC):
        return {}
    of_tail = {f"check_sample_weight_equivalence_on_{kind}_data": LOOSE for kind in ("dense", "sparse")}
    return {"check_class_weight_classifiers": HARD} | (of_tail if model.tail else {})


@pytest.mark.sample(5)
@parametrize_with_checks(
    [
        H1SVC(),
        SVMTreeClassifier(multiclass="list", greedy=True),
        SVMTreeClassifier(multiclass="one_vs_rest", tail="rbf", gamma=0.1, tail_share=0.3),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.arange(60) % 2
X[:, 0] += Y


@pytest.mark.parametrize(
    ("model", "samples", "labels", "parts"),
    [
        (SVMTreeClassifier(C=0.0), X, Y, ["'C'", "(0.0, inf)", "0.0"]),
        (SVMTreeClassifier(tail="rbf"), X, Y, ["tail='rbf'", "gamma", "found None", "Set the width"]),
        (SVMTreeClassifier(), X, np.zeros(60), ["y has only one class"]),
        (SVMTreeClassifier(), np.where(X > 1.5, np.nan, X), Y, ["NaN"]),
        (SVMTreeClassifier(class_weight={0: -1.0}), X, Y, ["class_weight", "at least 0"]),
        (SVMTreeClassifier(probability=True), X[:3], [0, 0, 1], ["at least 2 of every class"]),
        (H1SVC(hard=7), X, Y, ["hard=7", "one of the labels", "Set hard"]),
        (H1SVC(), X, np.arange(60) % 3, ["Only binary classification", "SVMTreeClassifier"]),
    ],
    ids=["C", "gamma", "one class", "NaN", "class_weight", "probability", "hard", "three classes"],
)
def test_bad_input_gets_a_sentence(model, samples, labels, parts):
    with raises(ValueError, *parts):
        model.fit(samples, labels)
    assert not hasattr(model, "classes_")


def test_rows_with_nan_are_refused_at_prediction():
    for model in (SVMTreeClassifier().fit(X, Y), H1SVC().fit(X, Y)):
        with raises(ValueError, "NaN"):
            model.predict([[0.0, np.nan, 1.0]])


def test_limits_give_a_valid_list():
    with warns(ConvergenceWarning, "max_nodes", "raise max_nodes"):
        model = SVMTreeClassifier(max_nodes=1).fit(X, Y)
    assert (model.n_nodes_, model.fit_status_, model.converged_) == (1, 1, False)
    assert model.stopping_.startswith("max_nodes")
    assert model.score(X, Y) > 0.5
    with warns(ConvergenceWarning, "max_seconds"):
        model = SVMTreeClassifier(max_seconds=1e-9).fit(X, Y)
    assert (model.n_nodes_, model.fit_status_) == (0, 2)
    assert set(model.predict(X)) == {0}
    with warns(ConvergenceWarning, "max_iter"):
        H1SVC(max_iter=1).fit(X, Y)
    few = SVMTreeClassifier(min_cut=5).fit(X, Y)
    assert all(node.n_cut >= 5 for node in few.nodes_)
    assert few.converged_
    none = SVMTreeClassifier(min_cut=len(Y) + 1).fit(X, Y)
    assert (none.n_nodes_, none.converged_) == (0, True)
    assert_says(none.stopping_, "complete", "min_cut", "majority")
    assert "one label" not in none.stopping_


def test_constant_features_and_more_features_than_samples():
    constant = SVMTreeClassifier().fit(np.ones((6, 2)), [0, 1, 1, 0, 1, 1])
    assert (constant.n_nodes_, constant.predict([[1.0, 1.0]])[0]) == (0, 1)
    assert "majority" in constant.stopping_
    wide = np.random.default_rng(1).normal(size=(20, 50))
    model = SVMTreeClassifier().fit(wide, np.arange(20) % 2)
    assert (model.n_nodes_, model.score(wide, np.arange(20) % 2)) == (1, 1.0)
    assert "one plane separates" in model.stopping_


def test_greedy_on_many_sparse_features_says_how_much_memory():
    rows = sparse.random(40, 200_000, 1e-3, format="csr", random_state=0)
    with raises(ValueError, "greedy=True", "200,000", "GB", "Set greedy=False"):
        SVMTreeClassifier(greedy=True).fit(rows, np.arange(40) % 2)


def test_probabilities_are_those_of_the_calibration():
    model = SVMTreeClassifier(probability=True, random_state=0).fit(X, Y)
    probabilities = model.predict_proba(X)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    assert_allclose(np.exp(model.predict_log_proba(X)), probabilities)
    plain = SVMTreeClassifier().fit(X, Y)
    assert_array_equal(model.predict(X), plain.predict(X))
    assert not hasattr(plain, "predict_proba")


def test_probabilities_find_the_weights_of_any_labels():
    labels = np.array(["no", "yes"])[Y]
    model = SVMTreeClassifier(probability=True, class_weight={"yes": 3.0}, random_state=0).fit(X, labels)
    reference = SVMTreeClassifier(probability=True, class_weight={1: 3.0}, random_state=0).fit(X, Y)
    assert_array_equal(model.predict_proba(X), reference.predict_proba(X))
    assert_array_equal(model.predict(X), np.array(["no", "yes"])[reference.predict(X)])
    assert {node.exit_class for node in model.nodes_} <= {"no", "yes"}


def test_probabilities_of_a_class_with_few_samples_of_positive_weight():
    weights = np.where((Y == 1) & (np.cumsum(Y) > 2), 0.0, 1.0)  # two samples of class 1 are left
    for seed in range(8):  # with folds of all samples, some of these seeds train without class 1
        model = SVMTreeClassifier(probability=True, random_state=seed).fit(X, Y, weights)
        assert model.predict_proba(X).shape == (Y.size, 2)
    one = np.where((Y == 1) & (np.cumsum(Y) > 1), 0.0, 1.0)
    with raises(ValueError, "at least 2 of every class"):
        SVMTreeClassifier(probability=True).fit(X, Y, one)


def test_weights_count_as_repeated_samples_and_classes():
    twice = np.where(np.arange(60) % 3, 1.0, 2.0)
    weighted = SVMTreeClassifier().fit(X, Y, twice)
    repeated = SVMTreeClassifier().fit(
        np.repeat(X, twice.astype(int), axis=0), np.repeat(Y, twice.astype(int))
    )
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)
    by_class = SVMTreeClassifier(class_weight={1: 3.0}).fit(X, Y)
    assert by_class.class_weight_.tolist() == [1.0, 3.0]
    assert_allclose(
        by_class.decision_function(X),
        SVMTreeClassifier().fit(X, Y, np.where(Y, 3.0, 1.0)).decision_function(X),
        atol=1e-9,
    )


def test_the_planes_are_those_of_the_predictions():
    model = SVMTreeClassifier().fit(X, Y)
    directions, thresholds = model.planes_
    assert_allclose(np.linalg.norm(directions, axis=1), 1.0)
    assert thresholds.shape == (model.n_nodes_,)
    other = np.random.default_rng(2).normal(size=(200, 3))
    below = other @ directions.T < thresholds
    exits = np.array([node.exit_class for node in model.nodes_])
    leaves = below.any(axis=1)
    assert leaves.any()
    assert_array_equal(model.predict(other)[leaves], exits[below[leaves].argmax(axis=1)])
    with pytest.raises(AttributeError, match="before fit"):
        SVMTreeClassifier().planes_  # noqa: B018


@pytest.mark.parametrize("solver", [H1SVC, SVMTreeClassifier])
def test_the_example_runs(solver):
    (test,) = doctest.DocTestFinder(recurse=False).find(solver, solver.__name__, globs={})
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_a_fitted_model_is_pickled_and_has_its_counts():
    model = SVMTreeClassifier(tail="rbf", gamma=0.5, tail_share=0.3).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    tail = model._tails[0]
    assert model.n_support_.sum() == model.n_nodes_ + tail.support_.size
    of_tail = tail.support_vectors_.size + tail.dual_coef_.size + tail.intercept_.size
    assert model.n_model_values_ == model.n_nodes_ * (3 + 1) + of_tail
    assert model.tail_share_[0] <= 0.3


@pytest.mark.parametrize("multiclass", ["list", "pairwise", "one_vs_rest"])
def test_a_parameter_that_is_set_after_fit_changes_no_prediction(iris, multiclass):
    X, y = iris
    model = SVMTreeClassifier(multiclass=multiclass).fit(X, y)
    decisions = model.decision_function(X)
    for other in ("list", "pairwise", "one_vs_rest"):
        assert_array_equal(model.set_params(multiclass=other).decision_function(X), decisions)
