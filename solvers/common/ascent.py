"""Climb to a stationary point of a function by steps towards its fixed-point map, halved until they rise."""

from typing import NamedTuple

import numpy as np


class Limits(NamedTuple):
    """When a search ends."""

    max_steps: int  # largest number of steps
    max_halvings: int  # largest number of halvings of a step
    smallest_rise: float  # relative rise below which the search ends


def climb(at, z, limits):
    """Climb to a stationary point.

    Parameters
    ----------
    at : callable
        Function of a point that returns the height, at least 0, and the fixed-point map of shape (d,).
    z : ndarray of shape (d,)
        Start.
    limits : Limits
        When the search ends.

    Returns
    -------
    z : ndarray of shape (d,)
        Last point.
    height : float
        Height of the point.
    """
    height, target = at(z)
    for _ in range(limits.max_steps):
        direction, step = target - z, 1.0
        if not np.isfinite(direction).all():
            break
        for _ in range(limits.max_halvings):
            candidate = z + step * direction
            new_height, new_target = at(candidate)
            if new_height > height:
                break
            step *= 0.5
        else:
            break
        rise = new_height / height - 1.0 if height > 0.0 else np.inf
        z, height, target = candidate, new_height, new_target
        if rise < limits.smallest_rise:
            break
    return z, height
