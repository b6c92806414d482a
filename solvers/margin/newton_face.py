"""Newton's method on thousands of free weights, many of which reach their bounds in one step.

The step minimises the objective plus ½ ρ ‖β − β₀‖², where β₀ is the point at the start (R. T. Rockafellar,
1976, Monotone operators and the proximal point algorithm). Without that term, on a nearly singular kernel,
the minimum lies so far outside the box that most weights would go to wrong bounds.

Active sets find the minimum in the box (M. Hintermüller, K. Ito and K. Kunisch, 2003, The primal-dual active
set strategy as a semismooth Newton method). Weights that leave the box are fixed at the bounds that they
cross. Weights at bounds whose gradient points inside are released. A round does this for all such weights at
once, and rounds are repeated until no such weight is left. If the sets do not settle, the search is repeated
with a larger ρ. An exact line search leads to the minimum.

`solvers.smo.free_weights` meets one bound at a time, which is cheaper if a step meets few bounds.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from solvers.common.compile import njit
from solvers.gram.block import block_product
from solvers.smo.free_weights import free_weights, longest_step

# Smallest diagonal terms, in the order in which they are tried. A larger one follows if the rounded matrix is
# not positive definite with a smaller one.
RIDGES = (0.0, 1e-5, 1e-3)
# First, smallest and largest ρ. With a large ρ active sets settle in few rounds, but a step is shorter.
FIRST_PROXIMITY, MIN_PROXIMITY, MAX_PROXIMITY = 1e-4, 1e-7, 1e-2
# ρ is divided by ten if the active sets settle within FEW_ROUNDS rounds, and multiplied by ten if they need
# at least MANY_ROUNDS.
FEW_ROUNDS, MANY_ROUNDS = 3, 8
# Number of rounds after which active sets count as not settling.
MAX_ROUNDS = 10
# They also count as not settling if a round changes more weights than this number, plus this share of the
# changes in the round before the last.
FEW_CHANGES, SHARE_OF_CHANGES = 10, 0.5
# Number of changes assumed before the first round: this multiple of the free weights, plus this number.
CHANGES_BEFORE, FEW_BEFORE = 4, 200
# Largest share of free weights that may differ from those of the last factor for that factor to be used.
SHARE_CORRECTED = 1.0 / 24.0


@njit
def face_cost(n, m):
    """Return the cost of one such step, in nanoseconds of a 2025 core.

    Parameters
    ----------
    n : int
        Number of free weights.
    m : int
        Number of samples of the block.

    Returns
    -------
    float
        Expected cost, in nanoseconds.
    """
    return 2e5 + n * (100.0 + 0.15 * m + n * (5.0 + 0.015 * n))


class BlockPoint(NamedTuple):
    """A point of the problem on a block of w samples."""

    K: np.ndarray  # (w, any) float32 or float64, C-contiguous: kernel values less `shift` in w columns
    shift: float  # value that was subtracted from the kernel
    ridge: np.ndarray  # (w,): values added to the diagonal
    F: np.ndarray  # (w,): gradient
    beta: np.ndarray  # (w,): signed weights
    low: np.ndarray  # (w,): lower bounds of the weights
    high: np.ndarray  # (w,): upper bounds of the weights


def newton_on_face(point, tol, proximity):
    """Take one step, which cannot raise the objective.

    Parameters
    ----------
    point : BlockPoint
        The point, whose gradient and weights are changed in place.
    tol : float
        Largest violation that may remain.
    proximity : float
        Weight ρ of the distance from the start in the objective of this step.

    Returns
    -------
    moved : bool
        False if rounding leaves no descent direction. Other steps must then continue.
    proximity : float
        Weight ρ for the next step, smaller after few rounds and larger after many.
    """
    F, beta = point.F, point.beta
    while True:
        face = _Face(point._replace(ridge=point.ridge + proximity))
        rounds = face.settle(0.5 * tol)
        if rounds < MAX_ROUNDS or proximity >= MAX_PROXIMITY:
            break
        proximity *= 10.0
    if rounds == MAX_ROUNDS:
        face.fix_outside()
    next_proximity = proximity
    if rounds <= FEW_ROUNDS:
        next_proximity = max(0.1 * proximity, MIN_PROXIMITY)
    elif rounds >= MANY_ROUNDS:
        next_proximity = min(10.0 * proximity, MAX_PROXIMITY)
    direction = face.point - beta
    slope = F @ direction
    if not slope < 0.0:
        direction = face.to_first_bound()
        slope = F @ direction
        if not slope < 0.0:
            return False, next_proximity
    product = face.product(direction) - proximity * direction
    curvature = product @ direction
    share = min(1.0, -slope / curvature) if curvature > 0.0 else 1.0
    beta[:] = np.clip(beta + share * direction, point.low, point.high)  # against rounding
    F += share * product
    return True, next_proximity


class _Face:
    """The weights between their bounds, and the target of a step.

    Parameters
    ----------
    start : BlockPoint
        Point at the start, whose ridge includes ρ.
    """

    def __init__(self, start):
        self._K, self._shift, self._ridge, self._F, beta, self._low, self._high = start
        self._start = beta
        self._is_free = np.zeros(beta.size, dtype=bool)
        self._is_free[free_weights(beta, self._low, self._high)] = True
        self._planes = _Planes(self._K, self._shift, self._ridge)
        self.point = beta.copy()
        self._first = np.zeros(beta.size)  # the step without bounds

    def settle(self, tol):
        """Search the minimum in the box of the objective plus ½ ρ times the square of the step.

        Parameters
        ----------
        tol : float
            Largest violation that may remain.

        Returns
        -------
        rounds : int
            Number of rounds of active sets; `MAX_ROUNDS` if they do not settle.
        """
        before = last = CHANGES_BEFORE * int(np.count_nonzero(self._is_free)) + FEW_BEFORE
        for rounds in range(1, MAX_ROUNDS):
            if not self._to_plane():
                break
            if rounds == 1:
                self._first = self.point - self._start
            change = self._outside() | self._violators(tol)
            n_changes = int(np.count_nonzero(change))
            if n_changes == 0:
                return rounds
            if n_changes > FEW_CHANGES + SHARE_OF_CHANGES * before:
                break
            before, last = last, n_changes
            self._exchange(change)
        return MAX_ROUNDS

    def fix_outside(self):
        """Fix weights that leave the box at their bounds until none leaves it, and release none."""
        while self._to_plane() and (outside := self._outside()).any():
            self._exchange(outside)

    def to_first_bound(self):
        """Return the step without bounds, shortened to the first bound that it meets.

        Returns
        -------
        ndarray of shape (w,)
            Change of the weights.
        """
        rows = np.flatnonzero(self._first)
        longest, blocker = longest_step(
            self._start, self._low, self._high, rows, rows.size, self._first[rows]
        )
        direction = longest * self._first
        if blocker >= 0:
            t = rows[blocker]
            direction[t] = (self._high if self._first[t] > 0.0 else self._low)[t] - self._start[t]
        return direction

    def product(self, direction):
        """Multiply by the kernel and the ridge.

        Parameters
        ----------
        direction : ndarray of shape (w,)
            Change of the weights.

        Returns
        -------
        ndarray of shape (w,)
            Change of the gradient, including ρ.
        """
        rows, product = np.flatnonzero(direction), np.empty(direction.size)
        block_product(self._K, rows, direction[rows], product)
        return product + self._shift * direction.sum() + self._ridge * direction

    def _to_plane(self):
        """Move the free weights to their minimum without bounds.

        If there is no minimum, all weights move to the start.

        Returns
        -------
        bool
            Whether there is a minimum.
        """
        free, moved = self._is_free, self.point - self._start
        moved[free] = 0.0
        pull = -(self._F + self.product(moved))[free]
        step = self._planes.minimum(free, pull, -moved.sum()) if pull.size > 1 else None
        if step is None:
            self.point = self._start.copy()
            return False
        self.point[free] = self._start[free] + step
        return True

    def _outside(self):
        """Return which weights are outside the box.

        Returns
        -------
        bool ndarray of shape (w,)
            True for weights outside the box.
        """
        return (self.point < self._low) | (self.point > self._high)

    def _violators(self, tol):
        """Return which weights at bounds must be released.

        Parameters
        ----------
        tol : float
            Largest violation that may remain.

        Returns
        -------
        bool ndarray of shape (w,)
            True for weights at a bound that violate their condition by more than `tol`.
        """
        level = self._F + self.product(self.point - self._start)
        level -= level[self._is_free].mean()
        can_grow, can_shrink = self.point <= self._low, self.point >= self._high
        return ~self._is_free & ((can_grow & (level < -tol)) | (can_shrink & (level > tol)))

    def _exchange(self, change):
        """Fix free weights at their bounds, and release fixed ones.

        Parameters
        ----------
        change : bool ndarray of shape (w,)
            Weights that change between free and fixed.
        """
        np.clip(self.point, self._low, self._high, out=self.point)
        self._is_free ^= change


class _Planes:
    """Systems of equations with the kernel plus a ridge between some of the samples, one after the other.

    If a set of samples hardly differs from the last one, its system is solved by the last factor as part of
    a larger system. Multipliers fix the weights that have left the set, and a border adds those that have
    joined.

    Parameters
    ----------
    K : array (w, any), float32 or float64, C-contiguous
        Kernel values minus `shift`. Only the first w columns are read.
    shift : float
        Value that was subtracted from the kernel.
    ridge : array (w,)
        Values added to the diagonal.
    """

    def __init__(self, K, shift, ridge):
        self._K, self._shift, self._ridge = K, shift, ridge
        self._rows, self._factor = np.empty(0, np.int64), np.empty(0)  # rows with a factor, and the factor
        self._has_factor = np.zeros(ridge.size, dtype=bool)

    def minimum(self, free, pull, total):
        """Solve ``(K + shift + ridge) x = pull + λ 1``, ``Σ x = total`` on some rows.

        Parameters
        ----------
        free : bool ndarray of shape (w,)
            True for the n rows that take part.
        pull : ndarray of shape (n,)
            Right side, without the multiplier λ.
        total : float
            Sum of the solution.

        Returns
        -------
        x : ndarray of shape (n,) or None
            The solution; None if the matrix is not positive definite.
        """
        sides = np.vstack((pull, np.ones(pull.size)))
        if np.count_nonzero(free != self._has_factor) <= SHARE_CORRECTED * self._rows.size:
            solutions = self._by_correction(free, sides)
        elif self._factor_of(free):
            solutions = self._solve(sides)
        else:
            return None
        x, ones = solutions
        return x + (total - x.sum()) / ones.sum() * ones

    def _factor_of(self, free):
        """Factor the matrix of some rows, with a larger ridge if rounding requires it.

        Parameters
        ----------
        free : bool ndarray of shape (w,)
            True for the rows of the matrix.

        Returns
        -------
        bool
            Whether the matrix is positive definite.
        """
        rows = np.flatnonzero(free)
        n = rows.size
        self._rows, self._factor, self._has_factor = rows[:0], np.empty(0), np.zeros_like(free)
        packed = np.empty(n * (n + 1) // 2)
        for min_ridge in RIDGES:
            ridge = np.maximum(self._ridge, min_ridge)
            gather_packed(self._K, rows, self._shift, ridge[rows], packed)
            factor, failed = lapack.dpftrf(n, packed, transr="N", uplo="L", overwrite_a=1)
            if not failed:
                self._rows, self._factor, self._ridge = rows, factor, ridge
                self._has_factor = free.copy()
                return True
        return False

    def _solve(self, sides):
        """Solve for several right sides by the present factor.

        Parameters
        ----------
        sides : ndarray of shape (k, n)
            Right sides as rows, which are overwritten.

        Returns
        -------
        ndarray of shape (k, n)
            Solutions as rows.
        """
        n = self._rows.size
        return lapack.dpftrs(n, self._factor, sides.T, transr="N", uplo="L", overwrite_b=1)[0].T

    def _by_correction(self, free, sides):
        """Solve for several right sides by the factor of a set that differs in few rows.

        Parameters
        ----------
        free : bool ndarray of shape (w,)
            True for the n rows of the matrix.
        sides : ndarray of shape (k, n)
            Right sides as rows.

        Returns
        -------
        ndarray of shape (k, n)
            Solutions as rows.
        """
        kept, is_old = free[self._rows], self._has_factor[free]
        dropped, new = np.flatnonzero(~kept), np.flatnonzero(free & ~self._has_factor)
        border = np.zeros((new.size + dropped.size, self._rows.size))
        border[: new.size] = self._K[new[:, None], self._rows]
        border[: new.size] += self._shift  # in float64
        border[new.size + np.arange(dropped.size), dropped] = 1.0
        inside = np.zeros((len(sides), self._rows.size))
        inside[:, kept] = sides[:, is_old]
        inside, of_border = self._solve(inside), self._solve(border.copy())
        complement, outside = -border @ of_border.T, -inside @ border.T
        complement[: new.size, : new.size] += self._K[new[:, None], new].astype(np.float64) + self._shift
        complement[np.arange(new.size), np.arange(new.size)] += self._ridge[new]
        outside[:, : new.size] += sides[:, ~is_old]
        outside = np.linalg.solve(complement, outside.T).T
        solutions = np.empty_like(sides)
        solutions[:, is_old] = (inside - outside @ of_border)[:, kept]
        solutions[:, ~is_old] = outside[:, : new.size]
        return solutions


@njit(allocates=False)
def gather_packed(K, rows, shift, ridge, packed):
    """Write ``K[rows, rows] + shift + diag(ridge)`` in LAPACK's rectangular full packed format.

    The format is that of ``transr="N", uplo="L"``, which takes half the memory of a matrix and is as fast.
    It contains the columns of the first half of the lower triangle as they are, and above them the rest,
    transposed.

    Parameters
    ----------
    K : array (w, any)
        Kernel values less `shift`.
    rows : int64 array (n,)
        Rows and columns.
    shift : float
        Value that was subtracted from the kernel.
    ridge : array (n,)
        Values added to the diagonal.
    packed : array (n (n + 1) / 2,)
        Receives the lower triangle.
    """
    n = rows.size
    half, offset = (n + 1) // 2, 1 - n % 2
    stride = n + offset
    for j in range(half):
        source, start = K[rows[j]], j * stride + offset
        for i in range(j, n):
            packed[start + i] = source[rows[i]] + shift
        packed[start + j] += ridge[j]
    for i in range(half, n):
        source, start = K[rows[i]], (i - half + 1 - offset) * stride - half
        for j in range(half, i + 1):
            packed[start + j] = source[rows[j]] + shift
        packed[start + i] += ridge[i]
