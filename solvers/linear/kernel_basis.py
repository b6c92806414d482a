"""Features of a Gaussian kernel on a basis of vectors (Joachims and Yu 2009, section 4).

For basis vectors z_1 … z_k and the Cholesky factor LLᵀ of their kernel matrix, the features of a sample x are
L⁻¹ (k(z_1, x), …, k(z_k, x)). Their inner products are those of the projections of φ(x) onto the span of the
basis, as with `sklearn.kernel_approximation.Nystroem` on the same vectors.
"""

import numpy as np
from scipy import sparse

from solvers.common.certificate import UNIT_ROUNDOFF
from solvers.common.compile import njit
from solvers.common.resources import require_memory
from solvers.kernels.functions import kernel_block

SMALLEST_PIVOT = 1e-8
"""Smallest squared distance of a basis vector from the span of the others, in the feature space."""
VECTORS_AT_A_TIME = 64
"""Number of vectors whose kernel values are computed together."""


class BasisFeatures:
    """Features on a basis that may grow, with a constant feature of 1 if there is a bias.

    The constant comes first, so that new vectors append features.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d)
        Samples, as `Kernel.prepare` returns them.
    kernel : Kernel
        Gaussian kernel.
    capacity : int
        Largest number of basis vectors.
    bias : bool
        Whether to have a feature of 1.
    """

    def __init__(self, X, kernel, capacity, bias):
        n = X.shape[0]
        require_memory(
            8.0 * capacity * (n + capacity),
            f"the kernel values between {n:,} samples and {capacity:,} basis vectors",
            "set a smaller n_basis",
        )
        self.X, self.kernel, self.bias = X, kernel, int(bias)
        self.size = 0
        self._parts = []  # basis vectors, in blocks of rows
        self._values = np.empty((capacity, n))
        self._factor = np.zeros(
            (capacity, capacity)
        )  # transposed Cholesky factor, so that its rows are contiguous

    @property
    def dimension(self):
        """Number of features."""
        return self.size + self.bias

    @property
    def capacity(self):
        """Largest number of basis vectors."""
        return self._values.shape[0]

    @property
    def values(self):
        """Kernel values of shape (size, n) between the basis and the samples."""
        return self._values[: self.size]

    def vectors(self):
        """Return the basis vectors.

        Returns
        -------
        {ndarray, CSR} of shape (size, d)
            Vectors, as `Kernel.prepare` returns samples.
        """
        if len(self._parts) > 1:
            stack = sparse.vstack if sparse.issparse(self.X) else np.vstack
            self._parts = [stack(self._parts, format="csr") if stack is sparse.vstack else stack(self._parts)]
        return self._parts[0] if self._parts else self.X[:0]

    def extend(self, Z):
        """Append vectors to the basis, except those that are too close to the span of the others.

        Parameters
        ----------
        Z : {ndarray, CSR} of shape (m, d)
            Vectors, in the format of the samples.

        Returns
        -------
        int
            Number of appended vectors.
        """
        before = self.size
        for start in range(0, Z.shape[0], VECTORS_AT_A_TIME):
            block = Z[start : start + VECTORS_AT_A_TIME]
            of_basis = (
                kernel_block(block, self.vectors(), self.kernel)
                if self.size
                else np.empty((block.shape[0], 0))
            )
            among = kernel_block(block, block, self.kernel)
            kept: list[int] = []
            for i in range(block.shape[0]):
                if self.size < self.capacity and self._append(np.append(of_basis[i], among[i, kept])):
                    kept.append(i)
            if kept:
                self._parts.append(block[kept])
                self._values[self.size - len(kept) : self.size] = kernel_block(
                    block[kept], self.X, self.kernel
                )
        return self.size - before

    def _append(self, products):
        """Append a column to the Cholesky factor, if the pivot is large enough.

        Parameters
        ----------
        products : ndarray of shape (size,)
            Kernel values of the vector with the basis.

        Returns
        -------
        bool
            Whether the vector was accepted.
        """
        row = self.lower_solution(products)
        pivot = 1.0 - row @ row
        if pivot < SMALLEST_PIVOT:
            return False
        self._factor[: self.size, self.size] = row
        self._factor[self.size, self.size] = np.sqrt(pivot)
        self.size += 1
        return True

    def lower_solution(self, values):
        """Return L⁻¹ values.

        Parameters
        ----------
        values : ndarray of shape (size,)
            Right-hand side.

        Returns
        -------
        ndarray of shape (size,)
            Solution.
        """
        solution = np.array(values, dtype=np.float64)
        _solve_lower(self._factor, solution)
        return solution

    def last_feature(self, products, others):
        """Return the feature of the last basis vector for sums of samples.

        Parameters
        ----------
        products : ndarray of shape (m,)
            Inner products of the sums with φ of the last basis vector.
        others : ndarray of shape (m, size − 1)
            Features of the sums on the other basis vectors.

        Returns
        -------
        ndarray of shape (m,)
            Feature of each sum.
        """
        last = self.size - 1
        return (products - others @ self._factor[:last, last]) / self._factor[last, last]

    def coefficients(self, u):
        """Return the coefficients L⁻ᵀu of the kernel functions of the basis.

        Parameters
        ----------
        u : ndarray of shape (size,)
            Weights of the features, without the constant.

        Returns
        -------
        ndarray of shape (size,)
            Coefficients.
        """
        solution = np.array(u, dtype=np.float64)
        _solve_upper(self._factor, solution)
        return solution

    def scores(self, w):
        """Return w · φ_i of every sample.

        Parameters
        ----------
        w : ndarray of shape (dimension,)
            Weights of the features, that of the constant first.

        Returns
        -------
        ndarray of shape (n,)
            Scores.
        """
        scores = self.coefficients(w[self.bias :]) @ self.values
        return scores + w[0] if self.bias else scores

    def combine(self, coefficients):
        """Return Σ_i coefficients_i φ_i.

        Parameters
        ----------
        coefficients : ndarray of shape (n,)
            Factor of each sample.

        Returns
        -------
        ndarray of shape (dimension,)
            The sum.
        """
        total = self.lower_solution(self.values @ coefficients)
        return np.concatenate(([coefficients.sum()], total)) if self.bias else total

    def rounding(self, w):
        """Return a bound on the rounding error of a score.

        Parameters
        ----------
        w : ndarray of shape (dimension,)
            Weights of the features.

        Returns
        -------
        float
            Bound on the absolute error.
        """
        of_basis = self.size_of_coefficients(w)
        absolute = of_basis + (abs(w[0]) if self.bias else 0.0)
        return (self.dimension + 2) * UNIT_ROUNDOFF * absolute + self.kernel.error * of_basis

    def norm_rounding(self, w):
        """Return a bound on the error of ½ ‖w‖², as the norm of Σ_j ζ_j φ(z_j) with the coefficients ζ of w.

        LLᵀ differs from the kernel matrix of the basis by the errors of the kernel values and of the factor.
        Large coefficients of different signs amplify them.

        Parameters
        ----------
        w : ndarray of shape (dimension,)
            Weights of the features.

        Returns
        -------
        float
            Bound on the absolute error.
        """
        of_entry = self.kernel.error + (self.dimension + 2) * UNIT_ROUNDOFF
        return 0.5 * of_entry * self.size_of_coefficients(w) ** 2

    def size_of_coefficients(self, w):
        """Return Σ_j |ζ_j| of the coefficients of the kernel functions.

        Parameters
        ----------
        w : ndarray of shape (dimension,)
            Weights of the features.

        Returns
        -------
        float
            The sum.
        """
        return float(np.abs(self.coefficients(w[self.bias :])).sum())


@njit(allocates=False)
def _solve_lower(factor, solution):
    """Solve Lx = b in place, where `factor` is Lᵀ.

    Parameters
    ----------
    factor : float64 array (capacity, capacity)
        Transposed Cholesky factor.
    solution : float64 array (k,)
        Right-hand side; receives the solution.
    """
    k = solution.size
    for j in range(k):
        x = solution[j] / factor[j, j]
        solution[j] = x
        for i in range(j + 1, k):
            solution[i] -= x * factor[j, i]


@njit(allocates=False)
def _solve_upper(factor, solution):
    """Solve Lᵀx = b in place, where `factor` is Lᵀ.

    Parameters
    ----------
    factor : float64 array (capacity, capacity)
        Transposed Cholesky factor.
    solution : float64 array (k,)
        Right-hand side; receives the solution.
    """
    for j in range(solution.size - 1, -1, -1):
        x = solution[j]
        for i in range(j + 1, solution.size):
            x -= factor[j, i] * solution[i]
        solution[j] = x / factor[j, j]
