"""Random draws of candidates, and the search for a violator among them (Strack 2013, 5.1)."""

import numpy as np

from solvers.common.compile import implement, inlined, inner, njit
from solvers.common.pair_selection import ordered_bits
from solvers.common.reductions import dot
from solvers.hull.state import TRACKED, Hull, WholeHull
from solvers.hull.tracked_rows import fill_row, track


@njit(allocates=False)
def random_below(state, n):
    """Draw a whole number 0 … n − 1 by xorshift64* from `state`, which advances."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    high = (x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(32)
    return np.int64((high * np.uint64(n)) >> np.uint64(32))


@njit(allocates=False)
def draw(state, class_start, fair):
    """Draw a sample: any of them, or (fair) any of a class that is drawn first."""
    if not fair:
        return random_below(state, class_start[-1])
    t = random_below(state, class_start.size - 1)
    return class_start[t] + random_below(state, class_start[t + 1] - class_start[t])


@njit
def draw_first(state, class_start, count):
    """Draw the samples that start with equal weights, ascending: any one, or as many from all classes."""
    classes = class_start.size - 1
    samples = np.empty(count, np.int64)
    n = 0
    for k in range(count):
        first, last = np.int64(0), class_start[classes]
        if count > 1:
            first, last = class_start[k % classes], class_start[k % classes + 1]
        i = first + random_below(state, last - first)
        index = n
        while index > 0 and samples[index - 1] >= i:
            index -= 1
        if index < n and samples[index] == i:
            continue
        for a in range(n, index, -1):
            samples[a] = samples[a - 1]
        samples[index] = i
        n += 1
    return samples[:n]


@inlined
def find_violator(hull, threshold, rules):
    """Find a violator among all samples, or by drawing where g is kept for some samples only."""
    if hull.tracked_all:
        return find_tracked(hull.g, threshold, rules, hull.state, hull.class_start)
    return draw_untracked(hull, threshold, rules.draws, rules.subset, rules.fair)


@inlined
def find_tracked(g, threshold, rules, state, class_start):
    """Draw until a sample with g below the threshold turns up, where g of every sample is at hand.

    The candidates come in groups of `subset`; the lowest g of a group is the violator if it lies below the
    threshold (5.1: subset 59 is the older scheme, 1 the paper's). Draws are with replacement. After `draws`
    candidates without success the search ends; if `exhaustive`, each sample is then looked at once, from a
    random one on: the answer is certain. Where `draws` is at least the number of samples, an exhaustive
    search does this at once, without drawing. If g is not to be known of all samples (`most_tracked` = 0), no
    search looks at all.

    Returns
    -------
    v : int
        Number of the violator; −1 if there is none.
    failed : int
        How many candidates were looked at in vain.
    """
    scans = rules.exhaustive and rules.max_tracked > 0
    if rules.draws < g.size or not scans:
        v, failed = draw_tracked(g, threshold, rules.draws, rules.subset, rules.fair, state, class_start)
        if v >= 0 or not scans:
            return v, failed
    return scan_tracked(g, threshold, random_below(state, g.size), rules.subset)


def draw_untracked(hull, threshold, draws, subset, fair):
    """`find_tracked` by drawing alone, where g is kept for some samples only; a violator is tracked then."""
    raise NotImplementedError


@implement(draw_untracked, WholeHull, allocates=False)
def _(hull, threshold, draws, subset, fair):
    return np.int64(-1), draws  # it is not called


@implement(draw_untracked, Hull, allocates=False)
def _(hull, threshold, draws, subset, fair):
    looked = 0
    while looked < draws:
        failed = looked
        worst, worst_g = -1, threshold
        for _ in range(min(subset, draws - looked)):
            i = draw(hull.state, hull.class_start, fair)
            p = hull.position[i]
            g = hull.g[p] if p >= 0 else inner_product(hull, i)
            if g < worst_g:
                worst, worst_g = i, g
        looked += subset
        if worst >= 0:
            p = hull.position[worst]
            if p < 0:
                p = hull.counts[TRACKED]
                track(hull, np.int64(worst), np.int64(worst + 1))
                hull.g[p] = worst_g
            return p, failed
    return -1, draws


@inner
def draw_tracked(g, threshold, draws, subset, fair, state, class_start):
    """Find a violator by drawing, where g of every sample is at hand."""
    looked = 0
    while looked < draws:
        failed = looked
        worst, worst_g = -1, threshold
        for _ in range(min(subset, draws - looked)):
            i = draw(state, class_start, fair)
            if g[i] < worst_g:
                worst, worst_g = i, g[i]
        looked += subset
        if worst >= 0:
            return worst, failed
    return -1, draws


@njit(allocates=False)
def scan_tracked(g, threshold, first, subset):
    """Find a violator by looking at every sample once, from `first` on and around."""
    n = g.size
    if subset == 1:
        v = first_below(g[first:], threshold)
        if v >= 0:
            return first + v, v
        v = first_below(g[:first], threshold)
        return (v, n - first + v) if v >= 0 else (v, n)
    for looked in range(0, n, subset):
        low, high = first + looked, first + min(looked + subset, n)
        v = lowest_below(g[low:high], threshold)  # up to the end
        worst = low + v if v >= 0 else -1
        if high > n:  # and from the start
            low = max(low - n, 0)
            v = lowest_below(g[low : high - n], threshold if worst < 0 else g[worst])
            worst = low + v if v >= 0 else worst
        if worst >= 0:
            return worst, looked
    return -1, n


@njit(allocates=False)
def first_below(g, threshold):
    """Return the first place where g is below the threshold, or −1; block by block, which vectorises."""
    for start in range(0, g.size, 64):
        block = g[start : start + 64]
        below = 0
        for q in range(block.size):
            below += block[q] < threshold
        if below > 0:
            for q in range(block.size):
                if block[q] < threshold:
                    return start + q
    return -1


@inner
def lowest_below(g, threshold):
    """Return the first place of the lowest g if that is below the threshold, or −1; the search vectorises."""
    limit = ordered_bits(threshold)
    lowest = limit
    for i in range(g.size):
        lowest = min(lowest, ordered_bits(g[i]))
    if lowest >= limit:
        return -1
    i = 0
    while ordered_bits(g[i]) != lowest:
        i += 1
    return i if g[i] < threshold else -1  # not so for NaN


@inner
def inner_product(hull, i):
    """g_i = Σ α_p k̃(i, p) of a sample that is not tracked."""
    m = hull.counts[TRACKED]
    fill_row(hull, np.int64(i), np.int64(0), m, hull.scratch)
    return dot(hull.alpha[:m], hull.scratch[:m])
