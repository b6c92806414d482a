"""Geometric support vector machines as scikit-learn estimators over numba kernels."""

from solvers.mnsvm import MNSVC

__all__ = ["MNSVC"]
