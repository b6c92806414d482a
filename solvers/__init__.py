"""Geometric support vector machines as scikit-learn estimators over numba kernels."""

from solvers.mnsvm import MNSVC
from solvers.newton import NewtonSVC

__all__ = ["MNSVC", "NewtonSVC"]
