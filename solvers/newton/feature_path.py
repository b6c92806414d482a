"""An ascending path of C in a low-rank feature space that grows on demand, without a Gram matrix.

Kernel columns are computed one at a time. Every solution is certified against the exact kernel by the
residual of the factorisation (`solvers.newton.lowrank`). If the rank would grow too large, the path stops
and returns how many C it has solved.
"""

import numpy as np

from solvers.common.clock import clock
from solvers.common.status import CONVERGED
from solvers.gram.cholesky import NOISE_ROUNDINGS, append_pivot
from solvers.gram.outcomes import LOW_RANK
from solvers.newton.lowrank import FeatureSpace, newton_rounds_lowrank
from solvers.newton.lowrank_space import LOWRANK_ROUNDS, TARGET_SHARE

# Smallest target of the first residual, as a share of the median diagonal. The target follows from a bound
# of ||c||² that is far too low at a large C.
FIRST_SHARE = 0.05
# Factor of the target after a residual that did not certify.
RETRY_SHARE = 0.2
# Largest number of targets for one C.
RETRIES = 8


class PivotedFactor:
    """Factor ``H ≈ ZᵀZ`` that can be refined.

    Parameters
    ----------
    column : callable
        ``column(p)`` returns ``H[:, p]``.
    diagonal : ndarray of shape (m,)
        Diagonal of H.
    max_rank : int
        Largest number of pivots of the factor.
    deadline : float, optional
        Time of `solvers.common.clock.clock` after which no pivot is appended, in seconds; by default there is
        none.
    """

    def __init__(self, column, diagonal, max_rank, deadline=np.inf):
        self.deadline = deadline
        self.column = column
        self.residual = np.array(diagonal, dtype=np.float64)
        self.noise = NOISE_ROUNDINGS * np.finfo(np.float64).eps * self.residual.max()
        self.max_rank = min(max_rank, self.residual.size)
        self.pivots: list[int] = []
        self._lefts: list[float] = []  # largest residual before each pivot
        self._rows = np.empty((min(64, self.max_rank), self.residual.size))

    @property
    def rank(self):
        """Number of pivots."""
        return len(self.pivots)

    @property
    def Z(self):
        """The factor, of shape (rank, m)."""
        return self._rows[: self.rank]

    def extend(self, target, max_rank):
        """Append pivots until the largest residual is at most `target`.

        Parameters
        ----------
        target : float
            Residual at which the extension ends.
        max_rank : int
            Largest number of pivots of the factor.

        Returns
        -------
        float
            The largest residual.
        """
        while True:
            pivot = int(self.residual.argmax())
            left = self.residual[pivot]
            if left <= max(target, self.noise) or self.rank >= min(max_rank, self.max_rank):
                return left
            if clock() > self.deadline:
                return left
            if self.rank == self._rows.shape[0]:
                self._rows = np.concatenate((self._rows, np.empty_like(self._rows)))
            append_pivot(self._rows, self.rank, self.residual, pivot, self.column(pivot))
            self.pivots.append(pivot)
            self._lefts.append(left)

    def can_reach(self, target):
        """Predict from the first √m or all present columns whether the residual can reach `target`.

        Parameters
        ----------
        target : float
            Largest residual that the factor may leave.

        Returns
        -------
        bool
            True if the residual falls fast enough to reach the target at the largest rank.
        """
        self.extend(target, int(np.sqrt(self.residual.size)))
        rank, left = self.rank, self.residual.max()
        if left <= target or rank < 2:
            return left <= target
        fall = left / self._lefts[rank // 2]  # in half of the columns
        return left * fall ** (2.0 * (self.max_rank / rank - 1.0)) <= target


def feature_path(training, max_rank):
    """Train one subproblem for ascending C in feature space, as far as its solutions can be certified.

    Parameters
    ----------
    training : solvers.newton.training.Training
        Receives the solutions.
    max_rank : int
        Largest rank of the feature space.

    Returns
    -------
    solved : int
        Number of C that were solved.
    start : ndarray of shape (m,) or None
        Weights from which the other C start.
    """
    subproblem, inverse_weight, Cs, tol = (
        training.subproblem,
        training.inverse_weight,
        training.Cs,
        training.tol,
    )
    deadline, max_iter = training.problem.deadline, training.limits.min()
    column, value_error = subproblem.columns()
    diagonal = subproblem.diagonal()
    m, largest = diagonal.size, diagonal.max()
    factor = PivotedFactor(column, diagonal, max_rank, deadline)
    f, alpha, g = np.zeros(m), np.zeros(m), np.empty(m)
    w, scatter, counted = np.zeros(0), np.zeros((0, 0)), np.zeros(m, dtype=bool)
    solved, models, total_rounds, start = 0, [], 0, None
    lowest_square_norm = 1.0 / (Cs[0] * (1.0 / inverse_weight).sum())
    for k, C in enumerate(Cs):
        gap = np.inf
        target = TARGET_SHARE * tol * lowest_square_norm
        if k == 0:
            target = max(target, FIRST_SHARE * float(np.median(diagonal)))
        total_rounds = 0
        for attempt in range(RETRIES):
            if (k == 0 or attempt > 0) and not factor.can_reach(target):
                break
            factor.extend(target, max_rank)
            if clock() > deadline:
                break
            grown = factor.rank - w.size
            if grown:
                w = np.concatenate((w, np.zeros(grown)))
                scatter = np.zeros((factor.rank, factor.rank))
                counted[:] = False
            space = FeatureSpace(factor.Z, factor.residual, f, w, scatter, counted)
            allowed = min(LOWRANK_ROUNDS, max_iter - total_rounds)
            # With a deadline, the clock is read after each round. The rounds are the same.
            step = allowed if deadline == np.inf else min(1, allowed)
            finished = False
            while not finished:
                rounds, square_norm, gap, finished = newton_rounds_lowrank(
                    space, inverse_weight, C, alpha, g, tol, value_error, largest, step
                )
                total_rounds += rounds
                allowed -= rounds
                finished = finished or allowed <= 0 or clock() > deadline
            if gap <= tol or factor.rank >= factor.max_rank:
                break
            if total_rounds >= max_iter or clock() > deadline:
                break
            target = min(RETRY_SHARE * target, TARGET_SHARE * tol * square_norm)
        if not gap <= tol:
            break
        start = alpha / square_norm
        training.record(k, start, square_norm, gap, total_rounds, LOW_RANK, CONVERGED)
        models.append(factor.Z @ start)
        solved += 1
        if k + 1 < len(Cs):
            # ||c||² cannot fall faster than 1/C.
            lowest_square_norm = square_norm * C / Cs[k + 1]
    training.pivots, training.coefficients = factor.pivots, _on_pivots(factor, models)
    if solved < Cs.size:
        training.outcome.iterations[solved] = total_rounds  # rounds without a certified solution
        if (training.seconds_left() < 0.0 or total_rounds >= max_iter) and alpha.any():
            start = alpha
    return solved, start


def _on_pivots(factor, models):
    """Return the coefficients on the pivots that give weights in the feature space.

    Parameters
    ----------
    factor : PivotedFactor
        Factor whose rows span the feature space.
    models : list of ndarray
        Weights in the feature space, each of the rank that it had at the time.

    Returns
    -------
    ndarray of shape (len(models), rank)
        Coefficients of each model on the pivots.
    """
    upper = factor.Z[:, factor.pivots]
    coefficients = np.zeros((len(models), factor.rank))
    for k, w in enumerate(models):
        coefficients[k, : w.size] = np.linalg.solve(upper[: w.size, : w.size], w)
    return coefficients
