"""Steps on the hull: how far the point moves, and the update of α, g, ‖c‖² and the support vectors.

Below the step itself the functions take plain arrays, because they run once a step.
"""

import numpy as np

from solvers.common.compile import inlined
from solvers.common.pair_selection import TINY, choose_partner
from solvers.hull.state import CLIPPED, FULL_UPDATES, ITERATIONS, SQUARE_NORM, SUPPORT, TRACKED, WORK
from solvers.hull.tracked_rows import row

# Targets of a step. TO_ORIGIN: the point of the line between v and u that is closest to the origin
# (Algorithm 4). TO_BALL: the point of that line at which v lies on the ball (Algorithm 3).
# TO_VIOLATOR: the point on the line from the centre to v at which v lies on the ball (Algorithm 2).
TO_ORIGIN, TO_BALL, TO_VIOLATOR = range(3)


@inlined
def take_step(hull, rules, v):
    """Move weight to v.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver, changed in place.
    rules : Rules
        Parameters of the algorithm.
    v : int
        Number of the tracked sample that receives weight.

    Returns
    -------
    bool
        Whether a step was possible.
    """
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
        counts[FULL_UPDATES] += 1
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
    is_clipped = rules.eta * beta_hat > alpha[u]
    counts[CLIPPED] += is_clipped
    counts[FULL_UPDATES] += not is_clipped
    beta = min(rules.eta * beta_hat, alpha[u])
    move_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, support, support_index, counts, real)
    counts[WORK] += m + 4 * counts[SUPPORT]
    counts[ITERATIONS] += 1
    return True


@inlined
def step_length(step, g_u, g_v, away, square_distance, square_norm):
    """Return the weight that a step moves from u to v, before over-relaxation.

    Parameters
    ----------
    step : {TO_ORIGIN, TO_BALL}
        Whether the step aims at the point closest to the origin, or at the surface of the ball.
    g_u, g_v : float
        Inner products x̃_u · c and x̃_v · c.
    away : float
        (x̃_v − x̃_u) · x̃_v.
    square_distance : float
        ‖x̃_v − x̃_u‖².
    square_norm : float
        Squared norm ‖c‖² of the current point c.

    Returns
    -------
    float
        Weight to move, not limited by the weight of u.
    """
    if step == TO_ORIGIN:
        return (g_u - g_v) / square_distance
    rho = (away - g_v + g_u) / square_distance
    outside = square_norm - 2.0 * g_v  # ‖x̃_v − c‖² − R̂²
    root = rho * rho - outside / square_distance
    return rho - np.sqrt(root) if root > 0.0 else rho  # the line may miss the ball


@inlined
def move_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, support, support_index, counts, real):
    """Move weight β from u to v, and update the list of support vectors.

    Parameters
    ----------
    v, u, beta, row_v, row_u, m, alpha, g, diagonal
        As in `shift_weight`.
    support : uint32 array (capacity,)
        List of the support vectors, changed in place.
    support_index : int32 array (capacity,)
        Index of each tracked sample in `support`, or −1; changed in place.
    counts : int64 array
        Counters of `Hull`, changed in place.
    real : array (2,)
        ‖c‖² and ε̂ of `Hull`, changed in place.
    """
    shift_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, real)
    if support_index[v] < 0:
        add_support(v, support, support_index, counts)
    if alpha[u] == 0.0:
        remove_support(u, support, support_index, counts)


@inlined
def shift_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, real):
    """Move weight β ≤ α_u from u to v: c ← c + β (x̃_v − x̃_u).

    Parameters
    ----------
    v, u : int
        Numbers of the tracked samples that gain and lose weight.
    beta : float
        Weight to move, at most the weight of u.
    row_v, row_u : arrays
        Values k̃(v, ·) and k̃(u, ·) of the tracked samples.
    m : int
        Number of tracked samples.
    alpha, g : arrays
        Weights and inner products, changed in place.
    diagonal : array
        Values k̃(i, i) of the tracked samples.
    real : array (2,)
        ‖c‖² and ε̂ of `Hull`, changed in place.
    """
    square_distance = diagonal[v] + diagonal[u] - 2.0 * row_v[u]
    real[SQUARE_NORM] += beta * (2.0 * (g[v] - g[u]) + beta * square_distance)
    for p in range(m):
        g[p] += beta * (row_v[p] - row_u[p])
    alpha[v] += beta
    alpha[u] = alpha[u] - beta if beta < alpha[u] else 0.0


@inlined
def scale_and_add(v, beta, row_v, m, alpha, g, diagonal, support, support_index, counts, real):
    """Move the centre towards v: c ← (1 − β) c + β x̃_v.

    Parameters
    ----------
    v : int
        Number of the tracked sample that gains weight.
    beta : float
        Weight that v gains; all weights are first multiplied by 1 − β.
    row_v : array
        Values k̃(v, ·) of the tracked samples.
    m : int
        Number of tracked samples.
    alpha, g : arrays
        Weights and inner products, changed in place.
    diagonal : array
        Values k̃(i, i) of the tracked samples.
    support, support_index, counts, real
        As in `move_weight`.
    """
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
    """Append a sample to the list of support vectors.

    Parameters
    ----------
    p : int
        Number of the tracked sample.
    support, support_index, counts
        As in `move_weight`.
    """
    support_index[p] = counts[SUPPORT]
    support[counts[SUPPORT]] = p
    counts[SUPPORT] += 1


@inlined
def remove_support(p, support, support_index, counts):
    """Remove a sample from the list of support vectors; the last one of the list takes its index.

    Parameters
    ----------
    p : int
        Number of the tracked sample.
    support, support_index, counts
        As in `move_weight`.
    """
    counts[SUPPORT] -= 1
    last = support[counts[SUPPORT]]
    support[support_index[p]] = last
    support_index[last] = support_index[p]
    support_index[p] = -1
