"""An ascending path of C in a low-rank feature space that grows on demand, without a Gram matrix.

Kernel columns are asked for one at a time, and every solution is certified against the exact kernel by the
residual of the factorisation (`solvers.gram.newton_lowrank`). Where the rank would grow too large, the path
stops and says how far it came.
"""

import time
from dataclasses import dataclass

import numpy as np

from solvers.gram.cholesky import NOISE_ROUNDINGS, append_pivot
from solvers.gram.lowrank_space import LOWRANK_ROUNDS, TARGET_SHARE, promising
from solvers.gram.newton_lowrank import newton_rounds_lowrank

# A residual that did not certify is brought down to this share of what was aimed at.
RETRY_SHARE = 0.2
RETRIES = 8


@dataclass
class FeaturePath:
    """Solutions for the first Cs of a path.

    Attributes
    ----------
    weights : ndarray of shape (n_solved, m)
        ``α / ||c||²``.
    square_norms, gaps, rounds : ndarrays of shape (n_solved,)
    ranks : ndarray of shape (n_solved,)
    pivots : ndarray of shape (r,)
    coefficients : ndarray of shape (n_solved, r)
        On the pivots: ``f(x) = Σ_p coefficients_p h(x, x_p)``.
    last : ndarray of shape (m,)
        Weights of the last point that was reached, certified or not; zeros if there is none.
    rounds_in_vain : int
        Rounds that went into a solution that could not be certified.
    """

    weights: np.ndarray
    square_norms: np.ndarray
    gaps: np.ndarray
    rounds: np.ndarray
    ranks: np.ndarray
    pivots: np.ndarray
    coefficients: np.ndarray
    last: np.ndarray
    rounds_in_vain: int


class PivotedFactor:
    """``H ≈ ZᵀZ`` that can be refined.

    Parameters
    ----------
    column : callable
        ``column(p)`` returns ``H[:, p]``.
    diagonal : ndarray of shape (m,)
    max_rank : int
    deadline : float, optional
        `time.monotonic()` at which to append no more.
    """

    def __init__(self, column, diagonal, max_rank, deadline=np.inf):
        self.deadline = deadline
        self.column = column
        self.residual = np.array(diagonal, dtype=np.float64)
        self.noise = NOISE_ROUNDINGS * np.finfo(np.float64).eps * self.residual.max()
        self.max_rank = min(max_rank, self.residual.size)
        self.pivots: list[int] = []
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
        """Append pivots until the largest residual is at most `target`, and return it."""
        while True:
            pivot = int(self.residual.argmax())
            left = self.residual[pivot]
            if left <= max(target, self.noise) or self.rank >= min(max_rank, self.max_rank):
                return left
            if time.monotonic() > self.deadline:
                return left
            if self.rank == self._rows.shape[0]:
                self._rows = np.concatenate((self._rows, np.empty_like(self._rows)))
            append_pivot(self._rows, self.rank, self.residual, pivot, self.column(pivot))
            self.pivots.append(pivot)

    def promises(self, target):
        """Look whether about √m columns suggest that `target` is within reach."""
        usual = int(np.sqrt(self.residual.size))
        half_left = self.extend(target, usual // 2)
        left = self.extend(target, usual)
        return left <= target or promising(half_left, left, target)


def feature_path(column, diagonal, inverse_weight, Cs, tol, value_error, max_rank, max_iter, deadline):
    """Train one machine for ascending C in feature space.

    Parameters
    ----------
    column : callable
        ``column(p)`` returns ``H[:, p]``, ``H_ij = (y_i·y_j)(k(x_i, x_j) + bias)``, as float64.
    diagonal : ndarray of shape (m,)
        Diagonal of ``H``.
    inverse_weight : ndarray of shape (m,)
        ``1 / sample_weight``.
    Cs : ndarray of shape (n_C,)
    tol : float
    value_error : float
        Bound on the error of the columns.
    max_rank : int
    max_iter : int
        Rounds for each C.
    deadline : float
        `time.monotonic()` at which to stop.

    Returns
    -------
    FeaturePath
        With as many solutions as could be certified.
    """
    m, largest = diagonal.size, diagonal.max()
    factor = PivotedFactor(column, diagonal, max_rank, deadline)
    f, alpha, g = np.zeros(m), np.zeros(m), np.empty(m)
    w, scatter, counted = np.zeros(0), np.zeros((0, 0)), np.zeros(m, dtype=bool)
    solved, total_rounds = [], 0
    lowest_square_norm = 1.0 / (Cs[0] * (1.0 / inverse_weight).sum())
    for k, C in enumerate(Cs):
        gap = np.inf
        target = TARGET_SHARE * tol * lowest_square_norm
        total_rounds = 0
        if k == 0 and not factor.promises(target):
            break
        for _ in range(RETRIES):
            factor.extend(target, max_rank)
            if time.monotonic() > deadline:
                break
            grown = factor.rank - w.size
            if grown:
                w = np.concatenate((w, np.zeros(grown)))
                scatter = np.zeros((factor.rank, factor.rank))
                counted[:] = False
            allowed = min(LOWRANK_ROUNDS, max_iter - total_rounds)
            # With a deadline one round at a time, else as many as it takes: the same rounds.
            step = allowed if deadline == np.inf else min(1, allowed)
            finished = False
            while not finished:
                rounds, square_norm, gap, finished = newton_rounds_lowrank(
                    factor.Z,
                    factor.residual,
                    inverse_weight,
                    C,
                    f,
                    w,
                    scatter,
                    counted,
                    alpha,
                    g,
                    tol,
                    value_error,
                    largest,
                    step,
                )
                total_rounds += rounds
                allowed -= rounds
                finished = finished or allowed <= 0 or time.monotonic() > deadline
            if gap <= tol or factor.rank >= factor.max_rank:
                break
            if total_rounds >= max_iter or time.monotonic() > deadline:
                break
            target = min(RETRY_SHARE * target, TARGET_SHARE * tol * square_norm)
        if gap > tol:
            break
        weights = alpha / square_norm
        solved.append((weights, square_norm, gap, total_rounds, factor.rank, factor.Z @ weights))
        if k + 1 < len(Cs):
            # ||c||² cannot fall faster than 1/C.
            lowest_square_norm = square_norm * C / Cs[k + 1]
    in_vain = total_rounds if len(solved) < Cs.size else 0
    return _collect(solved, factor, m, alpha, in_vain)


def _collect(solved, factor, m, last, rounds_in_vain):
    upper = factor.Z[:, factor.pivots]
    coefficients = np.zeros((len(solved), factor.rank))
    for k, (*_, rank, w) in enumerate(solved):
        coefficients[k, :rank] = np.linalg.solve(upper[:rank, :rank], w)
    return FeaturePath(
        weights=np.array([s[0] for s in solved]).reshape(-1, m),
        square_norms=np.array([s[1] for s in solved]),
        gaps=np.array([s[2] for s in solved]),
        rounds=np.array([s[3] for s in solved], dtype=np.int64),
        ranks=np.array([s[4] for s in solved], dtype=np.int64),
        pivots=np.array(factor.pivots, dtype=np.int64),
        coefficients=coefficients,
        last=last,
        rounds_in_vain=rounds_in_vain,
    )
