"""Scalers of scikit-learn that map features without a range to 0, as `fit_scaling` does in a study."""

from typing import Any, Self

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler


class RangeScaler(MinMaxScaler):
    """Scale features to [0, 1] by the rows of the fit; a feature that is constant there becomes 0 everywhere.

    With `MinMaxScaler`, a new value of such a feature is only shifted, and may exceed all other features.
    """

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the range of each feature.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to fit.
        y : object, optional
            Not used.
        """
        super().partial_fit(X, y)
        is_constant = self.data_range_ == 0
        self.scale_[is_constant] = self.min_[is_constant] = 0.0
        return self


class LargestScaler(MaxAbsScaler):
    """Scale features to [-1, 1] by the rows of the fit; a feature that is 0 there becomes 0 everywhere.

    It keeps sparse rows sparse. With `MaxAbsScaler`, a new value of such a feature is left unchanged.
    """

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the largest absolute value of each feature.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to fit.
        y : object, optional
            Not used.
        """
        super().partial_fit(X, y)
        self.scale_[self.max_abs_ == 0] = np.inf
        return self
