"""Detection of steps that cannot succeed: rounding hides their gain, or far too many would be needed."""

import numpy as np

from solvers.common.certificate import FEW_ROUNDINGS, UNIT_ROUNDOFF
from solvers.common.compile import inner

FIRST_LOOK, STEPS_PER_SAMPLE = 1 << 14, 128
"""Steps before the first check of the progress: the larger of a total and a number for each sample."""
MAX_LOOKS = 128.0
"""Largest number of steps, taken or predicted, as a multiple of the steps before the first check."""
DRAWS_PER_STEP = 16
"""Approximate number of draws that take as long as a step."""


@inner
def resolution(largest):
    """Return the largest difference of two g, or of ‖c‖² and a g, that rounding alone can produce.

    Parameters
    ----------
    largest : float
        Bound on the absolute value of a kernel value.

    Returns
    -------
    float
        Difference below which an order is not significant.
    """
    return FEW_ROUNDINGS * UNIT_ROUNDOFF * largest


@inner
def first_look(n):
    """Return the state before the first check of the progress of a training.

    Parameters
    ----------
    n : int
        Number of samples.

    Returns
    -------
    look : tuple
        Number of steps at which to check next; objective at the last check; decrease of the objective between
        the last two checks. Each check comes after twice the steps of the last one.
    """
    return np.int64(max(FIRST_LOOK, STEPS_PER_SAMPLE * n)), np.inf, np.inf


@inner
def has_stalled(look, steps, objective, ahead, allowed, n):
    """Return whether a training would take far too many steps, estimated from the decrease of its gains.

    Suppose that the distance from the minimum falls by a factor q over a quarter of the steps so far. Then
    the last half of the steps gains q + q² times as much as the quarter before it.

    Parameters
    ----------
    look : tuple
        State at the last check, see `first_look`.
    steps : int
        Steps so far. Other work is counted by the steps that would take as long.
    objective : float
        Current objective, which the training minimises.
    ahead, allowed : float
        Violation, and the largest violation that the tolerance allows.
    n : int
        Number of samples.

    Returns
    -------
    bool
        Whether to stop the training.
    """
    gain, before = look[1] - objective, look[2]
    if not before < np.inf:  # this is the first or the second check
        return False
    if not gain > 0.0 or not before > 0.0:
        return True
    q = 0.5 * (np.sqrt(1.0 + 4.0 * gain / before) - 1.0)
    decay, needed = -np.log(q), 1.0
    if ahead > np.e * allowed:
        needed = np.log(ahead / allowed)
    limit = MAX_LOOKS * max(FIRST_LOOK, STEPS_PER_SAMPLE * n)
    return steps > limit or not steps * needed <= decay * limit
