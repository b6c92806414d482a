"""The weights of the soft ball by an interior point method, for hulls that nearly touch.

There ‖c‖² is small beside k̃(i, i), and steps of pairs, whose number grows with that ratio, become too many.
The conditions of min ½ αᵀK̃α subject to ``0 ≤ α ≤ box``, Σ α = 1 are ``K̃α − ρ − z + w = 0``, α_i z_i = 0 and
(box_i − α_i) w_i = 0. Each iteration solves their Newton equations for products μ instead of 0, with the
prediction and correction of Mehrotra (1992): n³/3 operations for one Cholesky factor.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from solvers.common.certificate import UNIT_ROUNDOFF

MAX_ITERATIONS = 60
"""Iterations after which the method stops; usual are 10 to 25."""
TO_BOUNDARY = 0.995
"""Share of the step to the nearest bound that is taken."""
WORSE = 1e3
"""Growth of the error over its smallest value at which rounding errors have taken over."""
AT_BOUND = 1e-13
"""Distance from a bound, as a share of the box, below which a weight is set to the bound."""


class _Point(NamedTuple):
    """Weights α, ``box − α``, the multipliers z and w of the lower and the upper bounds, and the offset ρ."""

    alpha: np.ndarray
    slack: np.ndarray
    z: np.ndarray
    w: np.ndarray
    offset: float

    @property
    def products(self):
        """Sum of the products of the weights and the slacks with their multipliers: the duality gap."""
        return float(self.alpha @ self.z + self.slack @ self.w)


def minimise_inside(K, box, tol, floor, check_time):
    """Minimise ``½ αᵀKα`` subject to 0 ≤ α ≤ box and Σ α = 1.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Positive semidefinite matrix.
    box : ndarray of shape (n,)
        Largest weights, of more than 1 in sum.
    tol : float
        Duality gap to aim at, as a share of ``αᵀKα``.
    floor : float
        Value of ``αᵀKα`` below which the method stops.
    check_time : callable
        Called before each iteration; raises an exception if the time is over.

    Returns
    -------
    ndarray of shape (n,)
        Weights within the box, of sum 1 but for rounding errors.
    """
    point = _start(K, box)
    best, smallest = point.alpha, np.inf
    for _ in range(MAX_ITERATIONS):
        check_time()
        F = K @ point.alpha
        value = float(point.alpha @ F)
        residual = F - point.offset - point.z + point.w
        error = point.products + float(np.abs(residual).max())
        if error < smallest:
            best, smallest = point.alpha, error
        if not tol * value < error <= WORSE * smallest or value <= floor:
            break
        try:
            point = _moved(point, _direction(K, point, residual))
        except LinAlgError:  # the matrix is singular within rounding errors
            break
    return _at_bounds(best, box)


def _start(K, box):
    """Return a point inside the box, with multipliers of the size of the residuals.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Positive semidefinite matrix.
    box : ndarray of shape (n,)
        Largest weights.

    Returns
    -------
    _Point
        The point.
    """
    alpha = box / box.sum()
    F = K @ alpha
    excess = F - F.mean()
    size = max(np.abs(excess).mean(), UNIT_ROUNDOFF * K.diagonal().max())
    z, w = np.maximum(excess, 0.0) + size, np.maximum(-excess, 0.0) + size
    return _Point(alpha, box - alpha, z, w, float(F.mean()))


def _direction(K, point, residual):
    """Return Mehrotra's direction: a prediction for μ = 0, and its correction.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Positive semidefinite matrix.
    point : _Point
        Where the iteration stands.
    residual : ndarray of shape (n,)
        ``Kα − ρ − z + w``.

    Returns
    -------
    _Point
        Change of each part of the point.

    Raises
    ------
    LinAlgError
        If the matrix of the equations is singular within rounding errors.
    """
    alpha, slack, z, w, _ = point
    matrix = np.array(K, dtype=np.float64)
    matrix[np.diag_indices_from(matrix)] += z / alpha + w / slack
    factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
    of_ones = cho_solve(factor, np.ones(alpha.size), check_finite=False)

    def change_to(lower, upper):
        """Return the change after which the products are, to first order, `lower` and `upper`.

        Parameters
        ----------
        lower, upper : float or ndarray of shape (n,)
            Products of the lower and of the upper bounds with their multipliers.

        Returns
        -------
        _Point
            Change of each part of the point.
        """
        dz, dw = lower / alpha - z, upper / slack - w
        step = cho_solve(factor, dz - dw - residual, check_finite=False)
        offset = (1.0 - alpha.sum() - step.sum()) / of_ones.sum()
        step += offset * of_ones
        return _Point(step, -step, dz - z / alpha * step, dw + w / slack * step, offset)

    guess = change_to(0.0, 0.0)
    ahead = _moved(point, guess, share=1.0)
    mean = point.products / (2 * alpha.size)
    aim = mean * min(1.0, ahead.products / point.products) ** 3
    return change_to(aim - guess.alpha * guess.z, aim - guess.slack * guess.w)


def _moved(point, step, share=TO_BOUNDARY):
    """Return the point after the longest step that keeps all parts positive.

    Parameters
    ----------
    point : _Point
        Where the step begins.
    step : _Point
        Change of each part.
    share : float, default=TO_BOUNDARY
        Share of the step to the nearest bound that is taken.

    Returns
    -------
    _Point
        The next point.
    """
    length = 1.0
    for value, change in zip(point[:-1], step[:-1], strict=True):
        falls = change < 0.0
        if falls.any():
            length = min(length, share * float((value[falls] / -change[falls]).min()))
    return _Point(*(part + length * change for part, change in zip(point, step, strict=True)))


def _at_bounds(alpha, box):
    """Set weights next to a bound to the bound, and make the sum 1 by moving the others.

    Parameters
    ----------
    alpha : ndarray of shape (n,)
        Weights inside the box.
    box : ndarray of shape (n,)
        Largest weights.

    Returns
    -------
    ndarray of shape (n,)
        Weights within the box.
    """
    alpha = np.where(alpha < AT_BOUND * box, 0.0, np.where(alpha > (1.0 - AT_BOUND) * box, box, alpha))
    missing = 1.0 - alpha.sum()
    room = np.where((alpha > 0.0) & (alpha < box), box - alpha if missing > 0.0 else alpha, 0.0)
    if room.sum() > abs(missing):
        alpha = alpha + missing * room / room.sum()
    return np.clip(alpha, 0.0, box)
