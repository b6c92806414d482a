"""Algorithms 3 and 4 on one dense block of the hull problem, for one C after the other.

The iteration is that of `solvers.hull.descent.descend`, which reads its state from a named tuple. Numba
counts references to all arrays of that tuple at every step, which would take as long as a step takes here.
Here every kernel value is available, and g of every sample is stored in float64. A draw is therefore a
look-up. A step is two passes over the block's columns in loops that LLVM vectorises (see
`solvers.common.pair_selection`). When C changes, only the diagonal part of g changes.
"""

from typing import NamedTuple

import numpy as np
from numba import float64, int64

from solvers.common.certificate import (
    AFFORDABLE_SHARE,
    AIMED_SHARE,
    TERMS_IN_BLOCK,
    certified_gap,
    drift_of,
    error_of_sums,
    steps_at_new_C,
)
from solvers.common.compile import apart, implement, inlined
from solvers.common.float32_keys import NEVER, bits_for, index_of, move
from solvers.common.pair_selection import (
    MDM,
    TINY,
    best_partner,
    shift_and_argmin_of_support,
    shift_and_ends_of_support,
)
from solvers.common.progress import DRAWS_PER_STEP, first_look, has_stalled, resolution
from solvers.common.reductions import total_size
from solvers.common.status import CONVERGED, LIMIT, NOT_POSITIVE, STALLED, UNRESOLVED
from solvers.gram.block import (
    change_C,
    chosen_values,
    diagonal_of,
    divided,
    gather,
    largest_value,
    lowest_value,
    refresh,
    rows_near_margin,
    rows_with_weight,
    step_cost,
    write_values,
)
from solvers.gram.subproblems import solve_path
from solvers.hull.block_pairs import copy_of_point, near_partner
from solvers.hull.descent import Rules
from solvers.hull.draws import draw_first, find_tracked
from solvers.hull.steps import step_length
from solvers.hull.stopping import MN, NOISE_ROUNDINGS, VIOLATION, rule_holds, search_threshold

# Largest number of descents for one C. Before each one but the first, g is recomputed from the kernel.
REFRESHES = 3
# Steps without a change of ||c||² after which the loop assumes that rounding prevents progress.
STEPS_WITHOUT_PROGRESS = 1000
# Largest rounding drift of g that needs no recomputation, as a share of ε ||c||².
ALLOWED_DRIFT = 0.001
# Steps for each sample before samples far from the margin are left out for the first time.
STEPS_BEFORE_SHRINKING = 3
# Largest share of the samples that may remain for shrinking to pay.
SHRINK_BELOW = 0.9
# Largest number of times that a block is shrunk.
SHRINKINGS = 4


@apart(float64, int64, int64, int64)
def descend_block(
    H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, rules, max_iter, state, copies
):
    """Run Algorithms 3, 4 and 5 from a hull point, as `solvers.hull.descent.descend` does.

    The rules imdm and gmdm choose by float32 copies (`solvers.hull.block_pairs`). Under the mdm rule, the
    partner u is the support vector with the largest g for every v. The update of g finds it at no extra cost.

    Parameters
    ----------
    H : array (m, m), float32 or float64, C-contiguous
        Block ``(y_i·y_j)(k(x_i, x_j) + bias)``.
    diagonal : array (m,)
        Diagonal of ``H`` plus 1/C.
    inverse_C : array (m,)
        Inverse penalty 1/C of each sample, which the problem adds to the diagonal.
    class_start : int64 array (classes + 1,)
        Index of the first sample of each class among the m samples, then m.
    alpha, g : arrays (m,), float64, changed in place
        Weights of the hull point c, and inner products x̃_i · c.
    square_norm : float
        ‖c‖² at the start.
    epsilon : float
        Tolerance ε of the stopping rule.
    rules : Rules
        Parameters of the algorithm.
    max_iter : int
        Number of steps after which the loop stops.
    state : uint64 array (1,)
        State of the random number generator, which advances.
    copies : float32 array (4, m)
        Memory for the copies.

    Returns
    -------
    square_norm : float
        ‖c‖² at the end.
    steps : int
        Number of steps taken.
    clipped : int
        Number of steps that were shortened by the weight of u.
    status : int
        One of the statuses of `solvers.common.status`.
    """
    is_mdm = rules.pair == MDM
    largest, highest, bits = largest_value(diagonal), np.int64(0), bits_for(g.size)
    unit = 1.0 / max(largest, TINY)
    copy_of_point(g, alpha, diagonal, square_norm, unit, copies)
    level, absent, weight = copies[0], copies[1], copies[2]
    if is_mdm:
        _, highest = shift_and_ends_of_support(g, alpha, H[0], H[0], 0.0)
    current = max(epsilon, rules.first_epsilon)
    steps, clipped, checked_at, last = 0, 0, 0, np.inf
    last_check, resolved, drawn = first_look(g.size), resolution(largest), 0
    while steps < max_iter:
        if square_norm <= 0.0:
            return square_norm, steps, clipped, NOT_POSITIVE
        if not square_norm < np.inf:  # the loop would never end
            return square_norm, steps, clipped, UNRESOLVED
        if steps - checked_at > STEPS_WITHOUT_PROGRESS:
            if abs(square_norm - last) < 1e-15 * last:
                return square_norm, steps, clipped, UNRESOLVED
            checked_at, last = steps, square_norm
            n_done = steps + (0 if rules.exhaustive else drawn // DRAWS_PER_STEP)
            if n_done >= last_check[0]:
                allowed = square_norm - search_threshold(
                    rules.stopping, epsilon, square_norm, diagonal[0], resolved
                )
                if has_stalled(
                    last_check, n_done, square_norm, square_norm - lowest_value(g), allowed, g.size
                ):
                    return square_norm, steps, clipped, STALLED
                last_check = (np.int64(2 * n_done), square_norm, last_check[1] - square_norm)

        threshold = search_threshold(rules.stopping, current, square_norm, diagonal[0], resolved)
        v, failed = find_tracked(g, threshold, rules, state, class_start)
        drawn += failed
        if v < 0:
            v = shift_and_argmin_of_support(g, alpha, H[0], H[0], 0.0)
            if g[v] >= threshold or not rules.exhaustive:
                if current <= epsilon:
                    return square_norm, steps, clipped, CONVERGED
                current = max(epsilon, 0.5 * current)
                continue

        before = steps
        for _ in range(min(1 + failed // rules.draws_per_tuning, max_iter - steps)):
            u = highest if is_mdm else near_partner(rules.pair, rules.exponent, copies, H[v], unit, v, bits)
            if u < 0 or alpha[u] == 0.0 or g[u] <= g[v]:
                u = best_partner(rules.pair, rules.exponent, g, alpha, H[v], diagonal, v)
                if u < 0:
                    break
            ahead, away = g[u] - g[v], diagonal[v] - H[v, u]
            square_distance = max(diagonal[v] + diagonal[u] - 2.0 * H[v, u], TINY)
            length = step_length(rules.step, g[u], g[v], away, square_distance, square_norm)
            clipped += rules.eta * length > alpha[u]
            beta = min(rules.eta * length, alpha[u])
            square_norm += beta * (beta * square_distance - 2.0 * ahead)
            alpha[v] += beta
            alpha[u] = alpha[u] - beta if beta < alpha[u] else 0.0
            g[v] += beta * inverse_C[v]
            g[u] -= beta * inverse_C[u]
            if is_mdm:
                v, highest = shift_and_ends_of_support(g, alpha, H[v], H[u], beta)
            else:
                weight[v], weight[u] = alpha[v], alpha[u]
                absent[v], absent[u] = np.float32(0.0), np.float32(0.0) if alpha[u] > 0.0 else NEVER
                lowest = index_of(move(g, H[v], H[u], beta, level, absent, square_norm, unit, bits), bits)
                v = min(lowest, np.int64(g.size - 1))  # with NaN no key is chosen
            steps += 1
            if g[v] >= threshold:
                break
        if steps == before:  # no step is possible from a violator: rounding ended the progress
            return square_norm, steps, clipped, UNRESOLVED
    return square_norm, steps, clipped, LIMIT


class MinimalNormRules(NamedTuple):
    """Rules of a path, and the tolerance, seed and value error of each of its subproblems."""

    rules: Rules  # parameters of the algorithm
    epsilons: np.ndarray  # (n_subproblems, n_C): tolerances ε of the stopping rule
    seeds: np.ndarray  # (n_subproblems,) uint64: seeds of the draws
    value_errors: np.ndarray  # (n_subproblems,): bounds on the errors of the entries of the blocks


def descend(path_rules, H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, max_iter, state):
    """Move a hull point until no sample violates the ε-approximation, by the algorithm of the rules.

    Numba chooses the implementation by the type of `path_rules`, and this body is never run:

    - `MinimalNormRules`: `descend_shrunk` in this file,
    - `ViolatorRules`: `follow_violators` in `solvers/hull/block_ball.py`,
    - `CoreSetRules`: `grow_core_set` in `solvers/hull/block_core_set.py`.

    Parameters
    ----------
    path_rules : MinimalNormRules, ViolatorRules or CoreSetRules
        Rules of the path; the type selects the algorithm.
    H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, max_iter, state
        As in `descend_block`.

    Returns
    -------
    square_norm, steps, clipped, status
        As in `descend_block`.
    full : int
        Number of full updates: steps that no weight shortened, or additions to a core set.
    """
    raise NotImplementedError


@inlined
def starts_among(rows, class_start):
    """Return the start of each class among chosen rows.

    Parameters
    ----------
    rows : int64 array
        Chosen rows, ascending.
    class_start : int64 array (classes + 1,)
        Index of the first sample of each class among all samples.

    Returns
    -------
    int64 array
        Index of the first chosen row of each class, then the number of rows. The array is shorter than
        `class_start` if a class has no chosen row.
    """
    starts = np.zeros(class_start.size, np.int64)
    for t in range(1, class_start.size):
        start = starts[t - 1]
        while start < rows.size and rows[start] < class_start[t]:
            start += 1
        if start == starts[t - 1]:
            return starts[:t]
        starts[t] = start
    return starts


@implement(descend, MinimalNormRules)
def descend_shrunk(
    path_rules, H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, max_iter, state
):
    """Run `descend_block` on all samples; if that takes long, first on those near the margin, then on all.

    A search that is not exhaustive draws from all samples, and never shrinks.

    Parameters
    ----------
    path_rules : MinimalNormRules
        Parameters of the algorithm, and the tolerances, seed and value error of each subproblem.
    H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, max_iter, state
        As in `descend_block`.

    Returns
    -------
    tuple
        ``(square_norm, steps, clipped, full, status)`` as in `descend`.
    """
    rules = path_rules.rules
    m = g.size
    copies = np.empty((4, m), np.float32)
    steps = clipped = 0
    for _ in range(SHRINKINGS if rules.exhaustive else 0):
        left = min(max_iter - steps, STEPS_BEFORE_SHRINKING * m)
        square_norm, taken, n_clipped, status = descend_block(
            H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, rules, left, state, copies
        )
        steps, clipped = steps + taken, clipped + n_clipped
        if status != LIMIT or steps >= max_iter:
            return square_norm, steps, clipped, steps - clipped, status
        rows = rows_near_margin(alpha, g, square_norm)
        starts = starts_among(rows, class_start)
        if rows.size > SHRINK_BELOW * m or starts.size < class_start.size:
            break
        part = np.empty((rows.size, rows.size), H.dtype)
        gather(H, rows, part)
        part_diagonal, part_inverse_C = chosen_values(diagonal, rows), chosen_values(inverse_C, rows)
        part_alpha, part_g = chosen_values(alpha, rows), chosen_values(g, rows)
        left = max_iter - steps
        square_norm, taken, n_clipped, status = descend_block(
            part,
            part_diagonal,
            part_inverse_C,
            starts,
            part_alpha,
            part_g,
            square_norm,
            epsilon,
            rules,
            left,
            state,
            np.empty((4, rows.size), np.float32),
        )
        steps, clipped = steps + taken, clipped + n_clipped
        write_values(part_alpha, rows, alpha)
        square_norm = refresh(H, inverse_C, alpha, g)
    left = max_iter - steps
    square_norm, taken, n_clipped, status = descend_block(
        H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, rules, left, state, copies
    )
    steps, clipped = steps + taken, clipped + n_clipped
    return square_norm, steps, clipped, steps - clipped, status


@inlined
def block_biases(class_start, alpha, g, square_norm, average, biases):
    """Write y_t·b of every class t to `biases`, as `solvers.hull.bias.class_biases` returns it.

    Parameters
    ----------
    class_start : int64 array (classes + 1,)
        Index of the first sample of each class.
    alpha, g : arrays (m,)
        Weights of the hull point c, and inner products x̃_i · c.
    square_norm : float
        Squared norm ‖c‖² of the current point c.
    average : bool
        Whether the bias is the average bias; otherwise it is the theoretic bias.
    biases : array (classes,)
        Receives y_t·b, not divided by the margin.
    """
    n_classes = biases.size
    slack = np.zeros(n_classes)
    size = np.zeros(n_classes)
    total = 0.0
    for i in range(alpha.size):
        total += alpha[i]
    for t in range(n_classes):
        weight = 0.0
        for i in range(class_start[t], class_start[t + 1]):
            if alpha[i] > 0.0:
                weight += alpha[i]
                slack[t] += square_norm - g[i]
                size[t] += 1.0
        biases[t] = weight - (total - weight) / (n_classes - 1)
    if not average:
        return
    if n_classes == 2:  # (5.24) averages over both classes
        mean = (slack[0] - slack[1]) / (size[0] + size[1])
        biases[0] += mean
        biases[1] -= mean
    else:
        for t in range(n_classes):
            biases[t] += slack[t] / max(size[t], 1.0)


@implement(solve_path, MinimalNormRules)
def minimal_norm_path(
    path_rules, subproblem, H, class_start, inverse_weight, bias, Cs, limits, weights, outcomes
):
    """Solve one block for every C: the first from random samples, each later one from the last solution.

    Parameters
    ----------
    path_rules : MinimalNormRules, ViolatorRules or CoreSetRules
        Rules of the path; their type selects the implementation of `descend`.
    subproblem, H, class_start, inverse_weight, bias, Cs, limits, weights, outcomes
        As in `solvers.gram.subproblems.solve_path`.
    """
    rules, value_error = path_rules.rules, path_rules.value_errors[subproblem]
    epsilons, state = path_rules.epsilons[subproblem], np.empty(1, np.uint64)
    state[0] = path_rules.seeds[subproblem]
    steps, statuses = outcomes.iterations[subproblem], outcomes.statuses[subproblem]
    clipped, full_updates = outcomes.clipped[subproblem], outcomes.full_updates[subproblem]
    m = H.shape[0]
    alpha, g = np.zeros(m), np.empty(m)
    first = draw_first(state, class_start, rules.first_samples)
    for a in range(first.size):
        alpha[first[a]] = 1.0 / first.size
    inverse_C = divided(inverse_weight, Cs[0])
    square_norm = refresh(H, inverse_C, alpha, g)
    since_refresh, largest = np.int64(0), 0.0
    # Both g and ||c||² carry the error; the rule with (1 − ε)² allows twice the error for the same ε.
    n_shares = 2.0 if rules.stopping == VIOLATION else 1.0
    for k in range(Cs.size):
        previous, inverse_C = inverse_C, divided(inverse_weight, Cs[k])
        square_norm = change_C(previous, inverse_C, alpha, g, square_norm)
        diagonal = diagonal_of(H, inverse_C)
        before, largest = largest, largest_value(diagonal)
        if k > 0:
            since_refresh = steps_at_new_C(since_refresh, before, largest)
        value_share = error_of_sums(value_error, largest, m / TERMS_IN_BLOCK, np.int64(0))
        steps[k] = clipped[k] = full_updates[k] = 0
        for _ in range(REFRESHES):
            # The rule must hold for the exact kernel, so the error of the entries is subtracted from ε.
            epsilon, lost = AIMED_SHARE * epsilons[k], n_shares * value_share / square_norm
            affordable = rules.stopping in (MN, VIOLATION) and lost < AFFORDABLE_SHARE * epsilon
            epsilon -= lost if affordable else 0.0
            left = limits[k] - steps[k]
            square_norm, taken, n_clipped, n_full, statuses[k] = descend(
                path_rules, H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, left, state
            )
            steps[k] += taken
            clipped[k] += n_clipped
            full_updates[k] += n_full
            since_refresh += taken
            drift = drift_of(since_refresh, largest)
            lost_more = n_shares * value_share / square_norm - lost
            if drift <= ALLOWED_DRIFT * epsilon * square_norm and (
                not affordable or lost_more <= ALLOWED_DRIFT * epsilon
            ):
                break
            square_norm = refresh(H, inverse_C, alpha, g)
            since_refresh = np.int64(0)
            if statuses[k] != CONVERGED and statuses[k] != UNRESOLVED:
                break
        square_norm = np.dot(alpha, g)
        if statuses[k] == NOT_POSITIVE:  # a small negative value may be rounding
            square_norm = refresh(H, inverse_C, alpha, g)
            if square_norm >= -NOISE_ROUNDINGS * np.finfo(H.dtype).eps * max(
                largest, -lowest_value(diagonal)
            ):
                statuses[k] = UNRESOLVED
        n_terms = rows_with_weight(alpha).size / TERMS_IN_BLOCK
        error, lowest_g = error_of_sums(value_error, largest, n_terms, since_refresh), lowest_value(g)
        gap = certified_gap(square_norm, lowest_g, error, total_size(alpha))
        outcomes.objectives[subproblem, k], outcomes.gaps[subproblem, k] = square_norm, gap
        outcomes.converged[subproblem, k] = rule_holds(
            rules.stopping, epsilons[k], square_norm, diagonal[0], lowest_g, error, gap
        )
        outcomes.costs[subproblem, k] = (1.0 + steps[k]) * step_cost(m)
        biases = outcomes.biases[subproblem, k]
        margin = square_norm if square_norm > 0.0 else 1.0  # without a margin, keep the hull's weights
        for i in range(m):
            weights[k, i] = alpha[i] / margin
        block_biases(class_start, alpha, g, square_norm, rules.average_bias, biases)
        for t in range(biases.size):
            biases[t] *= bias / margin
