"""One dense block of the hull problem, solved for one C or for an ascending path of C.

Three methods share the work and hand over their point exactly: low-rank Newton while the block's numerical rank is
small, pair steps, and Newton on the support block as soon as the steps taken cost more than its rounds would.
The costs are counted in operations, not read from a clock, so the same input takes the same course everywhere.
"""

import numpy as np
from numba import njit

from solvers.cholesky import extend_from_block
from solvers.newton_block import block_product, newton_rounds
from solvers.newton_lowrank import newton_rounds_lowrank
from solvers.pair_steps import pair_steps

# What a point was reached by; the bits of `method` add up over the blocks of one training.
PAIR_STEPS, SUPPORT_NEWTON, LOW_RANK = 1, 2, 4

STEPS_PER_CHUNK = 64
NEWTON_ROUNDS = 30
# Newton takes over when the steps have cost as much as this many rounds: what a warm-started Newton needs.
PATIENCE = 3.0
LOWRANK_ROUNDS = 60

LOWRANK_ROWS = 300
RANK_LIMIT = 3
USEFUL_GAP = 0.5

SHRINKINGS = 4
SHRINK_BELOW = 0.6
MARGIN = 0.02


@njit(nogil=True, cache=True, error_model="numpy")
def step_cost(m):
    """Cost of one pair step on m rows, in nanoseconds of a 2025 core."""
    return 60.0 + 0.35 * m


@njit(nogil=True, cache=True, error_model="numpy")
def newton_cost(s, m):
    """Cost of one Newton round with s active rows of m, in the same unit."""
    return 3e3 + s * (60.0 + 0.045 * m + s * (1.1 + s / 150.0))


@njit(nogil=True, cache=True, error_model="numpy")
def lowrank_cost(rank, s):
    """Cost of one low-rank Newton round, in the same unit."""
    return 1e4 + rank * rank * (s / 15.0 + rank / 60.0)


@njit(nogil=True, cache=True, error_model="numpy")
def refresh(H, ridge, alpha, g):
    """Recompute ``g`` from ``alpha``; return ``||c||²``."""
    rows = np.flatnonzero(alpha)
    block_product(H, rows, alpha[rows], g)
    for i in rows:
        g[i] += ridge[i] * alpha[i]
    return np.dot(alpha, g)


@njit(nogil=True, cache=True, error_model="numpy")
def certified_gap(norm2, g):
    """``1 - (max(g_min, 0) / ||c||²)²``, a bound on the relative error of ``||c||²``."""
    lower = max(np.min(g), 0.0) / norm2
    return 1.0 - lower * lower


@njit(nogil=True, cache=True, error_model="numpy")
def support_newton(H, ridge, alpha, g, norm2, eps):
    """Newton rounds from a hull point, which they replace; return (norm2, rounds, converged)."""
    beta = alpha / norm2
    f = g / norm2 - ridge * beta
    rounds, converged = newton_rounds(H, ridge, beta, f, eps, NEWTON_ROUNDS)
    if not converged:
        return norm2, rounds, False
    total = np.sum(beta)
    for i in range(g.size):
        alpha[i] = beta[i] / total
        g[i] = (f[i] + ridge[i] * beta[i]) / total
    return np.dot(alpha, g), rounds, True


@njit(nogil=True, cache=True, error_model="numpy")
def solve_block(H, ridge, alpha, g, norm2, tol, max_steps):
    """Minimise ``||c||²`` over the hull from a point whose ``g`` is known.

    Parameters
    ----------
    H : array (m, m), float32 or float64, C-contiguous
    ridge : array (m,)
    alpha, g : arrays (m,), float64, changed in place
    norm2 : float
    tol : float
        Bound on the certified gap.
    max_steps : int

    Returns
    -------
    norm2 : float
    gap : float
    steps, rounds : int
    cost : float
        Of the work done, see `step_cost`.
    """
    m = g.size
    # A little inside the tolerance, so that the rounding of the gap itself cannot push it out.
    eps = 1.0 - np.sqrt(1.0 - 0.99 * tol)
    diag = np.empty(m)
    largest = 0.0
    for i in range(m):
        diag[i] = H[i, i] + ridge[i]
        largest = max(largest, diag[i])
    steps, rounds, since_refresh = 0, 0, 0
    cost = 0.0
    newtons_left = 4
    gap = np.inf
    while steps < max_steps:
        norm2, taken, converged = pair_steps(
            H, diag, ridge, alpha, g, norm2, eps, min(STEPS_PER_CHUNK, max_steps - steps)
        )
        steps += taken
        since_refresh += taken
        cost += taken * step_cost(m)
        at_rest = converged or taken == 0
        if at_rest:
            # A step adds at most three roundings of the largest entry to g.
            if since_refresh * 3.4e-16 * largest > 0.005 * eps * norm2:
                norm2 = refresh(H, ridge, alpha, g)
                since_refresh = 0
                continue
            gap = certified_gap(norm2, g)
            if gap <= tol or newtons_left == 0:
                break
        active = np.sum(g - ridge * alpha < norm2)
        if newtons_left > 0 and (at_rest or cost > PATIENCE * newton_cost(active, m)):
            norm2, used, solved = support_newton(H, ridge, alpha, g, norm2, 0.5 * eps)
            rounds += used
            cost += used * newton_cost(active, m)
            since_refresh = 0
            newtons_left = newtons_left - 1 if solved else 0
    return norm2, certified_gap(norm2, g), steps, rounds, cost


@njit(nogil=True, cache=True, error_model="numpy")
def solve_shrunk(H, ridge, alpha, g, norm2, tol, max_steps):
    """`solve_block`, first on the rows with weight or next to the margin if they are few, then checked on all rows."""
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
        norm2, _, taken, used, spent = solve_block(
            part, ridge[rows], part_alpha, part_g, norm2, 0.9 * tol, max_steps - steps
        )
        alpha[rows] = part_alpha
        norm2 = refresh(H, ridge, alpha, g)
        steps += taken
        rounds += used
        cost += spent + 0.3 * rows.size * rows.size
        gap = certified_gap(norm2, g)
        if gap <= tol or steps >= max_steps:
            return norm2, gap, steps, rounds, cost
    norm2, gap, taken, used, spent = solve_block(H, ridge, alpha, g, norm2, tol, max_steps - steps)
    return norm2, gap, steps + taken, rounds + used, cost + spent


@njit(nogil=True, cache=True, error_model="numpy")
def start(H, ridge, alpha, g):
    """Make a hull point of any weights (the first sample when they are all zero) and fill ``g``; return ``||c||²``."""
    total = np.sum(alpha)
    if total > 0.0:
        alpha /= total
    else:
        alpha[0] = 1.0
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
def promising(half_left, left, target):
    """Whether a residual that fell from ``half_left`` to ``left`` in r/2 columns may reach ``target`` within 3r."""
    return left * (left / half_left) ** 4 <= target


@njit(nogil=True, cache=True, error_model="numpy")
def block_path(
    H, unit_ridge, Cs, tol, max_steps, alpha, weights, norm2s, gaps, steps, rounds, costs, methods
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
    max_steps : int
        For each C.
    alpha : array (m,)
        Weights to start from (all zero: none); holds the last solution at the end.
    weights : array (n_C, m), float64
        Receives the solutions of the modified L2 SVM, ``α / ||c||²``.
    norm2s, gaps, steps, rounds, costs, methods : arrays (n_C,)
        What is known of each solution.
    """
    m = alpha.size
    g = np.empty(m)
    ridge = unit_ridge / Cs[0]
    usual_rank = int(np.sqrt(m))
    lowrank = m >= LOWRANK_ROWS
    Z = np.empty((RANK_LIMIT * usual_rank if lowrank else 0, m))
    pivots = np.empty(Z.shape[0], np.int64)
    residual = np.empty(m)
    for i in range(m):
        residual[i] = H[i, i]
    f = np.zeros(m)
    w = np.zeros(0)
    scatter = np.zeros((0, 0))
    counted = np.zeros(m, np.bool_)
    rank = 0
    half_left = left = np.max(residual)
    if not lowrank:
        norm2 = start(H, ridge, alpha, g)
    g_is_exact = not lowrank
    for k in range(Cs.size):
        C = Cs[k]
        new_ridge = unit_ridge / C
        costs[k] = 0.0
        steps[k] = rounds[k] = methods[k] = 0
        accepted = False
        if lowrank:
            target = 0.1 * tol * (1.0 / (C * m) if k == 0 else norm2 * Cs[k - 1] / C)
            grown = rank
            if rank == 0:
                grown, half_left = extend_from_block(H, Z, 0, pivots, residual, target, usual_rank // 2)
                grown, left = extend_from_block(H, Z, grown, pivots, residual, target, usual_rank)
            if left > target and promising(half_left, left, target):
                grown, left = extend_from_block(H, Z, grown, pivots, residual, target, Z.shape[0])
            if grown > rank:
                costs[k] += 0.2 * m * (grown * grown - rank * rank)
                w = np.concatenate((w, np.zeros(grown - rank)))
                scatter = np.zeros((grown, grown))
                counted[:] = False
                rank = grown
            used, norm2, gaps[k] = newton_rounds_lowrank(
                Z[:rank], residual, unit_ridge, C, f, w, scatter, counted, alpha, g, tol, LOWRANK_ROUNDS
            )
            rounds[k] += used
            costs[k] += used * lowrank_cost(rank, m)
            methods[k] += LOW_RANK
            g_is_exact = False
            accepted = gaps[k] <= tol
            if not accepted:
                norm2 = refresh(H, new_ridge, alpha, g)
                g_is_exact = True
                lowrank = certified_gap(norm2, g) < USEFUL_GAP
        else:
            norm2 = change_ridge(ridge, new_ridge, alpha, g, norm2)
        ridge = new_ridge
        if not accepted:
            norm2, gaps[k], steps[k], used, cost = solve_shrunk(H, ridge, alpha, g, norm2, tol, max_steps)
            rounds[k] += used
            costs[k] += cost
            methods[k] += (PAIR_STEPS if steps[k] else 0) + (SUPPORT_NEWTON if used else 0)
        norm2s[k] = norm2
        for i in range(m):
            weights[k, i] = alpha[i] / norm2
