"""Steps on the hull: how far the point moves; what that does to α, g, ‖c‖² and the support vectors.

Plain arrays below the step itself: these functions run once a step.
"""

import numpy as np

from solvers.common.compile import inlined
from solvers.common.pair_selection import TINY, choose_partner
from solvers.hull.state import CLIPPED, ITERATIONS, SQUARE_NORM, SUPPORT, TRACKED, WORK
from solvers.hull.tracked_rows import row

# To the point of the line between v and u that is closest to the origin (Algorithm 4); to the point at which
# v lies on the ball, along that line (Algorithm 3), or along the line from the centre to v (Algorithm 2).
TO_ORIGIN, TO_BALL, TO_VIOLATOR = range(3)


@inlined
def take_step(hull, rules, v):
    """Move weight to v; return whether there was any to move."""
    alpha, g, diagonal = hull.alpha, hull.g, hull.diagonal
    support, support_index = hull.support, hull.support_index
    real, counts, m, n_support = hull.real, hull.counts, hull.counts[TRACKED], hull.counts[SUPPORT]
    row_v = row(hull, v)
    if rules.step == TO_VIOLATOR:  # (2.133)
        square_distance = diagonal[0] - 2.0 * g[v] + real[SQUARE_NORM]
        beta = 1.0 - np.sqrt(diagonal[0] / square_distance)
        scale_and_add(v, beta, row_v, m, alpha, g, diagonal, support, support_index, counts, real)
        counts[WORK] += m + counts[SUPPORT]
        counts[ITERATIONS] += 1
        return True
    u = choose_partner(
        rules.pair, rules.exponent, v, row_v, g, alpha, diagonal, support, n_support, hull.scratch
    )
    if u < 0:
        return False
    row_u = row(hull, u)
    square_distance = max(diagonal[v] + diagonal[u] - 2.0 * row_v[u], TINY)
    away = diagonal[v] - row_v[u]
    beta_hat = step_length(rules.step, g[u], g[v], away, square_distance, real[SQUARE_NORM])
    counts[CLIPPED] += rules.eta * beta_hat > alpha[u]
    beta = min(rules.eta * beta_hat, alpha[u])
    move_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, support, support_index, counts, real)
    counts[WORK] += m + 4 * counts[SUPPORT]
    counts[ITERATIONS] += 1
    return True


@inlined
def step_length(step, g_u, g_v, away, square_distance, square_norm):
    """Return how far a step goes from u to v, before it is relaxed.

    Parameters
    ----------
    step : {TO_ORIGIN, TO_BALL}
    g_u, g_v : float
    away : float
        (x̃_v − x̃_u) · x̃_v.
    square_distance : float
        ‖x̃_v − x̃_u‖².
    square_norm : float
        ‖c‖².
    """
    if step == TO_ORIGIN:
        return (g_u - g_v) / square_distance
    rho = (away - g_v + g_u) / square_distance
    outside = square_norm - 2.0 * g_v  # ‖x̃_v − c‖² − R̂²
    root = rho * rho - outside / square_distance
    return rho - np.sqrt(root) if root > 0.0 else rho  # the line may miss the ball


@inlined
def move_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, support, support_index, counts, real):
    """Move weight β from u to v, and keep the list of support vectors up to date."""
    shift_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, real)
    if support_index[v] < 0:
        add_support(v, support, support_index, counts)
    if alpha[u] == 0.0:
        remove_support(u, support, support_index, counts)


@inlined
def shift_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, real):
    """Move weight β ≤ α_u from u to v: c ← c + β (x̃_v − x̃_u)."""
    square_distance = diagonal[v] + diagonal[u] - 2.0 * row_v[u]
    real[SQUARE_NORM] += beta * (2.0 * (g[v] - g[u]) + beta * square_distance)
    for p in range(m):
        g[p] += beta * (row_v[p] - row_u[p])
    alpha[v] += beta
    alpha[u] = alpha[u] - beta if beta < alpha[u] else 0.0


@inlined
def scale_and_add(v, beta, row_v, m, alpha, g, diagonal, support, support_index, counts, real):
    """Move the centre towards v: c ← (1 − β) c + β x̃_v."""
    rest = 1.0 - beta
    real[SQUARE_NORM] = rest * rest * real[SQUARE_NORM] + beta * (2.0 * rest * g[v] + beta * diagonal[v])
    for p in range(m):
        g[p] = rest * g[p] + beta * row_v[p]
    for k in range(counts[SUPPORT]):
        alpha[support[k]] *= rest
    alpha[v] += beta
    if support_index[v] < 0:
        add_support(v, support, support_index, counts)


@inlined
def add_support(p, support, support_index, counts):
    """Append p to the support vectors."""
    support_index[p] = counts[SUPPORT]
    support[counts[SUPPORT]] = p
    counts[SUPPORT] += 1


@inlined
def remove_support(p, support, support_index, counts):
    """Take p from the support vectors; the last of the list moves to its place."""
    counts[SUPPORT] -= 1
    last = support[counts[SUPPORT]]
    support[support_index[p]] = last
    support_index[last] = support_index[p]
    support_index[p] = -1
