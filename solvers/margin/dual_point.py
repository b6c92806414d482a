"""Weights of a large subproblem, and the gradient of all its samples, without a Gram matrix.

The gradient F is stored in float64. Its kernel values are computed and used at once
(`solvers.kernels.tiles`).
"""

from contextlib import contextmanager

import numpy as np

from solvers.common.certificate import FEW_ROUNDINGS, UNIT_ROUNDOFF
from solvers.common.clock import clock
from solvers.kernels.subproblem_kernel import OutOfTime
from solvers.kernels.tiles import ROWS_AT_A_TIME, Samples, add_products, tiles_of
from solvers.smo.block_path import ROUNDINGS_PER_SCALING, change_C, set_bounds
from solvers.smo.certificate import bias_of

# Number of kernel values between two readings of the clock.
VALUES_BEFORE_CHECK = 1 << 24


class DualPoint:
    """Signed weights β_i = y_i α_i of a subproblem, and the gradient F = K β - y of all its samples.

    Parameters
    ----------
    samples : solvers.kernels.tiles.Samples
        Samples of the training set, scaled for tiles.
    n_features : int
        Number of columns of the feature matrix.
    rows : int64 ndarray of shape (m,)
        Indices of the subproblem's samples.
    y : ndarray of shape (m,)
        Labels, 1 or -1; 0 for a weight without bounds.
    deadline : float
        Time of `solvers.common.clock.clock` at which to stop, in seconds.
    hinge : bool
        Whether the loss is C ξ; if not, it is ½ C ξ², and F contains β_i / C_i as well.
    """

    def __init__(self, samples: Samples, n_features, rows, y, deadline, hinge):
        self._hinge, self._samples, self._rows, self.y = hinge, samples, rows, y
        self._deadline, self._tiles = deadline, tiles_of(samples, rows, n_features)
        self._evaluations, m = 0, rows.size
        self._drift, self._bias_of_some = 0.0, None  # the bias while F is known for a subsample only
        self.beta, self.F, self.C = np.zeros(m), -y, np.zeros(m)
        self._low, self._high, self._ridge = np.zeros(m), np.zeros(m), np.zeros(m)

    @property
    def bias(self):
        """The bias of the point."""
        if self._bias_of_some is not None:
            return self._bias_of_some
        return bias_of(self.F, self.beta, self._low, self._high)

    @property
    def objective(self):
        """Objective ½ αᵀQα - Σ α_i of the point."""
        return 0.5 * (self.beta @ self.F - np.abs(self.beta[self.y != 0.0]).sum())

    def n_free(self):
        """Count the weights between their bounds.

        Returns
        -------
        int
            Number of weights strictly between their bounds.
        """
        return np.count_nonzero((self._low < self.beta) & (self.beta < self._high))

    def n_bounded(self):
        """Count the weights at C.

        Returns
        -------
        int
            Number of weights whose size is at least C.
        """
        return np.count_nonzero(np.abs(self.beta) >= self.C)

    def set_C(self, C):
        """Set C and the bounds; the weights stay.

        Parameters
        ----------
        C : ndarray of shape (m,)
            Penalty of each sample.
        """
        self.C = C
        set_bounds(self.y, C, self._hinge, self._low, self._high, self._ridge)
        self._high[self.y == 0.0] = np.inf

    def set_weights(self, beta):
        """Set the weights, and compute their gradient without regard to the deadline.

        Parameters
        ----------
        beta : ndarray of shape (m,)
            Signed weights.
        """
        self.beta = beta
        self._recompute(np.inf)

    def raise_C(self, C):
        """Move the point to a larger C.

        Parameters
        ----------
        C : ndarray of shape (m,)
            Penalty of each sample, a multiple of the present one.
        """
        old, self.C = self.C, C
        scale, _ = change_C(
            old, C, self.y, self._hinge, self._low, self._high, self._ridge, self.beta, self.F
        )
        self._high[self.y == 0.0] = np.inf
        self._drift = scale * self._drift
        self._drift += ROUNDINGS_PER_SCALING * UNIT_ROUNDOFF * (np.abs(self.beta).sum() + 1.0)

    def _move_towards(self, beta):
        """Move towards other weights as far as the objective decreases.

        Parameters
        ----------
        beta : ndarray of shape (m,)
            Signed weights.

        Raises
        ------
        OutOfTime
            If the deadline passes. The point is then unchanged.
        """
        change, before, old = beta - self.beta, self.F.copy(), self.beta
        moved = np.flatnonzero(change)
        with self._restored_when_out_of_time():
            self.beta = beta
            self._add(moved, change[moved], self._deadline)
        curvature = change @ (self.F - before)
        share = np.clip(-(before @ change) / curvature, 0.0, 1.0) if curvature > 0.0 else 0.0
        self.beta = old + share * change
        self.F = before + share * (self.F - before)

    def _add(self, chosen, weights, deadline):
        """Update the gradient after a change of some weights.

        Parameters
        ----------
        chosen : int64 ndarray of shape (k,)
            Indices of the samples whose weights changed.
        weights : ndarray of shape (k,)
            Change of their signed weights.
        deadline : float
            Time of `solvers.common.clock.clock` at which to stop, in seconds.

        Raises
        ------
        OutOfTime
            If the deadline passes. The gradient is then unchanged.
        """
        F, step = self.F, max(1, chosen.size)
        if deadline < np.inf:
            F, step = F.copy(), ROWS_AT_A_TIME * (1 + VALUES_BEFORE_CHECK // (ROWS_AT_A_TIME * F.size))
        for first in range(0, chosen.size, step):
            if clock() > deadline:
                raise OutOfTime
            some = slice(first, first + step)
            add_products(self._samples, self._rows[chosen[some]], weights[some], self._tiles, F)
        of_ridge = self._ridge[chosen] * weights
        F[chosen] += of_ridge
        self.F = F
        self._evaluations += chosen.size * self.y.size
        terms = min(chosen.size, ROWS_AT_A_TIME) + FEW_ROUNDINGS
        portions = chosen.size / ROWS_AT_A_TIME + 1.0
        rounding = terms * np.abs(weights).sum() + portions * (np.abs(self.beta).sum() + 1.0)
        rounding += FEW_ROUNDINGS * np.abs(of_ridge).max(initial=0.0)
        self._drift += UNIT_ROUNDOFF * rounding

    def _recompute(self, deadline):
        """Recompute the gradient from the weights.

        Parameters
        ----------
        deadline : float
            Time of `solvers.common.clock.clock` at which to stop, in seconds.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        self.F, self._drift = -self.y, 0.0
        support = np.flatnonzero(self.beta)
        self._add(support, self.beta[support], deadline)

    @contextmanager
    def _restored_when_out_of_time(self):
        """Restore the point if the deadline passes before the gradient of new weights is known.

        Yields
        ------
        None
            Control, to change the weights.

        Raises
        ------
        OutOfTime
            If the deadline passes.
        """
        before = self.beta.copy(), self.F, self._drift
        try:
            yield
        except OutOfTime:
            self.beta, self.F, self._drift = before
            raise
