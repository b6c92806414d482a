"""Exact minimisation of the hinge-loss objective on a half-line (Franc and Sonnenburg 2009, section 3.1)."""

import numpy as np

from solvers.common.compile import njit


def line_minimum(slack, change, penalty, curvature, slope):
    """Minimise slope · t + ½ curvature · t² + Σ penalty_i max(0, slack_i + t change_i) over t ≥ 0.

    The derivative is piecewise linear and ascending, with a jump where a sample begins or ceases to have a
    loss. The breakpoints are halved around a pivot until none is left, which takes linear time on average.

    Parameters
    ----------
    slack : float64 ndarray of shape (n,)
        1 minus the margin of each sample at t = 0.
    change : float64 ndarray of shape (n,)
        Change of the slack of each sample for t = 1.
    penalty : float64 ndarray of shape (n,)
        Penalty of each sample, positive.
    curvature, slope : float
        Derivatives of ½ ‖w‖² at t = 0; the curvature is positive.

    Returns
    -------
    float
        The minimiser, at least 0.
    """
    point, jump = np.empty((2, slack.size))
    return _between_breakpoints(slack, change, penalty, curvature, slope, point, jump)


@njit(allocates=False)
def _between_breakpoints(slack, change, penalty, curvature, slope, point, jump):
    """Return the zero of the derivative, which is found by halving the set of breakpoints.

    Parameters
    ----------
    slack, change, penalty : float64 array (n,)
        As in `line_minimum`.
    curvature, slope : float
        As in `line_minimum`.
    point, jump : float64 array (n,)
        Workspace for the breakpoints and the jumps of the derivative there.

    Returns
    -------
    float
        The minimiser, at least 0.
    """
    n = slack.size
    left, n_points = slope, 0
    for i in range(n):
        d = change[i]
        if d == 0.0:
            continue
        t = -slack[i] / d
        if slack[i] > 0.0 or (slack[i] == 0.0 and d > 0.0):
            left += penalty[i] * d
        if t > 0.0:
            point[n_points], jump[n_points] = t, penalty[i] * abs(d)
            n_points += 1
    if left >= 0.0:
        return 0.0
    first, last, low, high = 0, n_points, 0.0, np.inf
    while first < last:
        pivot = point[(first + last) // 2]
        below, equal, jumps = first, first, 0.0  # [first, below) < pivot, [below, equal) = pivot
        for i in range(first, last):
            t, j = point[i], jump[i]
            if t > pivot:
                continue
            point[i], jump[i] = point[equal], jump[equal]
            point[equal], jump[equal] = point[below], jump[below]
            if t < pivot:
                point[below], jump[below] = t, j
                below += 1
            else:
                point[equal], jump[equal] = t, j
            equal += 1
        for i in range(first, below):
            jumps += jump[i]
        before = left + jumps + curvature * pivot
        if before >= 0.0:
            last, high = below, pivot
            continue
        for i in range(below, equal):
            jumps += jump[i]
        if left + jumps + curvature * pivot >= 0.0:
            return pivot
        first, left, low = equal, left + jumps, pivot
    return min(max(-left / curvature, low), high)
