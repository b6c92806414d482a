"""Algorithms 2, 3 and 4 of Strack (2013): a search finds violators, and the point moves towards them.

The three algorithms share one loop. It has the draws of 5.1, the scales of Algorithm 5 and the
over-relaxation of 5.3.
"""

from typing import NamedTuple

from solvers.common.compile import njit
from solvers.common.pair_selection import IMDM, lowest_support
from solvers.common.progress import resolution
from solvers.common.status import CONVERGED, GO_ON, LIMIT, UNRESOLVED
from solvers.hull.draws import find_violator
from solvers.hull.state import (
    DRAWN,
    EPSILON,
    ITERATIONS,
    SQUARE_NORM,
    SUPPORT,
    TRACK_ALL,
    WORK,
    interruption,
    largest_value_of,
)
from solvers.hull.steps import TO_ORIGIN, take_step
from solvers.hull.stopping import MN, search_threshold


class Rules(NamedTuple):
    """Parameters of the geometric estimators as numbers, for numba."""

    step: int = TO_ORIGIN  # target of a step, see `solvers.hull.steps`
    stopping: int = MN  # stopping rule, see `solvers.hull.stopping`
    draws: int = 600  # candidates without success that end a search by drawing
    subset: int = 1  # candidates of which the one with the lowest g is compared with the threshold
    fair: bool = True  # whether a draw chooses the class first
    exhaustive: bool = True  # whether a search without success goes on among all samples or support vectors
    max_tracked: int = TRACK_ALL  # largest subproblem whose samples are all tracked, in samples; 0: none
    pair: int = IMDM  # rule for the partner, see `solvers.common.pair_selection`
    exponent: float = 0.5  # exponent k of the gmdm rule
    eta: float = 1.0  # over-relaxation η
    draws_per_tuning: int = 10  # failed draws for each extra step with a support vector that violates
    average_bias: bool = False  # whether the bias is the average bias
    first_epsilon: float = 0.5  # first ε̂ of the multi-scale approximation (Algorithm 5)
    first_samples: int = 1  # number of samples that get weight before the first iteration


@njit(allocates=False)
def descend(hull, epsilon, rules, max_iter, budget):
    """Move the point until no sample violates the ε-approximation.

    The caller has done line 1 of the algorithms: some sample has weight. The function returns from time to
    time (`PAUSED`, `FULL`) so that the caller can read the clock or enlarge the arrays. The next call
    continues where it stopped.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver, changed in place.
    epsilon : float
        Tolerance ε of the stopping rule.
    rules : Rules
        Parameters of the algorithm.
    max_iter : int
        Largest number of iterations in total.
    budget : int
        Elementary operations after which the function returns PAUSED.

    Returns
    -------
    status : int
        One of the statuses of `solvers.common.status`.
    """
    g, real, counts, square_radius = hull.g, hull.real, hull.counts, hull.diagonal[0]
    counts[WORK] = 0
    resolved = resolution(largest_value_of(hull))
    # In the other cases a search scans samples at negligible cost, or computes kernel values, which are
    # counted as work where they are computed.
    counts_draws = rules.max_tracked == 0 or (hull.tracked_all and not rules.exhaustive)
    while counts[ITERATIONS] < max_iter:
        status = interruption(hull, budget)
        if status != GO_ON:
            return status

        # The violator is one of the drawn samples. Otherwise, if exhaustive, it is a support vector.
        threshold = search_threshold(
            rules.stopping, real[EPSILON], real[SQUARE_NORM], square_radius, resolved
        )
        v, failed = find_violator(hull, threshold, rules)
        if counts_draws:
            counts[DRAWN] += failed + rules.subset
            counts[WORK] += failed + rules.subset
        if v < 0:
            v = lowest_support(g, hull.support, counts[SUPPORT], hull.scratch)
            if g[v] >= threshold or not rules.exhaustive:  # the ε̂-approximation is reached
                if real[EPSILON] <= epsilon:
                    return CONVERGED
                real[EPSILON] = max(epsilon, 0.5 * real[EPSILON])  # line 4 of Algorithm 5
                continue

        # One step for this v, then some for support vectors that are violators.
        before = counts[ITERATIONS]
        for left in range(min(1 + failed // rules.draws_per_tuning, max_iter - before), 0, -1):
            if not take_step(hull, rules, v):
                break
            if left > 1:
                v = lowest_support(g, hull.support, counts[SUPPORT], hull.scratch)
                if g[v] >= threshold:
                    break
        if counts[ITERATIONS] == before:
            return UNRESOLVED  # no step is possible from a violator: rounding ended the progress
    return LIMIT
