"""New vectors one by one, each at a fixed point of the residual (Schölkopf et al. 1999).

The residual of subproblem p is the function J_p(z) = Σ_v c_vp k(v, z) over the old vectors and, with negative
coefficients, the new ones. The next vector maximises h(z) = Σ_p ω_p J_p(z)². For the Gaussian kernel, h is
stationary where z = Σ_v g_v v / Σ_v g_v with g_v = k(v, z) Σ_p ω_p J_p(z) c_vp. The sum of g is h(z) > 0, so
that the step ascends. Steps that overshoot are halved.
"""

import numpy as np

from solvers.common.ascent import Limits, climb
from solvers.kernels.functions import kernel_block
from solvers.reduction.reduced_set.expansion import best_coefficients, refitted
from solvers.reduction.reduced_set.greedy import SMALLEST_PIVOT, Pursuit

N_STARTS = 3
"""Number of support vectors, those of the largest h, from which a fixed point is sought."""
LIMITS = Limits(max_steps=50, max_halvings=8, smallest_rise=1e-6)
"""When a search for a maximum of h ends."""
NEAR_DUPLICATE = 1e-6
"""Squared distance of φ(z) from the span of the other vectors below which z is refused."""


def fixed_point(expansion, n_vectors):
    """Return the reduced set of new vectors at fixed points of the residual.

    Parameters
    ----------
    expansion : Expansion
        Sums of the Gaussian kernel on N vectors.
    n_vectors : int
        Largest number of vectors. Where no fixed point is usable, the support vector of the largest gain is
        taken instead.

    Returns
    -------
    Reduced
        Sums on the new vectors.
    """
    residual = _Residual(expansion, n_vectors)
    while residual.size < n_vectors and residual.extend():
        pass
    return refitted(expansion, residual.Z[: residual.size], residual.labels[: residual.size])


class _Residual:
    """Residual functions of the sums on the new vectors, with the best coefficients.

    Parameters
    ----------
    expansion : Expansion
        Sums of the Gaussian kernel on N vectors.
    capacity : int
        Largest number of new vectors.
    """

    def __init__(self, expansion, capacity):
        start = Pursuit(expansion, 0)
        self._expansion, self._sums, self._weights = expansion, start.sums, start.weights
        self.size = 0
        self.Z = np.empty((capacity, expansion.vectors.shape[1]))
        self.labels = np.empty(capacity, dtype=np.int64)
        self._values = np.empty((capacity, expansion.size))  # between new and old vectors
        self._inner = np.empty((capacity, capacity))  # between new vectors
        self._B = np.empty((0, expansion.coefficients.shape[1]))

    def extend(self):
        """Add one vector.

        Returns
        -------
        bool
            Whether a vector was found that does not depend on the others.
        """
        k = self.size
        heights = (self._sums - self._values[:k].T @ self._B) ** 2 @ self._weights
        best, most, origin = None, 0.0, 0
        for row in np.argsort(-heights, kind="stable")[:N_STARTS]:
            z, height = climb(self._at, self._expansion.vectors[row], LIMITS)
            if height > most and self._distance(z) > NEAR_DUPLICATE:
                best, most, origin = z, height, row
        if best is None:
            origin = self._best_row(heights)
            if origin is None:
                return False
            best = self._expansion.vectors[origin]
        self._append(best, self._expansion.labels[origin])
        return True

    def _best_row(self, heights):
        """Return the support vector of the largest gain, h over its squared distance from the span.

        Parameters
        ----------
        heights : ndarray of shape (N,)
            Values of h at the support vectors.

        Returns
        -------
        int or None
            Vector; None if all depend on the new vectors.
        """
        k = self.size
        projected = best_coefficients(self._inner[:k, :k], self._values[:k]) if k else np.empty((0, 1))
        distances = 1.0 - (self._values[:k] * projected).sum(axis=0)
        usable = np.broadcast_to(distances > SMALLEST_PIVOT, heights.shape)
        if not usable.any():
            return None
        return int(np.where(usable, heights / np.where(usable, distances, 1.0), -1.0).argmax())

    def _distance(self, z):
        """Return the squared distance of φ(z) from the span of the new vectors.

        Parameters
        ----------
        z : ndarray of shape (d,)
            Point.

        Returns
        -------
        float
            Squared distance.
        """
        k = self.size
        if not k:
            return 1.0
        row = kernel_block(z[None], self.Z[:k], self._expansion.kernel)[0]
        return 1.0 - float(row @ best_coefficients(self._inner[:k, :k], row[:, None])[:, 0])

    def _append(self, z, label):
        """Append a vector, and compute the best coefficients.

        Parameters
        ----------
        z : ndarray of shape (d,)
            Vector.
        label : int
            Class of the support vector from which it was sought.
        """
        k, kernel = self.size, self._expansion.kernel
        self.Z[k], self.labels[k] = z, label
        self._values[k] = kernel_block(z[None], self._expansion.vectors, kernel)[0]
        self._inner[k, : k + 1] = kernel_block(z[None], self.Z[: k + 1], kernel)[0]
        self._inner[: k + 1, k] = self._inner[k, : k + 1]
        self.size = k + 1
        targets = self._values[: k + 1] @ self._expansion.coefficients
        self._B = best_coefficients(self._inner[: k + 1, : k + 1], targets)

    def _at(self, z):
        """Evaluate h and its fixed-point map.

        Parameters
        ----------
        z : ndarray of shape (d,)
            Point.

        Returns
        -------
        height : float
            h(z).
        target : ndarray of shape (d,)
            Σ g_v v / Σ g_v, or z where h is 0.
        """
        k, expansion = self.size, self._expansion
        of_old = kernel_block(z[None], expansion.vectors, expansion.kernel)[0]
        of_new = kernel_block(z[None], self.Z[:k], expansion.kernel)[0] if k else np.empty(0)
        J = of_old @ expansion.coefficients - of_new @ self._B
        weighted = self._weights * J
        height = float(weighted @ J)
        if not height > 0.0:
            return 0.0, z
        of_old *= expansion.coefficients @ weighted
        of_new = of_new * (self._B @ weighted)
        return height, (of_old @ expansion.vectors - of_new @ self.Z[:k]) / height
