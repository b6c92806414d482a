"""Algorithms 2, 3 and 4 of Strack (2013): violators are sought, and the point moves towards them.

The three share one loop, with the draws of 5.1, the scales of Algorithm 5 and the over-relaxation of 5.3.
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

    step: int = TO_ORIGIN
    stopping: int = MN
    draws: int = 600
    subset: int = 1
    fair: bool = True
    exhaustive: bool = True
    max_tracked: int = TRACK_ALL  # samples of a machine for all of which g is kept; 0: never for all
    pair: int = IMDM
    exponent: float = 0.5
    eta: float = 1.0
    draws_per_tuning: int = 10  # draws that failed, for a step of a support vector that is a violator
    average_bias: bool = False
    first_epsilon: float = 0.5  # of the multi-scale approximation (Algorithm 5)
    first_samples: int = 1  # that get weight before the first iteration


@njit(allocates=False)
def descend(hull, epsilon, rules, max_iter, budget):
    """Move the point until no sample violates the ε-approximation.

    Line 1 of the algorithms has been done by the caller: some sample has weight. The function returns now and
    then (`PAUSED`, `FULL`) to let the caller look at the clock or make room, and goes on where it stopped
    when it is called again.

    Returns
    -------
    status : int
        One of those of `solvers.common.status`.
    """
    g, real, counts, square_radius = hull.g, hull.real, hull.counts, hull.diagonal[0]
    counts[WORK] = 0
    resolved = resolution(largest_value_of(hull))
    # Else a search looks at samples in a loop that takes next to no time, or at kernel values, which count.
    counts_draws = rules.max_tracked == 0 or (hull.tracked_all and not rules.exhaustive)
    while counts[ITERATIONS] < max_iter:
        status = interruption(hull, budget)
        if status != GO_ON:
            return status

        # A violator among the drawn samples, else (if exhaustive) among the support vectors.
        threshold = search_threshold(
            rules.stopping, real[EPSILON], real[SQUARE_NORM], square_radius, resolved
        )
        v, failed = find_violator(hull, threshold, rules)
        if counts_draws:
            counts[DRAWN] += failed + rules.subset
            counts[WORK] += failed + rules.subset
        if v < 0:
            v = lowest_support(g, hull.support, counts[SUPPORT], hull.scratch)
            if g[v] >= threshold or not rules.exhaustive:  # the ε̂-approximation is done
                if real[EPSILON] <= epsilon:
                    return CONVERGED
                real[EPSILON] = max(epsilon, 0.5 * real[EPSILON])  # line 4 of Algorithm 5
                continue

        # A step for this v, then some for support vectors that are violators.
        before = counts[ITERATIONS]
        for left in range(min(1 + failed // rules.draws_per_tuning, max_iter - before), 0, -1):
            if not take_step(hull, rules, v):
                break
            if left > 1:
                v = lowest_support(g, hull.support, counts[SUPPORT], hull.scratch)
                if g[v] >= threshold:
                    break
        if counts[ITERATIONS] == before:
            return UNRESOLVED  # no sample lies behind a violator: rounding ended the progress
    return LIMIT
