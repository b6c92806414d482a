"""Algorithm 1 (the Core Vector Machine) on one dense block of the hull problem.

The iteration is that of `solvers.hull.core_set.core_set_ball`. A core set may start from any samples. From
one C to the next, it therefore starts from the samples that have weight.
"""

import numpy as np

from solvers.common.compile import implement
from solvers.common.pair_selection import IMDM, TINY, best_partner, shift_and_argmin_of_support
from solvers.common.progress import first_look, has_stalled, resolution
from solvers.common.status import CONVERGED, LIMIT, NOT_POSITIVE, STALLED, UNRESOLVED
from solvers.gram.block import largest_value, lowest_value
from solvers.gram.subproblems import solve_path
from solvers.hull.block_descent import STEPS_WITHOUT_PROGRESS, MinimalNormRules, descend, minimal_norm_path
from solvers.hull.draws import find_tracked
from solvers.hull.stopping import CORE, search_threshold


class CoreSetRules(MinimalNormRules):
    """Rules of a path whose blocks are solved by the balls of a growing core set."""


@implement(descend, CoreSetRules)
def grow_core_set(
    path_rules, H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, max_iter, state
):
    """Grow the core set and move to the centre of its ball until no sample lies outside.

    Parameters
    ----------
    path_rules : CoreSetRules
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
    core = np.zeros(alpha.size)
    for i in range(alpha.size):
        core[i] = 1.0 if alpha[i] > 0.0 else 0.0
    lowest = shift_and_argmin_of_support(g, core, H[0], H[0], 0.0)
    steps, clipped, additions, checked_at, last = 0, 0, 0, 0, np.inf
    last_check, resolved = first_look(g.size), resolution(largest_value(diagonal))
    while steps < max_iter:
        if square_norm <= 0.0:
            return square_norm, steps, clipped, additions, NOT_POSITIVE
        if not square_norm < np.inf:
            return square_norm, steps, clipped, additions, UNRESOLVED
        if steps - checked_at > STEPS_WITHOUT_PROGRESS:
            if abs(square_norm - last) < 1e-15 * last:
                return square_norm, steps, clipped, additions, UNRESOLVED
            checked_at, last = steps, square_norm
            if steps >= last_check[0]:
                allowed = square_norm - search_threshold(CORE, epsilon, square_norm, square_radius, resolved)
                if has_stalled(
                    last_check, steps, square_norm, square_norm - lowest_value(g), allowed, g.size
                ):
                    return square_norm, steps, clipped, additions, STALLED
                last_check = (np.int64(2 * steps), square_norm, last_check[1] - square_norm)

        v = lowest
        u = best_partner(IMDM, 1.0, g, alpha, H[v], diagonal, v)
        threshold = search_threshold(CORE, current, square_norm, square_radius, resolved)
        width = max(current * (square_radius - square_norm), resolved)
        if u >= 0 and (g[u] - g[v] > width or g[v] < threshold):
            ahead = g[u] - g[v]
            square_distance = max(diagonal[v] + diagonal[u] - 2.0 * H[v, u], TINY)
            clipped += ahead / square_distance > alpha[u]
            beta = min(ahead / square_distance, alpha[u])
            square_norm += beta * (beta * square_distance - 2.0 * ahead)
            alpha[v] += beta
            alpha[u] = alpha[u] - beta if beta < alpha[u] else 0.0
            g[v] += beta * inverse_C[v]
            g[u] -= beta * inverse_C[u]
            lowest = shift_and_argmin_of_support(g, core, H[v], H[u], beta)
            steps += 1
            continue

        v, _ = find_tracked(g, threshold, rules, state, class_start)
        if v >= 0 and core[v] == 0.0:
            core[v] = 1.0
            additions += 1
            lowest = v if g[v] < g[lowest] else lowest
        elif current <= epsilon:
            return square_norm, steps, clipped, additions, CONVERGED
        else:
            current = max(epsilon, 0.5 * current)
    return square_norm, steps, clipped, additions, LIMIT


implement(solve_path, CoreSetRules)(minimal_norm_path)
