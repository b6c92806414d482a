"""How far a machine is from optimal, at most: gaps that allow for every rounding.

For any point c = Σ α_i x̃_i of the hull and g_i = x̃_i · c, the smallest norm is at least min_i g_i / ‖c‖,
so that ``1 − (max(g_min, 0) / ‖c‖²)²`` bounds the relative error of ‖c‖². All g_i and ‖c‖² are sums
Σ_j α_j h_ij with α ≥ 0 and Σ α = 1, hence off by no more than a value h_ij is, plus the roundings of the sum
itself. The gap is computed from the worst values within that distance: it holds for the kernel that was asked
for, in exact arithmetic.
"""

import numpy as np

from solvers.common.compile import inner, njit

UNIT_ROUNDOFF = 2.0**-53
ROUNDINGS_PER_STEP = 3.0  # of the largest value, that a step adds to g
FEW_ROUNDINGS = 16.0  # of putting a value together, and of a sum beyond those for its terms
# Terms of a sum for each rounding that a partial sum sees: in `block_product`, and in a product by BLAS.
TERMS_IN_BLOCK, TERMS_IN_PRODUCT = 16.0, 4.0
# Solvers aim a little inside their tolerance, so that the rounding of the gap cannot push it out.
AIMED_SHARE = 0.99
# Rounding that takes more than this share of the tolerance cannot be made up for by a tighter one.
AFFORDABLE_SHARE = 0.5


@njit
def error_of_sums(value_error, largest, roundings, n_steps):
    """Bound the error of g_i and ‖c‖².

    Parameters
    ----------
    value_error : float
        Bound on the error of a value h_ij.
    largest : float
        Bound on their size.
    roundings : float
        Length of the chain of additions that makes a sum.
    n_steps : int
        Steps since g was last computed from all of them.
    """
    roundings += ROUNDINGS_PER_STEP * n_steps + FEW_ROUNDINGS
    return value_error + roundings * UNIT_ROUNDOFF * largest


@inner
def drift_of(n_steps, largest):
    """Bound what rounding moves g by in some steps, where `largest` bounds the size of the values h_ij."""
    return n_steps * ROUNDINGS_PER_STEP * UNIT_ROUNDOFF * largest


@inner
def steps_at_new_C(n_steps, before, after):
    """Return as how many steps the roundings of g count once C has changed, that change included.

    They were of values as large as the diagonal was before, and are taken for those of the diagonal after.

    Parameters
    ----------
    n_steps : int
        Since g was last computed from all of them.
    before, after : float
        Largest entry of the diagonal.
    """
    share = max(before, after) / after if after > 0.0 else np.inf
    return np.int64(min((n_steps + 1.0) * share, 1e15)) + 1


@njit
def certified_gap(square_norm, lowest, error, total):
    """Return the largest gap of a point whose ‖c‖² and lowest g are off by at most `error`; 1 if unknown.

    Parameters
    ----------
    square_norm, lowest, error : float
    total : float
        Sum of its weights, which rounding moves away from 1: divided by it, they are a point of the hull.
    """
    if not 0.0 < square_norm + error < np.inf:
        return 1.0
    share = max(lowest - error, 0.0) * min(total, 1.0) / (square_norm + error)
    return 1.0 - min(share, 1.0) ** 2 if share > 0.0 else 1.0


@inner
def violation_aimed_at(tol, error, square_norm):
    """Return ε so that g_min ≥ (1 − ε)‖c‖² certifies the gap `tol`, where rounding leaves room for it."""
    epsilon = 1.0 - np.sqrt(1.0 - AIMED_SHARE * tol)
    lost = 2.0 * error / square_norm
    return epsilon - lost if lost < AFFORDABLE_SHARE * epsilon else epsilon
