"""One machine for an ascending path of C: which of the exact methods takes it, and what came out.

In feature space without a Gram matrix where the rank stays small; else on the samples near the margin where
it is large (`solvers.margin.newton`); on the machine's Gram block where that fits the memory allowed; or
on a working set that grows by the worst violators and, once that does not fit either, by pair steps on kernel
rows.
"""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from solvers.common.blas import one_blas_thread
from solvers.common.certificate import TERMS_IN_PRODUCT, certified_gap, error_of_sums
from solvers.common.status import CONVERGED, LIMIT, TIMEOUT, UNRESOLVED
from solvers.gram.outcomes import PAIR_STEPS, new_outcomes
from solvers.hull.descent import Rules
from solvers.hull.row_training import HullSolver, seconds_to_start
from solvers.margin.l1_path import takes_large_path
from solvers.margin.newton import large_newton_path
from solvers.newton.block_path import NewtonRules, block_path
from solvers.newton.feature_path import feature_path
from solvers.newton.training import BLOCK_VALUES, MIN_TIME, Subproblem, Training
from solvers.problem import Solution

# Below this many rows a Gram block costs less than asking for kernel columns one by one.
FEATURE_ROWS = 500
# With at most this many features the kernel's rank is small enough to do without a Gram matrix.
FEW_FEATURES = 4
# Up to this many it may be, so that large machines of up to so many rows are tried in feature space first.
SOME_FEATURES, SOME_ROWS = 16, 150_000
# At a larger C so few samples have weight that the large path is faster.
SOME_C = 16.0
# Up to this many rows a kernel block is not worth waking threads for.
SMALL_SUBPROBLEM = 2000
# A feature space of more than this many times √m dimensions is slower than the Gram block.
FEATURE_RANK = 4
# The same where the alternative is the large path.
LARGE_FEATURE_RANK = 3
FIRST_WORKING_SET = 500


def solve_subproblem(problem, C, Cs, tol, limits, memory, outcomes, start=None):
    """Train one machine for ascending C.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Its deadline is that of all C.
    C : float
        Which `problem.C` was made for: a sample with another penalty keeps its ratio to it.
    Cs : ndarray of shape (n_C,)
    tol : float
    limits : int64 ndarray of shape (n_C,)
        Of pair steps and Newton rounds together for each C.
    memory : float
        Bytes a Gram block may take.
    outcomes : solvers.gram.outcomes.Outcomes
        Of one machine, all zero: receives what is known of each solution, but for supports.
    start : ndarray of shape (m,), optional
        Weights to start from.

    Returns
    -------
    Training
    """
    subproblem = Subproblem(problem)
    m = subproblem.size
    inverse_weight = np.broadcast_to(C / problem.C, (m,)).astype(np.float64)
    outcome, weights = outcomes.of_subproblem(0), np.zeros((Cs.size, m))
    training = Training(problem, subproblem, inverse_weight, Cs, tol, limits, memory, outcome, weights)
    fits = 8.0 * m * m <= memory or subproblem.is_gram
    solved = 0
    is_large = _is_large(problem, memory)
    max_rank = _largest_rank(training, fits, is_large)
    # The feature space certifies by what its rank leaves out, which only bounds if it is not negative.
    if subproblem.kernel.is_positive and m >= FEATURE_ROWS and start is None and max_rank > 0:
        with one_blas_thread():
            solved, start = feature_path(training, max_rank)
    if is_large:
        large_newton_path(training, start, solved)
    elif solved < Cs.size:
        alpha = np.zeros(m) if start is None else start / start.sum()
        with one_blas_thread() if m <= SMALL_SUBPROBLEM else nullcontext():
            H = subproblem.whole(problem.deadline) if fits else None
            if H is not None:
                _on_block(training, H, alpha, solved)
            else:
                _on_working_set(training, alpha, solved)
    outcome.evaluations[:] = subproblem.evaluations
    outcome.converged[:] = outcome.gaps <= tol
    return training


def _largest_rank(training, fits, is_large):
    """Return the dimensions that a feature space may have; 0 where none is looked for."""
    problem, m = training.problem, training.subproblem.size
    root, affordable = int(np.sqrt(m)), int(training.memory / (16.0 * m))
    if not is_large:
        return FEATURE_RANK * root if fits else affordable
    # To look costs a few m² operations, which the large path may not need, and which no deadline divides.
    is_small = problem.X.shape[1] <= SOME_FEATURES and m <= SOME_ROWS and training.Cs[0] <= SOME_C
    return min(LARGE_FEATURE_RANK * root, affordable) if is_small and problem.deadline == np.inf else 0


def _is_large(problem, memory):
    """Whether a machine is trained by `large_newton_path`: the table in the documentation of the solvers."""
    has_it = problem.class_start.size == 3 and problem.bias == 1.0
    return has_it and takes_large_path(problem, memory)


def _solve_on(H, training, k, tol, alpha, rows=slice(None)):
    """Call `block_path` for a slice of the Cs from `alpha`, which is changed in place.

    Returns
    -------
    weights : ndarray of shape (n_C, m)
    outcome : solvers.gram.outcomes.Outcomes
        Arrays of shape (n_C,).
    """
    Cs, limits, cost = training.Cs[k], training.iterations_left()[k], training.affordable()
    rules = NewtonRules(tol, np.full(1, training.subproblem.kernel.error), cost, alpha)
    inverse_weight, class_start = training.inverse_weight[rows], training.problem.class_start
    weights = np.empty((Cs.size, alpha.size))
    outcomes = new_outcomes(1, Cs.size, 0)
    with one_blas_thread():
        block_path(rules, 0, H, class_start, inverse_weight, 1.0, Cs, limits, weights, outcomes)
    return weights, outcomes.of_subproblem(0)


def _on_block(training, H, alpha, first):
    """Solve on the Gram block; with a deadline, look at the clock between C and now and then."""
    n_C = training.Cs.size
    is_limited = training.problem.deadline < np.inf
    parts = [slice(k, k + 1) for k in range(first, n_C)] if is_limited else [slice(first, n_C)]
    for k in parts:
        is_stopped_early = True
        while is_stopped_early:
            weights, new = _solve_on(H, training, k, training.tol, alpha)
            training.record(k, weights, new.objectives, new.gaps, new.iterations, new.methods, new.statuses)
            is_stopped_early = new.statuses[0] == TIMEOUT and training.seconds_left() >= MIN_TIME


def _on_working_set(training, alpha, first):
    """Solve for the support vectors and the worst violators, look for new ones among all rows, repeat."""
    if not alpha.any():
        alpha[training.subproblem.class_start[:-1]] = 1.0 / training.subproblem.n_classes
    for k in range(first, training.Cs.size):
        largest = int(np.sqrt(training.memory / 8.0))
        if _grow_working_set(training, k, alpha, largest):
            continue
        if seconds_to_start(training.problem.X, training.subproblem.size, alpha) <= training.seconds_left():
            _on_kernel_rows(training, k, alpha)
        else:
            training.record(k, alpha, np.nan, 1.0, 0, 0, TIMEOUT)


def _grow_working_set(training, k, alpha, largest):
    """Solve for one C from `alpha`, which is changed in place; False if `largest` does not hold the set."""
    subproblem, deadline = training.subproblem, training.problem.deadline
    m = subproblem.size
    violators = np.linspace(0, m - 1, min(m, FIRST_WORKING_SET, max(2, largest // 2))).astype(np.int64)
    is_known = False
    while True:
        rows = np.union1d(np.flatnonzero(alpha), violators)
        if rows.size > largest:
            return False
        H = subproblem.symmetric_part(rows, deadline)
        if H is None and is_known:
            return True
        if H is None:  # no time: the best that can be had is the machine of a few samples
            alpha[:] = 0.0
            rows = violators
            H = subproblem.symmetric_part(rows, np.inf)
        part = alpha[rows]
        _, solved = _solve_on(H, training, slice(k, k + 1), 0.5 * training.tol, part, rows)
        iterations, methods, status = solved.iterations[0], solved.methods[0], solved.statuses[0]
        alpha[rows] = part
        is_known = True
        g, square_norm, gap = _certificate(training, k, alpha)
        if g is None:  # the gap of all samples is not known
            square_norm, status = solved.objectives[0], TIMEOUT
        else:
            status = _status_of(gap, training.tol, status)
        weights = alpha / square_norm if square_norm > 0.0 else alpha
        training.record(k, weights, square_norm, gap, iterations, methods, status)
        if g is None or gap <= training.tol or status == LIMIT:
            return True
        if training.seconds_left() < 0.0:
            training.outcome.statuses[k] = TIMEOUT
            return True
        count = max(FIRST_WORKING_SET, np.count_nonzero(alpha) // 2)
        violators = np.argsort(g)[:count]
        violators = violators[g[violators] < square_norm]
        if not np.setdiff1d(violators, rows).size and status != TIMEOUT:
            return True


def _on_kernel_rows(training, k, alpha):
    """Solve for one C from `alpha`, which is changed in place, without a block: by the steps of `MNSVC`."""
    subproblem, tol = training.subproblem, training.tol
    epsilon = 1.0 - (1.0 - 0.99 * tol) ** 0.25  # at which its rule, g ≥ (1 − ε)² ‖c‖², gives the gap
    support = np.flatnonzero(alpha)
    problem = replace(
        training.problem,
        C=training.Cs[k] / training.inverse_weight,
        max_iter=int(training.iterations_left()[k]),
        start=Solution(support, alpha[support], np.zeros(1), 0.0, 1.0, 0, 0, CONVERGED, True, ""),
    )
    solver = HullSolver(Rules(draws=subproblem.size), tol=epsilon, cache_bytes=training.memory, bias="none")
    solved = solver.solve(problem)
    subproblem.evaluations += solved.n_kernel_evals
    weights = np.zeros(subproblem.size)
    weights[solved.support] = solved.alpha
    alpha[:] = weights / weights.sum()
    gap = _certificate(training, k, alpha)[2] if np.isnan(solved.gap) else solved.gap
    status = _status_of(gap, tol, solved.status)
    training.record(k, weights, solved.objective, gap, solved.n_iter, PAIR_STEPS, status)


def _status_of(gap, tol, status):
    """Return the status of a machine by its gap over all samples; `status` is what its solver returned."""
    if gap <= tol:
        return CONVERGED
    return status if status != CONVERGED else UNRESOLVED


def _certificate(training, k, alpha):
    """Compute ``g`` of all samples, ``||c||²`` and the certified gap of a point.

    If the deadline passes before, ``g`` is None, ``||c||²`` is NaN, and the gap is 1: a bound of any.
    """
    subproblem, support = training.subproblem, np.flatnonzero(alpha)
    inverse_C = training.inverse_weight / training.Cs[k]
    g = inverse_C * alpha
    step = max(1, BLOCK_VALUES // support.size)
    for start in range(0, subproblem.size, step):
        if training.seconds_left() < 0.0:
            return None, np.nan, 1.0
        part = np.arange(start, min(start + step, subproblem.size))
        g[part] += subproblem.part(part, support) @ alpha[support]
    square_norm = float(alpha @ g)
    largest = (subproblem.diagonal() + inverse_C).max()
    error = error_of_sums(subproblem.kernel.error, largest, support.size / TERMS_IN_PRODUCT, 0)
    return g, square_norm, certified_gap(square_norm, g.min(), error, alpha.sum())
