"""One machine for an ascending path of C: which of the exact methods takes it, and what came out.

In feature space without a Gram matrix where the rank stays small; on the machine's Gram block where that fits
the memory allowed; else on a working set that grows by the worst violators, or, once that does not fit
either, by pair steps on kernel rows.
"""

import time
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from solvers.common.blas import one_blas_thread
from solvers.common.certificate import TERMS_IN_PRODUCT, certified_gap, error_of_sums
from solvers.common.limits import NO_LIMIT
from solvers.common.status import CONVERGED, LIMIT, STALLED, TIMEOUT
from solvers.gram.block_path import block_path
from solvers.gram.cut import cut_block, require_block_memory
from solvers.gram.feature_path import feature_path
from solvers.gram.outcomes import LOW_RANK, PAIR_STEPS, new_outcomes
from solvers.hull.descent import Rules
from solvers.hull.machine import HullSolver
from solvers.kernels.functions import GRAM, kernel_block, kernel_diagonal
from solvers.problem import Problem, Solution

# Below this many rows a Gram block costs less than asking for kernel columns one by one.
FEATURE_ROWS = 500
# Up to this many rows a kernel block is not worth waking threads for.
SMALL_MACHINE = 2000
# A feature space of more than this many times √m dimensions is slower than the Gram block.
FEATURE_RANK = 4
# Share of the time that is left which the next portion of work may take by its cost in nanoseconds: a core
# may be slower than the one the costs were measured on.
SHARE_OF_TIME = 0.25
LEAST_TIME = 1e-3
FIRST_WORKING_SET = 500
BLOCK_VALUES = 1 << 22


@dataclass
class MachinePath:
    """Solutions of one machine for every C.

    Attributes
    ----------
    weights : ndarray of shape (n_C, m)
        ``α / ||c||² >= 0``.
    square_norms, gaps : ndarrays of shape (n_C,)
    iterations, methods : int ndarrays of shape (n_C,)
        Pair steps and Newton rounds; the bits of `solvers.gram.outcomes.METHOD_NAMES`.
    statuses : int ndarray of shape (n_C,)
        Of those of `solvers.hull.state`.
    evaluations : int
        Kernel values computed (or read) in all.
    pivots : ndarray of shape (r,)
    coefficients : ndarray of shape (n_compact, r)
        The same machines on r pivots; only for the C that were solved in feature space.
    """

    weights: np.ndarray
    square_norms: np.ndarray
    gaps: np.ndarray
    iterations: np.ndarray
    methods: np.ndarray
    statuses: np.ndarray
    evaluations: int
    pivots: np.ndarray
    coefficients: np.ndarray


class Machine:
    """The kernel of one machine in portions, ``H_ij = (y_i·y_j)(k(x_i, x_j) + bias)``.

    Parameters
    ----------
    problem : solvers.estimators.base.Problem
    """

    def __init__(self, problem):
        self.kernel = problem.kernel
        self.bias = problem.bias
        self.class_start = problem.class_start
        self.rows = problem.rows
        self.n_classes = self.class_start.size - 1
        self.label = np.repeat(np.arange(self.n_classes), np.diff(self.class_start))
        self.opposite = -1.0 / (self.n_classes - 1)
        self.X = problem.X if self.kernel.kind == GRAM else problem.X[problem.rows]
        self.evaluations = 0

    @property
    def size(self):
        """Number of samples."""
        return self.rows.size

    def diagonal(self):
        """Diagonal of ``H``."""
        values = kernel_diagonal(self.X, self.kernel)
        return (values[self.rows] if self.kernel.kind == GRAM else values) + self.bias

    def block(self, deadline):
        """Evaluate the whole of ``H`` in float64, or None if the deadline passes before."""
        if self.kernel.kind != GRAM:
            return self.symmetric_part(np.arange(self.size), deadline)
        m = self.size
        self.evaluations += m * m
        group = np.arange(self.n_classes)
        require_block_memory(self.class_start, group[None, :], 8)
        H = np.empty((m, m))
        cut_block(self.X, self.rows, False, self.class_start, group, self.opposite, self.bias, H)
        return H

    def symmetric_part(self, some, deadline):
        """``H[some, some]`` in float64, or None if the deadline passes before."""
        H = np.empty((some.size, some.size))
        step = max(1, BLOCK_VALUES // some.size)
        for start in range(0, some.size, step):
            if time.monotonic() > deadline:
                return None
            H[start : start + step] = self.part(some[start : start + step], some)
        return H

    def part(self, some, others):
        """``H[some, others]`` in float64."""
        self.evaluations += some.size * others.size
        if self.kernel.kind == GRAM:
            values = self.X[np.ix_(self.rows[some], self.rows[others])].astype(np.float64)
        else:
            values = kernel_block(self.X[some], self.X[others], self.kernel)
        values += self.bias
        values *= np.where(self.label[some][:, None] == self.label[others], 1.0, self.opposite)
        return values

    def column(self, p):
        """``H[:, p]``."""
        return self.part(np.arange(p, p + 1), np.arange(self.size))[0]


@dataclass
class Training:
    """What it takes to train a machine, and what has come of it."""

    problem: Problem
    machine: Machine
    inverse_weight: np.ndarray  # (m,)
    Cs: np.ndarray
    tol: float
    limits: np.ndarray  # (n_C,) int64: pair steps and Newton rounds for each C
    memory: float  # bytes that a Gram block may take
    outcome: MachinePath

    def seconds_left(self):
        """Time until the deadline; infinite without one."""
        return self.problem.deadline - time.monotonic()

    def affordable(self):
        """Cost of the next portion of work, see `solvers.gram.block.step_cost`."""
        return 1e9 * SHARE_OF_TIME * max(self.seconds_left(), LEAST_TIME)

    def iterations_left(self):
        """Return how many iterations are left for each C."""
        return np.maximum(0, self.limits - self.outcome.iterations)

    def record(self, k, weights, square_norm, gap, iterations, methods, status):
        """Note the solution for a C; iterations and methods add up."""
        outcome = self.outcome
        outcome.weights[k], outcome.square_norms[k], outcome.gaps[k] = weights, square_norm, gap
        outcome.iterations[k] += iterations
        outcome.methods[k] |= methods
        outcome.statuses[k] = status


def solve_machine(problem, C, Cs, tol, *, max_iter=NO_LIMIT, memory=1e9, start=None):
    """Train one machine for ascending C.

    Parameters
    ----------
    problem : solvers.estimators.base.Problem
        Its deadline is that of all C.
    C : float
        Which `problem.C` was made for: a sample with another penalty keeps its ratio to it.
    Cs : ndarray of shape (n_C,)
    tol : float
    max_iter : int or int ndarray of shape (n_C,)
        Pair steps and Newton rounds for each C.
    memory : float
        Bytes a Gram block may take.
    start : ndarray of shape (m,), optional
        Weights to start from.

    Returns
    -------
    MachinePath
    """
    machine = Machine(problem)
    m = machine.size
    training = Training(
        problem=problem,
        machine=machine,
        inverse_weight=np.broadcast_to(C / problem.C, (m,)).astype(np.float64),
        Cs=Cs,
        tol=tol,
        limits=np.broadcast_to(np.asarray(max_iter, dtype=np.int64), Cs.shape),
        memory=memory,
        outcome=_empty_path(Cs.size, m),
    )
    fits = 8.0 * m * m <= memory or machine.kernel.kind == GRAM
    solved = 0
    # The feature space certifies by what its rank leaves out, which only bounds if it is not negative.
    if machine.kernel.is_positive and m >= FEATURE_ROWS and start is None:
        max_rank = FEATURE_RANK * int(np.sqrt(m)) if fits else int(memory / (16.0 * m))
        solved, start = _in_feature_space(training, max_rank)
    if solved < Cs.size:
        alpha = np.zeros(m) if start is None else start / start.sum()
        with one_blas_thread() if m <= SMALL_MACHINE else nullcontext():
            H = machine.block(problem.deadline) if fits else None
            if H is not None:
                _on_block(training, H, alpha, solved)
            else:
                _on_working_set(training, alpha, solved)
    training.outcome.evaluations += machine.evaluations
    return training.outcome


def _empty_path(n_C, m):
    return MachinePath(
        weights=np.zeros((n_C, m)),
        square_norms=np.zeros(n_C),
        gaps=np.ones(n_C),
        iterations=np.zeros(n_C, dtype=np.int64),
        methods=np.zeros(n_C, dtype=np.int64),
        statuses=np.zeros(n_C, dtype=np.int64),
        evaluations=0,
        pivots=np.empty(0, dtype=np.int64),
        coefficients=np.empty((0, 0)),
    )


def _in_feature_space(training, max_rank):
    """Fill in what can be solved without a Gram matrix.

    Returns
    -------
    solved : int
        For how many C.
    start : ndarray of shape (m,) or None
        Weights for the others to start from.
    """
    machine, outcome = training.machine, training.outcome
    limit = int(training.limits.min())
    with one_blas_thread():
        path = feature_path(
            machine.column,
            machine.diagonal(),
            training.inverse_weight,
            training.Cs,
            training.tol,
            machine.kernel.error,
            max_rank,
            limit,
            training.problem.deadline,
        )
    solved = len(path.gaps)
    outcome.weights[:solved] = path.weights
    outcome.square_norms[:solved] = path.square_norms
    outcome.gaps[:solved] = path.gaps
    outcome.iterations[:solved] = path.rounds
    outcome.methods[:solved] = LOW_RANK
    outcome.pivots = path.pivots
    outcome.coefficients = path.coefficients
    start = outcome.weights[solved - 1] if solved else None
    if solved < training.Cs.size:
        outcome.iterations[solved] = path.rounds_in_vain
        was_cut_short = training.seconds_left() < 0.0 or path.rounds_in_vain >= limit
        if was_cut_short and path.last.any():
            start = path.last
    return solved, start


def _solve_on(H, inverse_weight, Cs, tol, value_error, limits, max_cost, alpha):
    """Call `block_path` from `alpha`, which is changed in place.

    Returns
    -------
    weights : ndarray of shape (n_C, m)
    square_norms, gaps : ndarrays of shape (n_C,)
    iterations, methods, statuses : int ndarrays of shape (n_C,)
    """
    weights = np.empty((Cs.size, alpha.size))
    outcomes = new_outcomes(1, Cs.size, 0)
    with one_blas_thread():
        block_path(H, inverse_weight, Cs, tol, value_error, limits, max_cost, alpha, weights, outcomes, 0)
    found = (outcomes.square_norms, outcomes.gaps, outcomes.iterations, outcomes.methods, outcomes.statuses)
    return weights, *(values[0] for values in found)


def _on_block(training, H, alpha, first):
    """Solve on the Gram block; with a deadline, look at the clock between C and now and then."""
    Cs, inverse_weight, tol = training.Cs, training.inverse_weight, training.tol
    error = training.machine.kernel.error
    if training.problem.deadline == np.inf:
        left = training.iterations_left()[first:]
        solved = _solve_on(H, inverse_weight, Cs[first:], tol, error, left, np.inf, alpha)
        for k, values in enumerate(zip(*solved, strict=True), start=first):
            training.record(k, *values)
        return
    for k in range(first, Cs.size):
        while True:
            left = training.iterations_left()[k : k + 1]
            solved = _solve_on(
                H, inverse_weight, Cs[k : k + 1], tol, error, left, training.affordable(), alpha
            )
            training.record(k, *(values[0] for values in solved))
            if training.outcome.statuses[k] != TIMEOUT or training.seconds_left() < LEAST_TIME:
                break


def _on_working_set(training, alpha, first):
    """Solve for the support vectors and the worst violators, look for new ones among all rows, repeat."""
    if not alpha.any():
        alpha[training.machine.class_start[:-1]] = 1.0 / training.machine.n_classes
    for k in range(first, training.Cs.size):
        largest = int(np.sqrt(training.memory / 8.0))
        if not _grow_working_set(training, k, alpha, largest):
            _on_kernel_rows(training, k, alpha)


def _grow_working_set(training, k, alpha, largest):
    """Solve for one C from `alpha`, which is changed in place; False if `largest` does not hold the set."""
    machine, deadline = training.machine, training.problem.deadline
    m = machine.size
    C, inverse_C = training.Cs[k : k + 1], training.inverse_weight / training.Cs[k]
    violators = np.linspace(0, m - 1, min(m, FIRST_WORKING_SET, max(2, largest // 2))).astype(np.int64)
    is_known = False
    while True:
        rows = np.union1d(np.flatnonzero(alpha), violators)
        if rows.size > largest:
            return False
        H = machine.symmetric_part(rows, deadline)
        if H is None and is_known:
            return True
        if H is None:  # no time: the best that can be had is the machine of a few samples
            alpha[:] = 0.0
            rows = violators
            H = machine.symmetric_part(rows, np.inf)
        part = alpha[rows]
        cost = np.inf if deadline == np.inf else training.affordable()
        left = training.iterations_left()[k : k + 1]
        _, square_norms, _, iterations, methods, statuses = _solve_on(
            H, training.inverse_weight[rows], C, 0.5 * training.tol, machine.kernel.error, left, cost, part
        )
        alpha[rows] = part
        is_known = True
        products = _products(machine, alpha, deadline)
        if products is None:  # the gap of all samples is not known: 1 is a bound of any
            weights = alpha / square_norms[0] if square_norms[0] > 0.0 else alpha
            training.record(k, weights, square_norms[0], 1.0, iterations[0], methods[0], TIMEOUT)
            return True
        g = products + inverse_C * alpha
        square_norm = float(alpha @ g)
        gap = _gap_of(machine, inverse_C, alpha, g)
        weights = alpha / square_norm if square_norm > 0.0 else alpha
        status = CONVERGED if gap <= training.tol else statuses[0] if statuses[0] != CONVERGED else STALLED
        training.record(k, weights, square_norm, gap, iterations[0], methods[0], status)
        if gap <= training.tol or status == LIMIT:
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
    outcome, machine, tol = training.outcome, training.machine, training.tol
    epsilon = 1.0 - (1.0 - 0.99 * tol) ** 0.25  # at which its rule, g ≥ (1 − ε)² ‖c‖², gives the gap
    support = np.flatnonzero(alpha)
    problem = replace(
        training.problem,
        C=training.Cs[k] / training.inverse_weight,
        max_iter=int(training.iterations_left()[k]),
        start=Solution(support, alpha[support], np.zeros(1), 0.0, 1.0, 0, 0, CONVERGED, True, ""),
    )
    solver = HullSolver(Rules(draws=machine.size), tol=epsilon, cache_bytes=training.memory, bias="none")
    solved = solver.solve(problem)
    outcome.evaluations += solved.n_kernel_evals
    weights = np.zeros(machine.size)
    weights[solved.support] = solved.alpha
    alpha[:] = weights / weights.sum()
    gap = solved.gap
    if np.isnan(gap):
        products = _products(machine, alpha, training.problem.deadline)
        inverse_C = training.inverse_weight / training.Cs[k]
        gap = 1.0 if products is None else _gap_of(machine, inverse_C, alpha, products + inverse_C * alpha)
    status = CONVERGED if gap <= tol else solved.status if solved.status != CONVERGED else STALLED
    training.record(k, weights, solved.objective, gap, solved.n_iter, PAIR_STEPS, status)


def _gap_of(machine, inverse_C, alpha, g):
    """Certified gap over all samples of a point whose ``g`` is from `_products`."""
    largest = (machine.diagonal() + inverse_C).max()
    error = error_of_sums(machine.kernel.error, largest, np.count_nonzero(alpha) / TERMS_IN_PRODUCT, 0)
    return certified_gap(float(alpha @ g), g.min(), error)


def _products(machine, alpha, deadline):
    """``Hα``, block by block; None if the deadline passes before."""
    support = np.flatnonzero(alpha)
    weights = alpha[support]
    step = max(1, BLOCK_VALUES // support.size)
    everyone = np.arange(machine.size)
    products = np.empty(machine.size)
    for start in range(0, machine.size, step):
        if time.monotonic() > deadline:
            return None
        part = everyone[start : start + step]
        products[part] = machine.part(part, support) @ weights
    return products
