"""Choice of u, the support vector that gives weight to the violator v (Strack 2013, 4.4 and 5.6)."""

import numpy as np
from numba import njit

MDM, IMDM, GMDM = range(3)
PAIRS = {"mdm": MDM, "imdm": IMDM, "gmdm": GMDM}


@njit(nogil=True, cache=True)
def choose_partner(pair, exponent, v, row_v, g, alpha, diagonal, support, n_support):
    """Return u among the support vectors with g_u > g_v, or −1 if there is none.

    mdm takes the largest g_u (4.4); imdm the largest decrease of ‖c‖² that the step can reach with its weight
    at hand (5.33, with the clipping of 4.9); gmdm the largest (g_u − g_v) / D_uv^(k/2) (5.35).

    Parameters
    ----------
    row_v : ndarray
        k̃(v, ·) for the tracked samples, as are `g`, `alpha` and `diagonal` = k̃(i, i).
    support : ndarray of int32
        Tracked samples with positive weight, the first `n_support` of it.
    """
    best = 0.0
    u = -1
    g_v = g[v]
    for k in range(n_support):
        p = support[k]
        ahead = g[p] - g_v
        if ahead <= 0.0:
            continue
        gain = ahead
        if pair != MDM:
            square_distance = max(diagonal[v] + diagonal[p] - 2.0 * row_v[p], np.finfo(np.float64).tiny)
            if pair == GMDM:
                gain = ahead / square_distance ** (0.5 * exponent)
            elif ahead <= alpha[p] * square_distance:
                gain = ahead * ahead / square_distance
            else:
                gain = alpha[p] * (2.0 * ahead - alpha[p] * square_distance)
        if gain > best:
            best = gain
            u = p
    return u


@njit(nogil=True, cache=True)
def lowest_support(g, support, n_support):
    """Return the support vector with the smallest g: the violator of a tuning step."""
    v = support[0]
    for k in range(1, n_support):
        if g[support[k]] < g[v]:
            v = support[k]
    return v
