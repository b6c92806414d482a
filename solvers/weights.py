"""Moving weight on the hull: what a step does to α, g, ‖c‖² and the list of support vectors.

Plain arrays throughout: these functions run once a step.
"""

from numba import njit

from solvers.hull import SQUARE_NORM, SUPPORT


@njit(inline="always")
def move_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, support, place, counts, real):
    """Move weight β from u to v, and keep the list of support vectors up to date."""
    shift_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, real)
    if place[v] < 0:
        enter(v, support, place, counts)
    if alpha[u] == 0.0:
        leave(u, support, place, counts)


@njit(inline="always")
def shift_weight(v, u, beta, row_v, row_u, m, alpha, g, diagonal, real):
    """Move weight β ≤ α_u from u to v: c ← c + β (x̃_v − x̃_u)."""
    square_distance = diagonal[v] + diagonal[u] - 2.0 * row_v[u]
    real[SQUARE_NORM] += beta * (2.0 * (g[v] - g[u]) + beta * square_distance)
    for p in range(m):
        g[p] += beta * (row_v[p] - row_u[p])
    alpha[v] += beta
    alpha[u] = alpha[u] - beta if beta < alpha[u] else 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def scale_and_add(v, beta, row_v, m, alpha, g, diagonal, support, place, counts, real):
    """Move the centre towards v: c ← (1 − β) c + β x̃_v."""
    rest = 1.0 - beta
    real[SQUARE_NORM] = rest * rest * real[SQUARE_NORM] + beta * (2.0 * rest * g[v] + beta * diagonal[v])
    for p in range(m):
        g[p] = rest * g[p] + beta * row_v[p]
    for k in range(counts[SUPPORT]):
        alpha[support[k]] *= rest
    alpha[v] += beta
    if place[v] < 0:
        enter(v, support, place, counts)


@njit(nogil=True, cache=True, error_model="numpy")
def enter(p, support, place, counts):
    """Append p to the support vectors."""
    place[p] = counts[SUPPORT]
    support[counts[SUPPORT]] = p
    counts[SUPPORT] += 1


@njit(nogil=True, cache=True, error_model="numpy")
def leave(p, support, place, counts):
    """Take p from the support vectors; the last of the list moves to its place."""
    counts[SUPPORT] -= 1
    last = support[counts[SUPPORT]]
    support[place[p]] = last
    place[last] = place[p]
    place[p] = -1


@njit(nogil=True, cache=True, error_model="numpy")
def square_norm_of(alpha, g, support, n_support):
    """‖c‖² = Σ α_i g_i."""
    total = 0.0
    for k in range(n_support):
        p = support[k]
        total += alpha[p] * g[p]
    return total
