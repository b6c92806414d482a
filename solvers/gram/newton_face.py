"""Newton's method on thousands of free weights, many of which end at their bounds in one step.

What is minimised is the objective plus ½ ρ ‖β − β₀‖², β₀ being the point at the start (R. T. Rockafellar,
1976, Monotone operators and the proximal point algorithm): on kernels that are nearly singular the minimum
without it lies so far outside the box that most weights would be sent to wrong bounds. Its minimum in the
box is found by active sets (M. Hintermüller, K. Ito and K. Kunisch, 2003, The primal-dual active set strategy
as a semismooth Newton method): those that leave the box are held at the bounds that they cross, and those at
bounds whose gradient says so are let go, all at once, until there are none. An exact line search leads there.
`solvers.gram.smo_newton` meets one bound at a time, which is cheaper where a step meets few.
"""

import numpy as np
from scipy.linalg import lapack

from solvers.common.compile import njit
from solvers.gram.block import block_product
from solvers.gram.smo_newton import free_weights, longest_step

# Added to the diagonal; the larger ones where rounded values are not positive definite with the smaller.
RIDGES = (0.0, 1e-5, 1e-3)
# ρ at first, and its bounds. Active sets settle in few rounds where it is large, but a step leads less far.
FIRST_PROXIMITY, LEAST_PROXIMITY, LARGEST_PROXIMITY = 1e-4, 1e-7, 1e-2
FEW_ROUNDS, MANY_ROUNDS = 3, 8  # of active sets, after which ρ is made smaller, or larger, tenfold
MOST_ROUNDS = 10  # in which weights are let go; after them they are only held


@njit
def face_cost(n, m):
    """Cost of one such step on n free weights of m, in nanoseconds of a 2025 core."""
    return 2e5 + n * (100.0 + 0.15 * m + n * (5.0 + 0.015 * n))


def newton_on_face(K, shift, ridge, F, beta, low, high, tol, proximity):
    """Take one step, which cannot raise the objective.

    Parameters
    ----------
    K : array (w, any), float32 or float64, C-contiguous
        Kernel values less `shift`, of which the first w columns are read.
    shift : float
    ridge : array (w,)
        Added to the diagonal.
    F, beta : arrays (w,), changed in place
    low, high : arrays (w,)
    tol : float
        Largest violation that is let be.
    proximity : float
        ρ.

    Returns
    -------
    moved : bool
        False where rounding leaves no descent: other steps have to go on.
    proximity : float
        ρ of the next step.
    """
    face = _Face(K, shift, ridge, F, beta, low, high)
    rounds = face.minimise(0.5 * tol, proximity)
    if rounds >= MANY_ROUNDS:
        proximity = min(10.0 * proximity, LARGEST_PROXIMITY)
    elif rounds <= FEW_ROUNDS:
        proximity = max(0.1 * proximity, LEAST_PROXIMITY)
    direction = face.point - beta
    slope = F @ direction
    if not slope < 0.0:
        direction = face.to_first_bound()
        slope = F @ direction
        if not slope < 0.0:
            return False, proximity
    product = face.product(direction) + ridge * direction
    curvature = product @ direction
    share = min(1.0, -slope / curvature) if curvature > 0.0 else 1.0
    beta[:] = np.clip(beta + share * direction, low, high)  # rounding may lead beyond
    F += share * product
    return True, proximity


class _Face:
    """The weights that are between their bounds, and where a step leads.

    Parameters are those of `newton_on_face`.
    """

    def __init__(self, K, shift, ridge, F, beta, low, high):
        self._K, self._shift, self._ridge, self._F = K, shift, ridge, F
        self._start, self._low, self._high = beta, low, high
        self._is_free = np.zeros(beta.size, dtype=bool)
        self._is_free[free_weights(beta, low, high)] = True
        self.point = beta.copy()
        self._first = np.zeros(beta.size)  # the step without bounds

    def minimise(self, tol, proximity):
        """Look for the minimum in the box of the objective plus ½ ρ times the square of the step.

        Returns
        -------
        rounds : int
            Of active sets; `MOST_ROUNDS` if they did not settle.
        """
        rounds = 0
        while True:
            rows = np.flatnonzero(self._is_free)
            if rows.size < 2 or not self._to_plane(rows, proximity):
                self.point = self._start.copy()
                return MOST_ROUNDS
            if rounds == 0:
                self._first = self.point - self._start
            below, above = self.point < self._low, self.point > self._high
            rounds += 1
            let_go = self._violators(rows, tol, proximity) if rounds < MOST_ROUNDS else np.zeros_like(below)
            if not (below | above | let_go).any():
                return rounds
            self.point[below], self.point[above] = self._low[below], self._high[above]
            self._is_free = (self._is_free & ~(below | above)) | let_go

    def to_first_bound(self):
        """Return the step without bounds as far as it meets none."""
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
        """Multiply by the kernel."""
        rows, product = np.flatnonzero(direction), np.zeros(direction.size)
        if rows.size:
            block_product(self._K, rows, direction[rows], product)
            product += self._shift * direction.sum()
        return product

    def _to_plane(self, rows, proximity):
        """Move the free weights to their minimum without bounds; return whether there is one."""
        moved = self.point - self._start
        moved[rows] = 0.0
        pull = -(self._F + self.product(moved))[rows]
        step = _minimum_on_plane(self._K, self._shift, self._ridge + proximity, rows, pull, -moved.sum())
        if step is None:
            return False
        self.point[rows] = self._start[rows] + step
        return True

    def _violators(self, rows, tol, proximity):
        """Say which weights at bounds have to be let go."""
        direction = self.point - self._start
        level = self._F + self.product(direction) + (self._ridge + proximity) * direction
        level -= level[rows].mean()
        can_grow, can_shrink = self.point <= self._low, self.point >= self._high
        return ~self._is_free & ((can_grow & (level < -tol)) | (can_shrink & (level > tol)))


def _minimum_on_plane(K, shift, ridge, rows, pull, total):
    """Solve ``(K + shift + ridge) x = pull + λ 1``, ``Σ x = total`` on some rows; None: K is not definite."""
    n = rows.size
    packed = np.empty(n * (n + 1) // 2)
    for least in RIDGES:
        gather_packed(K, rows, shift, np.maximum(ridge[rows], least), packed)
        factor, failed = lapack.dpftrf(n, packed, transr="N", uplo="L", overwrite_a=1)
        if not failed:
            sides = np.ones((2, n))
            sides[0] = pull
            x, ones = lapack.dpftrs(n, factor, sides.T, transr="N", uplo="L", overwrite_b=1)[0].T
            return x + (total - x.sum()) / ones.sum() * ones
    return None


@njit(allocates=False)
def gather_packed(K, rows, shift, ridge, packed):
    """Write ``K[rows, rows] + shift + diag(ridge)`` in LAPACK's rectangular full packed format.

    That of ``transr="N", uplo="L"``: half the memory of a matrix, and as fast. The columns of the lower
    triangle's first half stand as they are, the rest of it, transposed, above them.
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
