"""Steps of sequential minimal optimisation on a dense block of kernel values.

The problem is that of `solvers.smo.row_steps`, in signed weights ``β_i = y_i α_i``. There, rows of the kernel
are computed one at a time. Here all values are available, and a step is two passes over rows that lie in the
cache. One pass chooses the partner. The other updates the gradient, and chooses the next sample to grow.

Both choose by float32 copies (`solvers.common.float32_keys`), in units of the violation at the start. Steps
and the stopping rule use the exact values.
"""

import numpy as np

from solvers.common.compile import inner
from solvers.common.float32_keys import NEVER, bits_for, index_of, key_of, move
from solvers.common.pair_selection import SMALLEST_SQUARE_DISTANCE
from solvers.common.reductions import larger_of, smaller_of
from solvers.common.status import CONVERGED, NOT_POSITIVE, PAUSED
from solvers.smo.certificate import extremes

# Bound above which a value belongs to a weight that cannot move.
NONE = np.float32(1e29)
# Largest violation that the comparison of partners distinguishes, in units of the violation at the start.
FARTHEST = np.float32(1e12)
# Smallest square distance in the comparison of partners, as a share of the largest diagonal value.
MIN_SHARE = np.float32(1e-7)
# Largest difference of gradients. A larger one shows that the L2 problem of an indefinite kernel has no
# minimum.
MAX_GRADIENT = 1e100


@inner
def worst_pair(F, beta, low, high):
    """Return the samples that violate the optimality conditions most.

    Parameters
    ----------
    F, beta, low, high : arrays (m,)
        Gradient, signed weights, and bounds.

    Returns
    -------
    i, j : int
        Index of the smallest F of a weight that can grow, and of the largest F of a weight that can shrink;
        −1 if there is none.
    """
    lowest, highest = extremes(F, beta, low, high)
    m, i, j = F.size, 0, 0
    while i < m and not (F[i] == lowest and beta[i] < high[i]):
        i += 1
    while j < m and not (F[j] == highest and beta[j] > low[j]):
        j += 1
    return i if i < m else -1, j if j < m else -1


@inner
def partner(K_i, level, fixed, diagonal, i, largest, bits):
    """Return the index j of about the largest ``(F_j - F_i)² / D_ij``, or −1.

    Parameters
    ----------
    K_i : array (m,)
        Kernel values of sample i with all samples.
    level : float32 array (m,)
        Gradient F, scaled.
    fixed : float32 array (m,)
        `NEVER` where a weight cannot shrink, else 0.
    diagonal : float32 array (m,)
        Diagonal values ``k(x, x) + inverse_C``.
    i : int
        Index of the sample that grows.
    largest : float32
        Largest diagonal value.
    bits : int64
        Bits of a key that contain the index.

    Returns
    -------
    int
        The index j, or −1 if no weight can shrink.
    """
    min_distance = MIN_SHARE * largest
    nothing, two = np.float32(0.0), np.float32(2.0)
    level_i, diagonal_i = level[i], diagonal[i]
    best = nothing
    for t in range(level.size):
        ahead = smaller_of(larger_of(level[t] - fixed[t] - level_i, nothing), FARTHEST)
        square_distance = larger_of(diagonal_i + diagonal[t] - two * np.float32(K_i[t]), min_distance)
        best = larger_of(best, key_of(ahead * ahead * (largest / square_distance), t, bits))
    return index_of(best, bits) if best > key_of(nothing, bits, bits) else -1


@inner
def smo_block_steps(K, diagonal, inverse_C, F, beta, low, high, tol, max_steps, scratch):
    """Take steps until the largest violation is at most ``tol``, or until ``max_steps`` steps are taken.

    Parameters
    ----------
    K : array (m, m), float32 or float64, C-contiguous
        Kernel values without labels.
    diagonal : array (m,)
        Diagonal values ``k(x, x) + inverse_C``.
    inverse_C : array (m,)
        1/C of each sample for the L2 loss, 0 for the L1 loss.
    F, beta : arrays (m,), changed in place
        Gradient and signed weights.
    low, high : arrays (m,)
        Bounds of the weights.
    tol : float
        Largest violation.
    max_steps : int
        Number of steps after which the loop stops.
    scratch : float32 array (4, m)
        Scratch memory, overwritten.

    Returns
    -------
    status : int
        CONVERGED, PAUSED (the steps are used up) or NOT_POSITIVE.
    steps : int
        Number of steps that were taken.
    gain : float
        Decrease of the objective.
    """
    m = F.size
    i, j = worst_pair(F, beta, low, high)
    if i < 0 or j < 0 or F[j] - F[i] <= tol:
        return CONVERGED, 0, 0.0
    bits = bits_for(m)
    level, fixed, blocked, near_diagonal = scratch[0], scratch[1], scratch[2], scratch[3]
    base, unit = 0.5 * (F[i] + F[j]), 1.0 / (F[j] - F[i])
    for t in range(m):
        level[t] = (F[t] - base) * unit
        fixed[t] = NEVER if beta[t] <= low[t] else 0.0
        blocked[t] = NEVER if beta[t] >= high[t] else 0.0
        near_diagonal[t] = diagonal[t]
    largest = near_diagonal[0]
    for t in range(m):
        largest = max(largest, near_diagonal[t])
    if largest == 0.0:
        largest = np.float32(1.0)  # the block contains k - 1
    gain = 0.0
    for step in range(max_steps):
        K_i = K[i]
        j = partner(K_i, level, fixed, near_diagonal, i, largest, bits)
        if j < 0 or j >= m or F[j] - F[i] <= tol:
            i, j = worst_pair(F, beta, low, high)
            if i < 0 or j < 0 or F[j] - F[i] <= tol:
                return CONVERGED, step, gain
            K_i = K[i]
        ahead = F[j] - F[i]
        if not ahead < MAX_GRADIENT:
            return NOT_POSITIVE, step, gain
        K_j = K[j]
        square_distance = max(diagonal[i] + diagonal[j] - 2.0 * K_i[j], SMALLEST_SQUARE_DISTANCE)
        slack_i, slack_j = high[i] - beta[i], beta[j] - low[j]
        delta = min(ahead / square_distance, slack_i, slack_j)
        before_i, before_j = beta[i], beta[j]
        beta[i] = high[i] if delta == slack_i else before_i + delta
        beta[j] = low[j] if delta == slack_j else before_j - delta
        if beta[i] != before_i and beta[j] != before_j:  # else the step is lost to rounding
            gain += delta * (ahead - 0.5 * delta * square_distance)
        fixed[i], blocked[i] = np.float32(0.0), NEVER if beta[i] >= high[i] else np.float32(0.0)
        fixed[j], blocked[j] = NEVER if beta[j] <= low[j] else np.float32(0.0), np.float32(0.0)
        F[i] += delta * inverse_C[i]
        F[j] -= delta * inverse_C[j]
        best = move(F, K_i, K_j, delta, level, blocked, base, unit, bits)
        i = index_of(best, bits)
        if best > NONE or i >= m:
            i, j = worst_pair(F, beta, low, high)
            if i < 0:
                return CONVERGED, step + 1, gain
    return PAUSED, max_steps, gain
