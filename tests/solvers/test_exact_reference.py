"""NewtonSVC's exact ‖c*‖² as the reference of every geometric solver, on real data."""

import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import minmax_scale

from solvers import MNSVC, BallSVC, CoreSVC, NewtonSVC, SphereSVC

EPSILON = 1e-3
LOADERS = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}
POINTS = [(C, gamma) for C in (0.0625, 4.0, 1024.0) for gamma in (4.0**-5, 0.25, 16.0)]
ALL_SAMPLES = {"draws": 2000, "random_state": 0}  # as many draws as samples examine every sample


@pytest.fixture(scope="module", params=LOADERS)
def data(request):
    X, y = LOADERS[request.param](return_X_y=True)
    return minmax_scale(X), y


@pytest.mark.parametrize(("C", "gamma"), POINTS)
def test_minimal_norm_objective_is_within_epsilon_of_newtons(data, C, gamma):
    """Stopped at g_min ≥ (1 − ε)²‖c‖², the relative error 1 − (g_min/‖c‖²)² is less than 4ε."""
    exact = NewtonSVC(C=C, gamma=gamma, tol=1e-8).fit(*data)
    assert exact.duality_gap_ <= 1e-8
    for pair in ("mdm", "imdm", "gmdm"):
        found = MNSVC(C=C, gamma=gamma, tol=EPSILON, stopping="mn", pair=pair, **ALL_SAMPLES).fit(*data)
        excess = found.objective_ / exact.objective_ - 1
        assert -2e-8 <= excess <= 4 * EPSILON / (1 - 4 * EPSILON)


@pytest.mark.parametrize("solver", [MNSVC, SphereSVC, BallSVC, CoreSVC])
@pytest.mark.parametrize(("C", "gamma"), POINTS[::2])
def test_certificates_bracket_the_exact_objective(data, solver, C, gamma):
    """‖c*‖² lies between (1 − gap)‖c‖² and ‖c‖², however good or bad a probabilistic stop was."""
    X, y = data[0][data[1] < 2], data[1][data[1] < 2]  # one subproblem, so that `gap_` is its gap
    exact = NewtonSVC(C=C, gamma=gamma, tol=1e-9).fit(X, y)
    found = solver(C=C, gamma=gamma, random_state=0).fit(X, y)
    assert (1 - found.duality_gap_) * found.objective_ <= exact.objective_ * (1 + 1e-8)
    assert exact.objective_ <= found.objective_ * (1 + 1e-8)
