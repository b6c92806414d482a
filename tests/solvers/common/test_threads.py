import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

import solvers.common.resources
from solvers import MNSVC, SMOSVC
from solvers.common.resources import in_threads


@pytest.mark.parametrize("solver", [MNSVC, SMOSVC])
def test_threads_change_no_bit(solver):
    X, y = load_digits(return_X_y=True)
    X, y, X_test = X[:500] / 16.0, y[:500], X / 16.0
    one, two = (
        solver(C=4.0, gamma=0.05, random_state=0, cache_size=5, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (None, 2)
    )
    assert len(one._blocks(len(X_test))) > 2
    for name in ("dual_coef_", "intercept_", "support_", "n_iter_", "objective_", "gap_", "n_kernel_evals_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for method in ("predict", "decision_function"):
        np.testing.assert_array_equal(getattr(one, method)(X_test), getattr(two, method)(X_test))
    limited = [solver(C=4.0, gamma=0.05, random_state=0, max_iter=300, n_jobs=n) for n in (None, 2)]
    with pytest.warns(ConvergenceWarning):
        iterations = [model.fit(X, y).n_iter_ for model in limited]
    np.testing.assert_array_equal(*iterations)


def test_every_thread_has_a_cache(monkeypatch):
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr(solvers.common.resources, "SMALL", 0)
    monkeypatch.setattr(solvers.common.resources, "available_bytes", lambda: 1.5e6)
    with pytest.raises(MemoryError, match="cache_size=1 takes"):
        SMOSVC(cache_size=1, n_jobs=2).fit(X, y)


def test_values_come_in_order_and_errors_are_raised():
    assert in_threads(lambda i: -i, range(50), -1) == [-i for i in range(50)]
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda i: 1 / i, [1, 0], 2)
