"""Algorithm 2 (the Ball Vector Machine) on one dense block of the hull problem.

The iteration is that of `solvers.hull.descent.descend` with the step to the violator, (2.133). Such a step
shrinks all weights, and g with them. Both are stored as multiples of one factor, so that a step is one pass
over one row of the block.
"""

import numpy as np

from solvers.common.compile import implement
from solvers.common.pair_selection import shift_and_argmin_of_support
from solvers.common.progress import DRAWS_PER_STEP, first_look, has_stalled, resolution
from solvers.common.status import CONVERGED, LIMIT, NOT_POSITIVE, STALLED, UNRESOLVED
from solvers.gram.block import largest_value, lowest_value
from solvers.gram.subproblems import solve_path
from solvers.hull.block_descent import STEPS_WITHOUT_PROGRESS, MinimalNormRules, descend, minimal_norm_path
from solvers.hull.draws import find_tracked
from solvers.hull.stopping import search_threshold

# Smallest common factor of the stored weights; a smaller one is multiplied into them.
MIN_FACTOR = 1e-100


class ViolatorRules(MinimalNormRules):
    """Rules of a path whose blocks are solved by steps towards violators."""


@implement(descend, ViolatorRules)
def follow_violators(
    path_rules, H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, max_iter, state
):
    """Move a hull point towards violators until no violator is left.

    Parameters
    ----------
    path_rules : ViolatorRules
        Parameters of the algorithm, and the tolerances, seed and value error of each subproblem.
    H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, max_iter, state
        As in `solvers.hull.block_descent.descend_block`.

    Returns
    -------
    tuple
        ``(square_norm, steps, clipped, full, status)`` as in `solvers.hull.block_descent.descend`.
    """
    rules = path_rules.rules
    square_radius = diagonal[0]
    current = max(epsilon, rules.first_epsilon)
    factor, steps, checked_at, last, status = 1.0, 0, 0, np.inf, LIMIT
    last_check, resolved, drawn = first_look(g.size), resolution(largest_value(diagonal)), 0
    while steps < max_iter:
        if square_norm <= 0.0:
            status = NOT_POSITIVE
            break
        if not square_norm < np.inf:
            status = UNRESOLVED
            break
        if steps - checked_at > STEPS_WITHOUT_PROGRESS:
            if abs(square_norm - last) < 1e-15 * last:
                status = UNRESOLVED
                break
            checked_at, last = steps, square_norm
            n_done = steps + (0 if rules.exhaustive else drawn // DRAWS_PER_STEP)
            if n_done >= last_check[0]:
                allowed = square_norm - search_threshold(
                    rules.stopping, epsilon, square_norm, square_radius, resolved
                )
                if has_stalled(
                    last_check, n_done, square_norm, square_norm - factor * lowest_value(g), allowed, g.size
                ):
                    status = STALLED
                    break
                last_check = (np.int64(2 * n_done), square_norm, last_check[1] - square_norm)

        threshold = search_threshold(rules.stopping, current, square_norm, square_radius, resolved)
        v, failed = find_tracked(g, threshold / factor, rules, state, class_start)
        drawn += failed
        if v < 0:
            v = shift_and_argmin_of_support(g, alpha, H[0], H[0], 0.0)
            if factor * g[v] >= threshold or not rules.exhaustive:
                if current <= epsilon:
                    status = CONVERGED
                    break
                current = max(epsilon, 0.5 * current)
                continue

        g_v = factor * g[v]
        beta = 1.0 - np.sqrt(square_radius / (square_radius - 2.0 * g_v + square_norm))
        rest = 1.0 - beta
        square_norm = rest * rest * square_norm + beta * (2.0 * rest * g_v + beta * diagonal[v])
        factor *= rest
        if factor < MIN_FACTOR:
            for i in range(g.size):
                alpha[i] *= factor
                g[i] *= factor
            factor = 1.0
        weight = beta / factor
        alpha[v] += weight
        g[v] += weight * inverse_C[v]
        row = H[v]
        for i in range(g.size):
            g[i] += weight * np.float64(row[i])
        steps += 1
    total = 0.0
    for i in range(g.size):
        total += alpha[i]
    factor = 1.0 / total
    for i in range(g.size):
        alpha[i] *= factor
        g[i] *= factor
    return np.dot(alpha, g), steps, 0, steps, status  # no step is clipped because β is below 1


implement(solve_path, ViolatorRules)(minimal_norm_path)
