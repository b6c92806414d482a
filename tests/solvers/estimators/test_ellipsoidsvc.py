"""EllipsoidSVC behaves as scikit-learn's classifiers do, and says what it cannot do."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from solvers import EllipsoidSVC
from tests.messages import assert_says, raises, warns

LOOSE = "check_sample_weight_equivalence_on_{}_data"
EXPECTED = {
    LOOSE.format(kind): "models agree within the tolerance, not to seven digits"
    for kind in ("dense", "sparse")
}
HARD = EXPECTED | {"check_class_weight_classifiers": "weights of classes have no effect on a hard margin"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.sample(5)
@parametrize_with_checks(
    [EllipsoidSVC(), EllipsoidSVC(margin="hard"), EllipsoidSVC(solver="smo")],
    expected_failed_checks=lambda e: HARD if e.margin == "hard" else EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sources_of_the_kernel_agree(two_classes):
    X, y = two_classes
    options = {"C": 3.0, "tol": 1e-6}
    model = EllipsoidSVC(gamma=0.5, **options).fit(X, y)
    assert model.converged_
    K = rbf_kernel(X, gamma=0.5)
    rivals = [
        (EllipsoidSVC(gamma=0.5, **options), sparse.csr_matrix(X)),
        (EllipsoidSVC(kernel="precomputed", **options), K),
        (EllipsoidSVC(kernel="precomputed", **options), K.astype(np.float32)),
        (EllipsoidSVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5), **options), X),
        (EllipsoidSVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5), rank=None, **options), X),
        (EllipsoidSVC(gamma=0.5, rank=None, **options), X),
    ]
    for rival, samples in rivals:
        assert rival.fit(samples, y).objective_ == pytest.approx(model.objective_, abs=1e-3)
        assert_allclose(rival.decision_function(samples), model.decision_function(X), atol=1e-2)
    # Features and their products are factors of the same matrix.
    linear = EllipsoidSVC(kernel="linear", **options).fit(X, y)
    gram = EllipsoidSVC(kernel="precomputed", **options).fit(X @ X.T, y)
    assert gram.objective_ == pytest.approx(linear.objective_, rel=1e-4)
    assert_allclose(X @ linear.coef_[0] + linear.intercept_, linear.decision_function(X), atol=1e-9)


def test_weights_are_those_of_repeated_samples(two_classes):
    X, y = two_classes
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    rows = np.repeat(np.arange(len(y)), weights.astype(int))
    params = {"C": 2.0, "gamma": 0.5, "tol": 1e-6}
    weighted = EllipsoidSVC(**params).fit(X, y, sample_weight=weights)
    repeated = EllipsoidSVC(**params).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=1e-3)
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-2)
    heavy = EllipsoidSVC(class_weight={0: 1.0, 1: 5.0}, **params).fit(X, y)
    by_sample = EllipsoidSVC(**params).fit(X, y, sample_weight=np.where(y == 1, 5.0, 1.0))
    assert_allclose(heavy.decision_function(X), by_sample.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("multiclass", ["pairwise", "one_vs_rest"])
def test_paths_have_the_models_of_fits(iris, multiclass):
    X, y = iris
    model, Cs = EllipsoidSVC(gamma=2.0, multiclass=multiclass, tol=1e-5), [0.5, 2.0, 8.0]
    path = model.fit_path(X, y, Cs)
    assert path.converged_.all()
    for C, labels, objective in zip(Cs, path.predict_path(X), path.objective_, strict=True):
        fitted = EllipsoidSVC(**(model.get_params() | {"C": C})).fit(X, y)
        assert (fitted.predict(X) == labels).mean() > 0.99
        assert fitted.objective_ == pytest.approx(objective, abs=1e-2)
    of_r = model.fit_path(X, y, Cs, r=[0.5, 0.9])
    assert_allclose(of_r[1].objective_, path.objective_, rtol=1e-6)
    for values in ([0.5, 1.0], [0.0, 0.5], [0.9, 0.5], [], "x"):
        with raises(ValueError, "r: expected", "(0, 1)", str(values)):
            model.fit_path(X, y, Cs, r=values)


def test_same_bits_for_any_number_of_threads(iris):
    X, y = iris
    models = [EllipsoidSVC(gamma=2.0, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2)]
    assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)


def test_attributes(two_classes, iris):
    X, y = iris
    model = EllipsoidSVC(C=8.0, gamma=2.0, probability=True, random_state=0).fit(X, y)
    assert model.r_.shape == model.ellipsoid_volume_.shape == model.outside_.shape == (3,)
    assert ((model.outside_ >= 0) & (model.outside_ <= 1)).all()
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    # Decisions have a mean margin of 1, so that those of all pairs are comparable.
    X, y = two_classes
    model = EllipsoidSVC(C=1.0, gamma=0.5).fit(X, y)
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    assert 0.3 < np.abs(margins).mean() < 3.0


def test_warm_start_saves_rounds(two_classes):
    X, y = two_classes
    model = EllipsoidSVC(C=1.0, gamma=0.5, warm_start=True).fit(X, y)
    cold = EllipsoidSVC(C=1.5, gamma=0.5).fit(X, y)
    warm = model.set_params(C=1.5).fit(X, y)
    assert warm.n_iter_.sum() < cold.n_iter_.sum()
    assert warm.objective_ == pytest.approx(cold.objective_, abs=1e-3 * len(y))


def test_hard_margins_of_classes_that_share_a_row():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    X[1] = X[0]
    with warns(ConvergenceWarning, "margin='hard'", "C=1e8", "share"):
        model = EllipsoidSVC(margin="hard", gamma=1.0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert_says(model.stopping_, "1e8")


def test_a_hard_margin_of_equal_samples_is_that_of_a_large_C():
    X, y = np.ones((10, 2)), np.arange(10) % 2
    with warns(ConvergenceWarning, "margin='hard'", "C=1e8", "share"):
        model = EllipsoidSVC(margin="hard").fit(X, y)
    assert_says(model.stopping_, "1e8")
    assert np.isfinite(model.decision_function(X)).all()


def test_collapse_is_said_once():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    for C in (1e2, 1e6, 1e8, 1e300):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = EllipsoidSVC(C=C, kernel="linear").fit(X, y)
        # Rounding hides the optimum of the last one, and whether v vanishes.
        assert model.collapse_ == model.converged_ == (C <= 1e8)
        assert len(caught) == 1
        said = ("collapse_", "C") if model.converged_ else ("smaller C", "gap")
        assert_says(str(caught[0].message), *said)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("C", "scale"), [(1.0, 1e7), (1e-20, 1.0)])
def test_a_short_v_of_small_penalties_is_no_collapse(iris, C, scale):
    X, y = iris
    model = EllipsoidSVC(C=C, kernel="linear").fit(scale * X[y < 2], y[y < 2])
    assert not model.collapse_
    assert "collapse" not in model.stopping_


def test_pair_steps_take_the_largest_penalties(iris):
    X, y = iris
    model = EllipsoidSVC(C=1e300, gamma=2.0, solver="smo").fit(X, y)
    assert model.converged_


def test_advice_for_a_hard_margin_does_not_name_C():
    X = np.random.default_rng(8).normal(size=(45, 1))
    y = (X[:, 0] > 0).astype(int)
    with warns(ConvergenceWarning, "hardly separate", "margin='soft'"):
        model = EllipsoidSVC(margin="hard", gamma=0.5, tol=1e-13).fit(X, y)
    assert model.fit_status_ == 4


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_samples_are_named_instead_of_a_large_C(kernel, value):
    X, y = np.full((10, 2), value), np.arange(10) % 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = EllipsoidSVC(C=1e-3, kernel=kernel).fit(X, y)
    assert (model.collapse_, len(caught)) == (True, 1)
    assert_says(str(caught[0].message), "EllipsoidSVC", "all samples", "equal", "collapse_", "larger gamma")
    assert "smaller C" not in str(caught[0].message)


def test_small_r_is_raised_and_said():
    X = np.vstack((np.full((5, 2), 3.0), np.full((5, 2), -3.0))) + np.random.default_rng(0).normal(
        size=(10, 2)
    )
    y = np.repeat([0, 1], 5)
    model = EllipsoidSVC(r=0.1, margin="hard", kernel="rbf", gamma=0.05).fit(X, y)
    assert model.converged_
    assert model.r_[0] > 0.1
    assert_says(model.stopping_, "r raised")


def test_degenerate_samples():
    for X in (np.arange(6.0)[:, None], np.ones((6, 2)), np.eye(6)[:2]):
        y = np.arange(len(X)) % 2
        for kernel in ("rbf", "linear"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = EllipsoidSVC(kernel=kernel, gamma=1.0).fit(X, y)
            assert np.isfinite(model.decision_function(X)).all()


def test_bad_input(two_classes):
    X, y = two_classes
    refused = {
        "r": (0.0, 1.0, -1.0, 1.5, np.nan, "a", None),
        "rank": (5, "full"),
        "margin": ("x",),
        "solver": ("x",),
        "rounds": (0,),
        "tol": (0.0,),
    }
    for name, values in refused.items():
        for value in values:
            with raises(ValueError, "EllipsoidSVC", name, f"Got {value!r}"):
                EllipsoidSVC(**{name: value}).fit(X, y)
    with raises(MemoryError, "EllipsoidSVC", "cache_size", "120", "allows 55 samples"):
        EllipsoidSVC(cache_size=0.1).fit(X, y)
    with raises(ValueError, "positive semidefinite", "eigenvalue"):
        EllipsoidSVC(kernel="precomputed").fit(X @ X.T - 50 * np.eye(len(X)), y)
    K = X @ X.T
    K[3, 4] = np.nan
    with raises(ValueError, "NaN"):
        EllipsoidSVC(kernel="precomputed").fit(K, y)


def test_limits(two_classes):
    X, y = two_classes
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = EllipsoidSVC(max_iter=3).fit(X, y)
    assert (model.fit_status_, model.converged_) == (1, False)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        model = EllipsoidSVC(max_seconds=1e-9).fit(X, y)
    assert model.fit_status_ == 2
    with pytest.warns(ConvergenceWarning):
        model = EllipsoidSVC(tol=1e-16).fit(X, y)
    assert model.fit_status_ == 4
    assert model.gap_ < 1e-5
