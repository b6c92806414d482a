"""One machine for an ascending path of C: which of the exact methods takes it, and what came out.

In feature space without a Gram matrix where the rank stays small; on the machine's Gram block where that fits
the memory allowed; else on a working set that grows by the worst violators.
"""

import time
from dataclasses import dataclass

import numpy as np

from solvers.blas import one_blas_thread
from solvers.block_path import LOW_RANK, block_path
from solvers.certificate import TERMS_IN_PRODUCT, certified_gap, error_of_sums
from solvers.feature_path import feature_path
from solvers.kernels import GRAM, kernel_block, kernel_diagonal
from solvers.newton_gram import MAX_STEPS
from solvers.path_blocks import cut_block

# Below this many rows a Gram block costs less than asking for kernel columns one by one.
FEATURE_ROWS = 500
# A feature space of more than this many times √m dimensions is slower than the Gram block.
FEATURE_RANK = 4
# Work between two looks at the clock, in row operations of pair steps: some 0.1 s.
STEPS_BETWEEN_LOOKS = 3e8
FIRST_WORKING_SET = 500
BLOCK_VALUES = 1 << 22


@dataclass
class MachinePath:
    """Solutions of one machine for every C.

    Attributes
    ----------
    weights : ndarray of shape (n_C, m)
        ``α / ||c||² >= 0``.
    norm2s, gaps : ndarrays of shape (n_C,)
    iterations, methods : int ndarrays of shape (n_C,)
        Pair steps and Newton rounds; the bits of `block_path.METHOD_NAMES`.
    evaluations : int
        Kernel values computed (or read) in all.
    pivots : ndarray of shape (r,)
    coefficients : ndarray of shape (n_compact, r)
        The same machines on r pivots; only for the C that were solved in feature space.
    """

    weights: np.ndarray
    norm2s: np.ndarray
    gaps: np.ndarray
    iterations: np.ndarray
    methods: np.ndarray
    evaluations: int
    pivots: np.ndarray
    coefficients: np.ndarray


class Machine:
    """The kernel of one machine in portions, ``H_ij = (y_i·y_j)(k(x_i, x_j) + bias)``.

    Parameters
    ----------
    problem : solvers.base.Problem
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

    def block(self):
        """Evaluate the whole of ``H`` in float64."""
        m = self.size
        self.evaluations += m * m
        group = np.arange(self.n_classes)
        if self.kernel.kind == GRAM:
            H = np.empty((m, m))
            cut_block(self.X, self.rows, False, self.class_start, group, self.opposite, self.bias, H)
            return H
        H = kernel_block(self.X, self.X, self.kernel)
        cut_block(H, np.arange(m, dtype=np.int32), True, self.class_start, group, self.opposite, self.bias, H)
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


def solve_machine(problem, C, Cs, tol, *, max_steps=MAX_STEPS, memory=1e9, start=None):
    """Train one machine for ascending C.

    Parameters
    ----------
    problem : solvers.base.Problem
    C : float
        Which `problem.C` was made for: a sample with another penalty keeps its ratio to it.
    Cs : ndarray of shape (n_C,)
    tol : float
    max_steps : int
        Pair steps for each C.
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
    unit_ridge = np.broadcast_to(C / problem.C, (m,)).astype(np.float64)
    fits = 8.0 * m * m <= memory or machine.kernel.kind == GRAM
    outcome = _empty_path(Cs.size, m)
    solved = 0
    if machine.kernel.kind != GRAM and m >= FEATURE_ROWS and start is None:
        max_rank = FEATURE_RANK * int(np.sqrt(m)) if fits else int(memory / (16.0 * m))
        solved = _in_feature_space(machine, unit_ridge, Cs, tol, max_rank, outcome)
        if solved:
            start = outcome.weights[solved - 1]
    if solved < Cs.size:
        on_block = _on_block if fits else _on_working_set
        rest = slice(solved, Cs.size)
        on_block(machine, unit_ridge, Cs, tol, max_steps, memory, start, problem.deadline, outcome, rest)
    outcome.evaluations = machine.evaluations
    return outcome


def _empty_path(n_C, m):
    return MachinePath(
        weights=np.zeros((n_C, m)),
        norm2s=np.zeros(n_C),
        gaps=np.ones(n_C),
        iterations=np.zeros(n_C, dtype=np.int64),
        methods=np.zeros(n_C, dtype=np.int64),
        evaluations=0,
        pivots=np.empty(0, dtype=np.int64),
        coefficients=np.empty((0, 0)),
    )


def _in_feature_space(machine, unit_ridge, Cs, tol, max_rank, outcome):
    """Fill in what can be solved without a Gram matrix; return for how many C."""
    with one_blas_thread():
        path = feature_path(
            machine.column, machine.diagonal(), unit_ridge, Cs, tol, machine.kernel.error, max_rank
        )
    solved = len(path.gaps)
    outcome.weights[:solved] = path.weights
    outcome.norm2s[:solved] = path.norm2s
    outcome.gaps[:solved] = path.gaps
    outcome.iterations[:solved] = path.rounds
    outcome.methods[:solved] = LOW_RANK
    outcome.pivots = path.pivots
    outcome.coefficients = path.coefficients
    return solved


def _solve_on(H, unit_ridge, Cs, tol, value_error, max_steps, alpha):
    """Call `block_path` from `alpha`, which is changed in place.

    Returns
    -------
    weights : ndarray of shape (n_C, m)
    norm2s, gaps : ndarrays of shape (n_C,)
    steps, rounds, methods : int ndarrays of shape (n_C,)
    """
    n_C = Cs.size
    weights = np.empty((n_C, alpha.size))
    norm2s, gaps, costs = (np.empty(n_C) for _ in range(3))
    steps, rounds, methods = (np.empty(n_C, dtype=np.int64) for _ in range(3))
    lowrank = not alpha.any()
    with one_blas_thread():
        block_path(
            H,
            unit_ridge,
            Cs,
            tol,
            value_error,
            max_steps,
            lowrank,
            alpha,
            weights,
            norm2s,
            gaps,
            steps,
            rounds,
            costs,
            methods,
        )
    return weights, norm2s, gaps, steps, rounds, methods


def _on_block(machine, unit_ridge, Cs, tol, max_steps, memory, start, deadline, outcome, which):
    """Solve on the Gram block; with a deadline, look at the clock between C and now and then."""
    H = machine.block()
    alpha = np.zeros(machine.size) if start is None else start / start.sum()
    if deadline == np.inf:
        weights, norm2s, gaps, steps, rounds, methods = _solve_on(
            H, unit_ridge, Cs[which], tol, machine.kernel.error, max_steps, alpha
        )
        outcome.weights[which], outcome.norm2s[which], outcome.gaps[which] = weights, norm2s, gaps
        outcome.iterations[which], outcome.methods[which] = steps + rounds, methods
        return
    chunk = max(1000, int(STEPS_BETWEEN_LOOKS / machine.size))
    for k in range(Cs.size)[which]:
        taken = 0
        while True:
            allowed = min(chunk, max_steps - taken)
            weights, norm2, gap, steps, rounds, methods = _solve_on(
                H, unit_ridge, Cs[k : k + 1], tol, machine.kernel.error, allowed, alpha
            )
            _record(outcome, k, weights[0], norm2[0], gap[0], steps[0] + rounds[0], methods[0])
            taken += int(steps[0])
            if gap[0] <= tol or steps[0] < chunk or taken >= max_steps or time.monotonic() > deadline:
                break


def _record(outcome, k, weights, norm2, gap, iterations, methods):
    outcome.weights[k] = weights
    outcome.norm2s[k], outcome.gaps[k] = norm2, gap
    outcome.iterations[k] += iterations
    outcome.methods[k] |= methods


def _on_working_set(machine, unit_ridge, Cs, tol, max_steps, memory, start, deadline, outcome, which):
    """Solve for the support vectors and the worst violators, look for new ones among all rows, repeat."""
    m = machine.size
    largest = int(np.sqrt(memory / 8.0))
    alpha = np.zeros(m) if start is None else start / start.sum()
    if not alpha.any():
        alpha[machine.class_start[:-1]] = 1.0 / machine.n_classes
    for k in range(Cs.size)[which]:
        ridge = unit_ridge / Cs[k]
        violators = np.linspace(0, m - 1, min(m, FIRST_WORKING_SET)).astype(np.int64)
        while True:
            rows = np.union1d(np.flatnonzero(alpha), violators)
            if rows.size > largest:
                raise MemoryError(
                    f"a machine of {m} samples needs a Gram block of {rows.size} rows, and "
                    f"cache_size allows {largest}: raise cache_size, or use MNSVC"
                )
            part = alpha[rows]
            *_, steps, rounds, methods = _solve_on(
                machine.part(rows, rows),
                unit_ridge[rows],
                Cs[k : k + 1],
                0.5 * tol,
                machine.kernel.error,
                max_steps,
                part,
            )
            alpha[rows] = part
            g = _products(machine, alpha) + ridge * alpha
            norm2 = float(alpha @ g)
            error = error_of_sums(
                machine.kernel.error,
                (machine.diagonal() + ridge).max(),
                np.count_nonzero(alpha) / TERMS_IN_PRODUCT,
                0,
            )
            gap = certified_gap(norm2, g.min(), error)
            weights = alpha / norm2 if norm2 > 0.0 else alpha
            _record(outcome, k, weights, norm2, gap, steps[0] + rounds[0], methods[0])
            if gap <= tol or time.monotonic() > deadline or outcome.iterations[k] >= max_steps:
                break
            count = max(FIRST_WORKING_SET, np.count_nonzero(alpha) // 2)
            violators = np.argsort(g)[:count]
            violators = violators[g[violators] < norm2]
            if not np.setdiff1d(violators, rows).size:
                break


def _products(machine, alpha):
    """``Hα``, block by block."""
    support = np.flatnonzero(alpha)
    weights = alpha[support]
    step = max(1, BLOCK_VALUES // support.size)
    everyone = np.arange(machine.size)
    parts = [machine.part(everyone[a : a + step], support) @ weights for a in range(0, machine.size, step)]
    return np.concatenate(parts)
