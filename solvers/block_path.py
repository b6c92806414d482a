"""One dense block of the hull problem, solved for one C or for an ascending path of C.

Three methods share the work and hand over their point exactly: low-rank Newton while the block's numerical
rank is small, pair steps, and Newton on the support block as soon as the steps taken cost more than its
rounds would. The costs are counted in operations, not read from a clock, so the same input takes the same
course everywhere.
"""

import numpy as np
from numba import njit

from solvers.certificate import (
    ROUNDINGS_PER_STEP,
    TERMS_IN_BLOCK,
    certified_gap,
    error_of_sums,
    violation_aimed_at,
)
from solvers.hull import CONVERGED, LIMIT, NOT_POSITIVE, STALLED, TIMEOUT
from solvers.kernels import UNIT_ROUNDOFF
from solvers.lowrank_space import lowrank_point, lowrank_space
from solvers.newton_block import FINISHED, INDEFINITE, UNFINISHED, block_product, newton_rounds
from solvers.pair_steps import pair_steps
from solvers.stopping import NOISE_ROUNDINGS

# What a point was reached by; the bits of `method` add up over the blocks of one training.
PAIR_STEPS, SUPPORT_NEWTON, LOW_RANK = 1, 2, 4
METHOD_NAMES = {LOW_RANK: "low_rank", PAIR_STEPS: "pair_steps", SUPPORT_NEWTON: "support_newton"}

STEPS_PER_CHUNK = 64
NEWTON_ROUNDS = 30
# A second Newton refines what rounding left over from the first.
NEWTONS = 4
# A chunk of steps that takes a smaller share than this of the largest violation off ||c||² has met rounding;
# once Newton has been tried in vain, one with less than the other share has no end in sight.
ROUNDING, NO_PROGRESS = 1e-12, 1e-5
# Rounding moves g at every step; it is computed afresh where that is this share of the violation aimed at.
DRIFT = 0.005
# Newton takes over when the steps have cost as much as this many rounds: what a warm-started Newton needs.
PATIENCE = 3.0
# Blocks smaller than this are solved by pair steps before a factorisation has paid.
LOWRANK_ROWS = 300
# A low-rank point with a larger gap than this is no better a start than the last solution.
USEFUL_GAP = 0.5
# Rows outside this margin are left out at first, when that leaves less than this share of the block.
MARGIN = 0.1
SHRINK_BELOW = 0.6
SHRINKINGS = 4
# Support vectors whose block is looked at for negative curvature, when a training has stalled.
ROWS_OF_EVIDENCE = 2000


@njit(nogil=True, cache=True, error_model="numpy")
def step_cost(m):
    """Cost of one pair step on m rows, in nanoseconds of a 2025 core."""
    return 60.0 + 0.35 * m


@njit(nogil=True, cache=True, error_model="numpy")
def newton_cost(s, m):
    """Cost of one Newton round with s active rows of m, in the same unit."""
    return 3e3 + s * (60.0 + 0.045 * m + s * (1.1 + s / 150.0))


@njit(nogil=True, cache=True, error_model="numpy")
def refresh(H, ridge, alpha, g):
    """Recompute ``g`` from ``alpha``; return ``||c||²``."""
    rows = np.flatnonzero(alpha)
    block_product(H, rows, alpha[rows], g)
    for i in rows:
        g[i] += ridge[i] * alpha[i]
    return np.dot(alpha, g)


@njit(nogil=True, cache=True, error_model="numpy")
def support_newton(H, ridge, alpha, g, norm2, eps, max_rounds):
    """Newton rounds from a hull point, replaced if they find a better one.

    Returns
    -------
    norm2 : float
    rounds : int
    possible : bool
        False: the active block is not positive definite.
    replaced : bool
        Whether there is a new point, with ``g`` computed afresh.
    """
    beta = alpha / norm2
    f = g / norm2 - ridge * beta
    rounds, outcome = newton_rounds(H, ridge, beta, f, eps, max_rounds)
    if outcome == INDEFINITE:
        return norm2, rounds, False, False
    if outcome == UNFINISHED:
        beta = np.maximum(1.0 - f, 0.0) / ridge
    candidate = beta / np.sum(beta)
    candidate_g = np.empty(g.size)
    candidate_norm2 = refresh(H, ridge, candidate, candidate_g)
    replaced = candidate_norm2 < norm2 or outcome == FINISHED
    if replaced:
        alpha[:] = candidate
        g[:] = candidate_g
        norm2 = candidate_norm2
    return norm2, rounds, True, replaced


@njit(nogil=True, cache=True, error_model="numpy")
def solve_block(H, ridge, alpha, g, norm2, stale, tol, value_error, max_iter, max_cost):
    """Minimise ``||c||²`` over the hull from a point whose ``g`` is known.

    Parameters
    ----------
    H : array (m, m), float32 or float64, C-contiguous
    ridge : array (m,)
    alpha, g : arrays (m,), float64, changed in place
    norm2 : float
    stale : int
        Steps since ``g`` was last computed from ``alpha``.
    tol : float
        Bound on the certified gap.
    value_error : float
        Bound on the error of an entry of ``H``.
    max_iter : int
        Of steps and rounds together.
    max_cost : float
        Of the work, about.

    Returns
    -------
    norm2 : float
    stale : int
    gap : float
        Above ``tol`` too where ``value_error`` is too large for it.
    steps, rounds : int
    cost : float
        Of the work done, see `step_cost`.
    """
    m = g.size
    diag = np.empty(m)
    largest = 0.0
    for i in range(m):
        diag[i] = H[i, i] + ridge[i]
        largest = max(largest, diag[i])
    error = error_of_sums(value_error, largest, m / TERMS_IN_BLOCK, 0)
    steps, rounds = 0, 0
    cost = 0.0
    newtons_left = NEWTONS
    while steps + rounds < max_iter and cost < max_cost and norm2 > 0.0:
        before = norm2
        eps = violation_aimed_at(tol, error, norm2)
        norm2, taken, at_rest = pair_steps(
            H, diag, ridge, alpha, g, norm2, eps, min(STEPS_PER_CHUNK, max_iter - steps - rounds)
        )
        steps += taken
        stale += taken
        cost += taken * step_cost(m)
        share = NO_PROGRESS if newtons_left == 0 else ROUNDING
        if at_rest or before - norm2 <= share * (norm2 - np.min(g)):
            if stale * ROUNDINGS_PER_STEP * UNIT_ROUNDOFF * largest > DRIFT * eps * norm2:
                norm2 = refresh(H, ridge, alpha, g)
                stale = 0
            if newtons_left == 0 or np.min(g) >= (1.0 - eps) * norm2:
                break
            at_rest = True
        active = np.sum(g - ridge * alpha < norm2)
        if newtons_left > 0 and (at_rest or cost > PATIENCE * newton_cost(active, m)):
            allowed = min(NEWTON_ROUNDS, max_iter - steps - rounds)
            if allowed * newton_cost(active, m) > max_cost - cost:
                allowed = np.int64(max(0.0, max_cost - cost) / newton_cost(active, m))
            if allowed == 0:
                if at_rest:
                    cost = max_cost if max_cost < np.inf else cost  # what comes next is not affordable
                    break
                continue
            norm2, used, possible, replaced = support_newton(H, ridge, alpha, g, norm2, 0.5 * eps, allowed)
            rounds += used
            cost += used * newton_cost(active, m)
            stale = 0 if replaced else stale
            newtons_left = newtons_left - 1 if possible else 0
    error = error_of_sums(value_error, largest, np.count_nonzero(alpha) / TERMS_IN_BLOCK, stale)
    return norm2, stale, certified_gap(norm2, np.min(g), error), steps, rounds, cost


@njit(nogil=True, cache=True, error_model="numpy")
def gap_of(H, ridge, alpha, g, norm2, value_error):
    """Certified gap of a point whose ``g`` has just been computed."""
    largest = 0.0
    for i in range(g.size):
        largest = max(largest, H[i, i] + ridge[i])
    error = error_of_sums(value_error, largest, np.count_nonzero(alpha) / TERMS_IN_BLOCK, 0)
    return certified_gap(norm2, np.min(g), error)


@njit(nogil=True, cache=True, error_model="numpy")
def solve_shrunk(H, ridge, alpha, g, norm2, stale, tol, value_error, max_iter, max_cost):
    """`solve_block`, first on the rows with weight or next to the margin if they are few, then on all."""
    m = g.size
    steps, rounds = 0, 0
    cost = 0.0
    for _ in range(SHRINKINGS):
        rows = np.flatnonzero((alpha > 0.0) | (g < (1.0 + MARGIN) * norm2))
        if rows.size > SHRINK_BELOW * m:
            break
        part = np.empty((rows.size, rows.size), H.dtype)
        for a in range(rows.size):
            source = H[rows[a]]
            target = part[a]
            for b in range(rows.size):
                target[b] = source[rows[b]]
        part_alpha = alpha[rows]
        part_g = g[rows]
        norm2, _, _, taken, used, spent = solve_block(
            part,
            ridge[rows],
            part_alpha,
            part_g,
            norm2,
            stale,
            0.9 * tol,
            value_error,
            max_iter - steps - rounds,
            max_cost - cost,
        )
        alpha[rows] = part_alpha
        norm2 = refresh(H, ridge, alpha, g)
        stale = 0
        steps += taken
        rounds += used
        cost += spent + 0.3 * rows.size * rows.size
        gap = gap_of(H, ridge, alpha, g, norm2, value_error)
        if gap <= tol or steps + rounds >= max_iter or cost >= max_cost:
            return norm2, stale, gap, steps, rounds, cost
    norm2, stale, gap, taken, used, spent = solve_block(
        H,
        ridge,
        alpha,
        g,
        norm2,
        stale,
        tol,
        value_error,
        max_iter - steps - rounds,
        max_cost - cost,
    )
    return norm2, stale, gap, steps + taken, rounds + used, cost + spent


@njit(nogil=True, cache=True, error_model="numpy")
def start(H, ridge, alpha, g):
    """Make a hull point of any weights (of equal ones if all are zero) and fill ``g``; return ``||c||²``."""
    total = np.sum(alpha)
    if total > 0.0:
        alpha /= total
    else:
        alpha[:] = 1.0 / alpha.size
    return refresh(H, ridge, alpha, g)


@njit(nogil=True, cache=True, error_model="numpy")
def change_ridge(old, new, alpha, g, norm2):
    """Move ``g`` from one ridge to another; return the new ``||c||²``."""
    for i in range(g.size):
        shift = (new[i] - old[i]) * alpha[i]
        g[i] += shift
        norm2 += shift * alpha[i]
    return norm2


@njit(nogil=True, cache=True, error_model="numpy")
def is_indefinite(H, ridge, alpha, value_error):
    """Whether the block of support vectors, or of some of many, has negative curvature beyond rounding."""
    rows = np.flatnonzero(alpha > 0.0)[:ROWS_OF_EVIDENCE]
    s = rows.size
    block = np.empty((s, s))
    largest = 0.0
    for a in range(s):
        row = H[rows[a]]
        for b in range(s):
            block[a, b] = row[rows[b]]
        largest = max(largest, abs(block[a, a]))
        block[a, a] += ridge[rows[a]]
    noise = s * value_error + NOISE_ROUNDINGS * np.finfo(H.dtype).eps * largest
    for a in range(s):
        block[a, a] += noise
    try:
        np.linalg.cholesky(block)
    except Exception:
        return True
    return False


@njit(nogil=True, cache=True, error_model="numpy")
def status_of(H, ridge, alpha, value_error, gap, tol, is_out_of_iterations, is_out_of_work):
    """Say why a training ended: one of the statuses of `solvers.hull`."""
    if gap <= tol:
        return CONVERGED
    if is_out_of_iterations:
        return LIMIT
    if is_out_of_work:
        return TIMEOUT
    return NOT_POSITIVE if is_indefinite(H, ridge, alpha, value_error) else STALLED


@njit(nogil=True, cache=True, error_model="numpy")
def block_path(
    H,
    unit_ridge,
    Cs,
    tol,
    value_error,
    limits,
    max_cost,
    lowrank,
    alpha,
    weights,
    norm2s,
    gaps,
    steps,
    rounds,
    costs,
    methods,
    statuses,
):
    """Solve one block for every C, each from the solution before it.

    Parameters
    ----------
    H : array (m, m), float32 or float64, C-contiguous
        ``y_i y_j (k(x_i, x_j) + bias)``.
    unit_ridge : array (m,)
        ``1 / sample_weight``; the ridge is this over C.
    Cs : array (n_C,)
    tol : float
    value_error : float
        Bound on the error of an entry of ``H``.
    limits : int64 array (n_C,)
        Of steps and rounds together for each C.
    max_cost : float
        Of the work for each C, about; see `step_cost`.
    lowrank : bool
        Whether low-rank Newton may find the points to start from; else they come from ``alpha``.
    alpha : array (m,)
        Weights to start from (all zero: none); holds the last solution at the end.
    weights : array (n_C, m), float64
        Receives the solutions of the modified L2 SVM, ``α / ||c||²``.
    norm2s, gaps, steps, rounds, costs, methods, statuses : arrays (n_C,)
        What is known of each solution; statuses are those of `solvers.hull`.
    """
    m = alpha.size
    g = np.empty(m)
    ridge = unit_ridge / Cs[0]
    lowrank = lowrank and m >= LOWRANK_ROWS and 0.2 * m * m <= max_cost  # of the first √m pivots
    space = lowrank_space(H if lowrank else H[:1, :1])
    norm2 = 0.0 if lowrank else start(H, ridge, alpha, g)
    stale = 0
    for k in range(Cs.size):
        steps[k] = rounds[k] = methods[k] = 0
        costs[k] = 0.0
        previous_ridge = ridge
        ridge = unit_ridge / Cs[k]
        if k > 0 and not np.isfinite(norm2):  # what diverged is no start
            alpha[:] = 0.0
            norm2 = start(H, ridge, alpha, g)
            stale = 0
            previous_ridge = ridge
        if lowrank:
            # ||c||² cannot fall faster than 1/C, nor below what equal weights would give without a kernel.
            least = norm2 * Cs[k - 1] / Cs[k] if k else 1.0 / np.sum(1.0 / ridge)
            rounds[k], norm2, gaps[k], costs[k] = lowrank_point(
                space, H, unit_ridge, Cs[k], least, tol, limits[k], max_cost, alpha, g
            )
            methods[k] = LOW_RANK
            certified = gaps[k] <= tol
            norm2 = refresh(H, ridge, alpha, g)
            stale = 0
            gaps[k] = gap_of(H, ridge, alpha, g, norm2, value_error)
            if not certified:
                lowrank = certified_gap(norm2, np.min(g), 0.0) < USEFUL_GAP
        else:
            norm2 = change_ridge(previous_ridge, ridge, alpha, g, norm2)
        if methods[k] == 0 or gaps[k] > tol:
            norm2, stale, gaps[k], steps[k], newtons, cost = solve_shrunk(
                H,
                ridge,
                alpha,
                g,
                norm2,
                stale,
                tol,
                value_error,
                limits[k] - rounds[k],
                max_cost - costs[k],
            )
            rounds[k] += newtons
            costs[k] += cost
            methods[k] += (PAIR_STEPS if steps[k] else 0) + (SUPPORT_NEWTON if newtons else 0)
        is_out = steps[k] + rounds[k] >= limits[k]
        is_costly = costs[k] >= 0.9 * max_cost
        statuses[k] = status_of(H, ridge, alpha, value_error, gaps[k], tol, is_out, is_costly)
        norm2s[k] = norm2
        scale = 1.0 / norm2 if norm2 > 0.0 else 1.0
        for i in range(m):
            weights[k, i] = alpha[i] * scale


def method_names(methods):
    """Spell out the bits of `methods`, as in ``"pair_steps+support_newton"``."""
    return "+".join(name for bit, name in METHOD_NAMES.items() if methods & bit)
