"""Certified gaps: upper bounds on the distance from the optimum that allow for every rounding error.

For any point c = Σ α_i x̃_i of the hull and g_i = x̃_i · c, the smallest norm is at least min_i g_i / ‖c‖.
Hence ``1 − (max(g_min, 0) / ‖c‖²)²`` bounds the relative error of ‖c‖². All g_i and ‖c‖² are sums
Σ_j α_j h_ij with α ≥ 0 and Σ α = 1. Their error is at most the error of a value h_ij plus the rounding
errors of the sum. The gap is computed from the worst values within that error. It therefore holds in exact
arithmetic, for the kernel that the user asked for.
"""

import numpy as np

from solvers.common.compile import inner, njit

UNIT_ROUNDOFF = 2.0**-53
"""Unit roundoff of float64: largest relative error of one rounding."""
ROUNDINGS_PER_STEP = 3.0
"""Rounding errors of the size of the largest value that a step adds to g."""
FEW_ROUNDINGS = 16.0
"""Rounding errors of composing a value, and of a sum beyond those of its terms."""
TERMS_IN_BLOCK, TERMS_IN_PRODUCT = 16.0, 4.0
"""Terms of a sum for each rounding of a partial sum: in `block_product`, and in a product by BLAS."""
AIMED_SHARE = 0.99
"""Share of the tolerance that solvers aim at, so that the rounding of the gap cannot exceed it."""
AFFORDABLE_SHARE = 0.5
"""Share of the tolerance above which rounding cannot be offset by a tighter tolerance."""


@njit
def error_of_sums(value_error, largest, roundings, n_steps):
    """Bound the error of g_i and ‖c‖².

    Parameters
    ----------
    value_error : float
        Bound on the error of a kernel value h_ij.
    largest : float
        Bound on the absolute value of h_ij.
    roundings : float
        Number of additions that follow one another in a sum.
    n_steps : int
        Number of steps since g was last computed from all terms.

    Returns
    -------
    float
        Bound on the absolute error.
    """
    roundings += ROUNDINGS_PER_STEP * n_steps + FEW_ROUNDINGS
    return value_error + roundings * UNIT_ROUNDOFF * largest


@inner
def drift_of(n_steps, largest):
    """Bound the rounding error that steps add to g.

    Parameters
    ----------
    n_steps : int
        Number of steps that have changed g since it was computed.
    largest : float
        Bound on the absolute value of a kernel value h_ij.

    Returns
    -------
    float
        Bound on the absolute error.
    """
    return n_steps * ROUNDINGS_PER_STEP * UNIT_ROUNDOFF * largest


@inner
def steps_at_new_C(n_steps, before, after):
    """Return the number of steps that the rounding errors of g amount to after C has changed.

    The errors come from values of the size that the diagonal had before. They are counted as errors of values
    of its size after the change. The change itself counts as one step.

    Parameters
    ----------
    n_steps : int
        Number of steps since g was last computed from all terms.
    before, after : float
        Largest entry of the diagonal, before and after the change.

    Returns
    -------
    int
        Equivalent number of steps.
    """
    share = max(before, after) / after if after > 0.0 else np.inf
    return np.int64(min((n_steps + 1.0) * share, 1e15)) + 1


@njit
def certified_gap(square_norm, lowest, error, total):
    """Return the certified gap of a point: an upper bound on the relative error of its ‖c‖².

    Parameters
    ----------
    square_norm, lowest : float
        ‖c‖² and the lowest g.
    error : float
        Bound on the error of both.
    total : float
        Sum of the weights, which rounding moves away from 1. The weights divided by it are a point of the
        hull.

    Returns
    -------
    float
        Gap between 0 and 1; 1 if no smaller bound is known.
    """
    if not 0.0 < square_norm + error < np.inf:
        return 1.0
    share = max(lowest - error, 0.0) * min(total, 1.0) / (square_norm + error)
    return 1.0 - min(share, 1.0) ** 2 if share > 0.0 else 1.0


@inner
def violation_aimed_at(tol, error, square_norm):
    """Return ε such that g_min ≥ (1 − ε)‖c‖² certifies a gap.

    The value is reduced by the rounding error, unless that exceeds `AFFORDABLE_SHARE` of it.

    Parameters
    ----------
    tol : float
        Gap to certify, between 0 and 1.
    error : float
        Bound on the error of g and ‖c‖².
    square_norm : float
        Squared norm ‖c‖² of the current point c.

    Returns
    -------
    float
        ε, the largest relative violation.
    """
    epsilon = 1.0 - np.sqrt(1.0 - AIMED_SHARE * tol)
    lost = 2.0 * error / square_norm
    return epsilon - lost if lost < AFFORDABLE_SHARE * epsilon else epsilon
