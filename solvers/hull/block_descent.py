"""Algorithms 3 and 4 on one dense block of the hull problem, for one C after the other.

The iteration is that of `solvers.hull.descent.descend`, which reads its state from a named tuple: numba
counts references to all of its arrays at every step, which would take as long as a step takes here. Here
every kernel value is at hand and g is kept for every sample in float64, so that a draw is a look-up, and
a step is two passes over the block's columns in loops that LLVM vectorises
(`solvers.common.pair_selection` says how). When C changes, g changes by the diagonal alone.
"""

from typing import NamedTuple

import numpy as np

from solvers.common.certificate import (
    AFFORDABLE_SHARE,
    AIMED_SHARE,
    TERMS_IN_BLOCK,
    certified_gap,
    drift_of,
    error_of_sums,
    steps_at_new_C,
)
from solvers.common.compile import implement, inlined, inner
from solvers.common.pair_selection import (
    MDM,
    TINY,
    best_partner,
    shift_and_argmin_of_support,
    shift_and_ends_of_support,
)
from solvers.common.progress import DRAWS_PER_STEP, first_look, has_no_end, resolution
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
from solvers.hull.descent import Rules
from solvers.hull.draws import draw_first, find_tracked
from solvers.hull.steps import step_length
from solvers.hull.stopping import MN, NOISE_ROUNDINGS, VIOLATION, rule_holds, search_threshold

REFRESHES = 3  # of g from the kernel, when rounding has moved it
STEPS_WITHOUT_PROGRESS = 1000  # that leave ||c||² as it was: rounding ended the progress
ALLOWED_DRIFT = 0.001  # of g that is let pass, as a share of ε ||c||²
# After so many steps a sample, those outside this margin are left out, if less than this share remains.
STEPS_BEFORE_SHRINKING = 3
SHRINK_BELOW = 0.9
SHRINKINGS = 4


@inner
def descend_block(
    H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, rules, max_iter, state
):
    """Algorithms 3, 4 and 5 from a hull point, as in `solvers.hull.descent.descend`.

    Where u is the support vector with the largest g, whatever v is (mdm), the update of g finds it.

    Parameters
    ----------
    H : array (m, m), float32 or float64, C-contiguous
        ``(y_i·y_j)(k(x_i, x_j) + bias)``.
    diagonal : array (m,)
        Diagonal of ``H`` plus 1/C.
    inverse_C : array (m,)
    class_start : int64 array (classes + 1,)
        Where each class starts among the m samples.
    alpha, g : arrays (m,), float64, changed in place
    square_norm : float
    epsilon : float
    rules : Rules
    max_iter : int
        What is left of its limit.
    state : uint64 array (1,)
        Of the random numbers.

    Returns
    -------
    square_norm : float
    steps, clipped : int
        How many were taken, and how many of them the weight of u cut short.
    status : int
        Of those of `solvers.common.status`.
    """
    is_mdm = rules.pair == MDM
    lowest, highest = shift_and_ends_of_support(g, alpha, H[0], H[0], 0.0)
    current = max(epsilon, rules.first_epsilon)
    steps, clipped, looked_at, last = 0, 0, 0, np.inf
    look, resolved, drawn = first_look(g.size), resolution(largest_value(diagonal)), 0
    while steps < max_iter:
        if square_norm <= 0.0:
            return square_norm, steps, clipped, NOT_POSITIVE
        if not square_norm < np.inf:  # it would never end
            return square_norm, steps, clipped, UNRESOLVED
        if steps - looked_at > STEPS_WITHOUT_PROGRESS:
            if abs(square_norm - last) < 1e-15 * last:
                return square_norm, steps, clipped, UNRESOLVED
            looked_at, last = steps, square_norm
            n_done = steps + (0 if rules.exhaustive else drawn // DRAWS_PER_STEP)
            if n_done >= look[0]:
                allowed = square_norm - search_threshold(
                    rules.stopping, epsilon, square_norm, diagonal[0], resolved
                )
                if has_no_end(look, n_done, square_norm, square_norm - lowest_value(g), allowed, g.size):
                    return square_norm, steps, clipped, STALLED
                look = (np.int64(2 * n_done), square_norm, look[1] - square_norm)

        threshold = search_threshold(rules.stopping, current, square_norm, diagonal[0], resolved)
        v, failed = find_tracked(g, threshold, rules, state, class_start)
        drawn += failed
        if v < 0:
            v = lowest
            if g[v] >= threshold or not rules.exhaustive:
                if current <= epsilon:
                    return square_norm, steps, clipped, CONVERGED
                current = max(epsilon, 0.5 * current)
                continue

        before = steps
        for _ in range(min(1 + failed // rules.draws_per_tuning, max_iter - steps)):
            if is_mdm:
                u = highest if g[highest] > g[v] else -1
            else:
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
                lowest, highest = shift_and_ends_of_support(g, alpha, H[v], H[u], beta)
            else:
                lowest = shift_and_argmin_of_support(g, alpha, H[v], H[u], beta)
            steps += 1
            v = lowest
            if g[v] >= threshold:
                break
        if steps == before:  # no sample lies behind a violator: rounding ended the progress
            return square_norm, steps, clipped, UNRESOLVED
    return square_norm, steps, clipped, LIMIT


class MinimalNormRules(NamedTuple):
    """What the blocks of a path are solved by."""

    rules: Rules
    epsilons: np.ndarray  # (n_subproblems, n_C)
    seeds: np.ndarray  # (n_subproblems,) uint64
    value_errors: np.ndarray  # (n_subproblems,): bounds on the errors of the entries of their blocks


def descend(path_rules, H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, max_iter, state):
    """Move a point of the hull until no sample violates the ε-approximation, by the algorithm of the rules.

    Parameters
    ----------
    path_rules : MinimalNormRules
    H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, max_iter, state
        As in `descend_block`, which says what is returned, too.
    """
    raise NotImplementedError


@inlined
def starts_among(rows, class_start):
    """Return where each class starts among some rows, ascending; fewer places if a class has none of them."""
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
    """`descend_block`; where it takes long, on samples with weight or next to the margin first, then on all.

    A search that ends with its draws has to draw from all of them. Parameters and result: as of `descend`.
    """
    rules = path_rules.rules
    m = g.size
    steps = clipped = 0
    for _ in range(SHRINKINGS if rules.exhaustive else 0):
        left = min(max_iter - steps, STEPS_BEFORE_SHRINKING * m)
        square_norm, taken, n_clipped, status = descend_block(
            H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, rules, left, state
        )
        steps, clipped = steps + taken, clipped + n_clipped
        if status != LIMIT or steps >= max_iter:
            return square_norm, steps, clipped, status
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
        )
        steps, clipped = steps + taken, clipped + n_clipped
        write_values(part_alpha, rows, alpha)
        square_norm = refresh(H, inverse_C, alpha, g)
    square_norm, taken, n_clipped, status = descend_block(
        H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, rules, max_iter - steps, state
    )
    return square_norm, steps + taken, clipped + n_clipped, status


@inlined
def block_biases(class_start, alpha, g, square_norm, average, biases):
    """Write y_t·b of every class t to `biases`, as `solvers.hull.bias.class_biases` does, before scaling."""
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
    """Solve one block for every C, the first from random samples, each other from the solution before it.

    Parameters are those of `solvers.gram.subproblems.solve_path`.
    """
    rules, value_error = path_rules.rules, path_rules.value_errors[subproblem]
    epsilons, state = path_rules.epsilons[subproblem], np.empty(1, np.uint64)
    state[0] = path_rules.seeds[subproblem]
    steps, statuses = outcomes.iterations[subproblem], outcomes.statuses[subproblem]
    clipped = outcomes.clipped[subproblem]
    m = H.shape[0]
    alpha, g = np.zeros(m), np.empty(m)
    first = draw_first(state, class_start, rules.first_samples)
    for a in range(first.size):
        alpha[first[a]] = 1.0 / first.size
    inverse_C = divided(inverse_weight, Cs[0])
    square_norm = refresh(H, inverse_C, alpha, g)
    since_refresh, largest = np.int64(0), 0.0
    n_shares = 2.0 if rules.stopping == VIOLATION else 1.0  # for g and ||c||²; (1 − ε)² has room for both
    for k in range(Cs.size):
        previous, inverse_C = inverse_C, divided(inverse_weight, Cs[k])
        square_norm = change_C(previous, inverse_C, alpha, g, square_norm)
        diagonal = diagonal_of(H, inverse_C)
        before, largest = largest, largest_value(diagonal)
        if k > 0:
            since_refresh = steps_at_new_C(since_refresh, before, largest)
        value_share = error_of_sums(value_error, largest, m / TERMS_IN_BLOCK, np.int64(0))
        steps[k] = clipped[k] = 0
        for _ in range(REFRESHES):
            # The rule is to hold for the kernel itself: what the entries are off by comes out of ε.
            epsilon, lost = AIMED_SHARE * epsilons[k], n_shares * value_share / square_norm
            affordable = rules.stopping in (MN, VIOLATION) and lost < AFFORDABLE_SHARE * epsilon
            epsilon -= lost if affordable else 0.0
            left = limits[k] - steps[k]
            square_norm, taken, n_clipped, statuses[k] = descend(
                path_rules, H, diagonal, inverse_C, class_start, alpha, g, square_norm, epsilon, left, state
            )
            steps[k] += taken
            clipped[k] += n_clipped
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
        if statuses[k] == NOT_POSITIVE:  # or is that rounding?
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
        margin = square_norm if square_norm > 0.0 else 1.0  # no margin: the weights stay those of the hull
        for i in range(m):
            weights[k, i] = alpha[i] / margin
        block_biases(class_start, alpha, g, square_norm, rules.average_bias, biases)
        for t in range(biases.size):
            biases[t] *= bias / margin
