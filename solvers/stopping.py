"""When a machine is done: the stopping rules, and the paper's tolerance for each.

With w² = ‖c‖² and τ̃ = k̃(i, i), sample i violates the ε-approximation when g_i = x̃_i · c lies below

====== ============================== ==========================================================
mn     w² (1 − ε)²                    Strack (2013), 4.2.4: relative to the minimal norm
adjmn  w² − ε √(w² τ̃)                 the author's tool: relative to the ball as well
meb    (w² + τ̃ (1 − (1 + ε)²)) / 2    outside of the ball of radius (1 + ε) R̂, with R̂² = τ̃
core   the same with R² = τ̃ − w²      outside of (1 + ε) times the core set's own ball (CVM)
====== ============================== ==========================================================
"""

import numpy as np
from numba import njit

MN, ADJMN, MEB, CORE = range(4)
NOISE_ROUNDINGS = 1000.0  # of the largest kernel value, that ‖c‖² may be off by
RULES = {"mn": MN, "adjmn": ADJMN, "meb": MEB, "core": CORE}


@njit(nogil=True, cache=True, error_model="numpy")
def violation_threshold(rule, epsilon, square_norm, square_radius):
    """Value of g below which a sample violates the ε-approximation."""
    if rule == MN:
        return square_norm * (1.0 - epsilon) ** 2
    if rule == ADJMN:
        return square_norm - epsilon * np.sqrt(square_norm * square_radius)
    ball = square_radius - square_norm if rule == CORE else square_radius
    return 0.5 * (square_norm + square_radius - (1.0 + epsilon) ** 2 * ball)


def default_tolerance(rule, square_radius, C):
    """ε of the papers: 10⁻³ for the minimal-norm rules, (7.3) for the ball."""
    if rule in (MN, ADJMN):
        return 1e-3
    return (2e-6 / (square_radius - 1.0 / C) + 1.0 / (15000.0 * C)) / square_radius
