"""MNSVM on one dense block of the hull problem, for one C after the other.

The iteration is that of `solvers.mnsvm.minimal_norm_point`. Here every kernel value is at hand and g is kept
for every sample in float64, so that a draw is a look-up, and a step is two passes over the block's columns in
loops that LLVM vectorises (`solvers.pair_steps` says how). When C changes, g changes by the diagonal alone.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from solvers.block_path import change_ridge, refresh
from solvers.certificate import (
    AFFORDABLE,
    AIM,
    ROUNDINGS_PER_STEP,
    TERMS_IN_BLOCK,
    certified_gap,
    error_of_sums,
)
from solvers.draws import draw_tracked, random_below, scan_tracked
from solvers.hull import CONVERGED, LIMIT, NOT_POSITIVE, STALLED
from solvers.kernels import UNIT_ROUNDOFF
from solvers.pair_steps import LARGEST, float_bits, index_bits, ordered_key
from solvers.pairs import IMDM, MDM
from solvers.stopping import MN, NOISE_ROUNDINGS, rule_holds, violation_threshold

FIRST_EPSILON = 0.5  # of the multi-scale approximation (Algorithm 5)
REFRESHES = 3  # of g from the kernel, when rounding has moved it
STEPS_IN_VAIN = 1000  # that leave ||c||² as it was: rounding has the last word
DRIFT = 0.001  # of g that is let pass, as a share of ε ||c||²
# After so many steps a sample, those outside this margin are left out, if less than this share remains.
STEPS_BEFORE_SHRINKING = 3
MARGIN = 0.1
SHRINK_BELOW = 0.9
SHRINKINGS = 4
TINY = np.finfo(np.float64).tiny


class Outcomes(NamedTuple):
    """What becomes of the trainings of some machines, for every C."""

    norm2s: np.ndarray  # (n_machines, n_C)
    gaps: np.ndarray  # (n_machines, n_C)
    steps: np.ndarray  # (n_machines, n_C) int64
    statuses: np.ndarray  # (n_machines, n_C) int64, of those of `solvers.hull`
    converged: np.ndarray  # (n_machines, n_C) bool: whether the rule is certified to hold
    supports: np.ndarray  # (n_machines, n_C) int64
    evaluations: np.ndarray  # (n_machines, n_C) int64
    biases: np.ndarray  # (n_machines, n_C, classes of a machine): y_t·b of each


def new_outcomes(n_machines, n_C, n_members):
    """Allocate them."""
    shape = (n_machines, n_C)
    return Outcomes(
        norm2s=np.empty(shape),
        gaps=np.empty(shape),
        steps=np.empty(shape, dtype=np.int64),
        statuses=np.empty(shape, dtype=np.int64),
        converged=np.empty(shape, dtype=np.bool_),
        supports=np.empty(shape, dtype=np.int64),
        evaluations=np.empty(shape, dtype=np.int64),
        biases=np.empty((*shape, n_members)),
    )


class Rules(NamedTuple):
    """Parameters of `MNSVC` as numbers, for numba."""

    stopping: int
    draws: int
    subset: int
    fair: bool
    exhaustive: bool
    pair: int
    exponent: float
    eta: float
    average_bias: bool


@njit(nogil=True, cache=True, error_model="numpy")
def best_partner(pair, exponent, g, alpha, h_v, diagonal, v):
    """Return u with α_u > 0 and g_u > g_v by the rule of `solvers.pairs.choose_partner`, or −1."""
    g_v, diagonal_v = g[v], diagonal[v]
    bits = index_bits(g.size)
    best = np.int64(0)
    if pair == IMDM:
        for i in range(g.size):
            ahead = max(g[i] - g_v, 0.0)
            square_distance = max(diagonal_v + diagonal[i] - 2.0 * h_v[i], TINY)
            beta = min(ahead / square_distance, alpha[i])
            gain = beta * (2.0 * ahead - beta * square_distance)
            best = max(best, (float_bits(gain) & ~bits) | np.int64(i))
    elif pair == MDM:
        for i in range(g.size):
            gain = max(g[i] - g_v, 0.0) if alpha[i] > 0.0 else 0.0
            best = max(best, (float_bits(gain) & ~bits) | np.int64(i))
    else:
        for i in range(g.size):
            square_distance = max(diagonal_v + diagonal[i] - 2.0 * h_v[i], TINY)
            gain = max(g[i] - g_v, 0.0) / square_distance ** (0.5 * exponent)
            gain = gain if alpha[i] > 0.0 else 0.0
            best = max(best, (float_bits(gain) & ~bits) | np.int64(i))
    return best & bits if best > bits else np.int64(-1)


@njit(nogil=True, cache=True, error_model="numpy")
def shift(g, alpha, h_v, h_u, beta):
    """``g += beta (h_v - h_u)``; return the support vector with the smallest g: the next to be tuned."""
    bits = index_bits(g.size)
    lowest = LARGEST
    for i in range(g.size):
        x = g[i] + beta * (np.float64(h_v[i]) - np.float64(h_u[i]))
        g[i] = x
        key = ordered_key(x, np.int64(i), ~bits)
        lowest = min(lowest, key if alpha[i] > 0.0 else LARGEST)
    return min(lowest & bits, np.int64(g.size - 1))  # weights that are NaN leave none to find


@njit(nogil=True, cache=True, error_model="numpy")
def descend(H, diagonal, inverse_C, class_start, alpha, g, norm2, epsilon, rules, max_iter, state):
    """Algorithms 4 and 5 from a hull point, as in `solvers.mnsvm.minimal_norm_point`.

    Parameters
    ----------
    H : array (m, m), float32 or float64, C-contiguous
        ``(y_i·y_j)(k(x_i, x_j) + bias)``.
    diagonal : array (m,)
        Diagonal of ``H`` plus ``inverse_C``.
    inverse_C : float
    class_start : int64 array (classes + 1,)
        Where each class starts among the m samples.
    alpha, g : arrays (m,), float64, changed in place
    norm2 : float
    epsilon : float
    rules : Rules
    max_iter : int
        What is left of its limit.
    state : uint64 array (1,)
        Of the random numbers.

    Returns
    -------
    norm2 : float
    steps : int
    status : int
        Of those of `solvers.hull`.
    """
    m = g.size
    lowest = shift(g, alpha, H[0], H[0], 0.0)
    current = max(epsilon, FIRST_EPSILON)
    steps, looked_at, last = 0, 0, np.inf
    while steps < max_iter:
        if norm2 <= 0.0:
            return norm2, steps, NOT_POSITIVE
        if not norm2 < np.inf:  # it would never end
            return norm2, steps, STALLED
        if steps - looked_at > STEPS_IN_VAIN:
            if abs(norm2 - last) < 1e-15 * last:
                return norm2, steps, STALLED
            looked_at, last = steps, norm2

        threshold = violation_threshold(rules.stopping, current, norm2, diagonal[0])
        v, failed = np.int64(-1), np.int64(0)
        if rules.draws < m:
            v, failed = draw_tracked(g, threshold, rules.draws, rules.subset, rules.fair, state, class_start)
        if rules.draws >= m or (v < 0 and rules.exhaustive):
            v, failed = scan_tracked(g, threshold, random_below(state, m), rules.subset)
        if v < 0:
            v = lowest
            if g[v] >= threshold:
                if current <= epsilon:
                    return norm2, steps, CONVERGED
                current = max(epsilon, 0.5 * current)
                continue

        before = steps
        for _ in range(min(1 + failed // 10, max_iter - steps)):
            u = best_partner(rules.pair, rules.exponent, g, alpha, H[v], diagonal, v)
            if u < 0:
                break
            ahead = g[u] - g[v]
            square_distance = max(diagonal[v] + diagonal[u] - 2.0 * H[v, u], TINY)
            beta = min(rules.eta * ahead / square_distance, alpha[u])
            norm2 += beta * (beta * square_distance - 2.0 * ahead)
            alpha[v] += beta
            alpha[u] = alpha[u] - beta if beta < alpha[u] else 0.0
            g[v] += beta * inverse_C
            g[u] -= beta * inverse_C
            lowest = shift(g, alpha, H[v], H[u], beta)
            steps += 1
            v = lowest
            if g[v] >= threshold:
                break
        if steps == before:
            return norm2, steps, STALLED  # nobody lies behind a violator: rounding has the last word
    return norm2, steps, LIMIT


@njit(nogil=True, cache=True, error_model="numpy")
def descend_shrunk(H, diagonal, ridge, class_start, alpha, g, norm2, epsilon, rules, max_iter, state):
    """`descend`; where it takes long, on the samples with weight or next to the margin first, then on all.

    Parameters and result are those of `descend`, but for ``ridge``, array (m,).
    """
    m = g.size
    steps = 0
    for _ in range(SHRINKINGS):
        left = min(max_iter - steps, STEPS_BEFORE_SHRINKING * m)
        norm2, taken, status = descend(
            H, diagonal, ridge[0], class_start, alpha, g, norm2, epsilon, rules, left, state
        )
        steps += taken
        if status != LIMIT or steps >= max_iter:
            return norm2, steps, status
        rows = np.flatnonzero((alpha > 0.0) | (g < (1.0 + MARGIN) * norm2))
        starts = np.searchsorted(rows, class_start)
        if rows.size > SHRINK_BELOW * m or np.min(starts[1:] - starts[:-1]) == 0:
            break
        part = np.empty((rows.size, rows.size), H.dtype)
        for a in range(rows.size):
            source, target = H[rows[a]], part[a]
            for b in range(rows.size):
                target[b] = source[rows[b]]
        part_alpha, part_g = alpha[rows], g[rows]
        norm2, taken, status = descend(
            part,
            diagonal[rows],
            ridge[0],
            starts,
            part_alpha,
            part_g,
            norm2,
            epsilon,
            rules,
            max_iter - steps,
            state,
        )
        steps += taken
        alpha[rows] = part_alpha
        norm2 = refresh(H, ridge, alpha, g)
    norm2, taken, status = descend(
        H, diagonal, ridge[0], class_start, alpha, g, norm2, epsilon, rules, max_iter - steps, state
    )
    return norm2, steps + taken, status


@njit(nogil=True, cache=True, error_model="numpy")
def block_biases(class_start, alpha, g, norm2, average, biases):
    """Write y_t·b of every class t to `biases`: what `solvers.bias.class_biases` does, before scaling."""
    n_classes = biases.size
    slack = np.zeros(n_classes)
    size = np.zeros(n_classes)
    total = np.sum(alpha)
    for t in range(n_classes):
        own = 0.0
        for i in range(class_start[t], class_start[t + 1]):
            if alpha[i] > 0.0:
                own += alpha[i]
                slack[t] += norm2 - g[i]
                size[t] += 1.0
        biases[t] = own - (total - own) / (n_classes - 1)
    if not average:
        return
    if n_classes == 2:  # (5.24) averages over both classes
        mean = (slack[0] - slack[1]) / (size[0] + size[1])
        biases[0] += mean
        biases[1] -= mean
    else:
        biases += slack / np.maximum(size, 1.0)


@njit(nogil=True, cache=True, error_model="numpy")
def minimal_norm_path(
    H,
    class_start,
    Cs,
    epsilons,
    bias,
    value_error,
    rules,
    limits,
    state,
    weights,
    norm2s,
    gaps,
    steps,
    statuses,
    converged,
    biases,
):
    """Solve one block for every C, the first from a random sample, each other from the solution before it.

    Parameters
    ----------
    H, class_start, rules, state
        As in `descend`.
    Cs, epsilons : arrays (n_C,)
    bias : {0.0, 1.0}
        What was added to the kernel.
    value_error : float
        Bound on the error of an entry of ``H``.
    limits : int64 array (n_C,)
        Of the steps for each C.
    weights : array (n_C, m)
        Receives the weights of margin 1, ``α / ||c||²``.
    norm2s, gaps, steps, statuses, converged, biases : arrays (n_C,) or (n_C, classes)
        Receive what `Outcomes` holds of one machine.
    """
    m = H.shape[0]
    alpha, g = np.zeros(m), np.empty(m)
    alpha[random_below(state, m)] = 1.0
    own = np.empty(m)
    for i in range(m):
        own[i] = H[i, i]
    ridge = np.full(m, 1.0 / Cs[0])
    norm2 = refresh(H, ridge, alpha, g)
    since_refresh = 0
    for k in range(Cs.size):
        previous, ridge = ridge, np.full(m, 1.0 / Cs[k])
        norm2 = change_ridge(previous, ridge, alpha, g, norm2)
        diagonal = own + ridge
        largest = np.max(diagonal)
        value_share = error_of_sums(value_error, largest, m / TERMS_IN_BLOCK, 0)
        steps[k] = 0
        for _ in range(REFRESHES):
            # The rule is to hold for the kernel itself: what the entries are off by comes out of ε.
            epsilon, lost = AIM * epsilons[k], value_share / norm2
            affordable = rules.stopping == MN and lost < AFFORDABLE * epsilon
            epsilon -= lost if affordable else 0.0
            left = limits[k] - steps[k]
            norm2, taken, statuses[k] = descend_shrunk(
                H, diagonal, ridge, class_start, alpha, g, norm2, epsilon, rules, left, state
            )
            steps[k] += taken
            since_refresh += taken
            drift = since_refresh * ROUNDINGS_PER_STEP * UNIT_ROUNDOFF * largest
            lost_more = value_share / norm2 - lost
            if drift <= DRIFT * epsilon * norm2 and (not affordable or lost_more <= DRIFT * epsilon):
                break
            norm2 = refresh(H, ridge, alpha, g)
            since_refresh = 0
            if statuses[k] != CONVERGED and statuses[k] != STALLED:
                break
        norm2 = np.dot(alpha, g)
        if statuses[k] == NOT_POSITIVE:  # or is that rounding?
            norm2 = refresh(H, ridge, alpha, g)
            if norm2 >= -NOISE_ROUNDINGS * np.finfo(H.dtype).eps * np.max(np.abs(diagonal)):
                statuses[k] = STALLED
        norm2s[k] = norm2
        error = error_of_sums(value_error, largest, np.count_nonzero(alpha) / TERMS_IN_BLOCK, since_refresh)
        lowest = np.min(g)
        gaps[k] = certified_gap(norm2, lowest, error)
        converged[k] = rule_holds(rules.stopping, epsilons[k], norm2, diagonal[0], lowest, error, gaps[k])
        margin = norm2 if norm2 > 0.0 else 1.0  # no margin: the weights stay those of the hull
        weights[k] = alpha / margin
        block_biases(class_start, alpha, g, norm2, rules.average_bias, biases[k])
        biases[k] *= bias / margin
