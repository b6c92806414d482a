"""When a machine is done: the stopping rules, and the paper's tolerance for each.

With w² = ‖c‖² and τ̃ = k̃(i, i), sample i violates the ε-approximation when g_i = x̃_i · c lies below

========= ============================== =========================================================
mn        w² (1 − ε)²                    the author's tool, GSVM: relative to the minimal norm
violation w² (1 − ε)                     Strack (2013), Algorithm 4: V of (4.10) is at most ε
adjmn     w² − ε √(w² τ̃)                 the author's tool: relative to the ball as well
meb       (w² + τ̃ (1 − (1 + ε)²)) / 2    outside of the ball of radius (1 + ε) R̂, with R̂² = τ̃
core      the same with R² = τ̃ − w²      outside of (1 + ε) times the core set's own ball (CVM)
========= ============================== =========================================================

A search that ends because the draws failed may have missed a violator. Whether there is one is known from the
certificate, which looks at all samples: `converged_` says that none is left, and `stopping_` what happened.
"""

import numpy as np

from solvers.common.certificate import FEW_ROUNDINGS, UNIT_ROUNDOFF
from solvers.common.compile import inlined, njit
from solvers.common.status import CONVERGED, STOPPING_TEXTS, uncertified_text

MN, ADJMN, MEB, CORE, VIOLATION = range(5)
NOISE_ROUNDINGS = 1000.0  # of the largest kernel value, that ‖c‖² may be off by
RULES = {"mn": MN, "adjmn": ADJMN, "meb": MEB, "core": CORE, "violation": VIOLATION}


@njit
def violation_threshold(rule, epsilon, square_norm, square_radius):
    """Value of g below which a sample violates the ε-approximation."""
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
    """Return the value of g below which a sample is sought: a violator that rounding does not make one.

    Parameters
    ----------
    rule, epsilon, square_norm, square_radius
        As in `violation_threshold`.
    resolved : float
        Difference from ‖c‖² that rounding can make up, see `solvers.common.progress.resolution`.
    """
    threshold = violation_threshold(rule, epsilon, square_norm, square_radius)
    return min(threshold, square_norm - resolved)


@njit
def rule_holds(rule, epsilon, square_norm, square_radius, lowest, error, gap):
    """Whether no sample violates the ε-approximation, for certain.

    Parameters
    ----------
    rule, epsilon, square_norm, square_radius
        As in `violation_threshold`.
    lowest : float
        Lowest g of all samples; NaN if it is not known.
    error : float
        Bound on the error of g, ‖c‖² and R².
    gap : float
        Certified from them.
    """
    if rule == MN:
        return gap <= 1.0 - (1.0 - epsilon) ** 4
    if rule == VIOLATION:
        return gap <= 1.0 - (1.0 - epsilon) ** 2
    if not square_norm > 0.0:
        return False
    # A gap does not tell points apart whose g are not positive, and the thresholds of these rules need not
    # be. They fall with R² and are convex in ‖c‖²: the largest is at one of its ends.
    ball = max(square_radius - error, 0.0)
    threshold = max(
        violation_threshold(rule, epsilon, max(square_norm - error, 0.0), ball),
        violation_threshold(rule, epsilon, square_norm + error, ball),
    )
    return lowest - error - FEW_ROUNDINGS * UNIT_ROUNDOFF * square_radius >= threshold


def default_tolerance(rule, square_radius, C):
    """ε of the papers: 10⁻³ for the minimal-norm rules, (7.3) for the ball."""
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
    """Text of a geometric machine; `draws` is 0 if its search looked at every sample before it ended."""
    if converged:
        return CERTIFIED[rule] if rule in (MN, VIOLATION) else uncertified_text(CERTIFIED[rule], gap)
    reason = f"no violator in {draws} draws" if status == CONVERGED and draws else STOPPING_TEXTS[status]
    return uncertified_text(reason, gap)
