"""When a machine is done: the three stopping rules, and the paper's tolerance for each.

With w² = ‖c‖² and τ̃ = k̃(i, i), sample i violates the ε-approximation when g_i = x̃_i · c lies below

====== ============================== ==========================================================
mn     w² (1 − ε)²                    Strack (2013), 4.2.4: relative to the minimal norm
adjmn  w² − ε √(w² τ̃)                 the author's tool: relative to the ball as well
meb    (w² + τ̃ (1 − (1 + ε)²)) / 2    outside of the ball of radius (1 + ε) R̂, with R̂² = τ̃
====== ============================== ==========================================================
"""

import numpy as np
from numba import njit

MN, ADJMN, MEB = range(3)
RULES = {"mn": MN, "adjmn": ADJMN, "meb": MEB}


@njit(nogil=True, cache=True, error_model="numpy")
def violation_threshold(rule, epsilon, square_norm, square_radius):
    """Value of g below which a sample violates the ε-approximation."""
    if rule == MN:
        return square_norm * (1.0 - epsilon) ** 2
    if rule == ADJMN:
        return square_norm - epsilon * np.sqrt(square_norm * square_radius)
    return 0.5 * (square_norm + square_radius * (1.0 - (1.0 + epsilon) ** 2))


def default_tolerance(rule, square_radius, C):
    """ε of the papers: 10⁻³ for the minimal-norm rules, (7.3) for the ball."""
    if rule != MEB:
        return 1e-3
    return (2e-6 / (square_radius - 1.0 / C) + 1.0 / (15000.0 * C)) / square_radius
