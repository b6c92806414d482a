"""Totals of a path agree with `solvers.common.status` for each training."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from solvers.common.status import BY_SEVERITY, fit_status_of, most_severe, stopping_of
from solvers.gram.outcomes import new_outcomes, rows_used, totals_of


def random_outcomes(rng, n_subproblems, n_C):
    outcomes = new_outcomes(n_subproblems, n_C, 2)
    outcomes.gaps[:] = rng.choice([0.0, 1e-4, 2e-3, 2e-3, 1.0, np.inf, np.nan], (n_subproblems, n_C))
    outcomes.converged[:] = rng.random((n_subproblems, n_C)) < rng.choice([0.2, 0.9, 1.0], n_C)
    outcomes.statuses[:] = rng.choice(BY_SEVERITY, (n_subproblems, n_C))
    outcomes.iterations[:] = rng.integers(0, 100, (n_subproblems, n_C))
    outcomes.evaluations[:] = rng.integers(0, 1 << 40, (n_subproblems, n_C))
    return outcomes._replace(**{name: values.T for name, values in outcomes._asdict().items()})


@pytest.mark.parametrize("by_draws", [False, True])
@pytest.mark.parametrize("n_subproblems", [1, 3, 10])
def test_totals_are_those_of_each_training(n_subproblems, by_draws):
    rng = np.random.default_rng(n_subproblems)
    for _ in range(20):
        outcomes = random_outcomes(rng, n_subproblems, 6)
        weights = rng.random((6, 2, 5)) * (rng.random((6, 2, 5)) < 0.3)
        used = rows_used(weights)
        assert_array_equal(used, weights.any(axis=1))
        totals = totals_of(outcomes, used, by_draws)
        assert_array_equal(totals.n_support, used.sum(axis=1))
        assert_array_equal(totals.iterations, outcomes.iterations.sum(axis=1))
        assert_array_equal(totals.evaluations, outcomes.evaluations.sum(axis=1))
        assert_array_equal(totals.gaps, outcomes.gaps.max(axis=1))
        assert_array_equal(totals.converged, outcomes.converged.all(axis=1))
        for j in range(6):
            converged, gaps = outcomes.converged[j], outcomes.gaps[j]
            subproblems = zip(outcomes.statuses[j], converged, strict=True)
            assert totals.fit_status[j] == most_severe(
                [fit_status_of(*each, by_draws) for each in subproblems]
            )
            assert str(totals.worst[j]) == stopping_of(converged, gaps, str).partition(";")[0]
            assert totals.n_missed[j] == np.count_nonzero(~converged)
