"""When steps have ceased to pay: what rounding hides, and what would take far too many of them."""

import numpy as np

from solvers.common.certificate import FEW_ROUNDINGS, UNIT_ROUNDOFF
from solvers.common.compile import inner

# Steps before the first look at how fast a training gains; on many samples, so many for each.
FIRST_LOOK, STEPS_PER_SAMPLE = 1 << 14, 128
# Largest number of steps, taken or foreseen, as a multiple of those before the first look.
MAX_LOOKS = 128.0
# Draws that take as long as a step, about.
DRAWS_PER_STEP = 16


@inner
def resolution(largest):
    """Return the difference of two g, or of ‖c‖² and a g, that rounding can make up.

    Parameters
    ----------
    largest : float
        Bound on the size of the kernel values.
    """
    return FEW_ROUNDINGS * UNIT_ROUNDOFF * largest


@inner
def first_look(n):
    """Return what is known before the first look at a training on n samples.

    Returns
    -------
    look : tuple
        Steps at which to look next; the objective at the last look; by how much it had fallen since the look
        before that. Each look comes after twice the steps of the last.
    """
    return np.int64(max(FIRST_LOOK, STEPS_PER_SAMPLE * n)), np.inf, np.inf


@inner
def has_no_end(look, steps, objective, ahead, allowed, n):
    """Return whether a training would take far too many steps, judged by how its gains fall.

    An objective whose distance from the minimum falls by a factor q over a quarter of the steps so far gains
    q + q² times as much in the last half of them as in the quarter before that.

    Parameters
    ----------
    look : tuple
        The last one, see `first_look`.
    steps : int
        Steps so far, or what has taken as long.
    objective : float
        It is minimised.
    ahead, allowed : float
        The violation, and the largest one that the tolerance allows.
    n : int
        Number of samples.
    """
    gain, before = look[1] - objective, look[2]
    if not before < np.inf:  # this is the first look or the second
        return False
    if not gain > 0.0 or not before > 0.0:
        return True
    q = 0.5 * (np.sqrt(1.0 + 4.0 * gain / before) - 1.0)
    decay, needed = -np.log(q), 1.0
    if ahead > np.e * allowed:
        needed = np.log(ahead / allowed)
    limit = MAX_LOOKS * max(FIRST_LOOK, STEPS_PER_SAMPLE * n)
    return steps > limit or not steps * needed <= decay * limit
