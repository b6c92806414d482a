"""Moving weight on the hull: what a step does to α, g, ‖c‖² and the set of support vectors."""

from numba import njit

from solvers.hull import ITERATIONS, SQUARE_NORM, SUPPORT, TRACKED, WORK


@njit(nogil=True, cache=True)
def move_weight(hull, v, u, row_v, row_u, beta):
    """Move weight β from u to v: c ← c + β (x̃_v − x̃_u)."""
    alpha, g, m = hull.alpha, hull.g, hull.counts[TRACKED]
    square_distance = hull.diagonal[v] + hull.diagonal[u] - 2.0 * row_v[u]
    hull.real[SQUARE_NORM] += beta * (2.0 * (g[v] - g[u]) + beta * square_distance)
    for p in range(m):
        g[p] += beta * (row_v[p] - row_u[p])
    alpha[v] += beta
    enter(hull, v)
    if beta >= alpha[u]:
        alpha[u] = 0.0
        leave(hull, u)
    else:
        alpha[u] -= beta
    hull.counts[ITERATIONS] += 1
    hull.counts[WORK] += m + 4 * hull.counts[SUPPORT]


@njit(nogil=True, cache=True)
def enter(hull, p):
    """Count p among the support vectors."""
    if hull.place[p] < 0:
        hull.place[p] = hull.counts[SUPPORT]
        hull.support[hull.counts[SUPPORT]] = p
        hull.counts[SUPPORT] += 1


@njit(nogil=True, cache=True)
def leave(hull, p):
    """Count p among the support vectors no longer; the last of the list takes its place."""
    hull.counts[SUPPORT] -= 1
    last = hull.support[hull.counts[SUPPORT]]
    hull.support[hull.place[p]] = last
    hull.place[last] = hull.place[p]
    hull.place[p] = -1


@njit(nogil=True, cache=True)
def refresh_square_norm(hull):
    """Compute ‖c‖² = Σ α_i g_i afresh, against drift."""
    total = 0.0
    for k in range(hull.counts[SUPPORT]):
        p = hull.support[k]
        total += hull.alpha[p] * hull.g[p]
    hull.real[SQUARE_NORM] = total
