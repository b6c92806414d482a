"""Scaling of features to [0, 1], fitted on training rows; missing values stay so, and text is left alone."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.sparse
from numpy.typing import NDArray

from orchestrator.datasets.dataset import Features
from orchestrator.datasets.frames import number_columns


@dataclass(frozen=True, slots=True)
class Scaling:
    """A fitted scaling: `(x - shift) / span` for each feature.

    Attributes
    ----------
    shift : float64 array, shape (d,), or None
        The smallest value; None for CSR, whose zeros have to stay zeros.
    span : float64 array, shape (d,)
        Largest minus smallest value, or for CSR the largest absolute value; infinite for a feature that
        does not vary, which sends it to 0.
    """

    shift: NDArray[np.float64] | None
    span: NDArray[np.float64]

    def apply(self, X: Features) -> Features:
        """Return scaled rows, of the kind the scaling was fitted on; rows not fitted on may leave [0, 1]."""
        if isinstance(X, pd.DataFrame):
            names, scaled = number_columns(X), X.copy()
            for name, values in zip(names, self.apply(X[names].to_numpy()).T, strict=True):
                scaled[name] = values
            return scaled
        if self.shift is None:
            parts = X.data / self.span[X.indices], X.indices, X.indptr
            return scipy.sparse.csr_matrix(parts, shape=X.shape)
        scaled = X - self.shift
        scaled /= self.span
        return scaled


def fit_scaling(X: Features) -> Scaling:
    """Return the scaling that takes these rows to [0, 1], or CSR rows to [-1, 1] with all signs kept.

    For a non-negative feature that is zero in some row both are the same map. Of a frame, the columns of
    numbers are scaled.

    Parameters
    ----------
    X : float64 array, CSR matrix or frame, shape (n, d)
    """
    if isinstance(X, pd.DataFrame):
        return fit_scaling(X[number_columns(X)].to_numpy())
    if scipy.sparse.issparse(X):
        shift = None
        span = np.zeros(X.shape[1])
        np.maximum.at(span, X.indices, np.abs(X.data))
    else:
        shift, largest = X.min(axis=0), X.max(axis=0)
        if np.isnan(shift).any():
            shift, largest = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        span = largest - shift
    span[span == 0] = np.inf
    return Scaling(shift, span)
