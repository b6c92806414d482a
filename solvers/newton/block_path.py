"""One dense block of the hull problem, solved for one C or for an ascending path of C.

Three methods share the work, and pass their exact point to each other. Low-rank Newton runs while the
numerical rank of the block is small. Pair steps run next. Newton on the support block takes over as soon as
the steps have cost more than its rounds would. Costs are counted in operations instead of read from a clock,
so the same input takes the same course on every computer.
"""

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64

from solvers.common.certificate import (
    TERMS_IN_BLOCK,
    certified_gap,
    drift_of,
    error_of_sums,
    steps_at_new_C,
    violation_aimed_at,
)
from solvers.common.compile import apart, implement, inlined, inner, njit
from solvers.common.status import CONVERGED, LIMIT, NOT_POSITIVE, TIMEOUT, UNRESOLVED
from solvers.gram.block import (
    change_C,
    chosen_values,
    copy_values,
    diagonal_of,
    divided,
    gap_of,
    gather,
    largest_diagonal,
    largest_value,
    lowest_value,
    refresh,
    rows_near_margin,
    rows_with_weight,
    step_cost,
    write_values,
)
from solvers.gram.outcomes import LOW_RANK, PAIR_STEPS, SUPPORT_NEWTON
from solvers.gram.subproblems import solve_path
from solvers.hull.stopping import NOISE_ROUNDINGS
from solvers.newton.lowrank_space import lowrank_point, lowrank_space
from solvers.newton.pair_steps import N_SHORT_VECTORS, pair_steps
from solvers.newton.support import newton_rounds

# Number of pair steps between two decisions.
STEPS_PER_CHUNK = 64
# Largest number of rounds of one Newton call.
NEWTON_ROUNDS = 30
# Largest number of Newton calls on a block. A second call refines the rounding errors of the first.
NEWTONS = 4
# Rounding prevents further progress if a chunk of steps reduces ||c||² by less than the share ROUNDING of the
# largest violation. Once Newton has failed, a chunk with less than the share NO_PROGRESS ends the training.
ROUNDING, NO_PROGRESS = 1e-12, 1e-5
# Largest rounding error of g, as a share of the target violation, before g is recomputed.
ALLOWED_DRIFT = 0.005
# Cost of the steps after which Newton takes over, in rounds: a warm-started Newton needs as many.
PATIENCE = 3.0
# Smallest block for low-rank Newton, in rows. Pair steps solve smaller ones before a factorisation pays.
LOWRANK_ROWS = 300
# Largest gap with which a low-rank point is a better start than the last solution.
USEFUL_GAP = 0.5
# Largest share of the block that may remain for leaving out rows far from the margin.
SHRINK_BELOW = 0.6
# Largest number of times that a block is shrunk.
SHRINKINGS = 4
# Largest number of support vectors whose block is tested for negative curvature after a stall.
ROWS_OF_EVIDENCE = 2000


@inner
def newton_cost(s, m):
    """Return the cost of one Newton round, in the unit of `solvers.gram.block.step_cost`.

    Parameters
    ----------
    s : int
        Number of active rows.
    m : int
        Number of rows.

    Returns
    -------
    float
        Expected cost, in nanoseconds.
    """
    return 3e3 + s * (60.0 + 0.045 * m + s * (1.1 + s / 150.0))


@apart(float64, int64, boolean, boolean, allocates=True)
def support_newton(H, inverse_C, alpha, g, square_norm, epsilon, max_rounds):
    """Run Newton rounds from a hull point, and replace the point if they find a better one.

    Parameters
    ----------
    H : array (m, m), float32 or float64, C-contiguous
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.
    alpha, g : arrays (m,), float64, changed in place
        Weights of the hull point, and inner products with it.
    square_norm : float
        ``||c||²`` at the start.
    epsilon : float
        Target violation, as a share of the margin.
    max_rounds : int
        Number of Newton rounds after which the loop stops.

    Returns
    -------
    square_norm : float
        ``||c||²`` at the end.
    rounds : int
        Number of Newton rounds that were done.
    possible : bool
        Whether the active block is positive definite.
    replaced : bool
        Whether there is a new point, with ``g`` recomputed.
    """
    m = g.size
    beta, f = np.empty(m), np.empty(m)
    for i in range(m):
        beta[i] = alpha[i] / square_norm
        f[i] = g[i] / square_norm - inverse_C[i] * beta[i]
    rounds, outcome = newton_rounds(H, inverse_C, beta, f, epsilon, max_rounds)
    if outcome == NOT_POSITIVE:
        return square_norm, rounds, False, False
    total = 0.0
    for i in range(m):
        if outcome == LIMIT:
            slack = 1.0 - f[i]
            beta[i] = (0.0 if slack < 0.0 else slack) / inverse_C[i]
        total += beta[i]
    candidate, candidate_g = divided(beta, total), np.empty(m)
    candidate_square_norm = refresh(H, inverse_C, candidate, candidate_g)
    replaced = candidate_square_norm < square_norm or outcome == CONVERGED
    if replaced:
        copy_values(candidate, alpha)
        copy_values(candidate_g, g)
        square_norm = candidate_square_norm
    return square_norm, rounds, True, replaced


@inner(allocates=True)
def solve_block(H, inverse_C, alpha, g, square_norm, stale, tol, value_error, max_iter, max_cost):
    """Minimise ``||c||²`` over the hull from a point whose ``g`` is known.

    Parameters
    ----------
    H : array (m, m), float32 or float64, C-contiguous
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.
    alpha, g : arrays (m,), float64, changed in place
        Weights of the hull point, and inner products with it.
    square_norm : float
        ``||c||²`` at the start.
    stale : int
        Steps since ``g`` was last computed from ``alpha``.
    tol : float
        Bound on the certified gap.
    value_error : float
        Bound on the error of an entry of ``H``.
    max_iter : int
        Largest number of steps and rounds together.
    max_cost : float
        Approximate limit of the work, in the unit of `solvers.gram.block.step_cost`.

    Returns
    -------
    square_norm : float
        ``||c||²`` at the end.
    stale : int
        Steps since ``g`` was last computed from ``alpha``.
    gap : float
        Certified gap. It exceeds ``tol`` if ``value_error`` is too large for it.
    steps, rounds : int
        Numbers of pair steps and of Newton rounds.
    cost : float
        Cost of the work; see `solvers.gram.block.step_cost`.
    """
    m = g.size
    short_vectors = np.empty((N_SHORT_VECTORS, m), np.float32)
    diagonal = diagonal_of(H, inverse_C)
    largest = max(0.0, largest_value(diagonal))
    error = error_of_sums(value_error, largest, m / TERMS_IN_BLOCK, np.int64(0))
    steps, rounds = 0, 0
    cost = 0.0
    newtons_left = NEWTONS
    while steps + rounds < max_iter and cost < max_cost and square_norm > 0.0:
        before = square_norm
        epsilon = violation_aimed_at(tol, error, square_norm)
        allowed = min(STEPS_PER_CHUNK, max_iter - steps - rounds)
        square_norm, taken, is_stationary = pair_steps(
            H, diagonal, inverse_C, alpha, g, square_norm, epsilon, allowed, short_vectors
        )
        steps += taken
        stale += taken
        cost += taken * step_cost(m)
        share = NO_PROGRESS if newtons_left == 0 else ROUNDING
        if is_stationary or before - square_norm <= share * (square_norm - lowest_value(g)):
            if drift_of(stale, largest) > ALLOWED_DRIFT * epsilon * square_norm:
                square_norm = refresh(H, inverse_C, alpha, g)
                stale = 0
            if newtons_left == 0 or lowest_value(g) >= (1.0 - epsilon) * square_norm:
                break
            is_stationary = True
        active = np.int64(0)
        for i in range(m):
            active += g[i] - inverse_C[i] * alpha[i] < square_norm
        if newtons_left > 0 and (is_stationary or cost > PATIENCE * newton_cost(active, m)):
            allowed = min(NEWTON_ROUNDS, max_iter - steps - rounds)
            if allowed * newton_cost(active, m) > max_cost - cost:
                allowed = np.int64(max(0.0, max_cost - cost) / newton_cost(active, m))
            if allowed == 0:
                if is_stationary:
                    cost = max_cost if max_cost < np.inf else cost  # a Newton round exceeds the budget
                    break
                continue
            square_norm, used, possible, replaced = support_newton(
                H, inverse_C, alpha, g, square_norm, 0.5 * epsilon, allowed
            )
            rounds += used
            cost += used * newton_cost(active, m)
            stale = 0 if replaced else stale
            newtons_left = newtons_left - 1 if possible else 0
    gap = gap_of(alpha, g, square_norm, largest, value_error, stale)
    return square_norm, stale, gap, steps, rounds, cost


@inner(allocates=True)
def solve_shrunk(H, inverse_C, alpha, g, square_norm, stale, tol, value_error, max_iter, max_cost):
    """Run `solve_block` on the rows near the margin first, if they are few, and then on all rows.

    Parameters
    ----------
    H, inverse_C, alpha, g, square_norm, stale, tol, value_error, max_iter, max_cost
        As in `solve_block`.

    Returns
    -------
    tuple
        ``(square_norm, stale, gap, steps, rounds, cost)`` as in `solve_block`.
    """
    m = g.size
    steps, rounds = 0, 0
    cost = 0.0
    for _ in range(SHRINKINGS):
        rows = rows_near_margin(alpha, g, square_norm)
        if rows.size > SHRINK_BELOW * m:
            break
        part = np.empty((rows.size, rows.size), H.dtype)
        gather(H, rows, part)
        part_inverse_C, part_alpha = chosen_values(inverse_C, rows), chosen_values(alpha, rows)
        part_g = chosen_values(g, rows)
        left, budget, aim = max_iter - steps - rounds, max_cost - cost, 0.9 * tol
        square_norm, _, _, taken, used, elapsed_cost = solve_block(
            part, part_inverse_C, part_alpha, part_g, square_norm, stale, aim, value_error, left, budget
        )
        write_values(part_alpha, rows, alpha)
        square_norm = refresh(H, inverse_C, alpha, g)
        stale = np.int64(0)
        steps += taken
        rounds += used
        cost += elapsed_cost + 0.3 * rows.size * rows.size
        gap = gap_of(alpha, g, square_norm, largest_diagonal(H, inverse_C), value_error, stale)
        if gap <= tol or steps + rounds >= max_iter or cost >= max_cost:
            return square_norm, stale, gap, steps, rounds, cost
    left, budget = max_iter - steps - rounds, max_cost - cost
    square_norm, stale, gap, taken, used, elapsed_cost = solve_block(
        H, inverse_C, alpha, g, square_norm, stale, tol, value_error, left, budget
    )
    return square_norm, stale, gap, steps + taken, rounds + used, cost + elapsed_cost


@inner(allocates=True)
def start(H, inverse_C, alpha, g):
    """Scale weights to the hull, and compute ``g``.

    Parameters
    ----------
    H : array (m, m), float32 or float64, C-contiguous
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.
    alpha : array (m,)
        Weights, changed in place. If all are zero, they become equal.
    g : array (m,)
        Receives the inner products.

    Returns
    -------
    float
        ``||c||²``.
    """
    total = 0.0
    for i in range(alpha.size):
        total += alpha[i]
    for i in range(alpha.size):
        alpha[i] = alpha[i] / total if total > 0.0 else 1.0 / alpha.size
    return refresh(H, inverse_C, alpha, g)


@inner(allocates=True)
def is_indefinite(H, inverse_C, alpha, value_error):
    """Return whether the block of support vectors has negative curvature beyond rounding.

    Parameters
    ----------
    H : array (m, m), float32 or float64
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.
    alpha : array (m,)
        Weights of the hull point. The first `ROWS_OF_EVIDENCE` support vectors are tested.
    value_error : float
        Bound on the error of an entry of ``H``.

    Returns
    -------
    bool
        True if the Cholesky factorisation fails.
    """
    rows, s = np.empty(ROWS_OF_EVIDENCE, np.int64), 0
    for i in range(alpha.size):
        if alpha[i] > 0.0 and s < ROWS_OF_EVIDENCE:
            rows[s] = i
            s += 1
    rows = rows[:s]
    block = np.empty((s, s))
    gather(H, rows, block)
    largest = 0.0
    for a in range(s):
        largest = max(largest, abs(block[a, a]))
        block[a, a] += inverse_C[rows[a]]
    noise = s * value_error + NOISE_ROUNDINGS * np.finfo(H.dtype).eps * largest
    for a in range(s):
        block[a, a] += noise
    try:
        np.linalg.cholesky(block)
    except Exception:
        return True
    return False


@inner(allocates=True)
def status_of(H, inverse_C, alpha, value_error, gap, exact, tol, is_out_of_iterations, is_out_of_work):
    """Return why a training ended.

    Parameters
    ----------
    H, inverse_C, alpha, value_error
        As in `is_indefinite`.
    gap : float
        Upper bound on the relative duality gap, certified in float64.
    exact : float
        Gap without the error of the entries of H. If it is at most ``tol``, only that error prevents the
        certificate, and the expensive test for negative curvature is skipped.
    tol : float
        Bound on the certified gap.
    is_out_of_iterations : bool
        Whether the iterations are used up.
    is_out_of_work : bool
        Whether the budget of the work is used up.

    Returns
    -------
    int
        One of the statuses of `solvers.common.status`.
    """
    if gap <= tol:
        return CONVERGED
    if is_out_of_iterations:
        return LIMIT
    if is_out_of_work:
        return TIMEOUT
    if exact <= tol:
        return UNRESOLVED
    return NOT_POSITIVE if is_indefinite(H, inverse_C, alpha, value_error) else UNRESOLVED


@inlined
def min_square_norm(inverse_C):
    """Return the minimum of ``||c||²`` without a kernel.

    Parameters
    ----------
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.

    Returns
    -------
    float
        A lower bound of ``||c||²`` with any positive semidefinite kernel.
    """
    total = 0.0
    for i in range(inverse_C.size):
        total += 1.0 / inverse_C[i]
    return 1.0 / total


class NewtonRules(NamedTuple):
    """Rules of a path whose blocks are solved by `newton_path`."""

    tol: float  # bound on the certified gap
    value_errors: np.ndarray  # (n_subproblems,): bounds on the errors of the entries of the blocks
    max_cost: float  # approximate limit of the work for each C; see `solvers.gram.block.step_cost`
    start: np.ndarray  # (m,) weights to start from, which receive the last solution; (0,): all zero


@implement(solve_path, NewtonRules)
def newton_path(rules, subproblem, H, class_start, inverse_weight, bias, Cs, limits, weights, outcomes):
    """Solve one block for every C, each time from the last solution.

    Low-rank Newton may find the first solution if all weights are zero at the start.

    Parameters
    ----------
    rules : NewtonRules
        Rules of the path.
    subproblem, H
        As in `solvers.gram.subproblems.solve_path`.
    class_start
        Not used.
    inverse_weight
        As in `solvers.gram.subproblems.solve_path`.
    bias
        Not used.
    Cs, limits, weights, outcomes
        As in `solvers.gram.subproblems.solve_path`.
    """
    tol, value_error, max_cost = rules.tol, rules.value_errors[subproblem], rules.max_cost
    alpha = rules.start if rules.start.size > 0 else np.zeros(H.shape[0])
    m = alpha.size
    g = np.empty(m)
    gaps, iterations = outcomes.gaps[subproblem], outcomes.iterations[subproblem]
    methods, costs = outcomes.methods[subproblem], outcomes.costs[subproblem]
    inverse_C = divided(inverse_weight, Cs[0])
    is_cold = rows_with_weight(alpha).size == 0
    lowrank = is_cold and m >= LOWRANK_ROWS and 0.2 * m * m <= max_cost  # the cost of the first √m pivots
    space = lowrank_space(H, m if lowrank else 1)
    square_norm = 0.0 if lowrank else start(H, inverse_C, alpha, g)
    stale = np.int64(0)  # for a constant, numba would compile the callees a second time
    largest = 0.0
    for k in range(Cs.size):
        iterations[k] = methods[k] = 0
        costs[k] = 0.0
        previous = inverse_C
        inverse_C = divided(inverse_weight, Cs[k])
        before, largest = largest, largest_diagonal(H, inverse_C)
        if k > 0 and not np.isfinite(square_norm):  # a diverged point cannot be the start
            alpha[:] = 0.0
            square_norm = start(H, inverse_C, alpha, g)
            stale = np.int64(0)
            previous, before = inverse_C, largest
        if lowrank:
            # ||c||² cannot fall faster than 1/C, nor below its value without a kernel.
            lowest = square_norm * Cs[k - 1] / Cs[k] if k else min_square_norm(inverse_C)
            iterations[k], square_norm, gaps[k], costs[k] = lowrank_point(
                space, H, inverse_weight, Cs[k], lowest, tol, limits[k], max_cost, alpha, g
            )
            methods[k] = LOW_RANK
            certified = gaps[k] <= tol
            square_norm = refresh(H, inverse_C, alpha, g)
            stale = np.int64(0)
            gaps[k] = gap_of(alpha, g, square_norm, largest, value_error, stale)
            if not certified:
                lowrank = certified_gap(square_norm, lowest_value(g), 0.0, 1.0) < USEFUL_GAP
        else:
            square_norm = change_C(previous, inverse_C, alpha, g, square_norm)
            if k > 0:
                stale = steps_at_new_C(stale, before, largest)
        if methods[k] == 0 or not gaps[k] <= tol:
            left, cost_left = limits[k] - iterations[k], max_cost - costs[k]
            square_norm, stale, gaps[k], steps, rounds, cost = solve_shrunk(
                H, inverse_C, alpha, g, square_norm, stale, tol, value_error, left, cost_left
            )
            iterations[k] += steps + rounds
            costs[k] += cost
            methods[k] += (PAIR_STEPS if steps else 0) + (SUPPORT_NEWTON if rounds else 0)
        is_out = iterations[k] >= limits[k]
        is_costly = costs[k] >= 0.9 * max_cost
        exact = gap_of(alpha, g, square_norm, largest, 0.0, stale)
        status = status_of(H, inverse_C, alpha, value_error, gaps[k], exact, tol, is_out, is_costly)
        outcomes.statuses[subproblem, k] = status
        outcomes.converged[subproblem, k] = gaps[k] <= tol
        outcomes.objectives[subproblem, k] = square_norm
        scale = 1.0 / square_norm if square_norm > 0.0 else 1.0
        for i in range(m):
            weights[k, i] = scale * alpha[i]


@njit
def block_path(rules, subproblem, H, class_start, inverse_weight, bias, Cs, limits, weights, outcomes):
    """Call `newton_path` from Python.

    Parameters
    ----------
    rules, subproblem, H, class_start, inverse_weight, bias, Cs, limits, weights, outcomes
        As in `newton_path`.
    """
    solve_path(rules, subproblem, H, class_start, inverse_weight, bias, Cs, limits, weights, outcomes)
