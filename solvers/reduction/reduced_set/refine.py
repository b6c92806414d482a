"""Vectors moved together to reduce the residual (Burges 1996, phase II), by L-BFGS.

The coefficients are the best ones for the vectors, with a small ridge. By the envelope theorem the gradient
of ρ is then 2 Σ_p ω_p b_jp (Σ_l b_lp ∂k(z_l, z_j) − Σ_i a_ip ∂k(x_i, z_j)), with derivatives by z_j.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from solvers.kernels.functions import IMQ, LINEAR, RBF, kernel_block
from solvers.reduction.reduced_set.expansion import diagonal_of, refitted, sums_at_vectors, weights_of

RIDGE = 1e-8
"""Addition to the diagonal of the kernel matrix of the vectors, as a share of the mean k(x, x)."""
N_CORRECTIONS = 20
"""Number of steps from which L-BFGS estimates the curvature."""


def refine(expansion, reduced, max_refine):
    """Move the vectors of a reduced set, and never raise the residual.

    Parameters
    ----------
    expansion : Expansion
        Sums of a kernel of features on N vectors.
    reduced : Reduced
        Reduced set to start from.
    max_refine : int
        Largest number of iterations.

    Returns
    -------
    Reduced
        Sums on the moved vectors; the given ones if the residual would rise.
    """
    if max_refine == 0 or reduced.coefficients.size == 0:
        return reduced
    problem = Residual(expansion)
    found = minimize(
        problem.with_gradient,
        reduced.vectors.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_refine, "maxfun": 2 * max_refine, "maxcor": N_CORRECTIONS},
    )
    vectors = np.ascontiguousarray(found.x.reshape(reduced.vectors.shape))
    moved = refitted(expansion, vectors, reduced.labels)
    return moved if problem.of(moved) < problem.of(reduced) else reduced


class Residual:
    """Residual ρ of vectors, with its gradient.

    Parameters
    ----------
    expansion : Expansion
        Sums of a kernel of features on N vectors.
    """

    def __init__(self, expansion):
        self._expansion = expansion
        sums = sums_at_vectors(expansion, expansion.coefficients)
        square_norms = (expansion.coefficients * sums).sum(axis=0)
        self._weights = weights_of(square_norms)
        self._ridge = RIDGE * float(diagonal_of(expansion).mean())
        self._at_zero = float(self._weights @ square_norms)

    def of(self, reduced):
        """Return the residual of a reduced set with its coefficients.

        Parameters
        ----------
        reduced : Reduced
            Vectors with coefficients.

        Returns
        -------
        float
            ρ.
        """
        expansion, B = self._expansion, reduced.coefficients
        values = kernel_block(reduced.vectors, expansion.vectors, expansion.kernel)
        inner = kernel_block(reduced.vectors, reduced.vectors, expansion.kernel)
        terms = (B * (inner @ B - 2.0 * (values @ expansion.coefficients))).sum(axis=0)
        return self._at_zero + float(self._weights @ terms)

    def with_gradient(self, flat):
        """Return the residual with the best coefficients and the ridge, and its gradient.

        Parameters
        ----------
        flat : ndarray of shape (m · d,)
            Vectors, one after the other.

        Returns
        -------
        residual : float
            ρ plus the ridge of the coefficients.
        gradient : ndarray of shape (m · d,)
            Derivatives by the features of the vectors.
        """
        expansion, kernel = self._expansion, self._expansion.kernel
        X, A = expansion.vectors, expansion.coefficients
        Z = np.ascontiguousarray(flat.reshape(-1, X.shape[1]))
        K, inner = kernel_block(X, Z, kernel), kernel_block(Z, Z, kernel)
        targets = K.T @ A
        ridged = inner.copy()
        ridged[np.diag_indices_from(ridged)] += self._ridge
        B = cho_solve(cho_factor(ridged, lower=True), targets)
        residual = self._at_zero - float(self._weights @ (B * targets).sum(axis=0))
        of_old = slopes_of(kernel, K, X, Z) * (A @ (self._weights * B).T)
        of_new = slopes_of(kernel, inner, Z, Z) * (B @ (self._weights * B).T)
        gradient = of_new.T @ Z - of_old.T @ X
        if kernel.kind in (RBF, IMQ):
            gradient -= (of_new.sum(axis=0) - of_old.sum(axis=0))[:, None] * Z
        return residual, 2.0 * gradient.ravel()


def slopes_of(kernel, values, V, Z):
    """Return the factor s of the derivative ∂k(v, z)/∂z, which is s (v − z), or s v for kernels of products.

    Parameters
    ----------
    kernel : Kernel
        Kernel of features, positive semidefinite.
    values : ndarray of shape (n, m)
        Kernel values k(v, z).
    V, Z : ndarray of shape (n, d) and (m, d)
        Vectors v and z.

    Returns
    -------
    ndarray of shape (n, m)
        Factors.
    """
    if kernel.kind == RBF:
        return 2.0 * kernel.gamma * values
    if kernel.kind == IMQ:
        return kernel.gamma * values**3
    if kernel.kind == LINEAR:
        return np.ones_like(values)
    if kernel.degree == 0:
        return np.zeros_like(values)
    return kernel.degree * kernel.gamma * (kernel.gamma * (V @ Z.T) + kernel.coef0) ** (kernel.degree - 1)
