"""Algorithm 1 of Strack (2013), by Tsang, Kwok and Cheung (2005): balls of a growing core set."""

from solvers.common.compile import njit
from solvers.common.pair_selection import IMDM, TINY, choose_partner, lowest_support
from solvers.common.progress import resolution
from solvers.common.status import CONVERGED, GO_ON, LIMIT
from solvers.hull.draws import find_violator
from solvers.hull.state import (
    CLIPPED,
    EPSILON,
    FULL_UPDATES,
    ITERATIONS,
    SQUARE_NORM,
    SUPPORT,
    TRACKED,
    WORK,
    interruption,
    largest_value_of,
)
from solvers.hull.steps import add_support, shift_weight
from solvers.hull.stopping import CORE, search_threshold
from solvers.hull.tracked_rows import row


@njit(allocates=False)
def core_set_ball(hull, epsilon, rules, max_iter, budget):
    """Run Algorithm 1 with the draws of 5.1 and the scales of Algorithm 5.

    The core set is the list of support vectors of `hull`. A vector stays on it when its weight falls to zero.
    The caller has added the first vectors (line 1).

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
        One of the statuses of `solvers.common.status`. After PAUSED or FULL, another call continues.
    """
    alpha, g, diagonal = hull.alpha, hull.g, hull.diagonal
    support, support_index = hull.support, hull.support_index
    real, counts, scratch = hull.real, hull.counts, hull.scratch
    square_radius = diagonal[0]  # τ̃
    counts[WORK] = 0
    resolved = resolution(largest_value_of(hull))
    while counts[ITERATIONS] < max_iter:
        status = interruption(hull, budget)
        if status != GO_ON:
            return status

        # Second-order pair steps compute the ball of the core set. They end when the farthest vector and the
        # nearest vector with weight differ by ε̂ R² in inner product: the farthest is then within (1 + ε̂) R.
        v = lowest_support(g, support, counts[SUPPORT], scratch)
        row_v = row(hull, v)
        u = choose_partner(IMDM, 1.0, v, row_v, g, alpha, diagonal, support, counts[SUPPORT], scratch)
        threshold = search_threshold(CORE, real[EPSILON], real[SQUARE_NORM], square_radius, resolved)
        width = max(real[EPSILON] * (square_radius - real[SQUARE_NORM]), resolved)
        if u >= 0 and (g[u] - g[v] > width or g[v] < threshold):
            row_u = row(hull, u)
            beta_hat = (g[u] - g[v]) / max(diagonal[v] + diagonal[u] - 2.0 * row_v[u], TINY)
            counts[CLIPPED] += beta_hat > alpha[u]
            beta = min(beta_hat, alpha[u])
            m = counts[TRACKED]
            shift_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, real)
            counts[ITERATIONS] += 1
            counts[WORK] += m + 4 * counts[SUPPORT]
            continue

        # A sample outside (1 + ε̂) times that ball joins the core set.
        v, _ = find_violator(hull, threshold, rules)
        if v >= 0 and support_index[v] < 0:
            add_support(v, support, support_index, counts)
            counts[FULL_UPDATES] += 1
        elif real[EPSILON] <= epsilon:
            return CONVERGED
        else:
            real[EPSILON] = max(epsilon, 0.5 * real[EPSILON])  # line 4 of Algorithm 5
    return LIMIT
