"""Features of a cutting-plane training as two products: scores of all samples, and sums over samples."""

from typing import Protocol

import numpy as np
from sklearn.utils.extmath import row_norms

from solvers.common.certificate import UNIT_ROUNDOFF


class Features(Protocol):
    """Features φ_i of the n samples of a subproblem."""

    @property
    def dimension(self) -> int:
        """Number of features of a sample."""
        ...

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Return w · φ_i of every sample.

        Parameters
        ----------
        w : ndarray of shape (dimension,)
            Weights of the features.

        Returns
        -------
        ndarray of shape (n,)
            Scores.
        """
        ...

    def combine(self, coefficients: np.ndarray) -> np.ndarray:
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
        ...

    def rounding(self, w: np.ndarray) -> float:
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
        ...


class LinearFeatures:
    """Samples themselves, with a constant feature of 1 if there is a bias.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n, d), float64
        Samples.
    bias : bool
        Whether to append a feature of 1.
    """

    def __init__(self, X, bias):
        self._X, self._bias = X, bool(bias)
        self.dimension = X.shape[1] + self._bias
        self._largest_norm = float(np.sqrt(row_norms(X, squared=True).max() + self._bias))

    def scores(self, w):
        """Return w · φ_i of every sample.

        Parameters
        ----------
        w : ndarray of shape (dimension,)
            Weights of the features, that of the constant last.

        Returns
        -------
        ndarray of shape (n,)
            Scores.
        """
        return self._X @ w[:-1] + w[-1] if self._bias else self._X @ w

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
        total = self._X.T @ coefficients
        return np.append(total, coefficients.sum()) if self._bias else total

    def rounding(self, w):
        """Return a bound on the rounding error of a score.

        Parameters
        ----------
        w : ndarray of shape (dimension,)
            Weights of the features.

        Returns
        -------
        float
            Bound on the absolute error, by the Cauchy-Schwarz inequality.
        """
        return (self.dimension + 2) * UNIT_ROUNDOFF * self._largest_norm * float(np.linalg.norm(w))
