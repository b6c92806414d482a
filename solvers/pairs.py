"""Choice of the two samples of a step among the support vectors (Strack 2013, 4.4 and 5.6).

A smallest or largest number is searched for in three loops, none of which has a branch: work out the keys,
reduce them, find whose it was. LLVM vectorises them; the plain loop with `if better: best = …` it does not
(four times slower). Keys are the bits of a float64 as an int64, which compare like the numbers themselves.
"""

import numpy as np
from numba import njit

MDM, IMDM, GMDM = range(3)
PAIRS = {"mdm": MDM, "imdm": IMDM, "gmdm": GMDM}

_TINY = np.finfo(np.float64).tiny
_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)


@njit(inline="always")
def choose_partner(pair, exponent, v, row_v, g, alpha, diagonal, support, n_support, scratch):
    """Return u among the support vectors with g_u > g_v, or −1 if there is none.

    mdm takes the largest g_u (4.4); imdm the largest decrease of ‖c‖² that the step can reach with its weight
    at hand (5.33, with the clipping of 4.9); gmdm the largest (g_u − g_v) / D_uv^(k/2) (5.35).

    Parameters
    ----------
    row_v : ndarray
        k̃(v, ·) for the tracked samples, as are `g`, `alpha` and `diagonal` = k̃(i, i).
    support : ndarray of uint32
        Tracked samples with positive weight, the first `n_support` of it.
    scratch : ndarray
        Memory for at least `n_support` numbers.
    """
    gain, keys = scratch, scratch.view(np.int64)
    g_v, diagonal_v = g[v], diagonal[v]
    if pair == IMDM:
        for k in range(n_support):
            p = support[k]
            ahead = max(g[p] - g_v, 0.0)
            square_distance = max(diagonal_v + diagonal[p] - 2.0 * row_v[p], _TINY)
            beta = min(ahead / square_distance, alpha[p])
            gain[k] = beta * (2.0 * ahead - beta * square_distance)
    elif pair == MDM:
        for k in range(n_support):
            gain[k] = max(g[support[k]] - g_v, 0.0)
    else:
        for k in range(n_support):
            p = support[k]
            square_distance = max(diagonal_v + diagonal[p] - 2.0 * row_v[p], _TINY)
            gain[k] = max(g[p] - g_v, 0.0) / square_distance ** (0.5 * exponent)
    best = np.int64(0)
    for k in range(n_support):
        best = max(best, keys[k])
    if best == 0:
        return -1
    return np.int64(support[_first(keys, n_support, best)])


@njit(inline="always")
def lowest_support(g, support, n_support, scratch):
    """Return the support vector with the smallest g: the violator of a tuning step."""
    values, keys = scratch, scratch.view(np.int64)
    for k in range(n_support):
        values[k] = g[support[k]]
    best = _MAGNITUDE
    for k in range(n_support):
        bits = keys[k]
        keys[k] = bits ^ ((bits >> 63) & _MAGNITUDE)  # negative numbers compare the other way round
        best = min(best, keys[k])
    return np.int64(support[_first(keys, n_support, best)])


@njit(inline="always")
def _first(keys, n, key):
    """Return the first place of a key that is among the first n; 0 where NaN has left none."""
    k = 0
    while n > 0 and keys[k] != key:
        k += 1
    return k
