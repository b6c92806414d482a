"""What it takes to train one machine for an ascending path of C by exact methods: its kernel, its limits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvers.common.clock import clock
from solvers.gram.outcomes import Outcomes
from solvers.gram.subproblems import gather_block, require_block_memory
from solvers.kernels.subproblem_kernel import SubproblemKernel
from solvers.kernels.tiles import error_of_values, fill_block, is_tiled, scaled_samples, tiles_of
from solvers.problem import Problem

# Share of the time that is left which the next portion of work may take by its cost in nanoseconds: a core
# may be slower than the one the costs were measured on.
SHARE_OF_TIME = 0.25
MIN_TIME = 1e-3
BLOCK_VALUES = 1 << 22
FEW_FEATURES = 64  # of which tiles of all samples take little memory


class Subproblem(SubproblemKernel):
    """The kernel of one machine with labels and bias, ``H_ij = (y_i·y_j)(k(x_i, x_j) + bias)``.

    Parameters
    ----------
    problem : solvers.problem.Problem
    """

    def __init__(self, problem):
        super().__init__(problem)
        self.bias = problem.bias
        self.class_start = problem.class_start
        self.n_classes = self.class_start.size - 1
        self.label = np.repeat(np.arange(self.n_classes), np.diff(self.class_start))
        self.opposite = -1.0 / (self.n_classes - 1)

    def diagonal(self):
        """Diagonal of ``H``."""
        return super().diagonal() + self.bias

    def whole(self, deadline):
        """Evaluate the whole of ``H`` in float64, or None if the deadline passes before."""
        if not self.is_gram:
            return self.symmetric_part(np.arange(self.size), deadline)
        m = self.size
        self.evaluations += m * m
        group = np.arange(self.n_classes)
        require_block_memory(self.class_start, group[None, :], 8)
        H = np.empty((m, m))
        gather_block(self._X, self._rows, False, self.class_start, group, self.opposite, self.bias, H)
        return H

    def symmetric_part(self, some, deadline):
        """``H[some, some]`` in float64, or None if the deadline passes before."""
        H = np.empty((some.size, some.size))
        step = max(1, BLOCK_VALUES // some.size)
        for start in range(0, some.size, step):
            if clock() > deadline:
                return None
            H[start : start + step] = self.part(some[start : start + step], some)
        return H

    def part(self, some, others):
        """``H[some, others]`` in float64."""
        values = self.block(self.points(some), self.points(others))
        values += self.bias
        values *= np.where(self.label[some][:, None] == self.label[others], 1.0, self.opposite)
        return values

    def columns(self):
        """Return what evaluates ``H[:, p]`` for a sample p, and a bound on the error of its values."""
        every, X, kernel = np.arange(self.size), self._X, self.kernel
        if self.is_gram or kernel.by_differences or X.shape[1] > FEW_FEATURES or not is_tiled(kernel, X):
            return lambda p: self.part(every[p : p + 1], every)[0], kernel.error
        samples = scaled_samples(self.points(every), kernel.gamma)
        tiles, row_index = tiles_of(samples, every, X.shape[1]), np.zeros(1, np.int64)
        signs = np.where(self.label == np.arange(self.n_classes)[:, None], 1.0, self.opposite)

        def column(p):
            values = np.empty((1, every.size))
            fill_block(samples, every[p : p + 1], row_index, tiles, 0, -self.bias, values)
            values[0] *= signs[self.label[p]]
            self.evaluations += every.size
            return values[0]

        return column, max(kernel.error, error_of_values(samples))


@dataclass
class Training:
    """What it takes to train a machine, and what has come of it."""

    problem: Problem
    subproblem: Subproblem
    inverse_weight: np.ndarray  # (m,)
    Cs: np.ndarray
    tol: float
    limits: np.ndarray  # (n_C,) int64: pair steps and Newton rounds for each C
    memory: float  # bytes that a Gram block may take
    outcome: Outcomes  # arrays of shape (n_C,)
    weights: np.ndarray  # (n_C, m): α / ||c||² >= 0
    pivots: Sequence[int] = ()  # the r samples that span the feature space
    coefficients: np.ndarray | tuple = ()  # (n_compact, r): on them, the machines that were solved there

    def seconds_left(self):
        """Time until the deadline; infinite without one."""
        return self.problem.deadline - clock()

    def affordable(self):
        """Cost of the next portion of work, see `solvers.gram.block.step_cost`."""
        return 1e9 * SHARE_OF_TIME * max(self.seconds_left(), MIN_TIME)

    def iterations_left(self):
        """Return how many iterations are left for each C."""
        return np.maximum(0, self.limits - self.outcome.iterations)

    def record(self, k, weights, square_norm, gap, iterations, methods, status):
        """Note the solution for a C, or for a slice of them; iterations and methods add up."""
        outcome = self.outcome
        self.weights[k], outcome.objectives[k], outcome.gaps[k] = weights, square_norm, gap
        outcome.iterations[k] += iterations
        outcome.methods[k] |= methods
        outcome.statuses[k] = status
