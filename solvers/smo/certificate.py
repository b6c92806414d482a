"""Properties of a point of the SMO problem: its bias, its violation and its duality gap.

Signed weights ``β_i = y_i α_i``, bounds and the gradient ``F`` are those of `solvers.smo.row_steps`.
"""

import numpy as np

from solvers.common.certificate import FEW_ROUNDINGS, UNIT_ROUNDOFF
from solvers.common.compile import inlined, njit
from solvers.common.reductions import larger_of, smaller_of
from solvers.common.status import NOT_POSITIVE, STOPPING_TEXTS

# Largest distance from a bound at which a weight counts as at the bound, as a share of the smaller of two
# values: the width between its bounds, and the largest weight. Roundings grow with the weights, and not with
# bounds that no weight reaches.
AT_BOUND = 1e-11
# Number added to the F of a weight that cannot grow, and subtracted from the F of one that cannot shrink.
# The other one is the largest size of an F. An extreme beyond it shows that no weight can move.
OUT_OF_REACH, LARGEST_F = 1e300, 1e299

SMO_STOPPING_TEXTS = {**STOPPING_TEXTS, NOT_POSITIVE: "the kernel is not positive definite"}


@njit(allocates=False)
def extremes(F, beta, low, high):
    """Return the smallest finite F of the weights that can grow, and the largest of those that can shrink.

    Parameters
    ----------
    F, beta, low, high : arrays (m,)
        Gradient, signed weights, and bounds.

    Returns
    -------
    lowest, highest : float
        The extremes; infinite and minus infinity if no weight can move.
    """
    lowest, highest = OUT_OF_REACH, -OUT_OF_REACH
    for t in range(F.size):
        lowest = smaller_of(lowest, F[t] + OUT_OF_REACH * (beta[t] >= high[t]))
        highest = larger_of(highest, F[t] - OUT_OF_REACH * (beta[t] <= low[t]))
    return lowest if lowest < LARGEST_F else np.inf, highest if highest > -LARGEST_F else -np.inf


@inlined
def largest_size(beta):
    """Return the largest of the weights without their signs.

    Parameters
    ----------
    beta : array (m,)
        Signed weights.

    Returns
    -------
    float
        Largest absolute weight; 0 without weights.
    """
    largest = 0.0
    for t in range(beta.size):
        largest = larger_of(largest, abs(beta[t]))
    return largest


@inlined
def rounding_at_bound(low, high, largest):
    """Return the distance from a bound within which a weight counts as at the bound.

    Parameters
    ----------
    low, high : float
        Bounds of the weight.
    largest : float
        Largest of all weights without their signs.

    Returns
    -------
    float
        The distance; 0 for an infinite bound.
    """
    width = high - low
    return AT_BOUND * smaller_of(width, largest) if width < np.inf else 0.0


@njit(allocates=False)
def set_to_bounds(beta, low, high, max_change):
    """Move weights that differ from a bound by rounding only to that bound.

    Parameters
    ----------
    beta : array (m,)
        Signed weights, changed in place.
    low, high : arrays (m,)
        Bounds of the weights.
    max_change : float
        Largest sum of the changes. If the changes would exceed it, no weight is changed.

    Returns
    -------
    change : float
        Sum of the changes; 0 if no weight is changed.
    """
    largest, change = largest_size(beta), 0.0
    for t in range(beta.size):
        rounding = rounding_at_bound(low[t], high[t], largest)
        nearest = min(beta[t] - low[t], high[t] - beta[t])
        change += nearest if nearest <= rounding else 0.0
    if change == 0.0 or not change <= max_change:
        return 0.0
    for t in range(beta.size):
        rounding = rounding_at_bound(low[t], high[t], largest)
        if beta[t] - low[t] <= rounding:
            beta[t] = low[t]
        elif high[t] - beta[t] <= rounding:
            beta[t] = high[t]
    return change


@inlined
def moves_of(weight, low, high, largest):
    """Return whether a weight can grow, and whether it can shrink, by more than rounding.

    Parameters
    ----------
    weight : float
        Current weight, with the sign of its label.
    low, high : float
        Smallest and largest value of the weight.
    largest : float
        Largest of all weights without their signs.

    Returns
    -------
    can_grow, can_shrink : bool
        Whether the weight can grow, and whether it can shrink.
    """
    rounding = rounding_at_bound(low, high, largest)
    return weight < high - rounding, weight > low + rounding


@njit(allocates=False)
def bias_of(F, beta, low, high):
    """Return the mean of −F over the free weights or, if none is free, the bias of LIBSVM.

    A weight within roundings of a bound counts as at the bound. If the penalties of two classes have the
    same sum, all weights may be at bounds, and rounding would then decide which of them are free.

    Parameters
    ----------
    F, beta, low, high : arrays (m,)
        Gradient, signed weights, and bounds.

    Returns
    -------
    float
        Intercept b of the decision function.
    """
    n_free, total, largest = 0, 0.0, largest_size(beta)
    lowest, highest = OUT_OF_REACH, -OUT_OF_REACH
    for t in range(F.size):
        can_grow, can_shrink = moves_of(beta[t], low[t], high[t], largest)
        n_free += can_grow & can_shrink
        lowest = smaller_of(lowest, F[t] + OUT_OF_REACH * (can_shrink | (not can_grow)))
        highest = larger_of(highest, F[t] - OUT_OF_REACH * (can_grow | (not can_shrink)))
    if n_free:
        for t in range(F.size):
            can_grow, can_shrink = moves_of(beta[t], low[t], high[t], largest)
            total += F[t] if can_grow & can_shrink else 0.0
        return -total / n_free
    if lowest < LARGEST_F and highest > -LARGEST_F:
        return -0.5 * (lowest + highest)
    if lowest < LARGEST_F:
        return -lowest
    return -highest if highest > -LARGEST_F else 0.0


@njit(allocates=False)
def gap_of(F, beta, y, C, inverse_C, hinge, bias, error):
    """Bound the duality gap as a share of the primal objective.

    Parameters
    ----------
    F, beta, y, C, inverse_C : arrays (m,)
        Gradient, signed weights, labels, penalties, and 1/C. ``inverse_C`` is zero for the hinge loss; ``C``
        may be infinite.
    hinge : bool
        Whether the loss is C ξ; if not, it is ½ C ξ².
    bias : float
        Intercept b of the decision function.
    error : float
        Bound on the error of a value of ``F``; with 0, the result is an estimate instead of a bound.

    Returns
    -------
    float
        The gap; infinite if the primal objective is not positive and finite.
    """
    m = F.size
    weight, product, magnitude, ridge, imbalance = 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(m):
        alpha = abs(beta[t])
        weight += alpha
        product += beta[t] * F[t]
        magnitude += alpha * abs(F[t])
        ridge += inverse_C[t] * beta[t] * beta[t]
        imbalance += beta[t]
    quadratic = product + weight  # β·F = βᵀQβ − Σα
    # Rounding of a sum over all samples, and of the terms computed from it.
    rounding = (m + FEW_ROUNDINGS) * UNIT_ROUNDOFF if error > 0.0 else 0.0
    doubt = error * (weight + 1.0) + rounding * (magnitude + weight)
    # A sum Σ β that is not quite zero moves the dual by as much as a bias can.
    imbalance = abs(imbalance) + rounding * weight
    dual = weight - 0.5 * (quadratic + doubt) - imbalance * (1.0 + abs(bias))
    dual -= rounding * (weight + abs(quadratic))
    # If the dual is not positive, a smaller primal objective gives a larger gap.
    sign = 1.0 if dual > 0.0 else -1.0
    loss, largest, no_slack = 0.0, 0.0, False
    for t in range(m):
        # f(x_t) is F_t + y_t without 1/C's share.
        slack = max(0.0, sign * error - y[t] * (F[t] - inverse_C[t] * beta[t] + bias))
        largest = max(largest, slack)
        if C[t] == np.inf:
            no_slack = True
        else:
            loss += C[t] * slack if hinge else 0.5 * C[t] * slack * slack
    square_norm = max(0.0, quadratic - ridge + sign * doubt)
    primal = 0.5 * square_norm + loss
    if no_slack:  # the nearest solution without slack is this one, scaled
        primal = 0.5 * square_norm / (1.0 - largest) ** 2 if largest < 1.0 else np.inf
    primal *= 1.0 + sign * rounding
    if not 0.0 < primal < np.inf:
        return np.inf
    return max(0.0, (primal - dual) / primal) * (1.0 + rounding)
