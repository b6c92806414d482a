"""Choice of the exact method for one subproblem and an ascending path of C, and its solutions.

- The feature space without a Gram matrix, if its rank stays small.
- The samples near the margin, if the subproblem is large (`solvers.margin.newton`).
- The Gram block of the subproblem, if it fits the memory allowed.
- A working set that grows by the worst violators, and pair steps on kernel rows once it no longer fits.
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

# Smallest subproblem for the feature space, in rows. Below, a Gram block costs less than single columns.
FEATURE_ROWS = 500
# Largest number of features with which the kernel's rank is small enough to need no Gram matrix.
FEW_FEATURES = 4
# Largest numbers of features and rows of a large subproblem that is tried in feature space first.
SOME_FEATURES, SOME_ROWS = 16, 150_000
# Largest value of the first C for which feature space is tried. At a larger C few samples have weight, and
# the large path is faster.
SOME_C = 16.0
# Largest subproblem whose kernel block is computed by one thread, in rows.
SMALL_SUBPROBLEM = 2000
# Largest rank of a feature space that is faster than the Gram block, as a multiple of √m.
FEATURE_RANK = 4
# Largest rank of a feature space that is faster than the large path, as a multiple of √m.
LARGE_FEATURE_RANK = 3
# Size of the first working set, and smallest number of violators that are added to it, in samples.
FIRST_WORKING_SET = 500


def solve_subproblem(problem, C, Cs, tol, limits, memory, outcomes, start=None):
    """Train one subproblem for ascending C.

    Parameters
    ----------
    problem : solvers.problem.Problem
        The subproblem; its deadline is that of all C.
    C : float
        Penalty for which `problem.C` was computed. For another C, the penalties of all samples are multiplied
        by the ratio of the two.
    Cs : ndarray of shape (n_C,)
        Values of C, ascending.
    tol : float
        Bound on the certified gap.
    limits : int64 ndarray of shape (n_C,)
        Largest number of pair steps and Newton rounds together for each C.
    memory : float
        Memory that a Gram block may take, in bytes.
    outcomes : solvers.gram.outcomes.Outcomes
        Outcomes of one subproblem, all zero; receives the results of each C, except supports.
    start : ndarray of shape (m,), optional
        Weights to start from. By default the training starts cold.

    Returns
    -------
    Training
        The training with its solutions.
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
    # The feature space certifies by its residual, which is a bound only for a positive semidefinite kernel.
    if subproblem.kernel.is_positive and m >= FEATURE_ROWS and start is None and max_rank > 0:
        with one_blas_thread():
            solved, start = feature_path(training, max_rank)
        if solved < Cs.size:
            training.count_evaluations(solved)
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
    outcome.converged[:] = outcome.gaps <= tol
    return training


def _largest_rank(training, fits, is_large):
    """Return the largest rank of a feature space; 0 if the feature space is not tried.

    Parameters
    ----------
    training : Training
        Subproblem to train, with its values of C, limits and results.
    fits : bool
        Whether the Gram block fits the memory.
    is_large : bool
        Whether the large path is the alternative.

    Returns
    -------
    int
        The rank.
    """
    problem, m = training.problem, training.subproblem.size
    root, affordable = int(np.sqrt(m)), int(training.memory / (16.0 * m))
    if not is_large:
        return FEATURE_RANK * root if fits else affordable
    # The trial costs a few m² operations. The large path may not need them, and no deadline interrupts them.
    is_small = problem.X.shape[1] <= SOME_FEATURES and m <= SOME_ROWS and training.Cs[0] <= SOME_C
    return min(LARGE_FEATURE_RANK * root, affordable) if is_small and problem.deadline == np.inf else 0


def _is_large(problem, memory):
    """Return whether `large_newton_path` trains a subproblem.

    The rule is in the table in the documentation of the solvers.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits.
    memory : float
        Memory for the whole training, in bytes.

    Returns
    -------
    bool
        True for a large subproblem of two classes with a bias.
    """
    has_it = problem.class_start.size == 3 and problem.bias == 1.0
    return has_it and takes_large_path(problem, memory)


def _solve_on(H, training, k, tol, alpha, rows=slice(None)):
    """Call `block_path` for a slice of the Cs.

    Parameters
    ----------
    H : ndarray of shape (n, n)
        Block of some or all rows of the subproblem.
    training : Training
        Subproblem to train, with its values of C, limits and results.
    k : slice
        Positions in `training.Cs` of the penalties to solve for.
    tol : float
        Bound on the certified gap.
    alpha : ndarray of shape (n,)
        Weights to start from, changed in place.
    rows : ndarray or slice, default=slice(None)
        Rows of the subproblem that the block holds; all by default.

    Returns
    -------
    weights : ndarray of shape (n_C, n)
        Dual weights of the samples, scaled to a margin of 1.
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
    """Solve on the Gram block; with a deadline, read the clock between portions of the work.

    Parameters
    ----------
    training : Training
        Receives the solutions.
    H : ndarray of shape (m, m)
        Kernel values plus the bias constant, times the products of labels y_i·y_j.
    alpha : ndarray of shape (m,)
        Weights to start from, changed in place.
    first : int
        Index of the first C to solve.
    """
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
    """Solve on working sets: the support vectors and the worst violators among all rows, repeatedly.

    Parameters
    ----------
    training : Training
        Receives the solutions.
    alpha : ndarray of shape (m,)
        Weights to start from, changed in place.
    first : int
        Index of the first C to solve.
    """
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
    """Solve for one C on working sets that grow until no row violates its margin.

    Parameters
    ----------
    training : Training
        Receives the solution.
    k : int
        Index of the C.
    alpha : ndarray of shape (m,)
        Weights to start from, changed in place.
    largest : int
        Largest size of a working set, in samples.

    Returns
    -------
    bool
        False if a larger working set is needed.
    """
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
        if H is None:  # time is over: solve for a few samples only
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
    """Solve for one C without a block, by the pair steps of `MNSVC`.

    Parameters
    ----------
    training : Training
        Receives the solution.
    k : int
        Index of the C.
    alpha : ndarray of shape (m,)
        Weights to start from, changed in place.
    """
    subproblem, tol = training.subproblem, training.tol
    epsilon = 1.0 - (1.0 - 0.99 * tol) ** 0.25  # the rule g ≥ (1 − ε)² ‖c‖² then certifies the gap
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
    gap = solved.gap
    if not gap <= tol:  # or it is NaN; rounding errors of many steps add up in the gap of the rows
        gap = np.fmin(gap, _certificate(training, k, alpha)[2])
    status = _status_of(gap, tol, solved.status)
    training.record(k, weights, solved.objective, gap, solved.n_iter, PAIR_STEPS, status)


def _status_of(gap, tol, status):
    """Return the status of a subproblem by its gap over all samples.

    Parameters
    ----------
    gap : float
        Upper bound on the relative duality gap, certified in float64.
    tol : float
        Bound on the certified gap.
    status : int
        Status that the solver returned.

    Returns
    -------
    int
        One of the statuses of `solvers.common.status`.
    """
    if gap <= tol:
        return CONVERGED
    return status if status != CONVERGED else UNRESOLVED


def _certificate(training, k, alpha):
    """Compute ``g`` of all samples, ``||c||²`` and the certified gap of a point.

    Parameters
    ----------
    training : Training
        Subproblem to train, with its values of C, limits and results.
    k : int
        Index of the C.
    alpha : ndarray of shape (m,)
        Weights of the hull point.

    Returns
    -------
    g : ndarray of shape (m,) or None
        Inner products; None if the deadline passed first.
    square_norm : float
        ``||c||²``; NaN if the deadline passed first.
    gap : float
        Certified gap; 1 if the deadline passed first, which bounds every gap.
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
