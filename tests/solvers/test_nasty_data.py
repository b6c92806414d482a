"""Data that nobody wants and everybody gets: every solver ends, finite and certified."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import ConvergenceWarning

from solvers import MNSVC, BallSVC, CoreSVC, SphereSVC

SOLVERS = [MNSVC, SphereSVC, BallSVC, CoreSVC]


@st.composite
def nasty(draw):
    """A few samples of two or three classes: duplicates, constant features, scales from 10⁻¹² to 10⁹."""
    n, d = draw(st.integers(4, 24)), draw(st.integers(1, 5))
    X = draw(hnp.arrays(np.float64, (n, d), elements=st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-12])))
    X = X * np.array(draw(st.lists(st.sampled_from([0.0, 1e-12, 1.0, 1e3, 1e9]), min_size=d, max_size=d)))
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 2)))
    y[:2] = 0, 1
    return X, y


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=nasty(),
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
    data=nasty(),
    C=st.sampled_from([1e-6, 1.0, 1e8]),
    gamma=st.sampled_from([1e-6, 1.0, 1e6]),
    kernel=st.sampled_from(["linear", "poly", "sigmoid", "imq"]),
)
def test_other_kernels_end_finite(data, C, gamma, kernel):
    """Kernel values up to 10⁷², or not positive definite: the end may be rounding, but it is one."""
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
    """Each point is in both classes: the least norm is 1/(nC) and no machine can do better than a coin."""
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
