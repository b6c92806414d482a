"""Values of the Gaussian kernel to a fixed set of vectors: one product of matrices, and one pass."""

from typing import NamedTuple

import numpy as np
from sklearn.utils.extmath import row_norms

from solvers.common.compile import njit
from solvers.kernels.functions import exp_of_negative, require_finite


class GaussianVectors(NamedTuple):
    """Vectors of the Gaussian kernel, prepared for predictions."""

    scaled: np.ndarray  # (m, d): 2 γ z
    exponents: np.ndarray  # (m,): −γ ‖z‖²
    gamma: float


def gaussian_vectors(Z, gamma):
    """Prepare vectors.

    Parameters
    ----------
    Z : ndarray of shape (m, d)
        Vectors as `Kernel.prepare` returns them.
    gamma : float
        Width of the kernel.

    Returns
    -------
    GaussianVectors
        Prepared vectors.
    """
    return GaussianVectors(2.0 * gamma * Z, -gamma * row_norms(Z, squared=True), float(gamma))


def gaussian_values(X, vectors):
    """Evaluate the Gaussian kernel between samples and prepared vectors.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Samples as `Kernel.prepare` returns them.
    vectors : GaussianVectors
        Vectors.

    Returns
    -------
    ndarray of shape (n, m)
        Kernel values.

    Raises
    ------
    ValueError
        A value is not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        K = X @ vectors.scaled.T
        exponents = -vectors.gamma * row_norms(X, squared=True)
    require_finite(exponents)
    _finish(K, exponents, vectors.exponents)
    require_finite(K)
    return K


@njit(allocates=False)
def _finish(K, of_rows, of_columns):
    """Replace products by kernel values, exp(min(2 γ x·z − γ ‖x‖² − γ ‖z‖², 0)).

    Parameters
    ----------
    K : float64 array (n, m)
        Products 2 γ x·z; changed in place.
    of_rows : float64 array (n,)
        Terms −γ ‖x‖².
    of_columns : float64 array (m,)
        Terms −γ ‖z‖².
    """
    for i in range(K.shape[0]):
        row, shift = K[i], of_rows[i]
        for j in range(row.size):
            row[j] = exp_of_negative(min(row[j] + shift + of_columns[j], 0.0))
