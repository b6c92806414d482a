"""Newton's method on thousands of free weights, many of which end at their bounds in one step.

The minimum over the free weights is looked for with all that leave the box held at the bounds that they
cross, until none does; an exact line search leads there from the old point, so that the objective cannot
grow. `solvers.gram.smo_newton` meets one bound at a time, which is cheaper where a step meets few.
"""

import numpy as np
from scipy.linalg import lapack

from solvers.common.compile import njit
from solvers.gram.block import block_product, gather
from solvers.gram.smo_newton import free_weights, longest_step

# Added to the diagonal; the larger ones where rounded values are not positive definite with the smaller.
RIDGES = (1e-9, 1e-7, 1e-5)


@njit
def face_cost(n, m):
    """Cost of one such step on n free weights of m, in nanoseconds of a 2025 core."""
    return 2e5 + n * (100.0 + 0.15 * m + n * (5.0 + 0.015 * n))


def newton_on_face(K, shift, ridge, F, beta, low, high):
    """Take one step; the weights that are not free stay.

    Parameters
    ----------
    K : array (w, any), float32 or float64, C-contiguous
        Kernel values less `shift`, of which the first w columns are read.
    shift : float
    ridge : array (w,)
        Added to the diagonal.
    F, beta : arrays (w,), changed in place
    low, high : arrays (w,)

    Returns
    -------
    moved : bool
        False where rounding leaves no descent: steps have to go on.
    """
    free = free_weights(beta, low, high)
    start, gradient = beta[free], F[free]
    first = _minimum_on_plane(K, shift, ridge, free, -gradient, 0.0)
    if first is None:
        return False
    target = _minimum_in_box(K, shift, ridge, F, beta, low, high, free, start + first)
    if target is None or not gradient @ (target - start) < 0.0:
        longest, blocker = longest_step(beta, low, high, free, free.size, first)
        target = start + longest * first
        if blocker >= 0:
            target[blocker] = (high if first[blocker] > 0.0 else low)[free[blocker]]
    direction = target - start
    slope = gradient @ direction
    if not slope < 0.0:
        return False
    product = np.empty(F.size)
    block_product(K, free, direction, product)
    product[free] += ridge[free] * direction
    curvature = product[free] @ direction
    if curvature <= -slope:
        beta[free] = target
    else:
        share = -slope / curvature
        beta[free] = start + share * direction
        product *= share
    F += product
    return True


def _minimum_in_box(K, shift, ridge, F, beta, low, high, free, point):
    """Return about the minimum over the free weights in the box, or None.

    Parameters are those of `newton_on_face`, but for the free weights, and for the minimum without the box,
    which is changed in place.
    """
    low, high, start = low[free], high[free], beta[free]
    inside, product = np.ones(free.size, dtype=bool), np.empty(F.size)
    while True:
        below, above = point < low, point > high
        if not (below | above).any():
            return point
        point[below], point[above] = low[below], high[above]
        inside &= ~(below | above)
        if inside.sum() < 2:
            return None
        rows, held = free[inside], free[~inside]
        move = (point - start)[~inside]
        block_product(K, held, move, product)
        pull = -F[rows] - product[rows] - shift * move.sum()
        step = _minimum_on_plane(K, shift, ridge, rows, pull, -move.sum())
        if step is None:
            return None
        point[inside] = start[inside] + step


def _minimum_on_plane(K, shift, ridge, rows, pull, total):
    """Solve ``(K + shift + ridge) x = pull + λ 1``, ``Σ x = total`` on some rows; None: K is not definite."""
    n = rows.size
    for least in RIDGES:
        part = np.empty((n, n))
        gather(K, rows, part)
        part += shift
        part.ravel()[:: n + 1] += np.maximum(ridge[rows], least)
        factor, failed = lapack.dpotrf(part.T, lower=1, clean=0, overwrite_a=1)  # in place: it is symmetric
        if not failed:
            sides = np.ones((2, n))
            sides[0] = pull
            x, ones = lapack.dpotrs(factor, sides.T, lower=1, overwrite_b=1)[0].T
            return x + (total - x.sum()) / ones.sum() * ones
    return None
