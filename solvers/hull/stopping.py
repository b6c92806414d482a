"""The stopping rules of a subproblem, and the paper's tolerance for each.

With w² = ‖c‖² and τ̃ = k̃(i, i), sample i violates the ε-approximation when g_i = x̃_i · c is below

========= ============================== =========================================================
mn        w² (1 − ε)²                    GSVM, the tool of Strack (2013): relative to the minimal norm
violation w² (1 − ε)                     Strack (2013), Algorithm 4: V of (4.10) is at most ε
adjmn     w² − ε √(w² τ̃)                 GSVM: relative to the ball as well
meb       (w² + τ̃ (1 − (1 + ε)²)) / 2    outside the ball of radius (1 + ε) R̂, with R̂² = τ̃
core      the same with R² = τ̃ − w²      outside (1 + ε) times the ball of the core set (CVM)
========= ============================== =========================================================

A search that ends because its draws failed may have missed a violator. The certificate examines all samples,
and finds whether there is one. `converged_` says that no violator is left, and `stopping_` why training
ended.
"""

import numpy as np

from solvers.common.certificate import FEW_ROUNDINGS, UNIT_ROUNDOFF
from solvers.common.compile import inlined, njit
from solvers.common.status import CONVERGED, STOPPING_TEXTS, uncertified_text

MN, ADJMN, MEB, CORE, VIOLATION = range(5)
# Largest error of ‖c‖² that counts as rounding, in roundings of the largest kernel value.
NOISE_ROUNDINGS = 1000.0
RULES = {"mn": MN, "adjmn": ADJMN, "meb": MEB, "core": CORE, "violation": VIOLATION}


@njit
def violation_threshold(rule, epsilon, square_norm, square_radius):
    """Return the value of g below which a sample violates the ε-approximation.

    Parameters
    ----------
    rule : int
        One of the values of `RULES`.
    epsilon : float
        Tolerance ε of the rule.
    square_norm : float
        Squared norm ‖c‖² of the current point c.
    square_radius : float
        Diagonal value τ̃ = k̃(i, i), which is R̂².

    Returns
    -------
    float
        The threshold.
    """
    if rule == MN:
        return square_norm * (1.0 - epsilon) ** 2
    if rule == VIOLATION:
        return square_norm * (1.0 - epsilon)
    if rule == ADJMN:
        return square_norm - epsilon * np.sqrt(square_norm * square_radius)
    ball = square_radius - square_norm if rule == CORE else square_radius
    return 0.5 * (square_norm + square_radius - (1.0 + epsilon) ** 2 * ball)


@inlined
def search_threshold(rule, epsilon, square_norm, square_radius, resolved):
    """Return the value of g below which a search accepts a sample as a violator.

    A sample is not accepted if rounding alone could cause its violation.

    Parameters
    ----------
    rule, epsilon, square_norm, square_radius
        As in `violation_threshold`.
    resolved : float
        Difference from ‖c‖² that rounding alone can cause; see `solvers.common.progress.resolution`.

    Returns
    -------
    float
        The threshold.
    """
    threshold = violation_threshold(rule, epsilon, square_norm, square_radius)
    return min(threshold, square_norm - resolved)


@njit
def rule_holds(rule, epsilon, square_norm, square_radius, lowest, error, gap):
    """Return whether it is certain that no sample violates the ε-approximation.

    Parameters
    ----------
    rule, epsilon, square_norm, square_radius
        As in `violation_threshold`.
    lowest : float
        Lowest g of all samples; NaN if it is not known.
    error : float
        Bound on the error of g, ‖c‖² and R².
    gap : float
        Gap that was certified from them.

    Returns
    -------
    bool
        True if the rule holds in exact arithmetic.
    """
    if rule == MN:
        return gap <= 1.0 - (1.0 - epsilon) ** 4
    if rule == VIOLATION:
        return gap <= 1.0 - (1.0 - epsilon) ** 2
    if not square_norm > 0.0:
        return False
    # A gap does not distinguish points whose g are not positive, and the thresholds of these rules need not
    # be positive. They decrease with R² and are convex in ‖c‖², so the largest is at an end of its interval.
    ball = max(square_radius - error, 0.0)
    threshold = max(
        violation_threshold(rule, epsilon, max(square_norm - error, 0.0), ball),
        violation_threshold(rule, epsilon, square_norm + error, ball),
    )
    return lowest - error - FEW_ROUNDINGS * UNIT_ROUNDOFF * square_radius >= threshold


def default_tolerance(rule, square_radius, C):
    """Return ε of the papers: 10⁻³ for the minimal-norm rules, (7.3) for the balls.

    Parameters
    ----------
    rule : int
        One of the values of `RULES`.
    square_radius : float
        Diagonal value τ̃ = k̃(i, i).
    C : float
        Penalty of a sample.

    Returns
    -------
    float
        The tolerance ε.
    """
    if rule in (MN, VIOLATION, ADJMN):
        return 1e-3
    return (2e-6 / (square_radius - 1.0 / C) + 1.0 / (15000.0 * C)) / square_radius


CERTIFIED = {
    MN: "certified: gap <= 1 - (1 - tol)^4",
    VIOLATION: "certified: gap <= 1 - (1 - tol)^2",
    ADJMN: "certified: g >= w^2 - tol w R of every sample",
    MEB: "certified: every sample within (1 + tol) R",
    CORE: "certified: every sample within (1 + tol) of the core set's ball",
}


def rule_text(rule, converged, gap, status, draws):
    """Return the text of `stopping_` for a subproblem.

    Parameters
    ----------
    rule : int
        One of the values of `RULES`.
    converged : bool
        Whether the rule is certified to hold.
    gap : float
        Certified gap; NaN if it is not known.
    status : int
        One of the statuses of `solvers.common.status`.
    draws : int
        Number of draws of the search; 0 if the search examined every sample before it ended.

    Returns
    -------
    str
        Certified bounds, or the reason why the training ended and its gap.
    """
    if converged:
        return CERTIFIED[rule] if rule in (MN, VIOLATION) else uncertified_text(CERTIFIED[rule], gap)
    reason = f"no violator in {draws} draws" if status == CONVERGED and draws else STOPPING_TEXTS[status]
    return uncertified_text(reason, gap)
