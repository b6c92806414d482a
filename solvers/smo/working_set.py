"""Decomposition: steps that minimise over a working set of q weights (Joachims 1999).

Half of the working set are the weights with the lowest gradient that can grow, and half are those with the
highest gradient that can shrink. With q = 2 this is the maximum violating pair, which `solvers.smo.row_steps`
takes by itself.
"""

import numpy as np

from solvers.common.compile import inner, njit
from solvers.common.status import CONVERGED, NOT_POSITIVE, PAUSED, ROW_MISSING, STALLED
from solvers.smo.row_steps import smallest_violation, smo_steps


@inner
def take_lowest(F, sign, can_move, is_chosen, chosen, first, count):
    """Append the samples with the lowest ``sign · F`` to a working set, without those that are in it.

    Parameters
    ----------
    F : array (n,)
        Gradient of the dual problem, which is minimised.
    sign : {1.0, -1.0}
        1 to take the lowest values of F, −1 to take the highest.
    can_move : bool array (n,)
        Whether a weight can grow, if `sign` is 1, or shrink, if it is −1.
    is_chosen : bool array (n,)
        Whether a sample is in the working set, changed in place.
    chosen : int64 array (q,)
        Receives the samples from index `first` on, in that order.
    first, count : int
        First index, and largest number of samples.

    Returns
    -------
    int
        Index after the last sample.
    """
    for k in range(first, first + count):
        best, lowest = -1, np.inf
        for i in range(F.size):
            if can_move[i] and not is_chosen[i] and sign * F[i] < lowest:
                best, lowest = i, sign * F[i]
        if best < 0:
            return k
        chosen[k], is_chosen[best] = best, True
    return first + count


@njit
def working_set_steps(
    rows, slot, clock, F, beta, low, high, diagonal, inverse_C, tol, max_steps, second_order, size
):
    """Minimise over one working set after the other until the point is optimal.

    Parameters
    ----------
    rows, slot, clock, F, beta, low, high, diagonal, inverse_C, tol, max_steps, second_order
        As in `solvers.smo.row_steps.smo_steps`.
    size : int
        Number q of weights of a working set, even, at most the number of rows that fit in `rows`.

    Returns
    -------
    tuple
        ``(status, steps, wanted, gain)`` as in `smo_steps`; `steps` counts pair steps of all working sets.
    """
    tol = smallest_violation(tol, diagonal, beta)
    steps, gain = 0, 0.0
    chosen, is_chosen = np.empty(size, np.int64), np.zeros(F.size, np.bool_)
    while steps < max_steps:
        is_chosen[:] = False
        can_shrink = beta > low
        n_growing = take_lowest(F, 1.0, beta < high, is_chosen, chosen, 0, size // 2)
        n = take_lowest(F, -1.0, can_shrink, is_chosen, chosen, n_growing, size // 2)
        members, highest = chosen[:n], -np.inf
        for i in members:  # the sample with the highest gradient may be in the first half
            highest = max(highest, F[i] if can_shrink[i] else -np.inf)
        if n_growing == 0 or highest - F[members[0]] <= tol:
            return CONVERGED, steps, -1, gain
        clock[-1] += 1
        for i in members:
            if slot[i] >= 0:
                clock[slot[i]] = clock[-1]
        for i in members:
            if slot[i] < 0:
                return ROW_MISSING, steps, i, gain
        K = np.empty((n, n))
        for a in range(n):
            for b in range(n):
                K[a, b] = rows[slot[members[a]], members[b]]
        part, times = beta[members], np.zeros(n + 1, np.int64)
        status, taken, _, gained = smo_steps(
            *(K, np.arange(n), times, F[members], part, low[members], high[members]),
            *(diagonal[members], inverse_C[members], tol, max_steps - steps, second_order),
        )
        if taken == 0:
            return (STALLED if status == CONVERGED else status), steps, -1, gain
        for a in range(n):
            i = members[a]
            delta = part[a] - beta[i]
            if delta != 0.0:
                row = rows[slot[i]]
                for t in range(F.size):
                    F[t] += delta * row[t]
                F[i] += delta * inverse_C[i]
                beta[i] = part[a]
        steps, gain = steps + taken, gain + gained
        if status == NOT_POSITIVE:
            return NOT_POSITIVE, steps, -1, gain
    return PAUSED, steps, -1, gain
