"""One dense block of the L1 or the L2 problem with a free bias, for an ascending path of C.

The weights are signed as in `solvers.smo.row_steps`: β_i has the sign of the label y_i. The kernel values
then need no labels, and the free bias becomes the constraint Σ β = 0. Steps (`solvers.smo.block_steps`) and
Newton's method (`solvers.smo.free_weights`) share the work.

The first C starts from sums of kernel values over the classes. At a small C most weights are at their bounds,
and these sums tell which bound each weight has. From one C to the next, a point with few free weights is
scaled, which needs no kernel value. A point without any weight at an upper bound stays optimal.
"""

from typing import NamedTuple

import numpy as np
from numba import float64, int64

from solvers.common.certificate import (
    AFFORDABLE_SHARE,
    AIMED_SHARE,
    FEW_ROUNDINGS,
    ROUNDINGS_PER_STEP,
    TERMS_IN_BLOCK,
    UNIT_ROUNDOFF,
)
from solvers.common.compile import apart, implement, inlined, inner, njit
from solvers.common.progress import first_look, has_stalled, resolution
from solvers.common.reductions import total_size
from solvers.common.status import CONVERGED, LIMIT, PAUSED, STALLED, UNRESOLVED
from solvers.gram.block import find_rows_with_weight, gather_values, largest_value, sum_of_rows
from solvers.gram.subproblems import solve_path
from solvers.smo.block_steps import smo_block_steps
from solvers.smo.certificate import bias_of, extremes, gap_of
from solvers.smo.free_weights import newton_cost, newton_on_free

# Smallest and largest number of steps between two counts of the free weights.
MIN_STEPS, MAX_STEPS = 64, 256
# Largest number of tighter tolerances that are tried while the recomputed gradient or gap misses `tol`.
REFINEMENTS = 30
# Smallest ratio of weights at their bounds to free weights at which a point is scaled with C.
BOUNDED_PER_FREE = 2
# Largest rounding error of the gradient, as a share of the target violation, before it is recomputed.
ALLOWED_DRIFT = 0.01
# Roundings that the scaling of a point adds to its gradient.
ROUNDINGS_PER_SCALING = 4.0
# Bound on the sum of weights that have no bounds.
UNBOUNDED = 1e300
# Smallest factor by which a refinement multiplies the target violation.
MIN_SHARE = 1e-3
# Rounding prevents further progress if this number of steps reduces the objective by less than this share of
# the sum of weights.
STEPS_WITHOUT_PROGRESS, NO_PROGRESS = 2400, 1e-15
# Numbers of scratch vectors of m entries that a path needs: of float64, of float32, and of indices.
N_VECTORS, N_SHORT_VECTORS, N_INDICES = 16, 4, 2


@inner
def step_cost(m):
    """Return the cost of one step on m rows, in nanoseconds of a 2025 core.

    Parameters
    ----------
    m : int
        Number of rows.

    Returns
    -------
    float
        Expected cost, in nanoseconds.
    """
    return 40.0 + 0.5 * m


@inlined
def refresh(K, inverse_C, y, beta, F, largest, vectors, indices):
    """Recompute the gradient from the weights.

    Parameters
    ----------
    K : array (m, m), float32 or float64, C-contiguous
        Kernel values without labels.
    inverse_C : array (m,)
        1/C of each sample for the L2 loss, 0 for the L1 loss.
    y : array (m,)
        Labels, 1 or -1.
    beta : array (m,)
        Signed weights.
    F : array (m,)
        Receives the gradient.
    largest : float
        Bound on the size of the kernel values.
    vectors : array (2 or more, m)
        Scratch memory, overwritten.
    indices : int64 array (1 or more, m)
        Scratch memory, overwritten.

    Returns
    -------
    float
        Bound on the rounding error of the gradient.
    """
    chosen, partial, rows = vectors[0], vectors[1], indices[0]
    weight, n_support = 0.0, find_rows_with_weight(beta, rows)
    support = rows[:n_support]
    gather_values(beta, support, chosen)
    sum_of_rows(K, support, chosen, F, partial)
    for t in range(F.size):
        F[t] += inverse_C[t] * beta[t] - y[t]
        weight += abs(beta[t])
    return (n_support / TERMS_IN_BLOCK + FEW_ROUNDINGS) * UNIT_ROUNDOFF * (largest * weight + 1.0)


@njit(allocates=False)
def set_bounds(y, C, hinge, low, high, inverse_C):
    """Fill the bounds of the weights, and 1/C of the loss.

    Parameters
    ----------
    y : array (m,)
        Labels, 1 or -1.
    C : array (m,)
        Penalty of each sample.
    hinge : bool
        Whether the loss is C ξ; if not, it is ½ C ξ².
    low, high, inverse_C : arrays (m,)
        Receive the bounds, and 1/C or 0.
    """
    for t in range(y.size):
        limit = C[t] if hinge else np.inf
        low[t], high[t] = (0.0, limit) if y[t] > 0.0 else (-limit, 0.0)
        inverse_C[t] = 0.0 if hinge else 1.0 / C[t]


@inlined
def value_of_rank(values, rank, a):
    """Return the value of a rank in ascending order, by selection on a copy (Hoare 1961, Find).

    Parameters
    ----------
    values : array (n,)
        Numbers to choose from, in any order.
    rank : int
        Number of values that precede it.
    a : array (n or more,)
        Memory for the copy.

    Returns
    -------
    float
        Value with exactly `rank` values before it in ascending order.
    """
    low, high = 0, values.size - 1
    for t in range(values.size):
        a[t] = values[t]
    while low < high:
        pivot, i, j = a[rank], low, high
        while i <= j:
            while a[i] < pivot:
                i += 1
            while pivot < a[j]:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        if j < rank:
            low = i
        if rank < i:
            high = j
    return a[rank]


@inlined
def write_weights(margins, n_full, full, total, beta, scratch):
    """Assign full weight to the samples with the smallest margins, and the rest of the total to the next one.

    Parameters
    ----------
    margins : array (n,)
        Margin of each sample.
    n_full : int
        Number of samples with full weight.
    full : float
        The full weight, with its sign.
    total : float
        Sum of all weights, with its sign.
    beta : array (n,)
        Receives the weights.
    scratch : array (n or more,)
        Scratch memory, overwritten.
    """
    m = margins.size
    border = np.inf
    if n_full < m:
        border = value_of_rank(margins, n_full, scratch)
    n_at_border = n_full  # number of samples at the border that get full weight
    for t in range(m):
        n_at_border -= margins[t] < border
    for t in range(m):
        beta[t] = full if margins[t] < border else 0.0
        if margins[t] == border:
            n_at_border -= 1
            if n_at_border >= 0:
                beta[t] = full
            elif n_at_border == -1:
                share = (total - n_full * full) / full
                beta[t] = min(max(share, 0.0), 1.0) * full


@njit(allocates=False)
def write_unequal_weights(margins, limits, sign, total, beta, scratch):
    """Do what `write_weights` does for samples with different full weights.

    Parameters
    ----------
    margins : array (n,)
        Margin of each sample.
    limits : array (n,)
        Full weight of each sample, without its sign.
    sign : {1.0, -1.0}
        Sign of the weights.
    total : float
        Sum of all weights, without its sign.
    beta : array (n,)
        Receives the weights.
    scratch : array (n or more,)
        Scratch memory, overwritten.
    """
    m = margins.size
    low, high, border, left = 0, m, -np.inf, total
    while low < high:  # find the largest rank whose preceding full weights sum to at most the total
        rank = (low + high + 1) // 2
        value = value_of_rank(margins, rank, scratch) if rank < m else np.inf
        rest = total
        for t in range(m):
            if margins[t] < value:
                rest -= limits[t]
        if rest >= 0.0:
            low, border, left = rank, value, rest
        else:
            high = rank - 1
    if low == 0:
        border = value_of_rank(margins, 0, scratch)
    for t in range(m):
        beta[t] = sign * limits[t] if margins[t] < border else 0.0
        if margins[t] == border:
            taken = min(left, limits[t])
            beta[t] = sign * taken
            left -= taken


@inlined
def start(K, y, C, n_first, hinge, beta, F, vectors, rows):
    """Set the weights to about their values at a small C, and compute their gradient.

    For the L1 loss, all weights of the smaller class are C. Margins are computed with weights of the larger
    class that are proportional to C. Its samples with the smallest margins then get the weight C. For the L2
    loss, kernel values are negligible compared with 1/C.

    Parameters
    ----------
    K : array (m, m), float32 or float64, C-contiguous
        Kernel values without labels.
    y : array (m,)
        Labels, 1 or -1.
    C : array (m,)
        Penalty of each sample.
    n_first : int
        Number of samples of the first class, which come first.
    hinge : bool
        Whether the loss is C ξ; if not, it is ½ C ξ².
    beta, F : arrays (m,)
        Receive the weights and their gradient.
    vectors : array (7 or more, m)
        Scratch memory, overwritten.
    rows : int64 array (m,)
        Scratch memory, overwritten.
    """
    m = beta.size
    of_first, of_second, chosen, partial = vectors[0], vectors[1], vectors[2], vectors[3]
    margins_of_large, scratch, share = vectors[4], vectors[5], vectors[6]
    C_first, C_second = largest_value(C[:n_first]), largest_value(C[n_first:])
    is_equal = True  # whether C is constant within each class
    for t in range(m):
        share[t] = C[t] / (C_first if t < n_first else C_second)
        is_equal &= share[t] == 1.0
        rows[t] = t
    sum_of_rows(K, rows[:n_first], share[:n_first], of_first, partial)
    sum_of_rows(K, rows[n_first:], share[n_first:], of_second, partial)
    capacity_first = C_first * total_size(share[:n_first])
    capacity_second = C_second * total_size(share[n_first:])
    if not hinge:
        both = capacity_first + capacity_second
        of_each_first, of_each_second = (
            2.0 * capacity_second / both * C_first,
            -2.0 * capacity_first / both * C_second,
        )
        mean = (capacity_first - capacity_second) / both
        for t in range(m):
            beta[t] = share[t] * (of_each_first if y[t] > 0.0 else of_each_second)
            F[t] = of_each_first * of_first[t] + of_each_second * of_second[t] - mean
        return
    is_first = capacity_first <= capacity_second  # whether the first class is the smaller one
    sign = 1.0 if is_first else -1.0
    capacity, C_small, C_large = capacity_first, C_first, C_second
    of_small, of_large = of_first, of_second
    first, last = n_first, m  # of the larger class
    if not is_first:
        capacity, C_small, C_large = capacity_second, C_second, C_first
        of_small, of_large = of_second, of_first
        first, last = 0, n_first
    equal = capacity / total_size(share[first:last])
    margins = margins_of_large[: last - first]
    for t in range(first, last):
        margins[t - first] = equal * of_large[t] - C_small * of_small[t]
    n_full = min(np.int64(capacity / C_large), last - first)
    for t in range(m):
        beta[t] = sign * C[t]
    if is_equal:
        write_weights(margins, n_full, -sign * C_large, -sign * capacity, beta[first:last], scratch)
    else:
        write_unequal_weights(margins, C[first:last], -sign, capacity, beta[first:last], scratch)
    from_all = 2 * n_full > last - first  # whether a correction of the sum over all samples takes fewer rows
    base = -sign * C_large if from_all else 0.0
    n = 0
    for t in range(first, last):
        change = beta[t] - base * share[t]
        if change != 0.0:
            rows[n], chosen[n] = t, change
            n += 1
    sum_of_rows(K, rows[:n], chosen, F, partial)
    for t in range(m):
        F[t] += sign * C_small * of_small[t] + base * of_large[t] - y[t]


@njit(allocates=False)
def change_C(old, new, y, hinge, low, high, inverse_C, beta, F):
    """Move a point from one C to another.

    Parameters
    ----------
    old, new : arrays (m,)
        C of each sample; ``new`` is a multiple of ``old``.
    y : array (m,)
        Labels, 1 or -1; 0 for a weight without bounds.
    hinge : bool
        Whether the loss is C ξ; if not, it is ½ C ξ².
    low, high, inverse_C : arrays (m,)
        Bounds and 1/C of ``old``, replaced by those of ``new``.
    beta, F : arrays (m,), changed in place
        Signed weights and their gradient.

    Returns
    -------
    scale : float
        Factor of the weights, and of the gradient without its labels.
    stays_optimal : bool
        Whether the new point is optimal if the old one was, because no weight is at an upper bound.
    """
    m, scale, n_bounded = beta.size, 1.0, 0
    if hinge:
        n_free = 0
        for t in range(m):
            n_bounded += abs(beta[t]) >= old[t]
            n_free += (abs(beta[t]) > 0.0) & (abs(beta[t]) < old[t])
        if n_bounded > 0 and n_bounded >= BOUNDED_PER_FREE * n_free:
            scale = new[0] / old[0]
    else:
        kernel_part, ridge = 0.0, 0.0
        for t in range(m):
            kernel_part += beta[t] * (F[t] + y[t] - inverse_C[t] * beta[t])
            ridge += beta[t] * beta[t] / new[t]
        if kernel_part + ridge > 0.0:
            scale = total_size(beta) / (kernel_part + ridge)  # the minimum of the objective on the ray
    for t in range(m):
        is_bounded = hinge and abs(beta[t]) >= old[t]
        F[t] = scale * (F[t] + y[t] - inverse_C[t] * beta[t]) - y[t]
        beta[t] = y[t] * new[t] if is_bounded and scale > 1.0 else scale * beta[t]
    set_bounds(y, new, hinge, low, high, inverse_C)
    for t in range(m):
        F[t] += inverse_C[t] * beta[t]
    return scale, hinge and n_bounded == 0


@apart(int64, int64, float64, float64, float64)
def minimise(
    K,
    shift,
    diagonal,
    inverse_C,
    F,
    beta,
    low,
    high,
    tol,
    elapsed_cost,
    max_iter,
    short_vectors,
    vectors,
    indices,
):
    """Minimise until the largest violation is at most ``tol``, or rounding alone can explain it.

    The violation is that of the given gradient, which is not recomputed. Newton's method runs when the steps
    since its last run have cost as much as it does.

    Parameters
    ----------
    K : array (m, m), float32 or float64, C-contiguous
        Kernel values without labels, less `shift`.
    shift : float
        Value that was subtracted from the kernel.
    diagonal : array (m,)
        Diagonal of ``K`` plus `inverse_C`.
    inverse_C : array (m,)
        1/C of each sample for the L2 loss, 0 for the L1 loss.
    F, beta : arrays (m,), changed in place
        Gradient and signed weights.
    low, high : arrays (m,)
        Bounds of the weights.
    tol : float
        Largest violation.
    elapsed_cost : float
        Cost of the steps since Newton's method last ran.
    max_iter : int
        Number of iterations after which the training stops.
    short_vectors : float32 array (N_SHORT_VECTORS, m)
        Scratch memory, overwritten.
    vectors : array (6 or more, m)
        Scratch memory, overwritten.
    indices : int64 array (N_INDICES, m)
        Scratch memory, overwritten.

    Returns
    -------
    status : int
        CONVERGED, LIMIT, STALLED, UNRESOLVED or NOT_POSITIVE.
    iterations : int
        Number of steps and of rounds of Newton's method.
    roundings : float
        Number of roundings in the gradient, each of a number as large as the gradient can be.
    cost : float
        Cost of the work, in nanoseconds of a 2025 core.
    elapsed_cost : float
        Cost of the steps since Newton's method last ran.
    """
    m = F.size
    iterations, roundings, cost = 0, 0.0, 0.0
    without_progress, gains, last_check = 0, 0.0, first_look(m)
    largest = largest_value(diagonal)
    while iterations < max_iter:
        n_free, weight = np.int64(0), 0.0
        for t in range(m):
            n_free += low[t] < beta[t] < high[t]
            weight += abs(beta[t])
        aim = max(tol, 2.0 * resolution((largest + shift) * weight + 1.0))
        if iterations >= last_check[0]:
            objective, (lowest, highest) = 0.5 * (np.dot(beta, F) - weight), extremes(F, beta, low, high)
            if has_stalled(last_check, iterations, objective, highest - lowest, aim, m):
                return STALLED, iterations, roundings, cost, elapsed_cost
            last_check = (np.int64(2 * iterations), objective, last_check[1] - objective)
        cost_of_newton = newton_cost(n_free, m)
        if n_free > 1 and elapsed_cost > cost_of_newton:
            left = max_iter - iterations
            iterations += newton_on_free(K, shift, inverse_C, F, beta, low, high, left, vectors, indices)
            roundings += 2.0 * (n_free / TERMS_IN_BLOCK + FEW_ROUNDINGS)  # no weight moves by more than 2 C
            cost += cost_of_newton
            elapsed_cost = 0.0
            continue
        # Number of steps until Newton's method runs, if as many weights stay free.
        due = np.int64((cost_of_newton - elapsed_cost) / step_cost(m)) + 1
        allowed = min(max(MIN_STEPS, due), MAX_STEPS, max_iter - iterations)
        status, steps, gain = smo_block_steps(
            K, diagonal, inverse_C, F, beta, low, high, aim, allowed, short_vectors
        )
        iterations += steps
        roundings += steps * ROUNDINGS_PER_STEP
        cost += steps * step_cost(m)
        elapsed_cost += steps * step_cost(m)
        if status != PAUSED:
            return status, iterations, roundings, cost, elapsed_cost
        without_progress += steps
        gains += gain
        if without_progress >= STEPS_WITHOUT_PROGRESS:
            if not gains > NO_PROGRESS * total_size(beta):
                return UNRESOLVED, iterations, roundings, cost, elapsed_cost
            without_progress, gains = 0, 0.0
    return LIMIT, iterations, roundings, cost, elapsed_cost


@njit(allocates=False)
def state_of(F, beta, low, high, value_error, drift):
    """Return the bias of a point, its violation, the sum of its weights, and the error of its gradient.

    Parameters
    ----------
    F, beta, low, high : arrays (m,)
        Gradient, signed weights, and bounds.
    value_error : float
        Bound on the error of a kernel value.
    drift : float
        Bound on the rounding error of the gradient.

    Returns
    -------
    b : float
        Intercept b of the decision function.
    violation : float
        Largest violation of the optimality conditions, by the given gradient.
    weight : float
        Sum of the weights without their signs.
    error : float
        Bound on the error of a value of the gradient.
    """
    weight = total_size(beta)
    lowest, highest = extremes(F, beta, low, high)
    b = bias_of(F, beta, low, high)
    return b, max(0.0, highest - lowest), weight, weight * value_error + drift


class SmoRules(NamedTuple):
    """Rules of a path whose blocks are solved by `smo_path`, and memory for the largest of m samples."""

    hinge: bool  # whether the loss is C ξ; if not, it is ½ C ξ²
    tol: float  # largest violation, and largest gap
    value_errors: np.ndarray  # (n_subproblems,): bounds on the errors of the entries of the blocks
    shifts: np.ndarray  # (n_subproblems,): values that were subtracted from the kernel
    vectors: np.ndarray  # (N_VECTORS · m,): memory
    short_vectors: np.ndarray  # (N_SHORT_VECTORS · m,) float32: memory
    indices: np.ndarray  # (N_INDICES · m,) int64: memory


@implement(solve_path, SmoRules, allocates=False)
def smo_path(rules, subproblem, K, class_start, inverse_weight, bias, Cs, limits, weights, outcomes):
    """Solve one block for every C, each time from the last solution.

    Parameters
    ----------
    rules : SmoRules
        Rules of the path, and memory.
    subproblem : int
        Index of the subproblem among those of all Gram matrices.
    K : array (m, m), float32 or float64, C-contiguous
        Kernel values without labels, less the shift of the subproblem.
    class_start, inverse_weight
        As in `solvers.gram.subproblems.solve_path`.
    bias
        Not used: the bias is free.
    Cs, limits
        As in `solvers.gram.subproblems.solve_path`.
    weights : array (n_C, m)
        Receives the weights without their signs.
    outcomes
        As in `solvers.gram.subproblems.solve_path`.
    """
    hinge, tol, shift, m, n_first = (
        rules.hinge,
        rules.tol,
        rules.shifts[subproblem],
        K.shape[0],
        class_start[1],
    )
    vectors = rules.vectors[: N_VECTORS * m].reshape((N_VECTORS, m))
    short_vectors = rules.short_vectors[: N_SHORT_VECTORS * m].reshape((N_SHORT_VECTORS, m))
    indices = rules.indices[: N_INDICES * m].reshape((N_INDICES, m))
    y, inverse_C, diagonal, C, old = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    low, high, beta, F, others = vectors[5], vectors[6], vectors[7], vectors[8], vectors[9:]
    for t in range(m):
        y[t] = 1.0 if t < n_first else -1.0
    elapsed_cost, drift, growth, lost, status, is_optimal = 0.0, 0.0, 1.0, 0.0, CONVERGED, False
    b, violation, weight, error, gap, converged = 0.0, 0.0, 0.0, 0.0, 0.0, False
    for k in range(Cs.size):
        total = 0.0
        for t in range(m):
            old[t], C[t] = C[t], Cs[k] / inverse_weight[t]
            total += C[t]
        if k == 0:
            set_bounds(y, C, hinge, low, high, inverse_C)
            start(K, y, C, n_first, hinge, beta, F, others, indices[0])
            is_optimal, lost = False, 2.0 * (m / TERMS_IN_BLOCK + FEW_ROUNDINGS)
        else:
            growth, stays_optimal = change_C(old, C, y, hinge, low, high, inverse_C, beta, F)
            is_optimal, lost = stays_optimal and status == CONVERGED, ROUNDINGS_PER_SCALING
        largest = 0.0
        for t in range(m):
            diagonal[t] = K[t, t] + inverse_C[t]
            largest = max(largest, abs(diagonal[t] + shift) + shift)  # also of |k - shift|
        # No value of the gradient is larger than this while all weights are within a box.
        rounding = UNIT_ROUNDOFF * (largest * (total if hinge else UNBOUNDED) + 1.0)
        drift = drift * growth + lost * rounding
        aim, iterations, cost, status = AIMED_SHARE * tol, np.int64(0), 0.0, CONVERGED
        for _ in range(REFINEMENTS):
            if not is_optimal:
                left = limits[k] - iterations
                status, taken, lost, cost_taken, elapsed_cost = minimise(
                    K,
                    shift,
                    diagonal,
                    inverse_C,
                    F,
                    beta,
                    low,
                    high,
                    aim,
                    elapsed_cost,
                    left,
                    short_vectors,
                    others,
                    indices,
                )
                iterations += taken
                cost += cost_taken
                drift += lost * rounding
            is_optimal = False
            is_stale = drift > ALLOWED_DRIFT * aim
            while True:
                if is_stale:
                    drift = refresh(K, inverse_C, y, beta, F, largest, others, indices)
                b, violation, weight, error = state_of(
                    F, beta, low, high, rules.value_errors[subproblem], drift
                )
                gap = gap_of(F, beta, y, C, inverse_C, hinge, b, error)
                converged = gap <= tol and violation + 2.0 * error <= tol
                if converged or is_stale or drift <= ALLOWED_DRIFT * error:
                    break
                is_stale = True
            if converged or status != CONVERGED:
                break
            # A tighter tolerance does not help where the error of the kernel values dominates.
            exact, enough = gap_of(F, beta, y, C, inverse_C, hinge, b, 0.0), AFFORDABLE_SHARE * tol
            is_unreachable = 2.0 * error > enough or gap - exact > enough or max(exact, violation) <= enough
            if is_unreachable and violation <= tol:
                break
            aim *= min(0.5, max(MIN_SHARE, enough / exact)) if violation <= tol else 0.5
        outcomes.statuses[subproblem, k], outcomes.converged[subproblem, k] = status, converged
        outcomes.objectives[subproblem, k] = 0.5 * (np.dot(beta, F) - weight)
        outcomes.gaps[subproblem, k], outcomes.iterations[subproblem, k] = gap, iterations
        outcomes.costs[subproblem, k] = cost
        outcomes.biases[subproblem, k, 0], outcomes.biases[subproblem, k, 1] = b, -b
        for t in range(m):
            weights[k, t] = abs(beta[t])
