"""scikit-learn's ν machine, whose error for a ν that is too large names the limit."""

import doctest
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvers import NuSVC
from solvers.estimators.machine_sums import machine_of

WEIGHTS = "LIBSVM's ν does not see weights as repetitions, in scikit-learn's list as well"
EXPECTED = {
    "check_class_weight_classifiers": "class_weight is not used, in scikit-learn's list as well",
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@parametrize_with_checks([NuSVC()], expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def samples(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(sum(sizes), 2)), np.repeat(list("abcd")[: len(sizes)], sizes)


def limit_in(model, X, y, *weight):
    with pytest.raises(ValueError, match=r"NuSVC\(nu=.*\): expected nu below .* Set a smaller nu$") as found:
        model.fit(X, y, *weight)
    return float(re.search(r"below ([\d.]+),", str(found.value))[1]), str(found.value)


@pytest.mark.parametrize("sizes", [(10, 30), (30, 10), (10, 10), (5, 40, 20), (17, 3, 11, 17)])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_the_limit_is_named_and_is_the_limit(sizes, storage):
    X, y = samples(sizes)
    X = storage(X)
    limit = min(2 * min(a, b) / (a + b) for i, a in enumerate(sizes) for b in sizes[:i])
    for nu in {min(1.0, limit * (1 + 1e-9)), min(1.0, limit + 1e-3), 1.0}:
        found, text = limit_in(NuSVC(nu=nu), X, y)
        assert found == pytest.approx(limit, rel=1e-5)
        assert f"n = {min(sizes)}" in text
        assert f"n = {max(sizes)}" in text
    model = NuSVC(nu=0.999 * limit).fit(X, y)
    expected = svm.NuSVC(nu=0.999 * limit).fit(X, y)
    assert_array_equal(model.decision_function(X), expected.decision_function(X))
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected.predict(X))


@pytest.mark.parametrize(("sizes", "limit"), [((10, 30), 0.5), ((10, 10), 1.0), ((7, 9), 0.875)])
def test_the_limit_itself_is_too_large(sizes, limit):
    X, y = samples(sizes)
    with pytest.raises(ValueError, match="not finite"):  # scikit-learn blames the data
        svm.NuSVC(nu=limit).fit(X, y)
    assert limit_in(NuSVC(nu=limit), X, y)[0] == limit


def test_the_limit_is_that_of_the_weights():
    X, y = samples((10, 30))
    weight = np.where(y == "a", 2.0, 1.0)
    assert limit_in(NuSVC(nu=0.9), X, y, weight)[0] == pytest.approx(0.8)
    NuSVC(nu=0.79).fit(X, y, weight)
    weight[-10:] = 0.0
    found, text = limit_in(NuSVC(nu=1.0), X, y, weight.tolist())
    assert found == 1.0
    assert "total weight 20" in text


def test_other_errors_stay_as_they_are():
    X, y = samples((10, 30))
    with pytest.raises(ValueError, match=r"range \(0\.0, 1\.0\]"):
        NuSVC(nu=1.5).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        NuSVC(nu=0.9).fit(np.where(np.arange(80).reshape(40, 2) == 3, np.nan, X), y)
    with pytest.raises(ValueError, match="one; got 1 class"):
        NuSVC(nu=0.9).fit(X[:10], y[:10])
    with pytest.raises(ValueError, match="found one class: b"):
        NuSVC().fit(X, y, y == "b")
    with pytest.raises(ValueError, match="not finite"):
        NuSVC(nu=0.1, kernel="linear").fit(1e200 * X, y)


def test_it_is_a_machine_of_scikit_learn_to_others():
    X, y = samples((20, 20, 20))
    model = clone(NuSVC(nu=0.4, gamma=0.5)).fit(X, y)
    assert isinstance(model, svm.NuSVC)
    expected = svm.NuSVC(nu=0.4, gamma=0.5).get_params()
    assert model.get_params() == {name: expected[name] for name in expected if name != "probability"}
    sums = machine_of(model)  # of reduced sets
    assert sums.expansion.coefficients.shape == (model.support_.size, 3)
    assert_array_equal(sums.intercept, model.intercept_)


def test_the_example_runs_and_every_parameter_is_described():
    (test,) = doctest.DocTestFinder(recurse=False).find(NuSVC, "NuSVC", globs={})
    assert doctest.DocTestRunner().run(test).failed == 0
    described = re.findall(r"^    (\w+) : .*, default=(.*)$", NuSVC.__doc__, re.MULTILINE)
    found = {name: str(value) for name, value in NuSVC().get_params().items()}
    assert {name: value.strip('"') for name, value in described} == found
