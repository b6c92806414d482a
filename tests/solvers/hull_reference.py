"""The hull problem in plain NumPy and SciPy, as a reference for the solvers."""

import numpy as np
from scipy.optimize import nnls


def hull_kernel(K, codes, C, bias=1.0):
    """Return k̃ = (y_i·y_j)(k + bias) + δ_ij / C_i for any number of classes."""
    opposite = -1.0 / (codes.max())
    products = np.where(codes[:, None] == codes[None, :], 1.0, opposite)
    return products * (K + bias) + np.diag(np.broadcast_to(1.0 / np.asarray(C, dtype=float), codes.shape))


def exact_square_norm(H):
    """‖c‖² of the point of the hull closest to the origin, by an active-set method.

    β ≥ 0 that minimises ½ βᵀHβ − Σβ is the point, not yet scaled to Σα = 1; its ‖c‖² is 1 / Σβ.
    """
    L = np.linalg.cholesky(H)
    beta, _ = nnls(L.T, np.linalg.solve(L, np.ones(len(H))), maxiter=100 * len(H))
    return 1.0 / beta.sum()


def hull_weights(model, n):
    """Return α on the hull of a binary model's training samples, from its published attributes."""
    alpha = np.zeros(n)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha / alpha.sum()
