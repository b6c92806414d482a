"""Samples, labels and weights of types that are no numbers are refused in a sentence."""

import datetime
import re

import numpy as np
import pandas as pd
import pytest

from solvers import AESVC, LASVC, MNSVC, SMOSVC, BallSVC, CoreSVC, EllipsoidSVC, NewtonSVC, SphereSVC
from solvers.common.plain import plain
from tests.messages import raises

OF_PATHS = [AESVC, EllipsoidSVC, MNSVC, SphereSVC, BallSVC, CoreSVC, NewtonSVC, SMOSVC]
SOLVERS = [LASVC, *OF_PATHS]
N = 12
Y = np.arange(N) % 2
X = np.random.default_rng(0).normal(size=(N, 2)) + Y[:, None]
DAYS = pd.date_range("2020", periods=N)
NOT_NUMBERS = {
    "datetime64": X.astype("M8[s]"),
    "timedelta64": X.astype("m8[s]"),
    "complex128": X + 1j,
    "complex64": (X + 1j).astype(np.complex64),
    "'f0'": np.zeros((N, 1), "f8,f8"),
    "'f1'": np.zeros(N, "f8,f8"),
    "datetime": [[datetime.datetime(2020, 1, 1 + i)] for i in range(N)],
    "date": np.array([[datetime.date(2020, 1, 1 + i)] for i in range(N)]),
    "timedelta": [[datetime.timedelta(days=i)] for i in range(N)],
    "datetime64[": np.array([[np.datetime64(i, "D"), 1.0] for i in range(N)], dtype=object)[:, :1],
    "complex": np.array([[1j * i, 1.0] for i in range(N)], dtype=object),
    "'day'": pd.DataFrame({"a": X[:, 0], "day": DAYS}),
    "'zone'": pd.DataFrame({"zone": DAYS.tz_localize("UTC")}),
    "'since'": pd.DataFrame({"a": X[:, 0], "since": DAYS - DAYS[0]}),
    "Timestamp": pd.DataFrame({"day": DAYS.astype(object), "a": X[:, 0]}),
}
CASES = [pytest.param(name, samples, id=name) for name, samples in NOT_NUMBERS.items()]


def type_in_message(name):
    return "datetime64" if name == "datetime64[" else name


@pytest.mark.parametrize(("name", "samples"), CASES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_samples_that_are_no_real_numbers_are_refused(solver, name, samples):
    fitted = solver().fit(X, Y)
    calls = [
        lambda: solver().fit(samples, Y),
        lambda: solver(probability=True).fit(samples, Y),
        lambda: fitted.predict(samples),
        lambda: fitted.decision_function(samples),
    ]
    if solver in OF_PATHS:
        path = solver().fit_path(X, Y, [0.5, 2.0])
        calls += [
            lambda: solver().fit_path(samples, Y, [0.5, 2.0]),
            lambda: path.predict_path(samples),
        ]
    for take in calls:
        with raises(ValueError, "X", "real numbers") as caught:
            take()
        assert type_in_message(name) in str(caught.value)


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[s]", complex])
def test_kernel_values_and_weights_that_are_no_real_numbers_are_refused(dtype):
    K = (X @ X.T).astype(dtype)
    with raises(ValueError, "real numbers"):
        SMOSVC(kernel="precomputed").fit(K, Y)
    with pytest.raises(ValueError, match="float"):
        SMOSVC(kernel="precomputed").fit_path(K, Y, [0.5, 2.0])
    with raises(ValueError, "kernel", "callable", "real numbers"):
        SMOSVC(kernel=lambda A, B: (A @ B.T).astype(dtype)).fit(X, Y)
    with raises(ValueError, "sample_weight", "real numbers"):
        SMOSVC().fit(X, Y, np.ones(N).astype(dtype))


def test_dates_reach_a_callable_kernel_that_takes_samples_of_any_kind():
    days = np.arange(N).astype("M8[D]")

    def kernel(A, B):
        return np.exp(-0.1 * ((A[:, None] - B[None]) / np.timedelta64(1, "D")) ** 2)

    assert SMOSVC(kernel=kernel).fit(days, Y).predict(days).shape == (N,)


@pytest.mark.parametrize(
    "samples", [X.tolist(), X.astype(object), X > 0, pd.DataFrame(X), X.astype(np.float16)]
)
def test_numbers_of_other_types_are_taken(samples):
    numbers = np.asarray(samples, dtype=np.float64)
    expected = SMOSVC().fit(numbers, Y).decision_function(numbers)
    np.testing.assert_array_equal(SMOSVC().fit(samples, Y).decision_function(samples), expected)


MIXED = {
    "int beside str": [1, "a"] * 6,
    "float beside str": ["a", float("nan")] * 6,
    "NoneType beside str": [None, "a"] * 6,
    "bool beside str": (True, "a") * 6,
    "bytes beside str": [b"a", "a"] * 6,
}


@pytest.mark.parametrize("as_given", [list, lambda y: np.array(y, dtype=object), pd.Series])
@pytest.mark.parametrize("types", MIXED)
@pytest.mark.parametrize("solver", [SMOSVC, MNSVC])
def test_labels_of_mixed_types_are_refused(solver, types, as_given):
    y, K = as_given(MIXED[types]), X @ X.T
    refusal = r"y: expected labels of one type|Input.* contains NaN"
    for take in (
        lambda: solver().fit(X, y),
        lambda: solver(probability=True).fit(X, y),
        lambda: solver().fit_path(X, y, [0.5, 2.0]),
        lambda: solver(kernel="precomputed").fit_path(K, y, [0.5, 2.0]),
        lambda: solver.path_grid([solver(kernel="precomputed")], y, [0.5, 2.0]),
    ):
        with pytest.raises(ValueError, match=refusal) as caught:
            take()
        assert "'<'" not in str(caught.value)


@pytest.mark.parametrize("y", [["a", "b"] * 6, [np.str_("a"), "b"] * 6, [1, 2.0] * 6, [True, False] * 6])
def test_labels_of_one_type_are_taken(y):
    assert set(SMOSVC().fit(X, y).classes_.tolist()) == set(y)


# -- penalties ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("C", "weight", "problem"), [(1e200, 1e200, "overflows"), (1e-200, 1e-200, "underflows")]
)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_penalty_out_of_range_is_refused_by_name(solver, C, weight, problem):
    values = re.escape(f"C={C:g} and a weight of {weight:g}")
    with pytest.raises(ValueError, match=rf"C times sample_weight {problem} for {values}"):
        solver(C=C).fit(X, Y, np.full(N, weight))
    if "class_weight" not in solver().get_params():
        return
    named = rf"C times class_weight {problem}"
    with pytest.raises(ValueError, match=named):
        solver(C=C, class_weight={0: weight}).fit(X, Y)
    for Cs in ([C, 1.0], [1.0, C]) if solver in OF_PATHS else ():
        with pytest.raises(ValueError, match=named):
            solver(class_weight={0: weight}).fit_path(X, Y, sorted(Cs))
    with pytest.raises(ValueError, match="sample_weight times class_weight"):
        solver(class_weight={0: weight}).fit(X, Y, np.full(N, weight))
    with pytest.raises(ValueError, match=rf"C times sample_weight times class_weight {problem}"):
        solver(C=C, class_weight={0: weight}).fit(X, Y, np.ones(N))
    both = {0: weight, 1: weight}
    assert np.isfinite(solver(C=1.0 / C, class_weight=both).fit(X, Y).decision_function(X)).all()


def test_only_a_hard_margin_takes_an_infinite_C():
    separable = X + 9.0 * Y[:, None]
    hard = SMOSVC(C=np.inf, kernel="linear").fit(separable, Y)
    assert hard.converged_
    margins = np.where(Y == 1, 1, -1) * hard.decision_function(separable)
    assert margins.min() == pytest.approx(1.0, abs=1e-2)
    weighted = SMOSVC(C=np.inf, kernel="linear").fit(separable, Y, np.arange(1, N + 1) * 1e300)
    np.testing.assert_array_equal(weighted.dual_coef_, hard.dual_coef_)
    for solver in SOLVERS[:-1]:
        with raises(ValueError, "'C'", solver.__name__, "inf"):
            solver(C=np.inf).fit(separable, Y)
    for solver in OF_PATHS:
        with pytest.raises(ValueError, match=r"Cs .*inf"):
            solver().fit_path(separable, Y, [1.0, np.inf])


# -- values in messages ------------------------------------------------------------------------------


def test_numbers_in_messages_look_as_they_are_typed():
    found = {np.float64(0.5): [np.int64(3), np.bool_(True)], "a": (np.str_("b"), np.float32(2.0))}
    assert plain(found) == "{0.5: [3, True], 'a': ('b', 2.0)}"
    for y in (np.zeros(N), np.zeros(N, int), np.array(["a"] * N), np.zeros(N, bool)):
        with pytest.raises(ValueError, match="one class") as caught:
            SMOSVC().fit(X, y)
        assert "np." not in str(caught.value)
    with pytest.raises(ValueError, match="class_weight") as caught:
        SMOSVC(class_weight={np.int64(0): np.float64(np.nan)}).fit(X, Y)
    assert "np." not in str(caught.value)
