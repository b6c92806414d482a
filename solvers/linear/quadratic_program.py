"""The dual of a one-slack cutting-plane problem: a concave quadratic over the cuts, solved by active sets."""

import numpy as np

from solvers.common.compile import inner, njit

PROXIMITIES = 1e-11, 1e-13, 1e-15
"""Weights of ½ ‖α − current α‖², as shares of the largest entry of H. They make all systems regular.

Cuts often depend on one another linearly. Then only the distance from the current weights tells solutions
apart. A smaller weight is taken where the steps with a larger one are too short to reach the tolerance: where
cuts differ little from one another, because all features are far from the origin.
"""
CHANGES_PER_CUT, FEWEST_CHANGES = 10, 100
"""Limit of the changes of the active set: a number for each cut, and a number beside."""


def maximise(H, delta, C, tol, alpha):
    """Maximise δ·α − ½ α·Hα over α ≥ 0, Σ α ≤ C, starting from a feasible α.

    A primal active-set method: it solves the problem over the cuts of positive weight, with a small penalty
    on the distance from their weights. It moves towards the solution until a weight becomes 0, and adds the
    cut with the largest gradient. Every α on the way is feasible, so that the value at any of them bounds the
    optimum of the primal problem from below.

    Parameters
    ----------
    H : float64 ndarray of shape (m, m), C-contiguous
        Inner products of the cuts, positive semidefinite.
    delta : float64 ndarray of shape (m,)
        Constant of each cut.
    C : float
        Largest sum of the weights, positive. The difference is the weight of the empty cut, which is 0.
    tol : float
        Largest distance of the value from the maximum, as a share of C.
    alpha : float64 ndarray of shape (m,)
        Feasible start; receives the weights.

    Returns
    -------
    int
        Number of systems of equations that were solved.
    """
    m = delta.size
    weights = np.append(alpha, max(0.0, C - alpha.sum()))  # entry m is the empty cut
    largest = max(float(H.diagonal().max()), 1.0 / C)  # cuts may be 0
    active, work = np.empty(m + 1, np.int64), np.empty((m + 5, m + 1))
    n_systems, limit = 0, CHANGES_PER_CUT * m + FEWEST_CHANGES
    for proximity in PROXIMITIES:
        n = _change_active_set(H, delta, C, tol, proximity * largest, limit, weights, active, work)
        n_systems += n
        if n < limit:
            break
    total = weights[:m].sum()
    alpha[:] = weights[:m] * (C / total if total > C else 1.0)
    return n_systems


@njit(allocates=False)
def _change_active_set(H, delta, C, tol, ridge, limit, weights, active, work):
    """Change the active set, one cut at a time, until the value is within C · `tol` of the maximum.

    The distance from the maximum is at most C max_c g_c − Σ α_c g_c for the gradient g.

    Parameters
    ----------
    H : float64 array (m, m)
        Inner products of the cuts.
    delta : float64 array (m,)
        Constant of each cut.
    C : float
        Sum of the weights.
    tol : float
        Largest distance of the value from the maximum, as a share of C.
    ridge : float
        Weight of the penalty on the distance from the current weights.
    limit : int
        Largest number of systems of equations.
    weights : float64 array (m + 1,)
        Feasible start, that of the empty cut last; receives the weights.
    active : int64 array (m + 1,)
        Workspace.
    work : float64 array (m + 5, m + 1)
        Workspace.

    Returns
    -------
    int
        Number of systems of equations that were solved.
    """
    m = delta.size
    factor, sides, change, gradient = work[: m + 1], work[m + 1 : m + 3], work[m + 3], work[m + 4]
    entering, n_systems, has_failed = -1, 0, False
    largest = _largest_gradient(H, delta, weights, gradient)
    while n_systems < limit:
        n_active = 0
        for c in range(m + 1):
            if weights[c] > 0.0 or c == entering:
                active[n_active] = c
                n_active += 1
        chosen = active[:n_active]
        _solve_on(H, ridge, chosen, gradient, factor, sides, change)
        n_systems += 1
        step, blocking = 1.0, -1
        for c in chosen:
            if weights[c] + change[c] <= 0.0:
                ratio = -weights[c] / change[c] if change[c] < 0.0 else 0.0
                if ratio < step or blocking < 0:
                    step, blocking = min(step, ratio), c
        for c in chosen:
            weights[c] = max(0.0, weights[c] + step * change[c])
        if blocking >= 0:
            weights[blocking] = 0.0
        total = 0.0
        for c in range(m + 1):
            total += weights[c]
        for c in range(m + 1):  # the rounding errors of the changes do not add up to a sum other than C
            weights[c] *= C / total
        largest = _largest_gradient(H, delta, weights, gradient)
        if blocking >= 0:
            if blocking == entering:  # the other weights are not optimal yet, or rounding hides the gain
                if has_failed:
                    break
                has_failed = True
            if step > 0.0 or has_failed:
                entering = -1
            continue
        distance = C * gradient[largest]
        for c in range(m):
            distance -= weights[c] * gradient[c]
        if distance <= C * tol:
            break
        has_failed, entering = False, largest
    return n_systems


@inner
def _solve_on(H, ridge, chosen, gradient, factor, sides, change):
    """Find the change of chosen weights, of sum 0, that maximises the value less ½ ridge ‖change‖².

    It is (H + ridge)⁻¹ (gradient − multiplier), computed from differences of gradients. Its rounding error is
    then relative to the change, which becomes small.

    Parameters
    ----------
    H : float64 array (m, m)
        Inner products of the cuts.
    ridge : float
        Weight of the penalty on the change.
    chosen : int64 array (k,)
        Chosen cuts, ascending; m is the empty cut.
    gradient : float64 array (m + 1,)
        Gradient of the value.
    factor : float64 array (m + 1, m + 1)
        Workspace for the Cholesky factor.
    sides : float64 array (2, m + 1)
        Workspace for two right-hand sides.
    change : float64 array (m + 1,)
        Receives the change of each chosen weight.
    """
    k, m = chosen.size, H.shape[0]
    ones, differences = sides[0], sides[1]
    for a in range(k):
        c = chosen[a]
        ones[a], differences[a] = 1.0, gradient[c] - gradient[chosen[0]]
        for b in range(a, k):
            e = chosen[b]
            factor[a, b] = H[c, e] if c < m and e < m else 0.0
        factor[a, a] += ridge
    for a in range(k):  # the upper factor, row by row
        root = np.sqrt(max(factor[a, a], ridge))
        for b in range(a, k):
            factor[a, b] /= root
        factor[a, a] = root
        for i in range(a + 1, k):
            f = factor[a, i]
            if f != 0.0:
                for b in range(i, k):
                    factor[i, b] -= f * factor[a, b]
    for a in range(k):
        ones[a] /= factor[a, a]
        differences[a] /= factor[a, a]
        for b in range(a + 1, k):
            ones[b] -= factor[a, b] * ones[a]
            differences[b] -= factor[a, b] * differences[a]
    for a in range(k - 1, -1, -1):
        for b in range(a + 1, k):
            ones[a] -= factor[a, b] * ones[b]
            differences[a] -= factor[a, b] * differences[b]
        ones[a] /= factor[a, a]
        differences[a] /= factor[a, a]
    of_differences, of_ones = 0.0, 0.0
    for a in range(k):
        of_differences += differences[a]
        of_ones += ones[a]
    for a in range(k):
        change[chosen[a]] = differences[a] - of_differences / of_ones * ones[a]


@inner
def _largest_gradient(H, delta, weights, gradient):
    """Return the cut with the largest gradient δ − Hα.

    Parameters
    ----------
    H : float64 array (m, m)
        Inner products of the cuts.
    delta : float64 array (m,)
        Constant of each cut.
    weights : float64 array (m + 1,)
        Weights of the cuts and of the empty cut.
    gradient : float64 array (m + 1,)
        Receives the gradient; that of the empty cut is 0.

    Returns
    -------
    int
        Index of the cut; m is the empty cut.
    """
    m = delta.size
    for c in range(m):
        gradient[c] = delta[c]
    gradient[m] = 0.0
    for c in range(m):
        w = weights[c]
        if w != 0.0:
            for e in range(m):
                gradient[e] -= w * H[c, e]
    largest = m
    for c in range(m):
        if gradient[c] > gradient[largest]:
            largest = c
    return largest
