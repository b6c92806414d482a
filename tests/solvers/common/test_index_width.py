"""Selections among more rows than 20 bits can count."""

import numpy as np
import pytest

from solvers import MNSVC, SMOSVC
from solvers.common.pair_selection import (
    GMDM,
    IMDM,
    MDM,
    argmin,
    best_partner,
    lowest_and_highest,
    second_order_partner,
    shift_and_argmin_of_support,
)

N = (1 << 20) + 1000
FAR = (1 << 20) + 321
SIZES = [5, N, (1 << 21) + 77]


@pytest.fixture(scope="module", params=SIZES)
def values(request):
    """Return distinct numbers, of which the last but two is the lowest and the last the highest."""
    v = np.random.default_rng(0).uniform(1.0, 2.0, request.param)
    v[-3], v[-1] = 0.5, 3.0
    return v


def test_the_lowest_is_found(values):
    n = values.size
    none = np.zeros(n)
    everyone = np.ones(n, dtype=bool)
    assert argmin(values) == n - 3
    assert lowest_and_highest(values, everyone, everyone) == (n - 3, n - 1)
    assert shift_and_argmin_of_support(values.copy(), np.ones(n), none, none, 1.0) == n - 3


def test_the_partner_is_found(values):
    n = values.size
    row, diagonal, everyone = np.zeros(n), np.ones(n), np.ones(n, dtype=bool)
    v = n - 3
    assert second_order_partner(values, everyone, row, diagonal, v) == n - 1
    assert second_order_partner(values, np.ones(n), row, diagonal, v) == n - 1
    for pair in (IMDM, MDM, GMDM):
        assert best_partner(pair, 0.5, values, np.ones(n), row, diagonal, v) == n - 1
    lowest = np.full(n, values[v])
    assert second_order_partner(lowest, everyone, row, diagonal, v) == -1
    assert second_order_partner(lowest, np.ones(n), row, diagonal, v) == -1
    assert best_partner(MDM, 0.5, lowest, np.ones(n), row, diagonal, v) == -1


def test_negative_values_sort_as_well():
    v = -np.random.default_rng(1).uniform(1.0, 2.0, N)
    v[FAR] = -3.0
    assert argmin(v) == FAR
    everyone = np.ones(N, dtype=bool)
    v[FAR + 1] = -0.5
    assert lowest_and_highest(v, everyone, everyone) == (FAR, FAR + 1)


@pytest.fixture(scope="module")
def separable():
    """The classes lie left of −1 and right of 1; the two samples on the margin have the highest indices."""
    rng = np.random.default_rng(0)
    y = np.ones(N, dtype=int)
    y[:200] = y[FAR:] = 0
    X = np.where(y == 1, 2.0, -2.0) + rng.uniform(-0.5, 0.5, N)
    X[-1], X[FAR - 1] = -1.0, 1.0
    return X[:, None], y


def test_smo_is_right_beyond_a_million_rows(separable):
    X, y = separable
    model = SMOSVC(C=100.0, kernel="linear", tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(np.sort(model.support_), [FAR - 1, N - 1])
    # The widest margin lies between −1 and 1: f(x) = x.
    x = np.array([-3.0, 0.0, 2.0])
    np.testing.assert_allclose(model.decision_function(x[:, None]), x, atol=1e-5)
    assert model.converged_
    assert model.score(X, y) == 1.0


def test_minimal_norm_is_right_beyond_a_million_rows(separable):
    X, y = separable
    model = MNSVC(C=100.0, kernel="rbf", gamma=0.5, draws=2000, random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.support_.max() < N
