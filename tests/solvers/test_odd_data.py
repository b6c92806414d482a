"""Unusual data: every solver ends with a finite, certified result."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import ConvergenceWarning

from solvers import MNSVC, SMOSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC
from solvers.common.pair_selection import PAIRS, best_partner, lowest_support, shift_and_argmin_of_support
from solvers.kernels.functions import require_finite
from tests.messages import raises

SOLVERS = [MNSVC, SphereSVC, BallSVC, CoreSVC]


@st.composite
def degenerate(draw):
    """A few samples of two or three classes: duplicates, constant features, scales from 10⁻¹² to 10⁹."""
    n, d = draw(st.integers(4, 24)), draw(st.integers(1, 5))
    X = draw(hnp.arrays(np.float64, (n, d), elements=st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-12])))
    X = X * np.array(draw(st.lists(st.sampled_from([0.0, 1e-12, 1.0, 1e3, 1e9]), min_size=d, max_size=d)))
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 2)))
    y[:2] = 0, 1
    return X, y


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=degenerate(),
    C=st.sampled_from([1e-6, 1e-2, 1.0, 1e4, 1e8]),
    gamma=st.sampled_from(["scale", "auto", 1e-6, 1.0, 1e6]),
    solver=st.sampled_from(SOLVERS),
    multiclass=st.sampled_from(["pairwise", "all_at_once"]),
    bias=st.sampled_from(["theoretic", "average", "none"]),
)
def test_fit_ends_finite_and_certified(data, C, gamma, solver, multiclass, bias):
    X, y = data
    model = solver(C=C, gamma=gamma, multiclass=multiclass, bias=bias, max_iter=20_000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert np.isfinite(model.dual_coef_).all()
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isin(model.predict(X), y).all()
    assert model.objective_ > 0
    assert 0 <= model.gap_ <= 1
    assert model.fit_status_ in (0, 1)
    if solver is MNSVC and model.converged_:
        assert model.gap_ <= 1 - (1 - 1e-3) ** 4 + 1e-6


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=degenerate(),
    C=st.sampled_from([1e-6, 1.0, 1e8]),
    gamma=st.sampled_from([1e-6, 1.0, 1e6]),
    kernel=st.sampled_from(["linear", "poly", "sigmoid", "imq"]),
)
def test_other_kernels_end_finite(data, C, gamma, kernel):
    """Kernel values reach 10⁷² or are not positive definite. The training ends, perhaps by rounding."""
    X, y = data
    model = MNSVC(C=C, gamma=gamma, kernel=kernel, max_iter=2000, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert np.isfinite(model.dual_coef_).all()
    assert np.isfinite(model.decision_function(X)).all()
    assert 0 <= model.gap_ <= 1
    assert model.fit_status_ == 0 or not model.converged_


@pytest.mark.parametrize("solver", SOLVERS)
def test_samples_that_contradict_each_other(solver):
    """Each point is in both classes: the minimal norm is 1/(nC), and no solution is better than a coin."""
    X = np.repeat(np.arange(5.0), 2)[:, None]
    y = np.tile([0, 1], 5)
    model = solver(C=1e4, gamma=1.0, random_state=0).fit(X, y)
    assert model.objective_ >= 1 / (10 * 1e4) * (1 - 1e-9)
    if solver is MNSVC:
        assert model.objective_ <= 1 / (10 * 1e4) * (1 + 5e-3)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_samples(solver):
    model = solver(C=2.0, gamma=1.0, random_state=0).fit([[0.0], [1.0]], [0, 1])
    # By symmetry α = ½, ½: ‖c‖² = ½ (1 + 1 + 1/C) − ½ (k + 1).
    if solver in (MNSVC, CoreSVC):
        assert model.objective_ == pytest.approx(0.5 * 2.5 - 0.5 * (np.exp(-1) + 1), rel=2e-3)
    assert list(model.predict([[0.0], [1.0]])) == [0, 1]


def some_samples():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 3)), np.arange(60) % 2


EVERY_SOLVER = [*SOLVERS, NewtonSVC, SMOSVC]


@pytest.mark.parametrize("solver", EVERY_SOLVER)
def test_a_callable_that_returns_nan_is_refused(solver):
    X, y = some_samples()
    with raises(ValueError, "kernel values", "not finite"):
        solver(kernel=lambda A, B: np.full((len(A), len(B)), np.nan), max_iter=2000).fit(X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("solver", [MNSVC, NewtonSVC])
def test_paths_refuse_a_matrix_that_is_not_finite(solver, value, dtype):
    X, y = some_samples()
    K = (X @ X.T).astype(dtype)
    K[3, 5] = value
    with raises(ValueError, "kernel values", "not finite"):
        solver(kernel="precomputed", max_iter=2000).fit_path(K, y, [1.0, 2.0])


def test_a_matrix_that_is_known_to_be_finite_is_not_searched():
    X, y = some_samples()
    K = X @ X.T
    K[3, 5] = K[5, 3] = np.nan
    solver = SMOSVC(kernel="precomputed", max_iter=2000)
    assert solver.fit_path(K, y, [1.0, 2.0], check_finite=False).objective_.shape == (2,)
    grid = solver.path_grid([solver], y, [1.0, 2.0])
    with raises(ValueError, "kernel values", "not finite"):
        grid.fit(K[None])
    grid.fit(K[None], check_finite=False)
    assert grid.fitted().objective_.shape == (2,)


def test_predictions_from_values_that_are_not_finite_are_refused():
    X, y = some_samples()
    K = X @ X.T
    solver = SMOSVC(kernel="precomputed")
    path, grid = solver.fit_path(K, y, [1.0, 2.0]), solver.path_grid([solver], y, [1.0, 2.0])
    grid.fit(K[None])
    K[3, 5] = np.nan
    for predict, values in ((path.predict_path, K), (grid.predict, K[None])):
        with raises(ValueError, "kernel values", "not finite"):
            predict(values)


def test_a_sum_that_overflows_is_no_reason_to_refuse():
    K = np.full((2, 2), 3e38, np.float32)
    require_finite(K)


@pytest.mark.parametrize(
    ("params", "scale"),
    [
        ({"kernel": "poly", "degree": 2.5, "gamma": 1.0, "coef0": 0.0}, 1.0),  # a root of a negative number
        ({"kernel": "poly", "gamma": 1.0}, 1e110),
        ({"kernel": "linear"}, 1e170),
        ({"gamma": "scale"}, 1e170),
    ],
)
@pytest.mark.parametrize("solver", EVERY_SOLVER)
def test_kernel_values_that_are_not_finite_are_refused(solver, params, scale):
    X, y = some_samples()
    with raises(ValueError, "finite"):
        solver(**params, max_iter=5000).fit(scale * X, y)
    if solver in (MNSVC, NewtonSVC):
        with raises(ValueError, "finite"):
            solver(**params, max_iter=5000).fit_path(scale * X, y, [1.0, 10.0])


@pytest.mark.parametrize(("pair", "exponent"), [("imdm", 0.5), ("mdm", 0.5), ("gmdm", 0.5)])
def test_no_sample_is_picked_where_weights_are_nan(pair, exponent):
    """Compiled code would read and write at an index beyond the end without a check."""
    nan = np.full(5, np.nan)
    assert 0 <= shift_and_argmin_of_support(nan.copy(), nan, nan, nan, 0.0) < 5
    assert -1 <= best_partner(PAIRS[pair], exponent, nan, nan, nan, nan, 0) < 5
    assert lowest_support(nan, np.zeros(5, np.uint32), 0, np.empty(5)) == 0


@pytest.mark.parametrize("seed", range(30, 40))
@pytest.mark.parametrize(("loss", "C"), [("l1", 1.0), ("l2", 1e5)])
def test_shrinking_leaves_samples_to_step_with(loss, C, seed):
    """At this distance from the origin, rounding makes all weights seem to stay at their bounds."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    X = rng.normal(size=(n, 3)) * 0.1 + 1e8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SMOSVC(kernel="linear", loss=loss, C=C, max_iter=20_000).fit(X, np.arange(n) % 2)
    assert np.isfinite(model.decision_function(X)).all()
