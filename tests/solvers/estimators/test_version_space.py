"""The machines of the version space behave as scikit-learn's classifiers, in every layout of coefficients."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

import solvers
from solvers import (
    BayesPointClassifier,
    EllipsoidalKernelSVC,
    EllipsoidSVC,
    RelativeMarginSVC,
    SoftBallSVC,
)
from solvers.multiclass import pairs_of, votes
from tests.messages import assert_says, raises, warns

GAMMA = 0.5
MACHINES = [
    BayesPointClassifier(C=10.0, gamma=GAMMA, tol=0.02, random_state=0),
    RelativeMarginSVC(C=4.0, gamma=GAMMA, bound=1.2, tol=1e-6),
    EllipsoidalKernelSVC(C=4.0, gamma=GAMMA, tol=1e-4),
    SoftBallSVC(0.3, gamma=GAMMA, tol=1e-6),
]
IDS = [type(machine).__name__ for machine in MACHINES]
WEIGHTS = "check_sample_weight_equivalence_on_{}_data"


def expected_failures(model):
    why = "models agree within the tolerance, not to seven digits"
    if isinstance(model, BayesPointClassifier):
        why = (
            "a copy of a sample has a ridge and a plane of its own, and another order draws other directions"
        )
    elif not isinstance(model, EllipsoidalKernelSVC):
        return {}
    return {WEIGHTS.format(kind): why for kind in ("dense", "sparse")}


CHECKED = [
    BayesPointClassifier(tol=0.02, random_state=0),
    RelativeMarginSVC(gamma=0.1, tol=1e-9),
    SoftBallSVC(gamma=0.1, tol=1e-9),
    EllipsoidalKernelSVC(gamma=0.1, tol=1e-4, ridge=0.1),
]


@pytest.mark.sample(3)
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def coefficients_of(model, y):
    """Return the signed coefficients of each subproblem for all rows, positive for its first class."""
    classes, rows = model.classes_, model.support_
    if model.multiclass == "one_vs_rest" and classes.size > 2:
        found = np.zeros((classes.size, y.size))
        found[:, rows] = model.dual_coef_
        return found
    pairs = pairs_of(classes.size)
    found = np.zeros((len(pairs), y.size))
    for s, (i, j) in enumerate(pairs):
        for a, row in enumerate(rows):
            if y[row] == classes[i]:
                found[s, row] = model.dual_coef_[j - 1, a]
            elif y[row] == classes[j]:
                found[s, row] = model.dual_coef_[i, a]
    return -found if classes.size == 2 else found


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
@pytest.mark.parametrize("multiclass", ["pairwise", "one_vs_rest"])
def test_signed_coefficients_are_read_as_they_are(iris, machine, multiclass):
    X, y = iris
    rng = np.random.default_rng(0)
    X = X + 0.05 * rng.standard_normal(X.shape)
    test = X + 0.1 * rng.standard_normal(X.shape)
    for kept in (np.full(150, True), y > 0):
        rows, labels = X[kept], y[kept]
        model = clone(machine).set_params(multiclass=multiclass).fit(rows, labels)
        coefficients = coefficients_of(model, labels)
        decisions = rbf_kernel(test, rows, gamma=GAMMA) @ coefficients.T
        decisions += -model.intercept_ if model.classes_.size == 2 else model.intercept_
        if model.classes_.size == 2:
            assert_allclose(model.decision_function(test), -decisions[:, 0], atol=1e-9)
        elif multiclass == "pairwise":
            assert_allclose(model.decision_function(test), votes(decisions, 3), atol=1e-9)
        else:
            assert_allclose(model.decision_function(test), decisions, atol=1e-9)
        assert_array_equal(np.flatnonzero(coefficients.any(axis=0)), np.sort(model.support_))
        assert_array_equal(
            np.bincount(labels[model.support_], minlength=3)[-model.classes_.size :], model.n_support_
        )
    if isinstance(machine, (RelativeMarginSVC, EllipsoidalKernelSVC)):
        sign = np.where(labels == 1, 1.0, -1.0)
        assert (coefficients[0] * sign < 0).any()
        assert (coefficients[0] * sign > 0).any()


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
@pytest.mark.parametrize("multiclass", ["pairwise", "one_vs_rest"])
def test_a_path_equals_fits(iris, machine, multiclass):
    X, y = iris
    X = X + 0.05 * np.random.default_rng(0).standard_normal(X.shape)
    is_ball = isinstance(machine, SoftBallSVC)
    values, name = ([0.2, 0.3, 0.7], "nu") if is_ball else ([0.5, 4.0, 20.0], "C")
    weight = np.random.default_rng(1).uniform(0.5, 2.0, y.size)
    model = clone(machine).set_params(multiclass=multiclass)
    path = model.fit_path(X, y, values, weight)
    of_matrix = clone(model).set_params(kernel="precomputed")
    K = rbf_kernel(X, gamma=GAMMA)
    on_matrix = of_matrix.fit_path(K, y, values, weight)
    labels, labels_on_matrix = path.predict_path(X), on_matrix.predict_path(K)
    for k, value in enumerate(values):
        fitted = clone(model).set_params(**{name: value}).fit(X, y, weight)
        assert path.objective_[k] == pytest.approx(fitted.objective_, rel=1e-3)
        assert (labels[k] != fitted.predict(X)).mean() <= 0.01
        assert (labels_on_matrix[k] != fitted.predict(X)).mean() <= 0.01
        assert path.n_support_[k] == pytest.approx(fitted.support_.size, abs=6)
        assert path.fit_status_[k] == fitted.fit_status_
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
def test_storages_threads_and_starts_change_nothing(iris, machine):
    X, y = iris
    model = clone(machine).fit(X, y)
    expected = model.decision_function(X)
    assert_allclose(clone(machine).fit(sparse.csr_matrix(X), y).decision_function(X), expected, atol=0.05)
    assert_array_equal(clone(machine).set_params(n_jobs=2).fit(X, y).decision_function(X), expected)
    K = rbf_kernel(X, gamma=GAMMA)
    table = clone(machine).set_params(kernel="precomputed").fit(K, y)
    assert (table.predict(K) != model.predict(X)).mean() <= 0.01
    if "warm_start" in model.get_params():
        warm = clone(machine).set_params(warm_start=True).fit(X, y)
        cold = warm.n_iter_.sum()
        warm.fit(X, y)
        assert warm.n_iter_.sum() < cold
        assert warm.objective_ == pytest.approx(model.objective_, rel=1e-3)


@pytest.mark.parametrize("machine", MACHINES[1:], ids=IDS[1:])
def test_a_weight_is_a_repetition(two_classes, machine):
    X, y = two_classes
    weight = np.random.default_rng(0).integers(1, 4, y.size)
    rows = np.repeat(np.arange(y.size), weight)
    weighted, repeated = clone(machine).fit(X, y, weight), clone(machine).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-3)
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=2e-2)
    of_class = clone(machine).set_params(class_weight={0: 0.5, 1: 3.0}).fit(X, y)
    same = clone(machine).fit(X, y, np.where(y == 0, 0.5, 3.0))
    assert of_class.objective_ == pytest.approx(same.objective_)


def test_a_weight_of_a_bayes_point_is_a_ridge(two_classes):
    X, y = two_classes
    options = {"gamma": GAMMA, "tol": 0.01, "random_state": 0}
    weighted = BayesPointClassifier(2.0, **options).fit(X, y, np.full(y.size, 3.0))
    scaled = BayesPointClassifier(6.0, **options).fit(X, y)
    assert_array_equal(weighted.dual_coef_, scaled.dual_coef_)


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
def test_probabilities_and_limits(two_classes, machine):
    X, y = two_classes
    model = clone(machine).set_params(probability=True).fit(X, y)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    with pytest.warns(ConvergenceWarning):
        stopped = clone(machine).set_params(max_iter=3).fit(X, y)
    assert stopped.fit_status_ == 1
    with pytest.warns(ConvergenceWarning):
        late = clone(machine).set_params(max_seconds=1e-9).fit(X, y)
    assert late.fit_status_ == 2
    assert np.isfinite(late.decision_function(X)).all()


def test_the_smallest_nu_is_the_smallest_ball_without_slack():
    X, y = np.random.default_rng(1).normal(size=(60, 2)), np.arange(60) % 2
    models = [SoftBallSVC(nu, gamma=GAMMA).fit(X, y) for nu in (0.1 / y.size, 1e-12, 1e-300)]
    assert all(model.converged_ for model in models)
    assert_allclose([model.objective_ for model in models], models[0].objective_, rtol=1e-6)


@pytest.mark.parametrize("machine", MACHINES, ids=IDS)
def test_few_samples(machine):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for X, y in (([[0.0], [1.0]], [0, 1]), ([[0.0], [1.0], [3.0]], ["a", "b", "b"])):
            model = clone(machine).fit(X, y)
            assert np.isfinite(model.decision_function(X)).all()
            assert model.predict(X).tolist() == list(y)


@pytest.mark.parametrize("machine", [EllipsoidSVC(gamma=GAMMA), *MACHINES], ids=["EllipsoidSVC", *IDS])
def test_kernel_values_that_are_not_finite_are_refused(two_classes, machine):
    X, y = two_classes
    K = rbf_kernel(X, gamma=GAMMA)
    for value in (np.nan, np.inf):
        K[3, 4] = value
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            clone(machine).set_params(kernel="precomputed").fit(K, y)
        with raises(ValueError, "kernel values are not finite", "Correct the kernel"):
            clone(machine).set_params(kernel=lambda A, B, v=value: np.full((len(A), len(B)), v)).fit(X, y)


@pytest.mark.parametrize("machine", MACHINES[1:], ids=IDS[1:])
def test_a_tolerance_below_rounding_is_answered_by_the_gap_that_was_reached(two_classes, machine):
    X, y = two_classes
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = clone(machine).set_params(tol=1e-17).fit(X, y)
    assert (model.fit_status_, model.converged_, len(caught)) == (4, False, 1)
    assert model.gap_ < 1e-5
    assert_says(str(caught[0].message), type(machine).__name__, "rounding", "tol", f"gap {model.gap_:.2g}")


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_equal_samples_of_two_classes(kernel):
    X, y = np.ones((10, 2)), np.arange(10) % 2
    for machine in (BayesPointClassifier(tol=0.005, random_state=0), RelativeMarginSVC()):
        model = machine.set_params(kernel=kernel).fit(X, y)
        assert model.converged_
        assert np.ptp(model.decision_function(X)) < 1e-9
    with raises(ValueError, "EllipsoidalKernelSVC", "all samples", "equal", "larger gamma"):
        EllipsoidalKernelSVC(kernel=kernel).fit(X, y)
    with warns(ConvergenceWarning, "SoftBallSVC", "touch", "No nu", "another kernel"):
        SoftBallSVC(kernel=kernel).fit(X, y)


FIRST_FITS = [
    *("EllipsoidSVC()", "EllipsoidSVC(solver='smo')", "EllipsoidSVC(margin='hard')"),
    *("BayesPointClassifier()", "RelativeMarginSVC()", "EllipsoidalKernelSVC()", "SoftBallSVC()"),
]
FIRST_FIT = """
import time, warnings
import numpy as np
from solvers import *

warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(60, 3))
start = time.process_time()
{}.fit(X, X[:, 0] > 0)
print(time.process_time() - start)
"""


@pytest.mark.full
@pytest.mark.parametrize("machine", FIRST_FITS)
def test_a_first_fit_compiles_in_less_than_8_seconds(tmp_path, machine):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(Path(solvers.__file__).parents[1])
    code = FIRST_FIT.format(machine)
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert float(ran.stdout) < 8.0  # measured: 1.3 to 6.6


def test_what_is_refused(two_classes):
    X, y = two_classes
    for bound in (0.5, np.nan, -1.0, "x", None):
        with raises(ValueError, "RelativeMarginSVC", "bound", f"Got {bound!r}"):
            RelativeMarginSVC(bound=bound).fit(X, y)
    for name in ("slack", "ridge", "C"):
        with pytest.raises(ValueError, match=name):
            EllipsoidalKernelSVC(**{name: 0.0}).fit(X, y)
    for machine in MACHINES:
        with pytest.raises(ValueError, match="max_seconds"):
            clone(machine).set_params(max_seconds=1.0).fit_path(X, y, [0.5, 1.0])
