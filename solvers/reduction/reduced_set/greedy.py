"""Greedy choice of vectors: each one reduces the residual most.

It is orthogonal matching pursuit on the kernel functions of the support vectors, in the form of a pivoted
Cholesky factor. With the residual functions r_p and the squared distances d_i of φ(x_i) from the span of the
chosen vectors, vector i reduces the residual ρ by Σ_p ω_p r_p(x_i)²/d_i.
"""

import numpy as np
from scipy.linalg import solve_triangular

from solvers.common.resources import require_memory
from solvers.reduction.reduced_set.expansion import (
    diagonal_of,
    of_rows,
    sums_at_vectors,
    values_between,
    weights_of,
)

SMALLEST_PIVOT = 1e-10
"""Smallest squared distance from the span of the chosen vectors, as a share of k(x, x)."""


class Pursuit:
    """Chosen vectors with their Cholesky factor and the residuals of all vectors.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    capacity : int
        Largest number of chosen vectors.

    Attributes
    ----------
    rows : list of int
        Chosen vectors, in the order of their choice.
    residual : float
        Residual ρ of the chosen vectors with the best coefficients, or the value of 1 without vectors.
    """

    def __init__(self, expansion, capacity):
        what = f"the factor of {capacity:,} among {expansion.size:,} vectors"
        require_memory(8.0 * capacity * expansion.size, what, "set a smaller n_vectors")
        self._expansion = expansion
        self._R = sums_at_vectors(expansion, expansion.coefficients)
        self.sums = self._R.copy()
        self.weights = weights_of((expansion.coefficients * self._R).sum(axis=0))
        self._diagonal = diagonal_of(expansion)
        self._distances = self._diagonal.copy()
        self._L = np.empty((capacity, expansion.size))
        self._T = np.empty((capacity, expansion.coefficients.shape[1]))
        self.rows, self.residual = [], float(np.count_nonzero(self.weights)) / max(1, self.weights.size)

    def gains(self):
        """Return the reduction of ρ by each vector.

        Returns
        -------
        ndarray of shape (N,)
            Reductions; −1 for vectors that depend on the chosen ones.
        """
        usable = self._distances > SMALLEST_PIVOT * self._diagonal
        gains = (self._R**2) @ self.weights / np.where(usable, self._distances, 1.0)
        return np.where(usable, gains, -1.0)

    def distances(self):
        """Return the squared distance of each vector from the span of the chosen ones.

        Returns
        -------
        ndarray of shape (N,)
            Squared distances, as shares of k(x, x).
        """
        return self._distances / np.where(self._diagonal > 0.0, self._diagonal, 1.0)

    def add(self, row):
        """Add a vector to the chosen ones.

        Parameters
        ----------
        row : int
            Vector that does not depend on the chosen ones.
        """
        k, L = len(self.rows), self._L
        column = values_between(self._expansion, np.array([row]), slice(None))[0]
        column -= L[:k, row] @ L[:k]
        pivot = np.sqrt(self._distances[row])
        column /= pivot
        step = self._R[row] / pivot
        self._R -= column[:, None] * step
        self._distances -= column**2
        self._distances[row] = 0.0
        L[k], self._T[k] = column, step
        self.rows.append(int(row))
        self.residual -= float(self.weights @ step**2)

    def coefficients(self):
        """Return the coefficients of least residual on the chosen vectors.

        Returns
        -------
        ndarray of shape (m, P)
            Coefficients.
        """
        k = len(self.rows)
        return solve_triangular(self._L[:k, self.rows].T, self._T[:k], trans="T", lower=True)


def pursue(expansion, n_vectors, first=()):
    """Choose vectors one after the other, each by the largest gain.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    n_vectors : int
        Largest number of vectors. Fewer are chosen if all others depend on them.
    first : iterable of int
        Vectors that are chosen before the others, except those that depend on earlier ones.

    Returns
    -------
    Pursuit
        Chosen vectors.
    """
    pursuit = Pursuit(expansion, n_vectors)
    for row in first:
        if len(pursuit.rows) < n_vectors and pursuit.distances()[row] > SMALLEST_PIVOT:
            pursuit.add(row)
    while len(pursuit.rows) < n_vectors:
        gains = pursuit.gains()
        row = int(gains.argmax())
        if gains[row] < 0.0:
            break
        pursuit.add(row)
    return pursuit


def greedy(expansion, n_vectors):
    """Return the reduced set of the greedy choice.

    Parameters
    ----------
    expansion : Expansion
        Sums on N vectors.
    n_vectors : int
        Largest number of vectors.

    Returns
    -------
    Reduced
        Sums on the chosen vectors, in the order of their choice.
    """
    pursuit = pursue(expansion, n_vectors)
    return of_rows(expansion, np.array(pursuit.rows, dtype=np.int64), pursuit.coefficients())
