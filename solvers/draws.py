"""Random draws of candidates, and the search for a violator among them (Strack 2013, 5.1)."""

import numpy as np
from numba import njit

from solvers.cache import fill_row, track
from solvers.hull import TRACKED


@njit(nogil=True, cache=True)
def random_below(state, n):
    """A whole number 0 … n − 1 by xorshift64* from `state`, which advances."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    high = (x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(32)
    return np.int64((high * np.uint64(n)) >> np.uint64(32))


@njit(nogil=True, cache=True)
def draw(state, class_start, fair):
    """Draw a sample: any of them, or (fair) any of a class that is drawn first."""
    if not fair:
        return random_below(state, class_start[-1])
    t = random_below(state, class_start.size - 1)
    return class_start[t] + random_below(state, class_start[t + 1] - class_start[t])


@njit(nogil=True, cache=True)
def find_violator(hull, threshold, draws, subset, fair):
    """Draw until a sample with g below the threshold turns up.

    The candidates come in groups of `subset`; the lowest g of a group is the violator if it lies below the threshold
    (5.1: subset 59 is the older scheme, 1 the paper's). After `draws` candidates without success the search ends. Where
    `draws` is at least the number of samples, every sample is looked at once instead: the answer is then certain.

    Returns
    -------
    v : int
        Number of the violator, which is tracked from now on; −1 if there is none.
    failed : int
        How many candidates were looked at before.
    """
    n = hull.rows.size
    exhaustive = draws >= n
    limit = n if exhaustive else draws
    first = random_below(hull.state, n) if exhaustive else 0
    looked = 0
    while looked < limit:
        failed = looked
        worst, worst_g = -1, threshold
        for _ in range(min(subset, limit - looked)):
            i = (first + looked) % n if exhaustive else draw(hull.state, hull.class_start, fair)
            looked += 1
            p = hull.position[i]
            g = hull.g[p] if p >= 0 else inner_product(hull, i)
            if g < worst_g:
                worst, worst_g = i, g
        if worst >= 0:
            p = hull.position[worst]
            return (p if p >= 0 else track(hull, worst, worst_g)), failed
    return -1, looked


@njit(nogil=True, cache=True)
def inner_product(hull, i):
    """g_i = Σ α_p k̃(i, p) of a sample that is not tracked."""
    m = hull.counts[TRACKED]
    fill_row(hull, i, 0, m, hull.scratch)
    total = 0.0
    for p in range(m):
        total += hull.alpha[p] * hull.scratch[p]
    return total
