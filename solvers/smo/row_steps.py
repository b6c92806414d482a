"""Sequential minimal optimisation, with the pairs of largest gain or of largest violation.

The gain is that of Fan, Chen and Lin (2005), the violation that of Keerthi et al. (2001).

In the signed weights ``β_i = y_i α_i`` the dual of a support vector machine is ``min ½ βᵀ(K +
diag(inverse_C))β - yᵀβ`` over ``low <= β <= high``, ``Σ β = 0``. The L1 loss has a box and ``inverse_C = 0``;
the L2 loss has half-lines and ``inverse_C = 1 / C``. With the gradient ``F`` the solution is optimal to
``tol`` when ``max F over {β > low} - min F over {β < high} <= tol``: LIBSVM's rule.
"""

from solvers.common.compile import inner, njit
from solvers.common.pair_selection import SMALLEST_SQUARE_DISTANCE, lowest_and_highest, second_order_partner
from solvers.common.progress import resolution
from solvers.common.reductions import total_size
from solvers.common.status import CONVERGED, NOT_POSITIVE, PAUSED, ROW_MISSING, STALLED
from solvers.smo.certificate import largest_size

# Largest difference of gradients. A larger one shows that the L2 problem of an indefinite kernel has no
# minimum.
MAX_GRADIENT = 1e100


@inner
def smallest_violation(tol, diagonal, beta):
    """Return the violation that ends a training: `tol`, or what rounding alone can cause if that is larger.

    Parameters
    ----------
    tol : float
        Largest violation that is allowed.
    diagonal : array (n,)
        Diagonal values ``k(x, x) + inverse_C``.
    beta : array (n,)
        Signed weights.

    Returns
    -------
    float
        The violation.
    """
    return max(tol, 2.0 * resolution(largest_size(diagonal) * total_size(beta) + 1.0))


@njit
def smo_steps(rows, slot, clock, F, beta, low, high, diagonal, inverse_C, tol, max_steps, second_order=True):
    """Take steps until the point is optimal, the steps are used up, or a kernel row is missing.

    Parameters
    ----------
    rows : array (n_slots, n)
        Kernel rows available. The row of sample i is ``rows[slot[i]]``, and is missing if ``slot[i] < 0``.
    slot : int64 array (n,)
        Slot of the row of each sample, or a negative number.
    clock : int64 array (n_slots + 1,)
        Time at which each row was last used; the last entry is the current time, in uses.
    F, beta : arrays (n,), changed in place
        Gradient and signed weights.
    low, high : arrays (n,)
        Bounds of the weights.
    diagonal : array (n,)
        Diagonal values ``k(x, x) + inverse_C``.
    inverse_C : array (n,)
        1/C of each sample for the L2 loss, 0 for the L1 loss.
    tol : float
        Largest violation. The violation that rounding alone can cause replaces it if that is larger.
    max_steps : int
        Number of steps after which the loop stops.
    second_order : bool, default=True
        Whether the weight that shrinks is the one with the largest gain; otherwise it is the one with the
        largest violation.

    Returns
    -------
    status : int
        CONVERGED, PAUSED, ROW_MISSING, NOT_POSITIVE or STALLED.
    steps : int
        Number of steps that were taken.
    wanted : int
        The sample whose row is missing, or -1.
    gain : float
        Decrease of the objective.
    """
    n = F.size
    can_grow = beta < high
    can_shrink = beta > low
    gain = 0.0
    tol = smallest_violation(tol, diagonal, beta)
    for step in range(max_steps):
        i, worst = lowest_and_highest(F, can_grow, can_shrink)
        if i < 0 or worst < 0 or F[worst] - F[i] <= tol:
            return CONVERGED, step, -1, gain
        if not F[worst] - F[i] < MAX_GRADIENT:
            return NOT_POSITIVE, step, -1, gain
        if slot[i] < 0:
            return ROW_MISSING, step, i, gain
        clock[-1] += 1
        clock[slot[i]] = clock[-1]
        row_i = rows[slot[i]]
        j = second_order_partner(F, can_shrink, row_i, diagonal, i) if second_order else worst
        if j < 0:
            return STALLED, step, -1, gain
        if slot[j] < 0:
            return ROW_MISSING, step, j, gain
        clock[slot[j]] = clock[-1]
        row_j = rows[slot[j]]
        square_distance = max(diagonal[i] + diagonal[j] - 2.0 * row_i[j], SMALLEST_SQUARE_DISTANCE)
        slack_i, slack_j = high[i] - beta[i], beta[j] - low[j]
        delta = min((F[j] - F[i]) / square_distance, slack_i, slack_j)
        gain += delta * (F[j] - F[i] - 0.5 * delta * square_distance)
        beta[i] = high[i] if delta == slack_i else beta[i] + delta
        beta[j] = low[j] if delta == slack_j else beta[j] - delta
        can_grow[i], can_shrink[i] = beta[i] < high[i], beta[i] > low[i]
        can_grow[j], can_shrink[j] = beta[j] < high[j], beta[j] > low[j]
        for t in range(n):
            F[t] += delta * (row_i[t] - row_j[t])
        F[i] += delta * inverse_C[i]
        F[j] -= delta * inverse_C[j]
    return PAUSED, max_steps, -1, gain
