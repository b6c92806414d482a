"""The training of one subproblem for a path of C by exact methods: its kernel, limits and results."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvers.common.clock import clock
from solvers.gram.outcomes import Outcomes
from solvers.gram.subproblems import gather_block, require_block_memory
from solvers.kernels.subproblem_kernel import SubproblemKernel
from solvers.kernels.tiles import error_of_values, fill_block, is_tiled, scaled_samples, tiles_of
from solvers.problem import Problem

# Largest share of the remaining time that the cost of the next portion of work may take, in nanoseconds. A
# core may be slower than the core on which the costs were measured.
SHARE_OF_TIME = 0.25
# Smallest remaining time that counts, in seconds.
MIN_TIME = 1e-3
# Largest number of kernel values that are computed at a time.
BLOCK_VALUES = 1 << 22
# Largest number of features with which tiles of all samples take little memory.
FEW_FEATURES = 64


class Subproblem(SubproblemKernel):
    """The kernel of one subproblem with labels and bias, ``H_ij = (y_i·y_j)(k(x_i, x_j) + bias)``.

    Parameters
    ----------
    problem : solvers.problem.Problem
        Samples of the subproblem, with their penalties C, the kernel and the limits.
    """

    def __init__(self, problem):
        super().__init__(problem)
        self.bias = problem.bias
        self.class_start = problem.class_start
        self.n_classes = self.class_start.size - 1
        self.label = np.repeat(np.arange(self.n_classes), np.diff(self.class_start))
        self.opposite = -1.0 / (self.n_classes - 1)

    def diagonal(self):
        """Return the diagonal of ``H``.

        Returns
        -------
        ndarray of shape (m,)
            Kernel values k(x, x) plus the bias constant.
        """
        return super().diagonal() + self.bias

    def whole(self, deadline):
        """Compute the whole of ``H`` in float64.

        Parameters
        ----------
        deadline : float
            Time of `solvers.common.clock.clock` at which to stop, in seconds.

        Returns
        -------
        ndarray of shape (m, m) or None
            The matrix; None if the deadline passed first.
        """
        if not self.is_gram:
            return self.symmetric_part(np.arange(self.size), deadline)
        m = self.size
        self.evaluations += m * m
        group = np.arange(self.n_classes)
        require_block_memory(self.class_start, group[None, :], 8)
        H = np.empty((m, m))
        gather_block(
            self._X, self._rows, False, self.class_start, group, group.size, self.opposite, self.bias, H
        )
        return H

    def symmetric_part(self, some, deadline):
        """Compute ``H[some, some]`` in float64.

        Parameters
        ----------
        some : int64 ndarray of shape (n,)
            Rows and columns.
        deadline : float
            Time of `solvers.common.clock.clock` at which to stop, in seconds.

        Returns
        -------
        ndarray of shape (n, n) or None
            The matrix; None if the deadline passed first.
        """
        H = np.empty((some.size, some.size))
        step = max(1, BLOCK_VALUES // some.size)
        for start in range(0, some.size, step):
            if clock() > deadline:
                return None
            H[start : start + step] = self.part(some[start : start + step], some)
        return H

    def part(self, some, others):
        """Compute ``H[some, others]`` in float64.

        Parameters
        ----------
        some, others : int64 ndarrays
            Rows and columns.

        Returns
        -------
        ndarray of shape (some.size, others.size)
            The values.
        """
        values = self.block(self.points(some), self.points(others))
        values += self.bias
        values *= np.where(self.label[some][:, None] == self.label[others], 1.0, self.opposite)
        return values

    def columns(self):
        """Return a function that computes columns of ``H``, and the error of its values.

        Returns
        -------
        column : callable
            ``column(p)`` returns ``H[:, p]`` for a sample p.
        error : float
            Bound on the error of a value.
        """
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
    """The training of one subproblem: its input and its results."""

    problem: Problem
    subproblem: Subproblem
    inverse_weight: np.ndarray  # (m,): factors that give 1/C of a sample when they are divided by C
    Cs: np.ndarray  # (n_C,): values of C, ascending
    tol: float  # bound on the certified gap
    limits: np.ndarray  # (n_C,) int64: largest number of pair steps and Newton rounds for each C
    memory: float  # memory that a Gram block may take, in bytes
    outcome: Outcomes  # arrays of shape (n_C,)
    weights: np.ndarray  # (n_C, m): α / ||c||² >= 0
    pivots: Sequence[int] = ()  # r samples that span the feature space
    coefficients: np.ndarray | tuple = ()  # (n_compact, r): solutions in the feature space, on the pivots
    counted: int = 0  # number of kernel values that `outcome` has

    def seconds_left(self):
        """Return the time until the deadline.

        Returns
        -------
        float
            Time in seconds; infinite without a deadline.
        """
        return self.problem.deadline - clock()

    def affordable(self):
        """Return the largest cost of the next portion of work.

        Returns
        -------
        float
            The cost; see `solvers.gram.block.step_cost`.
        """
        return 1e9 * SHARE_OF_TIME * max(self.seconds_left(), MIN_TIME)

    def iterations_left(self):
        """Return the number of remaining iterations for each C.

        Returns
        -------
        int64 ndarray of shape (n_C,)
            Numbers of iterations.
        """
        return np.maximum(0, self.limits - self.outcome.iterations)

    def record(self, k, weights, square_norm, gap, iterations, methods, status):
        """Record the solution for one C, or for a slice of them; iterations and methods add up.

        So do the kernel values computed since the last call. Those of a block that serves a slice are counted
        for each of its C.

        Parameters
        ----------
        k : int or slice
            Index of the C.
        weights : ndarray
            Dual weights of the samples, scaled to a margin of 1.
        square_norm : float or ndarray
            Squared norm ``||c||²`` of the solution, for one C or for each.
        gap : float or ndarray
            Upper bound on the relative duality gap, for one C or for each.
        iterations : int or ndarray
            Number of iterations to add.
        methods : int or ndarray
            Bits of the methods to add; see `solvers.gram.outcomes.METHOD_NAMES`.
        status : int or ndarray
            One of the statuses of `solvers.common.status`.
        """
        outcome = self.outcome
        self.weights[k], outcome.objectives[k], outcome.gaps[k] = weights, square_norm, gap
        outcome.iterations[k] += iterations
        outcome.methods[k] |= methods
        outcome.statuses[k] = status
        self.count_evaluations(k)

    def count_evaluations(self, k):
        """Count the kernel values that were computed since the last call.

        Parameters
        ----------
        k : int or slice
            Index of the C that needed them.
        """
        self.outcome.evaluations[k] += self.subproblem.evaluations - self.counted
        self.counted = self.subproblem.evaluations
