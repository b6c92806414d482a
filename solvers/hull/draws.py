"""Random draws of candidates, and the search for a violator among them (Strack 2013, 5.1)."""

import numpy as np

from solvers.common.compile import implement, inlined, inner, njit
from solvers.common.pair_selection import ordered_bits
from solvers.common.reductions import dot
from solvers.hull.state import EVALUATIONS, TRACKED, WORK, Hull, WholeHull
from solvers.hull.tracked_rows import fill_row, track


@njit(allocates=False)
def random_below(state, n):
    """Draw an integer 0 … n − 1 by SplitMix64 (Steele, Lea and Flood 2014).

    The state advances by one addition. A processor therefore computes several draws at the same time.

    Parameters
    ----------
    state : uint64 array (1,)
        State of the generator, which advances; any value is valid.
    n : int
        Number of possible values, below 2³².

    Returns
    -------
    int64
        Integer from 0 to n − 1. Probabilities differ by at most 2⁻³².
    """
    x = state[0] + np.uint64(0x9E3779B97F4A7C15)
    state[0] = x
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    high = (x ^ (x >> np.uint64(31))) >> np.uint64(32)
    return np.int64((high * np.uint64(n)) >> np.uint64(32))


@njit(allocates=False)
def draw(state, class_start, fair):
    """Draw a sample uniformly, or uniformly within a class that is drawn first.

    Parameters
    ----------
    state : uint64 array (1,)
        State of the random number generator, which advances.
    class_start : int64 array (classes + 1,)
        Index of the first sample of each class.
    fair : bool
        Whether a class is drawn first, all classes with the same probability.

    Returns
    -------
    int64
        Index of the sample.
    """
    if not fair:
        return random_below(state, class_start[-1])
    t = random_below(state, class_start.size - 1)
    return class_start[t] + random_below(state, class_start[t + 1] - class_start[t])


@njit
def draw_first(state, class_start, count):
    """Draw the samples that start with equal weights.

    Parameters
    ----------
    state : uint64 array (1,)
        State of the random number generator, which advances.
    class_start : int64 array (classes + 1,)
        Index of the first sample of each class.
    count : int
        Number of draws. One draw takes any sample; several take the classes in turn.

    Returns
    -------
    int64 array
        Indices of the samples, ascending, each once.
    """
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
    """Find a violator among all samples if all are tracked; otherwise find one by drawing.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver. A drawn violator that is not tracked becomes tracked.
    threshold : float
        Value of g below which a sample is a violator.
    rules : Rules
        Parameters of the search.

    Returns
    -------
    v : int
        Index of the violator among the tracked samples; −1 if none was found.
    failed : int
        Number of candidates examined before the violator was found.
    """
    if hull.tracked_all:
        return find_tracked(hull.g, threshold, rules, hull.state, hull.class_start)
    return draw_untracked(hull, threshold, rules.draws, rules.subset, rules.fair)


@inlined
def find_tracked(g, threshold, rules, state, class_start):
    """Find a violator if g of every sample is known.

    The candidates come in groups of `subset`. The lowest g of a group is the violator if it lies below the
    threshold (5.1: `subset` 59 is the older scheme, 1 that of the paper). Draws are with replacement.

    After `draws` candidates without success, the search ends. If `exhaustive`, it then examines each sample
    once, from a random one on, and the answer is certain. If `draws` is at least the number of samples,
    an exhaustive search examines them at once, without drawing. With `max_tracked` = 0 no search examines all
    samples.

    Parameters
    ----------
    g : array (m,)
        Inner products x̃_i · c.
    threshold : float
        Value of g below which a sample is a violator.
    rules : Rules
        Parameters of the search.
    state : uint64 array (1,)
        State of the random number generator, which advances.
    class_start : int64 array (classes + 1,)
        Index of the first sample of each class.

    Returns
    -------
    v : int
        Index of the violator; −1 if there is none.
    failed : int
        Number of candidates examined before the violator was found.
    """
    scans = rules.exhaustive and rules.max_tracked > 0
    if rules.draws < g.size or not scans:
        v, failed = draw_tracked(g, threshold, rules.draws, rules.subset, rules.fair, state, class_start)
        if v >= 0 or not scans:
            return v, failed
    return scan_tracked(g, threshold, random_below(state, g.size), rules.subset)


def draw_untracked(hull, threshold, draws, subset, fair):
    """Find a violator by drawing, where g is stored for some samples only; the violator becomes tracked.

    Numba chooses the implementation by the type of `hull`, and this body is never run:

    - `Hull`: `_draw_and_track` in this file,
    - `WholeHull`: `_draw_nothing` in this file, which is compiled but never called.

    Parameters
    ----------
    hull : Hull or WholeHull
        State of the solver.
    threshold : float
        Value of g below which a sample is a violator.
    draws : int
        Largest number of candidates.
    subset : int
        Number of candidates in a group.
    fair : bool
        As in `draw`.

    Returns
    -------
    v : int
        Index of the violator among the tracked samples; −1 if none was found.
    failed : int
        Number of candidates examined before the violator was found.
    """
    raise NotImplementedError


@implement(draw_untracked, WholeHull, allocates=False)
def _draw_nothing(hull, threshold, draws, subset, fair):
    """Return that no violator was found: where every sample is tracked, this is never called.

    Parameters
    ----------
    hull, threshold, draws, subset, fair
        As in `draw_untracked`.

    Returns
    -------
    tuple
        ``(v, failed)`` as in `draw_untracked`.
    """
    return np.int64(-1), draws


@implement(draw_untracked, Hull, allocates=False)
def _draw_and_track(hull, threshold, draws, subset, fair):
    """Draw candidates, and track the first violator.

    Parameters
    ----------
    hull, threshold, draws, subset, fair
        As in `draw_untracked`.

    Returns
    -------
    tuple
        ``(v, failed)`` as in `draw_untracked`.
    """
    n_examined = 0
    while n_examined < draws:
        failed = n_examined
        worst, worst_g = -1, threshold
        for _ in range(min(subset, draws - n_examined)):
            i = draw(hull.state, hull.class_start, fair)
            p = hull.position[i]
            g = hull.g[p] if p >= 0 else drawn_inner_product(hull, i)
            if g < worst_g:
                worst, worst_g = i, g
        n_examined += subset
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
    """Find a violator by drawing, where g of every sample is known.

    Parameters
    ----------
    g, threshold
        As in `find_tracked`.
    draws : int
        Largest number of candidates.
    subset : int
        Number of candidates in a group.
    fair : bool
        As in `draw`.
    state, class_start
        As in `find_tracked`.

    Returns
    -------
    v : int
        Index of the violator; −1 if none was found.
    failed : int
        Number of candidates examined before the violator was found.
    """
    n_examined = 0
    while n_examined < draws:
        failed = n_examined
        worst, worst_g = -1, threshold
        for _ in range(min(subset, draws - n_examined)):
            i = draw(state, class_start, fair)
            if g[i] < worst_g:
                worst, worst_g = i, g[i]
        n_examined += subset
        if worst >= 0:
            return worst, failed
    return -1, draws


@njit(allocates=False)
def scan_tracked(g, threshold, first, subset):
    """Find a violator by examining every sample once, cyclically from `first` on.

    Parameters
    ----------
    g : array (m,)
        Inner products x̃_i · c.
    threshold : float
        Value of g below which a sample is a violator.
    first : int
        Index of the first sample.
    subset : int
        Number of samples in a group. The lowest g of each group is compared.

    Returns
    -------
    v : int
        Index of the violator; −1 if there is none.
    failed : int
        Number of samples examined before the violator was found.
    """
    n = g.size
    if subset == 1:
        v = first_below(g[first:], threshold)
        if v >= 0:
            return first + v, v
        v = first_below(g[:first], threshold)
        return (v, n - first + v) if v >= 0 else (v, n)
    for n_examined in range(0, n, subset):
        low, high = first + n_examined, first + min(n_examined + subset, n)
        v = lowest_below(g[low:high], threshold)  # the part before the end of g
        worst = low + v if v >= 0 else -1
        if high > n:  # the part that continues at the start of g
            low = max(low - n, 0)
            v = lowest_below(g[low : high - n], threshold if worst < 0 else g[worst])
            worst = low + v if v >= 0 else worst
        if worst >= 0:
            return worst, n_examined
    return -1, n


@njit(allocates=False)
def first_below(g, threshold):
    """Return the first index where g is below the threshold, or −1.

    The search examines one block after the other, so that LLVM vectorises the loop.

    Parameters
    ----------
    g : array
        Values g of the samples, of any length.
    threshold : float
        Bound that a value must be below.

    Returns
    -------
    int
        The index, or −1.
    """
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
    """Return the first index of the lowest g if that is below the threshold, or −1.

    Parameters
    ----------
    g : array
        Values g of the samples, of any length.
    threshold : float
        Bound that the lowest value must be below.

    Returns
    -------
    int
        The index, or −1.
    """
    limit = ordered_bits(threshold)
    lowest = limit
    for i in range(g.size):
        lowest = min(lowest, ordered_bits(g[i]))
    if lowest >= limit:
        return -1
    i = 0
    while ordered_bits(g[i]) != lowest:
        i += 1
    return i if g[i] < threshold else -1  # false for NaN


@inner
def inner_product(hull, i):
    """Return g_i = Σ α_p k̃(i, p) of a sample that is not tracked.

    Parameters
    ----------
    hull : Hull
        State of the solver; `scratch` is overwritten.
    i : int
        Index of the sample.

    Returns
    -------
    float
        The inner product x̃_i · c.
    """
    m = hull.counts[TRACKED]
    fill_row(hull, np.int64(i), np.int64(0), m, hull.scratch)
    return dot(hull.alpha[:m], hull.scratch[:m])


@inner
def drawn_inner_product(hull, i):
    """Return g_i of a drawn sample that is not tracked, and keep its kernel values for later draws.

    The kernel values are the same as in `inner_product`, bit for bit. All of them are counted, as if none
    were kept: limits and certificates depend on the counts, and must not depend on memory.

    Parameters
    ----------
    hull : Hull
        State of the solver.
    i : int
        Index of the sample.

    Returns
    -------
    float
        The inner product x̃_i · c.
    """
    if i >= hull.drawn_length.size:
        return inner_product(hull, i)
    m, capacity, known = hull.counts[TRACKED], hull.g.size, np.int64(hull.drawn_length[i])
    values = hull.drawn[i * capacity : (i + 1) * capacity]
    if known < m:
        fill_row(hull, np.int64(i), known, m, values)
        hull.drawn_length[i] = m
    hull.counts[EVALUATIONS] += known
    hull.counts[WORK] += known * (2 + hull.point.size // 8)
    return dot(hull.alpha[:m], values[:m])
